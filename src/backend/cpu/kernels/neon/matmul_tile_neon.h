// SPDX-License-Identifier: MIT
//
// Block weights times ACT16 for the arm64 levels: everything but the sums of a group. A level includes a vocabulary
// (matmul_vec_neon.h), then defines
//   TILE_ROWS          rows that are multiplied together with half a panel; up to half as many take a whole one
//   act_cols           one row's block of 256 activations, as the level wants them
//   set_cols(cols, at) from ACT16
//   group_sums(x, panel, out, cols, begin, grp_len, n_row, n_vec)
//                      x[row][v] = the sums of the bytes of outputs out + 4 v .. out + 4 v + 3 times the activations of
//                      `row`, over the grp_len columns from `begin`; TILE_VECS vectors or half of them
// and includes this. The order of float operations is that of matmul.h.
#ifndef SL_BACKEND_CPU_MATMUL_TILE_NEON_H
#define SL_BACKEND_CPU_MATMUL_TILE_NEON_H

#include "backend/cpu/kernels/matmul_level.h"
#include "backend/cpu/kernels/matmul_panel.h"

// The activations of a tile.
typedef struct tile_acts {
    act_cols cols[TILE_ROWS];
    int32_t sum[TILE_ROWS][SL_PANEL_GROUPS]; // by group
    float d[TILE_ROWS];
} tile_acts;

SL_INLINE void prepare(tile_acts *t, uint32_t i, const sl_act_blk *act, uint32_t row, uint32_t grp_len) {
    sl_act_row at = sl_act_row_at(act, row);
    set_cols(&t->cols[i], &at);
    memcpy(t->sum[i], at.sum, sizeof t->sum[i]);
    if (grp_len == 32)
        for (uint32_t g = 0; g < SL_PANEL_GROUPS / 2; g++) t->sum[i][g] = t->sum[i][2 * g] + t->sum[i][2 * g + 1];
    t->d[i] = at.d;
}

// n_row rows times n_vec vectors of outputs from `out`: all loops over them unroll.
SL_INLINE void tile(float *acc, const sl_panel *panel, uint32_t out, const tile_acts *t, const sl_act_blk *act,
                    const uint32_t n_row, const uint32_t n_vec, const uint32_t grp_len, const bool minima) {
    const int32_t offset = act->offset - V_PANEL_FLIP;
    float32x4_t sum[TILE_ROWS][TILE_VECS];
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t v = 0; v < n_vec; v++) sum[i][v] = vdupq_n_f32(0);
    for (uint32_t g = 0; g < act->n_grp; g++) {
        int32x4_t x[TILE_ROWS][TILE_VECS];
        group_sums(x, panel, out, t->cols, g * grp_len, grp_len, n_row, n_vec);
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
        for (uint32_t v = 0; v < n_vec; v++) {
            float32x4_t group = vcvtq_f32_s32(vaddq_s32(x[i][v], vdupq_n_s32(-offset * t->sum[i][g])));
            sum[i][v] = vfmaq_f32(sum[i][v], vld1q_f32(&panel->scale[g][out + 4 * v]), group);
            if (minima) sum[i][v] = vfmaq_n_f32(sum[i][v], vld1q_f32(&panel->min[g][out + 4 * v]), (float)t->sum[i][g]);
        }
    }
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t v = 0; v < n_vec; v++) {
        float *to = acc + i * SL_PANEL_PAIR * SL_CPU_PANEL_ROWS + out + 4 * v;
        vst1q_f32(to, vfmaq_n_f32(vld1q_f32(to), sum[i][v], t->d[i]));
    }
}

// n_row rows times a panel.
SL_INLINE void tiles(float *acc, const sl_panel *panel, const tile_acts *t, const sl_act_blk *act, const uint32_t n_row,
                     const uint32_t grp_len, const bool minima) {
    const uint32_t n_vec = 2 * n_row <= TILE_ROWS ? TILE_VECS : TILE_VECS / 2;
    for (uint32_t out = 0; out < SL_CPU_PANEL_ROWS; out += 4 * n_vec)
        tile(acc, panel, out, t, act, n_row, n_vec, grp_len, minima);
}

SL_INLINE void multiply(float *acc, const sl_panel *panel, uint32_t n_panel, const sl_act_blk *act,
                        const uint32_t grp_len, const bool minima) {
    for (uint32_t row = 0; row < act->n_row; row += TILE_ROWS) {
        tile_acts t;
        uint32_t n = SL_MIN(act->n_row - row, (uint32_t)TILE_ROWS);
        for (uint32_t i = 0; i < n; i++) prepare(&t, i, act, row + i, grp_len);
        for (uint32_t p = 0; p < n_panel; p++) {
            float *to = acc + (row * SL_PANEL_PAIR + p) * SL_CPU_PANEL_ROWS;
            if (n == TILE_ROWS) tiles(to, panel + p, &t, act, TILE_ROWS, grp_len, minima);
            else if (n == 3) tiles(to, panel + p, &t, act, SL_MIN(3, TILE_ROWS), grp_len, minima);
            else if (n == 2) tiles(to, panel + p, &t, act, SL_MIN(2, TILE_ROWS), grp_len, minima);
            else tiles(to, panel + p, &t, act, 1, grp_len, minima);
        }
    }
}

#include "backend/cpu/kernels/matmul_types.h"

#endif
