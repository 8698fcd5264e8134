// SPDX-License-Identifier: MIT
//
// Products of a tile of codes (kv_tile.h) with 16-bit integers, in integers, so exact and the same on every level:
// sixteen lanes, each the sum of 32 products. K: lanes are positions, the integers are a group of Q times the scales of
// its dims. V: lanes are dims, the integers are the weights of 32 positions.
//
// Bounds: codes of K are under 256 and integers within 32512, codes of V within 127 and integers in 0 .. 32767; 32
// products are under 2^28. AVX-512 takes the integers as two planes of bytes, 256 * hi + lo, as VPDPBUSD multiplies
// bytes: with K, which is unsigned, both planes are signed; with V, which is signed, both are unsigned.
//
// Each level has: kv_codes (64 codes), kv_codes_load (bytes -> codes of quad j and half h of the lanes), kv_sum,
// kv_sum_add and kv_sum_end. Only for files that are compiled per level.
#ifndef SL_BACKEND_CPU_KV_DOT_H
#define SL_BACKEND_CPU_KV_DOT_H

#include "backend/cpu/kernels/kv_tile.h"
#include "backend/cpu/kernels/vec.h"
#include "backend/cpu/kernels/vec_math.h"

enum { KV_QUADS = SL_KV_GROUP / 4, KV_MOST = 4 }; // most vectors at once
#define KV_QUERY_MOST  32512.0f                   // 256 * 127: within two signed planes
#define KV_WEIGHT_MOST 32767.0f

// What 4-bit codes of V stand for. Codes of K are the integers themselves.
#define KV_LEVELS_V \
    { -127, -99, -80, -63, -48, -34, -20, -7, 7, 20, 34, 48, 63, 80, 99, 127 }

// Where the bytes of quad j, half h begin, and in which nibble they are.
SL_INLINE uint32_t kv_byte_at(int j, int h, int bits, bool is_v) {
    if (bits == 8) return (uint32_t)(128 * j + 64 * h);
    return (uint32_t)(is_v ? 64 * j : 128 * (j % 4) + 64 * h);
}
SL_INLINE int kv_is_high(int j, int h, bool is_v) { return is_v ? h : j / 4; }

#if defined(__AVX512VNNI__)

typedef struct kv_ints {
    _Alignas(64) uint8_t hi[SL_KV_GROUP];
    uint8_t lo[SL_KV_GROUP];
} kv_ints;
typedef __m512i kv_codes;
typedef struct kv_sum {
    __m512i hi, lo;
} kv_sum;

SL_INLINE void kv_ints_put(kv_ints *out, int half, v16 biased, bool is_signed) {
    __m512i n = _mm512_castps_si512(biased);
    __m512i hi = _mm512_srli_epi32(is_signed ? _mm512_add_epi32(n, _mm512_set1_epi32(128)) : n, 8);
    _mm_store_si128((void *)(out->lo + half * SL_V16), _mm512_cvtepi32_epi8(n));
    _mm_store_si128((void *)(out->hi + half * SL_V16), _mm512_cvtepi32_epi8(hi));
}

SL_INLINE __m512i kv_levels(__m512i nibbles) {
    static const int8_t v[16] = KV_LEVELS_V;
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)v)), nibbles);
}

// The fifth bits, at their place in the bytes.
SL_INLINE __m512i kv_fifth_bits(const uint8_t *p, int j, int h, bool is_v) {
    __m512i words =
        is_v ? _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(p + 16 * j))) : _mm512_loadu_si512(p + 64 * h);
    __m512i lane = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    words = is_v ? _mm512_srlv_epi32(words, _mm512_add_epi32(lane, _mm512_set1_epi32(4 * h)))
                 : _mm512_srli_epi32(words, (unsigned)j);
    return _mm512_slli_epi32(_mm512_and_si512(words, _mm512_set1_epi32(0x01010101)), 4);
}

SL_INLINE kv_codes kv_codes_load(const uint8_t *p, int j, int h, int bits, bool is_v) {
    __m512i b = _mm512_loadu_si512(p + kv_byte_at(j, h, bits, is_v));
    if (bits == 8) return b;
    b = _mm512_and_si512(kv_is_high(j, h, is_v) ? _mm512_srli_epi16(b, 4) : b, _mm512_set1_epi8(15));
    if (bits == 4) return is_v ? kv_levels(b) : b;
    b = _mm512_or_si512(b, kv_fifth_bits(p + KV_TILE_NIBBLES, j, h, is_v));
    return is_v ? _mm512_sub_epi8(_mm512_add_epi8(b, b), _mm512_set1_epi8(31)) : b;
}

SL_INLINE kv_sum kv_sum_zero(void) { return (kv_sum){_mm512_setzero_si512(), _mm512_setzero_si512()}; }

SL_INLINE __m512i kv_quad(const uint8_t *p) {
    int32_t x;
    memcpy(&x, p, sizeof x);
    return _mm512_set1_epi32(x);
}

SL_INLINE kv_sum kv_sum_add(kv_sum s, kv_codes c, const kv_ints *x, int j, bool is_v) {
    __m512i hi = kv_quad(x->hi + 4 * j), lo = kv_quad(x->lo + 4 * j);
    if (is_v) return (kv_sum){_mm512_dpbusd_epi32(s.hi, hi, c), _mm512_dpbusd_epi32(s.lo, lo, c)};
    return (kv_sum){_mm512_dpbusd_epi32(s.hi, c, hi), _mm512_dpbusd_epi32(s.lo, c, lo)};
}

SL_INLINE v16 kv_sum_end(kv_sum s) {
    __m512i n = _mm512_add_epi32(_mm512_slli_epi32(s.hi, 8), s.lo);
    return _mm512_cvtepi32_ps(n);
}

#elif defined(__AVX2__)

typedef struct kv_ints {
    _Alignas(64) int16_t x[SL_KV_GROUP];
} kv_ints;
typedef struct kv_codes {
    __m256i a, b;
} kv_codes;
typedef struct kv_sum {
    __m256i of[4]; // a pair of sums for each lane
} kv_sum;

SL_INLINE void kv_ints_put(kv_ints *out, int half, v16 biased, bool is_signed) {
    (void)is_signed;
    __m256i bias = _mm256_set1_epi32(0x4b400000);
    __m256i a = _mm256_sub_epi32(_mm256_castps_si256(biased.a), bias);
    __m256i b = _mm256_sub_epi32(_mm256_castps_si256(biased.b), bias);
    _mm256_store_si256((void *)(out->x + half * SL_V16), _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8));
}

SL_INLINE __m256i kv_levels(__m256i nibbles) {
    static const int8_t v[16] = KV_LEVELS_V;
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)v)), nibbles);
}

SL_INLINE __m256i kv_fifth_bits(const uint8_t *p, int j, int h, int part, bool is_v) {
    __m256i words = is_v ? _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(p + 16 * j)))
                         : _mm256_loadu_si256((const void *)(p + 64 * h + 32 * part));
    __m256i lane = _mm256_add_epi32(_mm256_set_epi32(1, 1, 1, 1, 0, 0, 0, 0), _mm256_set1_epi32(4 * h + 2 * part));
    words = is_v ? _mm256_srlv_epi32(words, lane) : _mm256_srli_epi32(words, j);
    return _mm256_slli_epi32(_mm256_and_si256(words, _mm256_set1_epi32(0x01010101)), 4);
}

SL_INLINE __m256i kv_codes_half(const uint8_t *p, int j, int h, int part, int bits, bool is_v) {
    __m256i b = _mm256_loadu_si256((const void *)(p + kv_byte_at(j, h, bits, is_v) + 32 * part));
    if (bits == 8) return b;
    b = _mm256_and_si256(kv_is_high(j, h, is_v) ? _mm256_srli_epi16(b, 4) : b, _mm256_set1_epi8(15));
    if (bits == 4) return is_v ? kv_levels(b) : b;
    b = _mm256_or_si256(b, kv_fifth_bits(p + KV_TILE_NIBBLES, j, h, part, is_v));
    return is_v ? _mm256_sub_epi8(_mm256_add_epi8(b, b), _mm256_set1_epi8(31)) : b;
}

SL_INLINE kv_codes kv_codes_load(const uint8_t *p, int j, int h, int bits, bool is_v) {
    return (kv_codes){kv_codes_half(p, j, h, 0, bits, is_v), kv_codes_half(p, j, h, 1, bits, is_v)};
}

SL_INLINE kv_sum kv_sum_zero(void) {
    __m256i zero = _mm256_setzero_si256();
    return (kv_sum){{zero, zero, zero, zero}};
}

SL_INLINE __m256i kv_widen(__m128i b, bool is_v) { return is_v ? _mm256_cvtepi8_epi16(b) : _mm256_cvtepu8_epi16(b); }

SL_INLINE kv_sum kv_sum_add(kv_sum s, kv_codes c, const kv_ints *x, int j, bool is_v) {
    int64_t quad;
    memcpy(&quad, x->x + 4 * j, sizeof quad);
    __m256i q = _mm256_set1_epi64x(quad);
    __m128i b[4] = {_mm256_castsi256_si128(c.a), _mm256_extracti128_si256(c.a, 1), _mm256_castsi256_si128(c.b),
                    _mm256_extracti128_si256(c.b, 1)};
    SL_UNROLL
    for (int i = 0; i < 4; i++) s.of[i] = _mm256_add_epi32(s.of[i], _mm256_madd_epi16(kv_widen(b[i], is_v), q));
    return s;
}

SL_INLINE __m256 kv_sum_half(__m256i a, __m256i b) {
    __m256i n = _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0xd8);
    return _mm256_cvtepi32_ps(n);
}

SL_INLINE v16 kv_sum_end(kv_sum s) { return (v16){kv_sum_half(s.of[0], s.of[1]), kv_sum_half(s.of[2], s.of[3])}; }

#elif defined(SL_NEON)

#include "backend/cpu/kernels/neon/kv_dot_neon.h"

#else

#define KV_UNROLL // arrays gain nothing by it, and compilers lose minutes

typedef struct kv_ints {
    int16_t x[SL_KV_GROUP];
} kv_ints;
typedef struct kv_codes {
    int16_t c[64];
} kv_codes;
typedef struct kv_sum {
    int32_t of[SL_V16];
} kv_sum;

SL_INLINE void kv_ints_put(kv_ints *out, int half, v16 biased, bool is_signed) {
    (void)is_signed;
    for (int i = 0; i < SL_V16; i++) out->x[half * SL_V16 + i] = (int16_t)(uint16_t)(sl_f32_bits(biased.f[i]) & 0xffff);
}

SL_INLINE int kv_fifth_bit(const uint8_t *p, int j, int h, int i, bool is_v) {
    int lane = i / 4, byte = i % 4;
    if (is_v) return p[16 * j + 4 * (lane % 4) + byte] >> (4 * h + lane / 4) & 1;
    return p[64 * h + i] >> j & 1;
}

SL_INLINE kv_codes kv_codes_load(const uint8_t *p, int j, int h, int bits, bool is_v) {
    static const int8_t levels_v[16] = KV_LEVELS_V;
    const uint8_t *b = p + kv_byte_at(j, h, bits, is_v);
    kv_codes c;
    for (int i = 0; i < 64; i++) {
        int n = kv_is_high(j, h, is_v) ? b[i] >> 4 : b[i] & 15;
        if (bits == 8) c.c[i] = is_v ? (int8_t)b[i] : b[i];
        else if (bits == 4) c.c[i] = (int16_t)(is_v ? levels_v[n] : n);
        else {
            n += kv_fifth_bit(p + KV_TILE_NIBBLES, j, h, i, is_v) << 4;
            c.c[i] = (int16_t)(is_v ? 2 * n - 31 : n);
        }
    }
    return c;
}

SL_INLINE kv_sum kv_sum_zero(void) { return (kv_sum){{0}}; }

SL_INLINE kv_sum kv_sum_add(kv_sum s, kv_codes c, const kv_ints *x, int j, bool is_v) {
    (void)is_v;
    for (int i = 0; i < 64; i++) s.of[i / 4] += c.c[i] * x->x[4 * j + i % 4];
    return s;
}

SL_INLINE v16 kv_sum_end(kv_sum s) {
    v16 r;
    for (int i = 0; i < SL_V16; i++) r.f[i] = (float)s.of[i];
    return r;
}

#endif

#ifndef KV_UNROLL
#define KV_UNROLL SL_UNROLL
#endif

// All lanes of a tile for each of n vectors of integers: low, then high.
SL_INLINE void kv_dot(v16 *low, v16 *high, const uint8_t *tile, const kv_ints *const *x, int n, int bits, bool is_v) {
    kv_sum sum[2][KV_MOST];
    KV_UNROLL
    for (int i = 0; i < n; i++) sum[0][i] = sum[1][i] = kv_sum_zero();
    KV_UNROLL
    for (int j = 0; j < KV_QUADS; j++) {
        KV_UNROLL
        for (int h = 0; h < 2; h++) {
            kv_codes c = kv_codes_load(tile, j, h, bits, is_v);
            KV_UNROLL
            for (int i = 0; i < n; i++) sum[h][i] = kv_sum_add(sum[h][i], c, x[i], j, is_v);
        }
    }
    KV_UNROLL
    for (int i = 0; i < n; i++) {
        low[i] = kv_sum_end(sum[0][i]);
        high[i] = kv_sum_end(sum[1][i]);
    }
}

// What one of the integers is worth if the largest magnitude, given by its bits, becomes `most`; *inverse: integers of
// a unit. NaN if there is an infinity or a NaN; both 0 if all are (nearly) 0.
SL_INLINE float kv_unit(uint32_t top, float most, float *inverse) {
    *inverse = 0;
    if (top >= 0x7f800000u) return NAN;
    if (top < sl_f32_bits(0x1p-100f)) return 0;
    *inverse = most / sl_f32_from_bits(top);
    return sl_f32_from_bits(top) * (1 / most);
}

// Rounds two vectors to integers, the largest magnitude becoming `most`; the result is what one of them is worth.
// NaN if there is an infinity or a NaN; 0 if all are (nearly) 0: then the integers are 0. Not inlined: compilers would
// take the integers apart in registers, where a product wants them broadcast from memory.
static SL_NOINLINE float kv_ints_make(kv_ints *out, v16 a, v16 b, float most, bool is_signed, v16 biased[2]) {
    uint32_t top = v16_top_bits(a, b);
    float inverse, unit = kv_unit(top, most, &inverse);
    if (inverse == 0) a = b = v16_all(0);
    biased[0] = v16_add(v16_mul(a, v16_all(inverse)), v16_all(SL_ROUND_BIAS));
    biased[1] = v16_add(v16_mul(b, v16_all(inverse)), v16_all(SL_ROUND_BIAS));
    kv_ints_put(out, 0, biased[0], is_signed);
    kv_ints_put(out, 1, biased[1], is_signed);
    return unit;
}

#endif
