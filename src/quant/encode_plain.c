// SPDX-License-Identifier: MIT
//
// Floats to Q4_0, Q4_1, Q5_0, Q5_1 with the best scale for each block (fit.h). The scale is rounded to binary16 before
// the codes are chosen, so that they are the nearest to what will be decoded.
#include <string.h>

#include "quant/blocks.h"
#include "quant/codecs.h"
#include "quant/fit.h"

// Fits one block; codes less their lowest. scale and min come out exact in binary16.
static sl_fit fit_block(uint8_t code[SL_BLK_LEN], const float *x, const float *importance, int lo, int hi) {
    float w[SL_BLK_LEN];
    sl_fit_weigh(w, x, importance, SL_BLK_LEN);
    sl_fit fit = lo < 0 ? sl_fit_scale(x, w, SL_BLK_LEN, lo, hi) : sl_fit_affine(x, w, SL_BLK_LEN, hi, true);
    fit.scale = sl_fit_half(fit.scale), fit.min = sl_fit_half(fit.min);
    float inverse = sl_fit_inverse(fit.scale);
    for (int i = 0; i < SL_BLK_LEN; i++)
        code[i] = (uint8_t)((int)sl_fit_code((x[i] - fit.min) * inverse, (float)lo, (float)hi) - lo);
    return fit;
}

static void pack_high(uint8_t qh[4], const uint8_t code[SL_BLK_LEN]) {
    memset(qh, 0, 4);
    for (int i = 0; i < SL_BLK_LEN; i++) qh[i / 8] |= (uint8_t)(code[i] >> 4 << i % 8);
}

static const float *at(const float *importance, size_t i) { return importance ? importance + i * SL_BLK_LEN : NULL; }

void sl_fit_q4_0(void *blocks, const float *in, const float *importance, size_t n_blk) {
    sl_blk_q4_0 *b = blocks;
    uint8_t code[SL_BLK_LEN];
    for (size_t i = 0; i < n_blk; i++, b++) {
        b->d = sl_f16_from_f32(fit_block(code, in + i * SL_BLK_LEN, at(importance, i), -8, 7).scale);
        sl_fit_pack_halves(b->qs, code);
    }
}

void sl_fit_q4_1(void *blocks, const float *in, const float *importance, size_t n_blk) {
    sl_blk_q4_1 *b = blocks;
    uint8_t code[SL_BLK_LEN];
    for (size_t i = 0; i < n_blk; i++, b++) {
        sl_fit fit = fit_block(code, in + i * SL_BLK_LEN, at(importance, i), 0, 15);
        b->d = sl_f16_from_f32(fit.scale), b->m = sl_f16_from_f32(fit.min);
        sl_fit_pack_halves(b->qs, code);
    }
}

void sl_fit_q5_0(void *blocks, const float *in, const float *importance, size_t n_blk) {
    sl_blk_q5_0 *b = blocks;
    uint8_t code[SL_BLK_LEN];
    for (size_t i = 0; i < n_blk; i++, b++) {
        b->d = sl_f16_from_f32(fit_block(code, in + i * SL_BLK_LEN, at(importance, i), -16, 15).scale);
        sl_fit_pack_halves(b->qs, code), pack_high(b->qh, code);
    }
}

void sl_fit_q5_1(void *blocks, const float *in, const float *importance, size_t n_blk) {
    sl_blk_q5_1 *b = blocks;
    uint8_t code[SL_BLK_LEN];
    for (size_t i = 0; i < n_blk; i++, b++) {
        sl_fit fit = fit_block(code, in + i * SL_BLK_LEN, at(importance, i), 0, 31);
        b->d = sl_f16_from_f32(fit.scale), b->m = sl_f16_from_f32(fit.min);
        sl_fit_pack_halves(b->qs, code), pack_high(b->qh, code);
    }
}
