// SPDX-License-Identifier: MIT
//
// Q2_K .. Q6_K: 256 elements, sub-blocks with small integer scales. Layouts and formulas: blocks.h.
// Sub-block scale first, then times the quant, then minus the minimum: that order makes the result
// bit-exact.
#include "base/half.h"
#include "quant/blocks.h"
#include "quant/codecs.h"

// Element i of 256 two-bit numbers.
static int two_bits(const uint8_t qs[64], int i) {
    return qs[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

// Element i of 256 single bits.
static int one_bit(const uint8_t mask[32], int i) { return mask[i % 32] >> i / 32 & 1; }

void sl_decode_q2_k(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_q2_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d), dmin = sl_f16_to_f32(b->dmin);
        for (int j = 0; j < 16; j++) {
            float scale = d * (float)(b->scales[j] & 15), min = dmin * (float)(b->scales[j] >> 4);
            for (int l = 16 * j; l < 16 * j + 16; l++)
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
        for (int j = 0; j < 16; j++) {
            float scale = d * (float)scale_q3(b->scales, j);
            for (int l = 16 * j; l < 16 * j + 16; l++)
                out[l] = scale * (float)((two_bits(b->qs, l) | one_bit(b->hmask, l) << 2) - 4);
        }
    }
}

// Of sub-block j of q4_K and q5_K.
static int scale_q4(const uint8_t s[12], int j) {
    return j < 4 ? s[j] & 63 : (s[4 + j] & 15) | s[j - 4] >> 6 << 4;
}
static int min_q4(const uint8_t s[12], int j) {
    return j < 4 ? s[4 + j] & 63 : s[4 + j] >> 4 | s[j] >> 6 << 4;
}

// Element i of 256 nibbles, in runs of n bytes that hold 2 n elements.
static int nibble(const uint8_t qs[128], int i, int n) {
    return qs[i / (2 * n) * n + i % n] >> i / n % 2 * 4 & 15;
}

void sl_decode_q4_k(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_q4_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d), dmin = sl_f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++) {
            float scale = d * (float)scale_q4(b->scales, j),
                  min = dmin * (float)min_q4(b->scales, j);
            for (int l = 32 * j; l < 32 * j + 32; l++)
                out[l] = scale * (float)nibble(b->qs, l, 32) - min;
        }
    }
}

void sl_decode_q5_k(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_q5_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d), dmin = sl_f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++) {
            float scale = d * (float)scale_q4(b->scales, j),
                  min = dmin * (float)min_q4(b->scales, j);
            for (int l = 32 * j; l < 32 * j + 32; l++)
                out[l] = scale * (float)(nibble(b->qs, l, 32) | one_bit(b->qh, l) << 4) - min;
        }
    }
}

void sl_decode_q6_k(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_q6_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d);
        for (int j = 0; j < 16; j++) {
            float scale = d * (float)b->scales[j];
            for (int l = 16 * j; l < 16 * j + 16; l++)
                out[l] = scale * (float)((nibble(b->ql, l, 64) | two_bits(b->qh, l) << 4) - 32);
        }
    }
}
