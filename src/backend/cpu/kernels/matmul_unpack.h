// SPDX-License-Identifier: MIT
//
// Block formats (quant/blocks.h) -> panels. Written once over a small vocabulary of vectors and compiled for each
// level, which includes its own matmul_vec.h first:
//   V_ROWS                       weight rows of a vector: 16, 8 or 1
//   vec, fvec                    four bytes, one float of each row
//   v_load(out[4], p, stride)    16 bytes of each row, row i at p + i * stride, as four vectors
//   v_load2(out[8], p, stride)   32 bytes of each row
//   v_load1(p, stride)           4 bytes of each row
//   v_words(p), v_halves(p), v_octets(p)  4, 2 or 1 bytes of each row, which lie together; zeros above
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
//
// Where they go is a `sink`: a panel (matmul_panel.h), or a product (matmul_few.h). Of each vector of rows it gets
//   put_scale(out, grp, row, f), put_min(out, grp, row, f)   a group's, before the first of its columns
//   put_cols(out, at, row, q[8])                             32 columns from 32 * at, by fours; `at` rises
#ifndef SL_BACKEND_CPU_MATMUL_UNPACK_H
#define SL_BACKEND_CPU_MATMUL_UNPACK_H

#include <stdatomic.h>

#include "backend/cpu/kernels/matmul.h"
#include "base/compiler.h"
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

// Where the bytes come from: blocks of the file, or of a panel order (backend/cpu/repack.h), in which the bytes at
// `off` of all rows' blocks are at 16 * off of the panel's.
//
// Memory and arithmetic go on side by side as bytes are asked for at the pace at which they are used; all at once would
// fill the few slots for misses and stall. In panel order each 32 columns ask for as many bytes further on, for the
// panels of a thread are one stream. In a file each load asks, for the second level of the caches, for bytes of a later
// panel, in the order of memory, and for the first level for those of the same rows.
typedef struct source {
    const uint8_t *blk; // of row `row`, or of the panel
    uint64_t stride;
    uint32_t row;
    bool packed;
    const uint8_t *next;
    uint32_t turn;      // which quarter of the rows is asked for
    uint32_t col_bytes; // of 32 columns of a panel
} source;

enum {
    AHEAD = 192,         // bytes; measured: 64..320 are alike, none is 15 % slower on K types
    PACKED_AHEAD = 8192, // measured: 6 to 32 KiB are alike
};

// The source of blocks of blk_bytes bytes and blk_len columns.
SL_INLINE source source_of(const sl_panel_source *from, const bool packed, uint32_t blk_bytes, uint32_t blk_len) {
    return (source){.stride = from->w_row_bytes,
                    .packed = packed,
                    .next = packed ? from->w + PACKED_AHEAD : from->next,
                    .col_bytes = SL_CPU_PANEL_ROWS * blk_bytes / (blk_len / 32)};
}

SL_INLINE void ask(source *s, const uint8_t *p) {
    SL_UNROLL
    for (uint32_t i = 0; 4 * i < V_ROWS; i++) SL_PREFETCH_NEAR(p + (s->turn * (V_ROWS / 4) + i) * s->stride + AHEAD);
    s->turn = (s->turn + 1) % 4;
    SL_UNROLL
    for (uint32_t i = 0; i < 16 * V_ROWS; i += 64) SL_PREFETCH(s->next + i);
    s->next += 16 * V_ROWS;
}

// The unit of `unit` bytes at `off` of all rows.
SL_INLINE const uint8_t *packed_unit(const source *s, uint32_t off, uint32_t unit) {
    return s->blk + SL_CPU_PANEL_ROWS * off + s->row * unit;
}

SL_INLINE void load(vec out[4], source *s, uint32_t off) {
    if (s->packed) {
        SL_UNROLL
        for (uint32_t i = 0; i < 4; i++) out[i] = v_words(packed_unit(s, off + 4 * i, 4));
        return;
    }
    v_load(out, s->blk + off, s->stride);
    ask(s, s->blk + off);
}
SL_INLINE void load2(vec out[8], source *s, uint32_t off) {
    if (s->packed) {
        SL_UNROLL
        for (uint32_t i = 0; i < 8; i++) out[i] = v_words(packed_unit(s, off + 4 * i, 4));
        return;
    }
    v_load2(out, s->blk + off, s->stride);
    ask(s, s->blk + off);
    ask(s, s->blk + off + 16);
}
SL_INLINE vec load1(source *s, uint32_t off) {
    if (s->packed) return v_words(packed_unit(s, off, 4));
    SL_PREFETCH(s->next);
    s->next += 4 * V_ROWS;
    return v_load1(s->blk + off, s->stride);
}

// Two bytes at the beginning or the end of a block that is no multiple of four bytes long.
SL_INLINE fvec load_f16(source *s, uint32_t off) {
    if (s->packed) return f_f16(v_halves(packed_unit(s, off, 2)), 0);
    return off == 0 ? f_f16(load1(s, 0), 0) : f_f16(load1(s, off - 2), 1);
}
SL_INLINE fvec load_e8m0(source *s, uint32_t off) {
    return f_e8m0(s->packed ? v_octets(packed_unit(s, off, 1)) : load1(s, off));
}

// 32 columns of the rows that are at hand.
SL_INLINE void put(sink *out, uint32_t at, source *s, const vec q[8]) {
    // Compilers would load what all unrolled columns are multiplied with before the first product, and spill it.
    atomic_signal_fence(memory_order_acq_rel);
    if (s->packed && s->row == 0) {
        SL_UNROLL
        for (uint32_t i = 0; i < s->col_bytes; i += 64) SL_PREFETCH(s->next + i);
        s->next += s->col_bytes;
    }
    put_cols(out, at, s->row, q);
}

// ---- plain blocks ------------------------------------------------------------------------------------------

// 16 bytes of nibbles as halves: 32 columns.
SL_INLINE void load_halves(vec q[8], source *s, uint32_t qs) {
    vec v[4];
    load(v, s, qs);
    SL_UNROLL
    for (uint32_t i = 0; i < 4; i++) q[i] = v_and(v[i], 0x0f), q[4 + i] = take(v[i], 4, 0, 0x0f);
}

SL_INLINE void put_halves(sink *out, uint32_t at, source *s, uint32_t qs) {
    vec q[8];
    load_halves(q, s, qs);
    put(out, at, s, q);
}

SL_INLINE void put_halves_5(sink *out, uint32_t at, source *s, uint32_t qs, vec qh) {
    vec q[8];
    load_halves(q, s, qs);
    SL_UNROLL
    for (uint32_t i = 0; i < 8; i++) q[i] = v_set16(q[i], qh, i);
    put(out, at, s, q);
}

SL_INLINE void put_halves_book(sink *out, uint32_t at, source *s, uint32_t qs, const uint8_t table[16]) {
    vec q[8];
    load_halves(q, s, qs);
    SL_UNROLL
    for (uint32_t i = 0; i < 8; i++) q[i] = v_look(table, q[i]);
    put(out, at, s, q);
}

// The body runs for each vector of rows and each block.
#define FOR_BLOCKS(type)                                           \
    for (uint32_t row = 0; row < SL_CPU_PANEL_ROWS; row += V_ROWS) \
        for (uint32_t b = 0; b < from->n_blk; b++)                 \
            for (bool once = at_block(&s, from, row, b * (uint32_t)sizeof(type)); once; once = false)
#define AT(type, member) ((uint32_t)offsetof(type, member))

SL_INLINE bool at_block(source *s, const sl_panel_source *from, uint32_t row, uint32_t off) {
    s->blk = from->w + (s->packed ? SL_CPU_PANEL_ROWS * off : row * s->stride + off);
    s->row = row;
    return true;
}

SL_INLINE void unpack_q4_0(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q4_0), 32);
    FOR_BLOCKS(sl_blk_q4_0) {
        put_scale(out, b, row, load_f16(&s, 0));
        put_halves(out, b, &s, AT(sl_blk_q4_0, qs));
    }
}

SL_INLINE void unpack_q4_1(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q4_1), 32);
    FOR_BLOCKS(sl_blk_q4_1) {
        vec dm = load1(&s, 0);
        put_scale(out, b, row, f_f16(dm, 0));
        put_min(out, b, row, f_f16(dm, 1));
        put_halves(out, b, &s, AT(sl_blk_q4_1, qs));
    }
}

SL_INLINE void unpack_q5_0(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q5_0), 32);
    FOR_BLOCKS(sl_blk_q5_0) {
        put_scale(out, b, row, load_f16(&s, 0));
        put_halves_5(out, b, &s, AT(sl_blk_q5_0, qs), load1(&s, AT(sl_blk_q5_0, qh)));
    }
}

SL_INLINE void unpack_q5_1(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q5_1), 32);
    FOR_BLOCKS(sl_blk_q5_1) {
        vec dm = load1(&s, 0);
        put_scale(out, b, row, f_f16(dm, 0));
        put_min(out, b, row, f_f16(dm, 1));
        put_halves_5(out, b, &s, AT(sl_blk_q5_1, qs), load1(&s, AT(sl_blk_q5_1, qh)));
    }
}

SL_INLINE void unpack_q8_0(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q8_0), 32);
    FOR_BLOCKS(sl_blk_q8_0) {
        put_scale(out, b, row, load_f16(&s, 0));
        vec v[8];
        load2(v, &s, AT(sl_blk_q8_0, qs));
        SL_UNROLL
        for (uint32_t i = 0; i < 8; i++) v[i] = v_add128(v[i]);
        put(out, b, &s, v);
    }
}

SL_INLINE void unpack_iq4_nl(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_iq4_nl), 32);
    uint8_t table[16];
    book(table, iq4_values, SIGNED_OFFSET);
    FOR_BLOCKS(sl_blk_iq4_nl) {
        put_scale(out, b, row, load_f16(&s, 0));
        put_halves_book(out, b, &s, AT(sl_blk_iq4_nl, qs), table);
    }
}

SL_INLINE void unpack_mxfp4(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_mxfp4), 32);
    uint8_t table[16];
    book(table, mxfp4_values, MXFP4_OFFSET);
    FOR_BLOCKS(sl_blk_mxfp4) {
        put_scale(out, b, row, load_e8m0(&s, 0));
        put_halves_book(out, b, &s, AT(sl_blk_mxfp4, qs), table);
    }
}

// ---- super-blocks: always one, of 256 columns --------------------------------------------------------------

// The header that q4_K and q5_K share: 8 six-bit scales and minima, see blocks.h. The scales of odd groups are also
// divided by `odd`.
SL_INLINE void put_k_header(sink *out, uint32_t row, source *s, float odd) {
    vec h[4];
    load(h, s, 0); // d and dmin; scale bytes 0..3; 4..7; 8..11
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
SL_INLINE void unpack_q4_k(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q4_k), SL_ACT_BLK_LEN);
    FOR_BLOCKS(sl_blk_q4_k) {
        put_k_header(out, row, &s, 16);
        for (uint32_t run = 0; run < 4; run++) { // 64 columns: 32 low nibbles, 32 high
            vec v[8], q[2][8];
            load2(v, &s, AT(sl_blk_q4_k, qs) + 32 * run);
            SL_UNROLL
            for (uint32_t i = 0; i < 8; i++) q[0][i] = v_and(v[i], 0x0f), q[1][i] = v_and(v[i], 0xf0);
            put(out, 2 * run, &s, q[0]);
            put(out, 2 * run + 1, &s, q[1]);
        }
    }
}

SL_INLINE void unpack_q5_k(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q5_k), SL_ACT_BLK_LEN);
    FOR_BLOCKS(sl_blk_q5_k) {
        put_k_header(out, row, &s, 1);
        vec high[8]; // bit k of a byte: column 32 k + l
        load2(high, &s, AT(sl_blk_q5_k, qh));
        SL_UNROLL
        for (uint32_t run = 0; run < 4; run++) {
            vec v[8], q[2][8];
            load2(v, &s, AT(sl_blk_q5_k, qs) + 32 * run);
            SL_UNROLL
            for (uint32_t i = 0; i < 8; i++) {
                q[0][i] = v_or(v_and(v[i], 0x0f), take(high[i], 2 * run, 4, 0x10));
                q[1][i] = v_or(take(v[i], 4, 0, 0x0f), take(high[i], 2 * run + 1, 4, 0x10));
            }
            put(out, 2 * run, &s, q[0]);
            put(out, 2 * run + 1, &s, q[1]);
        }
    }
}

SL_INLINE void unpack_q6_k(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q6_k), SL_ACT_BLK_LEN);
    FOR_BLOCKS(sl_blk_q6_k) {
        vec sub[4];
        load(sub, &s, AT(sl_blk_q6_k, scales));
        fvec d = load_f16(&s, AT(sl_blk_q6_k, d));
        SL_UNROLL
        for (uint32_t g = 0; g < 16; g++) put_scale(out, g, row, f_mul(d, f_sbyte(sub[g / 4], g % 4)));
        for (uint32_t run = 0; run < 2; run++) { // 128 columns
            vec v[2][8], h[8];
            load2(v[0], &s, AT(sl_blk_q6_k, ql) + 64 * run);
            load2(v[1], &s, AT(sl_blk_q6_k, ql) + 64 * run + 32);
            load2(h, &s, AT(sl_blk_q6_k, qh) + 32 * run);
            SL_UNROLL
            for (uint32_t j = 0; j < 4; j++) {
                vec q[8];
                SL_UNROLL
                for (uint32_t i = 0; i < 8; i++)
                    q[i] = v_or(take(v[j % 2][i], j / 2 * 4, 0, 0x0f), take(h[i], 2 * j, 4, 0x30));
                put(out, 4 * run + j, &s, q);
            }
        }
    }
}

SL_INLINE void unpack_q3_k(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q3_k), SL_ACT_BLK_LEN);
    FOR_BLOCKS(sl_blk_q3_k) {
        uint32_t scales = AT(sl_blk_q3_k, scales);
        vec a = load1(&s, scales), c = load1(&s, scales + 4), h = load1(&s, scales + 8);
        vec sub[4] = {v_or(v_and(a, 0x0f), take(h, 0, 4, 0x30)), v_or(v_and(c, 0x0f), take(h, 2, 4, 0x30)),
                      v_or(take(a, 4, 0, 0x0f), take(h, 4, 4, 0x30)), v_or(take(c, 4, 0, 0x0f), take(h, 6, 4, 0x30))};
        fvec d = load_f16(&s, AT(sl_blk_q3_k, d));
        SL_UNROLL
        for (uint32_t g = 0; g < 16; g++) put_scale(out, g, row, f_mul(d, f_sub(f_byte(sub[g / 4], g % 4), 32)));
        vec high[8]; // bit k of a byte: column 32 k + l
        load2(high, &s, AT(sl_blk_q3_k, hmask));
        SL_UNROLL
        for (uint32_t run = 0; run < 2; run++) { // 128 columns
            vec v[8];
            load2(v, &s, AT(sl_blk_q3_k, qs) + 32 * run);
            SL_UNROLL
            for (uint32_t j = 0; j < 4; j++) {
                vec q[8];
                SL_UNROLL
                for (uint32_t i = 0; i < 8; i++)
                    q[i] = v_or(take(v[i], 2 * j, 0, 0x03), take(high[i], 4 * run + j, 2, 0x04));
                put(out, 4 * run + j, &s, q);
            }
        }
    }
}

SL_INLINE void unpack_q2_k(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_q2_k), SL_ACT_BLK_LEN);
    FOR_BLOCKS(sl_blk_q2_k) {
        vec sub[4], dd = load1(&s, AT(sl_blk_q2_k, d));
        load(sub, &s, AT(sl_blk_q2_k, scales));
        fvec d = f_f16(dd, 0), dmin = f_mul(f_f16(dd, 1), f_set(-1));
        SL_UNROLL
        for (uint32_t g = 0; g < 16; g++) {
            put_scale(out, g, row, f_mul(d, f_byte(v_and(sub[g / 4], 0x0f), g % 4)));
            put_min(out, g, row, f_mul(dmin, f_byte(take(sub[g / 4], 4, 0, 0x0f), g % 4)));
        }
        for (uint32_t run = 0; run < 2; run++) { // 128 columns
            vec v[8];
            load2(v, &s, AT(sl_blk_q2_k, qs) + 32 * run);
            SL_UNROLL
            for (uint32_t j = 0; j < 4; j++) {
                vec q[8];
                SL_UNROLL
                for (uint32_t i = 0; i < 8; i++) q[i] = take(v[i], 2 * j, 0, 0x03);
                put(out, 4 * run + j, &s, q);
            }
        }
    }
}

SL_INLINE void unpack_iq4_xs(sink *out, const sl_panel_source *from, const bool packed) {
    source s = source_of(from, packed, sizeof(sl_blk_iq4_xs), SL_ACT_BLK_LEN);
    uint8_t table[16];
    book(table, iq4_values, SIGNED_OFFSET);
    FOR_BLOCKS(sl_blk_iq4_xs) {
        vec h = load1(&s, 0), low = load1(&s, AT(sl_blk_iq4_xs, scales_l));
        fvec d = f_f16(h, 0);
        SL_UNROLL
        for (uint32_t g = 0; g < 8; g++) {
            vec lo = take(low, 4 * g, 0, 0x0f), hi = take(h, 16 + 2 * g, 4, 0x30);
            put_scale(out, g, row, f_mul(d, f_sub(f_byte(v_or(lo, hi), 0), 32)));
            put_halves_book(out, g, &s, AT(sl_blk_iq4_xs, qs) + 16 * g, table);
        }
    }
}

#undef FOR_BLOCKS
#undef AT

// ---- all of them -------------------------------------------------------------------------------------------

// X(TYPE, name, group length, offset of the bytes, 1 if there are minima)
#define SL_BLOCK_TYPES(X)                   \
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

#endif
