// SPDX-License-Identifier: MIT
//
// Float weights with AVX2: 16 columns are two vectors.
#include <immintrin.h>

#include "base/compiler.h"

enum { TILE_OUTS = 2, TILE_ROWS = 2 };

typedef struct lanes {
    __m256 a, b;
} lanes; // lanes 0..7, 8..15

SL_INLINE lanes l_zero(void) { return (lanes){_mm256_setzero_ps(), _mm256_setzero_ps()}; }
SL_INLINE lanes l_f32(const unsigned char *p) {
    return (lanes){_mm256_loadu_ps((const void *)p), _mm256_loadu_ps((const void *)(p + 32))};
}
SL_INLINE lanes l_f16(const unsigned char *p) {
    return (lanes){_mm256_cvtph_ps(_mm_loadu_si128((const void *)p)),
                   _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p + 16)))};
}
SL_INLINE __m256 eight_bf16(const unsigned char *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)), 16));
}
SL_INLINE lanes l_bf16(const unsigned char *p) { return (lanes){eight_bf16(p), eight_bf16(p + 16)}; }
SL_INLINE lanes l_fma(lanes a, lanes b, lanes c) {
    return (lanes){_mm256_fmadd_ps(a.a, b.a, c.a), _mm256_fmadd_ps(a.b, b.b, c.b)};
}
SL_INLINE float l_sum(lanes v) {
    __m256 a = _mm256_add_ps(v.a, v.b);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

#include "backend/cpu/kernels/matmul_float.h"

void sl_cpu_matmul_init_float_avx2(sl_cpu_kernels *k) { set_matmul_float(k); }
