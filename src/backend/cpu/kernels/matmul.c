// SPDX-License-Identifier: MIT
//
// The walk of a matrix product with block weights: for each pair of panels, for each 256 columns, unpack once and
// multiply with all rows. The unpacked pair stays in the first-level cache and the sums of all rows in the second, so
// one walk serves one row as well as a prefill chunk. Knows nothing of vectors.
#include "backend/cpu/kernels/matmul.h"

#include <string.h>

#include "base/compiler.h"

enum {
    EDGE_STRIDE = 8 * 34 + 8, // the bytes of 256 columns of any type, with room to spare
};

// The scratch of a thread.
typedef struct walk {
    sl_panel panel[SL_PANEL_PAIR];
    uint8_t edge[SL_CPU_PANEL_ROWS * EDGE_STRIDE]; // the last rows of a matrix whose n_out is no multiple of the panel
    float acc[];                                   // (n_row, SL_PANEL_PAIR, SL_CPU_PANEL_ROWS)
} walk;

uint64_t sl_matmul_scratch_bytes(sl_type type, uint32_t n_col, uint32_t n_row) {
    (void)n_col;
    const sl_type_info *info = sl_type_find(type);
    if (!info || info->blk_len == 1) return 0; // float weights are multiplied as they are
    return sizeof(walk) + (uint64_t)n_row * SL_PANEL_PAIR * SL_CPU_PANEL_ROWS * sizeof(float);
}

// One panel's blocks of one row chunk; a panel that is cut short by the end of the matrix is unpacked from a copy, so
// that unpackers always see whole panels and nothing past the matrix is read.
static void unpack(walk *w, uint32_t i_panel, const sl_panel_kind *kind, sl_panel_source from, uint32_t n_row,
                   uint32_t n_bytes) {
    if (n_row < SL_CPU_PANEL_ROWS) {
        for (uint32_t i = 0; i < n_row; i++) memcpy(w->edge + i * EDGE_STRIDE, from.w + i * from.w_row_bytes, n_bytes);
        memset(w->edge + n_row * EDGE_STRIDE, 0, (SL_CPU_PANEL_ROWS - n_row) * EDGE_STRIDE);
        from.w = w->edge;
        from.w_row_bytes = EDGE_STRIDE;
    }
    kind->unpack(&w->panel[i_panel], &from);
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

void sl_panel_matmul(const sl_panel_kind *kind, const sl_cpu_matmul *m, uint32_t out_begin, uint32_t out_end,
                     void *scratch) {
    enum { PAIR_ROWS = SL_PANEL_PAIR * SL_CPU_PANEL_ROWS };
    walk *w = scratch;
    const sl_type_info *info = sl_type_find(kind->type);
    uint32_t n_chunk = (m->n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN;
    sl_act_blk act = {.rows = m->act,
                      .stride = m->act_stride,
                      .n_row = m->n_row,
                      .n_pad = n_chunk * SL_ACT_BLK_LEN,
                      .offset = kind->offset};
    for (uint32_t out = out_begin; out < out_end; out += PAIR_ROWS) {
        uint32_t n_out = SL_MIN(out_end - out, (uint32_t)PAIR_ROWS);
        uint32_t n_panel = (n_out + SL_CPU_PANEL_ROWS - 1) / SL_CPU_PANEL_ROWS;
        const uint8_t *weight = m->weight + out * m->w_row_bytes;
        // While a pair is multiplied the bytes of the next are fetched, in the order in which they lie in memory.
        const uint8_t *next = out + n_out < out_end ? weight + n_out * m->w_row_bytes : weight;
        memset(w->acc, 0, (uint64_t)m->n_row * PAIR_ROWS * sizeof(float));
        for (uint32_t chunk = 0; chunk < n_chunk; chunk++) {
            uint32_t n_col = SL_MIN(m->n_col - chunk * SL_ACT_BLK_LEN, (uint32_t)SL_ACT_BLK_LEN);
            uint32_t n_blk = n_col / info->blk_len, n_bytes = n_blk * info->blk_bytes;
            // In panel order a panel's blocks of these columns lie together; else they are a part of each row.
            uint64_t skip = (uint64_t)chunk * (SL_ACT_BLK_LEN / info->blk_len) * info->blk_bytes;
            uint64_t stride = m->packed ? n_bytes : m->w_row_bytes;
            const uint8_t *from = weight + (m->packed ? skip * SL_CPU_PANEL_ROWS : skip);
            for (uint32_t i = 0; i < n_panel; i++, next += n_bytes * SL_CPU_PANEL_ROWS) {
                uint32_t n_left = n_out - i * SL_CPU_PANEL_ROWS;
                sl_panel_source source = {from + i * SL_CPU_PANEL_ROWS * m->w_row_bytes, stride, n_blk, next};
                unpack(w, i, kind, source, m->packed ? SL_CPU_PANEL_ROWS : SL_MIN(n_left, (uint32_t)SL_CPU_PANEL_ROWS),
                       n_bytes);
            }
            act.blk = chunk;
            act.n_grp = n_col / kind->grp_len;
            kind->multiply(w->acc, w->panel, n_panel, &act);
        }
        store(m, w->acc, out, n_out);
    }
}
