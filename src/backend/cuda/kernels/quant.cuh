// SPDX-License-Identifier: MIT
//
// ACT16 (plan/ir.h) from floats, 256 columns by a warp, eight of them a lane. The rounding is that of
// backend/cpu/kernels/quant_act.h: d = max |x| / 32639, q = rint(x * (1 / d)), hi and lo its bytes, the lower one signed;
// blocks too small for d are zeros, blocks that are not finite a NaN.
// The sum of squares of a norm is in double: of a lane's eight columns, then over the warp, then over the blocks; every
// kernel that norms and quantises takes this order.
#ifndef SL_BACKEND_CUDA_QUANT_CUH
#define SL_BACKEND_CUDA_QUANT_CUH

#include "backend/cuda/kernels/device.cuh"

static_assert(SL_ACT_BASE == 256, "hi and lo are bytes");
enum { ACT_MAX = 127 * SL_ACT_BASE + 127, PER_LANE = SL_ACT_BLK_LEN / WARP };

// A row of ACT16 as its parts.
struct act16 {
    int8_t *hi, *lo;
    float *d;
    int32_t *sum;
};

static __device__ __forceinline__ act16 act16_of(uint8_t *row, uint32_t n_col) {
    uint32_t n_blk = (n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN, n_pad = n_blk * SL_ACT_BLK_LEN;
    act16 a;
    a.hi = (int8_t *)row;
    a.lo = a.hi + n_pad;
    a.d = (float *)(a.lo + n_pad);
    a.sum = (int32_t *)(a.d + n_blk);
    return a;
}

// x (8): columns 8 lane .. of block b, zeros past the row.
static __device__ __forceinline__ void quant_blk(const act16 &a, uint32_t b, const float x[PER_LANE]) {
    uint32_t lane = threadIdx.x % WARP, top = 0;
    for (int i = 0; i < PER_LANE; i++) top = max(top, __float_as_uint(x[i]) & 0x7fffffffu);
    top = __reduce_max_sync(ALL, top);
    float d = __uint_as_float(top) / ACT_MAX, inverse = 1 / d;
    bool flat = top < __float_as_uint(ACT_MAX * 0x1p-126f), wild = top >= 0x7f800000u;
    uint32_t hi[2] = {0, 0}, lo[2] = {0, 0};
    int32_t sum = 0;
    for (int i = 0; i < PER_LANE; i++) {
        float q = flat || wild ? 0.0f : rintf(x[i] * inverse);
        int32_t whole = (int32_t)q;
        hi[i / 4] |= (uint32_t)(uint8_t)((whole + SL_ACT_BASE / 2) >> 8) << i % 4 * 8;
        lo[i / 4] |= (uint32_t)(uint8_t)whole << i % 4 * 8;
        sum += whole;
    }
    sum += __shfl_xor_sync(ALL, sum, 1); // two lanes have the 16 columns of a sum
    uint32_t at = b * SL_ACT_BLK_LEN + PER_LANE * lane;
    *(uint2 *)(a.hi + at) = make_uint2(hi[0], hi[1]);
    *(uint2 *)(a.lo + at) = make_uint2(lo[0], lo[1]);
    if (lane % 2 == 0) a.sum[at / SL_ACT_SUM_LEN] = sum;
    if (lane == 0) a.d[b] = wild ? CUDART_NAN_F : flat ? 0.0f : d;
}

// This lane's columns of block b of a row of n floats.
static __device__ __forceinline__ void load_blk(float x[PER_LANE], const float *in, uint32_t b, uint32_t n) {
    uint32_t at = b * SL_ACT_BLK_LEN + PER_LANE * (threadIdx.x % WARP);
    if (at + PER_LANE <= n) { // rows are 64-byte aligned
        const float4 lower = *(const float4 *)(in + at), upper = *(const float4 *)(in + at + 4);
        x[0] = lower.x, x[1] = lower.y, x[2] = lower.z, x[3] = lower.w;
        x[4] = upper.x, x[5] = upper.y, x[6] = upper.z, x[7] = upper.w;
    } else
        for (int i = 0; i < PER_LANE; i++) x[i] = at + i < n ? in[at + i] : 0.0f;
}

static __device__ __forceinline__ double square_sum(const float x[PER_LANE]) {
    double sum = 0;
    for (int i = 0; i < PER_LANE; i++) sum = __fma_rn((double)x[i], (double)x[i], sum);
    return warp_sum(sum);
}

// The thread block's warps quantise a row of n columns, after a norm if `normed`. part (blocks of the row): shared
// memory. The caller waits (__syncthreads) before it reads `to`.
static __device__ __forceinline__ void quant_row(const act16 &to, const float *in, uint32_t n, bool normed,
                                                 const float *weight, float eps, double *part) {
    uint32_t warp = threadIdx.x / WARP, n_warp = blockDim.x / WARP, n_blk = (n + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN;
    float x[PER_LANE], scale = 1;
    if (normed) {
        for (uint32_t b = warp; b < n_blk; b += n_warp) {
            load_blk(x, in, b, n);
            double sum = square_sum(x);
            if (threadIdx.x % WARP == 0) part[b] = sum;
        }
        __syncthreads();
        double sum = 0;
        for (uint32_t b = threadIdx.x % WARP; b < n_blk; b += WARP) sum += part[b];
        scale = (float)(1 / sqrt(warp_sum(sum) / n + (double)eps));
    }
    for (uint32_t b = warp; b < n_blk; b += n_warp) {
        load_blk(x, in, b, n);
        if (normed) {
            float w[PER_LANE] = {1, 1, 1, 1, 1, 1, 1, 1};
            if (weight) load_blk(w, weight, b, n);
            for (int i = 0; i < PER_LANE; i++) x[i] = x[i] * scale * w[i];
        }
        quant_blk(to, b, x);
    }
}

#endif
