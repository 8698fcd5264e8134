// SPDX-License-Identifier: MIT
#ifndef SL_BACKEND_CUDA_ROPE_CUH
#define SL_BACKEND_CUDA_ROPE_CUH

#include "backend/cuda/kernels/device.cuh"

// A head of a row, rotated, to `to` (head_dim), by all threads of the block. Each thread reads and writes whole pairs, for
// the output may take the place of the input.
static __device__ __forceinline__ void rope_head(const sl_cuda_task &t, uint32_t row, uint32_t head, float *to) {
    const sl_attr_rope &a = t.attr.rope;
    const float *table = in_row(t, 1, row), *in = in_row(t, 0, row) + head * a.head_dim;
    uint32_t half = a.n_rot / 2, n_rest = a.head_dim - a.n_rot;
    for (uint32_t k = threadIdx.x; k < half + n_rest; k += blockDim.x) {
        if (k >= half) {
            to[k + half] = in[k + half];
            continue;
        }
        uint32_t at = a.interleaved ? 2 * k : k, step = a.interleaved ? 1 : half;
        float x = in[at], y = in[at + step], c = table[2 * k], s = table[2 * k + 1];
        to[at] = x * c - y * s;
        to[at + step] = x * s + y * c;
    }
}

#endif
