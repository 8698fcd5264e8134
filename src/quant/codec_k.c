// SPDX-License-Identifier: MIT
//
// Q2_K .. Q6_K: 256 elements, sub-blocks with small integer scales. Layouts and formulas: blocks.h. Sub-block scale
// first, then times the quant, then minus the minimum: that order makes the result bit-exact.
#include "base/half.h"
#include "quant/blocks.h"
#include "quant/codecs.h"

// Element i of 256 two-bit numbers.
static int two_bits(const uint8_t qs[64], int i) { return qs[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3; }

// Element i of 256 single bits.
static int one_bit(const uint8_t mask[32], int i) { return mask[i % 32] >> i / 32 & 1; }

void sl_decode_q2_k(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_q2_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d), dmin = sl_f16_to_f32(b->dmin);
        for (int l = 0; l < SL_BLK_K_LEN; l++) {
            float scale = d * (float)(b->scales[l / 16] & 15), min = dmin * (float)(b->scales[l / 16] >> 4);
            out[l] = scale * (float)two_bits(b->qs, l) - min;
        }
    }
}

static int scale_q3(const uint8_t scales[12], int j) {
    int low = scales[j % 8] >> j / 8 * 4 & 15, high = scales[8 + j % 4] >> j / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

void sl_decode_q3_k(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_q3_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d);
        for (int l = 0; l < SL_BLK_K_LEN; l++) {
            float scale = d * (float)scale_q3(b->scales, l / 16);
            out[l] = scale * (float)((two_bits(b->qs, l) | one_bit(b->hmask, l) << 2) - 4);
        }
    }
}

// Scale and minimum of sub-block j of q4_K and q5_K.
static void scale_min(const uint8_t s[12], int j, int *scale, int *min) {
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[4 + j] & 63;
    } else {
        *scale = (s[4 + j] & 15) | s[j - 4] >> 6 << 4;
        *min = s[4 + j] >> 4 | s[j] >> 6 << 4;
    }
}

// Element i of 256 nibbles, in runs of n bytes that hold 2 n elements.
static int nibble(const uint8_t qs[128], int i, int n) { return qs[i / (2 * n) * n + i % n] >> i / n % 2 * 4 & 15; }

void sl_decode_q4_k(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_q4_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d), dmin = sl_f16_to_f32(b->dmin);
        for (int l = 0, scale, min; l < SL_BLK_K_LEN; l++) {
            scale_min(b->scales, l / 32, &scale, &min);
            out[l] = d * (float)scale * (float)nibble(b->qs, l, 32) - dmin * (float)min;
        }
    }
}

void sl_decode_q5_k(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_q5_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d), dmin = sl_f16_to_f32(b->dmin);
        for (int l = 0, scale, min; l < SL_BLK_K_LEN; l++) {
            scale_min(b->scales, l / 32, &scale, &min);
            int q = nibble(b->qs, l, 32) | one_bit(b->qh, l) << 4;
            out[l] = d * (float)scale * (float)q - dmin * (float)min;
        }
    }
}

void sl_decode_q6_k(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_q6_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d);
        for (int l = 0; l < SL_BLK_K_LEN; l++) {
            int q = (nibble(b->ql, l, 64) | two_bits(b->qh, l) << 4) - 32;
            out[l] = d * (float)b->scales[l / 16] * (float)q;
        }
    }
}
