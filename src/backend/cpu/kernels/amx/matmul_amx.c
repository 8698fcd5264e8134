// SPDX-License-Identifier: MIT
//
// AMX: block weights times ACT16 for prefill. TDPBSUD multiplies 16 rows by the 16 outputs of a panel, a group of
// columns at a time, for the high and the low plane apart; the sums leave their tiles through memory and are scaled by
// AVX-512 in the order of matmul.h, so the bits are those of every other level. A panel is already what the instruction
// wants of its second factor: four columns of an output side by side. Rows that fill no tile are AVX-512's.
//
// Layout of the tile registers and of their configuration: Intel's Architectures Software Developer's Manual, volume 1,
// chapter 18. The system grants them to a process that asks (os/posix_cpu.c).
#include "backend/cpu/kernels/avx512/matmul_few_avx512.h"
#include "backend/cpu/kernels/avx512/matmul_tile_avx512.h"
#include "backend/cpu/kernels/avx512/matmul_vec_avx512.h"
#include "backend/cpu/kernels/matmul_level.h"
#include "backend/cpu/kernels/matmul_panel.h"

enum { AMX_ROWS = 16 };

// As LDTILECFG reads it.
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t n_row[16];
} tile_config;

// Registers: 0 and 1 the sums of the two planes, 2 and 3 the planes, 4 the panel.
SL_INLINE void configure(const uint32_t grp_len) {
    tile_config config = {.palette = 1,
                          .row_bytes = {64, 64, (uint16_t)grp_len, (uint16_t)grp_len, 64},
                          .n_row = {AMX_ROWS, AMX_ROWS, AMX_ROWS, AMX_ROWS, (uint8_t)(grp_len / 4)}};
    _tile_loadconfig(&config);
}

typedef struct group_sums {
    int32_t hi[AMX_ROWS][SL_CPU_PANEL_ROWS], lo[AMX_ROWS][SL_CPU_PANEL_ROWS];
} group_sums;

// Sums over the group of columns that begins at `at`. hi: the high plane of the first row.
SL_INLINE void add_up(group_sums *out, const sl_panel *panel, const sl_act_blk *act, const int8_t *hi, uint32_t at) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_loadd(4, panel->q[at / 4], 64);
    _tile_loadd(2, hi + at, act->stride);
    _tile_loadd(3, hi + act->n_pad + at, act->stride);
    _tile_dpbsud(0, 2, 4);
    _tile_dpbsud(1, 3, 4);
    _tile_stored(0, out->hi, 64);
    _tile_stored(1, out->lo, 64);
}

// acc (AMX_ROWS, one panel of a pair) += 256 columns.
SL_INLINE void amx_tile(float *acc, const sl_panel *panel, const sl_act_blk *act, const int8_t *hi,
                        const act_sums *sums, const float *d, const uint32_t grp_len, const bool minima) {
    _Alignas(64) group_sums x[2]; // of this group and of the next, so that tiles and vectors work side by side
    __m512 sum[AMX_ROWS];
    SL_UNROLL
    for (uint32_t i = 0; i < AMX_ROWS; i++) sum[i] = _mm512_setzero_ps();
    add_up(&x[0], panel, act, hi, 0);
    for (uint32_t g = 0; g < act->n_grp; g++) {
        if (g + 1 < act->n_grp) add_up(&x[(g + 1) % 2], panel, act, hi, (g + 1) * grp_len);
        const group_sums *now = &x[g % 2];
        SL_UNROLL
        for (uint32_t i = 0; i < AMX_ROWS; i++) {
            __m512i both = _mm512_add_epi32(_mm512_slli_epi32(_mm512_load_si512(now->hi[i]), SL_ACT_SHIFT),
                                            _mm512_load_si512(now->lo[i]));
            sum[i] = add_group(sum[i], both, _mm512_load_ps(panel->scale[g]), _mm512_load_ps(panel->min[g]), &sums[i],
                               g, minima);
        }
    }
    SL_UNROLL
    for (uint32_t i = 0; i < AMX_ROWS; i++) {
        float *to = acc + i * SL_PANEL_PAIR * SL_CPU_PANEL_ROWS;
        _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_set1_ps(d[i]), sum[i], _mm512_loadu_ps(to)));
    }
}

SL_INLINE void amx_tiles(float *acc, const sl_panel *panel, uint32_t n_panel, const sl_act_blk *act, uint32_t n_row,
                         const uint32_t grp_len, const bool minima) {
    configure(grp_len);
    for (uint32_t row = 0; row < n_row; row += AMX_ROWS) {
        act_sums sums[AMX_ROWS];
        float d[AMX_ROWS];
        for (uint32_t i = 0; i < AMX_ROWS; i++) {
            sl_act_row at = sl_act_row_at(act, row + i);
            d[i] = at.d;
            set_sums(&sums[i], at.sum, act->offset, grp_len, minima);
        }
        const int8_t *hi = sl_act_row_at(act, row).hi;
        for (uint32_t p = 0; p < n_panel; p++)
            amx_tile(acc + (row * SL_PANEL_PAIR + p) * SL_CPU_PANEL_ROWS, &panel[p], act, hi, sums, d, grp_len, minima);
    }
    _tile_release(); // so that a switch of threads has no tiles to save
}

SL_INLINE void multiply(float *acc, const sl_panel *panel, uint32_t n_panel, const sl_act_blk *act,
                        const uint32_t grp_len, const bool minima) {
    // Groups of 16 columns fill half a tile at the same price, and lose to AVX-512: 85 GMAC/s to 110 (Q6_K), where
    // groups of 32 win 159 to 126 (Q4_K) and 158 to 101 (Q8_0).
    uint32_t n_row = grp_len == 32 ? act->n_row / AMX_ROWS * AMX_ROWS : 0;
    if (n_row) amx_tiles(acc, panel, n_panel, act, n_row, grp_len, minima);
    sl_act_blk rest = *act;
    rest.rows += n_row * act->stride;
    rest.n_row -= n_row;
    multiply_tiles(acc + n_row * SL_PANEL_PAIR * SL_CPU_PANEL_ROWS, panel, n_panel, &rest, grp_len, minima);
}

#define FEW(name) sl_few_##name##_avx512
#include "backend/cpu/kernels/matmul_types.h"

void sl_cpu_kernels_init_amx(sl_cpu_kernels *k) {
    k->level = "amx";
    set_matmul_blocks(k);
}
