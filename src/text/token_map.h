// SPDX-License-Identifier: MIT
//
// Token text -> id: an open-addressing table of hash and id over the borrowed texts of the file.
#ifndef SL_TEXT_TOKEN_MAP_H
#define SL_TEXT_TOKEN_MAP_H

#include "base/alloc.h"
#include "base/span.h"

typedef struct sl_token_slot {
    uint32_t hash;
    uint32_t id_plus_1; // 0: free
} sl_token_slot;

typedef struct sl_token_map {
    const sl_span *token; // borrowed
    sl_token_slot *slot;  // owned
    uint32_t mask;        // slots - 1; a power of two of at least 4/3 of the tokens
    size_t longest_bytes; // of any token
} sl_token_map;

// Of equal texts the first has the entry; empty ones have none.
sl_status sl_token_map_init(sl_token_map *map, const sl_span *token, int32_t n_vocab);
void sl_token_map_deinit(sl_token_map *map);

// The id of the text that is `head` followed by `tail`, or -1.
int32_t sl_token_map_find_joined(const sl_token_map *map, sl_span head, sl_span tail);

static inline int32_t sl_token_map_find(const sl_token_map *map, sl_span text) {
    return sl_token_map_find_joined(map, text, (sl_span){0});
}

#endif
