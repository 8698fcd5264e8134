// SPDX-License-Identifier: MIT
//
// The first node of every program's graph: the step's arguments come over the bus, read by the device itself, so that
// a step needs no copy of the host's. Block 0 takes the rows, block 1 + i the i-th range of the block table.
#include "backend/cuda/kernels/kernels.h"

// off: of the ranges and of the table in both blocks.
static __global__ void fetch_step(int32_t *device, const int32_t *host, uint64_t range_off, uint64_t table_off,
                                  uint32_t blk_stride) {
    if (blockIdx.x == 0) {
        for (uint32_t i = threadIdx.x; i < range_off; i += blockDim.x) device[i] = host[i];
        return;
    }
    int32_t i = (int32_t)blockIdx.x - 1;
    if (i >= host[2]) return;
    const int32_t *range = host + range_off + 3 * i;
    uint64_t row = table_off + (uint64_t)range[0] * blk_stride;
    for (int32_t k = range[1] + (int32_t)threadIdx.x; k < range[2]; k += (int32_t)blockDim.x)
        device[row + (uint64_t)k] = host[row + (uint64_t)k];
}

cudaError_t sl_cuda_fetch_step(int32_t *device, const int32_t *host, sl_cuda_step_shape s, cudaStream_t stream) {
    uint32_t n_range = s.n_row_max < s.n_slot ? s.n_row_max : s.n_slot;
    fetch_step<<<1 + n_range, 128, 0, stream>>>(device, host, sl_cuda_step_rows(s), sl_cuda_step_table(s), s.blk_stride);
    return cudaGetLastError();
}

bool sl_cuda_has_code(void) {
    struct cudaFuncAttributes a;
    return cudaFuncGetAttributes(&a, (const void *)fetch_step) == cudaSuccess || (cudaGetLastError(), false);
}
