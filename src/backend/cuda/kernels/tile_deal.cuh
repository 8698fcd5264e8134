// SPDX-License-Identifier: MIT
//
// How matrices in tiles are dealt out to thread blocks and warps (matmul_tiles.cu), and in what order a warp takes them.
#ifndef SL_BACKEND_CUDA_TILE_DEAL_CUH
#define SL_BACKEND_CUDA_TILE_DEAL_CUH

#include "backend/cuda/kernels/packed.cuh"
#include "backend/cuda/kernels/tile_ring.cuh"

enum { MAX_FEW = 4 }; // rows for which a warp keeps the activations of all its columns

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

// Where a warp is in its list, and at which of its tiles of columns. For few rows it takes all columns of an entry before
// the next; for more the entries of a batch for a block of columns before the next columns.
template <int N> struct walk {
    uint32_t base, i, at, first; // base + i-th entry of this warp; first: its place among the groups of warps
    __device__ __forceinline__ uint32_t entry_at(const deal &d) const { return (base + i) * d.n_t + first; }
    __device__ __forceinline__ void next(const deal &d, uint32_t n_entry) {
        if (N <= MAX_FEW) {
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

#endif
