// SPDX-License-Identifier: MIT
//
// Q2_K .. Q6_K: 256 elements, sub-blocks with small integer scales. Layouts and formulas: blocks.h.
// Sub-block scale first, then times the quant, then minus the minimum: that order makes the result
// bit-exact.
#include "base/half.h"
#include "quant/blocks.h"
#include "quant/codecs.h"

// Numbers of a few bits lie in planes: element i of a run is byte i of the run's bytes, shifted. A sub-block is one
// shift of 16 or 32 bytes, so its loop is plain enough for a compiler's vectors. Sub-block j of 16 or 32 elements:

// of two-bit numbers: 32 bytes hold 128 elements
static const uint8_t *two_bits(const uint8_t qs[64], int first, int *shift) {
    *shift = first % 128 / 32 * 2;
    return qs + first / 128 * 32 + first % 32;
}

// of nibbles: n bytes hold 2 n elements
static const uint8_t *nibbles(const uint8_t qs[128], int first, int n, int *shift) {
    *shift = first / n % 2 * 4;
    return qs + first / (2 * n) * n + first % n;
}

void sl_decode_q2_k(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q2_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++) {
        float d = sl_f16_to_f32(b->d), dmin = sl_f16_to_f32(b->dmin);
        for (int j = 0; j < 16; j++, out += 16) {
            float scale = d * (float)(b->scales[j] & 15), min = dmin * (float)(b->scales[j] >> 4);
            int shift;
            const uint8_t *q = two_bits(b->qs, 16 * j, &shift);
            for (int l = 0; l < 16; l++) out[l] = scale * (float)(q[l] >> shift & 3) - min;
        }
    }
}

static int scale_q3(const uint8_t scales[12], int j) {
    int low = scales[j % 8] >> j / 8 * 4 & 15, high = scales[8 + j % 4] >> j / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

void sl_decode_q3_k(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q3_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++) {
        float d = sl_f16_to_f32(b->d);
        for (int j = 0; j < 16; j++, out += 16) {
            float scale = d * (float)scale_q3(b->scales, j);
            int shift;
            const uint8_t *q = two_bits(b->qs, 16 * j, &shift), *high = b->hmask + j % 2 * 16;
            for (int l = 0; l < 16; l++)
                out[l] = scale * (float)(((q[l] >> shift & 3) | (high[l] >> j / 2 & 1) << 2) - 4);
        }
    }
}

// Of sub-block j of q4_K and q5_K.
static int scale_q4(const uint8_t s[12], int j) { return j < 4 ? s[j] & 63 : (s[4 + j] & 15) | s[j - 4] >> 6 << 4; }
static int min_q4(const uint8_t s[12], int j) { return j < 4 ? s[4 + j] & 63 : s[4 + j] >> 4 | s[j] >> 6 << 4; }

void sl_decode_q4_k(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q4_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++) {
        float d = sl_f16_to_f32(b->d), dmin = sl_f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++, out += 32) {
            float scale = d * (float)scale_q4(b->scales, j), min = dmin * (float)min_q4(b->scales, j);
            int shift;
            const uint8_t *q = nibbles(b->qs, 32 * j, 32, &shift);
            for (int l = 0; l < 32; l++) out[l] = scale * (float)(q[l] >> shift & 15) - min;
        }
    }
}

void sl_decode_q5_k(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q5_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++) {
        float d = sl_f16_to_f32(b->d), dmin = sl_f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++, out += 32) {
            float scale = d * (float)scale_q4(b->scales, j), min = dmin * (float)min_q4(b->scales, j);
            int shift;
            const uint8_t *q = nibbles(b->qs, 32 * j, 32, &shift), *high = b->qh;
            for (int l = 0; l < 32; l++) out[l] = scale * (float)((q[l] >> shift & 15) | (high[l] >> j & 1) << 4) - min;
        }
    }
}

void sl_decode_q6_k(float *restrict out, const void *blocks, size_t n_blk) {
    const sl_blk_q6_k *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++) {
        float d = sl_f16_to_f32(b->d);
        for (int j = 0; j < 16; j++, out += 16) {
            float scale = d * (float)b->scales[j];
            int shift, high_shift;
            const uint8_t *q = nibbles(b->ql, 16 * j, 64, &shift);
            const uint8_t *high = two_bits(b->qh, 16 * j, &high_shift);
            for (int l = 0; l < 16; l++)
                out[l] = scale * (float)(((q[l] >> shift & 15) | (high[l] >> high_shift & 3) << 4) - 32);
        }
    }
}
