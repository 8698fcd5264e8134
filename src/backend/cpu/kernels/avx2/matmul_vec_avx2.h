// SPDX-License-Identifier: MIT
//
// The vocabulary of matmul_unpack.h for AVX2: a vector is 8 rows, half a panel.
#ifndef SL_BACKEND_CPU_MATMUL_VEC_AVX2_H
#define SL_BACKEND_CPU_MATMUL_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include "base/compiler.h"

enum { V_ROWS = 8 };
typedef __m256i vec;
typedef __m256 fvec;

SL_INLINE vec v_load1(const uint8_t *p, uint64_t stride) {
    const vec iota = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    return _mm256_i32gather_epi32((const void *)p, _mm256_mullo_epi32(iota, _mm256_set1_epi32((int)stride)), 1);
}

// Rows i and i + 4 in the two lanes.
SL_INLINE vec v_rows2(const uint8_t *p, uint64_t stride) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)p)),
                                   _mm_loadu_si128((const void *)(p + 4 * stride)), 1);
}

// Then a 4 x 4 transposition of words in each lane.
SL_INLINE void v_load(vec out[4], const uint8_t *p, uint64_t stride) {
    vec r0 = v_rows2(p, stride), r1 = v_rows2(p + stride, stride);
    vec r2 = v_rows2(p + 2 * stride, stride), r3 = v_rows2(p + 3 * stride, stride);
    vec a = _mm256_unpacklo_epi32(r0, r1), b = _mm256_unpackhi_epi32(r0, r1);
    vec c = _mm256_unpacklo_epi32(r2, r3), d = _mm256_unpackhi_epi32(r2, r3);
    out[0] = _mm256_unpacklo_epi64(a, c), out[1] = _mm256_unpackhi_epi64(a, c);
    out[2] = _mm256_unpacklo_epi64(b, d), out[3] = _mm256_unpackhi_epi64(b, d);
}

SL_INLINE void v_load2(vec out[8], const uint8_t *p, uint64_t stride) {
    v_load(out, p, stride);
    v_load(out + 4, p + 16, stride);
}

SL_INLINE vec v_words(const uint8_t *p) { return _mm256_loadu_si256((const void *)p); }
SL_INLINE vec v_halves(const uint8_t *p) { return _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)); }
SL_INLINE vec v_octets(const uint8_t *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p)); }

SL_INLINE void v_put(uint8_t *q, vec v) { _mm256_store_si256((void *)q, v); }
SL_INLINE void f_put(float *f, fvec v) { _mm256_store_ps(f, v); }
SL_INLINE vec v_and(vec v, int byte) { return _mm256_and_si256(v, _mm256_set1_epi8((char)byte)); }
SL_INLINE vec v_or(vec a, vec b) { return _mm256_or_si256(a, b); }
SL_INLINE vec v_shr(vec v, uint32_t n) { return _mm256_srli_epi32(v, (int)n); }
SL_INLINE vec v_shl(vec v, uint32_t n) { return _mm256_slli_epi32(v, (int)n); }
SL_INLINE vec v_add128(vec v) { return _mm256_xor_si256(v, _mm256_set1_epi8((char)128)); }

SL_INLINE vec v_set16(vec v, vec bits, uint32_t i) {
    // The byte with the four bits to all four bytes of the row, then one bit of it for each.
    const vec spread =
        _mm256_add_epi8(_mm256_broadcastsi128_si256(_mm_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0)),
                        _mm256_set1_epi8((char)(i / 2)));
    const vec bit = _mm256_set1_epi32(i % 2 ? (int)0x80402010 : 0x08040201);
    vec set = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(bits, spread), bit), bit);
    return _mm256_or_si256(v, v_and(set, 16));
}

SL_INLINE vec v_look(const uint8_t table[16], vec v) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table)), v);
}

SL_INLINE fvec f_byte(vec v, uint32_t i) {
    return _mm256_cvtepi32_ps(_mm256_and_si256(v_shr(v, 8 * i), _mm256_set1_epi32(255)));
}
SL_INLINE fvec f_sbyte(vec v, uint32_t i) { return _mm256_cvtepi32_ps(_mm256_srai_epi32(v_shl(v, 24 - 8 * i), 24)); }
SL_INLINE fvec f_f16(vec v, uint32_t i) {
    vec h = _mm256_and_si256(v_shr(v, 16 * i), _mm256_set1_epi32(0xffff));
    return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)));
}
SL_INLINE fvec f_e8m0(vec v) { // 2^(e - 128): its exponent field is e - 1; below 2 it is subnormal
    vec e = _mm256_and_si256(v, _mm256_set1_epi32(255));
    vec low = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), _mm256_min_epi32(e, _mm256_set1_epi32(1)));
    vec high = v_shl(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    return _mm256_castsi256_ps(_mm256_max_epi32(low, high));
}
SL_INLINE fvec f_mul(fvec a, fvec b) { return _mm256_mul_ps(a, b); }
SL_INLINE fvec f_sub(fvec a, float x) { return _mm256_sub_ps(a, _mm256_set1_ps(x)); }
SL_INLINE fvec f_set(float x) { return _mm256_set1_ps(x); }

#endif
