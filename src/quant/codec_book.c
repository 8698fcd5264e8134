// SPDX-License-Identifier: MIT
//
// IQ4_NL, IQ4_XS, MXFP4: nibbles that name a value of a small code book. Layouts and formulas:
// blocks.h.
#include "base/half.h"
#include "quant/blocks.h"
#include "quant/codecs.h"

static const int8_t iq4_values[16] = SL_IQ4_VALUES, mxfp4_values[16] = SL_MXFP4_VALUES;

// 32 nibbles, as halves.
static void decode_halves(float *out, float scale, const uint8_t qs[16], const int8_t values[16]) {
    for (int l = 0; l < 16; l++) {
        out[l] = scale * (float)values[qs[l] & 15];
        out[l + 16] = scale * (float)values[qs[l] >> 4];
    }
}

void sl_decode_iq4_nl(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_iq4_nl *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_LEN)
        decode_halves(out, sl_f16_to_f32(b->d), b->qs, iq4_values);
}

void sl_decode_iq4_xs(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_iq4_xs *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_K_LEN) {
        float d = sl_f16_to_f32(b->d);
        for (int j = 0; j < 8; j++) {
            int low = b->scales_l[j / 2] >> j % 2 * 4 & 15, high = b->scales_h >> j * 2 & 3;
            decode_halves(out + j * 32, d * (float)((low | high << 4) - 32), b->qs + j * 16, iq4_values);
        }
    }
}

// 2^(e - 128); the two smallest are subnormal. 255, a NaN in the OCP format, is a number to the
// reference.
static float half_of_e8m0(uint8_t e) { return sl_f32_from_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23); }

void sl_decode_mxfp4(float *out, const void *blocks, size_t n_blk) {
    const sl_blk_mxfp4 *b = blocks;
    for (size_t i = 0; i < n_blk; i++, b++, out += SL_BLK_LEN)
        decode_halves(out, half_of_e8m0(b->e), b->qs, mxfp4_values);
}
