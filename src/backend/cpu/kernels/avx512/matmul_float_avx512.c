// SPDX-License-Identifier: MIT
//
// Float weights with AVX-512: 16 columns are one vector.
#include <immintrin.h>

#include "base/compiler.h"

enum { TILE_OUTS = 4, TILE_ROWS = 6 };

typedef __m512 lanes;

SL_INLINE lanes l_zero(void) { return _mm512_setzero_ps(); }
SL_INLINE lanes l_f32(const unsigned char *p) { return _mm512_loadu_ps(p); }
SL_INLINE lanes l_f16(const unsigned char *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p)); }
SL_INLINE lanes l_bf16(const unsigned char *p) {
    __m512i h = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(h, 16));
}
SL_INLINE lanes l_fma(lanes a, lanes b, lanes c) { return _mm512_fmadd_ps(a, b, c); }
SL_INLINE float l_sum(lanes v) {
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

#include "backend/cpu/kernels/matmul_float.h"

void sl_cpu_matmul_init_float_avx512(sl_cpu_kernels *k) { set_matmul_float(k); }
