// SPDX-License-Identifier: MIT
//
// Which rows of a wide step attend together (attend_wide.cu): tiles of rows beside each other, of one sequence, whose
// positions are cut into parts at the same places.
#ifndef SL_BACKEND_CUDA_ATTEND_WIDE_CUH
#define SL_BACKEND_CUDA_ATTEND_WIDE_CUH

#include "backend/cuda/kernels/attend_mma.cuh"

enum { WIDE_WARPS = 8 };

// Rows of a warp: 8 queries, all heads of a group with as many rows as that leaves room for; and of a thread block.
static __host__ __device__ __forceinline__ uint32_t warp_rows(uint32_t n_group) { return MAX_GROUP / n_group; }
static __host__ __device__ __forceinline__ uint32_t tile_rows(uint32_t n_group) {
    return warp_rows(n_group) * WIDE_WARPS;
}

// Heads of other sizes would need more registers than there are.
static __host__ __device__ __forceinline__ constexpr bool sl_cuda_attend_wide_dim(uint32_t dim) { return dim <= 128; }

// Does the tile of rows that begins at `first` go together? At most half full it does not: too many warps would idle.
// All threads of the block call it and get the same.
static __device__ __forceinline__ bool tile_goes_together(const sl_cuda_task &t, uint32_t first) {
    const uint32_t rows = tile_rows(t.attr.attend.n_head / t.n_head_kv);
    const uint32_t n = min((uint32_t)task_rows(t) - first, rows), row = first + min(threadIdx.x, n - 1);
    const part own = part_of(t, row, 0), same = part_of(t, first, 0);
    return __syncthreads_and(t.step.slot[row] == t.step.slot[first] && own.first == same.first &&
                             own.each == same.each && 2 * n > rows);
}

extern "C" cudaError_t sl_cuda_attend_wide(const sl_cuda_task *t, cudaStream_t stream);

#endif
