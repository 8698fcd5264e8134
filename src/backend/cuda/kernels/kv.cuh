// SPDX-License-Identifier: MIT
//
// The KV pool as the kernels see it: a block holds (kv head, position, dim), so that the 32 positions of a head are one
// piece. The blocks that a row sees are cut into n_part parts; how many each has follows from the row's position and
// window alone, and so do the bits of the result.
#ifndef SL_BACKEND_CUDA_KV_CUH
#define SL_BACKEND_CUDA_KV_CUH

#include "backend/cuda/kernels/device.cuh"

template <class T> static __device__ __forceinline__ float to_float(T x);
template <> __device__ __forceinline__ float to_float(float x) { return x; }
template <> __device__ __forceinline__ float to_float(uint16_t x) { return half_bits(x); }
template <class T> static __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float(float x) { return x; }
template <> __device__ __forceinline__ uint16_t from_float(float x) { return __half_as_ushort(__float2half_rn(x)); }

// The pool's block of a row's position.
static __device__ __forceinline__ uint64_t pool_block(const sl_cuda_task &t, uint32_t row, int32_t pos) {
    return (uint64_t)t.step.blk_table[(int64_t)t.step.slot[row] * t.step.blk_stride + pos / SL_KV_BLK_LEN];
}

struct part {
    int32_t first, end; // blocks
    int32_t each;       // blocks of all parts but the last ones
    int32_t from, last; // positions that the row sees
};

static __device__ __forceinline__ part part_of(const sl_cuda_task &t, uint32_t row, int32_t i) {
    part p;
    p.last = t.step.pos[row];
    int64_t window = t.attr.attend.window;
    p.from = window == 0 || (int64_t)p.last + 1 <= window ? 0 : (int32_t)(p.last + 1 - window);
    int32_t begin = p.from / SL_KV_BLK_LEN, n = p.last / SL_KV_BLK_LEN + 1 - begin, n_part = (int32_t)t.n_part;
    p.each = (n + n_part - 1) >> (31 - __clz(n_part)); // a power of 2
    p.first = begin + min(i * p.each, n);
    p.end = begin + min((i + 1) * p.each, n);
    return p;
}

#endif
