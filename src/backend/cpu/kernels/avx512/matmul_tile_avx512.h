// SPDX-License-Identifier: MIT
//
// AVX-512 VNNI: a panel times ACT16. Vector lanes are the 16 outputs of a panel; VPDPBUSD adds four columns of all of
// them at once, first for the high plane of a group and then, to 256 times that, for the low one.
#ifndef SL_BACKEND_CPU_MATMUL_TILE_AVX512_H
#define SL_BACKEND_CPU_MATMUL_TILE_AVX512_H

#include "backend/cpu/kernels/avx512/matmul_walk_avx512.h"

// One plane of a group: x += panel * a.
SL_INLINE void add_plane(__m512i x[TILE_ROWS][SL_PANEL_PAIR], const sl_panel *panel, const int8_t *const a[TILE_ROWS],
                         uint32_t at, const uint32_t n_row, const uint32_t n_panel, const uint32_t grp_len) {
    SL_UNROLL
    for (uint32_t j = 0; j < grp_len; j += 4) {
        uint32_t k = at + j;
        __m512i q[SL_PANEL_PAIR];
        SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++) q[p] = _mm512_load_si512(panel[p].q[k / 4]);
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) {
            __m512i four = four_acts(a[i] + k);
            SL_UNROLL
            for (uint32_t p = 0; p < n_panel; p++) x[i][p] = _mm512_dpbusd_epi32(x[i][p], q[p], four);
        }
    }
}

SL_INLINE void tile(float *acc, const sl_panel *panel, const sl_act_blk *act, uint32_t row, const uint32_t n_row,
                    const uint32_t n_panel, const uint32_t grp_len, const bool minima) {
    const int8_t *hi[TILE_ROWS], *lo[TILE_ROWS];
    act_sums sums[TILE_ROWS];
    float d[TILE_ROWS];
    __m512 sum[TILE_ROWS][SL_PANEL_PAIR];
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) {
        sl_act_row at = sl_act_row_at(act, row + i);
        hi[i] = at.hi, lo[i] = at.lo, d[i] = at.d;
        set_sums(&sums[i], at.sum, act->offset, grp_len, minima);
        SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++) sum[i][p] = _mm512_setzero_ps();
    }
    for (uint32_t g = 0; g < act->n_grp; g++) {
        __m512i x[TILE_ROWS][SL_PANEL_PAIR];
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++) x[i][p] = _mm512_setzero_si512();
        add_plane(x, panel, hi, g * grp_len, n_row, n_panel, grp_len);
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++) x[i][p] = _mm512_slli_epi32(x[i][p], SL_ACT_SHIFT);
        add_plane(x, panel, lo, g * grp_len, n_row, n_panel, grp_len);
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++)
            sum[i][p] = add_group(sum[i][p], x[i][p], _mm512_load_ps(panel[p].scale[g]),
                                  _mm512_load_ps(panel[p].min[g]), &sums[i], g, minima);
    }
    add_tile(acc, row, sum, d, n_row, n_panel);
}

#endif
