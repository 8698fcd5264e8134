// SPDX-License-Identifier: MIT
//
// Reads memory once, as fast as the device can: what products are measured against.
#include "backend/cuda/kernels/kernels.h"

enum { N_THREAD = 512, N_LOAD = 8 }; // loads of 16 bytes that a thread has under way

static __device__ volatile unsigned sink; // a use for what is read, or the assembler leaves the loads out

static __global__ void read_all(const uint4 *from, uint64_t n) {
    const uint64_t base = (uint64_t)blockIdx.x * N_THREAD * N_LOAD + threadIdx.x;
    uint4 x[N_LOAD];
#pragma unroll
    for (int i = 0; i < N_LOAD; i++) {
        const uint64_t at = base + (uint64_t)i * N_THREAD;
        x[i] = at < n ? __ldcs(from + at) : make_uint4(0, 0, 0, 0);
    }
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < N_LOAD; i++) bits ^= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
    if (bits == 0x9e3779b9u) sink = bits;
}

cudaError_t sl_cuda_read(const uint8_t *from, uint64_t n_bytes, cudaStream_t stream) {
    const uint64_t n = n_bytes / sizeof(uint4), per_block = N_THREAD * N_LOAD;
    if (n == 0) return cudaSuccess;
    read_all<<<(unsigned)((n + per_block - 1) / per_block), N_THREAD, 0, stream>>>((const uint4 *)from, n);
    return cudaGetLastError();
}
