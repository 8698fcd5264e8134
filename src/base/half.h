// SPDX-License-Identifier: MIT
//
// IEEE binary16 and bfloat16 <-> float by bits: the definition that every kernel is tested against.
// Round to nearest, ties to even; infinities and NaN payload tops are kept, NaN stays NaN.
#ifndef SL_BASE_HALF_H
#define SL_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t sl_f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float sl_f32_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float sl_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = (h >> 10) & 31, man = h & 0x3ff;
    if (exp == 31) return sl_f32_from_bits(sign | 0x7f800000 | man << 13);
    if (exp != 0) return sl_f32_from_bits(sign | (exp + 112) << 23 | man << 13);
    // zero or subnormal: man * 2^-24 is exact in float
    float f = (float)man * 0x1p-24f;
    return sl_f32_from_bits(sign | sl_f32_bits(f));
}

static inline uint16_t sl_f16_from_f32(float f) {
    uint32_t u = sl_f32_bits(f), sign = (u >> 16) & 0x8000, mag = u & 0x7fffffff;
    if (mag > 0x7f800000) return (uint16_t)(sign | 0x7e00 | ((mag >> 13) & 0x3ff));
    if (mag >= 0x477ff000) return (uint16_t)(sign | 0x7c00); // rounds to infinity
    if (mag < 0x38800000) { // subnormal result: adding 0.5 puts the rounded bits at the bottom
        float r = sl_f32_from_bits(mag) + 0.5f;
        return (uint16_t)(sign | (sl_f32_bits(r) - 0x3f000000));
    }
    uint32_t odd = (mag >> 13) & 1;
    return (uint16_t)(sign | ((mag + 0xc8000fff + odd) >> 13));
}

static inline float sl_bf16_to_f32(uint16_t h) { return sl_f32_from_bits((uint32_t)h << 16); }

static inline uint16_t sl_bf16_from_f32(float f) {
    uint32_t u = sl_f32_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)((u >> 16) | 64);
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

#endif
