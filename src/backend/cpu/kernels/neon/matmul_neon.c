// SPDX-License-Identifier: MIT
//
// NEON without dot products. The two planes are joined to 16-bit activations once for a block of columns, and a panel's
// bytes are widened as they are read. A vector of sums is one output with four sums, of the columns 0, 1, 2 and 3 of
// every four; a group's end adds these.
#include "backend/cpu/kernels/matmul.h"
#include "backend/cpu/kernels/neon/matmul_vec_neon.h"

enum { TILE_ROWS = 2 };

typedef struct act_cols {
    int16_t a[SL_ACT_BLK_LEN];
} act_cols;

SL_INLINE void set_cols(act_cols *cols, const sl_act_row *at) {
    for (uint32_t k = 0; k < SL_ACT_BLK_LEN; k += 8)
        vst1q_s16(cols->a + k, vmlaq_n_s16(vmovl_s8(vld1_s8(at->lo + k)), vmovl_s8(vld1_s8(at->hi + k)), SL_ACT_BASE));
}

SL_INLINE void group_sums(int32x4_t x[TILE_ROWS][TILE_VECS], const sl_panel *panel, uint32_t out, const act_cols *cols,
                          uint32_t begin, const uint32_t grp_len, const uint32_t n_row, const uint32_t n_vec) {
    int32x4_t part[TILE_ROWS][TILE_VECS][4]; // by output
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t v = 0; v < n_vec; v++) SL_UNROLL
    for (uint32_t o = 0; o < 4; o++) part[i][v][o] = vdupq_n_s32(0);
    for (uint32_t at = begin; at < begin + grp_len; at += 4) {
        int16x4_t a[TILE_ROWS];
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) a[i] = vld1_s16(cols[i].a + at);
        SL_UNROLL
        for (uint32_t v = 0; v < n_vec; v++) {
            uint8x16_t q = vld1q_u8(panel->q[at / 4][out + 4 * v]);
            int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(q)));
            int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(q));
            SL_UNROLL
            for (uint32_t i = 0; i < n_row; i++) {
                part[i][v][0] = vmlal_s16(part[i][v][0], vget_low_s16(low), a[i]);
                part[i][v][1] = vmlal_s16(part[i][v][1], vget_high_s16(low), a[i]);
                part[i][v][2] = vmlal_s16(part[i][v][2], vget_low_s16(high), a[i]);
                part[i][v][3] = vmlal_s16(part[i][v][3], vget_high_s16(high), a[i]);
            }
        }
    }
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t v = 0; v < n_vec; v++)
        x[i][v] = vpaddq_s32(vpaddq_s32(part[i][v][0], part[i][v][1]), vpaddq_s32(part[i][v][2], part[i][v][3]));
}

#include "backend/cpu/kernels/neon/matmul_tile_neon.h"

void sl_cpu_matmul_init_neon(sl_cpu_kernels *k) {
    set_matmul_blocks(k);
    sl_cpu_matmul_init_float_neon(k);
    k->quant = sl_cpu_quant_act_neon;
}
