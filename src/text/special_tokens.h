// SPDX-License-Identifier: MIT
//
// Tokens that are cut out of the text before anything else: user-defined ones always, control and unknown ones if asked
// for. At each place the longest one wins, from left to right. A place costs no more than the longest such token.
#ifndef SL_TEXT_SPECIAL_TOKENS_H
#define SL_TEXT_SPECIAL_TOKENS_H

#include "base/arena.h"
#include "text/tokenizer.h"

typedef struct sl_special_token {
    sl_span text; // borrowed or in the arena
    int32_t id;
    bool always; // user-defined
} sl_special_token;

typedef struct sl_special_tokens {
    sl_special_token *token; // owned; sorted by bytes
    size_t n;
    uint32_t first[257]; // those that begin with byte b: [first[b], first[b + 1])
    bool always[256];    // one of them is user-defined
    sl_arena arena;
} sl_special_tokens;

typedef struct sl_special_match {
    size_t off, len; // off = length of the text if there is none
    int32_t id;      // -1: none
} sl_special_match;

// With `escape_space` the texts are those of SentencePiece files: a space is U+2581.
sl_status sl_special_tokens_init(sl_special_tokens *set, const sl_vocab_source *source, bool escape_space);
void sl_special_tokens_deinit(sl_special_tokens *set);

// The first match at or after `from`; with `all` control and unknown tokens count too.
sl_special_match sl_special_tokens_next(const sl_special_tokens *set, sl_span text, size_t from, bool all);

#endif
