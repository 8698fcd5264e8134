// SPDX-License-Identifier: MIT
//
// The sixteen floats of vec.h as four NEON registers; only vec.h includes this. NEON's own max and min give NaN for
// NaN, so both are comparisons and choices here, which take the second operand as vec.h wants it.
#ifndef SL_BACKEND_CPU_VEC_NEON_H
#define SL_BACKEND_CPU_VEC_NEON_H

#include <arm_neon.h>

typedef struct v16 {
    float32x4_t a, b, c, d;
} v16;

#define SL_V16_FOUR(op) \
    (v16) { op(x.a, y.a), op(x.b, y.b), op(x.c, y.c), op(x.d, y.d) }
SL_INLINE float32x4_t v16_max4(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
SL_INLINE float32x4_t v16_min4(float32x4_t x, float32x4_t y) { return vbslq_f32(vcltq_f32(x, y), x, y); }

SL_INLINE v16 v16_load(const float *p) {
    return (v16){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
SL_INLINE void v16_store(float *p, v16 x) {
    vst1q_f32(p, x.a), vst1q_f32(p + 4, x.b), vst1q_f32(p + 8, x.c), vst1q_f32(p + 12, x.d);
}
SL_INLINE v16 v16_all(float x) {
    float32x4_t v = vdupq_n_f32(x);
    return (v16){v, v, v, v};
}
SL_INLINE v16 v16_add(v16 x, v16 y) { return SL_V16_FOUR(vaddq_f32); }
SL_INLINE v16 v16_sub(v16 x, v16 y) { return SL_V16_FOUR(vsubq_f32); }
SL_INLINE v16 v16_mul(v16 x, v16 y) { return SL_V16_FOUR(vmulq_f32); }
SL_INLINE v16 v16_div(v16 x, v16 y) { return SL_V16_FOUR(vdivq_f32); }
SL_INLINE v16 v16_max(v16 x, v16 y) { return SL_V16_FOUR(v16_max4); }
SL_INLINE v16 v16_min(v16 x, v16 y) { return SL_V16_FOUR(v16_min4); }
#undef SL_V16_FOUR
SL_INLINE v16 v16_fma(v16 x, v16 y, v16 z) {
    return (v16){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                 vfmaq_f32(z.d, x.d, y.d)};
}
SL_INLINE v16 v16_pick_less(v16 x, v16 y, v16 yes, v16 no) {
    return (v16){vbslq_f32(vcltq_f32(x.a, y.a), yes.a, no.a), vbslq_f32(vcltq_f32(x.b, y.b), yes.b, no.b),
                 vbslq_f32(vcltq_f32(x.c, y.c), yes.c, no.c), vbslq_f32(vcltq_f32(x.d, y.d), yes.d, no.d)};
}
SL_INLINE v16 v16_abs(v16 x) { return (v16){vabsq_f32(x.a), vabsq_f32(x.b), vabsq_f32(x.c), vabsq_f32(x.d)}; }

SL_INLINE float32x4_t v16_load_f16_4(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
SL_INLINE v16 v16_load_f16(const uint16_t *p) {
    return (v16){v16_load_f16_4(p), v16_load_f16_4(p + 4), v16_load_f16_4(p + 8), v16_load_f16_4(p + 12)};
}
SL_INLINE void v16_store_f16_4(uint16_t *p, float32x4_t x) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x))); }
SL_INLINE void v16_store_f16(uint16_t *p, v16 x) {
    v16_store_f16_4(p, x.a), v16_store_f16_4(p + 4, x.b), v16_store_f16_4(p + 8, x.c), v16_store_f16_4(p + 12, x.d);
}

SL_INLINE float32x4_t v16_load_bf16_4(const uint16_t *p) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(p)), 16));
}
SL_INLINE v16 v16_load_bf16(const uint16_t *p) {
    return (v16){v16_load_bf16_4(p), v16_load_bf16_4(p + 4), v16_load_bf16_4(p + 8), v16_load_bf16_4(p + 12)};
}
SL_INLINE v16 v16_load_e5m3(const uint8_t *p) {
    uint8x16_t x = vld1q_u8(p);
    uint16_t half[16];
    vst1q_u16(half, vshll_n_u8(vget_low_u8(x), 7));
    vst1q_u16(half + 8, vshll_n_u8(vget_high_u8(x), 7));
    return v16_load_f16(half);
}
SL_INLINE v16 v16_load_i8(const uint8_t *p) {
    int8x16_t x = vreinterpretq_s8_u8(vld1q_u8(p));
    int16x8_t low = vmovl_s8(vget_low_s8(x)), high = vmovl_s8(vget_high_s8(x));
    return (v16){vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))};
}
SL_INLINE float32x4_t v16_swap4(float32x4_t x, int span) { return span == 1 ? vrev64q_f32(x) : vextq_f32(x, x, 2); }
SL_INLINE v16 v16_swap(v16 x, int span) {
    if (span == 8) return (v16){x.c, x.d, x.a, x.b};
    if (span == 4) return (v16){x.b, x.a, x.d, x.c};
    return (v16){v16_swap4(x.a, span), v16_swap4(x.b, span), v16_swap4(x.c, span), v16_swap4(x.d, span)};
}
SL_INLINE uint32_t v16_top_bits4(v16 x) {
    uint32x4_t mask = vdupq_n_u32(0x7fffffff);
#define SL_MAGNITUDE(v) vandq_u32(vreinterpretq_u32_f32(v), mask)
    return vmaxvq_u32(
        vmaxq_u32(vmaxq_u32(SL_MAGNITUDE(x.a), SL_MAGNITUDE(x.b)), vmaxq_u32(SL_MAGNITUDE(x.c), SL_MAGNITUDE(x.d))));
#undef SL_MAGNITUDE
}
SL_INLINE uint32_t v16_top_bits(v16 x, v16 y) { return SL_MAX(v16_top_bits4(x), v16_top_bits4(y)); }

SL_INLINE float32x4_t v16_exp2_4(float32x4_t biased, int shift) {
    int32x4_t n = vsubq_s32(vreinterpretq_s32_f32(biased), vdupq_n_s32(0x4b400000));
    int32x4_t low = vshrq_n_s32(n, 1), part = shift ? vsubq_s32(n, low) : low;
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(part, vdupq_n_s32(127)), 23));
}
SL_INLINE v16 v16_exp2_of_bits(v16 x, int shift) {
    return (v16){v16_exp2_4(x.a, shift), v16_exp2_4(x.b, shift), v16_exp2_4(x.c, shift), v16_exp2_4(x.d, shift)};
}

#endif
