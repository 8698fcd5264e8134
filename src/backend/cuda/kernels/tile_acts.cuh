// SPDX-License-Identifier: MIT
//
// Activations of products with tiles (matmul_tiles.cu): a warp has its own blocks of 256 columns in shared memory as bytes,
// sums and a scale, from ACT16 in memory or from floats that it norms and quantises itself.
#ifndef SL_BACKEND_CUDA_TILE_ACTS_CUH
#define SL_BACKEND_CUDA_TILE_ACTS_CUH

#include "backend/cuda/kernels/quant.cuh"
#include "backend/cuda/kernels/tile_deal.cuh"

enum {
    N_COL = 8,     // of the integer product
    HOLD_MANY = 4, // blocks of activations that a warp has in registers at once, if it has several
};

// 256 columns of N rows as a warp has them in shared memory. S16, S32: with sums of 16 and of 32 columns.
template <int N, bool S16, bool S32> struct staged {
    enum {
        PITCH = SL_ACT_BLK_LEN + 32, // so that no two rows of four meet in a bank
        LO = N * PITCH,
        SUM16 = 2 * N * PITCH,
        SUM32 = SUM16 + (S16 ? 16 * N * 4 : 0),
        D = SUM32 + (S32 ? 8 * N * 4 : 0),
        BYTES = (D + N * 4 + 15) / 16 * 16
    };
    uint8_t *p;
    __device__ __forceinline__ const uint8_t *bytes(int plane, int row) const { return p + plane * LO + row * PITCH; }
    template <int GROUP> __device__ __forceinline__ const int32_t *sum(int group) const {
        return (const int32_t *)(p + (GROUP == 16 ? SUM16 : SUM32)) + group * N;
    }
    __device__ __forceinline__ const float *d() const { return (const float *)(p + D); }
    __device__ __forceinline__ void put(int row, const act_lane &q, int lane) const {
        *(uint2 *)(p + row * PITCH + PER_LANE * lane) = q.hi;
        *(uint2 *)(p + LO + row * PITCH + PER_LANE * lane) = q.lo;
        const int32_t sum = q.sum + __shfl_xor_sync(ALL, q.sum, 2);
        if (S16 && lane % 2 == 0) ((int32_t *)(p + SUM16))[lane / 2 * N + row] = q.sum;
        if (S32 && lane % 4 == 0) ((int32_t *)(p + SUM32))[lane / 4 * N + row] = sum;
        if (lane == 0) ((float *)(p + D))[row] = q.d;
    }
};

template <class A, class B, int N> struct staged_for {
    static const bool S16 = ((int)A::ACT_SUM && (int)A::GROUP == 16) || ((int)B::ACT_SUM && (int)B::GROUP == 16);
    static const bool S32 = ((int)A::ACT_SUM && (int)A::GROUP == 32) || ((int)B::ACT_SUM && (int)B::GROUP == 32);
    typedef staged<N, S16, S32> type;
};

// Group i of a row's bytes as lane (., t) of the product's second factor has it.
template <class T> static __device__ __forceinline__ uint2 factor(const uint8_t *bytes, int i, int t) {
    const uint8_t *p = bytes + i * T::GROUP;
    if (T::EIGHTS) return *(const uint2 *)(p + 8 * t);
    uint2 b;
    b.x = *(const uint32_t *)(p + 4 * t);
    b.y = T::GROUP == 32 ? *(const uint32_t *)(p + 16 + 4 * t) : 0;
    return b;
}

// A warp's blocks k, k + n_k .. of one row, one after another at `to`; HOLD of them are under way at once. The norm's
// weights do not depend on the kernel before, so the first are asked for before it is waited for. squares (blocks of the
// row).
template <class S, int HOLD> struct row_taker {
    float norm[HOLD][PER_LANE], x[HOLD][PER_LANE];

    static __device__ __forceinline__ uint32_t own(const deal &d) { return HOLD == 1 ? 1 : d.per_warp; }

    __device__ __forceinline__ void load(float to[HOLD][PER_LANE], const float *from, const deal &d, uint32_t base,
                                         uint32_t k) {
#pragma unroll
        for (uint32_t h = 0; h < HOLD; h++)
            if (HOLD == 1 || base + h < own(d)) load_whole(to[h], from, k + (base + h) * d.n_k);
    }
    __device__ __forceinline__ void prepare(const sl_cuda_product &t, const deal &d, uint32_t k) {
        for (int i = 0; i < HOLD * PER_LANE; i++) norm[i / PER_LANE][i % PER_LANE] = 1;
        if (t.source == SL_CUDA_NORM_QUANT && t.norm) load(norm, t.norm, d, 0, k);
    }
    __device__ __forceinline__ float scale_of(const sl_cuda_product &t, const deal &d, const float *in, uint32_t k,
                                              double *squares, int lane) {
        for (uint32_t base = 0; base < own(d); base += HOLD) {
            load(x, in, d, base, k);
#pragma unroll
            for (uint32_t h = 0; h < HOLD; h++) {
                const double sum = square_sum(x[h]);
                if (lane == 0 && base + h < own(d))
                    squares[k + (base + h) * d.n_k] = sum; // also of other groups' warps
            }
        }
        meet(d);
        return row_scale(squares, d.n_blk, t.inverse_n_col, t.eps);
    }
    __device__ __forceinline__ void take(uint8_t *to, const sl_cuda_product &t, const deal &d, uint32_t row, uint32_t k,
                                         double *squares, int lane) {
        const uint8_t *row_at = t.in + (uint64_t)row * t.in_stride;
        const float *in = (const float *)row_at;
        if (t.source == SL_CUDA_ACT16) {
            for (uint32_t at = 0; at < own(d); at++)
                (S{to + at * S::BYTES}).put(0, act_of(act16_of((uint8_t *)row_at, t.n_col), k + at * d.n_k), lane);
            return __syncwarp();
        }
        const bool normed = t.source == SL_CUDA_NORM_QUANT;
        const float scale = normed ? scale_of(t, d, in, k, squares, lane) : 1;
        for (uint32_t base = 0; base < own(d); base += HOLD) {
            if (!normed || own(d) > HOLD) load(x, in, d, base, k);
            if (normed && base > 0 && t.norm) load(norm, t.norm, d, base, k);
#pragma unroll
            for (uint32_t h = 0; h < HOLD; h++) {
                if (HOLD > 1 && base + h >= own(d)) break;
                if (normed) norm_blk(x[h], scale, norm[h]);
                (S{to + (base + h) * S::BYTES}).put(0, quantise(x[h]), lane);
            }
        }
        __syncwarp();
    }
};

// Blocks k, k + n_k .. (n_own) of n rows from `first` on, one after another at `to`; HOLD blocks of rows are under way at
// once. If they are normed the warp has one, w are its weights, and all warps call it at once.
template <class S, int HOLD>
static __device__ __forceinline__ void take_rows(uint8_t *to, const sl_cuda_product &t, const deal &d, uint32_t first,
                                                 int32_t n, uint32_t k, uint32_t n_own, const float w[PER_LANE],
                                                 double *squares, int lane) {
    const int n_item = (int)n_own * n; // rows of its first block, then those of the next
    const uint32_t step = (1 << 16) / n + 1;
    auto own_of = [&](int i) { return (uint32_t)i * step >> 16; }; // i / n
    auto blk_of = [&](int i) { return k + own_of(i) * d.n_k; };
    auto row_of = [&](int i) { return (uint32_t)i - own_of(i) * n; };
    auto row_at = [&](int i) { return (uint8_t *)t.in + (uint64_t)(first + row_of(i)) * t.in_stride; };
    auto put = [&](int i, const act_lane &q) { (S{to + own_of(i) * S::BYTES}).put((int)row_of(i), q, lane); };
    __syncwarp(); // what lies there has been read
    if (t.source == SL_CUDA_ACT16) {
        for (int base = 0; base < n_item; base += HOLD) {
            act_lane q[HOLD];
#pragma unroll
            for (int h = 0; h < HOLD; h++)
                if (base + h < n_item) q[h] = act_of(act16_of(row_at(base + h), t.n_col), blk_of(base + h));
#pragma unroll
            for (int h = 0; h < HOLD; h++)
                if (base + h < n_item) put(base + h, q[h]);
        }
        return __syncwarp();
    }
    const uint32_t n_blk = t.n_col / SL_ACT_BLK_LEN;
    const bool normed = t.source == SL_CUDA_NORM_QUANT;
    float x[HOLD][PER_LANE] = {};
    auto load = [&](int base) {
#pragma unroll
        for (int h = 0; h < HOLD; h++)
            if (base + h < n_item) load_whole(x[h], (const float *)row_at(base + h), blk_of(base + h));
    };
    if (normed) {
        for (int base = 0; base < n; base += HOLD) {
            load(base);
#pragma unroll
            for (int h = 0; h < HOLD; h++) {
                const double sum = square_sum(x[h]); // of rows that are not there too: side by side is what counts
                if (lane == 0 && base + h < n) squares[(base + h) * n_blk + k] = sum;
            }
        }
        meet(d);
    }
    for (int base = 0; base < n_item; base += HOLD) {
        if (!normed || n > HOLD) load(base);
        act_lane q[HOLD];
#pragma unroll
        for (int h = 0; h < HOLD; h++) {
            if (normed) norm_blk(x[h], row_scale(squares + (base + h) * n_blk, n_blk, t.inverse_n_col, t.eps), w);
            q[h] = quantise(x[h]);
        }
#pragma unroll
        for (int h = 0; h < HOLD; h++)
            if (base + h < n_item) put(base + h, q[h]);
    }
    __syncwarp();
}

#endif
