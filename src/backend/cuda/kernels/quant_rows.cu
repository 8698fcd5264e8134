// SPDX-License-Identifier: MIT
//
// ACT16 of rows in memory: of floats, alone (QUANT), after a norm or after a gate.
#include "backend/cuda/kernels/quant.cuh"

enum { N_THREAD = 256, NORM_THREADS = 512 };

static __global__ void quant(const __grid_constant__ sl_cuda_task t) {
    let_next();
    wait();
    uint32_t row = blockIdx.x, b = blockIdx.y * (N_THREAD / WARP) + threadIdx.x / WARP;
    if ((int32_t)row >= task_rows(t) || b * SL_ACT_BLK_LEN >= t.n_col) return;
    float x[PER_LANE];
    load_blk(x, in_row(t, 0, row), b, t.n_col);
    quant_blk(act16_of((uint8_t *)out_row(t, row), t.n_col), b, x);
}

static __global__ void glu_quant(const __grid_constant__ sl_cuda_task t) {
    let_next();
    wait();
    uint32_t row = blockIdx.x, b = blockIdx.y * (N_THREAD / WARP) + threadIdx.x / WARP;
    if ((int32_t)row >= task_rows(t) || b * SL_ACT_BLK_LEN >= t.n_col) return;
    float x[PER_LANE], up[PER_LANE];
    load_blk(x, in_row(t, 0, row), b, t.n_col);
    load_blk(up, in_row(t, 1, row), b, t.n_col);
    for (int i = 0; i < PER_LANE; i++) x[i] = gate_up(x[i], up[i], t.attr.glu.act);
    quant_blk(act16_of((uint8_t *)out_row(t, row), t.n_col), b, x);
}

static __global__ void norm_quant(const __grid_constant__ sl_cuda_task t) {
    let_next();
    wait();
    const uint32_t row = blockIdx.x, warp = threadIdx.x / WARP, n_warp = blockDim.x / WARP;
    if ((int32_t)row >= task_rows(t)) return;
    extern __shared__ double part[]; // (blocks of a row)
    const uint32_t n = t.n_col, n_blk = (n + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN;
    const float *in = in_row(t, 0, row);
    float x[PER_LANE];
    for (uint32_t b = warp; b < n_blk; b += n_warp) {
        load_blk(x, in, b, n);
        double sum = square_sum(x);
        if (threadIdx.x % WARP == 0) part[b] = sum;
    }
    __syncthreads();
    const float scale = row_scale(part, n_blk, 1 / (double)n, t.attr.norm.eps);
    for (uint32_t b = warp; b < n_blk; b += n_warp) {
        load_blk(x, in, b, n);
        float w[PER_LANE] = {1, 1, 1, 1, 1, 1, 1, 1};
        if (t.weight) load_blk(w, (const float *)t.weight, b, n);
        norm_blk(x, scale, w);
        quant_blk(act16_of((uint8_t *)out_row(t, row), n), b, x);
    }
}

static dim3 blocks(const sl_cuda_task *t) {
    uint32_t columns = SL_ACT_BLK_LEN * (N_THREAD / WARP);
    return dim3(t->n_row_max, (t->n_col + columns - 1) / columns);
}

cudaError_t sl_cuda_quant(const sl_cuda_task *t, cudaStream_t stream) {
    return launch(t, quant, blocks(t), N_THREAD, 0, stream, *t);
}

cudaError_t sl_cuda_glu_quant(const sl_cuda_task *t, cudaStream_t stream) {
    return launch(t, glu_quant, blocks(t), N_THREAD, 0, stream, *t);
}

cudaError_t sl_cuda_norm_quant(const sl_cuda_task *t, cudaStream_t stream) {
    uint32_t n_blk = (t->n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN;
    uint32_t n_warp = n_blk < NORM_THREADS / WARP ? n_blk : NORM_THREADS / WARP;
    return launch(t, norm_quant, t->n_row_max, n_warp * WARP, n_blk * sizeof(double), stream, *t);
}
