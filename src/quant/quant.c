// SPDX-License-Identifier: MIT
#include "quant/quant.h"

#include "base/status.h"
#include "quant/codecs.h"

static const sl_quant_codec codecs[SL_TYPE_ID_COUNT] = {
    [SL_TYPE_F32] = {sl_decode_f32, sl_encode_f32, NULL},
    [SL_TYPE_F16] = {sl_decode_f16, sl_encode_f16, NULL},
    [SL_TYPE_BF16] = {sl_decode_bf16, sl_encode_bf16, NULL},
    [SL_TYPE_Q4_0] = {sl_decode_q4_0, NULL, sl_fit_q4_0},
    [SL_TYPE_Q4_1] = {sl_decode_q4_1, NULL, sl_fit_q4_1},
    [SL_TYPE_Q5_0] = {sl_decode_q5_0, NULL, sl_fit_q5_0},
    [SL_TYPE_Q5_1] = {sl_decode_q5_1, NULL, sl_fit_q5_1},
    [SL_TYPE_Q8_0] = {sl_decode_q8_0, sl_encode_q8_0, NULL},
    [SL_TYPE_Q2_K] = {sl_decode_q2_k, NULL, sl_fit_q2_k},
    [SL_TYPE_Q3_K] = {sl_decode_q3_k, NULL, sl_fit_q3_k},
    [SL_TYPE_Q4_K] = {sl_decode_q4_k, NULL, sl_fit_q4_k},
    [SL_TYPE_Q5_K] = {sl_decode_q5_k, NULL, sl_fit_q5_k},
    [SL_TYPE_Q6_K] = {sl_decode_q6_k, NULL, sl_fit_q6_k},
    [SL_TYPE_IQ4_NL] = {sl_decode_iq4_nl, NULL, sl_fit_iq4_nl},
    [SL_TYPE_IQ4_XS] = {sl_decode_iq4_xs, NULL, sl_fit_iq4_xs},
    [SL_TYPE_MXFP4] = {sl_decode_mxfp4, NULL, sl_fit_mxfp4},
};

const sl_quant_codec *sl_quant_find(sl_type type) {
    return (unsigned)type < SL_TYPE_ID_COUNT && codecs[type].decode ? &codecs[type] : NULL;
}

void sl_quant_decode(sl_type type, float *out, const void *blocks, size_t n_elem) {
    const sl_quant_codec *codec = sl_quant_find(type);
    SL_CHECK(codec);
    size_t blk_len = sl_type_find(type)->blk_len;
    SL_CHECK(n_elem % blk_len == 0);
    codec->decode(out, blocks, n_elem / blk_len);
}

void sl_quant_fit(sl_type type, void *blocks, const float *in, const float *importance, size_t n_elem) {
    const sl_quant_codec *codec = sl_quant_find(type);
    SL_CHECK(codec);
    size_t blk_len = sl_type_find(type)->blk_len;
    SL_CHECK(n_elem % blk_len == 0);
    if (codec->fit) codec->fit(blocks, in, importance, n_elem / blk_len);
    else codec->encode(blocks, in, n_elem / blk_len);
}
