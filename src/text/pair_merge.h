// SPDX-License-Identifier: MIT
//
// Merging of neighbours, the heart of both tokenizers: of all pairs that may merge, the one with the least key goes
// first, the leftmost of equals. A binary heap over a linked list: n symbols cost O(n log n), whatever they are.
// It must not know where keys come from: BPE gives ranks, SentencePiece gives negated scores.
#ifndef SL_TEXT_PAIR_MERGE_H
#define SL_TEXT_PAIR_MERGE_H

#include "base/alloc.h"
#include "base/span.h"

enum { SL_KEY_NONE = UINT32_MAX }; // of a pair that doesn't merge

typedef struct sl_symbol {
    int32_t id;   // token, or -1 if this run of bytes is none
    uint32_t off; // bytes of the text
    uint32_t len;
    int32_t prev;   // -1: none
    int32_t next;   // -1: none
    uint32_t key;   // of the pair (this, next)
    int32_t merged; // the token that the pair makes
} sl_symbol;

// Sets the key of (left, right) and the token it makes, or returns SL_KEY_NONE.
typedef uint32_t sl_pair_key(const void *ctx, int32_t *merged, const sl_symbol *left, const sl_symbol *right);

typedef struct sl_merger {
    sl_symbol *symbol; // owned; the result is the list 0, next, ...
    uint64_t *heap;    // owned; key << 32 | index of the left symbol
    size_t n;
    size_t cap; // symbols; the heap has twice as many
    size_t n_heap;
    uint64_t n_step; // moves in the heap, for tests
} sl_merger;         // zero-initialised is empty

void sl_merger_deinit(sl_merger *merger);

// Appends a symbol. Set merger->n to 0 to begin a new list.
sl_status sl_merger_push(sl_merger *merger, int32_t id, size_t off, size_t len);
void sl_merger_run(sl_merger *merger, sl_pair_key *pair_key, const void *ctx);

#endif
