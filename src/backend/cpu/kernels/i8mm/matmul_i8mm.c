// SPDX-License-Identifier: MIT
//
// NEON with matrix products of bytes (Armv8.6 I8MM): USMMLA adds eight columns of two outputs (unsigned) times two rows
// of activations (signed), and these two are the high and the low plane of one row, so it serves a single row as well
// as many. All else is NEON's.
#include "backend/cpu/kernels/matmul.h"
#include "backend/cpu/kernels/neon/matmul_vec_neon.h"

enum { TILE_ROWS = 4 };

typedef struct act_cols {
    int64_t a[SL_ACT_BLK_LEN / 8][2];
} act_cols; // eight bytes of the high plane, eight of the low

SL_INLINE void set_cols(act_cols *cols, const sl_act_row *at) {
    for (uint32_t k = 0; k < SL_ACT_BLK_LEN; k += 16) {
        int64x2x2_t planes = {{vreinterpretq_s64_s8(vld1q_s8(at->hi + k)), vreinterpretq_s64_s8(vld1q_s8(at->lo + k))}};
        vst2q_s64(cols->a[k / 8], planes);
    }
}

// Two quads of four outputs -> eight columns of outputs 0, 1 and of 2, 3.
SL_INLINE void pair_quads(uint8x16_t out[2], const uint8_t *first, const uint8_t *second) {
    vec a = v_of(vld1q_u8(first)), b = v_of(vld1q_u8(second));
    out[0] = v_bytes(vzip1q_u32(a, b)), out[1] = v_bytes(vzip2q_u32(a, b));
}

SL_INLINE void group_sums(int32x4_t x[TILE_ROWS][TILE_VECS], const sl_panel *panel, uint32_t out, const act_cols *cols,
                          uint32_t begin, const uint32_t grp_len, const uint32_t n_row, const uint32_t n_vec) {
    int32x4_t part[TILE_ROWS][TILE_VECS][2]; // (2 outputs, 2 planes)
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t v = 0; v < n_vec; v++) part[i][v][0] = part[i][v][1] = vdupq_n_s32(0);
    for (uint32_t at = begin; at < begin + grp_len; at += 8) {
        int8x16_t a[TILE_ROWS];
        SL_UNROLL
        for (uint32_t i = 0; i < n_row; i++) a[i] = vreinterpretq_s8_s64(vld1q_s64(cols[i].a[at / 8]));
        SL_UNROLL
        for (uint32_t v = 0; v < n_vec; v++) {
            uint8x16_t q[2];
            pair_quads(q, panel->q[at / 4][out + 4 * v], panel->q[at / 4 + 1][out + 4 * v]);
            SL_UNROLL
            for (uint32_t i = 0; i < n_row; i++) {
                part[i][v][0] = vusmmlaq_s32(part[i][v][0], q[0], a[i]);
                part[i][v][1] = vusmmlaq_s32(part[i][v][1], q[1], a[i]);
            }
        }
    }
    SL_UNROLL
    for (uint32_t i = 0; i < n_row; i++) SL_UNROLL
    for (uint32_t v = 0; v < n_vec; v++) {
        int32x4_t hi = vuzp1q_s32(part[i][v][0], part[i][v][1]), lo = vuzp2q_s32(part[i][v][0], part[i][v][1]);
        x[i][v] = vmlaq_n_s32(lo, hi, SL_ACT_BASE);
    }
}

#include "backend/cpu/kernels/neon/matmul_tile_neon.h"

void sl_cpu_kernels_init_i8mm(sl_cpu_kernels *k) {
    k->level = "i8mm";
    set_matmul_blocks(k);
}
