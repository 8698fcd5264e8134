// SPDX-License-Identifier: MIT
//
// Ops that work on one row at a time: a thread block for each row. Sums of squares are in double, as the norm's bound
// asks for.
#include "backend/cuda/kernels/quant.cuh"
#include "backend/cuda/kernels/rope.cuh"
#include "backend/cuda/kernels/tile_source.cuh"
#include "backend/cuda/kernels/unpack.cuh"

enum { N_THREAD = 256 };

// ---- embedding -----------------------------------------------------------------------------------

// Blocks of a row as floats, from column `first` on; x * 1 is exact.
template <int TYPE>
static __device__ void decode(const sl_cuda_task &t, const uint8_t *from, float *to, uint32_t n) {
    typedef unpack<TYPE> u;
    const typename u::blk *blk = (const typename u::blk *)from;
    for (uint32_t i = 4 * threadIdx.x; i < n; i += 4 * blockDim.x) {
        const typename u::blk *b = blk + i / u::LEN;
        int at = (int)(i % u::LEN);
        uint32_t q = u::quad(b, at);
        float scale = u::scale(b, at / 16), low = u::low(b, at / 16);
        for (int k = 0; k < 4; k++) to[i + k] = (scale * (float)(int8_t)(q >> 8 * k) - low) * t.attr.embed.scale;
    }
}

static __device__ void decode_blocks(const sl_cuda_task &t, const uint8_t *from, float *to, uint32_t n) {
#define DECODE(type) decode<type>(t, from, to, n)
    FOR_QUANTISED(t.weight_type, DECODE)
#undef DECODE
}

// 256 columns of a row of a matrix in tiles: its blocks are put together again. The other rows of the tile are read for
// nothing, which costs less than a copy of the matrix.
static __device__ void decode_tile(const sl_cuda_task &t, uint32_t row, uint32_t column_blk, float *to) {
    __shared__ __align__(16) uint8_t blocks[SL_TILE_COLS / 32 * 34];
    uint32_t tile_bytes = t.tile_bytes, n_blk = t.n_col / SL_TILE_COLS;
    const uint8_t *tile = t.weight + ((uint64_t)(row / SL_TILE_ROWS) * n_blk + column_blk) * tile_bytes;
    __syncthreads();
    for (int at = threadIdx.x; at < (int)tile_bytes; at += blockDim.x) {
        int in_tile, byte = tile_source(t.weight_type, at, &in_tile);
        if (in_tile == (int)(row % SL_TILE_ROWS)) blocks[byte] = tile[at];
    }
    __syncthreads();
    decode_blocks(t, blocks, to, SL_TILE_COLS);
}

static __device__ float float_at(const uint8_t *row, uint8_t type, uint32_t i) {
    if (type == SL_TYPE_F32) return ((const float *)row)[i];
    uint16_t bits = ((const uint16_t *)row)[i];
    return type == SL_TYPE_F16 ? half_bits(bits) : __uint_as_float((uint32_t)bits << 16);
}

static __global__ void embed(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x;
    if ((int32_t)row >= task_rows(t)) return;
    uint32_t token = (uint32_t)t.step.token[row];
    float *to = out_row(t, row);
    if (t.tile_bytes) {
        for (uint32_t i = blockIdx.y; i < t.n_col / SL_TILE_COLS; i += gridDim.y)
            decode_tile(t, token, i, to + i * SL_TILE_COLS);
        return;
    }
    if (blockIdx.y > 0) return;
    const uint8_t *from = t.weight + (uint64_t)token * t.weight_row_bytes;
    if (t.weight_type == SL_TYPE_F32 || t.weight_type == SL_TYPE_F16 || t.weight_type == SL_TYPE_BF16) {
        for (uint32_t i = threadIdx.x; i < t.n_col; i += blockDim.x)
            to[i] = float_at(from, t.weight_type, i) * t.attr.embed.scale;
        return;
    }
    decode_blocks(t, from, to, t.n_col);
}

// ---- rotation ------------------------------------------------------------------------------------

// In double: at position 100 000 a float angle would be off by 0.004.
static __global__ void rope_table(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x;
    if ((int32_t)row >= task_rows(t)) return;
    float *out = out_row(t, row);
    for (uint32_t i = threadIdx.x; i < t.n_col / 2; i += blockDim.x) {
        double s, c;
        sincos((double)t.step.pos[row] * t.inv_freq[i], &s, &c);
        out[2 * i] = (float)(c * (double)t.mscale);
        out[2 * i + 1] = (float)(s * (double)t.mscale);
    }
}

// A thread block for each head.
static __global__ void rope(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x, head = blockIdx.y;
    if ((int32_t)row >= task_rows(t)) return;
    rope_head(t, row, head, out_row(t, row) + head * t.attr.rope.head_dim);
}

// ---- norm ----------------------------------------------------------------------------------------

// A thread block for each group of each row.
static __global__ void norm(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x, group = t.attr.norm.group;
    if ((int32_t)row >= task_rows(t)) return;
    const float *in = in_row(t, 0, row) + blockIdx.y * group, *weight = (const float *)t.weight;
    float *out = out_row(t, row) + blockIdx.y * group;
    __shared__ double part[WARP];
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < group; i += blockDim.x) sum += (double)in[i] * (double)in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = sum;
    __syncthreads();
    sum = warp_sum(threadIdx.x % WARP < blockDim.x / WARP ? part[threadIdx.x % WARP] : 0.0);
    float scale = norm_scale(sum, 1 / (double)group, t.attr.norm.eps);
    for (uint32_t i = threadIdx.x; i < group; i += blockDim.x) out[i] = in[i] * scale * (weight ? weight[i] : 1.0f);
}

// ---- by element ----------------------------------------------------------------------------------

static __global__ void glu(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x, i = blockIdx.y * blockDim.x + threadIdx.x;
    if ((int32_t)row >= task_rows(t) || i >= t.n_col) return;
    out_row(t, row)[i] = gate_up(in_row(t, 0, row)[i], in_row(t, 1, row)[i], t.attr.glu.act);
}

static __global__ void add(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x, i = blockIdx.y * blockDim.x + threadIdx.x;
    if ((int32_t)row >= task_rows(t) || i >= t.n_col) return;
    out_row(t, row)[i] = in_row(t, 0, row)[i] + in_row(t, 1, row)[i];
}

static __global__ void gather(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x, i = blockIdx.y * blockDim.x + threadIdx.x;
    if ((int32_t)row >= task_rows(t) || i >= t.n_col) return;
    out_row(t, row)[i] = in_row(t, 0, (uint32_t)t.step.logit_row[row])[i];
}

static __global__ void softcap(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x, i = blockIdx.y * blockDim.x + threadIdx.x;
    if ((int32_t)row >= task_rows(t) || i >= t.n_col) return;
    float cap = t.attr.softcap.cap;
    out_row(t, row)[i] = cap * tanhf(in_row(t, 0, row)[i] / cap);
}

// ---- launchers -----------------------------------------------------------------------------------

static uint32_t parts(uint32_t n) { return (n + N_THREAD - 1) / N_THREAD; }

#define BY_ROW(name)                                                         \
    cudaError_t sl_cuda_##name(const sl_cuda_task *t, cudaStream_t stream) { \
        return launch(t, name, t->n_row_max, N_THREAD, 0, stream, *t);       \
    }
#define BY_ELEMENT(name)                                                                            \
    cudaError_t sl_cuda_##name(const sl_cuda_task *t, cudaStream_t stream) {                        \
        return launch(t, name, dim3(t->n_row_max, parts(t->n_col)), N_THREAD, 0, stream, *t);       \
    }
BY_ROW(rope_table)
BY_ELEMENT(glu)
BY_ELEMENT(add)
BY_ELEMENT(gather)
BY_ELEMENT(softcap)

cudaError_t sl_cuda_embed(const sl_cuda_task *t, cudaStream_t stream) {
    return launch(t, embed, dim3(t->n_row_max, t->tile_bytes ? 8 : 1), N_THREAD, 0, stream, *t);
}

cudaError_t sl_cuda_rope(const sl_cuda_task *t, cudaStream_t stream) {
    return launch(t, rope, dim3(t->n_row_max, t->attr.rope.n_head), 64, 0, stream, *t);
}

cudaError_t sl_cuda_norm(const sl_cuda_task *t, cudaStream_t stream) {
    uint32_t group = t->attr.norm.group, n_thread = (group + WARP - 1) / WARP * WARP;
    if (n_thread > 1024) n_thread = 1024;
    return launch(t, norm, dim3(t->n_row_max, t->n_col / group), n_thread, 0, stream, *t);
}
