// SPDX-License-Identifier: MIT
//
// ACT16 (plan/ir.h) from floats, alone and after a norm or a gate. A warp makes one block of 256 columns, eight of
// them a lane. The rounding is that of backend/cpu/kernels/quant_act.h: d = max |x| / 32385, q = rint(x * (1 / d)),
// hi = q / 254 rounded, halves towards zero; blocks too small for d are zeros, blocks that are not finite a NaN.
#include "backend/cuda/kernels/device.cuh"

enum { N_THREAD = 256, ACT_MAX = 127 * SL_ACT_BASE + 127, PER_LANE = SL_ACT_BLK_LEN / WARP };

// A row of ACT16 as its parts.
struct act16 {
    int8_t *hi, *lo;
    float *d;
    int32_t *sum;
};

static __device__ act16 act16_of(uint8_t *row, uint32_t n_col) {
    uint32_t n_blk = (n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN, n_pad = n_blk * SL_ACT_BLK_LEN;
    act16 a;
    a.hi = (int8_t *)row;
    a.lo = a.hi + n_pad;
    a.d = (float *)(a.lo + n_pad);
    a.sum = (int32_t *)(a.d + n_blk);
    return a;
}

// x (8): columns 8 lane .. of block b, zeros past the row.
static __device__ void quant_blk(const act16 &a, uint32_t b, const float x[PER_LANE]) {
    uint32_t lane = threadIdx.x % WARP, top = 0;
    for (int i = 0; i < PER_LANE; i++) top = max(top, __float_as_uint(x[i]) & 0x7fffffffu);
    top = __reduce_max_sync(ALL, top);
    float d = __uint_as_float(top) / ACT_MAX, inverse = 1 / d;
    bool flat = top < __float_as_uint(ACT_MAX * 0x1p-126f), wild = top >= 0x7f800000u;
    uint32_t hi[2] = {0, 0}, lo[2] = {0, 0};
    int32_t sum = 0;
    for (int i = 0; i < PER_LANE; i++) {
        float q = flat || wild ? 0.0f : rintf(x[i] * inverse);
        int32_t whole = (int32_t)q, top_half = (int32_t)rintf(q * 0.003937f); // a little under 1 / 254
        hi[i / 4] |= (uint32_t)(uint8_t)top_half << i % 4 * 8;
        lo[i / 4] |= (uint32_t)(uint8_t)(whole - SL_ACT_BASE * top_half) << i % 4 * 8;
        sum += whole;
    }
    sum += __shfl_xor_sync(ALL, sum, 1); // two lanes have the 16 columns of a sum
    uint32_t at = b * SL_ACT_BLK_LEN + PER_LANE * lane;
    *(uint2 *)(a.hi + at) = make_uint2(hi[0], hi[1]);
    *(uint2 *)(a.lo + at) = make_uint2(lo[0], lo[1]);
    if (lane % 2 == 0) a.sum[at / SL_ACT_SUM_LEN] = sum;
    if (lane == 0) a.d[b] = wild ? CUDART_NAN_F : flat ? 0.0f : d;
}

static __global__ void quant(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x, b = blockIdx.y * (N_THREAD / WARP) + threadIdx.x / WARP;
    if ((int32_t)row >= task_rows(t) || b * SL_ACT_BLK_LEN >= t.n_col) return;
    const float *in = in_row(t, 0, row);
    float x[PER_LANE];
    for (int i = 0; i < PER_LANE; i++) {
        uint32_t at = b * SL_ACT_BLK_LEN + PER_LANE * (threadIdx.x % WARP) + i;
        x[i] = at < t.n_col ? in[at] : 0.0f;
    }
    quant_blk(act16_of((uint8_t *)out_row(t, row), t.n_col), b, x);
}

static __global__ void glu_quant(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x, b = blockIdx.y * (N_THREAD / WARP) + threadIdx.x / WARP;
    if ((int32_t)row >= task_rows(t) || b * SL_ACT_BLK_LEN >= t.n_col) return;
    const float *gate = in_row(t, 0, row), *up = in_row(t, 1, row);
    float x[PER_LANE];
    for (int i = 0; i < PER_LANE; i++) {
        uint32_t at = b * SL_ACT_BLK_LEN + PER_LANE * (threadIdx.x % WARP) + i;
        x[i] = at < t.n_col ? gate_up(gate[at], up[at], t.attr.glu.act) : 0.0f;
    }
    quant_blk(act16_of((uint8_t *)out_row(t, row), t.n_col), b, x);
}

// The sum is that of rows.cu's norm with as many threads, so that both give the same bits.
static __global__ void norm_quant(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x, n = t.n_col;
    if ((int32_t)row >= task_rows(t)) return;
    const float *in = in_row(t, 0, row), *weight = (const float *)t.weight;
    __shared__ double part[WARP];
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) sum += (double)in[i] * (double)in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = sum;
    __syncthreads();
    sum = warp_sum(threadIdx.x % WARP < blockDim.x / WARP ? part[threadIdx.x % WARP] : 0.0);
    float scale = (float)(1 / sqrt(sum / n + (double)t.attr.norm.eps));
    act16 a = act16_of((uint8_t *)out_row(t, row), n);
    for (uint32_t b = threadIdx.x / WARP; b * SL_ACT_BLK_LEN < n; b += blockDim.x / WARP) {
        float x[PER_LANE];
        for (int i = 0; i < PER_LANE; i++) {
            uint32_t at = b * SL_ACT_BLK_LEN + PER_LANE * (threadIdx.x % WARP) + i;
            x[i] = at < n ? in[at] * scale * (weight ? weight[at] : 1.0f) : 0.0f;
        }
        quant_blk(a, b, x);
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
    uint32_t n_thread = (t->n_col + WARP - 1) / WARP * WARP;
    return launch(t, norm_quant, t->n_row_max, n_thread > 1024 ? 1024 : n_thread, 0, stream, *t);
}
