// SPDX-License-Identifier: MIT
//
// The vocabulary of matmul_unpack.h in plain C: a vector is one weight row. Bytes of a word count from the lowest, so a
// big-endian machine would need other loads and stores here, and only here.
#ifndef SL_BACKEND_CPU_MATMUL_VEC_GENERIC_H
#define SL_BACKEND_CPU_MATMUL_VEC_GENERIC_H

#include <string.h>

#include "base/compiler.h"
#include "base/half.h"

enum { V_ROWS = 1 };
typedef uint32_t vec;
typedef float fvec;

SL_INLINE vec v_load1(const uint8_t *p, uint64_t stride) {
    (void)stride;
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

SL_INLINE void v_load(vec out[4], const uint8_t *p, uint64_t stride) {
    (void)stride;
    memcpy(out, p, 16);
}

SL_INLINE void v_load2(vec out[8], const uint8_t *p, uint64_t stride) {
    (void)stride;
    memcpy(out, p, 32);
}

SL_INLINE vec v_words(const uint8_t *p) { return v_load1(p, 0); }
SL_INLINE vec v_halves(const uint8_t *p) { return (vec)(p[0] | p[1] << 8); }
SL_INLINE vec v_octets(const uint8_t *p) { return *p; }

SL_INLINE void v_put(uint8_t *q, vec v) { memcpy(q, &v, sizeof v); }
SL_INLINE void f_put(float *f, fvec v) { *f = v; }
SL_INLINE vec v_and(vec v, int byte) { return v & 0x01010101u * (uint32_t)byte; }
SL_INLINE vec v_or(vec a, vec b) { return a | b; }
SL_INLINE vec v_shr(vec v, uint32_t n) { return v >> n; }
SL_INLINE vec v_shl(vec v, uint32_t n) { return v << n; }
// No carry from byte to byte: the only sum that is taken is + 128.
SL_INLINE vec v_add128(vec v) { return v ^ 0x80808080u; }
// The product puts bit j of the nibble at bit 8 j (and others elsewhere).
SL_INLINE vec v_set16(vec v, vec bits, uint32_t i) {
    return v | ((bits >> (4 * i) & 15) * 0x00204081u & 0x01010101u) << 4;
}

SL_INLINE vec v_look(const uint8_t table[16], vec v) {
    return table[v & 15] | (vec)table[v >> 8 & 15] << 8 | (vec)table[v >> 16 & 15] << 16 | (vec)table[v >> 24] << 24;
}

SL_INLINE fvec f_byte(vec v, uint32_t i) { return (float)(v >> (8 * i) & 255); }
SL_INLINE fvec f_sbyte(vec v, uint32_t i) { return (float)(int8_t)(v >> (8 * i) & 255); }
SL_INLINE fvec f_f16(vec v, uint32_t i) { return sl_f16_to_f32((uint16_t)(v >> (16 * i))); }
SL_INLINE fvec f_e8m0(vec v) {
    uint32_t e = v & 255;
    return sl_f32_from_bits(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}
SL_INLINE fvec f_mul(fvec a, fvec b) { return a * b; }
SL_INLINE fvec f_sub(fvec a, float x) { return a - x; }
SL_INLINE fvec f_set(float x) { return x; }

#endif
