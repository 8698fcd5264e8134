// SPDX-License-Identifier: MIT
//
// The vocabulary of matmul_unpack.h for NEON: a vector is 4 rows, a quarter of a panel. The levels above NEON use it
// too; one whose product wants signed bytes defines V_PANEL_FLIP as 0x80, and panels then hold bytes less 128.
#ifndef SL_BACKEND_CPU_MATMUL_VEC_NEON_H
#define SL_BACKEND_CPU_MATMUL_VEC_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#ifndef V_PANEL_FLIP
#define V_PANEL_FLIP 0
#endif

enum {
    V_ROWS = 4,
    TILE_VECS = 4, // vectors of a panel's outputs
};
typedef uint32x4_t vec;
typedef float32x4_t fvec;

SL_INLINE vec v_of(uint8x16_t bytes) { return vreinterpretq_u32_u8(bytes); }
SL_INLINE uint8x16_t v_bytes(vec v) { return vreinterpretq_u8_u32(v); }
SL_INLINE vec v_all(int byte) { return v_of(vdupq_n_u8((uint8_t)byte)); }

SL_INLINE vec v_load1(const uint8_t *p, uint64_t stride) {
    uint32_t w[4];
    for (int i = 0; i < 4; i++) memcpy(&w[i], p + (uint64_t)i * stride, sizeof *w);
    return vld1q_u32(w);
}

// A 4 x 4 transposition of words.
SL_INLINE void v_load(vec out[4], const uint8_t *p, uint64_t stride) {
    vec r0 = v_of(vld1q_u8(p)), r1 = v_of(vld1q_u8(p + stride));
    vec r2 = v_of(vld1q_u8(p + 2 * stride)), r3 = v_of(vld1q_u8(p + 3 * stride));
    uint64x2_t a = vreinterpretq_u64_u32(vtrn1q_u32(r0, r1)), b = vreinterpretq_u64_u32(vtrn2q_u32(r0, r1));
    uint64x2_t c = vreinterpretq_u64_u32(vtrn1q_u32(r2, r3)), d = vreinterpretq_u64_u32(vtrn2q_u32(r2, r3));
    out[0] = vreinterpretq_u32_u64(vtrn1q_u64(a, c)), out[1] = vreinterpretq_u32_u64(vtrn1q_u64(b, d));
    out[2] = vreinterpretq_u32_u64(vtrn2q_u64(a, c)), out[3] = vreinterpretq_u32_u64(vtrn2q_u64(b, d));
}

SL_INLINE void v_load2(vec out[8], const uint8_t *p, uint64_t stride) {
    v_load(out, p, stride);
    v_load(out + 4, p + 16, stride);
}

SL_INLINE vec v_words(const uint8_t *p) { return v_of(vld1q_u8(p)); }
SL_INLINE vec v_halves(const uint8_t *p) { return vmovl_u16(vreinterpret_u16_u8(vld1_u8(p))); }
SL_INLINE vec v_octets(const uint8_t *p) { return (vec){p[0], p[1], p[2], p[3]}; }

SL_INLINE void v_put(uint8_t *q, vec v) { vst1q_u8(q, v_bytes(veorq_u32(v, v_all(V_PANEL_FLIP)))); }
SL_INLINE void f_put(float *f, fvec v) { vst1q_f32(f, v); }
SL_INLINE vec v_and(vec v, int byte) { return vandq_u32(v, v_all(byte)); }
SL_INLINE vec v_or(vec a, vec b) { return vorrq_u32(a, b); }
SL_INLINE vec v_add128(vec v) { return veorq_u32(v, v_all(128)); }
// Operators, as the instructions for constants do not take 0.
SL_INLINE vec v_shr(vec v, uint32_t n) { return v >> n; }
SL_INLINE vec v_shl(vec v, uint32_t n) { return v << n; }

SL_INLINE vec v_set16(vec v, vec bits, uint32_t i) {
    // The byte with the four bits to all four bytes of the row, then one bit of it for each.
    const vec rows = {0x00000000, 0x04040404, 0x08080808, 0x0c0c0c0c};
    uint8x16_t spread = vqtbl1q_u8(v_bytes(bits), v_bytes(v_or(rows, v_all((int)i / 2))));
    uint8x16_t set = vtstq_u8(spread, v_bytes(vdupq_n_u32(i % 2 ? 0x80402010 : 0x08040201)));
    return v_or(v, v_and(v_of(set), 16));
}

SL_INLINE vec v_look(const uint8_t table[16], vec v) { return v_of(vqtbl1q_u8(vld1q_u8(table), v_bytes(v))); }

SL_INLINE fvec f_byte(vec v, uint32_t i) { return vcvtq_f32_u32(vandq_u32(v_shr(v, 8 * i), vdupq_n_u32(255))); }
SL_INLINE fvec f_sbyte(vec v, uint32_t i) {
    return vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_u32(v_shl(v, 24 - 8 * i)), 24));
}
SL_INLINE fvec f_f16(vec v, uint32_t i) { return vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(v_shr(v, 16 * i)))); }
SL_INLINE fvec f_e8m0(vec v) { // 2^(e - 128): its exponent field is e - 1; below 2 it is subnormal
    int32x4_t e = vreinterpretq_s32_u32(vandq_u32(v, vdupq_n_u32(255)));
    int32x4_t low = vshlq_s32(vdupq_n_s32(0x00200000), vminq_s32(e, vdupq_n_s32(1)));
    int32x4_t high = vshlq_n_s32(vsubq_s32(e, vdupq_n_s32(1)), 23);
    return vreinterpretq_f32_s32(vmaxq_s32(low, high));
}
SL_INLINE fvec f_mul(fvec a, fvec b) { return vmulq_f32(a, b); }
SL_INLINE fvec f_sub(fvec a, float x) { return vsubq_f32(a, vdupq_n_f32(x)); }
SL_INLINE fvec f_set(float x) { return vdupq_n_f32(x); }

#endif
