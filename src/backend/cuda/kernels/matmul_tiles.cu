// SPDX-License-Identifier: MIT
//
// Products of 1 to 8 rows with matrices in tiles (tile.h): the weights are read once for all rows, by integer tensor
// cores, at the pace of the memory. More rows are done eight at a time. Up to three matrices that read the same
// activations share a launch, and what follows (bias, residual, gate) is done with the sums.
//
// The columns are split over the warps of a thread block: a warp keeps to its tiles of 256 columns, walks down the rows,
// and has the next tiles of weights under way (tile_ring.cuh) while it multiplies one; the first ones before it waits for
// the kernel in front. A warp quantises its own columns of the activations. At the end of a batch of rows the sums of
// the warps are added in rising order.
//
// One row (N = 1): the 8 columns of the integer product m16n8k32 hold 4 groups of 32 activations with their two bytes
// apart, so that a product gives the sum of each group of 16 outputs without scaling in between; lane (g, t) gets groups
// t and t + 4 of outputs g and g + 8. Several rows: the 8 columns are the rows, and each lane does for two of them what
// four lanes do for one. What is then made of the sums is the same (packed.cuh), so a row has the same bits in either.
#include "backend/cuda/kernels/packed.cuh"
#include "backend/cuda/kernels/quant.cuh"
#include "backend/cuda/kernels/tile_ring.cuh"

#ifndef RING_BYTES
#define RING_BYTES 96000
#endif
enum {
    MAX_WARP = 16,
    BOUND_1 = 640,          // more threads than there are: fewer registers, which leaves room for attention beside them
    N_COL = 8,              // of the integer product
    MIN_STAGE = 2,          // tiles of weights under way or in use, of a warp
    UNDER_WAY = RING_BYTES, // bytes of them that are enough, of a thread block; more are a rush on the memory
    OUTPUTS = SL_TILE_ROWS,
    HOLD_MANY = 4,       // blocks of activations that a warp has in registers at once, if it has several
    SQUARE_BYTES = 1024, // sums of a norm's blocks: 128 of one row, or 16 of each of eight
    MAX_BATCH = 16,      // tiles of rows between two meetings of the warps
    MAX_BATCH_8 = 4,     // the same for several rows
};

// How matrices are dealt out: in a thread block n_k warps share the columns (each every n_k-th tile of them), and n_t such
// groups of warps take tiles of rows at once. The tiles of rows of all matrices, one matrix after the other, go to the
// thread blocks in turn; of gate and up the tiles of the same rows go together.
typedef struct deal {
    uint32_t n_k, n_t, n_blk, per_warp; // per_warp = n_blk / n_k
    uint32_t n_unit, pair;              // pair = 1: a unit is a tile of gate and one of up; else 0
    uint32_t end[3];                    // tiles of rows of matrices 0 .. i
    uint32_t batch, n_stage, n_entry;   // n_entry: of a thread block, at most
    uint32_t group_step;                // warp * group_step >> 16 = warp / n_k
} deal;

// A meeting of the warps that multiply.
static __device__ __forceinline__ void meet(const deal &d) {
    asm volatile("bar.sync 2, %0;" ::"r"(d.n_k * d.n_t * WARP) : "memory");
}

// ---- activations -----------------------------------------------------------------------------------

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

// Block `blk` of n rows from `first` on. If they are floats the warp has no other block, and all warps call it at once.
template <class S>
static __device__ __forceinline__ void take_rows(const S &to, const sl_cuda_product &t, const deal &d, uint32_t first,
                                                 int32_t n, uint32_t blk, double *squares, int lane) {
    __syncwarp(); // what lies there has been read
    if (t.source == SL_CUDA_ACT16) {
        for (int base = 0; base < n; base += HOLD_MANY) {
            act_lane q[HOLD_MANY];
#pragma unroll
            for (int h = 0; h < HOLD_MANY; h++)
                if (base + h < n)
                    q[h] = act_of(act16_of((uint8_t *)t.in + (first + base + h) * t.in_stride, t.n_col), blk);
#pragma unroll
            for (int h = 0; h < HOLD_MANY; h++)
                if (base + h < n) to.put(base + h, q[h], lane);
        }
        return __syncwarp();
    }
    const uint32_t n_blk = t.n_col / SL_ACT_BLK_LEN;
    const bool normed = t.source == SL_CUDA_NORM_QUANT;
    float x[HOLD_MANY][PER_LANE], w[PER_LANE] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (normed && t.norm) load_whole(w, t.norm, blk);
    auto load = [&](int base) {
#pragma unroll
        for (int h = 0; h < HOLD_MANY; h++)
            if (base + h < n) load_whole(x[h], (const float *)(t.in + (first + base + h) * t.in_stride), blk);
    };
    if (normed) {
        for (int base = 0; base < n; base += HOLD_MANY) {
            load(base);
#pragma unroll
            for (int h = 0; h < HOLD_MANY; h++) {
                const double sum = square_sum(x[h]);
                if (lane == 0 && base + h < n) squares[(base + h) * n_blk + blk] = sum;
            }
        }
        meet(d);
    }
    for (int base = 0; base < n; base += HOLD_MANY) {
        if (!normed || n > HOLD_MANY) load(base);
#pragma unroll
        for (int h = 0; h < HOLD_MANY; h++) {
            if (base + h >= n) break;
            if (normed) norm_blk(x[h], row_scale(squares + (base + h) * n_blk, n_blk, t.inverse_n_col, t.eps), w);
            to.put(base + h, quantise(x[h]), lane);
        }
    }
    __syncwarp();
}

// ---- one tile --------------------------------------------------------------------------------------

// N = 1. What a lane needs of the row's 256 columns; factors are zeros but in their columns of the product.
template <class T> struct one {
    uint2 b[T::N_GROUP][4];
    int32_t act[T::N_GROUP];
    float d;

    template <class S> __device__ __forceinline__ void load(const S &a, int lane) {
        const int g = lane / 4, k = lane % 4;
#pragma unroll
        for (int i = 0; i < T::N_GROUP; i++) {
            const uint2 x = factor<T>(a.bytes(g % 2, 0), 4 * i + g / 2, k);
            for (int j = 0; j < 4; j++) b[i][j] = g / 2 == j ? x : make_uint2(0, 0);
            act[i] = T::ACT_SUM ? a.template sum<T::GROUP>(4 * i + k)[0] : 0;
        }
        d = *a.d();
    }

    // sum: of output g + 8 (k % 2), the same in two lanes
    __device__ __forceinline__ void add_tile(float &sum, const uint8_t *p, int lane) const {
        const int g = lane / 4, k = lane % 4;
        int32_t c[T::N_GROUP][4] = {};
#pragma unroll
        for (int i = 0; i < T::N_GROUP; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) { // the product's columns are the four groups' two bytes
                uint32_t a[4];
                T::a(p, 4 * i + j, lane, a);
                T::multiply(c[i], a, b[i][j]);
            }
        typename T::head h;
        h.load(p + T::HEAD, g, k);
        typename T::sums s[2];
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            s[upper].clear();
#pragma unroll
            for (int i = 0; i < T::N_GROUP; i++)
                T::add(s[upper], h, upper, i, k, c[i][2 * upper], c[i][2 * upper + 1], act[i]);
            T::close(s[upper], k);
        }
        sum = __fmaf_rn(d, T::value(h, k % 2, T::sums::all_lanes(s[0], s[1], k)), sum);
    }
};

// Several rows. sum (2 outputs, 2 rows): of outputs g and g + 8, rows 2 k and 2 k + 1; rows that are not there hold what
// was there before.
template <class T, class S>
static __device__ __forceinline__ void add_tile_rows(float sum[2][2], const uint8_t *p, const S &act, int lane) {
    const int g = lane / 4, k = lane % 4;
    typename T::sums part[T::N_PART][2][2];
    for (int i = 0; i < T::N_PART * 4; i++) part[i / 4][i / 2 % 2][i % 2].clear();
    typename T::head h;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        h.load(p + T::HEAD, g, j); // what lane k = j has for one row
#pragma unroll
        for (int i = 0; i < T::N_GROUP; i++) {
            uint32_t a[4];
            T::a(p, 4 * i + j, lane, a);
            int32_t c[2][4] = {};
#pragma unroll
            for (int byte = 0; byte < 2; byte++) T::multiply(c[byte], a, factor<T>(act.bytes(byte, g), 4 * i + j, k));
            int2 s = make_int2(0, 0);
            if (T::ACT_SUM) s = *(const int2 *)(act.template sum<T::GROUP>(4 * i + j) + 2 * k);
#pragma unroll
            for (int at = 0; at < 4; at++) {
                const int upper = at / 2, r = at % 2;
                T::add(part[j % T::N_PART][upper][r], h, upper, i, j, c[0][at], c[1][at], r ? s.y : s.x);
            }
        }
    }
    const float2 d = *(const float2 *)(act.d() + 2 * k);
#pragma unroll
    for (int at = 0; at < 4; at++) {
        const int upper = at / 2, r = at % 2;
        for (int j = 0; j < T::N_PART; j++) T::close(part[j][upper][r], j);
        for (int step = 1; step < T::N_PART; step *= 2) // (0 + 1) + (2 + 3)
            for (int j = 0; j < T::N_PART; j += 2 * step) part[j][upper][r].join(part[j + step][upper][r]);
        sum[upper][r] = __fmaf_rn(r ? d.y : d.x, T::value(h, upper, part[0][upper][r]), sum[upper][r]);
    }
}

// ---- the walk --------------------------------------------------------------------------------------

template <class A, class B> struct slot {
    static const int BYTES = (int)A::BYTES > (int)B::BYTES ? (int)A::BYTES : (int)B::BYTES;
};

// Entry i of a thread block's list of tiles of rows.
struct entry {
    uint32_t matrix, tile;
    __device__ __forceinline__ entry(const deal &d, uint32_t i) {
        tile = (i >> d.pair) * gridDim.y + blockIdx.y, matrix = i & d.pair;
        if (d.pair) return;
        matrix = tile < d.end[0] ? 0 : tile < d.end[1] ? 1 : 2;
        if (matrix > 0) tile -= d.end[matrix - 1];
    }
};

static __device__ __forceinline__ bool has_entry(const deal &d, uint32_t i) {
    return (i >> d.pair) * gridDim.y + blockIdx.y < d.n_unit;
}

// The list as addresses of weights in shared memory, plus 1 where the type is B. All threads call it.
template <class A, class B>
static __device__ __forceinline__ void list_entries(uint64_t *list, const sl_cuda_product &t, const deal &d) {
    for (uint32_t i = threadIdx.x; i < d.n_entry; i += blockDim.x) {
        if (!has_entry(d, i)) continue;
        const entry e(d, i);
        const sl_cuda_matrix &m = t.matrix[e.matrix];
        const bool is_b = (int)A::TYPE != (int)B::TYPE && m.type == B::TYPE;
        list[i] = (uint64_t)(m.weight + (uint64_t)e.tile * d.n_blk * (is_b ? B::BYTES : A::BYTES)) + is_b;
    }
    __syncthreads();
}

// Where a warp is in its list, and at which of its tiles of columns. For one row it takes all columns of an entry before
// the next; for several the entries of a batch for a block of columns before the next columns.
template <int N> struct walk {
    uint32_t base, i, at, first; // base + i-th entry of this warp; first: its place among the groups of warps
    __device__ __forceinline__ uint32_t entry_at(const deal &d) const { return (base + i) * d.n_t + first; }
    __device__ __forceinline__ void next(const deal &d, uint32_t n_entry) {
        if (N == 1) {
            if (++at < d.per_warp) return;
            at = 0, i++;
            return;
        }
        if (++i < d.batch && entry_at(d) < n_entry) return;
        i = 0;
        if (++at < d.per_warp) return;
        at = 0, base += d.batch;
    }
};

// `w` is ahead of what is multiplied. false: there is nothing more to ask for.
template <class A, class B, int N>
static __device__ __forceinline__ bool ask(const tile_ring &ring, uint32_t slot, const uint64_t *list, uint32_t n_entry,
                                           const deal &d, walk<N> &w, uint32_t k, int lane) {
    const uint32_t i = w.entry_at(d);
    if (i >= n_entry) return false;
    const uint64_t e = list[i];
    const uint32_t n_bytes = (int)A::TYPE != (int)B::TYPE && e & 1 ? B::BYTES : A::BYTES;
    ring.ask(slot, (const uint8_t *)(e & ~(uint64_t)1) + (k + w.at * d.n_k) * n_bytes, n_bytes, lane);
    w.next(d, n_entry);
    return true;
}

// What item i of a batch is: its entry in the batch, output and row.
template <int N> struct item {
    uint32_t entry_at, at, row;
    __device__ __forceinline__ item(const deal &d, uint32_t i, uint32_t first_row)
        : entry_at(i / (OUTPUTS * N) << d.pair), at(i % (OUTPUTS * N)), row(first_row + i % N) {}
};

static __device__ __forceinline__ float residual(const sl_cuda_matrix &m, uint32_t o, uint32_t row) {
    return m.add ? ((const float *)(m.add + row * m.add_stride))[o] : 0.0f;
}

// The sums of all warps over the columns of an output, in order; then bias and residual.
static __device__ __forceinline__ float total(const sl_cuda_matrix &m, const float *part, uint32_t n_k, uint32_t stride,
                                              uint32_t o, float added) {
    float y = part[0];
    for (uint32_t k = 1; k < n_k; k++) y += part[k * stride];
    if (m.bias) y += m.bias[o];
    return m.add ? y + added : y;
}

// The residual of a thread's first item, asked for before it is needed.
template <int N>
static __device__ __forceinline__ float first_residual(const sl_cuda_product &t, const deal &d, uint32_t first,
                                                       uint32_t first_row, int32_t n_row) {
    const item<N> it(d, threadIdx.x, first_row);
    if (it.entry_at >= d.batch * d.n_t || !has_entry(d, first + it.entry_at)) return 0;
    const entry e(d, first + it.entry_at);
    const uint32_t o = e.tile * OUTPUTS + it.at / N;
    return (int32_t)(it.row - first_row) < n_row && o < t.matrix[e.matrix].n_row
               ? residual(t.matrix[e.matrix], o, it.row)
               : 0;
}

// Results of the entries first .. of a batch. part: (entry, n_k, 16 outputs, N rows)
template <int N>
static __device__ __forceinline__ void finish(const sl_cuda_product &t, const deal &d, const float *part,
                                              uint32_t first, uint32_t first_row, int32_t n_row, float added) {
    enum { PART = OUTPUTS * N };
    for (uint32_t i = threadIdx.x; i < (d.batch * d.n_t >> d.pair) * PART; i += d.n_k * d.n_t * WARP) {
        const item<N> it(d, i, first_row);
        if (!has_entry(d, first + it.entry_at) || (int32_t)(it.row - first_row) >= n_row) continue;
        const entry e(d, first + it.entry_at);
        const sl_cuda_matrix &m = t.matrix[e.matrix];
        const uint32_t o = e.tile * OUTPUTS + it.at / N;
        if (o >= m.n_row) continue;
        const float *from = part + it.entry_at * d.n_k * PART + it.at;
        float y = total(m, from, d.n_k, PART, o, i == threadIdx.x ? added : residual(m, o, it.row));
        if (t.glu) y = gate_up(y, total(t.matrix[1], from + d.n_k * PART, d.n_k, PART, o, 0), t.act);
        ((float *)(m.out + it.row * m.out_stride))[o] = y;
    }
}

// ---- the kernel ------------------------------------------------------------------------------------

// The matrices' types are A and B. Shared memory: rings, staged activations, sums, barriers, squares.
template <int A_TYPE, int B_TYPE, int N> struct place {
    typedef packed<A_TYPE> A;
    typedef packed<B_TYPE> B;
    typedef typename staged_for<A, B, N>::type S;
    enum { SLOT = slot<A, B>::BYTES, PART_BYTES = OUTPUTS * N * 4 };
    static __host__ __device__ uint32_t staged_bytes(const deal &d) { return (N == 1 ? d.per_warp : 1) * S::BYTES; }
    static __host__ __device__ uint32_t warp_bytes(const deal &d) {
        return d.n_stage * (SLOT + BARRIER_BYTES) + staged_bytes(d) + d.batch * PART_BYTES;
    }
};

// HOLD: blocks of activations of one row that a warp has at once; 1: it has no more than one at all. Of one row, where
// copies are bulk, a warp more than those that multiply asks for the first tiles, which takes a while.
template <int A_TYPE, int B_TYPE, int N, int HOLD>
static __global__ void __launch_bounds__(N == 1 ? BOUND_1 : MAX_WARP * WARP, 1)
    matmul_tiles(const __grid_constant__ sl_cuda_product t, const __grid_constant__ deal d) {
    typedef packed<A_TYPE> A;
    typedef packed<B_TYPE> B;
    typedef place<A_TYPE, B_TYPE, N> P;
    typedef typename P::S S;
    const bool ASKER = N == 1 && SL_BULK_COPIES;
    extern __shared__ __align__(16) uint8_t shared[];
    const int lane = threadIdx.x % WARP;
    const uint32_t warp = threadIdx.x / WARP, first = blockIdx.x * N_COL, n_warp = d.n_k * d.n_t;
    const uint32_t group = warp * d.group_step >> 16, k = warp - group * d.n_k;
    uint8_t *acts = shared + n_warp * d.n_stage * P::SLOT, *mine = acts + warp * P::staged_bytes(d);
    float *part = (float *)(acts + n_warp * P::staged_bytes(d));
    uint8_t *barriers = (uint8_t *)part + n_warp * d.batch * P::PART_BYTES;
    double *squares = (double *)(barriers + n_warp * d.n_stage * BARRIER_BYTES);
    uint64_t *list = (uint64_t *)((uint8_t *)squares + SQUARE_BYTES);
    if (gridDim.x > 1) { // a wide program: are there such rows at all?
        begin();
        if (task_rows(t) <= (int32_t)first) return;
    }
    row_taker<S, HOLD> taker;
    if (N == 1 && warp < n_warp) taker.prepare(t, d, k); // before the rush
    list_entries<A, B>(list, t, d);
    const uint32_t n_entry = ((d.n_unit - blockIdx.y + gridDim.y - 1) / gridDim.y) << d.pair;
    auto ring_of = [&](uint32_t w) {
        return tile_ring(shared + w * d.n_stage * P::SLOT, barriers + w * d.n_stage * BARRIER_BYTES, P::SLOT,
                         d.n_stage);
    };
    tile_ring ring = ring_of(warp);
    walk<N> w = {0, 0, 0, group}, ahead = w;
    uint32_t n_asked = 0;
    if (!ASKER) {
        tile_ring::init(barriers + warp * d.n_stage * BARRIER_BYTES, d.n_stage, lane);
        while (n_asked < d.n_stage && ask<A, B, N>(ring, n_asked, list, n_entry, d, ahead, k, lane)) n_asked++;
    } else if (warp == n_warp) { // asks for the first tiles of the others, lane i for warp i
        tile_ring::init(barriers, n_warp * d.n_stage, lane);
        ahead.first = lane * d.group_step >> 16;
        const tile_ring other = ring_of(lane);
        const uint32_t other_k = lane - ahead.first * d.n_k;
        while (lane < (int)n_warp && n_asked < d.n_stage &&
               ask<A, B, N>(other, n_asked, list, n_entry, d, ahead, other_k, 0))
            n_asked++;
        let_next();
        __syncwarp();
        asm volatile("bar.arrive 1, %0;" ::"r"(blockDim.x) : "memory");
        return;
    } else
        for (; n_asked < d.n_stage && ahead.entry_at(d) < n_entry; n_asked++) ahead.next(d, n_entry);
    let_next();
    wait(); // weights do not depend on the kernel before; all else does
    const int32_t n = N == 1 && !t.logit_rows ? 1 : min(task_rows(t) - (int32_t)first, (int32_t)N_COL);
    if (n <= 0) { // only for logits: nobody may leave while its tiles are under way
        if (ASKER) asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x) : "memory");
        for (; n_asked > 0; n_asked--) ring.wait(), ring.release();
        return;
    }
    one<A> b;
    one<B> b2;
    float added = first_residual<N>(t, d, 0, first, n);
    if constexpr (N == 1) {
        taker.take(mine, t, d, first, k, squares, lane);
        if (ASKER) asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x) : "memory"); // the first tiles are under way
        if (HOLD == 1) b.load(S{mine}, lane);
        if (HOLD == 1 && A_TYPE != B_TYPE) b2.load(S{mine}, lane);
    } else if (d.per_warp == 1) take_rows(S{mine}, t, d, first, n, k, squares, lane);
    for (uint32_t base = 0; base * d.n_t < n_entry; base += d.batch) {
        if (base > 0) added = first_residual<N>(t, d, base * d.n_t, first, n);
        float *own = part + (group * d.n_k + k) * (OUTPUTS * N);
        const uint32_t step = n_warp * (OUTPUTS * N); // to the sums of the warp's next entry
        if constexpr (N == 1) {
            for (uint32_t i = 0; i < d.batch && (base + i) * d.n_t + group < n_entry; i++, own += step) {
                const bool is_a = A_TYPE == B_TYPE || !(list[(base + i) * d.n_t + group] & 1);
                float sum = 0;
                for (uint32_t at = 0; at < (HOLD == 1 ? 1 : d.per_warp); at++) {
                    const uint8_t *p = ring.wait();
                    const S s{mine + at * S::BYTES};
                    if (is_a) {
                        if (HOLD > 1) b.load(s, lane);
                        b.add_tile(sum, p, lane);
                    } else {
                        if (HOLD > 1) b2.load(s, lane);
                        b2.add_tile(sum, p, lane);
                    }
                    ask<A, B, N>(ring, ring.release(), list, n_entry, d, ahead, k, lane);
                }
                if (lane % 4 < 2) own[lane / 4 + 8 * (lane % 2)] = sum;
            }
        } else
            for (; w.base == base && w.entry_at(d) < n_entry; w.next(d, n_entry)) {
                if (d.per_warp > 1 && w.i == 0) take_rows(S{mine}, t, d, first, n, k + w.at * d.n_k, squares, lane);
                float2 *to =
                    (float2 *)(own + w.i * step + lane / 4 * N_COL + lane % 4 * 2); // output g; g + 8: 8 rows on
                float sum[2][2] = {};
                for (int upper = 0; upper < 2 && w.at > 0; upper++) {
                    const float2 y = to[upper * 8 * N_COL / 2];
                    sum[upper][0] = y.x, sum[upper][1] = y.y;
                }
                const uint8_t *p = ring.wait();
                if (A_TYPE == B_TYPE || !(list[w.entry_at(d)] & 1)) add_tile_rows<A>(sum, p, S{mine}, lane);
                else add_tile_rows<B>(sum, p, S{mine}, lane);
                ask<A, B, N>(ring, ring.release(), list, n_entry, d, ahead, k, lane);
                for (int upper = 0; upper < 2; upper++)
                    to[upper * 8 * N_COL / 2] = make_float2(sum[upper][0], sum[upper][1]);
            }
        meet(d);
        finish<N>(t, d, part, base * d.n_t, first, n, added);
        if ((base + d.batch) * d.n_t < n_entry) meet(d);
    }
}

// ---- launchers -------------------------------------------------------------------------------------

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

// n_k is the same for one row and for several, or their bits would differ: P is that of several.
template <class P> static deal deal_of(const sl_cuda_product *t) {
    deal d = {};
    const uint32_t warp_bytes = MIN_STAGE * (P::SLOT + BARRIER_BYTES) + P::S::BYTES + 2 * P::PART_BYTES;
    uint32_t n_tile = 0;
    for (uint32_t i = 0; i < 3; i++) {
        if (i < t->n_matrix) n_tile += (t->matrix[i].n_row + OUTPUTS - 1) / OUTPUTS;
        d.end[i] = n_tile;
    }
    const uint32_t fixed = SQUARE_BYTES + (n_tile / t->n_sm + MAX_WARP) * (uint32_t)sizeof(uint64_t);
    const uint32_t most = min_u32(MAX_WARP, (t->shared_bytes - fixed) / warp_bytes);
    d.pair = t->glu;
    d.n_unit = n_tile >> d.pair;
    d.n_blk = t->n_col / SL_TILE_COLS;
    for (d.n_k = min_u32(d.n_blk, most); d.n_blk % d.n_k; d.n_k--) {}
    d.per_warp = d.n_blk / d.n_k;
    for (d.n_t = most / d.n_k; d.n_t > 1 && n_tile < d.n_t * t->n_sm; d.n_t--) {}
    d.group_step = (1 << 16) / d.n_k + 1; // exact for up to 16 warps
    return d;
}

// grid (eights of rows, units): thread blocks beside each other read the same weights.
template <int A, int B, int N> static cudaError_t launch_tiles(const sl_cuda_product *t, deal d, cudaStream_t stream) {
    typedef place<A, B, N> P;
    const uint32_t n_warp = d.n_k * d.n_t;
    const uint32_t in_turn = d.pair ? d.n_unit : (d.n_unit + d.n_t - 1) / d.n_t, n_block = min_u32(in_turn, t->n_sm);
    d.n_entry = (d.n_unit + n_block - 1) / n_block << d.pair;
    const uint32_t n_each = (d.n_entry + d.n_t - 1) / d.n_t, fixed = SQUARE_BYTES + d.n_entry * sizeof(uint64_t);
    auto fits = [&](uint32_t batch, uint32_t n_stage) {
        deal e = d;
        e.batch = batch, e.n_stage = n_stage;
        return n_warp * P::warp_bytes(e) + fixed <= t->shared_bytes;
    };
    d.batch = 2, d.n_stage = MIN_STAGE;
    while (n_warp * d.n_stage * P::SLOT < UNDER_WAY && fits(d.batch, d.n_stage + 1)) d.n_stage++;
    while (d.batch < n_each && d.batch < (N == 1 ? MAX_BATCH : MAX_BATCH_8) && fits(d.batch + 2, d.n_stage))
        d.batch += 2;
    const uint32_t n_bytes = n_warp * P::warp_bytes(d) + fixed;
    const auto kernel = N > 1 || d.per_warp == 1 ? matmul_tiles<A, B, N, 1> : matmul_tiles < A, B, N,
               N == 1 ? HOLD_MANY : 1 > ;
    cudaError_t error =
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n_bytes);
    if (error != cudaSuccess) return error;
    dim3 grid((t->n_row_max + N_COL - 1) / N_COL, n_block);
    const uint32_t n_asker = N == 1 && t->early; // where copies are bulk
    return launch(t, kernel, grid, (n_warp + n_asker) * WARP, n_bytes, stream, *t, d);
}

template <int A, int B> static cudaError_t launch_types(const sl_cuda_product *t, cudaStream_t stream) {
    const deal d = deal_of<place<A, B, N_COL>>(t);
    return t->n_row_max > 1 ? launch_tiles<A, B, N_COL>(t, d, stream) : launch_tiles<A, B, 1>(t, d, stream);
}

// Two types in one launch: those of the usual mixes.
static uint8_t other_type(uint8_t type) {
    return type == SL_TYPE_Q4_K || type == SL_TYPE_Q5_K ? (uint8_t)SL_TYPE_Q6_K : type;
}

bool sl_cuda_tiles_go_with(uint8_t type, uint8_t other) { return type == other || other_type(type) == other; }

cudaError_t sl_cuda_matmul_tiles(const sl_cuda_product *t, cudaStream_t stream) {
    uint8_t type = t->matrix[0].type;
    bool mixed = false;
    for (uint32_t i = 1; i < t->n_matrix; i++) mixed |= t->matrix[i].type != type;
    if (mixed && type == SL_TYPE_Q4_K) return launch_types<SL_TYPE_Q4_K, SL_TYPE_Q6_K>(t, stream);
    if (mixed && type == SL_TYPE_Q5_K) return launch_types<SL_TYPE_Q5_K, SL_TYPE_Q6_K>(t, stream);
#define LAUNCH(type) \
    case type: return launch_types<type, type>(t, stream)
    switch (type) {
        LAUNCH(SL_TYPE_Q4_0);
        LAUNCH(SL_TYPE_Q8_0);
        LAUNCH(SL_TYPE_Q4_K);
        LAUNCH(SL_TYPE_Q5_K);
        LAUNCH(SL_TYPE_Q6_K);
    default: return cudaErrorInvalidValue;
    }
#undef LAUNCH
}
