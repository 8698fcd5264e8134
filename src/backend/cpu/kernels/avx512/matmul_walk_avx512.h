// SPDX-License-Identifier: MIT
//
// AVX-512: how tiles of rows and panels go over a product of many rows, whatever is multiplied in them. Includers
// define tile(). A tile keeps its sums in registers: 6 x 2 are enough chains to hide the latency of an instruction.
#ifndef SL_BACKEND_CPU_MATMUL_WALK_AVX512_H
#define SL_BACKEND_CPU_MATMUL_WALK_AVX512_H

#include "backend/cpu/kernels/avx512/matmul_act_avx512.h"

enum { TILE_ROWS = 6 };

// acc += a block of columns, of n_row rows from `row` times n_panel panels: all loops over them unroll.
SL_INLINE void tile(float *acc, const sl_panel *panel, const sl_act_blk *act, uint32_t row, const uint32_t n_row,
                    const uint32_t n_panel, const uint32_t grp_len, const bool minima);

// d: what the integers of a row are worth.
SL_INLINE void add_tile(float *acc, uint32_t row, __m512 sum[TILE_ROWS][SL_PANEL_PAIR], const float d[TILE_ROWS],
                        const uint32_t n_row, const uint32_t n_panel) {
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t p = 0; p < n_panel; p++) {
        float *to = acc + ((row + i) * SL_PANEL_PAIR + p) * SL_CPU_PANEL_ROWS;
        _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_set1_ps(d[i]), sum[i][p], _mm512_loadu_ps(to)));
    }
}

SL_INLINE void tiles(float *acc, const sl_panel *panel, const sl_act_blk *act, const uint32_t n_panel,
                     const uint32_t grp_len, const bool minima) {
    uint32_t row = 0;
    for (; row + TILE_ROWS <= act->n_row; row += TILE_ROWS)
        tile(acc, panel, act, row, TILE_ROWS, n_panel, grp_len, minima);
    for (; row + 2 <= act->n_row; row += 2) tile(acc, panel, act, row, 2, n_panel, grp_len, minima);
    if (row < act->n_row) tile(acc, panel, act, row, 1, n_panel, grp_len, minima);
}

SL_INLINE void multiply_tiles(float *acc, const sl_panel *panel, uint32_t n_panel, const sl_act_blk *act,
                              const uint32_t grp_len, const bool minima) {
    if (n_panel == SL_PANEL_PAIR) tiles(acc, panel, act, SL_PANEL_PAIR, grp_len, minima);
    else tiles(acc, panel, act, 1, grp_len, minima);
}

#endif
