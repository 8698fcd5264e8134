// SPDX-License-Identifier: MIT
//
// Mixes: which type each tensor of a model gets in a "Q4_K_M" file and its like. Names, numbers and rules are those
// that llama.cpp's users know (facts of llama-quant.cpp): some tensors get more bits, by what they do and by layer;
// vectors, norms and small matrices keep their type; a row that is no whole number of blocks falls back to a type of
// shorter blocks. It must not know how a type is encoded.
#ifndef SL_CONVERT_MIX_H
#define SL_CONVERT_MIX_H

#include "base/buf.h"
#include "gguf/gguf.h"

typedef struct sl_mix {
    const char *name;
    sl_type type;       // of most tensors
    uint32_t file_type; // general.file_type
    const char *about;
} sl_mix;

// By name, case-insensitive; also by alias ("Q4_K" = Q4_K_M). NULL if there is none.
const sl_mix *sl_mix_find(const char *name);
// All of them, for lists; NULL past the end.
const sl_mix *sl_mix_at(size_t i);

typedef struct sl_mix_request {
    const sl_mix *mix;
    bool pure;                      // every matrix the same type
    bool keep_output;               // output.weight stays as it is
    bool has_imatrix;               // some choices rest on it
    bool set_output, set_embedding; // these types, in place of the mix's own
    sl_type output, embedding;
} sl_mix_request;

typedef struct sl_mix_choice {
    sl_type type;
    bool kept;      // not touched: a vector, a norm, something small
    bool fell_back; // the mix's own choice has longer blocks than fit the row
} sl_mix_choice;

// A choice for each tensor of the file, in file order; *out (n_tensors) is the caller's to sl_free.
sl_status sl_mix_choose(sl_mix_choice **out, const sl_gguf *gguf, const sl_mix_request *request);

#endif
