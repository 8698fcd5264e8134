// SPDX-License-Identifier: MIT
//
// Float weights in plain C. Where the processor has no fused multiply-add (or, on x86, may not be asked for one at this
// level) fmaf is a call, and slow; levels that matter have one.
#include <math.h>

#include "base/compiler.h"
#include "base/half.h"

enum { TILE_OUTS = 4, TILE_ROWS = 2 };

typedef struct lanes {
    float f[16];
} lanes;

SL_INLINE lanes l_zero(void) { return (lanes){{0}}; }
SL_INLINE lanes l_f32(const uint8_t *p) {
    lanes v;
    memcpy(v.f, p, sizeof v.f);
    return v;
}
SL_INLINE lanes l_f16(const uint8_t *p) {
    uint16_t h[16];
    memcpy(h, p, sizeof h);
    lanes v;
    for (int i = 0; i < 16; i++) v.f[i] = sl_f16_to_f32(h[i]);
    return v;
}
SL_INLINE lanes l_bf16(const uint8_t *p) {
    uint16_t h[16];
    memcpy(h, p, sizeof h);
    lanes v;
    for (int i = 0; i < 16; i++) v.f[i] = sl_bf16_to_f32(h[i]);
    return v;
}
SL_INLINE lanes l_fma(lanes a, lanes b, lanes c) {
    for (int i = 0; i < 16; i++) c.f[i] = fmaf(a.f[i], b.f[i], c.f[i]);
    return c;
}
SL_INLINE float l_sum(lanes v) {
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) v.f[i] += v.f[i + half];
    return v.f[0];
}

#include "backend/cpu/kernels/matmul_float.h"

void sl_cpu_matmul_init_float_generic(sl_cpu_kernels *k) { set_matmul_float(k); }
