// SPDX-License-Identifier: MIT
//
// An open model: file, config, weights, vocabulary. Immutable after open and shareable between
// threads. Knows nothing of plans or backends.
#ifndef SL_MODEL_MODEL_H
#define SL_MODEL_MODEL_H

#include "model/config.h"
#include "model/vocab.h"
#include "model/weights.h"

typedef struct sl_model {
    sl_gguf *gguf;      // owned
    sl_arena arena;     // owns config arrays, names, vocabulary spans
    sl_config config;   // valid unless vocab_only
    sl_weights weights; // valid unless vocab_only
    sl_vocab vocab;
} sl_model;

typedef struct sl_model_options {
    bool vocab_only;  // read no config and no weights
    bool header_only; // the tensor data may be missing (plan)
    const char *pre;  // overrides tokenizer.ggml.pre; NULL = the file's
} sl_model_options;

sl_status sl_model_open(sl_model **out, const char *path, const sl_model_options *options);
void sl_model_close(sl_model *model); // NULL is fine

#endif
