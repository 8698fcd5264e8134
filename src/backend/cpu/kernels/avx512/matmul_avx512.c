// SPDX-License-Identifier: MIT
//
// AVX-512 VNNI: block weights times ACT16. Vector lanes are the 16 outputs of a panel; VPDPBUSD adds four columns of
// all of them at once, for the high and the low plane apart. A tile of rows and panels keeps its sums in registers.
#include "backend/cpu/kernels/avx512/matmul_vec_avx512.h"
#include "backend/cpu/kernels/matmul_level.h"
#include "backend/cpu/kernels/matmul_unpack.h"

enum { TILE_ROWS = 4 };

// A row's block of activations as the tile wants it: its sums by group, split so that the panel's offset can be taken
// off each plane (xh and xl of matmul.h).
typedef struct tile_row {
    sl_act_row at;
    int32_t start_hi[SL_PANEL_GROUPS], start_lo[SL_PANEL_GROUPS];
    float sum[SL_PANEL_GROUPS];
} tile_row;

// Sums of 16 columns -> sums of 32: pairs added, in the lower half.
SL_INLINE __m512i pair_sums(__m512i s) {
    __m512i pairs = _mm512_add_epi32(s, _mm512_srli_epi64(s, 32));
    return _mm512_castsi256_si512(_mm512_cvtepi64_epi32(pairs));
}

SL_INLINE void prepare(tile_row *r, const sl_act_blk *act, uint32_t row, uint32_t grp_len, bool minima) {
    r->at = sl_act_row_at(act, row);
    __m512i sum = _mm512_loadu_si512(r->at.sum);
    if (grp_len == 32) sum = pair_sums(sum);
    if (minima) {
        _mm512_storeu_ps(r->sum, _mm512_cvtepi32_ps(sum));
        return;
    }
    // Any split hi, lo with SL_ACT_BASE * hi + lo = sum and a small lo will do.
    __m512i hi = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(1.0f / SL_ACT_BASE)));
    __m512i lo = _mm512_sub_epi32(sum, _mm512_mullo_epi32(hi, _mm512_set1_epi32(SL_ACT_BASE)));
    __m512i offset = _mm512_set1_epi32(-act->offset);
    _mm512_storeu_si512(r->start_hi, _mm512_mullo_epi32(hi, offset));
    _mm512_storeu_si512(r->start_lo, _mm512_mullo_epi32(lo, offset));
}

SL_INLINE __m512i four(const int8_t *p) {
    int32_t four_bytes;
    memcpy(&four_bytes, p, sizeof four_bytes);
    return _mm512_set1_epi32(four_bytes);
}

// n_row rows times n_panel panels: all loops over them unroll.
SL_INLINE void tile(float *acc, const sl_panel *panel, const tile_row *r, uint32_t n_grp, const uint32_t n_row,
                    const uint32_t n_panel, const uint32_t grp_len, const bool minima) {
    __m512 sum[TILE_ROWS][SL_PANEL_PAIR];
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t p = 0; p < n_panel; p++) sum[i][p] = _mm512_setzero_ps();
    for (uint32_t g = 0; g < n_grp; g++) {
        __m512i hi[TILE_ROWS][SL_PANEL_PAIR], lo[TILE_ROWS][SL_PANEL_PAIR];
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++) {
            hi[i][p] = minima ? _mm512_setzero_si512() : _mm512_set1_epi32(r[i].start_hi[g]);
            lo[i][p] = minima ? _mm512_setzero_si512() : _mm512_set1_epi32(r[i].start_lo[g]);
        }
        SL_UNROLL
        for (uint32_t k = 0; k < grp_len; k += 4) {
            uint32_t at = g * grp_len + k;
            __m512i q[SL_PANEL_PAIR];
            SL_UNROLL
            for (uint32_t p = 0; p < n_panel; p++) q[p] = _mm512_load_si512(panel[p].q[at / 4]);
            SL_UNROLL
            for (uint32_t i = 0; i < n_row; i++) {
                __m512i ah = four(r[i].at.hi + at), al = four(r[i].at.lo + at);
                SL_UNROLL
                for (uint32_t p = 0; p < n_panel; p++) {
                    hi[i][p] = _mm512_dpbusd_epi32(hi[i][p], q[p], ah);
                    lo[i][p] = _mm512_dpbusd_epi32(lo[i][p], q[p], al);
                }
            }
        }
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++) {
            __m512 x = _mm512_fmadd_ps(_mm512_cvtepi32_ps(hi[i][p]), _mm512_set1_ps(SL_ACT_BASE),
                                       _mm512_cvtepi32_ps(lo[i][p]));
            sum[i][p] = _mm512_fmadd_ps(_mm512_load_ps(panel[p].scale[g]), x, sum[i][p]);
            if (minima)
                sum[i][p] = _mm512_fmadd_ps(_mm512_load_ps(panel[p].min[g]), _mm512_set1_ps(r[i].sum[g]), sum[i][p]);
        }
    }
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t p = 0; p < n_panel; p++) {
        float *to = acc + (i * SL_PANEL_PAIR + p) * SL_CPU_PANEL_ROWS;
        _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_set1_ps(r[i].at.d), sum[i][p], _mm512_loadu_ps(to)));
    }
}

SL_INLINE void multiply(float *acc, const sl_panel *panel, uint32_t n_panel, const sl_act_blk *act,
                        const uint32_t grp_len, const bool minima) {
    for (uint32_t row = 0; row < act->n_row; row += TILE_ROWS) {
        tile_row r[TILE_ROWS];
        uint32_t n = SL_MIN(act->n_row - row, (uint32_t)TILE_ROWS);
        for (uint32_t i = 0; i < n; i++) prepare(&r[i], act, row + i, grp_len, minima);
        float *to = acc + row * SL_PANEL_PAIR * SL_CPU_PANEL_ROWS;
        switch (2 * n + n_panel - 1) {
        case 2: tile(to, panel, r, act->n_grp, 1, 1, grp_len, minima); break;
        case 3: tile(to, panel, r, act->n_grp, 1, 2, grp_len, minima); break;
        case 4: tile(to, panel, r, act->n_grp, 2, 1, grp_len, minima); break;
        case 5: tile(to, panel, r, act->n_grp, 2, 2, grp_len, minima); break;
        case 6: tile(to, panel, r, act->n_grp, 3, 1, grp_len, minima); break;
        case 7: tile(to, panel, r, act->n_grp, 3, 2, grp_len, minima); break;
        case 8: tile(to, panel, r, act->n_grp, 4, 1, grp_len, minima); break;
        case 9: tile(to, panel, r, act->n_grp, 4, 2, grp_len, minima); break;
        }
    }
}

#define MULTIPLY(grp_len, minima)                                                                  \
    static void multiply_##grp_len##_##minima(float *acc, const sl_panel *panel, uint32_t n_panel, \
                                              const sl_act_blk *act) {                             \
        multiply(acc, panel, n_panel, act, grp_len, minima);                                       \
    }
MULTIPLY(16, 0)
MULTIPLY(16, 1)
MULTIPLY(32, 0)
MULTIPLY(32, 1)

SL_PANEL_TYPES(SL_PANEL_MATMUL)

void sl_cpu_matmul_init_avx512(sl_cpu_kernels *k) {
    SL_PANEL_TYPES(SL_PANEL_ENTRY)
    k->matmul_scratch_bytes = sl_matmul_scratch_bytes;
    sl_cpu_matmul_init_float_avx512(k);
    k->quant = sl_cpu_quant_act_avx512;
}
