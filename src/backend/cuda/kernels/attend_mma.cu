// SPDX-License-Identifier: MIT
//
// ATTEND by tensor cores: K and V in f16, heads of 64, 128 or 256 columns, up to 8 query heads to a kv head. Parts and
// their merging are as in attend.cu; a thread block has all query heads of a kv head, so that K and V are read once. In a
// narrow program the parts of a row and kv head are a cluster of thread blocks, which send one another their results. A
// program of one row also rotates Q and K here and writes K and V (FUSED): then all K and V but the row's own were there
// before the step, and the first of them are under way before the kernel waits.
//
// The warps of a thread block share the positions of a part, 16 at a time in turn, each with a ring of tiles under way
// (cp.async). The product m16n8k16 has heads as rows: row g is head g's upper half (x rounded to f16), row g + 8 what that
// left off (rounded to f16), so that queries and weights keep 22 bits at no cost. Columns of K are taken in an order in
// which a lane reads 16 bytes at once; queries are laid out alike. Scores are scaled by log2 e: weights are powers of 2.
#include "backend/cuda/kernels/inbox.cuh"
#include "backend/cuda/kernels/kv.cuh"
#include "backend/cuda/kernels/rope.cuh"

// N_STAGE: tiles of a warp under way or in use. Of several rows two leave room for a third thread block.
enum { TILE = 16, MAX_GROUP = 8, N_STAGE = 3, N_STAGE_ROWS = 2, N_WARP = 4, N_THREAD = N_WARP * WARP };

// c (16, 8) += a (16, 16) b (16, 8)
static __device__ __forceinline__ void product(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two floats as two halves, and what was left off.
static __device__ __forceinline__ void split(float x, float y, uint32_t *upper, uint32_t *rest) {
    __half2 h = __floats2half2_rn(x, y);
    float2 f = __half22float2(h);
    __half2 r = __floats2half2_rn(x - f.x, y - f.y);
    *upper = *(uint32_t *)&h, *rest = *(uint32_t *)&r;
}

static __device__ __forceinline__ float power(float x) { return exp2f(x); }

// A tile in shared memory: 16 rows of K, 16 rows of V. Pieces of 16 bytes are permuted within their row so that the
// reads below meet no bank twice.
template <int DIM> struct tile {
    enum { N_PIECE = DIM / 8, BYTES = 2 * TILE * DIM * 2 };
    static __device__ __forceinline__ int key(int row, int piece) {
        return (row * N_PIECE + (piece ^ (row & 1) << 2)) * 16;
    }
    static __device__ __forceinline__ int value(int row, int piece) {
        return TILE * DIM * 2 + (row * N_PIECE + (piece ^ (row >> 1 & 3) << 1)) * 16;
    }
    // k, v: the first of 16 rows
    static __device__ __forceinline__ void fetch(uint8_t *to, const uint8_t *k, const uint8_t *v, int lane) {
#pragma unroll
        for (int i = 0; i < TILE * N_PIECE / WARP; i++) {
            const int at = i * WARP + lane, row = at / N_PIECE, piece = at % N_PIECE;
            copy_async(to + key(row, piece), k + at * 16);
            copy_async(to + value(row, piece), v + at * 16);
        }
    }
};

// What a warp knows after some positions: lane (g, t) has head g; acc[j]: rows as in `product`, the columns of 8 that
// `column` names.
template <int DIM> struct state {
    float max, sum, acc[DIM / 8][4];
    __device__ __forceinline__ void clear() {
        max = -CUDART_INF_F, sum = 0;
        for (int i = 0; i < DIM / 8; i++)
            for (int j = 0; j < 4; j++) acc[i][j] = 0;
    }
    static __device__ __forceinline__ int column(int i, int t, int e) { return i / 8 * 64 + 16 * t + 8 * e + i % 8; }
};

template <int DIM> struct query {
    uint32_t a[DIM / 16][4];
    __device__ __forceinline__ void load(const float *q, bool mine, int t) {
#pragma unroll
        for (int i = 0; i < DIM / 32; i++) {
            float x[8] = {0, 0, 0, 0, 0, 0, 0, 0};
            if (mine) {
                const float *from = q + 32 * i + 8 * t;
                const float4 lower = *(const float4 *)from, upper = *(const float4 *)(from + 4);
                x[0] = lower.x, x[1] = lower.y, x[2] = lower.z, x[3] = lower.w;
                x[4] = upper.x, x[5] = upper.y, x[6] = upper.z, x[7] = upper.w;
            }
            for (int j = 0; j < 2; j++) {
                split(x[4 * j], x[4 * j + 1], &a[2 * i + j][0], &a[2 * i + j][1]);
                split(x[4 * j + 2], x[4 * j + 3], &a[2 * i + j][2], &a[2 * i + j][3]);
            }
        }
    }
};

// Weights of the tile's positions 2 t, 2 t + 1 (row 0) and 8 more (row 1) for head g; the state is scaled to them.
template <int DIM>
static __device__ __forceinline__ void weigh(const sl_cuda_task &t, state<DIM> &s, float w[4], const query<DIM> &q,
                                             const uint8_t *tile_at, int32_t first, const part &p, int lane) {
    const int g = lane / 4, k = lane % 4;
    float c[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < DIM / 32; i++) {
            const uint4 b = *(const uint4 *)(tile_at + tile<DIM>::key(8 * half + g, 4 * i + k));
            product(c[half], q.a[2 * i], b.x, b.y);
            product(c[half], q.a[2 * i + 1], b.z, b.w);
        }
    const float log2_e = 1.44269504f, cap = t.attr.attend.softcap;
    float top = s.max;
    for (int i = 0; i < 4; i++) {
        int32_t pos = first + i / 2 * 8 + 2 * k + i % 2;
        float x = (c[i / 2][i % 2] + c[i / 2][i % 2 + 2]) * t.attr.attend.scale;
        if (cap > 0) x = cap * tanhf(x / cap);
        w[i] = pos < p.from || pos > p.last ? -CUDART_INF_F : x * log2_e;
        top = fmaxf(top, w[i]);
    }
    top = fmaxf(top, __shfl_xor_sync(ALL, top, 1));
    top = fmaxf(top, __shfl_xor_sync(ALL, top, 2));
    const float base = top == -CUDART_INF_F ? 0.0f : top, old = power(s.max - base);
    s.sum *= old, s.max = top;
    for (int i = 0; i < 4; i++) w[i] = power(w[i] - base), s.sum += w[i]; // of this lane's positions
    if (__any_sync(ALL, old != 1))
        for (int i = 0; i < DIM / 8; i++)
            for (int j = 0; j < 4; j++) s.acc[i][j] *= old;
}

template <int DIM>
static __device__ __forceinline__ void add_values(state<DIM> &s, const float w[4], const uint8_t *tile_at,
                                                  int32_t first, const part &p, int lane) {
    const int g = lane / 4, k = lane % 4;
    uint32_t a[4];
    split(w[0], w[1], &a[0], &a[1]);
    split(w[2], w[3], &a[2], &a[3]);
    const bool edge = first < p.from || first + TILE - 1 > p.last;
#pragma unroll
    for (int i = 0; i < DIM / 64; i++) {
        uint32_t v[4][4];
        for (int r = 0; r < 4; r++) {
            const int row = 2 * k + r % 2 + r / 2 * 8;
            const uint4 x = *(const uint4 *)(tile_at + tile<DIM>::value(row, 8 * i + g));
            v[r][0] = x.x, v[r][1] = x.y, v[r][2] = x.z, v[r][3] = x.w;
            if (edge && (first + row < p.from || first + row > p.last)) // what lies there may not be a number
                v[r][0] = v[r][1] = v[r][2] = v[r][3] = 0;
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const uint32_t pick = j % 2 ? 0x7632 : 0x5410;
            product(s.acc[8 * i + j], a, __byte_perm(v[0][j / 2], v[1][j / 2], pick),
                    __byte_perm(v[2][j / 2], v[3][j / 2], pick));
        }
    }
}

// Tiles warp, warp + N_WARP .. of a part.
template <int DIM, int N_STAGE> struct walk {
    uint8_t *ring;
    int32_t at, ahead, end;

    __device__ __forceinline__ void fetch(const sl_cuda_task &t, uint32_t row, uint32_t head, int slot, int lane) {
        if (ahead < end) {
            const uint64_t blk = pool_block(t, row, ahead * TILE);
            const uint64_t off = ((uint64_t)head * SL_KV_BLK_LEN + ahead * TILE % SL_KV_BLK_LEN) * DIM * 2;
            tile<DIM>::fetch(ring + slot * tile<DIM>::BYTES, t.k + blk * t.k_blk_bytes + off,
                             t.v + blk * t.v_blk_bytes + off, lane);
            ahead += N_WARP;
        }
        copy_commit();
    }
    __device__ __forceinline__ void start(const sl_cuda_task &t, uint32_t row, uint32_t head, const part &p,
                                          uint8_t *to, int lane, int warp) {
        ring = to, at = ahead = p.first * (SL_KV_BLK_LEN / TILE) + warp, end = p.end * (SL_KV_BLK_LEN / TILE);
        for (int i = 0; i < N_STAGE - 1; i++) fetch(t, row, head, i, lane);
    }
    // own (K (DIM), V (DIM)): the row's own, which memory may not have yet; or NULL.
    __device__ __forceinline__ void run(const sl_cuda_task &t, state<DIM> &s, const query<DIM> &q, uint32_t row,
                                        uint32_t head, const part &p, const uint8_t *own, int lane) {
        for (int slot = 0; at < end; at += N_WARP, slot = (slot + 1) % N_STAGE) {
            copy_wait<N_STAGE - 2>();
            __syncwarp();
            fetch(t, row, head, (slot + N_STAGE - 1) % N_STAGE, lane);
            uint8_t *tile_at = ring + slot * tile<DIM>::BYTES;
            if (own && at == p.last / TILE) {
                for (int i = lane; i < tile<DIM>::N_PIECE; i += WARP) {
                    *(uint4 *)(tile_at + tile<DIM>::key(p.last % TILE, i)) = ((const uint4 *)own)[i];
                    *(uint4 *)(tile_at + tile<DIM>::value(p.last % TILE, i)) = ((const uint4 *)(own + 2 * DIM))[i];
                }
                __syncwarp();
            }
            float w[4];
            weigh<DIM>(t, s, w, q, tile_at, at * TILE, p, lane);
            add_values<DIM>(s, w, tile_at, at * TILE, p, lane);
        }
        copy_wait<0>();
        s.sum += __shfl_xor_sync(ALL, s.sum, 1);
        s.sum += __shfl_xor_sync(ALL, s.sum, 2);
    }
};

// One head's numbers in memory: maximum, sum, weighted sum of V (DIM).
static __device__ __forceinline__ void merge(float *max, float *sum, float *acc, float next_max, float next_sum,
                                             float next_acc) {
    const float top = fmaxf(*max, next_max), base = top == -CUDART_INF_F ? 0.0f : top;
    const float a = power(*max - base), b = power(next_max - base);
    *sum = *sum * a + next_sum * b;
    *acc = *acc * a + next_acc * b;
    *max = top;
}

// The warps' states of all heads of a group, merged: each(head, column, maximum, sum, acc) by some thread. of_warp (warp,
// head, DIM + 2): shared memory that nobody reads any more; nor may it be written before the next barrier.
template <int DIM, class F>
static __device__ __forceinline__ void merge_warps(const state<DIM> &s, float *of_warp, int n_group, int lane, int warp,
                                                   F each) {
    enum { STRIDE = DIM + 2 };
    __syncthreads();
    float *to = of_warp + (warp * n_group + lane / 4) * STRIDE;
    if (lane / 4 < n_group) {
        to[0] = s.max, to[1] = s.sum; // four lanes write the same
        for (int j = 0; j < DIM / 8; j++)
            for (int e = 0; e < 2; e++) to[2 + state<DIM>::column(j, lane % 4, e)] = s.acc[j][e] + s.acc[j][e + 2];
    }
    __syncthreads();
    for (int at = threadIdx.x; at < n_group * DIM; at += N_THREAD) {
        const int h = at / DIM, column = at % DIM;
        float max = -CUDART_INF_F, sum = 0, acc = 0;
        for (int w = 0; w < N_WARP; w++) {
            const float *from = of_warp + (w * n_group + h) * STRIDE;
            merge(&max, &sum, &acc, from[0], from[1], from[2 + column]);
        }
        each(h, column, max, sum, acc);
    }
}

// ---- narrow programs -------------------------------------------------------------------------------

// FUSED: queries of the group's heads, rotated, to q (head, DIM). `last`: the part has the row's own position; then its K,
// rotated, and V go as halves to own (K (DIM), V (DIM)) and into the pool. All loads are under way at once.
template <int DIM>
static __device__ __forceinline__ void take_row(const sl_cuda_attend_row &f, float *q, uint16_t *own, uint32_t head_kv,
                                                int32_t pos, bool last) {
    enum { N_LOAD = 3, N_PAIR = DIM / 2, N_VALUE = (DIM + N_THREAD - 1) / N_THREAD };
    const uint32_t n_group = f.attend.attr.attend.n_head / f.attend.n_head_kv, n = (n_group + last) * N_PAIR;
    const float *table = in_row(f.rope_q, 1, 0), *v = in_row(f.write, 1, 0) + head_kv * DIM;
    const float *q_in = in_row(f.rope_q, 0, 0) + head_kv * n_group * DIM,
                *k_in = in_row(f.rope_k, 0, 0) + head_kv * DIM;
    uint16_t *k_to = NULL, *v_to = NULL;
    float value[N_VALUE];
    if (last) {
        const uint64_t blk = pool_block(f.write, 0, pos);
        const uint64_t at = ((uint64_t)head_kv * SL_KV_BLK_LEN + pos % SL_KV_BLK_LEN) * DIM;
        k_to = (uint16_t *)(f.write.k + blk * f.write.k_blk_bytes) + at;
        v_to = (uint16_t *)(f.write.v + blk * f.write.v_blk_bytes) + at;
        for (int i = 0; i < N_VALUE; i++)
            if (i * N_THREAD + threadIdx.x < DIM) value[i] = v[i * N_THREAD + threadIdx.x];
    }
    for (uint32_t base = threadIdx.x; base < n; base += N_LOAD * N_THREAD) {
        rope_pair pair[N_LOAD];
#pragma unroll
        for (int i = 0; i < N_LOAD; i++) {
            const uint32_t p = base + i * N_THREAD, head = p / N_PAIR;
            if (p < n) pair[i].load(f.rope_q.attr.rope, head < n_group ? q_in + head * DIM : k_in, table, p % N_PAIR);
        }
#pragma unroll
        for (int i = 0; i < N_LOAD; i++) {
            const uint32_t p = base + i * N_THREAD, head = p / N_PAIR, at = pair[i].at, other = at + pair[i].step;
            if (p >= n) continue;
            pair[i].rotate();
            if (head < n_group) {
                q[head * DIM + at] = pair[i].x, q[head * DIM + other] = pair[i].y;
                continue;
            }
            own[at] = k_to[at] = from_float<uint16_t>(pair[i].x);
            own[other] = k_to[other] = from_float<uint16_t>(pair[i].y);
        }
    }
    for (int i = 0; i < N_VALUE && last; i++)
        if (i * N_THREAD + threadIdx.x < DIM)
            own[DIM + i * N_THREAD + threadIdx.x] = v_to[i * N_THREAD + threadIdx.x] = from_float<uint16_t>(value[i]);
}

// grid (part, kv head, row), the parts are a cluster. Shared memory: the rings, whose place the warps' results take; the
// inbox; of FUSED the queries (head, DIM) and K and V of the row itself.
template <int DIM, bool FUSED>
static __global__ void __launch_bounds__(N_THREAD, DIM < 256 ? 4 : 2)
    attend_parts(const __grid_constant__ sl_cuda_attend_row f) {
    extern __shared__ __align__(16) uint8_t shared[];
    const sl_cuda_task &t = f.attend;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, n_group = (int)(t.attr.attend.n_head / t.n_head_kv);
    const uint32_t rank = blockIdx.x, head_kv = blockIdx.y, row = blockIdx.z, head = head_kv * n_group;
    const uint32_t n_col = n_group * DIM, slice = n_col >> (31 - __clz((int)t.n_part));
    enum { STAGES = FUSED ? N_STAGE : N_STAGE_ROWS, RING = STAGES * tile<DIM>::BYTES };
    uint8_t *ring = shared + warp * RING, *rest = shared + N_WARP * RING;
    let_next();
    inbox in;
    in.init(rest, t.n_part, n_group, n_col);
    cluster_arrive(); // inboxes are ready
    float *queries = (float *)(rest + (inbox::bytes(t.n_part, n_group, n_col) + 15) / 16 * 16);
    uint8_t *own = (uint8_t *)(queries + n_col);
    walk<DIM, STAGES> w;
    part p;
    if (FUSED) {
        p = part_of(t, row, (int32_t)rank);
        w.start(t, row, head_kv, p, ring, lane, warp);
    }
    wait();
    if (!FUSED && (int32_t)row >= task_rows(t)) return cluster_wait();
    query<DIM> q;
    if (FUSED) {
        const bool last = p.first < p.end && p.end * SL_KV_BLK_LEN > p.last;
        take_row<DIM>(f, queries, (uint16_t *)own, head_kv, p.last, last);
        __syncthreads();
        q.load(queries + lane / 4 * DIM, lane / 4 < n_group, lane % 4);
        if (!last) own = NULL;
    } else {
        p = part_of(t, row, (int32_t)rank);
        w.start(t, row, head_kv, p, ring, lane, warp);
        q.load(in_row(t, 0, row) + (uint64_t)(head + lane / 4) * DIM, lane / 4 < n_group, lane % 4);
        own = NULL;
    }
    state<DIM> s;
    s.clear();
    w.run(t, s, q, row, head_kv, p, own, lane);
    cluster_wait();
    merge_warps<DIM>(s, (float *)shared, n_group, lane, warp, [&](int h, int column, float max, float sum, float acc) {
        const uint32_t at = h * DIM + column, to = at / slice;
        send(in.acc + rank * slice + at % slice, acc, in.barrier, to);
        if (column < (int)t.n_part) { // to each
            send(in.max + rank * n_group + h, max, in.barrier, column);
            send(in.total + rank * n_group + h, sum, in.barrier, column);
        }
    });
    in.wait();
    for (uint32_t c = threadIdx.x; c < slice; c += N_THREAD) {
        const uint32_t at = rank * slice + c, h = at / DIM;
        float max = -CUDART_INF_F, sum = 0, acc = 0;
        for (uint32_t i = 0; i < t.n_part; i++) // parts without positions have nothing to add
            merge(&max, &sum, &acc, in.max[i * n_group + h], in.total[i * n_group + h], in.acc[i * slice + c]);
        out_row(t, row)[(uint64_t)head * DIM + at] = acc / sum;
    }
}

// ---- wide programs ---------------------------------------------------------------------------------

// grid (kv head, row). Shared memory: the rings, whose place the warps' results take, then results of the parts so far
// (head, DIM, 3).
template <int DIM>
static __global__ void __launch_bounds__(N_THREAD) attend_rows(const __grid_constant__ sl_cuda_task t) {
    extern __shared__ __align__(16) uint8_t shared[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, n_group = (int)(t.attr.attend.n_head / t.n_head_kv);
    const uint32_t head_kv = blockIdx.x, row = blockIdx.y, head = head_kv * n_group;
    float *all = (float *)(shared + N_WARP * N_STAGE * tile<DIM>::BYTES);
    begin();
    if ((int32_t)row >= task_rows(t)) return;
    query<DIM> q;
    q.load(in_row(t, 0, row) + (uint64_t)(head + lane / 4) * DIM, lane / 4 < n_group, lane % 4);
    for (int i = 0; i < (int)t.n_part; i++) {
        const part p = part_of(t, row, i);
        if (p.first == p.end) break;
        walk<DIM, N_STAGE> w;
        w.start(t, row, head_kv, p, shared + warp * N_STAGE * tile<DIM>::BYTES, lane, warp);
        state<DIM> s;
        s.clear();
        w.run(t, s, q, row, head_kv, p, NULL, lane);
        merge_warps<DIM>(s, (float *)shared, n_group, lane, warp,
                         [&](int h, int column, float max, float sum, float acc) {
                             float *so_far = all + (h * DIM + column) * 3; // a thread comes back to the same
                             if (i > 0) {
                                 float m = so_far[0], l = so_far[1], x = so_far[2];
                                 merge(&m, &l, &x, max, sum, acc);
                                 max = m, sum = l, acc = x;
                             }
                             so_far[0] = max, so_far[1] = sum, so_far[2] = acc;
                         });
        __syncthreads();
    }
    for (int at = threadIdx.x; at < n_group * DIM; at += N_THREAD)
        out_row(t, row)[(uint64_t)head * DIM + at] = all[at * 3 + 2] / all[at * 3 + 1];
}

// ---- launchers -----------------------------------------------------------------------------------

template <int DIM> static uint32_t parts_bytes(uint32_t n_part, uint32_t n_group, bool fused) {
    return N_WARP * (fused ? N_STAGE : N_STAGE_ROWS) * tile<DIM>::BYTES +
           (inbox::bytes(n_part, n_group, n_group * DIM) + 15) / 16 * 16 +
           (n_group + 1) * DIM * (uint32_t)sizeof(float);
}

template <int DIM, bool FUSED> static cudaError_t launch_parts(const sl_cuda_attend_row *f, cudaStream_t stream) {
    const sl_cuda_task *t = &f->attend;
    const uint32_t n_bytes = parts_bytes<DIM>(t->n_part, t->attr.attend.n_head / t->n_head_kv, FUSED);
    const void *kernel = (const void *)attend_parts<DIM, FUSED>;
    cudaError_t error = take_shared(kernel, n_bytes);
    if (error == cudaSuccess) error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess) return error;
    return launch_cluster(t, attend_parts<DIM, FUSED>, t->n_part, dim3(t->n_part, t->n_head_kv, t->n_row_max), N_THREAD,
                          n_bytes, stream, *f);
}

template <int DIM> static cudaError_t launch_rows(const sl_cuda_task *t, cudaStream_t stream) {
    const uint32_t n_bytes =
        N_WARP * N_STAGE * tile<DIM>::BYTES + t->attr.attend.n_head / t->n_head_kv * DIM * 3 * (uint32_t)sizeof(float);
    cudaError_t error =
        cudaFuncSetAttribute((const void *)attend_rows<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n_bytes);
    if (error != cudaSuccess) return error;
    return launch(t, attend_rows<DIM>, dim3(t->n_head_kv, t->n_row_max), N_THREAD, n_bytes, stream, *t);
}

bool sl_cuda_attend_has_mma(const sl_cuda_task *t) {
    return t->type_k == SL_TYPE_F16 && t->type_v == SL_TYPE_F16 && t->head_dim == t->v_dim &&
           (t->head_dim == 64 || t->head_dim == 128 || t->head_dim == 256) &&
           t->attr.attend.n_head / t->n_head_kv <= MAX_GROUP && t->shared_bytes >= SL_CUDA_HOPPER_SHARED && t->early;
}

cudaError_t sl_cuda_rope_attend(const sl_cuda_attend_row *f, cudaStream_t stream) {
    if (f->attend.head_dim == 64) return launch_parts<64, true>(f, stream);
    if (f->attend.head_dim == 128) return launch_parts<128, true>(f, stream);
    return launch_parts<256, true>(f, stream);
}

template <int DIM> static cudaError_t launch_dim(const sl_cuda_task *t, cudaStream_t stream) {
    if (t->n_row_max > SL_CUDA_NARROW) return launch_rows<DIM>(t, stream);
    sl_cuda_attend_row f = {};
    f.attend = *t;
    return launch_parts<DIM, false>(&f, stream);
}

cudaError_t sl_cuda_attend_mma(const sl_cuda_task *t, cudaStream_t stream) {
    if (t->head_dim == 64) return launch_dim<64>(t, stream);
    if (t->head_dim == 128) return launch_dim<128>(t, stream);
    return launch_dim<256>(t, stream);
}

uint32_t sl_cuda_attend_most_parts(void) {
    enum { DIM = 128, WIDE = 16, PORTABLE = 8, N_HEAD_KV = 8 };
    const void *kernel = (const void *)attend_parts<DIM, true>;
    const uint32_t n_bytes = parts_bytes<DIM>(WIDE, MAX_GROUP, true);
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = WIDE, cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(WIDE, N_HEAD_KV), config.blockDim = N_THREAD, config.dynamicSmemBytes = n_bytes;
    config.attrs = &cluster, config.numAttrs = 1;
    int n = 0;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n_bytes) != cudaSuccess ||
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess ||
        cudaOccupancyMaxActiveClusters(&n, kernel, &config) != cudaSuccess)
        (void)cudaGetLastError();
    return n >= N_HEAD_KV ? WIDE : PORTABLE;
}
