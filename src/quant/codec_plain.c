// SPDX-License-Identifier: MIT
//
// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: 32 elements with one scale. Layouts and formulas: blocks.h.
#include <math.h>

#include "base/half.h"
#include "quant/blocks.h"
#include "quant/codecs.h"

void sl_decode_q4_0(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q4_0 *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_LEN) {
        float d = sl_f16_to_f32(b->d);
        for (int l = 0; l < 16; l++) {
            out[l] = d * (float)((b->qs[l] & 15) - 8);
            out[l + 16] = d * (float)((b->qs[l] >> 4) - 8);
        }
    }
}

void sl_decode_q4_1(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q4_1 *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_LEN) {
        float d = sl_f16_to_f32(b->d), m = sl_f16_to_f32(b->m);
        for (int l = 0; l < 16; l++) {
            out[l] = d * (float)(b->qs[l] & 15) + m;
            out[l + 16] = d * (float)(b->qs[l] >> 4) + m;
        }
    }
}

// Bit i of the word qh as bit 4 of out[i].
static void spread(uint8_t out[SL_BLK_LEN], const uint8_t qh[4]) {
    for (int k = 0; k < 4; k++)
        for (int l = 0; l < 8; l++) out[8 * k + l] = (uint8_t)((qh[k] >> l & 1) << 4);
}

void sl_decode_q5_0(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q5_0 *b = blocks;
    uint8_t high[SL_BLK_LEN];
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_LEN) {
        float d = sl_f16_to_f32(b->d);
        spread(high, b->qh);
        for (int l = 0; l < 16; l++) {
            out[l] = d * (float)(((b->qs[l] & 15) | high[l]) - 16);
            out[l + 16] = d * (float)((b->qs[l] >> 4 | high[l + 16]) - 16);
        }
    }
}

void sl_decode_q5_1(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q5_1 *b = blocks;
    uint8_t high[SL_BLK_LEN];
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_LEN) {
        float d = sl_f16_to_f32(b->d), m = sl_f16_to_f32(b->m);
        spread(high, b->qh);
        for (int l = 0; l < 16; l++) {
            out[l] = d * (float)((b->qs[l] & 15) | high[l]) + m;
            out[l + 16] = d * (float)(b->qs[l] >> 4 | high[l + 16]) + m;
        }
    }
}

void sl_decode_q8_0(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q8_0 *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_LEN) {
        float d = sl_f16_to_f32(b->d);
        for (int l = 0; l < SL_BLK_LEN; l++) out[l] = d * (float)b->qs[l];
    }
}

// To the nearest, ties away from zero, as the reference; what is no number becomes 0, so that the
// cast is defined.
static int8_t round_to_i8(float x) {
    float r = roundf(x);
    return r >= -127 && r <= 127 ? (int8_t)r : r > 127 ? 127 : r < -127 ? -127 : 0;
}

// A block with an infinity or a NaN gets a scale that is one, so it decodes to no number either.
void sl_encode_q8_0(void *blocks, const float *in, size_t n_blk) {
    sl_blk_q8_0 *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, in += SL_BLK_LEN) {
        float max = 0;
        for (int l = 0; l < SL_BLK_LEN; l++) {
            float a = fabsf(in[l]);
            if (!(a <= max)) max = a; // true of a NaN too, which then stays
            if (isnan(max)) break;
        }
        float d = max / 127, inverse = d == 0 ? 0 : 1 / d;
        b->d = sl_f16_from_f32(d);
        for (int l = 0; l < SL_BLK_LEN; l++) b->qs[l] = round_to_i8(in[l] * inverse);
    }
}
