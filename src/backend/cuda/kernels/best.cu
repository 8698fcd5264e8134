// SPDX-License-Identifier: MIT
//
// BEST: the largest of each row of logits, by a thread block for each. Numbers are compared as keys, integers in the
// same order, with the column in the lower bits so that of equal ones the first wins; NaN has the lowest key of all.
#include "backend/cuda/kernels/device.cuh"

enum { N_THREAD = 1024, N_AHEAD = 4 };

typedef unsigned long long rank_t;

// 0: not above -inf.
static __device__ __forceinline__ rank_t key_of(float x, uint32_t column) {
    const uint32_t bits = __float_as_uint(x), order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return x > -CUDART_INF_F ? (rank_t)order << 32 | ~column : 0;
}

static __device__ __forceinline__ rank_t warp_best(rank_t key) {
    for (int step = WARP / 2; step; step /= 2) key = max(key, __shfl_xor_sync(ALL, key, step));
    return key;
}

static __global__ void __launch_bounds__(N_THREAD) best(const __grid_constant__ sl_cuda_task t) {
    begin();
    const uint32_t row = blockIdx.x, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if ((int32_t)row >= task_rows(t)) return;
    const float *in = in_row(t, 0, row);
    rank_t key = 0;
    int n_bad = 0;
    for (uint32_t base = 4 * threadIdx.x; base < t.n_col; base += 4 * N_THREAD * N_AHEAD) {
        float4 x[N_AHEAD];
#pragma unroll
        for (uint32_t k = 0, i = base; k < N_AHEAD; k++, i += 4 * N_THREAD)
            if (i < t.n_col) x[k] = *(const float4 *)(in + i); // rows end at multiples of 64 bytes
#pragma unroll
        for (uint32_t k = 0, i = base; k < N_AHEAD; k++, i += 4 * N_THREAD) {
            const float each[4] = {x[k].x, x[k].y, x[k].z, x[k].w};
#pragma unroll
            for (uint32_t j = 0; j < 4; j++)
                if (i + j < t.n_col) key = max(key, key_of(each[j], i + j)), n_bad += !isfinite(each[j]);
        }
    }
    __shared__ rank_t keys[N_THREAD / WARP];
    __shared__ int bad;
    if (threadIdx.x == 0) bad = 0;
    __syncthreads();
    key = warp_best(key);
    n_bad = __reduce_add_sync(ALL, n_bad);
    if (lane == 0) keys[warp] = key, atomicAdd(&bad, n_bad);
    __syncthreads();
    if (warp > 0) return;
    key = warp_best(keys[lane]);
    if (lane > 0) return;
    out_row(t, row)[0] = key ? (float)~(uint32_t)key : -1.0f;
    out_row(t, row)[1] = (float)bad;
}

cudaError_t sl_cuda_best(const sl_cuda_task *t, cudaStream_t stream) {
    return launch(t, best, t->n_row_max, N_THREAD, 0, stream, *t);
}
