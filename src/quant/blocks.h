// SPDX-License-Identifier: MIT
//
// The packed blocks of GGUF's quantised types, byte for byte as they stand in a file (facts of the
// format). One header for C, CUDA and Metal, so it has no functions and includes only what names
// the integer types.
//
// Notation: x[i] is element i of a block. `d`, `m` and `dmin` are IEEE binary16 as bits. "Halves"
// means that the low nibbles of qs[0..n) are the first n elements and the high nibbles the next n.
// A block's alignment is that of its widest field (2 bytes at most); rows of blocks have no
// padding.
#ifndef SL_QUANT_BLOCKS_H
#define SL_QUANT_BLOCKS_H

#if !defined(__METAL_VERSION__) // Metal has these types built in
#include <stdint.h>
#endif

#if defined(__cplusplus) // CUDA and Metal are C++
#define SL_BLOCK_BYTES(type, n) static_assert(sizeof(type) == (n), "layout of " #type)
#else
#define SL_BLOCK_BYTES(type, n) _Static_assert(sizeof(type) == (n), "layout of " #type)
#endif

enum {
    SL_BLK_LEN = 32,    // elements of a plain block
    SL_BLK_K_LEN = 256, // of a super-block
};

// ---- plain blocks: 32 elements, one scale -------------------------------------------------------

typedef struct sl_blk_q4_0 { // x = d * (q - 8)
    uint16_t d;
    uint8_t qs[16]; // halves
} sl_blk_q4_0;
SL_BLOCK_BYTES(sl_blk_q4_0, 18);

typedef struct sl_blk_q4_1 { // x = d * q + m
    uint16_t d, m;
    uint8_t qs[16]; // halves
} sl_blk_q4_1;
SL_BLOCK_BYTES(sl_blk_q4_1, 20);

typedef struct sl_blk_q5_0 { // x = d * (q - 16)
    uint16_t d;
    uint8_t qh[4];  // bit i of this little-endian word is bit 4 of element i
    uint8_t qs[16]; // halves: bits 0..3
} sl_blk_q5_0;
SL_BLOCK_BYTES(sl_blk_q5_0, 22);

typedef struct sl_blk_q5_1 { // x = d * q + m
    uint16_t d, m;
    uint8_t qh[4]; // as in q5_0
    uint8_t qs[16];
} sl_blk_q5_1;
SL_BLOCK_BYTES(sl_blk_q5_1, 24);

typedef struct sl_blk_q8_0 { // x = d * q
    uint16_t d;
    int8_t qs[32];
} sl_blk_q8_0;
SL_BLOCK_BYTES(sl_blk_q8_0, 34);

// ---- super-blocks: 256 elements, scales of sub-blocks -------------------------------------------
//
// The 2-bit quants of q2_K and q3_K, and the upper bits of q6_K: each run of 32 bytes holds 128
// elements; byte l has elements l, l + 32, l + 64, l + 96 of the run, from its lowest two bits up.

typedef struct sl_blk_q2_k { // x = (d * scale) * q - (dmin * min), 16 sub-blocks of 16
    uint8_t scales[16];      // low nibble: scale, high nibble: min
    uint8_t qs[64];
    uint16_t d, dmin;
} sl_blk_q2_k;
SL_BLOCK_BYTES(sl_blk_q2_k, 84);

typedef struct sl_blk_q3_k { // x = (d * (scale - 32)) * (q - 4), 16 sub-blocks of 16
    uint8_t hmask[32];       // bit k of byte l: bit 2 of element 32 k + l
    uint8_t qs[64];          // bits 0..1
    // 6 bits each: low nibbles of [0..8) are bits 0..3 of scales 0..7, high nibbles of 8..15; bits
    // 2j, 2j + 1 of byte 8 + l are bits 4..5 of scale 4 j + l
    uint8_t scales[12];
    uint16_t d;
} sl_blk_q3_k;
SL_BLOCK_BYTES(sl_blk_q3_k, 110);

typedef struct sl_blk_q4_k { // x = (d * scale) * q - (dmin * min), 8 sub-blocks of 32
    uint16_t d, dmin;
    // 6 bits each. j < 4: scale j is bits 0..5 of byte j, min j of byte 4 + j. j >= 4: bits 0..3 of
    // scale and min j are the nibbles of byte 4 + j; bits 4..5 are bits 6..7 of bytes j - 4 and j
    uint8_t scales[12];
    uint8_t qs[128]; // each run of 32 bytes holds two sub-blocks, as halves
} sl_blk_q4_k;
SL_BLOCK_BYTES(sl_blk_q4_k, 144);

typedef struct sl_blk_q5_k { // as q4_K, with a fifth bit
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qh[32]; // bit k of byte l: bit 4 of element 32 k + l
    uint8_t qs[128];
} sl_blk_q5_k;
SL_BLOCK_BYTES(sl_blk_q5_k, 176);

typedef struct sl_blk_q6_k { // x = (d * scale) * (q - 32), 16 sub-blocks of 16
    uint8_t ql[128];         // bits 0..3: each run of 64 bytes holds 128 elements, as halves
    uint8_t qh[64];          // bits 4..5
    int8_t scales[16];
    uint16_t d;
} sl_blk_q6_k;
SL_BLOCK_BYTES(sl_blk_q6_k, 210);

// ---- code books ---------------------------------------------------------------------------------

typedef struct sl_blk_iq4_nl { // x = d * SL_IQ4_VALUES[q]
    uint16_t d;
    uint8_t qs[16]; // halves
} sl_blk_iq4_nl;
SL_BLOCK_BYTES(sl_blk_iq4_nl, 18);

typedef struct sl_blk_iq4_xs { // x = (d * (scale - 32)) * SL_IQ4_VALUES[q], 8 sub-blocks of 32
    uint16_t d;
    uint16_t scales_h;   // bits 2j, 2j + 1: bits 4..5 of scale j
    uint8_t scales_l[4]; // nibble j, low first: bits 0..3 of scale j
    uint8_t qs[128];     // each run of 16 bytes is a sub-block, as halves
} sl_blk_iq4_xs;
SL_BLOCK_BYTES(sl_blk_iq4_xs, 136);

typedef struct sl_blk_mxfp4 { // x = 2^(e - 128) * SL_MXFP4_VALUES[q] (OCP MX, whose values these
                              // are doubled)
    uint8_t e;
    uint8_t qs[16]; // halves
} sl_blk_mxfp4;
SL_BLOCK_BYTES(sl_blk_mxfp4, 17);

// clang-format off
#define SL_IQ4_VALUES   {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
#define SL_MXFP4_VALUES {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
// clang-format on

#endif
