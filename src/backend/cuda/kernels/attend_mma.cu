// SPDX-License-Identifier: MIT
//
// ATTEND by tensor cores: K and V in f16, heads of 64, 128 or 256 columns, up to 8 query heads to a kv head. Parts and
// their merging are as in attend.cu; a thread block has all query heads of a kv head, so that K and V are read once. In a
// narrow program the parts of a row and kv head are a cluster of thread blocks, which send one another their results. A
// program of one row also rotates Q and K here and writes K and V (FUSED): then all K and V but the row's own were there
// before the step, and the first of them are under way before the kernel waits.
//
// The warps of a thread block share the positions of a part, 16 at a time in turn, each with a ring of tiles under way
// (cp.async). Wide programs leave rows of one sequence beside each other to attend_wide.cu.
#include "backend/cuda/kernels/attend_mma.cuh"
#include "backend/cuda/kernels/attend_wide.cuh"
#include "backend/cuda/kernels/inbox.cuh"
#include "backend/cuda/kernels/rope.cuh"

// N_STAGE: tiles of a warp under way or in use. Of several rows two leave room for a third thread block.
enum { N_STAGE = 3, N_STAGE_ROWS = 2, N_WARP = N_CHAIN, N_THREAD = N_WARP * WARP };

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
    if (sl_cuda_attend_wide_dim(DIM) && tile_goes_together(t, row - row % tile_rows(n_group))) return; // attend_wide.cu
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
    if (error == cudaSuccess) error = sl_cuda_attend_wide(t, stream);
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
