// SPDX-License-Identifier: MIT
//
// The walk of a matrix product with block weights: for as many rows as the second-level cache holds, for each pair of
// panels, for each 256 columns, unpack once and multiply with these rows. The unpacked pair stays in the first-level
// cache. Knows nothing of vectors.
#include "backend/cpu/kernels/matmul.h"

#include <string.h>

#include "base/compiler.h"

enum {
    EDGE_STRIDE = 8 * 34 + 8, // the bytes of 256 columns of any type, with room to spare
    CACHED_BYTES = 1 << 20,   // of activations, which all panels read
    ROW_STEP = 48,            // whole tiles of every level
};

// The scratch of a thread.
typedef struct walk {
    sl_panel panel[SL_PANEL_PAIR];
    // The last rows of a matrix whose n_out is no multiple of the panel.
    uint8_t edge[SL_CPU_PANEL_ROWS * EDGE_STRIDE];
    float acc[]; // (n_row, SL_PANEL_PAIR, SL_CPU_PANEL_ROWS), and behind it the rows that a way wants arranged
} walk;

// How many rows are multiplied in one walk.
static uint32_t rows_at_once(uint64_t act_stride, uint32_t n_row) {
    uint64_t fit = CACHED_BYTES / act_stride / ROW_STEP * ROW_STEP;
    return (uint32_t)SL_MIN(SL_MAX(fit, (uint64_t)ROW_STEP), (uint64_t)n_row);
}

static uint64_t acc_len(uint32_t n_row) { return (uint64_t)n_row * SL_PANEL_PAIR * SL_CPU_PANEL_ROWS; }

uint64_t sl_matmul_scratch_bytes(sl_type type, uint32_t n_col, uint32_t n_row) {
    const sl_type_info *info = sl_type_find(type);
    if (!info || info->blk_len == 1) return 0; // float weights are multiplied as they are
    uint64_t stride = sl_act16_row_bytes(n_col);
    n_row = rows_at_once(stride, n_row);
    return sizeof(walk) + acc_len(n_row) * sizeof(float) + n_row * stride;
}

// Rows as the way wants them, in the scratch.
static void arrange_rows(walk *w, sl_act_blk *act, sl_act_arrange_fn *arrange, uint32_t n_col) {
    uint8_t *to = (uint8_t *)(w->acc + acc_len(act->n_row));
    const uint64_t stride = sl_act16_row_bytes(n_col), n_planes = 2 * (uint64_t)act->n_pad;
    for (uint32_t row = 0; row < act->n_row; row++) {
        const uint8_t *from = act->rows + row * act->stride;
        arrange(to + row * stride, from, act->n_pad);
        memcpy(to + row * stride + n_planes, from + n_planes, stride - n_planes);
    }
    act->rows = to;
    act->stride = stride;
}

// One walk's place: n_panel panels of n_out outputs from `out`, and the columns of an ACT16 block.
typedef struct place {
    uint32_t out, n_out, n_panel;
    uint32_t n_blk, n_bytes; // of a row, in these columns
    uint64_t skip;           // bytes of a row before them
} place;

// A panel that is cut short by the end of the matrix is unpacked from a copy, so that unpackers always see whole panels
// and nothing past the matrix is read.
static void unpack_file(walk *w, const sl_panel_way *way, const sl_cpu_matmul *m, const place *at,
                        const uint8_t *next) {
    for (uint32_t i = 0; i < at->n_panel; i++, next += at->n_bytes * SL_CPU_PANEL_ROWS) {
        uint32_t n_row = at->n_out - i * SL_CPU_PANEL_ROWS;
        const uint8_t *from = m->weight + (at->out + i * SL_CPU_PANEL_ROWS) * m->w_row_bytes + at->skip;
        sl_panel_source source = {from, m->w_row_bytes, at->n_blk, next};
        if (n_row < SL_CPU_PANEL_ROWS) {
            for (uint32_t j = 0; j < n_row; j++)
                memcpy(w->edge + j * EDGE_STRIDE, from + j * m->w_row_bytes, at->n_bytes);
            memset(w->edge + n_row * EDGE_STRIDE, 0, (SL_CPU_PANEL_ROWS - n_row) * EDGE_STRIDE);
            source.w = w->edge;
            source.w_row_bytes = EDGE_STRIDE;
        }
        way->unpack_file(&w->panel[i], &source);
    }
}

static void unpack_packed(walk *w, const sl_panel_way *way, const sl_cpu_matmul *m, const place *at) {
    for (uint32_t i = 0; i < at->n_panel; i++) {
        uint32_t out = at->out + i * SL_CPU_PANEL_ROWS;
        sl_panel_source source = {.w = m->weight + out * m->w_row_bytes + at->skip * SL_CPU_PANEL_ROWS,
                                  .n_blk = at->n_blk};
        way->unpack_packed(&w->panel[i], &source);
    }
}

static void store(const sl_cpu_matmul *m, const float *acc, uint32_t out, uint32_t n_out) {
    const float *bias = m->bias ? m->bias + out : NULL;
    for (uint32_t row = 0; row < m->n_row; row++, acc += SL_PANEL_PAIR * SL_CPU_PANEL_ROWS) {
        float *to = (float *)(void *)((uint8_t *)m->out + row * m->out_stride) + out;
        const float *add =
            m->add ? (const float *)(const void *)((const uint8_t *)m->add + row * m->add_stride) + out : NULL;
        // One loop for each case, so that compilers make vectors of them.
        if (!bias && !add) memcpy(to, acc, n_out * sizeof *to);
        else if (!add)
            for (uint32_t i = 0; i < n_out; i++) to[i] = acc[i] + bias[i];
        else if (!bias)
            for (uint32_t i = 0; i < n_out; i++) to[i] = acc[i] + add[i];
        else
            for (uint32_t i = 0; i < n_out; i++) to[i] = acc[i] + bias[i] + add[i];
    }
}

static void multiply_rows(const sl_panel_kind *kind, const sl_cpu_matmul *m, uint32_t out_begin, uint32_t out_end,
                          walk *w) {
    const sl_type_info *info = sl_type_find(kind->type);
    uint32_t n_chunk = (m->n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN;
    // A few rows wait for memory: one panel after the other is one stream. Many rows are read again for each walk.
    bool one = m->packed && m->n_row <= SL_FEW_ROWS, few = one && kind->few;
    uint32_t step = SL_CPU_PANEL_ROWS * (one ? 1 : SL_PANEL_PAIR);
    sl_act_blk act = {.rows = m->act,
                      .stride = m->act_stride,
                      .n_row = m->n_row,
                      .n_pad = n_chunk * SL_ACT_BLK_LEN,
                      .offset = kind->offset};
    const sl_panel_way *way = m->n_row > SL_FEW_ROWS && kind->wide ? kind->wide : &kind->way;
    if (!few && way->arrange) arrange_rows(w, &act, way->arrange, m->n_col);
    for (uint32_t out = out_begin; out < out_end; out += step) {
        place at = {.out = out, .n_out = SL_MIN(out_end - out, step)};
        at.n_panel = (at.n_out + SL_CPU_PANEL_ROWS - 1) / SL_CPU_PANEL_ROWS;
        // While a pair is multiplied the bytes of the next are fetched, in the order in which they lie in memory.
        const uint8_t *next = m->weight + (out + at.n_out < out_end ? out + at.n_out : out) * m->w_row_bytes;
        if (few) {
            kind->few(w->acc, m->weight + out * m->w_row_bytes, m->n_col, &act);
            store(m, w->acc, out, at.n_out);
            continue;
        }
        memset(w->acc, 0, (uint64_t)m->n_row * SL_PANEL_PAIR * SL_CPU_PANEL_ROWS * sizeof(float));
        for (; act.blk < n_chunk; act.blk++) {
            uint32_t n_col = SL_MIN(m->n_col - act.blk * SL_ACT_BLK_LEN, (uint32_t)SL_ACT_BLK_LEN);
            at.n_blk = n_col / info->blk_len;
            at.n_bytes = at.n_blk * info->blk_bytes;
            if (m->packed) unpack_packed(w, way, m, &at);
            else unpack_file(w, way, m, &at, next + at.skip * SL_CPU_PANEL_ROWS * at.n_panel);
            at.skip += at.n_bytes;
            act.n_grp = n_col / kind->grp_len;
            way->multiply(w->acc, w->panel, at.n_panel, &act);
        }
        act.blk = 0;
        store(m, w->acc, out, at.n_out);
    }
}

void sl_panel_matmul(const sl_panel_kind *kind, const sl_cpu_matmul *m, uint32_t out_begin, uint32_t out_end,
                     void *scratch) {
    uint32_t step = rows_at_once(m->act_stride, m->n_row);
    for (uint32_t row = 0; row < m->n_row; row += step) {
        sl_cpu_matmul part = *m;
        part.n_row = SL_MIN(m->n_row - row, step);
        part.act += row * m->act_stride;
        part.out = (float *)(void *)((uint8_t *)m->out + row * m->out_stride);
        if (m->add) part.add = (const float *)(const void *)((const uint8_t *)m->add + row * m->add_stride);
        multiply_rows(kind, &part, out_begin, out_end, scratch);
    }
}
