// SPDX-License-Identifier: MIT
//
// AVX-512 VNNI: block weights times many rows of ACT16. Panels and activations are unpacked to 16 bits, so that
// VPDPWSSD takes an activation whole: as many products an instruction as two planes of bytes, but nothing to join, and
// no offset to take off. Vector lanes are the 16 outputs of a panel; a tile of 6 rows and 2 panels keeps its sums in
// registers. The order of float operations is that of matmul.h.
#include "backend/cpu/kernels/avx512/matmul_vec_avx512.h"
#include "backend/cpu/kernels/avx512/matmul_walk_avx512.h"
#include "backend/cpu/kernels/avx512/matmul_wide_avx512.h"

// ---- panels --------------------------------------------------------------------------------------------------

typedef struct sink {
    sl_panel *panel;
    int16_t offset;
} sink;

SL_INLINE void put_scale(sink *out, uint32_t grp, uint32_t row, fvec v) { f_put(&out->panel->scale[grp][row], v); }
SL_INLINE void put_min(sink *out, uint32_t grp, uint32_t row, fvec v) { f_put(&out->panel->min[grp][row], v); }
SL_INLINE void put_cols(sink *out, uint32_t at, uint32_t row, const vec q[8]) {
    const vec offset = _mm512_set1_epi16(out->offset);
    (void)row;
    SL_UNROLL
    for (uint32_t i = 0; i < 8; i++) {
        vec even = _mm512_and_si512(q[i], _mm512_set1_epi16(255)), odd = _mm512_srli_epi16(q[i], 8);
        _mm512_store_si512(out->panel->two[2 * (8 * at + i)], _mm512_sub_epi16(even, offset));
        _mm512_store_si512(out->panel->two[2 * (8 * at + i) + 1], _mm512_sub_epi16(odd, offset));
    }
}

#include "backend/cpu/kernels/matmul_unpack.h"

// ---- activations ---------------------------------------------------------------------------------------------

// Of each four columns two words: 16 bits of columns 0 and 2, of columns 1 and 3.
static void arrange(uint8_t *out, const uint8_t *row, uint32_t n_pad) {
    for (uint32_t i = 0; i < n_pad; i += 64) {
        __m512i hi = _mm512_loadu_si512(row + i), lo = _mm512_loadu_si512(row + n_pad + i);
        __m512i even = _mm512_add_epi16(_mm512_slli_epi16(hi, 8), _mm512_srai_epi16(_mm512_slli_epi16(lo, 8), 8));
        __m512i odd =
            _mm512_add_epi16(_mm512_and_si512(hi, _mm512_set1_epi16((int16_t)0xff00)), _mm512_srai_epi16(lo, 8));
        // Words of the two by turns, in order: unpacking keeps to lanes of four, which are then sorted.
        __m512i a = _mm512_unpacklo_epi32(even, odd), b = _mm512_unpackhi_epi32(even, odd);
        const __m512i first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
        const __m512i second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
        _mm512_storeu_si512(out + 2 * i, _mm512_permutex2var_epi64(a, first, b));
        _mm512_storeu_si512(out + 2 * i + 64, _mm512_permutex2var_epi64(a, second, b));
    }
}

// ---- the product ---------------------------------------------------------------------------------------------

// Sums of a group: x = panel * a. a: the words of each row's 256 columns.
SL_INLINE void add_up(__m512i x[TILE_ROWS][SL_PANEL_PAIR], const sl_panel *panel, const int8_t *const a[TILE_ROWS],
                      uint32_t grp, const uint32_t n_row, const uint32_t n_panel, const uint32_t grp_len) {
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t p = 0; p < n_panel; p++) x[i][p] = _mm512_setzero_si512();
    SL_UNROLL
    for (uint32_t j = 0; j < grp_len / 2; j++) {
        uint32_t k = grp * (grp_len / 2) + j;
        __m512i q[SL_PANEL_PAIR];
        SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++) q[p] = _mm512_load_si512(panel[p].two[k]);
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) {
            __m512i both = four_acts(a[i] + 4 * k);
            SL_UNROLL
            for (uint32_t p = 0; p < n_panel; p++) x[i][p] = _mm512_dpwssd_epi32(x[i][p], q[p], both);
        }
    }
}

SL_INLINE void tile(float *acc, const sl_panel *panel, const sl_act_blk *act, uint32_t row, const uint32_t n_row,
                    const uint32_t n_panel, const uint32_t grp_len, const bool minima) {
    const int8_t *a[TILE_ROWS];
    act_sums sums[TILE_ROWS];
    float d[TILE_ROWS];
    __m512 sum[TILE_ROWS][SL_PANEL_PAIR];
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) {
        sl_act_row at = sl_act_row_at(act, row + i);
        a[i] = at.hi + act->blk * SL_ACT_BLK_LEN, d[i] = at.d; // two bytes a column
        if (minima) set_sums(&sums[i], at.sum, 0, grp_len, true);
        SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++) sum[i][p] = _mm512_setzero_ps();
    }
    for (uint32_t g = 0; g < act->n_grp; g++) {
        __m512i x[TILE_ROWS][SL_PANEL_PAIR];
        add_up(x, panel, a, g, n_row, n_panel, grp_len);
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
        for (uint32_t p = 0; p < n_panel; p++) {
            sum[i][p] = _mm512_fmadd_ps(_mm512_load_ps(panel[p].scale[g]), _mm512_cvtepi32_ps(x[i][p]), sum[i][p]);
            if (minima)
                sum[i][p] = _mm512_fmadd_ps(_mm512_load_ps(panel[p].min[g]), _mm512_set1_ps(sums[i].sum[g]), sum[i][p]);
        }
    }
    add_tile(acc, row, sum, d, n_row, n_panel);
}

#define MULTIPLY(grp_len, minima)                                                                  \
    static void multiply_##grp_len##_##minima(float *acc, const sl_panel *panel, uint32_t n_panel, \
                                              const sl_act_blk *act) {                             \
        multiply_tiles(acc, panel, n_panel, act, grp_len, minima);                                 \
    }
MULTIPLY(16, 0)
MULTIPLY(16, 1)
MULTIPLY(32, 0)
MULTIPLY(32, 1)

#define WIDE_TYPE(TYPE, name, grp_len, offset_, minima)                                     \
    static void unpack_file_##name(sl_panel *out, const sl_panel_source *from) {            \
        unpack_##name(&(sink){.panel = out, .offset = offset_}, from, false);               \
    }                                                                                       \
    static void unpack_packed_##name(sl_panel *out, const sl_panel_source *from) {          \
        unpack_##name(&(sink){.panel = out, .offset = offset_}, from, true);                \
    }                                                                                       \
    const sl_panel_way sl_wide_##name##_avx512 = {unpack_file_##name, unpack_packed_##name, \
                                                  multiply_##grp_len##_##minima, arrange};
SL_BLOCK_TYPES(WIDE_TYPE)
