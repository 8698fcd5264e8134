// SPDX-License-Identifier: MIT
//
// Matrix products: what the levels share. Every level unpacks block weights into the same panel (matmul_unpack.h,
// compiled once for each level over that level's vectors) and multiplies it with ACT16 rows by a kernel of its own.
//
// The order of float operations, of one output and one row, for block types; it is the same on every level and at every
// width, so all bits are:
//   acc = 0
//   for each 256 columns (an ACT16 block with scale da; the last one may be short):
//       s = 0
//       for each group g of 32 (or 16) columns, rising:
//           x = sum over the group of (q - offset) * a          exact, as int32
//           s = fma(scale[g], (float)x, s)
//           if the type has minima: s = fma(min[g], (float)(sum of a over the group), s)
//       acc = fma(da, s, acc)
//   out = acc [+ bias] [+ add]
// with a = SL_ACT_BASE * hi + lo, q the unsigned byte of the panel, scale = d * sub-scale and min = -dmin * sub-min
// (exact products in float: 11 bits times at most 8).
//
// Bounds, with |a| <= 32639, |hi| <= 127 and |lo| <= 128, at the worst contents (bytes of a panel may be anything):
//   |x|: Q8_0 32 * 128 * 32639 = 133.7e6; Q6_K 16 * 32 * 32639 = 16.7e6; Q4_K 32 * 240 * 32639 = 250.7e6 (its high
//   nibbles stay 16 times as large, with scales a 16th as large); the rest less. Before the offset is taken off
//   32 * 255 * 32639 = 266.3e6, the high plane's part of it 265.3e6. All below 2^31.
//   |sum of a| <= 32 * 32639 = 1.04e6 < 2^24: exact in float.
#ifndef SL_BACKEND_CPU_MATMUL_H
#define SL_BACKEND_CPU_MATMUL_H

#include "backend/cpu/kernels/kernels.h"

enum {
    SL_PANEL_QUADS = SL_ACT_BLK_LEN / 4,   // groups of four columns
    SL_PANEL_GROUPS = SL_ACT_BLK_LEN / 16, // groups of columns with one scale, at most
    SL_PANEL_PAIR = 2,                     // panels that are multiplied together
    SL_FEW_ROWS = 8,
};

// SL_CPU_PANEL_ROWS outputs times SL_ACT_BLK_LEN columns. Fits the first-level cache, also as a pair.
typedef struct sl_panel {
    union {
        uint8_t q[SL_PANEL_QUADS][SL_CPU_PANEL_ROWS][4];       // value + offset, or
        int16_t two[2 * SL_PANEL_QUADS][SL_CPU_PANEL_ROWS][2]; // values: of columns 4 k and 4 k + 2, of the other two
    };
    float scale[SL_PANEL_GROUPS][SL_CPU_PANEL_ROWS];
    float min[SL_PANEL_GROUPS][SL_CPU_PANEL_ROWS]; // only for types that have minima
} sl_panel;

// Rows of ACT16, seen at one block of 256 columns.
typedef struct sl_act_blk {
    const uint8_t *rows; // first row
    uint64_t stride;     // bytes
    uint32_t n_row;
    uint32_t n_pad; // columns of a row, with padding
    uint32_t blk;   // which 256 columns
    uint32_t n_grp; // groups of columns in it
    int32_t offset; // of the panel's bytes
} sl_act_blk;

// What a panel is unpacked from: n_blk blocks, together at most SL_ACT_BLK_LEN columns, of each of SL_CPU_PANEL_ROWS
// rows.
typedef struct sl_panel_source {
    const uint8_t *w;     // in panel order the bytes of all rows; else of the first row, and
    uint64_t w_row_bytes; // from row to row
    uint32_t n_blk;
    const uint8_t *next; // not for panel order: bytes wanted in a while; only asked for, so any address will do
} sl_panel_source;

typedef void sl_panel_unpack_fn(sl_panel *out, const sl_panel_source *from);
// acc (n_row, SL_PANEL_PAIR, SL_CPU_PANEL_ROWS) += these 256 columns; panels past n_panel are left alone.
typedef void sl_panel_multiply_fn(float *acc, const sl_panel *panel, uint32_t n_panel, const sl_act_blk *act);

// acc (n_row <= SL_FEW_ROWS, SL_PANEL_PAIR, SL_CPU_PANEL_ROWS), of which the first panel is written, = all n_col
// columns of a panel in panel order, without unpacking it to memory first. act is at the first block.
typedef void sl_panel_few_fn(float *acc, const uint8_t *panel, uint32_t n_col, const sl_act_blk *act);

// Rows of ACT16 as a product wants them, in as many bytes. Scales and sums stay where they are.
typedef void sl_act_arrange_fn(uint8_t *out, const uint8_t *row, uint32_t n_pad);

// By way of panels.
typedef struct sl_panel_way {
    sl_panel_unpack_fn *unpack_file, *unpack_packed; // the order of the file; panel order
    sl_panel_multiply_fn *multiply;
    sl_act_arrange_fn *arrange; // or NULL
} sl_panel_way;

// How a level computes a type.
typedef struct sl_panel_kind {
    sl_type type;
    uint8_t grp_len; // 16 or 32
    int32_t offset;
    sl_panel_way way;
    const sl_panel_way *wide; // of more than SL_FEW_ROWS rows; or NULL: the same
    sl_panel_few_fn *few;     // of few rows, in panel order; or NULL: by way of panels
} sl_panel_kind;

// matmul.c: the walk over panels and blocks of columns.
void sl_panel_matmul(const sl_panel_kind *kind, const sl_cpu_matmul *m, uint32_t out_begin, uint32_t out_end,
                     void *scratch);
uint64_t sl_matmul_scratch_bytes(sl_type type, uint32_t n_col, uint32_t n_row);

// One row's block of ACT16 as pointers.
typedef struct sl_act_row {
    const int8_t *hi, *lo;
    const uint8_t *sum; // int32_t[16], 4-byte aligned
    float d;
} sl_act_row;

static inline sl_act_row sl_act_row_at(const sl_act_blk *act, uint32_t row) {
    const uint8_t *p = act->rows + row * act->stride, *tail = p + 2 * (uint64_t)act->n_pad;
    return (sl_act_row){
        .hi = (const int8_t *)p + act->blk * SL_ACT_BLK_LEN,
        .lo = (const int8_t *)p + act->n_pad + act->blk * SL_ACT_BLK_LEN,
        .d = ((const float *)(const void *)tail)[act->blk],
        .sum = tail + act->n_pad / SL_ACT_BLK_LEN * 4 + act->blk * (SL_ACT_BLK_LEN / SL_ACT_SUM_LEN) * 4,
    };
}

// Fill matmul, matmul_scratch_bytes and quant.
void sl_cpu_matmul_init_generic(sl_cpu_kernels *k);
void sl_cpu_matmul_init_avx2(sl_cpu_kernels *k);
void sl_cpu_matmul_init_avx512(sl_cpu_kernels *k);
void sl_cpu_matmul_init_neon(sl_cpu_kernels *k);

#endif
