// SPDX-License-Identifier: MIT
//
// KV_WRITE, alone and together with the rotations beside it.
#include "backend/cuda/kernels/kv.cuh"
#include "backend/cuda/kernels/rope.cuh"

enum { N_THREAD = 128 };

template <class T> static __device__ void write_row(uint8_t *blk, const float *in, uint32_t n_head, uint32_t dim,
                                                    int32_t at) {
    for (uint32_t i = threadIdx.x; i < n_head * dim; i += blockDim.x)
        ((T *)blk)[((uint64_t)(i / dim) * SL_KV_BLK_LEN + at) * dim + i % dim] = from_float<T>(in[i]);
}

static __global__ void kv_write(const __grid_constant__ sl_cuda_task t) {
    begin();
    uint32_t row = blockIdx.x;
    if ((int32_t)row >= task_rows(t)) return;
    int32_t pos = t.step.pos[row];
    uint64_t blk = pool_block(t, row, pos);
    bool is_v = blockIdx.y;
    uint8_t *to = is_v ? t.v + blk * t.v_blk_bytes : t.k + blk * t.k_blk_bytes;
    uint32_t dim = is_v ? t.v_dim : t.head_dim;
    if ((is_v ? t.type_v : t.type_k) == SL_TYPE_F32)
        write_row<float>(to, in_row(t, is_v, row), t.n_head_kv, dim, pos % SL_KV_BLK_LEN);
    else write_row<uint16_t>(to, in_row(t, is_v, row), t.n_head_kv, dim, pos % SL_KV_BLK_LEN);
}

// grid (row, query heads, then kv heads of K, then of V): a thread block for each head.
static __global__ void rope_kv_write(const __grid_constant__ sl_cuda_rope_kv f) {
    let_next();
    wait();
    const sl_cuda_task &t = f.write;
    uint32_t row = blockIdx.x, head = blockIdx.y, n_q = f.rope_q.attr.rope.n_head;
    if ((int32_t)row >= task_rows(t)) return;
    if (head < n_q) return rope_head(f.rope_q, row, head, out_row(f.rope_q, row) + head * f.rope_q.attr.rope.head_dim);
    head -= n_q;
    int32_t pos = t.step.pos[row];
    uint64_t blk = pool_block(t, row, pos);
    bool is_v = head >= t.n_head_kv;
    if (is_v) head -= t.n_head_kv;
    uint8_t *to = is_v ? t.v + blk * t.v_blk_bytes : t.k + blk * t.k_blk_bytes;
    uint32_t dim = is_v ? t.v_dim : t.head_dim, at = head * SL_KV_BLK_LEN + pos % SL_KV_BLK_LEN;
    const float *in = in_row(t, is_v, row) + head * dim;
    __shared__ float rotated[SL_CUDA_HEAD_DIM_MAX];
    if (!is_v) {
        rope_head(f.rope_k, row, head, rotated);
        __syncthreads();
        in = rotated;
    }
    bool is_float = (is_v ? t.type_v : t.type_k) == SL_TYPE_F32;
    for (uint32_t i = threadIdx.x; i < dim; i += blockDim.x)
        if (is_float) ((float *)to)[(uint64_t)at * dim + i] = in[i];
        else ((uint16_t *)to)[(uint64_t)at * dim + i] = from_float<uint16_t>(in[i]);
}

// ---- launchers -----------------------------------------------------------------------------------

cudaError_t sl_cuda_kv_write(const sl_cuda_task *t, cudaStream_t stream) {
    return launch(t, kv_write, dim3(t->n_row_max, 2), 256, 0, stream, *t);
}

cudaError_t sl_cuda_rope_kv_write(const sl_cuda_rope_kv *f, cudaStream_t stream) {
    dim3 grid(f->write.n_row_max, f->rope_q.attr.rope.n_head + 2 * f->write.n_head_kv);
    return launch(&f->write, rope_kv_write, grid, N_THREAD, 0, stream, *f);
}
