// SPDX-License-Identifier: MIT
//
// The vocabulary of matmul_unpack.h for AVX-512: a vector is all 16 rows of a panel.
#ifndef SL_BACKEND_CPU_MATMUL_VEC_AVX512_H
#define SL_BACKEND_CPU_MATMUL_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "base/compiler.h"

enum { V_ROWS = 16 };
typedef __m512i vec;
typedef __m512 fvec;

SL_INLINE vec v_load1(const uint8_t *p, uint64_t stride) {
    const vec iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_i32gather_epi32(_mm512_mullo_epi32(iota, _mm512_set1_epi32((int)stride)), (const void *)p, 1);
}

// Rows i, i + 4, i + 8, i + 12 in the four lanes: inserts from memory need no shuffle.
SL_INLINE vec v_rows4(const uint8_t *p, uint64_t stride) {
    vec v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 4 * stride)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 8 * stride)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + 12 * stride)), 3);
}

// A 4 x 4 transposition of words in each lane.
SL_INLINE void v_transpose(vec out[4], vec r0, vec r1, vec r2, vec r3) {
    vec a = _mm512_unpacklo_epi32(r0, r1), b = _mm512_unpackhi_epi32(r0, r1);
    vec c = _mm512_unpacklo_epi32(r2, r3), d = _mm512_unpackhi_epi32(r2, r3);
    out[0] = _mm512_unpacklo_epi64(a, c), out[1] = _mm512_unpackhi_epi64(a, c);
    out[2] = _mm512_unpacklo_epi64(b, d), out[3] = _mm512_unpackhi_epi64(b, d);
}

SL_INLINE void v_load(vec out[4], const uint8_t *p, uint64_t stride) {
    v_transpose(out, v_rows4(p, stride), v_rows4(p + stride, stride), v_rows4(p + 2 * stride, stride),
                v_rows4(p + 3 * stride, stride));
}

// Rows i and i + 4, 32 bytes of each.
SL_INLINE vec v_rows2(const uint8_t *p, uint64_t stride) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)p)),
                              _mm256_loadu_si256((const void *)(p + 4 * stride)), 1);
}

// Rows 0..7 and 8..15 apart leave the two 16 bytes of a row in neighbouring lanes; then these lanes are sorted.
SL_INLINE void v_load2(vec out[8], const uint8_t *p, uint64_t stride) {
    const uint8_t *q = p + 8 * stride;
    vec a[4], b[4];
    v_transpose(a, v_rows2(p, stride), v_rows2(p + stride, stride), v_rows2(p + 2 * stride, stride),
                v_rows2(p + 3 * stride, stride));
    v_transpose(b, v_rows2(q, stride), v_rows2(q + stride, stride), v_rows2(q + 2 * stride, stride),
                v_rows2(q + 3 * stride, stride));
    SL_UNROLL
    for (int i = 0; i < 4; i++) {
        out[i] = _mm512_shuffle_i32x4(a[i], b[i], _MM_SHUFFLE(2, 0, 2, 0));
        out[4 + i] = _mm512_shuffle_i32x4(a[i], b[i], _MM_SHUFFLE(3, 1, 3, 1));
    }
}

SL_INLINE vec v_words(const uint8_t *p) { return _mm512_loadu_si512((const void *)p); }
SL_INLINE vec v_halves(const uint8_t *p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p)); }
SL_INLINE vec v_octets(const uint8_t *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p)); }

SL_INLINE void v_put(uint8_t *q, vec v) { _mm512_store_si512((void *)q, v); }
SL_INLINE void f_put(float *f, fvec v) { _mm512_store_ps(f, v); }
SL_INLINE vec v_and(vec v, int byte) { return _mm512_and_si512(v, _mm512_set1_epi8((char)byte)); }
SL_INLINE vec v_or(vec a, vec b) { return _mm512_or_si512(a, b); }
SL_INLINE vec v_shr(vec v, uint32_t n) { return _mm512_srli_epi32(v, n); }
SL_INLINE vec v_shl(vec v, uint32_t n) { return _mm512_slli_epi32(v, n); }
SL_INLINE vec v_add128(vec v) { return _mm512_xor_si512(v, _mm512_set1_epi8((char)128)); }

SL_INLINE vec v_set16(vec v, vec bits, uint32_t i) {
    // The byte with the four bits to all four bytes of the row, then one bit of it for each.
    const vec spread = _mm512_add_epi8(_mm512_broadcast_i32x4(_mm_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0)),
                                       _mm512_set1_epi8((char)(i / 2)));
    const vec bit = _mm512_set1_epi32(i % 2 ? (int)0x80402010 : 0x08040201);
    __mmask64 set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(bits, spread), bit);
    return _mm512_mask_add_epi8(v, set, v, _mm512_set1_epi8(16));
}

SL_INLINE vec v_look(const uint8_t table[16], vec v) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)table)), v);
}

SL_INLINE fvec f_byte(vec v, uint32_t i) {
    return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(v, 8 * i), _mm512_set1_epi32(255)));
}
SL_INLINE fvec f_sbyte(vec v, uint32_t i) {
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(v, 24 - 8 * i), 24));
}
SL_INLINE fvec f_f16(vec v, uint32_t i) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16 * i))); }
SL_INLINE fvec f_e8m0(vec v) { // 2^(e - 128): its exponent field is e - 1; below 2 it is subnormal
    vec e = _mm512_and_si512(v, _mm512_set1_epi32(255));
    vec low = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), _mm512_min_epi32(e, _mm512_set1_epi32(1)));
    vec high = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    return _mm512_castsi512_ps(_mm512_max_epi32(low, high));
}
SL_INLINE fvec f_mul(fvec a, fvec b) { return _mm512_mul_ps(a, b); }
SL_INLINE fvec f_sub(fvec a, float x) { return _mm512_sub_ps(a, _mm512_set1_ps(x)); }
SL_INLINE fvec f_set(float x) { return _mm512_set1_ps(x); }

#endif
