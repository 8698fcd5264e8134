// SPDX-License-Identifier: MIT
//
// AVX-512 VNNI: block weights times few rows of ACT16, straight from panel order. Nothing is stored on the way: the
// sink of the unpackers multiplies what it gets, so loads of weights come at an even pace and the memory is never
// idle. The order of float operations is that of matmul.h.
#include "backend/cpu/kernels/avx512/matmul_act_avx512.h"
#include "backend/cpu/kernels/avx512/matmul_few_avx512.h"
#include "backend/cpu/kernels/avx512/matmul_vec_avx512.h"

enum { TILE_ROWS = 4 };

// The product of one panel's 256 columns with n_row rows.
typedef struct sink {
    const sl_act_row *act;
    const act_sums *sums;
    __m512 *sum;         // (n_row)
    __m512 *scale, *min; // (SL_PANEL_GROUPS)
    uint32_t n_row, grp_len;
    bool minima;
} sink;

SL_INLINE void put_scale(sink *out, uint32_t grp, uint32_t row, __m512 v) {
    (void)row;
    out->scale[grp] = v;
}
SL_INLINE void put_min(sink *out, uint32_t grp, uint32_t row, __m512 v) {
    (void)row;
    out->min[grp] = v;
}
SL_INLINE void put_cols(sink *out, uint32_t at, uint32_t row, const __m512i q[8]) {
    const uint32_t n_grp = 32 / out->grp_len, n_quad = out->grp_len / 4;
    (void)row;
    SL_UNROLL
    for (uint32_t g = 0; g < n_grp; g++) SL_UNROLL
    for (uint32_t i = 0; i < out->n_row; i++) {
        const int8_t *hi = out->act[i].hi + 32 * at + g * out->grp_len, *lo = out->act[i].lo + (hi - out->act[i].hi);
        uint32_t grp = n_grp * at + g;
        __m512i xh = _mm512_setzero_si512(), xl = xh;
        SL_UNROLL
        for (uint32_t k = 0; k < n_quad; k++) {
            xh = _mm512_dpbusd_epi32(xh, q[g * n_quad + k], four_acts(hi + 4 * k));
            xl = _mm512_dpbusd_epi32(xl, q[g * n_quad + k], four_acts(lo + 4 * k));
        }
        __m512i x = _mm512_add_epi32(_mm512_slli_epi32(xh, SL_ACT_SHIFT), xl);
        out->sum[i] = add_group(out->sum[i], x, out->scale[grp], out->min[grp], &out->sums[i], grp, out->minima);
    }
}

#include "backend/cpu/kernels/matmul_unpack.h"

typedef void unpack_fn(sink *out, const sl_panel_source *from, const bool packed);

// n_row rows, of which those from n_real on are the last one again and not stored.
SL_INLINE void tile(float *acc, const uint8_t *panel, uint32_t n_col, sl_act_blk act, uint32_t row, uint32_t n_real,
                    const uint32_t n_row, unpack_fn *unpack, const sl_type type, const int32_t offset,
                    const uint32_t grp_len, const bool minima) {
    const sl_type_info *info = sl_type_find(type);
    __m512 total[TILE_ROWS];
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) total[i] = _mm512_setzero_ps();
    for (; n_col > 0; act.blk++) {
        uint32_t n = SL_MIN(n_col, (uint32_t)SL_ACT_BLK_LEN);
        sl_act_row at[TILE_ROWS];
        act_sums sums[TILE_ROWS];
        __m512 sum[TILE_ROWS], scale[SL_PANEL_GROUPS], min[SL_PANEL_GROUPS];
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) {
            at[i] = sl_act_row_at(&act, row + SL_MIN(i, n_real - 1));
            set_sums(&sums[i], at[i].sum, offset, grp_len, minima);
            sum[i] = _mm512_setzero_ps();
        }
        sink out = {at, sums, sum, scale, min, n_row, grp_len, minima};
        sl_panel_source from = {.w = panel, .n_blk = n / info->blk_len};
        unpack(&out, &from, true);
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) total[i] = _mm512_fmadd_ps(_mm512_set1_ps(at[i].d), sum[i], total[i]);
        panel += (uint64_t)SL_CPU_PANEL_ROWS * from.n_blk * info->blk_bytes;
        n_col -= n;
    }
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++)
        if (i < n_real) _mm512_storeu_ps(acc + (row + i) * SL_PANEL_PAIR * SL_CPU_PANEL_ROWS, total[i]);
}

#define FEW_TYPE(TYPE, name, grp_len, offset, minima)                                                              \
    void sl_few_##name##_avx512(float *acc, const uint8_t *panel, uint32_t n_col, const sl_act_blk *act) {         \
        for (uint32_t row = 0, n; row < act->n_row; row += n) {                                                    \
            n = SL_MIN(act->n_row - row, (uint32_t)TILE_ROWS);                                                     \
            if (n > 2)                                                                                             \
                tile(acc, panel, n_col, *act, row, n, 4, unpack_##name, SL_TYPE_##TYPE, offset, grp_len, minima);  \
            else if (n == 2)                                                                                       \
                tile(acc, panel, n_col, *act, row, 2, 2, unpack_##name, SL_TYPE_##TYPE, offset, grp_len, minima);  \
            else tile(acc, panel, n_col, *act, row, 1, 1, unpack_##name, SL_TYPE_##TYPE, offset, grp_len, minima); \
        }                                                                                                          \
    }
SL_BLOCK_TYPES(FEW_TYPE)
