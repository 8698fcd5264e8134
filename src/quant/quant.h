// SPDX-License-Identifier: MIT
//
// Blocks <-> floats, one element at a time: the definition that every kernel is tested against.
// Decoding is bit-exact with the numpy code of the PyPI package `gguf`, for every bit pattern (a
// NaN is a NaN). All products and sums are in float, in the order written in blocks.h.
#ifndef SL_QUANT_QUANT_H
#define SL_QUANT_QUANT_H

#include <stddef.h>

#include "base/type.h"

typedef struct sl_quant_codec {
    void (*decode)(float *out, const void *blocks, size_t n_blk);
    void (*encode)(void *blocks, const float *in, size_t n_blk); // NULL: not written yet
} sl_quant_codec;

// NULL for a type that we cannot compute with.
const sl_quant_codec *sl_quant_find(sl_type type);

// n_elem is a multiple of the type's block length, and the type has a codec. `blocks` is 2-byte
// aligned.
void sl_quant_decode(sl_type type, float *out, const void *blocks, size_t n_elem);

#endif
