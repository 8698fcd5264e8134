// SPDX-License-Identifier: MIT
//
// ATTEND of many rows of one sequence in a wide program: a thread block has all query heads of a kv head for a tile of rows
// beside each other (attend_wide.cuh), so that K and V are read once for the tile. A warp has 8 queries, and takes for them
// what several warps and thread blocks take in attend_mma.cu: each part's chains one after the other, added up in the
// same order, so that a row has the same bits. Positions that a row does not see, but others of its tile do, have weight 0
// in it; K and V there are numbers, for this step has written them.
#include "backend/cuda/kernels/attend_wide.cuh"

enum { N_THREAD = WIDE_WARPS * WARP, N_STAGE = 6 };

// Tiles in the order in which they are taken: part by part, chain by chain.
struct tile_order {
    int32_t part, chain, at;  // part == n_part: there are no more
    int32_t begin, each, end; // blocks
    int32_t n_part;

    __device__ __forceinline__ void start(const sl_cuda_task &t, uint32_t last_row) {
        const struct part p = part_of(t, last_row, 0);
        begin = p.first, each = p.each, end = p.last / SL_KV_BLK_LEN + 1, n_part = (int32_t)t.n_part;
        part = chain = 0, at = begin * (SL_KV_BLK_LEN / TILE); // a part has at least a block, or there is none
    }
    __device__ __forceinline__ bool more() const { return part < n_part; }
    __device__ __forceinline__ void next() {
        at += N_CHAIN;
        while (at >= min(begin + (part + 1) * each, end) * (SL_KV_BLK_LEN / TILE)) {
            if (++chain == N_CHAIN) chain = 0, part++;
            if (part == n_part || begin + part * each >= end) {
                part = n_part;
                return;
            }
            at = (begin + part * each) * (SL_KV_BLK_LEN / TILE) + chain;
        }
    }
};

// Of a lane: the sums so far of its query's columns (state::column).
template <int DIM> struct so_far {
    float max, sum, acc[DIM / 8][2];
    __device__ __forceinline__ void clear() {
        max = -CUDART_INF_F, sum = 0;
        for (int i = 0; i < DIM / 8 * 2; i++) acc[i / 2][i % 2] = 0;
    }
    // x (j, e): columns of the next one
    template <class F> __device__ __forceinline__ void add(float next_max, float next_sum, F x) {
        float m = max, l = sum;
#pragma unroll
        for (int i = 0; i < DIM / 8 * 2; i++) {
            m = max, l = sum;
            merge(&m, &l, &acc[i / 2][i % 2], next_max, next_sum, x(i / 2, i % 2));
        }
        max = m, sum = l;
    }
};

// grid (kv head, tile of rows)
template <int DIM>
static __global__ void __launch_bounds__(N_THREAD, 1) attend_wide(const __grid_constant__ sl_cuda_task t) {
    extern __shared__ __align__(16) uint8_t ring[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, g = lane / 4, k = lane % 4;
    const uint32_t n_group = t.attr.attend.n_head / t.n_head_kv, rows = tile_rows(n_group), first = blockIdx.y * rows;
    begin();
    if ((int32_t)first >= task_rows(t) || !tile_goes_together(t, first)) return;
    const uint32_t n = min((uint32_t)task_rows(t) - first, rows), in_tile = warp * warp_rows(n_group) + g / n_group;
    const bool mine = g < (int)(warp_rows(n_group) * n_group) && in_tile < n;
    const uint32_t row = first + min(in_tile, n - 1), head = blockIdx.x * n_group + g % n_group;
    const part seen = part_of(t, row, 0);
    part any = part_of(t, first, 0); // positions that some row sees
    any.last = t.step.pos[first + n - 1];
    tile_order now, ahead;
    now.start(t, first + n - 1);
    ahead = now;
    auto fetch = [&](int slot) {
        enum { N_PIECE = tile<DIM>::N_PIECE };
        const int at = threadIdx.x, row_at = at / N_PIECE, piece = at % N_PIECE;
        if (ahead.more()) {
            const uint64_t blk = pool_block(t, first, ahead.at * TILE);
            const uint64_t off = ((uint64_t)blockIdx.x * SL_KV_BLK_LEN + ahead.at * TILE % SL_KV_BLK_LEN) * DIM * 2;
            uint8_t *to = ring + slot * tile<DIM>::BYTES;
            if (at < TILE * N_PIECE) {
                copy_async(to + tile<DIM>::key(row_at, piece), t.k + blk * t.k_blk_bytes + off + at * 16);
                copy_async(to + tile<DIM>::value(row_at, piece), t.v + blk * t.v_blk_bytes + off + at * 16);
            }
            ahead.next();
        }
        copy_commit();
    };
    for (int i = 0; i < N_STAGE - 1; i++) fetch(i);
    query<DIM> q;
    q.load(in_row(t, 0, row) + (uint64_t)head * DIM, mine, k);
    state<DIM> s;
    so_far<DIM> of_part, all;
    s.clear(), of_part.clear(), all.clear();
    for (int slot = 0; now.more(); slot = (slot + 1) % N_STAGE) {
        copy_wait<N_STAGE - 2>();
        __syncthreads();
        fetch((slot + N_STAGE - 1) % N_STAGE);
        float w[4];
        weigh<DIM>(t, s, w, q, ring + slot * tile<DIM>::BYTES, now.at * TILE, seen, lane);
        add_values<DIM>(s, w, ring + slot * tile<DIM>::BYTES, now.at * TILE, any, lane);
        const tile_order was = now;
        now.next();
        if (now.part == was.part && now.chain == was.chain) continue;
        s.sum += __shfl_xor_sync(ALL, s.sum, 1);
        s.sum += __shfl_xor_sync(ALL, s.sum, 2);
        of_part.add(s.max, s.sum, [&](int j, int e) { return s.acc[j][e] + s.acc[j][e + 2]; });
        s.clear();
        if (now.part == was.part) continue;
        all.add(of_part.max, of_part.sum, [&](int j, int e) { return of_part.acc[j][e]; });
        of_part.clear();
    }
    float *out = out_row(t, row) + (uint64_t)head * DIM;
    for (int j = 0; j < DIM / 8 && mine; j++)
        for (int e = 0; e < 2; e++) out[state<DIM>::column(j, k, e)] = all.acc[j][e] / all.sum;
}

template <int DIM> static cudaError_t launch_dim(const sl_cuda_task *t, cudaStream_t stream) {
    const int n_bytes = N_STAGE * tile<DIM>::BYTES;
    cudaError_t error =
        cudaFuncSetAttribute((const void *)attend_wide<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, n_bytes);
    if (error != cudaSuccess) return error;
    const uint32_t rows = tile_rows(t->attr.attend.n_head / t->n_head_kv);
    return launch(t, attend_wide<DIM>, dim3(t->n_head_kv, (t->n_row_max + rows - 1) / rows), N_THREAD, (size_t)n_bytes,
                  stream, *t);
}

cudaError_t sl_cuda_attend_wide(const sl_cuda_task *t, cudaStream_t stream) {
    if (t->head_dim == 64) return launch_dim<64>(t, stream);
    if (t->head_dim == 128) return launch_dim<128>(t, stream);
    return cudaSuccess;
}
