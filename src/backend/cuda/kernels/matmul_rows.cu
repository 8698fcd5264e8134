// SPDX-License-Identifier: MIT
//
// Matrix products of any type and shape: a warp for each output, for up to N rows of the step at once. Its lanes share
// the groups of 32 columns in turn; the products of 16 columns are added as integers (quantised types, ACT16
// activations), what remains in float, in an order that the shape alone gives.
#include "backend/cuda/kernels/unpack.cuh"

enum { N_THREAD = 256, GROUP = 32 };

// The sums of N rows over the lanes, with bias and residual, to the output.
template <int N> static __device__ void store(const sl_cuda_task &t, uint32_t first, int32_t n, uint32_t o,
                                              const float sum[N]) {
    for (int r = 0; r < N; r++) {
        float y = warp_sum(sum[r]);
        if (threadIdx.x % WARP != 0 || r >= n) continue;
        if (t.bias) y += t.bias[o];
        if (t.in[1]) y += in_row(t, 1, first + r)[o];
        out_row(t, first + r)[o] = y;
    }
}

// One group of one row: its sum, in units of the activations' scale.
template <int TYPE> struct group {
    typedef unpack<TYPE> u;
    uint32_t q[GROUP / 4];
    float scale[2], low[2];

    __device__ __forceinline__ void load(const typename u::blk *blks, uint32_t i) {
        const typename u::blk *b = blks + i / u::LEN;
        int at = (int)(i % u::LEN);
        for (int k = 0; k < GROUP / 4; k++) q[k] = u::quad(b, at + 4 * k);
        for (int h = 0; h < 2; h++) scale[h] = u::scale(b, at / 16 + h), low[h] = u::low(b, at / 16 + h);
    }

    // hi, lo (32), sum (2) of the activations
    __device__ __forceinline__ float dot(const uint8_t *hi, const uint8_t *lo, const int32_t *sum) const {
        float y = 0;
        for (int h = 0; h < 2; h++) {
            const int4 a = *(const int4 *)(hi + 16 * h), b = *(const int4 *)(lo + 16 * h);
            const uint32_t *w = q + 4 * h;
            int x = __dp4a((int)w[0], a.x, __dp4a((int)w[1], a.y, __dp4a((int)w[2], a.z, __dp4a((int)w[3], a.w, 0))));
            int z = __dp4a((int)w[0], b.x, __dp4a((int)w[1], b.y, __dp4a((int)w[2], b.z, __dp4a((int)w[3], b.w, 0))));
            y = __fmaf_rn(scale[h], (float)(SL_ACT_BASE * x + z), y);
            y = __fmaf_rn(-low[h], (float)sum[h], y);
        }
        return y;
    }
};

template <int TYPE, int N> static __global__ void matmul_blocks(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t o = blockIdx.x * (N_THREAD / WARP) + threadIdx.x / WARP, first = blockIdx.y * N;
    int32_t n = min(task_rows(t) - (int32_t)first, N);
    if (n <= 0 || o >= t.n_col) return;
    typedef typename unpack<TYPE>::blk blk;
    const blk *row = (const blk *)(t.weight + o * t.weight_row_bytes);
    uint32_t n_blk = (t.weight_n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN, n_pad = n_blk * SL_ACT_BLK_LEN;
    float sum[N] = {0};
    for (uint32_t i = GROUP * (threadIdx.x % WARP); i < t.weight_n_col; i += GROUP * WARP) {
        group<TYPE> g;
        g.load(row, i);
#pragma unroll
        for (int r = 0; r < N; r++) {
            if (r >= n) break;
            const uint8_t *act = t.in[0] + (first + r) * t.in_stride[0];
            const float *d = (const float *)(act + 2 * n_pad);
            const int32_t *sums = (const int32_t *)(d + n_blk) + i / SL_ACT_SUM_LEN;
            sum[r] = __fmaf_rn(d[i / SL_ACT_BLK_LEN], g.dot(act + i, act + n_pad + i, sums), sum[r]);
        }
    }
    store<N>(t, first, n, o, sum);
}

template <int TYPE> static __device__ __forceinline__ float weight_at(const uint8_t *row, uint32_t i) {
    if (TYPE == SL_TYPE_F32) return ((const float *)row)[i];
    uint16_t bits = ((const uint16_t *)row)[i];
    return TYPE == SL_TYPE_F16 ? half_bits(bits) : __uint_as_float((uint32_t)bits << 16);
}

template <int TYPE, int N> static __global__ void matmul_floats(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t o = blockIdx.x * (N_THREAD / WARP) + threadIdx.x / WARP, first = blockIdx.y * N;
    int32_t n = min(task_rows(t) - (int32_t)first, N);
    if (n <= 0 || o >= t.n_col) return;
    const uint8_t *row = t.weight + o * t.weight_row_bytes;
    float sum[N] = {0};
    for (uint32_t i = threadIdx.x % WARP; i < t.weight_n_col; i += WARP) {
        float w = weight_at<TYPE>(row, i);
#pragma unroll
        for (int r = 0; r < N; r++)
            if (r < n) sum[r] = __fmaf_rn(w, in_row(t, 0, first + r)[i], sum[r]);
    }
    store<N>(t, first, n, o, sum);
}

// ---- launchers -----------------------------------------------------------------------------------

static dim3 grid(const sl_cuda_task *t, uint32_t n) {
    return dim3((t->n_col + N_THREAD / WARP - 1) / (N_THREAD / WARP), (t->n_row_max + n - 1) / n);
}

template <int TYPE> static cudaError_t launch_blocks(const sl_cuda_task *t, cudaStream_t stream) {
    if (t->n_row_max == 1) return launch(t, matmul_blocks<TYPE, 1>, grid(t, 1), N_THREAD, 0, stream, *t);
    return launch(t, matmul_blocks<TYPE, 8>, grid(t, 8), N_THREAD, 0, stream, *t);
}

template <int TYPE> static cudaError_t launch_floats(const sl_cuda_task *t, cudaStream_t stream) {
    if (t->n_row_max == 1) return launch(t, matmul_floats<TYPE, 1>, grid(t, 1), N_THREAD, 0, stream, *t);
    return launch(t, matmul_floats<TYPE, 8>, grid(t, 8), N_THREAD, 0, stream, *t);
}

cudaError_t sl_cuda_matmul(const sl_cuda_task *t, cudaStream_t stream) {
#define LAUNCH(type) return launch_blocks<type>(t, stream)
    FOR_QUANTISED(t->weight_type, LAUNCH)
#undef LAUNCH
    if (t->weight_type == SL_TYPE_F32) return launch_floats<SL_TYPE_F32>(t, stream);
    if (t->weight_type == SL_TYPE_F16) return launch_floats<SL_TYPE_F16>(t, stream);
    return launch_floats<SL_TYPE_BF16>(t, stream);
}
