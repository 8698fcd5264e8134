// SPDX-License-Identifier: MIT
//
// Products of many rows with matrices in tiles (tile.h), on integer tensor cores: a thread block has 64 rows of the step and
// as many outputs as its 8 warps have tiles; each tile of weights is unpacked once for the 64 rows. A row has the bits
// that matmul_tiles.cu gives it: a tile's integers are exact in any order (packed.cuh), and the blocks of 256 columns are
// taken in the order of n_k warps there: blocks k, k + n_k .. of each k are one chain, the chains are added in rising order.
//
// Activations (ACT16) are staged for all warps, a block of columns ahead; weights come by a ring of each warp's own. The
// sums of the activations' groups, which minima and offsets are multiplied with, are cut into bytes on the way, so that
// tensor cores multiply them too.
#include "backend/cuda/kernels/matmul_wide.h"
#include "backend/cuda/kernels/tile_acts.cuh"

enum {
    N_WARP = 8,
    N_THREAD = N_WARP * WARP,
    N_EIGHT = 8, // rows, by eights as the integer product has them
    ROWS = N_EIGHT * N_COL,
    N_STAGE = 2,
    PITCH = SL_ACT_BLK_LEN + 32, // of a plane's row: no two rows of four meet in a bank
    N_SUM = SL_ACT_BLK_LEN / SL_ACT_SUM_LEN,
    SUM_BYTES = 3, // of a sum: 32 * 32639 < 2^23
};

// ---- sums of a tile ----------------------------------------------------------------------------------

// K types: of one output and row, exact. Of q4_K the odd groups, which are 16 times too large, come first.
template <class T> struct exact_sum {
    typename T::sums s;
    static __device__ __forceinline__ int order(int i) { return (int)T::N_PART == 2 ? (i * 2 + 1) % 5 : i; } // 1 3 0 2
    __device__ __forceinline__ void clear() { s.clear(); }
    __device__ __forceinline__ void begin() {}
    __device__ __forceinline__ void end(int i) {
        if ((int)T::N_PART == 2 && i == 1) T::close(s, 1);
    }
    __device__ __forceinline__ void add_act(int32_t act) { s.act = act; }
    __device__ __forceinline__ typename T::sums &now() { return s; }
    __device__ __forceinline__ const typename T::sums &all() const { return s; }
};

// Plain types: the floats of four parts, ((0) + (1)) + ((2) + (3)).
template <class T> struct float_sum {
    typename T::sums lower, upper, part;
    static __device__ __forceinline__ int order(int i) { return i; }
    __device__ __forceinline__ void clear() {}
    __device__ __forceinline__ void begin() { part.clear(); }
    __device__ __forceinline__ void end(int i) {
        if (i == 0) lower = part;
        if (i == 1) lower.join(part);
        if (i == 2) upper = part;
        if (i == 3) upper.join(part), lower.join(upper);
    }
    __device__ __forceinline__ void add_act(int32_t) {}
    __device__ __forceinline__ typename T::sums &now() { return part; }
    __device__ __forceinline__ const typename T::sums &all() const { return lower; }
};

// What this kernel needs of a type beside packed.cuh. factors: what the groups' sums are multiplied with, those of lane t
// of the product m16n8k16.
template <class T> struct wide_of : T {
    enum { SUMS = 1 };
    typedef exact_sum<T> sum;
    static __device__ __forceinline__ uint32_t factors(const uint8_t *head, int g, int t, int upper) {
        typename T::head h;
        h.load(head, g, t);
        if constexpr ((int)T::GROUP == 16) return h.scales[upper];
        else {
            const uint4 &row = h.row[upper];
            return t == 0 ? row.z & 0x3f3f3f3fu : t == 1 ? (row.w >> 4 & 0x0f0f0f0fu) | (row.z >> 2 & 0x30303030u) : 0;
        }
    }
};

template <class T> struct wide_plain : T {
    enum { SUMS = 0 };
    typedef float_sum<T> sum;
    static __device__ __forceinline__ uint32_t factors(const uint8_t *, int, int, int) { return 0; }
};
template <> struct wide_of<packed<SL_TYPE_Q8_0>> : wide_plain<packed<SL_TYPE_Q8_0>> {};
// Of q4_0 the offset is taken off the weights, which saves the sums: x (float) is of the same whole number.
template <> struct wide_of<packed<SL_TYPE_Q4_0>> : wide_plain<packed<SL_TYPE_Q4_0>> {
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        packed<SL_TYPE_Q4_0>::a(p, i, lane, out);
        for (int k = 0; k < 4; k++) out[k] = __vsub4(out[k], 0x08080808u);
    }
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint2 b) { product_s8(c, a, b); }
};

// With N tiles for a warp. Two have registers enough if chains have one block.
template <int TYPE, int N> struct wide : wide_of<packed<TYPE>> {
    enum { N_TILE = N, ONE = N > 1 };
};

// c (16, 8) += a (16, 16) b (16, 8)
static __device__ __forceinline__ void product_s8_16(int32_t c[4], uint32_t a0, uint32_t a1, uint32_t b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(b));
}

// ---- activations -------------------------------------------------------------------------------------

// A block of 256 columns of 64 rows in shared memory: bytes hi, lo (row, PITCH); bytes of the sums (byte, row, 16); d (row).
struct wide_acts {
    enum { LO = ROWS * PITCH, SUMS = 2 * LO, D = SUMS + SUM_BYTES * ROWS * N_SUM, BYTES = D + ROWS * 4 };
    uint8_t *p;
    __device__ __forceinline__ const uint8_t *bytes(int plane, int row) const { return p + plane * LO + row * PITCH; }
    __device__ __forceinline__ uint8_t *sums(int byte, int row) const { return p + SUMS + (byte * ROWS + row) * N_SUM; }
    __device__ __forceinline__ float *d() const { return (float *)(p + D); }
};

// A thread's part of a block under way to registers: four sums of a row, and its scale.
struct sums_under_way {
    int32_t sum[4];
    float d;
};

// Rows first .. of n; those that are not there are the last one again, so that all is defined.
static __device__ __forceinline__ void ask_acts(const wide_acts &to, sums_under_way *rest, const sl_cuda_product &t,
                                                uint32_t first, int32_t n, uint32_t blk) {
    enum { PIECES = 2 * SL_ACT_BLK_LEN / 16 };
    const uint32_t n_blk = t.n_col / SL_ACT_BLK_LEN;
    auto row_at = [&](int row) { return t.in + (uint64_t)(first + min(row, n - 1)) * t.in_stride; };
    const int piece = threadIdx.x % PIECES, plane = piece / (PIECES / 2), at = piece % (PIECES / 2) * 16;
    const uint32_t from = plane * t.n_col + blk * SL_ACT_BLK_LEN + at;
#pragma unroll
    for (int i = 0; i < ROWS * PIECES / N_THREAD; i++) {
        const int row = i * (N_THREAD / PIECES) + threadIdx.x / PIECES;
        copy_async(to.p + plane * wide_acts::LO + row * PITCH + at, row_at(row) + from);
    }
    copy_commit();
    const float *d = (const float *)(row_at(threadIdx.x / 4) + 2 * t.n_col);
    const int32_t *sum = (const int32_t *)(d + n_blk) + blk * N_SUM + threadIdx.x % 4 * 4;
    for (int i = 0; i < 4; i++) rest->sum[i] = sum[i];
    rest->d = d[blk];
}

// Sums of groups, their signed bytes apart, in the order that `factors` has.
template <int GROUP> static __device__ __forceinline__ void put_sums(const wide_acts &to, const sums_under_way &rest) {
    const int row = threadIdx.x / 4, quarter = threadIdx.x % 4;
    if (quarter == 0) to.d()[row] = rest.d;
    for (int i = 0; i < (GROUP == 16 ? 4 : 2); i++) {
        int32_t x = GROUP == 16 ? rest.sum[i] : rest.sum[2 * i] + rest.sum[2 * i + 1];
        const int at = GROUP == 16 ? 4 * i + quarter : 2 * quarter + i;
        for (int byte = 0; byte < SUM_BYTES; byte++) {
            to.sums(byte, row)[at] = (uint8_t)x;
            x = (x + 128) >> 8;
        }
    }
}

// ---- a thread block ----------------------------------------------------------------------------------

// Shared memory: rings, activations, results, barriers of the rings.
template <class T> struct wide_place {
    enum {
        OUT = N_WARP * T::N_TILE * SL_TILE_ROWS,
        OUT_PITCH = OUT + 4, // floats of a row of results: lanes that write at once meet no bank twice
        N_RING = N_WARP * T::N_TILE,
        ACTS = N_RING * N_STAGE * T::BYTES,
        RESULTS = ACTS + N_STAGE * wide_acts::BYTES,
        BARRIERS = RESULTS + ROWS * OUT_PITCH * 4,
        BYTES = BARRIERS + N_RING * N_STAGE * BARRIER_BYTES,
    };
};

// A warp's products of its tiles p with all rows; sum[tile][eight of rows][lane's four]: as the integer product has them.
template <class T>
static __device__ __forceinline__ void multiply_block(typename T::sum (&sum)[T::N_TILE][N_EIGHT][4],
                                                      const uint8_t *const p[T::N_TILE], const wide_acts &act,
                                                      int lane) {
    typedef typename T::sum S;
    const int g = lane / 4, k = lane % 4;
#pragma unroll
    for (int turn = 0; turn < 4; turn++) {
        const int j = S::order(turn);
        typename T::head h[T::N_TILE];
        for (int m = 0; m < T::N_TILE; m++) {
            h[m].load(p[m] + T::HEAD, g, j);
            for (int e = 0; e < N_EIGHT * 4; e++) sum[m][e / 4][e % 4].begin();
        }
#pragma unroll
        for (int i = 0; i < T::N_GROUP; i++) {
            uint32_t a[T::N_TILE][4];
            for (int m = 0; m < T::N_TILE; m++) T::a(p[m], 4 * i + j, lane, a[m]);
#pragma unroll
            for (int e = 0; e < N_EIGHT; e++) {
                const uint2 hi = factor<T>(act.bytes(0, e * N_COL + g), 4 * i + j, k);
                const uint2 lo = factor<T>(act.bytes(1, e * N_COL + g), 4 * i + j, k);
#pragma unroll
                for (int m = 0; m < T::N_TILE; m++) {
                    int32_t c[2][4] = {};
                    T::multiply(c[0], a[m], hi);
                    T::multiply(c[1], a[m], lo);
#pragma unroll
                    for (int at = 0; at < 4; at++)
                        T::add(sum[m][e][at].now(), h[m], at / 2, i, j, c[0][at], c[1][at], 0);
                }
            }
        }
        for (int m = 0; m < T::N_TILE; m++)
            for (int e = 0; e < N_EIGHT * 4; e++) sum[m][e / 4][e % 4].end(turn);
    }
    for (int m = 0; m < T::N_TILE && T::SUMS; m++) {
        const uint32_t lower = T::factors(p[m] + T::HEAD, g, k, 0), upper = T::factors(p[m] + T::HEAD, g, k, 1);
#pragma unroll
        for (int e = 0; e < N_EIGHT; e++) {
            int32_t c[SUM_BYTES][4] = {};
            for (int byte = 0; byte < SUM_BYTES; byte++)
                product_s8_16(c[byte], lower, upper, *(const uint32_t *)(act.sums(byte, e * N_COL + g) + 4 * k));
            for (int at = 0; at < 4; at++) sum[m][e][at].add_act(c[0][at] + 256 * c[1][at] + 65536 * c[2][at]);
        }
    }
}

// The next block of a chain: chain += d * value.
template <class T>
static __device__ __forceinline__ void add_block(float (&chain)[T::N_TILE][N_EIGHT][4],
                                                 const uint8_t *const p[T::N_TILE], const wide_acts &act, int lane) {
    typename T::sum sum[T::N_TILE][N_EIGHT][4];
    for (int i = 0; i < T::N_TILE * N_EIGHT * 4; i++) sum[i / (N_EIGHT * 4)][i / 4 % N_EIGHT][i % 4].clear();
    multiply_block<T>(sum, p, act, lane);
#pragma unroll
    for (int m = 0; m < T::N_TILE; m++) {
        typename T::head h;
        h.load(p[m] + T::HEAD, lane / 4, 0);
#pragma unroll
        for (int e = 0; e < N_EIGHT; e++) {
            const float2 d = *(const float2 *)(act.d() + e * N_COL + lane % 4 * 2);
#pragma unroll
            for (int at = 0; at < 4; at++)
                chain[m][e][at] =
                    __fmaf_rn(at % 2 ? d.y : d.x, T::value(h, at / 2, sum[m][e][at].all()), chain[m][e][at]);
        }
    }
}

// Results (row, OUT_PITCH) to memory, with bias and residual.
template <class T>
static __device__ __forceinline__ void store_block(const sl_cuda_matrix &m, const float *results, uint32_t first_out,
                                                   uint32_t first, int32_t n) {
    typedef wide_place<T> P;
    for (int i = threadIdx.x; i < n * P::OUT; i += N_THREAD) {
        const uint32_t row = i / P::OUT, at = i % P::OUT, o = first_out + at;
        if (o >= m.n_row) continue;
        float y = results[row * P::OUT_PITCH + at];
        if (m.bias) y += m.bias[o];
        if (m.add) y += ((const float *)(m.add + (first + row) * m.add_stride))[o];
        ((float *)(m.out + (first + row) * m.out_stride))[o] = y;
    }
}

// Outputs of the warps' tiles tile .. of a matrix, rows first .. of n.
template <class T>
static __device__ __forceinline__ void wide_block(uint8_t *shared, const sl_cuda_product &t,
                                                  const sl_cuda_matrix &matrix, uint32_t tile, uint32_t first,
                                                  int32_t n, uint32_t n_k) {
    typedef wide_place<T> P;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const uint32_t n_blk = t.n_col / SL_TILE_COLS, n_tile = (matrix.n_row + SL_TILE_ROWS - 1) / SL_TILE_ROWS;
    const uint32_t per_chain = T::ONE ? 1 : n_blk / n_k;
    float *results = (float *)(shared + P::RESULTS);
    tile_ring ring[T::N_TILE];
    const uint8_t *weight[T::N_TILE];
    for (int m = 0; m < T::N_TILE; m++) {
        const int at = warp * T::N_TILE + m;
        uint8_t *barriers = shared + P::BARRIERS + at * N_STAGE * BARRIER_BYTES;
        ring[m] = tile_ring(shared + at * N_STAGE * T::BYTES, barriers, T::BYTES, N_STAGE);
        tile_ring::init(barriers, N_STAGE, lane);
        weight[m] = matrix.weight + (uint64_t)min(tile + at, n_tile - 1) * n_blk * T::BYTES;
    }
    auto block_of = [&](uint32_t i) { return i / per_chain + i % per_chain * n_k; }; // the i-th in order
    auto ask = [&](int m, uint32_t slot, uint32_t i) {
        if (i < n_blk) ring[m].ask(slot, weight[m] + (uint64_t)block_of(i) * T::BYTES, T::BYTES, lane);
    };
    for (int m = 0; m < T::N_TILE; m++)
        for (int i = 0; i < N_STAGE; i++) ask(m, i, i);
    wide_acts act = {shared + P::ACTS}, next = {act.p + wide_acts::BYTES};
    sums_under_way rest;
    ask_acts(act, &rest, t, first, n, 0);
    float chain[T::N_TILE][N_EIGHT][4];
    for (uint32_t i = 0; i < n_blk; i++) {
        put_sums<T::GROUP>(act, rest);
        copy_wait<0>();
        __syncthreads(); // all have come, and nobody reads `next` any more
        if (i + 1 < n_blk) ask_acts(next, &rest, t, first, n, block_of(i + 1));
        const uint8_t *p[T::N_TILE];
        for (int m = 0; m < T::N_TILE; m++) p[m] = ring[m].wait();
        if (i % per_chain == 0)
            for (int e = 0; e < T::N_TILE * N_EIGHT * 4; e++) chain[e / (N_EIGHT * 4)][e / 4 % N_EIGHT][e % 4] = 0;
        add_block<T>(chain, p, act, lane);
        for (int m = 0; m < T::N_TILE; m++) ask(m, ring[m].release(), i + N_STAGE);
        if ((i + 1) % per_chain == 0)
#pragma unroll
            for (int e = 0; e < T::N_TILE * N_EIGHT * 4; e++) {
                const int m = e / (N_EIGHT * 4), eight = e / 4 % N_EIGHT, at = e % 4;
                const int row = eight * N_COL + lane % 4 * 2 + at % 2;
                float *to =
                    results + row * P::OUT_PITCH + (warp * T::N_TILE + m) * SL_TILE_ROWS + lane / 4 + at / 2 * 8;
                *to = i < per_chain ? chain[m][eight][at] : *to + chain[m][eight][at]; // the lane's own
            }
        const wide_acts other = act;
        act = next, next = other;
    }
    __syncthreads();
    store_block<T>(matrix, results, tile * SL_TILE_ROWS, first, n);
}

// Thread blocks of each matrix, one matrix after the other.
struct wide_deal {
    uint32_t end[3], n_k;
};

// grid (rows, outputs): thread blocks beside each other read the same weights.
template <int A_TYPE, int B_TYPE, int N>
static __global__ void __launch_bounds__(N_THREAD, 1)
    matmul_wide(const __grid_constant__ sl_cuda_product t, const __grid_constant__ wide_deal d) {
    typedef wide<A_TYPE, N> A;
    typedef wide<B_TYPE, A_TYPE == B_TYPE ? N : 1> B;
    extern __shared__ __align__(16) uint8_t shared[];
    const uint32_t first = blockIdx.x * ROWS;
    begin();
    const int32_t n = min(task_rows(t) - (int32_t)first, (int32_t)ROWS);
    if (n <= 0) return;
    const int i = blockIdx.y < d.end[0] ? 0 : blockIdx.y < d.end[1] ? 1 : 2;
    const sl_cuda_matrix &m = t.matrix[i];
    const uint32_t at = blockIdx.y - (i > 0 ? d.end[i - 1] : 0);
    if (A_TYPE == B_TYPE || m.type == A_TYPE) wide_block<A>(shared, t, m, at * (N_WARP * A::N_TILE), first, n, d.n_k);
    else wide_block<B>(shared, t, m, at * (N_WARP * B::N_TILE), first, n, d.n_k);
}

// ---- launchers -----------------------------------------------------------------------------------------

template <class T> static uint32_t n_block(uint32_t n_row) {
    const uint32_t each = wide_place<T>::OUT;
    return (n_row + each - 1) / each;
}

template <int A_TYPE, int B_TYPE, int N>
static cudaError_t launch_wide(const sl_cuda_product *t, uint32_t n_k, cudaStream_t stream) {
    typedef wide<A_TYPE, N> A;
    typedef wide<B_TYPE, A_TYPE == B_TYPE ? N : 1> B;
    const auto kernel = matmul_wide<A_TYPE, B_TYPE, N>;
    const int a = wide_place<A>::BYTES, b = wide_place<B>::BYTES, n_bytes = a > b ? a : b;
    wide_deal d = {};
    d.n_k = n_k;
    for (uint32_t i = 0; i < 3; i++) {
        d.end[i] = i > 0 ? d.end[i - 1] : 0;
        if (i >= t->n_matrix) continue;
        d.end[i] += t->matrix[i].type == A_TYPE ? n_block<A>(t->matrix[i].n_row) : n_block<B>(t->matrix[i].n_row);
    }
    cudaError_t error =
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, n_bytes);
    if (error != cudaSuccess) return error;
    const dim3 grid((t->n_row_max + ROWS - 1) / ROWS, d.end[2]);
    return launch(t, kernel, grid, N_THREAD, (size_t)n_bytes, stream, *t, d);
}

bool sl_cuda_matmul_wide_takes(const sl_cuda_product *t) {
    return t->n_row_max > SL_CUDA_NARROW && t->source == SL_CUDA_ACT16 && !t->glu && t->n_col % SL_TILE_COLS == 0 &&
           t->shared_bytes >= SL_CUDA_HOPPER_SHARED;
}

cudaError_t sl_cuda_matmul_wide(const sl_cuda_product *t, uint32_t n_k, cudaStream_t stream) {
    const uint8_t type = t->matrix[0].type;
    bool mixed = false;
    for (uint32_t i = 1; i < t->n_matrix; i++) mixed |= t->matrix[i].type != type;
    const bool one = n_k * SL_TILE_COLS == t->n_col;
    if (mixed && type == SL_TYPE_Q4_K && one) return launch_wide<SL_TYPE_Q4_K, SL_TYPE_Q6_K, 2>(t, n_k, stream);
    if (mixed && type == SL_TYPE_Q4_K) return launch_wide<SL_TYPE_Q4_K, SL_TYPE_Q6_K, 1>(t, n_k, stream);
    if (mixed && type == SL_TYPE_Q5_K) return launch_wide<SL_TYPE_Q5_K, SL_TYPE_Q6_K, 1>(t, n_k, stream);
    if (type == SL_TYPE_Q4_K && one) return launch_wide<SL_TYPE_Q4_K, SL_TYPE_Q4_K, 2>(t, n_k, stream);
#define LAUNCH(type) \
    case type: return launch_wide<type, type, 1>(t, n_k, stream)
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
