// SPDX-License-Identifier: MIT
//
// What a `tokenizer.ggml.pre` name stands for: how text is cut into words, and the defaults of files that say no more.
#ifndef SL_TEXT_PRETOKENIZER_H
#define SL_TEXT_PRETOKENIZER_H

#include "text/splitter.h"

enum {
    SL_PRE_BOS = 1,           // add_bos unless the file says otherwise
    SL_PRE_IGNORE_MERGES = 2, // a word that is a token is that token, whatever the merges say
    SL_PRE_NFC = 4,           // text is normalised first
    SL_PRE_CHARS = 8,         // merges are over characters with <0xXX> for the rest, not over the byte alphabet
    SL_PRE_SPACE_MARK = 16,   // spaces are written U+2581
    SL_PRE_FORCE_BOS = 32,    // files are known to deny BOS wrongly
};

typedef struct sl_pretokenizer {
    const char *name;
    const sl_split_step *step; // see sl_splitter_create
    unsigned flags;
} sl_pretokenizer;

// An empty name stands for a file without the key: GPT-2's pattern. NULL if the name is unknown.
const sl_pretokenizer *sl_pretokenizer_find(sl_span name);
const sl_pretokenizer *sl_pretokenizer_at(size_t i); // NULL past the end; for tests

#endif
