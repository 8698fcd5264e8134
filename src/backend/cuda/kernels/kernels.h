// SPDX-License-Identifier: MIT
//
// The C face of the CUDA kernels: one launcher for each op. A launcher only puts kernels on a stream, with grids that
// follow from the task alone, so that a stream capture of a whole program serves every step: what varies (rows,
// positions, block tables) is read from device memory by the kernels themselves, and a thread block whose rows a step
// lacks ends at once. Knows no plan, no program, no device.
//
// The bits of a row depend on that row alone: no sum goes over rows, and the order of every sum follows from the shape
// of the weights (products) or from the row's own position (attention).
#ifndef SL_BACKEND_CUDA_KERNELS_H
#define SL_BACKEND_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#include "plan/ir.h"

#if defined(__cplusplus)
extern "C" {
#endif

enum {
    SL_CUDA_N_SPLIT = 16, // parts in which attention walks the positions of a row, merged in order
    SL_CUDA_NARROW = 8,   // rows of a step whose attention is spread over thread blocks by part
    SL_CUDA_V_DIM_MAX = 256,
    SL_CUDA_HEAD_DIM_MAX = 256,
};

// The step's arguments, in device memory.
typedef struct sl_cuda_step {
    const int32_t *n_row, *n_logit;
    const int32_t *token, *pos, *slot; // (n_row)
    const int32_t *logit_row;          // (n_logit)
    const int32_t *blk_table;          // (n_slot, blk_stride)
    int32_t blk_stride;
} sl_cuda_step;

// An op with all that it touches. Strides are in bytes.
typedef struct sl_cuda_task {
    sl_cuda_step step;
    const uint8_t *in[2];
    uint64_t in_stride[2];
    uint8_t *out;
    uint64_t out_stride;
    uint32_t n_col;        // of out; of in for QUANT
    uint32_t n_row_max;    // of the program, or of its rows that may want logits
    uint8_t logit_rows;    // rows are those that want logits
    const uint8_t *weight; // matrix, or norm weight
    uint64_t weight_row_bytes;
    uint32_t weight_n_col;
    uint32_t n_sm, shared_bytes; // of the device: multiprocessors, shared memory that a thread block may have
    uint8_t early;               // kernels may be launched before the one in front of them has ended
    uint8_t weight_type;         // sl_type
    uint32_t tile_bytes;         // of the tiles (tile.h) that the matrix lies in; 0: it lies in rows
    const float *bias;           // (n_col) or NULL
    const double *inv_freq;      // ROPE_TABLE: (n_col/2)
    float mscale;
    union {
        sl_attr_embed embed;
        sl_attr_norm norm;
        sl_attr_rope rope;
        sl_attr_attend attend;
        sl_attr_glu glu;
        sl_attr_softcap softcap;
    } attr;
    // KV_WRITE and ATTEND: the layer's pools. A block is (kv head, position, dim).
    uint8_t *k, *v;
    uint64_t k_blk_bytes, v_blk_bytes;
    uint32_t n_head_kv, head_dim, v_dim;
    uint8_t type_k, type_v;
    float *partial; // ATTEND of a narrow program: see attend.cu
} sl_cuda_task;

typedef cudaError_t sl_cuda_launch(const sl_cuda_task *task, cudaStream_t stream);

// rows.cu
sl_cuda_launch sl_cuda_embed, sl_cuda_rope_table, sl_cuda_norm, sl_cuda_rope, sl_cuda_glu, sl_cuda_add, sl_cuda_gather,
    sl_cuda_softcap;
// quant_rows.cu
sl_cuda_launch sl_cuda_quant, sl_cuda_norm_quant, sl_cuda_glu_quant;
// matmul_rows.cu; in[1] != NULL is added (MATMUL_ADD)
sl_cuda_launch sl_cuda_matmul;
// matmul_tiles.cu: the same for a matrix in tiles
sl_cuda_launch sl_cuda_matmul_tiles;
// attend.cu
sl_cuda_launch sl_cuda_kv_write, sl_cuda_attend;

// tile_pack.cu: a matrix of rows as in the file -> tiles.
cudaError_t sl_cuda_tile_pack(uint8_t *to, const uint8_t *from, uint8_t type, uint32_t n_row, uint32_t n_col,
                              cudaStream_t stream);

// Does this build hold code that the GPU can run?
bool sl_cuda_has_code(void);

// Floats of sl_cuda_task.partial.
static inline uint64_t sl_cuda_partial_floats(uint32_t n_row, uint32_t n_head, uint32_t v_dim) {
    return (uint64_t)n_row * n_head * SL_CUDA_N_SPLIT * (v_dim + 2);
}

// step.cu: copies a step's arguments from pinned host memory. The host block is
//   n_row, n_logit, n_range, 0, token (n_row_max), pos, slot (n_row_max each), logit_row (n_logit_max),
//   range (n_row_max) of {slot, first, end}, blk_table (n_slot, blk_stride)
// and the device block has the same layout; of the table only the ranges are copied.
typedef struct sl_cuda_step_shape {
    uint32_t n_row_max, n_logit_max, n_slot, blk_stride;
} sl_cuda_step_shape;
cudaError_t sl_cuda_fetch_step(int32_t *device, const int32_t *host, sl_cuda_step_shape s, cudaStream_t stream);

static inline uint64_t sl_cuda_step_rows(sl_cuda_step_shape s) { // ints before the ranges
    return 4 + (uint64_t)3 * s.n_row_max + s.n_logit_max;
}
static inline uint64_t sl_cuda_step_table(sl_cuda_step_shape s) { // ints before the table
    return sl_cuda_step_rows(s) + (uint64_t)3 * s.n_row_max;
}
static inline uint64_t sl_cuda_step_ints(sl_cuda_step_shape s) {
    return sl_cuda_step_table(s) + (uint64_t)s.n_slot * s.blk_stride;
}

#if defined(__cplusplus)
}
#endif

#endif
