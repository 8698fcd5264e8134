// SPDX-License-Identifier: MIT
//
// Float weights with NEON: 16 columns are four vectors.
#include <arm_neon.h>

#include "base/compiler.h"

enum { TILE_OUTS = 2, TILE_ROWS = 2 };

typedef struct lanes {
    float32x4_t a, b, c, d;
} lanes; // lanes 0..3, 4..7, 8..11, 12..15

SL_INLINE lanes l_zero(void) {
    float32x4_t zero = vdupq_n_f32(0);
    return (lanes){zero, zero, zero, zero};
}
SL_INLINE float32x4_t four_f32(const unsigned char *p) { return vreinterpretq_f32_u8(vld1q_u8(p)); }
SL_INLINE lanes l_f32(const unsigned char *p) {
    return (lanes){four_f32(p), four_f32(p + 16), four_f32(p + 32), four_f32(p + 48)};
}
SL_INLINE float32x4_t four_f16(const unsigned char *p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
SL_INLINE lanes l_f16(const unsigned char *p) {
    return (lanes){four_f16(p), four_f16(p + 8), four_f16(p + 16), four_f16(p + 24)};
}
SL_INLINE float32x4_t four_bf16(const unsigned char *p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}
SL_INLINE lanes l_bf16(const unsigned char *p) {
    return (lanes){four_bf16(p), four_bf16(p + 8), four_bf16(p + 16), four_bf16(p + 24)};
}
SL_INLINE lanes l_fma(lanes x, lanes y, lanes z) {
    return (lanes){vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                   vfmaq_f32(z.d, x.d, y.d)};
}
SL_INLINE float l_sum(lanes v) {
    float32x4_t four = vaddq_f32(vaddq_f32(v.a, v.c), vaddq_f32(v.b, v.d));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

#include "backend/cpu/kernels/matmul_float.h"

void sl_cpu_matmul_init_float_neon(sl_cpu_kernels *k) { set_matmul_float(k); }
