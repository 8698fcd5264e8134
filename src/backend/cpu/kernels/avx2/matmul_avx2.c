// SPDX-License-Identifier: MIT
//
// AVX2: block weights times ACT16. The two planes are joined to 16-bit activations once for a block of columns, and a
// panel's bytes are widened as they are read, so VPMADDWD needs no care for saturation (VPMADDUBSW would). A vector
// holds 4 outputs with two sums each, of columns 0, 1 and 2, 3 of every four; a group's end adds these.
#include "backend/cpu/kernels/avx2/matmul_vec_avx2.h"
#include "backend/cpu/kernels/matmul_level.h"
#include "backend/cpu/kernels/matmul_panel.h"

enum { TILE_ROWS = 3 };

typedef struct tile_row {
    _Alignas(32) int16_t a[SL_ACT_BLK_LEN];
    int32_t sum[SL_PANEL_GROUPS]; // by group
    float d;
} tile_row;

SL_INLINE void prepare(tile_row *r, const sl_act_blk *act, uint32_t row, uint32_t grp_len) {
    sl_act_row at = sl_act_row_at(act, row);
    const __m256i base = _mm256_set1_epi16(SL_ACT_BASE);
    for (uint32_t k = 0; k < SL_ACT_BLK_LEN; k += 16) {
        __m256i hi = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(at.hi + k)));
        __m256i lo = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(at.lo + k)));
        _mm256_store_si256((void *)(r->a + k), _mm256_add_epi16(_mm256_mullo_epi16(hi, base), lo));
    }
    memcpy(r->sum, at.sum, sizeof r->sum);
    if (grp_len == 32)
        for (uint32_t g = 0; g < SL_PANEL_GROUPS / 2; g++) r->sum[g] = r->sum[2 * g] + r->sum[2 * g + 1];
    r->d = at.d;
}

// Eight outputs of a group: rows 0..3 and 4..7, two sums each, to one float each.
SL_INLINE __m256 join(__m256i x0, __m256i x1, int32_t start) {
    __m256i x = _mm256_permute4x64_epi64(_mm256_hadd_epi32(x0, x1), _MM_SHUFFLE(3, 1, 2, 0));
    return _mm256_cvtepi32_ps(_mm256_add_epi32(x, _mm256_set1_epi32(start)));
}

// n_row rows times half a panel: all loops over rows unroll.
SL_INLINE void tile(float *acc, const sl_panel *panel, uint32_t half, const tile_row *r, const sl_act_blk *act,
                    const uint32_t n_row, const uint32_t grp_len, const bool minima) {
    __m256 sum[TILE_ROWS];
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) sum[i] = _mm256_setzero_ps();
    for (uint32_t g = 0; g < act->n_grp; g++) {
        __m256i x[TILE_ROWS][2];
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) x[i][0] = x[i][1] = _mm256_setzero_si256();
        SL_UNROLL
        for (uint32_t k = 0; k < grp_len; k += 4) {
            uint32_t at = g * grp_len + k;
            const uint8_t *q = panel->q[at / 4][half * 8];
            __m256i q0 = _mm256_cvtepu8_epi16(_mm_load_si128((const void *)q));
            __m256i q1 = _mm256_cvtepu8_epi16(_mm_load_si128((const void *)(q + 16)));
            SL_UNROLL
            for (uint32_t i = 0; i < n_row; i++) {
                int64_t four;
                memcpy(&four, r[i].a + at, sizeof four);
                __m256i a = _mm256_set1_epi64x(four);
                x[i][0] = _mm256_add_epi32(x[i][0], _mm256_madd_epi16(q0, a));
                x[i][1] = _mm256_add_epi32(x[i][1], _mm256_madd_epi16(q1, a));
            }
        }
        __m256 scale = _mm256_load_ps(&panel->scale[g][half * 8]), min = _mm256_load_ps(&panel->min[g][half * 8]);
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) {
            sum[i] = _mm256_fmadd_ps(scale, join(x[i][0], x[i][1], -act->offset * r[i].sum[g]), sum[i]);
            if (minima) sum[i] = _mm256_fmadd_ps(min, _mm256_set1_ps((float)r[i].sum[g]), sum[i]);
        }
    }
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) {
        float *to = acc + i * SL_PANEL_PAIR * SL_CPU_PANEL_ROWS + half * 8;
        _mm256_storeu_ps(to, _mm256_fmadd_ps(_mm256_set1_ps(r[i].d), sum[i], _mm256_loadu_ps(to)));
    }
}

SL_INLINE void multiply(float *acc, const sl_panel *panel, uint32_t n_panel, const sl_act_blk *act,
                        const uint32_t grp_len, const bool minima) {
    for (uint32_t row = 0; row < act->n_row; row += TILE_ROWS) {
        tile_row r[TILE_ROWS];
        uint32_t n = SL_MIN(act->n_row - row, (uint32_t)TILE_ROWS);
        for (uint32_t i = 0; i < n; i++) prepare(&r[i], act, row + i, grp_len);
        for (uint32_t p = 0; p < n_panel; p++)
            for (uint32_t half = 0; half < 2; half++) {
                float *to = acc + (row * SL_PANEL_PAIR + p) * SL_CPU_PANEL_ROWS;
                if (n == 3) tile(to, panel + p, half, r, act, 3, grp_len, minima);
                else if (n == 2) tile(to, panel + p, half, r, act, 2, grp_len, minima);
                else tile(to, panel + p, half, r, act, 1, grp_len, minima);
            }
    }
}

#include "backend/cpu/kernels/matmul_types.h"

void sl_cpu_matmul_init_avx2(sl_cpu_kernels *k) {
    set_matmul_blocks(k);
    sl_cpu_matmul_init_float_avx2(k);
    k->quant = sl_cpu_quant_act_avx2;
}
