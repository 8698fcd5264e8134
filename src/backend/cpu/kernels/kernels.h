// SPDX-License-Identifier: MIT
//
// The table of CPU kernels. It is filled with generic ones and then overwritten by rising level (select.c), once, at
// device open; compile copies the pointers that it needs into the program. A kernel knows nothing of plans, threads
// or models: it gets pointers and counts, and computes what its op in plan/ops.def says.
//
// The same bits: a kernel's result for a row depends on that row (and the weights) alone, never on how many rows, which
// range of outputs or which thread; the order of float operations is fixed per level and written at each kernel.
//
// Matrix products work on panels: PANEL_ROWS consecutive outputs (weight rows) unpacked into bytes interleaved by row
// ([k/4][row][4]), so that vector lanes are outputs and no horizontal sum is needed. Every width (1, 2..8, prefill)
// multiplies from the same panel in the same order, which is why their bits agree.
#ifndef SL_BACKEND_CPU_KERNELS_H
#define SL_BACKEND_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/ir.h"

enum {
    SL_CPU_PANEL_ROWS = 16,    // outputs of a panel; a range handed to matmul begins at a multiple of it
    SL_CPU_TILE_QUERIES = 32,  // query vectors (rows * heads) that attention takes through a KV block at once
    SL_CPU_ATTEND_CHUNK = 256, // positions that share a maximum
};

// out (n_row, n_out) = act (n_row, n_col) * weight (n_out, n_col)^T [+ bias (n_out)] [+ add (n_row, n_out)], in that
// order.
typedef struct sl_cpu_matmul {
    const uint8_t *weight; // rows of w_row_bytes, or the same bytes in panel order (backend/cpu/repack.h)
    bool packed;           // panel order; only block types
    uint64_t w_row_bytes;
    const uint8_t *act; // rows of act_stride bytes: ACT16 for block types, F32 for F32, F16 and BF16 weights
    uint64_t act_stride;
    float *out;
    uint64_t out_stride; // bytes
    const float *bias;   // or NULL
    const float *add;    // or NULL; may be the same memory as out
    uint64_t add_stride; // bytes
    uint32_t n_row, n_col, n_out;
} sl_cpu_matmul;

// Computes outputs [out_begin, out_end) of all rows. scratch: this thread's, 64-byte aligned, matmul_scratch_bytes().
typedef void sl_cpu_matmul_fn(const sl_cpu_matmul *m, uint32_t out_begin, uint32_t out_end, void *scratch);

// One layer's attention for the rows of a step.
typedef struct sl_cpu_attend {
    const float *q;       // (n_row, n_head * head_dim)
    const float *q_first; // likewise, for scores of the first block; NULL: q
    uint64_t q_stride;    // bytes, of both
    float *out;           // (n_row, n_head * v_dim)
    uint64_t out_stride;  // bytes
    const uint8_t *k, *v; // the layer's pools
    uint64_t k_blk_bytes, v_blk_bytes;
    uint64_t k_head_bytes, v_head_bytes;    // of a KV head in a block
    const int32_t *cell, *skip;             // (n_row) as in sl_step; skip may be NULL: 0
    const int32_t *slot, *open, *blk_table; // likewise
    const uint8_t *pool;                    // what the places of open blocks count from
    sl_plan_open k_open, v_open;
    int32_t blk_stride;
    uint32_t n_head, n_head_kv, head_dim, v_dim, window;
    uint32_t v_rot; // as in sl_plan_kv
    uint8_t type_k, type_v;
    float scale, softcap;
} sl_cpu_attend;

// Writes the K or V of one position (dim values of each KV head) into its block, at index `at` of the block; rotated as
// n_rot says, which may be of codes, which are for V alone, and of F16. No two positions share a byte.
typedef void sl_cpu_kv_write_fn(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, bool is_v,
                                uint32_t n_rot);

// Turns the K of a block that is full, in the order of an F16 block, into codes.
typedef void sl_cpu_kv_close_fn(uint8_t *blk, const uint16_t *open, uint32_t n_head_kv, uint32_t dim);

// Of a KV head in an open block.
static inline uint64_t sl_open_head_bytes(uint32_t dim) { return (uint64_t)SL_KV_BLK_LEN * dim * sizeof(uint16_t); }

// Query rows, all of one slot at consecutive cells, and query heads that share a KV head; rows * heads is at most
// SL_CPU_TILE_QUERIES.
typedef struct sl_cpu_tile {
    uint32_t row_begin, row_end, head_begin, head_end;
} sl_cpu_tile;

// Attention of a tile. scratch: this thread's, 64-byte aligned, attend_scratch_bytes() of the largest rows * heads.
typedef void sl_cpu_attend_fn(const sl_cpu_attend *a, const sl_cpu_tile *tile, void *scratch);
// The same in two steps, so that several threads can take part: chunks begin_k .. end_k - 1 of those that the tile sees
// into parts (attend_part_bytes() for each chunk); when all are there, the result, with the same bits.
typedef void sl_cpu_attend_span_fn(const sl_cpu_attend *a, const sl_cpu_tile *tile, int32_t begin_k, int32_t end_k,
                                   float *parts, void *scratch);
typedef void sl_cpu_attend_merge_fn(const sl_cpu_attend *a, const sl_cpu_tile *tile, float *parts, void *scratch);

typedef struct sl_cpu_kernels {
    const char *level; // "generic", "avx2", "neon" and so on; see select.c
    sl_cpu_matmul_fn *matmul[SL_TYPE_ID_COUNT];
    // Scratch of one thread for matrices of n_col columns and steps of n_row rows.
    uint64_t (*matmul_scratch_bytes)(sl_type type, uint32_t n_col, uint32_t n_row);

    // Rows. out and in may be the same unless said otherwise.
    void (*quant)(void *out, const float *in, uint32_t n_col); // out: one ACT16 row
    void (*norm)(float *out, const float *in, const float *weight, uint32_t n_col, uint32_t group, float eps);
    void (*glu)(float *out, const float *gate, const float *up, uint32_t n_col, uint8_t act);
    void (*add)(float *out, const float *a, const float *b, uint32_t n_col);
    void (*softcap)(float *out, const float *in, uint32_t n_col, float cap);
    void (*rope)(float *out, const float *in, const float *table, const sl_attr_rope *attr);

    sl_cpu_kv_write_fn *kv_write[SL_TYPE_ID_COUNT]; // by type of the cache; NULL: not possible
    sl_cpu_kv_close_fn *kv_close[SL_TYPE_ID_COUNT]; // NULL: not codes
    sl_cpu_attend_fn *attend;                       // K and V of any of these types
    sl_cpu_attend_span_fn *attend_span;
    sl_cpu_attend_merge_fn *attend_merge;
    uint64_t (*attend_scratch_bytes)(uint32_t n_query, uint32_t head_dim, uint32_t v_dim);
    uint64_t (*attend_part_bytes)(uint32_t n_query, uint32_t v_dim);
} sl_cpu_kernels;

// The levels, each in its own folder and compiled with its own flags; each overwrites what it has.
void sl_cpu_kernels_init_generic(sl_cpu_kernels *k);
void sl_cpu_kernels_init_avx2(sl_cpu_kernels *k);
void sl_cpu_kernels_init_avx512(sl_cpu_kernels *k);
void sl_cpu_kernels_init_amx(sl_cpu_kernels *k);
void sl_cpu_kernels_init_neon(sl_cpu_kernels *k);
void sl_cpu_kernels_init_dotprod(sl_cpu_kernels *k);
void sl_cpu_kernels_init_i8mm(sl_cpu_kernels *k);

#endif
