// SPDX-License-Identifier: MIT
//
// NEON with dot products (Armv8.2 DotProd): SDOT adds four columns of four outputs, for the high and the low plane
// apart. It multiplies signed bytes by signed bytes, so panels of this level hold their bytes less 128. All else is
// NEON's.
#define V_PANEL_FLIP 0x80
#include "backend/cpu/kernels/matmul.h"
#include "backend/cpu/kernels/neon/matmul_vec_neon.h"

enum { TILE_ROWS = 4 };

typedef struct act_cols {
    const int8_t *hi, *lo;
} act_cols;

SL_INLINE void set_cols(act_cols *cols, const sl_act_row *at) { *cols = (act_cols){at->hi, at->lo}; }

// Four columns, of the sixteen in ah and al. A macro, as the instruction names the lane.
#define ADD_QUAD(lane)                                                                     \
    SL_UNROLL                                                                              \
    for (uint32_t v = 0; v < n_vec; v++) {                                                 \
        int8x16_t q = vreinterpretq_s8_u8(vld1q_u8(panel->q[at / 4 + lane][out + 4 * v])); \
        SL_UNROLL                                                                          \
        for (uint32_t i = 0; i < n_row; i++) {                                             \
            hi[i][v] = vdotq_laneq_s32(hi[i][v], q, ah[i], lane);                          \
            lo[i][v] = vdotq_laneq_s32(lo[i][v], q, al[i], lane);                          \
        }                                                                                  \
    }

SL_INLINE void group_sums(int32x4_t x[TILE_ROWS][TILE_VECS], const sl_panel *panel, uint32_t out, const act_cols *cols,
                          uint32_t begin, const uint32_t grp_len, const uint32_t n_row, const uint32_t n_vec) {
    int32x4_t hi[TILE_ROWS][TILE_VECS], lo[TILE_ROWS][TILE_VECS];
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t v = 0; v < n_vec; v++) hi[i][v] = lo[i][v] = vdupq_n_s32(0);
    for (uint32_t at = begin; at < begin + grp_len; at += 16) {
        int8x16_t ah[TILE_ROWS], al[TILE_ROWS];
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) ah[i] = vld1q_s8(cols[i].hi + at), al[i] = vld1q_s8(cols[i].lo + at);
        ADD_QUAD(0)
        ADD_QUAD(1)
        ADD_QUAD(2)
        ADD_QUAD(3)
    }
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t v = 0; v < n_vec; v++) x[i][v] = vmlaq_n_s32(lo[i][v], hi[i][v], SL_ACT_BASE);
}

#include "backend/cpu/kernels/neon/matmul_tile_neon.h"

void sl_cpu_kernels_init_dotprod(sl_cpu_kernels *k) {
    k->level = "dotprod";
    set_matmul_blocks(k);
}
