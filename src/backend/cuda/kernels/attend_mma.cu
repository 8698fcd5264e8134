// SPDX-License-Identifier: MIT
//
// ATTEND on tensor cores: f16 K and V, heads of 64, 128 or 256 columns, up to 8 query heads to a kv head. Parts and
// their merging are as in attend.cu; a thread block has all query heads of a kv head, so that K and V are read once.
//
// The warps of a thread block share the positions of a part, 16 at a time in turn, each with a ring of tiles under way
// (cp.async). The product m16n8k16 has heads as rows: row g is head g's upper half (x rounded to f16), row g + 8 what that
// left off (rounded to f16), so that queries and weights keep 22 bits at no cost. Columns of K are taken in an order in
// which a lane reads 16 bytes at once; queries are laid out alike. Scores are scaled by log2 e: weights are powers of 2.
#include "backend/cuda/kernels/kv.cuh"
#include "backend/cuda/kernels/quant.cuh"

enum { TILE = 16, MAX_GROUP = 8, N_STAGE = 3 };

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
static __device__ __forceinline__ void add_values(state<DIM> &s, const float w[4], const uint8_t *tile_at, int32_t first,
                                                  const part &p, int lane) {
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

// Tiles warp, warp + n_warp .. of a part.
template <int DIM>
static __device__ __forceinline__ void walk(const sl_cuda_task &t, state<DIM> &s, const query<DIM> &q, uint8_t *ring,
                                            uint32_t row, uint32_t head, const part &p, int lane, int warp, int n_warp) {
    const int32_t end = p.end * (SL_KV_BLK_LEN / TILE);
    int32_t at = p.first * (SL_KV_BLK_LEN / TILE) + warp, ahead = at;
    auto fetch = [&](int slot) {
        if (ahead < end) {
            const uint64_t blk = pool_block(t, row, ahead * TILE);
            const uint64_t off = ((uint64_t)head * SL_KV_BLK_LEN + ahead * TILE % SL_KV_BLK_LEN) * DIM * 2;
            tile<DIM>::fetch(ring + slot * tile<DIM>::BYTES, t.k + blk * t.k_blk_bytes + off,
                             t.v + blk * t.v_blk_bytes + off, lane);
            ahead += n_warp;
        }
        copy_commit();
    };
    for (int i = 0; i < N_STAGE - 1; i++) fetch(i);
    for (int slot = 0; at < end; at += n_warp, slot = (slot + 1) % N_STAGE) {
        copy_wait<N_STAGE - 2>();
        __syncwarp();
        fetch((slot + N_STAGE - 1) % N_STAGE);
        const uint8_t *tile_at = ring + slot * tile<DIM>::BYTES;
        float w[4];
        weigh<DIM>(t, s, w, q, tile_at, at * TILE, p, lane);
        add_values<DIM>(s, w, tile_at, at * TILE, p, lane);
    }
    copy_wait<0>();
    s.sum += __shfl_xor_sync(ALL, s.sum, 1);
    s.sum += __shfl_xor_sync(ALL, s.sum, 2);
}

// One head's numbers in memory: maximum, sum, weighted sum of V (DIM).
static __device__ __forceinline__ void merge(float *max, float *sum, float *acc, float next_max, float next_sum,
                                             float next_acc) {
    if (next_max == -CUDART_INF_F) return;
    const float top = fmaxf(*max, next_max), a = power(*max - top), b = power(next_max - top);
    *sum = *sum * a + next_sum * b;
    *acc = *acc * a + next_acc * b;
    *max = top;
}

// grid (kv head, part or 1, row). Shared memory: the rings, whose place the warps' results (warp, head, DIM + 2) take,
// then results of the parts so far (head, DIM + 2).
template <int DIM, int N_WARP, bool NARROW>
static __global__ void __launch_bounds__(N_WARP *WARP, 1) attend_mma(const __grid_constant__ sl_cuda_task t) {
    enum { STRIDE = DIM + 2 };
    extern __shared__ __align__(16) uint8_t shared[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, n_group = (int)(t.attr.attend.n_head / t.n_head_kv);
    const uint32_t head_kv = blockIdx.x, row = blockIdx.z, head = head_kv * n_group;
    float *of_warp = (float *)shared, *all = (float *)(shared + N_WARP * N_STAGE * tile<DIM>::BYTES);
    begin();
    if ((int32_t)row >= task_rows(t)) return;
    part p = part_of(t, row, NARROW ? (int32_t)blockIdx.y : 0);
    if (NARROW && p.first == p.end) return;
    query<DIM> q;
    q.load(in_row(t, 0, row) + (uint64_t)(head + lane / 4) * DIM, lane / 4 < n_group, lane % 4);
    for (int i = 0; i < (NARROW ? 1 : (int)t.n_part); i++) {
        if (!NARROW) p = part_of(t, row, i);
        if (p.first == p.end) break;
        state<DIM> s;
        s.clear();
        walk<DIM>(t, s, q, shared + warp * N_STAGE * tile<DIM>::BYTES, row, head_kv, p, lane, warp, N_WARP);
        __syncthreads();
        float *to = of_warp + (warp * n_group + lane / 4) * STRIDE;
        if (lane / 4 < n_group) {
            to[0] = s.max, to[1] = s.sum; // four lanes write the same
            for (int j = 0; j < DIM / 8; j++)
                for (int e = 0; e < 2; e++) to[2 + state<DIM>::column(j, lane % 4, e)] = s.acc[j][e] + s.acc[j][e + 2];
        }
        __syncthreads();
        for (int at = threadIdx.x; at < n_group * DIM; at += N_WARP * WARP) {
            const int h = at / DIM, column = at % DIM;
            float max = -CUDART_INF_F, sum = 0, acc = 0;
            for (int w = 0; w < N_WARP; w++) {
                const float *from = of_warp + (w * n_group + h) * STRIDE;
                merge(&max, &sum, &acc, from[0], from[1], from[2 + column]);
            }
            if (NARROW) {
                const uint64_t result = (uint64_t)(row * t.attr.attend.n_head + head + h) * t.n_part + blockIdx.y;
                float *out = t.partial + result * STRIDE;
                out[2 + column] = acc;
                if (column == 0) out[0] = max, out[1] = sum;
                continue;
            }
            float *so_far = all + at * 3; // a thread comes back to the same
            if (i > 0) {
                float m = so_far[0], l = so_far[1], x = so_far[2];
                merge(&m, &l, &x, max, sum, acc);
                max = m, sum = l, acc = x;
            }
            so_far[0] = max, so_far[1] = sum, so_far[2] = acc;
        }
        __syncthreads();
    }
    for (int at = threadIdx.x; !NARROW && at < n_group * DIM; at += N_WARP * WARP)
        out_row(t, row)[(uint64_t)head * DIM + at] = all[at * 3 + 2] / all[at * 3 + 1];
}

// grid (256 columns, row): a warp merges the parts, and quantises if QUANT is part of it.
template <int DIM> static __global__ void attend_merge(const __grid_constant__ sl_cuda_task t) {
    begin();
    const uint32_t row = blockIdx.y, lane = threadIdx.x, n_col = t.attr.attend.n_head * DIM;
    const uint32_t first = blockIdx.x * SL_ACT_BLK_LEN + lane * PER_LANE, head = first / DIM;
    if ((int32_t)row >= task_rows(t)) return;
    float x[PER_LANE] = {};
    if (first < n_col) {
        const float *from = t.partial + (uint64_t)(row * t.attr.attend.n_head + head) * t.n_part * (DIM + 2);
        float max = -CUDART_INF_F, sum = 0;
#pragma unroll 4
        for (int i = 0; i < (int)t.n_part; i++, from += DIM + 2) {
            const part p = part_of(t, row, i);
            if (p.first == p.end) break;
            float m = max, l = sum;
            for (int j = 0; j < PER_LANE; j++) {
                m = max, l = sum;
                merge(&m, &l, &x[j], from[0], from[1], from[2 + first % DIM + j]);
            }
            max = m, sum = l;
        }
        for (int j = 0; j < PER_LANE; j++) x[j] /= sum;
    }
    if (t.out_act16) return quant_blk(act16_of((uint8_t *)out_row(t, row), n_col), blockIdx.x, x);
    for (int j = 0; j < PER_LANE; j++)
        if (first + j < n_col) out_row(t, row)[first + j] = x[j];
}

// ---- launchers -----------------------------------------------------------------------------------

template <int DIM, int N_WARP, bool NARROW>
static cudaError_t launch_walk(const sl_cuda_task *t, dim3 grid, cudaStream_t stream) {
    size_t n_bytes = N_WARP * N_STAGE * tile<DIM>::BYTES;
    if (!NARROW) n_bytes += t->attr.attend.n_head / t->n_head_kv * DIM * 3 * sizeof(float);
    const void *kernel = (const void *)attend_mma<DIM, N_WARP, NARROW>;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n_bytes);
    if (error != cudaSuccess) return error;
    return launch(t, attend_mma<DIM, N_WARP, NARROW>, grid, N_WARP * WARP, n_bytes, stream, *t);
}

// The same warps for all widths, or bits would differ.
template <int DIM, int N_WARP> static cudaError_t launch_dim(const sl_cuda_task *t, cudaStream_t stream) {
    if (t->n_row_max > SL_CUDA_NARROW)
        return launch_walk<DIM, N_WARP, false>(t, dim3(t->n_head_kv, 1, t->n_row_max), stream);
    cudaError_t error = launch_walk<DIM, N_WARP, true>(t, dim3(t->n_head_kv, t->n_part, t->n_row_max), stream);
    if (error != cudaSuccess) return error;
    dim3 grid((t->attr.attend.n_head * DIM + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN, t->n_row_max);
    return launch(t, attend_merge<DIM>, grid, WARP, 0, stream, *t);
}

bool sl_cuda_attend_has_mma(const sl_cuda_task *t) {
    return t->type_k == SL_TYPE_F16 && t->type_v == SL_TYPE_F16 && t->head_dim == t->v_dim &&
           (t->head_dim == 64 || t->head_dim == 128 || t->head_dim == 256) &&
           t->attr.attend.n_head / t->n_head_kv <= MAX_GROUP && t->shared_bytes >= 225 * 1024;
}

cudaError_t sl_cuda_attend_mma(const sl_cuda_task *t, cudaStream_t stream) {
    if (t->head_dim == 64) return launch_dim<64, 8>(t, stream);
    if (t->head_dim == 128) return launch_dim<128, 8>(t, stream);
    return launch_dim<256, 4>(t, stream);
}
