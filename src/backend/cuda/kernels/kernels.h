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
#include <stdbool.h>

#include "plan/ir.h"

#if defined(__cplusplus)
extern "C" {
#endif

enum {
    SL_CUDA_NARROW = 8,        // rows of a step whose attention is spread over thread blocks by part
    SL_CUDA_QUANT_COLS = 4096, // columns of several rows that a product quantises itself
    SL_CUDA_HOPPER_SHARED = 227 * 1024,
    SL_CUDA_MOST_PARTS = 64, // of a row's positions, where they are no cluster
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
    uint32_t n_col;        // of out; of in for BEST
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
    float *partial;  // ATTEND of a narrow program: (row, head, part, v_dim + 2)
    uint32_t n_part; // in which attention walks the positions of a row, merged in order
} sl_cuda_task;

// A matrix in tiles (tile.h) with what becomes of its product.
typedef struct sl_cuda_matrix {
    const uint8_t *weight;
    const float *bias;  // (n_row) or NULL
    const uint8_t *add; // floats to be added, or NULL
    uint8_t *out;
    uint64_t add_stride, out_stride; // bytes of a row
    uint32_t n_row;                  // outputs
    uint8_t type;
} sl_cuda_matrix;

// What a product reads. F32 rows are quantised (and normed) by every thread block for itself: of one row, of two that
// are not normed, or of several that have up to SL_CUDA_QUANT_COLS columns, where a thread block may have
// SL_CUDA_HOPPER_SHARED.
typedef enum sl_cuda_source { SL_CUDA_ACT16, SL_CUDA_QUANT, SL_CUDA_NORM_QUANT } sl_cuda_source;

// Up to three matrices that read the same activations, in one launch; of at most two types.
typedef struct sl_cuda_product {
    sl_cuda_step step;
    const uint8_t *in;
    uint64_t in_stride;
    const float *norm; // weight of NORM_QUANT, or NULL
    double inverse_n_col;
    float eps;
    uint32_t n_col, n_row_max, n_matrix;
    uint32_t n_sm, shared_bytes;
    uint8_t logit_rows, early, source;
    uint8_t large;    // takes the larger share of the shared memory: every second product of one row
    uint8_t glu, act; // glu: matrices 0 and 1 are gate and up, and matrix[0].out gets act(gate) * up
    sl_cuda_matrix matrix[3];
} sl_cuda_product;

// ROPE of K, KV_WRITE and ROPE of Q in one launch.
typedef struct sl_cuda_rope_kv {
    sl_cuda_task write;  // KV_WRITE; in[0] is K before its rotation
    sl_cuda_task rope_k; // attr.rope, in[1]
    sl_cuda_task rope_q;
} sl_cuda_rope_kv;

// The same with ATTEND in a program of one row.
typedef struct sl_cuda_attend_row {
    sl_cuda_task attend, write, rope_k, rope_q;
} sl_cuda_attend_row;

typedef cudaError_t sl_cuda_launch(const sl_cuda_task *task, cudaStream_t stream);

// rows.cu
sl_cuda_launch sl_cuda_embed, sl_cuda_rope_table, sl_cuda_norm, sl_cuda_rope, sl_cuda_glu, sl_cuda_add, sl_cuda_gather,
    sl_cuda_softcap;
// best.cu
sl_cuda_launch sl_cuda_best;
// quant_rows.cu
sl_cuda_launch sl_cuda_quant, sl_cuda_norm_quant, sl_cuda_glu_quant;
// matmul_rows.cu; in[1] != NULL is added (MATMUL_ADD)
sl_cuda_launch sl_cuda_matmul;
// matmul_tiles.cu
cudaError_t sl_cuda_matmul_tiles(const sl_cuda_product *product, cudaStream_t stream);
// May matrices of these types be in one launch?
bool sl_cuda_tiles_go_with(uint8_t type, uint8_t other);
// kv_write.cu
sl_cuda_launch sl_cuda_kv_write;
cudaError_t sl_cuda_rope_kv_write(const sl_cuda_rope_kv *task, cudaStream_t stream);
// attend.cu; attend_mma.cu for the shapes that sl_cuda_attend_has_mma knows
sl_cuda_launch sl_cuda_attend, sl_cuda_attend_mma;
bool sl_cuda_attend_has_mma(const sl_cuda_task *task);
cudaError_t sl_cuda_rope_attend(const sl_cuda_attend_row *task, cudaStream_t stream); // of such a shape
// Into how many parts may it divide the positions of a row?
uint32_t sl_cuda_attend_most_parts(void);

// tile_pack.cu: a matrix of rows as in the file -> tiles.
cudaError_t sl_cuda_tile_pack(uint8_t *to, const uint8_t *from, uint8_t type, uint32_t n_row, uint32_t n_col,
                              cudaStream_t stream);

// read.cu: reads memory that is 16-byte aligned and does nothing with it.
cudaError_t sl_cuda_read(const uint8_t *from, uint64_t n_bytes, cudaStream_t stream);

// Does this build hold code that the GPU can run?
bool sl_cuda_has_code(void);

// Floats of sl_cuda_task.partial.
static inline uint64_t sl_cuda_partial_floats(uint32_t n_row, uint32_t n_head, uint32_t n_part, uint32_t v_dim) {
    return (uint64_t)n_row * n_head * n_part * (v_dim + 2);
}

// Enough parts for a thread block on each multiprocessor, at most `most`, and a power of 2, as `most` is.
// Bits of a row depend on it, so the rows of a step may not.
static inline uint32_t sl_cuda_n_part(uint32_t n_sm, uint32_t n_head_kv, uint32_t most) {
    uint32_t n = 1;
    while (n < most && 2 * n <= n_sm / n_head_kv) n *= 2;
    return n;
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
