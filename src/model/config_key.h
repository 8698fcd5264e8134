// SPDX-License-Identifier: MIT
//
// Reading the keys "ARCH.name" of a file with ranges and defaults. Every failure names the whole
// key. A key that is absent gives the default; `required` functions fail instead. Private to
// config*.c, and used by forecast/geometry.c, which reads the same keys of further architectures.
#ifndef SL_MODEL_CONFIG_KEY_H
#define SL_MODEL_CONFIG_KEY_H

#include "gguf/gguf.h"

typedef struct sl_keys {
    const sl_gguf *gguf;
    char arch[64];
} sl_keys;

enum { SL_KEY_MAX = 160 }; // longest "ARCH.name" that we ask for

// NULL if absent.
const sl_gguf_kv *sl_keys_find(const sl_keys *keys, const char *name);

sl_status sl_keys_int(const sl_keys *keys, const char *name, uint32_t *out, uint32_t absent, uint32_t min,
                      uint32_t max);
sl_status sl_keys_int_required(const sl_keys *keys, const char *name, uint32_t *out, uint32_t min, uint32_t max);

typedef enum sl_bound { SL_ANY_NUMBER, SL_NOT_NEGATIVE, SL_POSITIVE, SL_ABOVE_ONE } sl_bound; // all finite as float
sl_status sl_keys_float(const sl_keys *keys, const char *name, double *out, double absent, sl_bound bound);
sl_status sl_keys_float_required(const sl_keys *keys, const char *name, double *out, sl_bound bound);
sl_status sl_keys_text(const sl_keys *keys, const char *name, sl_span *out, const char *absent);

// A number for each of n_layer layers: an array of just that length, or a scalar for all. False in
// *found if absent.
sl_status sl_keys_layers(const sl_keys *keys, const char *name, bool *found, uint32_t *out, uint32_t n_layer,
                         uint32_t min, uint32_t max);

#endif
