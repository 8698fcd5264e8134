// SPDX-License-Identifier: MIT
//
// Products of 1 to 8 rows with matrices in tiles (tile.h): the weights are read once for all rows, by integer tensor
// cores, at the pace of the memory. More rows are matmul_wide.cu's where its thread blocks have room, or done eight at a
// time. Up to three matrices that read the same activations share a launch, and what follows (bias, residual, gate) is
// done with the sums.
//
// The columns are split over the warps of a thread block: a warp keeps to its tiles of 256 columns, walks down the rows,
// and has the next tiles of weights under way (tile_ring.cuh) while it multiplies one; the first ones before it waits for
// the kernel in front. A warp quantises its own columns of the activations. At the end of a batch of rows the sums of
// the warps are added in rising order.
//
// One row (N = 1): the 8 columns of the integer product m16n8k32 hold 4 groups of 32 activations with their two bytes
// apart, so that a product gives the sum of each group of 16 outputs without scaling in between; lane (g, t) gets groups
// t and t + 4 of outputs g and g + 8. Two rows: 2 groups of each, and four: a group of each, so that lanes do no more than
// the rows need. Up to eight: the 8 columns are the rows, in two products, and each lane does for two of them what four
// lanes do for one. What is then made of the sums is the same (packed.cuh), so a row has the same bits in all.
#include "backend/cuda/kernels/matmul_wide.h"
#include "backend/cuda/kernels/tile_acts.cuh"
#include "backend/cuda/kernels/tile_deal.cuh"

enum {
    MAX_WARP = 16,
    BOUND_1 = 640,     // more threads than there are: fewer registers, which leaves room for attention beside them
    MIN_STAGE = 2,     // tiles of weights under way or in use, of a warp
    UNDER_WAY = 72000, // bytes of them that are enough, of a thread block; more are a rush on the memory
    OUTPUTS = SL_TILE_ROWS,
    SQUARE_BYTES = 1024, // sums of a norm's blocks: 128 of one row, or 16 of each of eight
    MAX_BATCH = 16,      // tiles of rows between two meetings of the warps
    MAX_BATCH_8 = 4,     // the same for several rows
};

// ---- one tile --------------------------------------------------------------------------------------

// R = 1, 2 or 4 rows. What a lane needs of their 256 columns. The product's columns 2 q and 2 q + 1 are the two bytes of row
// q % R; the 4 / R products of a turn go to slots of columns of their own (q / R), in all others their factor is zeros.
template <class T, int R> struct few {
    enum { N_SLOT = 4 / R, N_PART = T::N_PART > N_SLOT ? T::N_PART / N_SLOT : 1, N_SUM = R == 4 ? 2 : 1 };
    uint2 b[T::N_GROUP][4];
    int32_t act[T::N_GROUP][R];
    float d;

    template <class S> __device__ __forceinline__ void load(const S &a, int lane) {
        const int q = lane / 8, k = lane % 4;
#pragma unroll
        for (int i = 0; i < T::N_GROUP; i++)
#pragma unroll
            for (int turn = 0; turn < R; turn++) {
                const int first = 4 * i + N_SLOT * turn;
                const uint2 x = factor<T>(a.bytes(lane / 4 % 2, q % R), first + q / R, k);
                for (int slot = 0; slot < N_SLOT; slot++)
                    b[i][N_SLOT * turn + slot] = q / R == slot ? x : make_uint2(0, 0);
                act[i][turn] = T::ACT_SUM ? a.template sum<T::GROUP>(first + k / R)[k % R] : 0;
            }
        d = a.d()[k % R];
    }

    // sum: of row k % R; one of output g + 8 (k / R % 2), the same in lanes with the same output, or two of g and g + 8.
    __device__ __forceinline__ void add_tile(float sum[N_SUM], const uint8_t *p, int lane) const {
        const int g = lane / 4, k = lane % 4;
        typename T::sums part[N_PART][2];
        typename T::head h;
        for (int i = 0; i < 2 * N_PART; i++) part[i / 2][i % 2].clear();
#pragma unroll
        for (int turn = 0; turn < R; turn++) {
            int32_t c[T::N_GROUP][4] = {};
#pragma unroll
            for (int i = 0; i < T::N_GROUP; i++)
#pragma unroll
                for (int slot = 0; slot < N_SLOT; slot++) {
                    uint32_t a[4];
                    T::a(p, 4 * i + N_SLOT * turn + slot, lane, a);
                    T::multiply(c[i], a, b[i][N_SLOT * turn + slot]);
                }
            const int j = N_SLOT * turn + k / R;
            h.load(p + T::HEAD, g, j);
#pragma unroll
            for (int at = 0; at < 2 * T::N_GROUP; at++) {
                const int i = at / 2, upper = at % 2;
                T::add(part[turn % N_PART][upper], h, upper, i, j, c[i][2 * upper], c[i][2 * upper + 1], act[i][turn]);
            }
        }
        typename T::sums s[N_PART][N_SUM];
#pragma unroll
        for (int i = 0; i < N_PART; i++) {
            for (int upper = 0; upper < 2; upper++) T::close(part[i][upper], N_SLOT * i + k / R);
            if (R == 4) s[i][0] = part[i][0], s[i][N_SUM - 1] = part[i][1];
            else s[i][0] = T::sums::template all_lanes<R>(part[i][0], part[i][1], k);
        }
#pragma unroll
        for (int u = 0; u < N_SUM; u++) {
            for (int step = 1; step < N_PART; step *= 2) // (0 + 1) + (2 + 3)
                for (int i = 0; i < N_PART; i += 2 * step) s[i][u].join(s[i + step][u]);
            sum[u] = __fmaf_rn(d, T::value(h, R == 4 ? u : k / R % 2, s[0][u]), sum[u]);
        }
    }
    // to (16 outputs, R rows)
    static __device__ __forceinline__ void store(float *to, const float sum[N_SUM], int lane) {
        const int g = lane / 4, k = lane % 4;
#pragma unroll
        for (int u = 0; u < N_SUM; u++)
            if (R > 1 || k < 2) to[(g + 8 * (R == 4 ? u : k / R)) * R + k % R] = sum[u];
    }
};

// Up to eight rows. sum (2 outputs, 2 rows): of outputs g and g + 8, rows 2 k and 2 k + 1; rows that are not there hold what
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

// ---- results -----------------------------------------------------------------------------------------

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
    float each[MAX_WARP], y = part[0]; // all under way at once
#pragma unroll
    for (uint32_t k = 1; k < MAX_WARP; k++)
        if (k < n_k) each[k] = part[k * stride];
#pragma unroll
    for (uint32_t k = 1; k < MAX_WARP; k++)
        if (k < n_k) y += each[k];
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
    static __host__ __device__ uint32_t staged_bytes(const deal &d) {
        return (N <= MAX_FEW ? d.per_warp : 1) * S::BYTES;
    }
    static __host__ __device__ uint32_t warp_bytes(const deal &d) {
        return d.n_stage * (SLOT + BARRIER_BYTES) + staged_bytes(d) + d.batch * PART_BYTES;
    }
};

// HOLD: blocks of activations of one row that a warp has at once; 1: it has no more than one at all. Of one row, where
// copies are bulk, a warp more than those that multiply asks for the first tiles, which takes a while.
template <int A_TYPE, int B_TYPE, int N, int HOLD>
static __global__ void __launch_bounds__(N == 1 ? BOUND_1 : (MAX_WARP + (N <= MAX_FEW)) * WARP, 1)
    matmul_tiles(const __grid_constant__ sl_cuda_product t, const __grid_constant__ deal d) {
    typedef packed<A_TYPE> A;
    typedef packed<B_TYPE> B;
    typedef place<A_TYPE, B_TYPE, N> P;
    typedef typename P::S S;
    const bool FEW = N <= MAX_FEW, ASKER = FEW && SL_BULK_COPIES;
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
    row_taker<S, N == 1 ? HOLD : 1> taker;
    if (warp < n_warp) taker.prepare(t, d, k); // before the rush
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
    float added = first_residual<N>(t, d, 0, first, n);
    few<A, FEW ? N : 1> b;
    few<B, FEW ? N : 1> b2;
    if constexpr (FEW) {
        if constexpr (N == 1) taker.take(mine, t, d, first, k, squares, lane);
        else take_rows<S, HOLD == 1 ? N : HOLD>(mine, t, d, first, n, k, d.per_warp, taker.norm[0], squares, lane);
        if (ASKER) asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x) : "memory"); // the first tiles are under way
        if (HOLD == 1) b.load(S{mine}, lane);
        if (HOLD == 1 && A_TYPE != B_TYPE) b2.load(S{mine}, lane);
    } else if (d.per_warp == 1) take_rows<S, HOLD_MANY>(mine, t, d, first, n, k, 1, taker.norm[0], squares, lane);
    for (uint32_t base = 0; base * d.n_t < n_entry; base += d.batch) {
        if (base > 0) added = first_residual<N>(t, d, base * d.n_t, first, n);
        float *own = part + (group * d.n_k + k) * (OUTPUTS * N);
        const uint32_t step = n_warp * (OUTPUTS * N); // to the sums of the warp's next entry
        if constexpr (FEW) {
            for (uint32_t i = 0; i < d.batch && (base + i) * d.n_t + group < n_entry; i++, own += step) {
                const bool is_a = A_TYPE == B_TYPE || !(list[(base + i) * d.n_t + group] & 1);
                float sum[few<A, N>::N_SUM] = {};
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
                few<A, N>::store(own, sum, lane);
            }
        } else
            for (; w.base == base && w.entry_at(d) < n_entry; w.next(d, n_entry)) {
                if (d.per_warp > 1 && w.i == 0)
                    take_rows<S, HOLD_MANY>(mine, t, d, first, n, k + w.at * d.n_k, 1, taker.norm[0], squares, lane);
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

// false: not with that much shared memory.
template <class P> static bool fit(deal *d, uint32_t n_each, uint32_t most_batch, uint32_t n_bytes) {
    auto fits = [&](uint32_t batch, uint32_t n_stage) {
        deal e = *d;
        e.batch = batch, e.n_stage = n_stage;
        return d->n_k * d->n_t * P::warp_bytes(e) + SQUARE_BYTES + d->n_entry * sizeof(uint64_t) <= n_bytes;
    };
    d->batch = 2, d->n_stage = MIN_STAGE;
    if (!fits(d->batch, d->n_stage)) return false;
    while (d->n_k * d->n_t * d->n_stage * P::SLOT < UNDER_WAY && fits(d->batch, d->n_stage + 1)) d->n_stage++;
    while (d->batch < n_each && d->batch < most_batch && fits(d->batch + 2, d->n_stage)) d->batch += 2;
    return true;
}

// grid (eights of rows, units): thread blocks beside each other read the same weights. cudaErrorInvalidConfiguration: so
// few rows do not fit.
template <int A, int B, int N> static cudaError_t launch_tiles(const sl_cuda_product *t, deal d, cudaStream_t stream) {
    typedef place<A, B, N> P;
    const bool FEW = N <= MAX_FEW;
    const uint32_t in_turn = d.pair ? d.n_unit : (d.n_unit + d.n_t - 1) / d.n_t, n_block = min_u32(in_turn, t->n_sm);
    d.n_entry = (d.n_unit + n_block - 1) / n_block << d.pair;
    if (!fit<P>(&d, (d.n_entry + d.n_t - 1) / d.n_t, N == 1 ? MAX_BATCH : MAX_BATCH_8, t->shared_bytes))
        return cudaErrorInvalidConfiguration;
    const uint32_t n_warp = d.n_k * d.n_t;
    const uint32_t n_bytes = n_warp * P::warp_bytes(d) + SQUARE_BYTES + d.n_entry * sizeof(uint64_t);
    const auto kernel = !FEW || d.per_warp == 1 ? matmul_tiles<A, B, N, 1> : matmul_tiles < A, B, N,
               FEW ? HOLD_MANY : 1 > ;
    cudaError_t error = take_shared((const void *)kernel, n_bytes);
    if (error != cudaSuccess) return error;
    dim3 grid((t->n_row_max + N_COL - 1) / N_COL, n_block);
    const uint32_t n_asker = FEW && t->early; // where copies are bulk
    return launch(t, kernel, grid, (n_warp + n_asker) * WARP, n_bytes, stream, *t, d);
}

template <int A, int B> static cudaError_t launch_types(const sl_cuda_product *t, cudaStream_t stream) {
    const deal d = deal_of<place<A, B, N_COL>>(t);
    if (sl_cuda_matmul_wide_takes(t)) return sl_cuda_matmul_wide(t, d.n_k, stream);
    cudaError_t error = cudaErrorInvalidConfiguration;
    if (t->n_row_max == 1) return launch_tiles<A, B, 1>(t, d, stream);
    if (t->n_row_max <= 2) error = launch_tiles<A, B, 2>(t, d, stream);
    else if (t->n_row_max <= MAX_FEW) error = launch_tiles<A, B, MAX_FEW>(t, d, stream);
    return error == cudaErrorInvalidConfiguration ? launch_tiles<A, B, N_COL>(t, d, stream) : error;
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
