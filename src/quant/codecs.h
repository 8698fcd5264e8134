// SPDX-License-Identifier: MIT
//
// Private to quant/: the functions behind the table of codecs, one family to a file.
#ifndef SL_QUANT_CODECS_H
#define SL_QUANT_CODECS_H

#include <stddef.h>

// codec_float.c
void sl_decode_f32(float *out, const void *blocks, size_t n_blk);
void sl_decode_f16(float *out, const void *blocks, size_t n_blk);
void sl_decode_bf16(float *out, const void *blocks, size_t n_blk);
void sl_encode_f32(void *blocks, const float *in, size_t n_blk);
void sl_encode_f16(void *blocks, const float *in, size_t n_blk);
void sl_encode_bf16(void *blocks, const float *in, size_t n_blk);

// codec_plain.c
void sl_decode_q4_0(float *out, const void *blocks, size_t n_blk);
void sl_decode_q4_1(float *out, const void *blocks, size_t n_blk);
void sl_decode_q5_0(float *out, const void *blocks, size_t n_blk);
void sl_decode_q5_1(float *out, const void *blocks, size_t n_blk);
void sl_decode_q8_0(float *out, const void *blocks, size_t n_blk);
void sl_encode_q8_0(void *blocks, const float *in, size_t n_blk);

// codec_k.c
void sl_decode_q2_k(float *out, const void *blocks, size_t n_blk);
void sl_decode_q3_k(float *out, const void *blocks, size_t n_blk);
void sl_decode_q4_k(float *out, const void *blocks, size_t n_blk);
void sl_decode_q5_k(float *out, const void *blocks, size_t n_blk);
void sl_decode_q6_k(float *out, const void *blocks, size_t n_blk);

// codec_book.c
void sl_decode_iq4_nl(float *out, const void *blocks, size_t n_blk);
void sl_decode_iq4_xs(float *out, const void *blocks, size_t n_blk);
void sl_decode_mxfp4(float *out, const void *blocks, size_t n_blk);

// encode_plain.c, encode_k.c, encode_book.c
void sl_fit_q4_0(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_q4_1(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_q5_0(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_q5_1(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_q2_k(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_q3_k(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_q4_k(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_q5_k(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_q6_k(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_iq4_nl(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_iq4_xs(void *blocks, const float *in, const float *importance, size_t n_blk);
void sl_fit_mxfp4(void *blocks, const float *in, const float *importance, size_t n_blk);

#endif
