// SPDX-License-Identifier: MIT
//
// The part of kv_dot.h that NEON has, without the dot product instructions of later processors; only kv_dot.h includes
// this. Codes are widened to 16 bits, as on AVX2.
#ifndef SL_BACKEND_CPU_KV_DOT_NEON_H
#define SL_BACKEND_CPU_KV_DOT_NEON_H

typedef struct kv_ints {
    _Alignas(64) int16_t x[SL_KV_GROUP];
} kv_ints;
typedef struct kv_codes {
    uint8x16_t part[4]; // four lanes each
} kv_codes;
typedef struct kv_sum {
    int32x4_t of[8]; // a pair of sums for each of two lanes
} kv_sum;

SL_INLINE void kv_ints_put(kv_ints *out, int half, v16 biased, bool is_signed) {
    (void)is_signed;
    int32x4_t bias = vdupq_n_s32(0x4b400000);
    int16_t *x = out->x + half * SL_V16;
    vst1_s16(x, vmovn_s32(vsubq_s32(vreinterpretq_s32_f32(biased.a), bias)));
    vst1_s16(x + 4, vmovn_s32(vsubq_s32(vreinterpretq_s32_f32(biased.b), bias)));
    vst1_s16(x + 8, vmovn_s32(vsubq_s32(vreinterpretq_s32_f32(biased.c), bias)));
    vst1_s16(x + 12, vmovn_s32(vsubq_s32(vreinterpretq_s32_f32(biased.d), bias)));
}

SL_INLINE uint8x16_t kv_levels(uint8x16_t nibbles) {
    static const int8_t v[16] = KV_LEVELS_V;
    return vqtbl1q_u8(vreinterpretq_u8_s8(vld1q_s8(v)), nibbles);
}

SL_INLINE uint8x16_t kv_fifth_bits(const uint8_t *p, int j, int h, int part, bool is_v) {
    uint32x4_t words = vreinterpretq_u32_u8(vld1q_u8(is_v ? p + 16 * j : p + 64 * h + 16 * part));
    words = vshlq_u32(words, vdupq_n_s32(-(is_v ? 4 * h + part : j)));
    return vreinterpretq_u8_u32(vshlq_n_u32(vandq_u32(words, vdupq_n_u32(0x01010101)), 4));
}

SL_INLINE uint8x16_t kv_codes_part(const uint8_t *p, int j, int h, int part, int bits, bool is_v) {
    uint8x16_t b = vld1q_u8(p + kv_byte_at(j, h, bits, is_v) + 16 * part);
    if (bits == 8) return b;
    b = kv_is_high(j, h, is_v) ? vshrq_n_u8(b, 4) : vandq_u8(b, vdupq_n_u8(15));
    if (bits == 4) return is_v ? kv_levels(b) : b;
    b = vorrq_u8(b, kv_fifth_bits(p + KV_TILE_NIBBLES, j, h, part, is_v));
    return is_v ? vsubq_u8(vaddq_u8(b, b), vdupq_n_u8(31)) : b;
}

SL_INLINE kv_codes kv_codes_load(const uint8_t *p, int j, int h, int bits, bool is_v) {
    kv_codes c;
    SL_UNROLL
    for (int part = 0; part < 4; part++) c.part[part] = kv_codes_part(p, j, h, part, bits, is_v);
    return c;
}

SL_INLINE kv_sum kv_sum_zero(void) {
    kv_sum s;
    SL_UNROLL
    for (int i = 0; i < 8; i++) s.of[i] = vdupq_n_s32(0);
    return s;
}

SL_INLINE int16x8_t kv_widen(uint8x8_t b, bool is_v) {
    return is_v ? vmovl_s8(vreinterpret_s8_u8(b)) : vreinterpretq_s16_u16(vmovl_u8(b));
}

SL_INLINE int32x4_t kv_pair_sums(uint8x8_t b, int16x4_t quad, bool is_v) {
    int16x8_t wide = kv_widen(b, is_v);
    return vpaddq_s32(vmull_s16(vget_low_s16(wide), quad), vmull_s16(vget_high_s16(wide), quad));
}

SL_INLINE kv_sum kv_sum_add(kv_sum s, kv_codes c, const kv_ints *x, int j, bool is_v) {
    int16x4_t quad = vld1_s16(x->x + 4 * j);
    SL_UNROLL
    for (int part = 0; part < 4; part++) {
        s.of[2 * part] = vaddq_s32(s.of[2 * part], kv_pair_sums(vget_low_u8(c.part[part]), quad, is_v));
        s.of[2 * part + 1] = vaddq_s32(s.of[2 * part + 1], kv_pair_sums(vget_high_u8(c.part[part]), quad, is_v));
    }
    return s;
}

SL_INLINE float32x4_t kv_sum_part(int32x4_t a, int32x4_t b) {
    int32x4_t n = vpaddq_s32(a, b);
    return vcvtq_f32_s32(n);
}

SL_INLINE v16 kv_sum_end(kv_sum s) {
    return (v16){kv_sum_part(s.of[0], s.of[1]), kv_sum_part(s.of[2], s.of[3]), kv_sum_part(s.of[4], s.of[5]),
                 kv_sum_part(s.of[6], s.of[7])};
}

#endif
