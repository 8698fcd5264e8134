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
    void (*encode)(void *blocks, const float *in, size_t n_blk); // by formula: activations; NULL: there is none
    // By search, for weights, which are encoded once: the least weighted error. importance: what an element's error
    // counts, (elements of the blocks), or NULL. NULL: the formula is as good as it gets.
    void (*fit)(void *blocks, const float *in, const float *importance, size_t n_blk);
} sl_quant_codec;

// NULL for a type that we cannot compute with.
const sl_quant_codec *sl_quant_find(sl_type type);

// n_elem is a multiple of the type's block length, and the type has a codec. `blocks` is 2-byte
// aligned.
void sl_quant_decode(sl_type type, float *out, const void *blocks, size_t n_elem);

// The best blocks for finite floats whose size a binary16 can hold. As sl_quant_decode otherwise; importance (n_elem)
// or NULL.
void sl_quant_fit(sl_type type, void *blocks, const float *in, const float *importance, size_t n_elem);

#endif
