// SPDX-License-Identifier: MIT
//
// F32, F16, BF16: a "block" is one element. Copied bytewise, so any alignment will do.
#include "base/half.h"
#include "quant/codecs.h"

static uint16_t load_u16(const void *blocks, size_t i) {
    uint16_t bits;
    memcpy(&bits, (const char *)blocks + i * sizeof bits, sizeof bits);
    return bits;
}

static void store_u16(void *blocks, size_t i, uint16_t bits) {
    memcpy((char *)blocks + i * sizeof bits, &bits, sizeof bits);
}

void sl_decode_f32(float *out, const void *blocks, size_t n_blk) { memcpy(out, blocks, n_blk * sizeof *out); }

void sl_decode_f16(float *out, const void *blocks, size_t n_blk) {
    for (size_t i = 0; i < n_blk; i++) out[i] = sl_f16_to_f32(load_u16(blocks, i));
}

void sl_decode_bf16(float *out, const void *blocks, size_t n_blk) {
    for (size_t i = 0; i < n_blk; i++) out[i] = sl_bf16_to_f32(load_u16(blocks, i));
}

void sl_encode_f32(void *blocks, const float *in, size_t n_blk) { memcpy(blocks, in, n_blk * sizeof *in); }

void sl_encode_f16(void *blocks, const float *in, size_t n_blk) {
    for (size_t i = 0; i < n_blk; i++) store_u16(blocks, i, sl_f16_from_f32(in[i]));
}

void sl_encode_bf16(void *blocks, const float *in, size_t n_blk) {
    for (size_t i = 0; i < n_blk; i++) store_u16(blocks, i, sl_bf16_from_f32(in[i]));
}
