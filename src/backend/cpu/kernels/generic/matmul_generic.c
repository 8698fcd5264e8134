// SPDX-License-Identifier: MIT
//
// Matrix products in plain C, for any processor: the order of matmul.h and nothing else. The columns of a group are
// added as int32 over the 16 outputs of a panel, which compilers turn into whatever vectors they may use.
#include "backend/cpu/kernels/generic/matmul_vec_generic.h"
#include "backend/cpu/kernels/matmul_level.h"
#include "backend/cpu/kernels/matmul_panel.h"

#include <math.h>

// Adds one panel's share of one row. a: 256 activations; sums: of 16 columns each.
SL_INLINE void multiply_row(float *acc, const sl_panel *panel, const sl_act_blk *act, const int16_t *a,
                            const int32_t *sums, float d, uint32_t grp_len, bool minima) {
    float sum[SL_CPU_PANEL_ROWS] = {0};
    for (uint32_t g = 0; g < act->n_grp; g++) {
        int32_t grp_sum = grp_len == 16 ? sums[g] : sums[2 * g] + sums[2 * g + 1];
        int32_t x[SL_CPU_PANEL_ROWS];
        for (uint32_t i = 0; i < SL_CPU_PANEL_ROWS; i++) x[i] = -act->offset * grp_sum;
        for (uint32_t k = g * grp_len; k < (g + 1) * grp_len; k += 4) {
            const uint8_t(*q)[4] = panel->q[k / 4];
#pragma omp simd
            for (uint32_t i = 0; i < SL_CPU_PANEL_ROWS; i++)
                x[i] += q[i][0] * a[k] + q[i][1] * a[k + 1] + q[i][2] * a[k + 2] + q[i][3] * a[k + 3];
        }
        for (uint32_t i = 0; i < SL_CPU_PANEL_ROWS; i++) {
            sum[i] = fmaf(panel->scale[g][i], (float)x[i], sum[i]);
            if (minima) sum[i] = fmaf(panel->min[g][i], (float)grp_sum, sum[i]);
        }
    }
    for (uint32_t i = 0; i < SL_CPU_PANEL_ROWS; i++) acc[i] = fmaf(d, sum[i], acc[i]);
}

SL_INLINE void multiply(float *acc, const sl_panel *panel, uint32_t n_panel, const sl_act_blk *act, uint32_t grp_len,
                        bool minima) {
    for (uint32_t row = 0; row < act->n_row; row++) {
        sl_act_row r = sl_act_row_at(act, row);
        int16_t a[SL_ACT_BLK_LEN];
        int32_t sums[SL_ACT_BLK_LEN / SL_ACT_SUM_LEN];
        for (uint32_t k = 0; k < SL_ACT_BLK_LEN; k++) a[k] = (int16_t)(SL_ACT_BASE * r.hi[k] + r.lo[k]);
        memcpy(sums, r.sum, sizeof sums);
        for (uint32_t p = 0; p < n_panel; p++)
            multiply_row(acc + (row * SL_PANEL_PAIR + p) * SL_CPU_PANEL_ROWS, &panel[p], act, a, sums, r.d, grp_len,
                         minima);
    }
}

#include "backend/cpu/kernels/matmul_types.h"

void sl_cpu_matmul_init_generic(sl_cpu_kernels *k) {
    set_matmul_blocks(k);
    sl_cpu_matmul_init_float_generic(k);
    k->quant = sl_cpu_quant_act_generic;
}
