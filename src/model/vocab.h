// SPDX-License-Identifier: MIT
//
// The vocabulary of a file: the keys tokenizer.*, checked. Holds what text/ needs as plain data;
// text/ never sees a file, and this module never sees text/.
#ifndef SL_MODEL_VOCAB_H
#define SL_MODEL_VOCAB_H

#include "base/arena.h"
#include "gguf/gguf.h"

typedef enum sl_vocab_kind { SL_VOCAB_NONE, SL_VOCAB_BPE, SL_VOCAB_SPM } sl_vocab_kind;

typedef struct sl_vocab {
    sl_vocab_kind kind; // NONE: the file has no vocabulary (or "no_vocab"): token ids only
    sl_span model, pre; // as in the file (pre: or the override)
    int32_t n_vocab;
    const sl_span *token; // (n_vocab) owned by the arena, texts in the mapping
    const float *score;   // (n_vocab) or NULL
    const uint8_t *type;  // (n_vocab) or NULL
    const sl_span *merge; // (n_merge) or NULL
    int32_t n_merge;
    int32_t bos, eos, unk;                     // -1: none; range-checked
    int8_t add_bos, add_eos, add_space_prefix; // -1: not in the file
    const int32_t *stop; // (n_stop) ids that end a generation: eos, eot, eom and those known by text; rising
    int32_t n_stop;
    sl_span chat_template; // {NULL, 0} if the file has none
} sl_vocab;

// SL_UNSUPPORTED names a vocabulary model that we do not have (bert, t5, rwkv, ...).
sl_status sl_vocab_read(sl_vocab *out, const sl_gguf *gguf, sl_span pre_override, sl_arena *arena);

#endif
