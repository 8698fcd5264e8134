// SPDX-License-Identifier: MIT
//
// ATTEND of any shape, in float. A part (kv.cuh) gives a maximum, a sum and a weighted sum of V; the parts are merged in
// rising order. In a narrow program each part is a thread block's and a second kernel merges them; in a wide one a thread
// block walks all parts of its row, by the same operations in the same order.
//
// A warp has one query head: in scores a lane is a position, in sums a lane is every 32nd column.
#include "backend/cuda/kernels/kv.cuh"

enum { N_WARP = 4, N_THREAD = N_WARP * WARP, TILE = SL_KV_BLK_LEN };

// What a warp knows of its head after some positions. max = -inf: none yet.
template <int V> struct state {
    float max, sum, acc[V];
    __device__ void clear() {
        max = -CUDART_INF_F, sum = 0;
        for (int i = 0; i < V; i++) acc[i] = 0;
    }
    __device__ void merge(const state &next) {
        if (next.max == -CUDART_INF_F) return;
        float top = fmaxf(max, next.max), a = expf(max - top), b = expf(next.max - top);
        sum = sum * a + next.sum * b;
        for (int i = 0; i < V; i++) acc[i] = acc[i] * a + next.acc[i] * b;
        max = top;
    }
};

// keys (TILE, head_dim + 1): the tile's, in shared memory. All threads call it.
template <class K>
static __device__ void load_keys(const sl_cuda_task &t, float *keys, uint32_t row, uint32_t head, int32_t tile) {
    const K *k =
        (const K *)(t.k + pool_block(t, row, tile * TILE) * t.k_blk_bytes) + (uint64_t)head * TILE * t.head_dim;
    __syncthreads(); // the tile before has been read
    for (uint32_t i = threadIdx.x; i < TILE * t.head_dim; i += N_THREAD) keys[i + i / t.head_dim] = to_float(k[i]);
    __syncthreads();
}

// This lane's position: q . k, scaled and capped; -inf if the row does not see it.
static __device__ float score_of(const sl_cuda_task &t, const float *q, const float *keys, int32_t pos, const part &p) {
    if (pos < p.from || pos > p.last) return -CUDART_INF_F;
    const float *k = keys + (threadIdx.x % WARP) * (t.head_dim + 1);
    float s[4] = {0, 0, 0, 0};
    uint32_t d = 0;
    for (; d + 4 <= t.head_dim; d += 4)
        for (int i = 0; i < 4; i++) s[i] = __fmaf_rn(q[d + i], k[d + i], s[i]);
    for (; d < t.head_dim; d++) s[0] = __fmaf_rn(q[d], k[d], s[0]);
    float score = ((s[0] + s[1]) + (s[2] + s[3])) * t.attr.attend.scale, cap = t.attr.attend.softcap;
    return cap > 0 ? cap * tanhf(score / cap) : score;
}

template <class KV, int V>
static __device__ void walk_tile(const sl_cuda_task &t, state<V> &s, const float *q, const float *keys, const KV *v,
                                 int32_t tile, const part &p) {
    uint32_t lane = threadIdx.x % WARP;
    float score = score_of(t, q, keys, tile * TILE + (int32_t)lane, p);
    float top = fmaxf(s.max, warp_max(score)), old = expf(s.max - top), w = expf(score - top);
    s.sum = s.sum * old + warp_sum(w);
    s.max = top;
    for (int i = 0; i < V; i++) s.acc[i] *= old;
    int32_t begin = max(p.from - tile * TILE, 0), end = min(p.last - tile * TILE, TILE - 1) + 1;
    for (int32_t at = begin; at < end; at++) {
        float weight = __shfl_sync(ALL, w, at);
        for (int i = 0; i < V; i++) {
            uint32_t column = i * WARP + lane;
            if (column < t.v_dim) s.acc[i] = __fmaf_rn(weight, to_float(v[(uint32_t)at * t.v_dim + column]), s.acc[i]);
        }
    }
}

// grid (kv head x group of N_WARP query heads, part or 1, row)
template <class K, class T, int V, bool NARROW> static __global__ void attend(const __grid_constant__ sl_cuda_task t) {
    begin();
    extern __shared__ float shared[]; // keys (TILE, head_dim + 1), queries (N_WARP, head_dim)
    uint32_t row = blockIdx.z, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if ((int32_t)row >= task_rows(t)) return;
    uint32_t n_group = t.attr.attend.n_head / t.n_head_kv, n_part = (n_group + N_WARP - 1) / N_WARP;
    uint32_t head_kv = blockIdx.x / n_part, in_group = blockIdx.x % n_part * N_WARP + warp;
    uint32_t head = head_kv * n_group + in_group;
    bool mine = in_group < n_group;
    float *keys = shared, *q = shared + TILE * (t.head_dim + 1) + warp * t.head_dim;
    for (uint32_t i = lane; i < t.head_dim; i += WARP)
        q[i] = mine ? in_row(t, 0, row)[(uint64_t)head * t.head_dim + i] : 0.0f;
    state<V> all, s;
    all.clear();
    const int32_t begin_at = NARROW ? (int32_t)blockIdx.y : 0, end_at = NARROW ? begin_at + 1 : (int32_t)t.n_part;
    for (int32_t i = begin_at; i < end_at; i++) {
        part p = part_of(t, row, i);
        s.clear();
        for (int32_t tile = p.first; tile < p.end; tile++) {
            load_keys<K>(t, keys, row, head_kv, tile);
            const T *v = (const T *)(t.v + pool_block(t, row, tile * TILE) * t.v_blk_bytes);
            if (mine) walk_tile<T, V>(t, s, q, keys, v + (uint64_t)head_kv * TILE * t.v_dim, tile, p);
        }
        if (!NARROW) all.merge(s);
    }
    if (!mine) return;
    if (!NARROW) {
        float *out = out_row(t, row) + (uint64_t)head * t.v_dim;
        for (int i = 0; i < V; i++)
            if (i * WARP + lane < t.v_dim) out[i * WARP + lane] = all.acc[i] / all.sum;
        return;
    }
    const uint64_t at = (uint64_t)(row * t.attr.attend.n_head + head) * t.n_part + blockIdx.y;
    float *to = t.partial + at * (t.v_dim + 2);
    for (int i = 0; i < V; i++)
        if (i * WARP + lane < t.v_dim) to[2 + i * WARP + lane] = s.acc[i];
    if (lane == 0) to[0] = s.max, to[1] = s.sum;
}

// grid (head, row): a warp merges the parts of a head.
template <int V> static __global__ void attend_merge(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t head = blockIdx.x, row = blockIdx.y, lane = threadIdx.x;
    if ((int32_t)row >= task_rows(t)) return;
    const float *from = t.partial + (uint64_t)(row * t.attr.attend.n_head + head) * (int32_t)t.n_part * (t.v_dim + 2);
    state<V> all, s;
    all.clear();
    for (int part = 0; part < (int32_t)t.n_part; part++, from += t.v_dim + 2) {
        s.max = from[0], s.sum = from[1];
        for (int i = 0; i < V; i++) s.acc[i] = i * WARP + lane < t.v_dim ? from[2 + i * WARP + lane] : 0.0f;
        all.merge(s);
    }
    float *out = out_row(t, row) + (uint64_t)head * t.v_dim;
    for (int i = 0; i < V; i++)
        if (i * WARP + lane < t.v_dim) out[i * WARP + lane] = all.acc[i] / all.sum;
}

// ---- launchers -----------------------------------------------------------------------------------

template <class K, class T, int V> static cudaError_t launch_attend(const sl_cuda_task *t, cudaStream_t stream) {
    uint32_t n_head = t->attr.attend.n_head, n_group = n_head / t->n_head_kv;
    uint32_t n_x = t->n_head_kv * ((n_group + N_WARP - 1) / N_WARP);
    size_t n_bytes = (TILE * (t->head_dim + 1) + N_WARP * t->head_dim) * sizeof(float);
    if (t->n_row_max > SL_CUDA_NARROW)
        return launch(t, attend<K, T, V, false>, dim3(n_x, 1, t->n_row_max), N_THREAD, n_bytes, stream, *t);
    cudaError_t error =
        launch(t, attend<K, T, V, true>, dim3(n_x, t->n_part, t->n_row_max), N_THREAD, n_bytes, stream, *t);
    if (error != cudaSuccess) return error;
    return launch(t, attend_merge<V>, dim3(n_head, t->n_row_max), WARP, 0, stream, *t);
}

template <class K, class T> static cudaError_t choose_width(const sl_cuda_task *t, cudaStream_t stream) {
    if (t->v_dim <= 64) return launch_attend<K, T, 2>(t, stream);
    if (t->v_dim <= 128) return launch_attend<K, T, 4>(t, stream);
    return launch_attend<K, T, 8>(t, stream);
}

cudaError_t sl_cuda_attend(const sl_cuda_task *t, cudaStream_t stream) {
    bool k32 = t->type_k == SL_TYPE_F32, v32 = t->type_v == SL_TYPE_F32;
    if (k32 && v32) return choose_width<float, float>(t, stream);
    if (k32) return choose_width<float, uint16_t>(t, stream);
    if (v32) return choose_width<uint16_t, float>(t, stream);
    return choose_width<uint16_t, uint16_t>(t, stream);
}
