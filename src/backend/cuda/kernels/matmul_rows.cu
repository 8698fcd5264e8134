// SPDX-License-Identifier: MIT
//
// Matrix products of any type and shape: a warp for each output, for up to N rows of the step at once. Its lanes share
// the groups of 32 columns in turn; the products of 16 columns are added as integers (quantised types, ACT16
// activations), what remains in float, in an order that the shape alone gives.
#include "backend/cuda/kernels/unpack.cuh"

enum { N_THREAD = 256, GROUP = 32 };

// The sums of N rows over the lanes, with bias and residual, to the output.
template <int N>
static __device__ void store(const sl_cuda_task &t, uint32_t first, int32_t n, uint32_t o, const float sum[N]) {
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

// ---- weights that are floats: a warp has R outputs, so that activations are read for all of them at once -------------

enum { RUN = 8 }; // columns of a lane

template <int TYPE> struct run {
    enum { BYTES = TYPE == SL_TYPE_F32 ? 4 : 2, N_PIECE = RUN * BYTES / 16 };
    uint4 piece[N_PIECE];

    // whole: pieces are aligned and no row ends in one.
    __device__ __forceinline__ void load(const uint8_t *row, uint32_t i, uint32_t n, bool whole) {
        uint32_t *word = (uint32_t *)piece;
        for (int k = 0; k < 4 * N_PIECE; k++) word[k] = 0;
        if (i >= n) return;
        if (whole) {
            for (int k = 0; k < N_PIECE; k++) piece[k] = __ldcs((const uint4 *)(row + (uint64_t)i * BYTES) + k);
            return;
        }
        for (int k = 0; k < RUN; k++) {
            if (i + k >= n) return;
            if (BYTES == 4) word[k] = ((const uint32_t *)row)[i + k];
            else word[k / 2] |= (uint32_t)((const uint16_t *)row)[i + k] << k % 2 * 16;
        }
    }
    __device__ __forceinline__ float at(int k) const {
        const uint32_t *word = (const uint32_t *)piece;
        if (BYTES == 4) return __uint_as_float(word[k]);
        const uint32_t bits = word[k / 2] >> k % 2 * 16 & 0xffff;
        return TYPE == SL_TYPE_F16 ? half_bits((uint16_t)bits) : __uint_as_float(bits << 16);
    }
};

static __device__ __forceinline__ void load_run(float x[RUN], const float *row, uint32_t i, uint32_t n) {
    if (i + RUN <= n) { // rows are 64-byte aligned
        const float4 lower = *(const float4 *)(row + i), upper = *(const float4 *)(row + i + 4);
        x[0] = lower.x, x[1] = lower.y, x[2] = lower.z, x[3] = lower.w;
        x[4] = upper.x, x[5] = upper.y, x[6] = upper.z, x[7] = upper.w;
    } else
        for (int k = 0; k < RUN; k++) x[k] = i + k < n ? row[i + k] : 0.0f;
}

// AHEAD: runs of an output that a lane has under way, the first before the kernel waits.
template <int TYPE, int N, int R, int AHEAD>
static __global__ void __launch_bounds__(N_THREAD) matmul_floats(const __grid_constant__ sl_cuda_task t) {
    const uint32_t first_o = (blockIdx.x * (N_THREAD / WARP) + threadIdx.x / WARP) * R, first = blockIdx.y * N;
    const uint32_t n_col = t.weight_n_col, lane_at = RUN * (threadIdx.x % WARP);
    const bool whole = n_col % RUN == 0 && t.weight_row_bytes % 16 == 0;
    run<TYPE> w[AHEAD][R];
    auto ask = [&](int a, uint32_t i) {
#pragma unroll
        for (int o = 0; o < R; o++)
            w[a][o].load(t.weight + min(first_o + o, t.n_col - 1) * t.weight_row_bytes, i, n_col, whole);
    };
#pragma unroll
    for (int a = 0; a < AHEAD; a++) ask(a, lane_at + a * RUN * WARP);
    let_next();
    wait();
    const int32_t n = min(task_rows(t) - (int32_t)first, N);
    if (n <= 0 || first_o >= t.n_col) return;
    float sum[R][N] = {};
    for (uint32_t base = lane_at; base < n_col; base += AHEAD * RUN * WARP) {
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            const uint32_t i = base + a * RUN * WARP;
            if (i >= n_col) break;
#pragma unroll
            for (int r = 0; r < N; r++) {
                if (r >= n) break;
                float x[RUN];
                load_run(x, in_row(t, 0, first + r), i, n_col);
#pragma unroll
                for (int o = 0; o < R; o++)
#pragma unroll
                    for (int k = 0; k < RUN; k++) sum[o][r] = __fmaf_rn(w[a][o].at(k), x[k], sum[o][r]);
            }
            ask(a, i + AHEAD * RUN * WARP); // nothing past the end
        }
    }
#pragma unroll
    for (int o = 0; o < R; o++)
        if (first_o + o < t.n_col) store<N>(t, first, n, first_o + o, sum[o]);
}

// ---- launchers -----------------------------------------------------------------------------------

// n rows at once, each warp has n_out outputs
static dim3 grid(const sl_cuda_task *t, uint32_t n, uint32_t n_out) {
    const uint32_t each = N_THREAD / WARP * n_out;
    return dim3((t->n_col + each - 1) / each, (t->n_row_max + n - 1) / n);
}

template <int TYPE> static cudaError_t launch_blocks(const sl_cuda_task *t, cudaStream_t stream) {
    if (t->n_row_max == 1) return launch(t, matmul_blocks<TYPE, 1>, grid(t, 1, 1), N_THREAD, 0, stream, *t);
    return launch(t, matmul_blocks<TYPE, 8>, grid(t, 8, 1), N_THREAD, 0, stream, *t);
}

template <int TYPE> static cudaError_t launch_floats(const sl_cuda_task *t, cudaStream_t stream) {
    enum { R = 2, AHEAD = TYPE == SL_TYPE_F32 ? 2 : 4, R_8 = 2 };
    if (t->n_row_max == 1) return launch(t, matmul_floats<TYPE, 1, R, AHEAD>, grid(t, 1, R), N_THREAD, 0, stream, *t);
    return launch(t, matmul_floats<TYPE, 8, R_8, 2>, grid(t, 8, R_8), N_THREAD, 0, stream, *t);
}

cudaError_t sl_cuda_matmul(const sl_cuda_task *t, cudaStream_t stream) {
#define LAUNCH(type) return launch_blocks<type>(t, stream)
    FOR_QUANTISED(t->weight_type, LAUNCH)
#undef LAUNCH
    if (t->weight_type == SL_TYPE_F32) return launch_floats<SL_TYPE_F32>(t, stream);
    if (t->weight_type == SL_TYPE_F16) return launch_floats<SL_TYPE_F16>(t, stream);
    return launch_floats<SL_TYPE_BF16>(t, stream);
}
