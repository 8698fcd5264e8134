// SPDX-License-Identifier: MIT
//
// Quantised keys and values: what a cache of type Q8_0, Q5_0 or Q4_0 keeps of a vector, the same on every backend to
// the bit. How a backend orders the bytes in its blocks is its own affair.
//
// V: the vector of one position in one KV head is first rotated: consecutive stretches of n_rot elements, n_rot the
// largest power of two that divides its length, are multiplied by the Walsh-Hadamard matrix of that order over
// sqrt(n_rot). Outliers of single channels are spread over all. The matrix is its own inverse, so the weighted sum of V
// is rotated back once. Then each group of SL_KV_GROUP elements gets a scale d >= 0 in binary16 and a code for each:
//   Q8_0  8 bits: value = d * (code - 128), code in 1..255;   d = largest magnitude / 127
//   Q5_0  5 bits: value = d * (2 code - 31)
//   Q4_0  4 bits: value = d * (code < 8 ? -level[7 - code] : level[code - 8]), levels as the normal law has them
// so a value takes 8.5, 5.5 and 4.5 bits, as in GGUF's types of these names, whose formulas differ. Of 4 and 5 bits
// the scale is the best of SL_KV_TRIES by its squared error.
//
// K has its outliers in channels, and some models a bias there that turns with the position, so it is not rotated: a
// channel (one dim of one KV head, as attention reads it) over SL_KV_GROUP consecutive positions, rounded to binary16
// first, has a grid of its own: value = least + d * code, from the smallest to the largest of the 32.
//   Q8_0  d and least in binary16                                                           9 bits a value
//   Q5_0, Q4_0  d is the upper byte of a binary16 without its sign (5 bits of exponent, 3 of fraction), rounded up so
//         that all fits; least = z * d, z in -127 .. 127                                  5.5 and 4.5 bits a value
// Nothing is clipped: the first position of a text has extremes in many channels at once, and errors there add up.
//
// A group or channel with an infinity or a NaN has a NaN for its scale; then the codes mean nothing.
//
// Clean C: also for CUDA and Metal sources.
#ifndef SL_QUANT_KV_CODEC_H
#define SL_QUANT_KV_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/type.h"

enum { SL_KV_GROUP = 32, SL_KV_TRIES = 8, SL_KV_LEVELS = 8, SL_KV_MAX_DIM = 1024 };

// Of Q4_0, of one sign, and the magnitudes at which the next one begins.
#define SL_KV_LEVEL \
    { 7, 20, 34, 48, 63, 80, 99, 127 }
#define SL_KV_EDGE \
    { 13.5f, 27.0f, 41.0f, 55.5f, 71.5f, 89.5f, 113.0f }
// What the largest magnitude of a group is taken for, as a share of the outermost level.
#define SL_KV_TRY_Q4 \
    { 1.0f, 0.91f, 0.955f, 1.045f, 1.09f, 1.14f, 1.19f, 1.24f }
#define SL_KV_TRY_Q5 \
    { 1.0f, 0.85f, 0.88f, 0.91f, 0.94f, 0.97f, 0.985f, 1.015f }

// Bits of a code; 0 for a type that holds floats.
static inline int sl_kv_code_bits(sl_type type) {
    return type == SL_TYPE_Q8_0 ? 8 : type == SL_TYPE_Q5_0 ? 5 : type == SL_TYPE_Q4_0 ? 4 : 0;
}

// May a cache have this type?
static inline bool sl_kv_type_possible(sl_type type) {
    return type == SL_TYPE_F32 || type == SL_TYPE_F16 || type == SL_TYPE_BF16 || sl_kv_code_bits(type);
}

// The order of the rotation of a vector of dim elements.
static inline uint32_t sl_kv_rotation(uint32_t dim) { return dim & (~dim + 1); }

// Rotates n elements, a multiple of n_rot, in place. Additions of pairs at distance 1, 2, 4 .. n_rot / 2, the first of
// a pair becoming the sum, then one product with 1/sqrt(n_rot): this order is the definition. Of n_rot <= 1 nothing.
void sl_kv_rotate(float *x, uint32_t n, uint32_t n_rot);

// Bytes of a KV head in a block of SL_KV_GROUP positions.
static inline uint64_t sl_kv_head_bytes(sl_type type, bool is_v, uint32_t dim) {
    uint64_t bits = (uint64_t)sl_kv_code_bits(type);
    if (is_v || bits == 0) return SL_KV_GROUP * sl_type_row_bytes(sl_type_find((uint32_t)type), dim);
    return dim * (SL_KV_GROUP / 8 * bits + (bits == 8 ? 4 : 2));
}

// The grid of a channel of K: the number that is kept of it, of 16 bits or, for Q8_0, 32, and what it stands for. A
// code is nearest((value - from) / d) - z, brought into 0 .. most.
typedef struct sl_kv_grid {
    uint32_t kept;
    float d, least; // NaN if the channel has none
    float inverse;  // of d; 0 if d is 0 or NaN
    float from, z;
} sl_kv_grid;
sl_kv_grid sl_kv_grid_make(sl_type type, float min, float max); // of binary16 numbers
void sl_kv_grid_read(sl_type type, uint32_t kept, float *d, float *least);
// Codes of a channel (numbers of binary16); the result is what is kept of its grid.
uint32_t sl_kv_encode_channel(sl_type type, uint8_t code[SL_KV_GROUP], const float in[SL_KV_GROUP]);

// Codes of one group of V; the result is the scale, in binary16.
uint16_t sl_kv_encode(sl_type type, uint8_t code[SL_KV_GROUP], const float in[SL_KV_GROUP]);

// What a code of V stands for in units of the scale.
int sl_kv_level(sl_type type, uint8_t code);

#endif
