// SPDX-License-Identifier: MIT
#ifndef SL_BACKEND_CUDA_ROPE_CUH
#define SL_BACKEND_CUDA_ROPE_CUH

#include "backend/cuda/kernels/device.cuh"

// The k-th pair of columns of a head that a rotation turns, or, after the last of them, a column that it leaves.
struct rope_pair {
    float x, y, c, s;
    uint32_t at, step; // columns at and at + step of the head
    bool rotated;
    // in (head_dim): the head before its rotation. table: cosine and sine of each pair.
    __device__ __forceinline__ void load(const sl_attr_rope &a, const float *in, const float *table, uint32_t k) {
        const uint32_t half = a.n_rot / 2;
        rotated = k < half;
        at = !rotated ? k + half : a.interleaved ? 2 * k : k;
        step = a.interleaved ? 1 : half;
        x = in[at];
        if (rotated) y = in[at + step], c = table[2 * k], s = table[2 * k + 1];
    }
    __device__ __forceinline__ void rotate() {
        if (!rotated) return;
        const float turned = x * c - y * s;
        y = x * s + y * c;
        x = turned;
    }
};

// A head of a row, rotated, to `to` (head_dim), by all threads of the block. Each thread reads and writes whole pairs, for
// the output may take the place of the input.
static __device__ __forceinline__ void rope_head(const sl_cuda_task &t, uint32_t row, uint32_t head, float *to) {
    const sl_attr_rope &a = t.attr.rope;
    const float *table = in_row(t, 1, row), *in = in_row(t, 0, row) + head * a.head_dim;
    for (uint32_t k = threadIdx.x; k < a.head_dim - a.n_rot / 2; k += blockDim.x) {
        rope_pair p;
        p.load(a, in, table, k);
        p.rotate();
        to[p.at] = p.x;
        if (p.rotated) to[p.at + p.step] = p.y;
    }
}

#endif
