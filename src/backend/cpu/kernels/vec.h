// SPDX-License-Identifier: MIT
//
// Sixteen floats as one value, on every level: one zmm register, two ymm or four NEON registers, or
// an array. Kernels written with it have the same lanes and the same order of operations
// everywhere, so their results have the same bits on every level. On generic v16_fma is a call of
// the C library, and slow; levels that matter have the instruction.
//
// Only for files that are compiled per level; no function here leaves its file.
#ifndef SL_BACKEND_CPU_VEC_H
#define SL_BACKEND_CPU_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "base/half.h"

enum { SL_V16 = 16 };

#if defined(__AVX512F__) && defined(__AVX512DQ__)

#include <immintrin.h>

typedef __m512 v16;

SL_INLINE v16 v16_load(const float *p) { return _mm512_loadu_ps(p); }
SL_INLINE void v16_store(float *p, v16 a) { _mm512_storeu_ps(p, a); }
SL_INLINE v16 v16_all(float x) { return _mm512_set1_ps(x); }
SL_INLINE v16 v16_add(v16 a, v16 b) { return _mm512_add_ps(a, b); }
SL_INLINE v16 v16_sub(v16 a, v16 b) { return _mm512_sub_ps(a, b); }
SL_INLINE v16 v16_mul(v16 a, v16 b) { return _mm512_mul_ps(a, b); }
SL_INLINE v16 v16_div(v16 a, v16 b) { return _mm512_div_ps(a, b); }
SL_INLINE v16 v16_fma(v16 a, v16 b, v16 c) { return _mm512_fmadd_ps(a, b, c); }
SL_INLINE v16 v16_max(v16 a, v16 b) { return _mm512_max_ps(a, b); }
SL_INLINE v16 v16_min(v16 a, v16 b) { return _mm512_min_ps(a, b); }
SL_INLINE v16 v16_pick_less(v16 a, v16 b, v16 yes, v16 no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
SL_INLINE v16 v16_abs(v16 a) { return _mm512_abs_ps(a); }
SL_INLINE v16 v16_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p)); }
SL_INLINE void v16_store_f16(uint16_t *p, v16 a) { _mm256_storeu_si256((void *)p, _mm512_cvtps_ph(a, 0)); }
SL_INLINE v16 v16_load_bf16(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p)), 16));
}
SL_INLINE v16 v16_load_e5m3(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p)), 7));
}
SL_INLINE v16 v16_load_i8(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p)));
}
SL_INLINE v16 v16_swap(v16 a, int span) {
    if (span == 1) return _mm512_permute_ps(a, 0xb1);
    if (span == 2) return _mm512_permute_ps(a, 0x4e);
    return span == 4 ? _mm512_shuffle_f32x4(a, a, 0xb1) : _mm512_shuffle_f32x4(a, a, 0x4e);
}
SL_INLINE uint32_t v16_top_bits(v16 a, v16 b) {
    __m512i mask = _mm512_set1_epi32(0x7fffffff);
    return _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(a), mask),
                                                    _mm512_and_si512(_mm512_castps_si512(b), mask)));
}
SL_INLINE v16 v16_exp2_of_bits(v16 biased, int shift) {
    __m512i n = _mm512_sub_epi32(_mm512_castps_si512(biased), _mm512_set1_epi32(0x4b400000));
    __m512i low = _mm512_srai_epi32(n, 1), part = shift ? _mm512_sub_epi32(n, low) : low;
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(part, _mm512_set1_epi32(127)), 23));
}

#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

typedef struct v16 {
    __m256 a, b;
} v16;

#define SL_V16_BOTH(op) \
    (v16) { op(x.a, y.a), op(x.b, y.b) }
SL_INLINE v16 v16_load(const float *p) { return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
SL_INLINE void v16_store(float *p, v16 x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
SL_INLINE v16 v16_all(float x) { return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
SL_INLINE v16 v16_add(v16 x, v16 y) { return SL_V16_BOTH(_mm256_add_ps); }
SL_INLINE v16 v16_sub(v16 x, v16 y) { return SL_V16_BOTH(_mm256_sub_ps); }
SL_INLINE v16 v16_mul(v16 x, v16 y) { return SL_V16_BOTH(_mm256_mul_ps); }
SL_INLINE v16 v16_div(v16 x, v16 y) { return SL_V16_BOTH(_mm256_div_ps); }
SL_INLINE v16 v16_max(v16 x, v16 y) { return SL_V16_BOTH(_mm256_max_ps); }
SL_INLINE v16 v16_min(v16 x, v16 y) { return SL_V16_BOTH(_mm256_min_ps); }
#undef SL_V16_BOTH
SL_INLINE v16 v16_fma(v16 x, v16 y, v16 z) {
    return (v16){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
SL_INLINE v16 v16_pick_less(v16 x, v16 y, v16 yes, v16 no) {
    return (v16){_mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
                 _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))};
}
SL_INLINE v16 v16_abs(v16 x) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
SL_INLINE v16 v16_load_f16(const uint16_t *p) {
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128((const void *)p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p + 8)))};
}
SL_INLINE void v16_store_f16(uint16_t *p, v16 x) {
    _mm_storeu_si128((void *)p, _mm256_cvtps_ph(x.a, 0));
    _mm_storeu_si128((void *)(p + 8), _mm256_cvtps_ph(x.b, 0));
}
SL_INLINE __m256 v16_bf16_half(const uint16_t *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)), 16));
}
SL_INLINE v16 v16_load_bf16(const uint16_t *p) { return (v16){v16_bf16_half(p), v16_bf16_half(p + 8)}; }
SL_INLINE v16 v16_load_e5m3(const uint8_t *p) {
    __m256i half = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)p)), 7);
    return (v16){_mm256_cvtph_ps(_mm256_castsi256_si128(half)), _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1))};
}
SL_INLINE v16 v16_load_i8(const uint8_t *p) {
    __m128i x = _mm_loadu_si128((const void *)p);
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)),
                 _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
}
SL_INLINE __m256 v16_swap_half(__m256 a, int span) {
    if (span == 1) return _mm256_permute_ps(a, 0xb1);
    return span == 2 ? _mm256_permute_ps(a, 0x4e) : _mm256_permute2f128_ps(a, a, 1);
}
SL_INLINE v16 v16_swap(v16 x, int span) {
    return span == 8 ? (v16){x.b, x.a} : (v16){v16_swap_half(x.a, span), v16_swap_half(x.b, span)};
}
SL_INLINE uint32_t v16_top_bits(v16 x, v16 y) {
    __m256i mask = _mm256_set1_epi32(0x7fffffff);
#define SL_MAGNITUDE(v) _mm256_and_si256(_mm256_castps_si256(v), mask)
    __m256i top = _mm256_max_epu32(_mm256_max_epu32(SL_MAGNITUDE(x.a), SL_MAGNITUDE(x.b)),
                                   _mm256_max_epu32(SL_MAGNITUDE(y.a), SL_MAGNITUDE(y.b)));
#undef SL_MAGNITUDE
    __m128i half = _mm_max_epu32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
    half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(half, _mm_shuffle_epi32(half, 0xb1)));
}
SL_INLINE __m256 v16_exp2_half(__m256 biased, int shift) {
    __m256i n = _mm256_sub_epi32(_mm256_castps_si256(biased), _mm256_set1_epi32(0x4b400000));
    __m256i low = _mm256_srai_epi32(n, 1), part = shift ? _mm256_sub_epi32(n, low) : low;
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(part, _mm256_set1_epi32(127)), 23));
}
SL_INLINE v16 v16_exp2_of_bits(v16 biased, int shift) {
    return (v16){v16_exp2_half(biased.a, shift), v16_exp2_half(biased.b, shift)};
}

#elif defined(SL_NEON)

#include "backend/cpu/kernels/neon/vec_neon.h"

#else

typedef struct v16 {
    float f[SL_V16];
} v16;

#define SL_V16_EACH(expr)                             \
    v16 r;                                            \
    for (int i = 0; i < SL_V16; i++) r.f[i] = (expr); \
    return r
SL_INLINE v16 v16_load(const float *p) { SL_V16_EACH(p[i]); }
SL_INLINE void v16_store(float *p, v16 x) { memcpy(p, x.f, sizeof x.f); }
SL_INLINE v16 v16_all(float x) { SL_V16_EACH(x); }
SL_INLINE v16 v16_add(v16 x, v16 y) { SL_V16_EACH(x.f[i] + y.f[i]); }
SL_INLINE v16 v16_sub(v16 x, v16 y) { SL_V16_EACH(x.f[i] - y.f[i]); }
SL_INLINE v16 v16_mul(v16 x, v16 y) { SL_V16_EACH(x.f[i] * y.f[i]); }
SL_INLINE v16 v16_div(v16 x, v16 y) { SL_V16_EACH(x.f[i] / y.f[i]); }
SL_INLINE v16 v16_max(v16 x, v16 y) { SL_V16_EACH(x.f[i] > y.f[i] ? x.f[i] : y.f[i]); }
SL_INLINE v16 v16_min(v16 x, v16 y) { SL_V16_EACH(x.f[i] < y.f[i] ? x.f[i] : y.f[i]); }
SL_INLINE v16 v16_fma(v16 x, v16 y, v16 z) { SL_V16_EACH(fmaf(x.f[i], y.f[i], z.f[i])); }
SL_INLINE v16 v16_pick_less(v16 x, v16 y, v16 yes, v16 no) { SL_V16_EACH(x.f[i] < y.f[i] ? yes.f[i] : no.f[i]); }
SL_INLINE v16 v16_abs(v16 x) { SL_V16_EACH(sl_f32_from_bits(sl_f32_bits(x.f[i]) & 0x7fffffff)); }
SL_INLINE v16 v16_load_f16(const uint16_t *p) { SL_V16_EACH(sl_f16_to_f32(p[i])); }
SL_INLINE void v16_store_f16(uint16_t *p, v16 x) {
    for (int i = 0; i < SL_V16; i++) p[i] = sl_f16_from_f32(x.f[i]);
}
SL_INLINE v16 v16_load_bf16(const uint16_t *p) { SL_V16_EACH(sl_bf16_to_f32(p[i])); }
SL_INLINE v16 v16_load_e5m3(const uint8_t *p) { SL_V16_EACH(sl_f16_to_f32((uint16_t)(p[i] << 7))); }
SL_INLINE v16 v16_load_i8(const uint8_t *p) { SL_V16_EACH((float)(int8_t)p[i]); }
SL_INLINE v16 v16_swap(v16 x, int span) { SL_V16_EACH(x.f[i ^ span]); }
SL_INLINE uint32_t v16_top_bits(v16 x, v16 y) {
    uint32_t top = 0;
    for (int i = 0; i < SL_V16; i++) {
        top = SL_MAX(top, sl_f32_bits(x.f[i]) & 0x7fffffffu);
        top = SL_MAX(top, sl_f32_bits(y.f[i]) & 0x7fffffffu);
    }
    return top;
}
SL_INLINE float v16_exp2_one(float biased, int shift) {
    uint32_t n = sl_f32_bits(biased) - 0x4b400000u;
    uint32_t low = n >> 1 | (n & 0x80000000u); // an arithmetic shift
    return sl_f32_from_bits(((shift ? n - low : low) + 127u) << 23);
}
SL_INLINE v16 v16_exp2_of_bits(v16 x, int shift) { SL_V16_EACH(v16_exp2_one(x.f[i], shift)); }
#undef SL_V16_EACH

#endif

// Notes on the above.
//   max, min: the second operand if either is NaN, as the x86 instructions do.
//   pick_less: a < b ? yes : no, lane by lane; `no` for NaN.
//   load_e5m3: bytes that are the upper ones of a binary16 without its sign.
//   exp2_of_bits: `biased` = n + 1.5 * 2^23 for an integer n; 2^(n/2) for shift 0 and 2^(n - n/2)
//   for shift 1, whose product reaches into the subnormals and to infinity.
//   swap: lane i and lane i ^ span change places; span 1, 2, 4 or 8.
//   top_bits: the largest magnitude of both, by bits: infinities and NaN are above all numbers.

// The first n < 16 elements; the other lanes are 0.
SL_INLINE v16 v16_load_part(const float *p, uint32_t n) {
    float f[SL_V16] = {0};
    memcpy(f, p, n * sizeof *f);
    return v16_load(f);
}

SL_INLINE v16 v16_load_f16_part(const uint16_t *p, uint32_t n) {
    uint16_t h[SL_V16] = {0};
    memcpy(h, p, n * sizeof *h);
    return v16_load_f16(h);
}

SL_INLINE v16 v16_load_bf16_part(const uint16_t *p, uint32_t n) {
    uint16_t h[SL_V16] = {0};
    memcpy(h, p, n * sizeof *h);
    return v16_load_bf16(h);
}

SL_INLINE void v16_store_part(float *p, v16 a, uint32_t n) {
    float f[SL_V16];
    v16_store(f, a);
    memcpy(p, f, n * sizeof *f);
}

SL_INLINE float v16_first(v16 a) {
    float f[SL_V16];
    v16_store(f, a);
    return f[0];
}

// Lanes in a fixed tree: i with i + 8, then + 4, + 2, + 1.
SL_INLINE float v16_sum(v16 a) {
    for (int span = SL_V16 / 2; span > 0; span /= 2) a = v16_add(a, v16_swap(a, span));
    return v16_first(a);
}

SL_INLINE float v16_largest(v16 a) {
    for (int span = SL_V16 / 2; span > 0; span /= 2) a = v16_max(a, v16_swap(a, span));
    return v16_first(a);
}

#endif
