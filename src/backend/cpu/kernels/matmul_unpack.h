// SPDX-License-Identifier: MIT
//
// Block formats (quant/blocks.h) -> panels. Written once over a small vocabulary of vectors and compiled for each
// level, which includes its own matmul_vec.h first:
//   V_ROWS                       weight rows of a vector: 16, 8 or 1
//   vec, fvec                    four bytes, one float of each row
//   v_load(out[4], p, stride)    16 bytes of each row, row i at p + i * stride, as four vectors
//   v_load2(out[8], p, stride)   32 bytes of each row
//   v_load1(p, stride)           4 bytes of each row
//   v_put(q, v), f_put(f, v)     to a panel
//   v_and(v, byte), v_or(a, b), v_add128(v)
//   v_shr, v_shl(v, n)           of each row's 32 bits
//   v_set16(v, bits, i)          v, with bit 4 of byte j set if bit 4 i + j of each row's 32 bits is
//   v_look(table[16], v)         bytes below 16 -> bytes of the table
//   f_byte(v, i), f_sbyte(v, i)  byte i of each row as unsigned, signed
//   f_f16(v, i)                  16-bit half i as binary16
//   f_e8m0(v)                    2^(e - 128) of the lowest byte
//   f_mul(a, b), f_sub(a, x), f_set(x)
// No load goes past the end of a block's own bytes, and none needs alignment.
#ifndef SL_BACKEND_CPU_MATMUL_UNPACK_H
#define SL_BACKEND_CPU_MATMUL_UNPACK_H

#include "base/compiler.h"
#include "backend/cpu/kernels/matmul.h"
#include "quant/blocks.h"

enum { SIGNED_OFFSET = 128, MXFP4_OFFSET = 12 };

static const int8_t iq4_values[16] = SL_IQ4_VALUES, mxfp4_values[16] = SL_MXFP4_VALUES;

// A code book of signed values, as the unsigned bytes of a panel.
SL_INLINE void book(uint8_t out[16], const int8_t values[16], int offset) {
    for (int i = 0; i < 16; i++) out[i] = (uint8_t)(values[i] + offset);
}

// The bits under `mask` after a move by to - from.
SL_INLINE vec take(vec v, uint32_t from, uint32_t to, int mask) {
    return v_and(from > to ? v_shr(v, from - to) : v_shl(v, to - from), mask);
}

// Where the bytes come from. Each load asks the caches for as many bytes as it takes itself: for the second level of a
// later panel, in the order of memory; for the first level of the same rows a little further on. So memory and
// arithmetic go on side by side. (All at once would fill the few slots for misses and stall.)
typedef struct source {
    uint64_t stride;
    const uint8_t *next;
    uint32_t turn; // which quarter of the rows is asked for
} source;

enum { AHEAD = 192 }; // bytes; measured: 64..320 are alike, none is 15 % slower on K types

SL_INLINE void ask(source *s, const uint8_t *p) {
    SL_UNROLL
    for (uint32_t i = 0; 4 * i < V_ROWS; i++) SL_PREFETCH_NEAR(p + (s->turn * (V_ROWS / 4) + i) * s->stride + AHEAD);
    s->turn = (s->turn + 1) % 4;
    SL_UNROLL
    for (uint32_t i = 0; i < 16 * V_ROWS; i += 64) SL_PREFETCH(s->next + i);
    s->next += 16 * V_ROWS;
}
SL_INLINE void load(vec out[4], const uint8_t *p, source *s) {
    v_load(out, p, s->stride);
    ask(s, p);
}
SL_INLINE void load2(vec out[8], const uint8_t *p, source *s) {
    v_load2(out, p, s->stride);
    ask(s, p);
    ask(s, p + 16);
}
SL_INLINE vec load1(const uint8_t *p, source *s) {
    SL_PREFETCH(s->next);
    s->next += 4 * V_ROWS;
    return v_load1(p, s->stride);
}

SL_INLINE void put_scale(sl_panel *out, uint32_t grp, uint32_t row, fvec v) { f_put(&out->scale[grp][row], v); }
SL_INLINE void put_min(sl_panel *out, uint32_t grp, uint32_t row, fvec v) { f_put(&out->min[grp][row], v); }
SL_INLINE void put_quad(sl_panel *out, uint32_t quad, uint32_t row, vec v) { v_put(out->q[quad][row], v); }

// ---- plain blocks ------------------------------------------------------------------------------------------

// 16 bytes of nibbles as halves: 32 columns.
SL_INLINE void put_halves(sl_panel *out, uint32_t quad, uint32_t row, const uint8_t *qs, source *s) {
    vec v[4];
    load(v, qs, s);
    SL_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        put_quad(out, quad + i, row, v_and(v[i], 0x0f));
        put_quad(out, quad + 4 + i, row, take(v[i], 4, 0, 0x0f));
    }
}

SL_INLINE void put_halves_5(sl_panel *out, uint32_t quad, uint32_t row, const uint8_t *qs, vec qh, source *s) {
    vec v[4];
    load(v, qs, s);
    SL_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        put_quad(out, quad + i, row, v_set16(take(v[i], 0, 0, 0x0f), qh, i));
        put_quad(out, quad + 4 + i, row, v_set16(take(v[i], 4, 0, 0x0f), qh, 4 + i));
    }
}

SL_INLINE void put_halves_book(sl_panel *out, uint32_t quad, uint32_t row, const uint8_t *qs, source *s,
                               const uint8_t table[16]) {
    vec v[4];
    load(v, qs, s);
    SL_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        put_quad(out, quad + i, row, v_look(table, v_and(v[i], 0x0f)));
        put_quad(out, quad + 4 + i, row, v_look(table, take(v[i], 4, 0, 0x0f)));
    }
}

// The body runs for each vector of rows and each block, with `blk` at the first of these rows.
#define FOR_BLOCKS(type)                                           \
    for (uint32_t row = 0; row < SL_CPU_PANEL_ROWS; row += V_ROWS) \
        for (uint32_t b = 0; b < from->n_blk; b++)                 \
            for (const uint8_t *blk = from->w + row * s.stride + b * sizeof(type), *once = blk; once; once = NULL)
#define AT(type, member) (blk + offsetof(type, member))

static void unpack_q4_0(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q4_0) {
        put_scale(out, b, row, f_f16(load1(blk, &s), 0));
        put_halves(out, 8 * b, row, AT(sl_blk_q4_0, qs), &s);
    }
}

static void unpack_q4_1(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q4_1) {
        vec dm = load1(blk, &s);
        put_scale(out, b, row, f_f16(dm, 0));
        put_min(out, b, row, f_f16(dm, 1));
        put_halves(out, 8 * b, row, AT(sl_blk_q4_1, qs), &s);
    }
}

static void unpack_q5_0(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q5_0) {
        put_scale(out, b, row, f_f16(load1(blk, &s), 0));
        put_halves_5(out, 8 * b, row, AT(sl_blk_q5_0, qs), load1(AT(sl_blk_q5_0, qh), &s), &s);
    }
}

static void unpack_q5_1(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q5_1) {
        vec dm = load1(blk, &s);
        put_scale(out, b, row, f_f16(dm, 0));
        put_min(out, b, row, f_f16(dm, 1));
        put_halves_5(out, 8 * b, row, AT(sl_blk_q5_1, qs), load1(AT(sl_blk_q5_1, qh), &s), &s);
    }
}

static void unpack_q8_0(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q8_0) {
        put_scale(out, b, row, f_f16(load1(blk, &s), 0));
        vec v[8];
        load2(v, AT(sl_blk_q8_0, qs), &s);
        SL_UNROLL
        for (uint32_t i = 0; i < 8; i++) put_quad(out, 8 * b + i, row, v_add128(v[i]));
    }
}

static void unpack_iq4_nl(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    uint8_t table[16];
    book(table, iq4_values, SIGNED_OFFSET);
    FOR_BLOCKS(sl_blk_iq4_nl) {
        put_scale(out, b, row, f_f16(load1(blk, &s), 0));
        put_halves_book(out, 8 * b, row, AT(sl_blk_iq4_nl, qs), &s, table);
    }
}

static void unpack_mxfp4(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    uint8_t table[16];
    book(table, mxfp4_values, MXFP4_OFFSET);
    FOR_BLOCKS(sl_blk_mxfp4) {
        put_scale(out, b, row, f_e8m0(load1(blk, &s)));
        put_halves_book(out, 8 * b, row, AT(sl_blk_mxfp4, qs), &s, table);
    }
}

// ---- super-blocks: always one, of 256 columns --------------------------------------------------------------

// The header that q4_K and q5_K share: 8 six-bit scales and minima, see blocks.h. The scales of odd groups are also
// divided by `odd`.
SL_INLINE void put_k_header(sl_panel *out, uint32_t row, const uint8_t *blk, source *s, float odd) {
    vec h[4];
    load(h, blk, s); // d and dmin; scale bytes 0..3; 4..7; 8..11
    vec scale[2] = {v_and(h[1], 0x3f), v_or(v_and(h[3], 0x0f), take(h[1], 6, 4, 0x30))};
    vec min[2] = {v_and(h[2], 0x3f), v_or(take(h[3], 4, 0, 0x0f), take(h[2], 6, 4, 0x30))};
    fvec d = f_f16(h[0], 0), d_odd = f_mul(d, f_set(1 / odd)), dmin = f_mul(f_f16(h[0], 1), f_set(-1));
    SL_UNROLL
    for (uint32_t g = 0; g < 8; g++) {
        put_scale(out, g, row, f_mul(g % 2 ? d_odd : d, f_byte(scale[g / 4], g % 4)));
        put_min(out, g, row, f_mul(dmin, f_byte(min[g / 4], g % 4)));
    }
}

// High nibbles stay where they are: bytes 16 times as large with scales a 16th as large are the same floats, and no
// shift.
static void unpack_q4_k(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q4_k) {
        put_k_header(out, row, blk, &s, 16);
        for (uint32_t run = 0; run < 4; run++) { // 64 columns: 32 low nibbles, 32 high
            vec v[8];
            load2(v, AT(sl_blk_q4_k, qs) + 32 * run, &s);
            SL_UNROLL
            for (uint32_t i = 0; i < 8; i++) {
                put_quad(out, 16 * run + i, row, v_and(v[i], 0x0f));
                put_quad(out, 16 * run + 8 + i, row, v_and(v[i], 0xf0));
            }
        }
    }
}

static void unpack_q5_k(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q5_k) {
        put_k_header(out, row, blk, &s, 1);
        vec high[8]; // bit k of a byte: column 32 k + l
        load2(high, AT(sl_blk_q5_k, qh), &s);
        SL_UNROLL
        for (uint32_t run = 0; run < 4; run++) {
            vec v[8];
            load2(v, AT(sl_blk_q5_k, qs) + 32 * run, &s);
            SL_UNROLL
            for (uint32_t i = 0; i < 8; i++) {
                put_quad(out, 16 * run + i, row, v_or(v_and(v[i], 0x0f), take(high[i], 2 * run, 4, 0x10)));
                put_quad(out, 16 * run + 8 + i, row, v_or(take(v[i], 4, 0, 0x0f), take(high[i], 2 * run + 1, 4, 0x10)));
            }
        }
    }
}

static void unpack_q6_k(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q6_k) {
        vec sub[4];
        load(sub, AT(sl_blk_q6_k, scales), &s);
        fvec d = f_f16(load1(AT(sl_blk_q6_k, d) - 2, &s), 1);
        SL_UNROLL
        for (uint32_t g = 0; g < 16; g++) put_scale(out, g, row, f_mul(d, f_sbyte(sub[g / 4], g % 4)));
        for (uint32_t run = 0; run < 2; run++) { // 128 columns
            vec a[8], c[8], h[8];
            load2(a, AT(sl_blk_q6_k, ql) + 64 * run, &s);
            load2(c, AT(sl_blk_q6_k, ql) + 64 * run + 32, &s);
            load2(h, AT(sl_blk_q6_k, qh) + 32 * run, &s);
            SL_UNROLL
            for (uint32_t i = 0; i < 8; i++) {
                uint32_t quad = 32 * run + i;
                put_quad(out, quad, row, v_or(v_and(a[i], 0x0f), take(h[i], 0, 4, 0x30)));
                put_quad(out, quad + 8, row, v_or(v_and(c[i], 0x0f), take(h[i], 2, 4, 0x30)));
                put_quad(out, quad + 16, row, v_or(take(a[i], 4, 0, 0x0f), take(h[i], 4, 4, 0x30)));
                put_quad(out, quad + 24, row, v_or(take(c[i], 4, 0, 0x0f), take(h[i], 6, 4, 0x30)));
            }
        }
    }
}

static void unpack_q3_k(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q3_k) {
        const uint8_t *scales = AT(sl_blk_q3_k, scales);
        vec a = load1(scales, &s), c = load1(scales + 4, &s), h = load1(scales + 8, &s);
        vec sub[4] = {v_or(v_and(a, 0x0f), take(h, 0, 4, 0x30)), v_or(v_and(c, 0x0f), take(h, 2, 4, 0x30)),
                      v_or(take(a, 4, 0, 0x0f), take(h, 4, 4, 0x30)), v_or(take(c, 4, 0, 0x0f), take(h, 6, 4, 0x30))};
        fvec d = f_f16(load1(AT(sl_blk_q3_k, d) - 2, &s), 1);
        SL_UNROLL
        for (uint32_t g = 0; g < 16; g++) put_scale(out, g, row, f_mul(d, f_sub(f_byte(sub[g / 4], g % 4), 32)));
        vec high[8]; // bit k of a byte: column 32 k + l
        load2(high, AT(sl_blk_q3_k, hmask), &s);
        SL_UNROLL
        for (uint32_t run = 0; run < 2; run++) { // 128 columns
            vec v[8];
            load2(v, AT(sl_blk_q3_k, qs) + 32 * run, &s);
            SL_UNROLL
            for (uint32_t i = 0; i < 8; i++) SL_UNROLL
            for (uint32_t j = 0; j < 4; j++)
                put_quad(out, 32 * run + 8 * j + i, row,
                         v_or(take(v[i], 2 * j, 0, 0x03), take(high[i], 4 * run + j, 2, 0x04)));
        }
    }
}

static void unpack_q2_k(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    FOR_BLOCKS(sl_blk_q2_k) {
        vec sub[4], dd = load1(AT(sl_blk_q2_k, d), &s);
        load(sub, AT(sl_blk_q2_k, scales), &s);
        fvec d = f_f16(dd, 0), dmin = f_mul(f_f16(dd, 1), f_set(-1));
        SL_UNROLL
        for (uint32_t g = 0; g < 16; g++) {
            put_scale(out, g, row, f_mul(d, f_byte(v_and(sub[g / 4], 0x0f), g % 4)));
            put_min(out, g, row, f_mul(dmin, f_byte(take(sub[g / 4], 4, 0, 0x0f), g % 4)));
        }
        for (uint32_t run = 0; run < 2; run++) { // 128 columns
            vec v[8];
            load2(v, AT(sl_blk_q2_k, qs) + 32 * run, &s);
            SL_UNROLL
            for (uint32_t i = 0; i < 8; i++) SL_UNROLL
            for (uint32_t j = 0; j < 4; j++) put_quad(out, 32 * run + 8 * j + i, row, take(v[i], 2 * j, 0, 0x03));
        }
    }
}

static void unpack_iq4_xs(sl_panel *out, const sl_panel_source *from) {
    source s = {from->w_row_bytes, from->next, 0};
    uint8_t table[16];
    book(table, iq4_values, SIGNED_OFFSET);
    FOR_BLOCKS(sl_blk_iq4_xs) {
        vec h = load1(blk, &s), low = load1(AT(sl_blk_iq4_xs, scales_l), &s);
        fvec d = f_f16(h, 0);
        SL_UNROLL
        for (uint32_t g = 0; g < 8; g++) {
            vec lo = take(low, 4 * g, 0, 0x0f), hi = take(h, 16 + 2 * g, 4, 0x30);
            put_scale(out, g, row, f_mul(d, f_sub(f_byte(v_or(lo, hi), 0), 32)));
            put_halves_book(out, 8 * g, row, AT(sl_blk_iq4_xs, qs) + 16 * g, &s, table);
        }
    }
}

#undef FOR_BLOCKS
#undef AT

// ---- the table of a level ----------------------------------------------------------------------------------

// X(TYPE, name, group length, offset of the bytes, 1 if there are minima)
#define SL_PANEL_TYPES(X)                   \
    X(Q4_0, q4_0, 32, 8, 0)                 \
    X(Q4_1, q4_1, 32, 0, 1)                 \
    X(Q5_0, q5_0, 32, 16, 0)                \
    X(Q5_1, q5_1, 32, 0, 1)                 \
    X(Q8_0, q8_0, 32, SIGNED_OFFSET, 0)     \
    X(Q2_K, q2_k, 16, 0, 1)                 \
    X(Q3_K, q3_k, 16, 4, 0)                 \
    X(Q4_K, q4_k, 32, 0, 1)                 \
    X(Q5_K, q5_k, 32, 0, 1)                 \
    X(Q6_K, q6_k, 16, 32, 0)                \
    X(IQ4_NL, iq4_nl, 32, SIGNED_OFFSET, 0) \
    X(IQ4_XS, iq4_xs, 32, SIGNED_OFFSET, 0) \
    X(MXFP4, mxfp4, 32, MXFP4_OFFSET, 0)

// The level has sl_panel_multiply_fn multiply_<group length>_<minima>.
#define SL_PANEL_MATMUL(TYPE, name, grp_len_, offset_, minima)                                               \
    static void matmul_##name(const sl_cpu_matmul *m, uint32_t out_begin, uint32_t out_end, void *scratch) { \
        static const sl_panel_kind kind = {.type = SL_TYPE_##TYPE,                                           \
                                           .grp_len = grp_len_,                                              \
                                           .offset = offset_,                                                \
                                           .unpack = unpack_##name,                                          \
                                           .multiply = multiply_##grp_len_##_##minima};                      \
        sl_panel_matmul(&kind, m, out_begin, out_end, scratch);                                              \
    }
#define SL_PANEL_ENTRY(TYPE, name, grp_len_, offset_, minima) k->matmul[SL_TYPE_##TYPE] = matmul_##name;

#endif
