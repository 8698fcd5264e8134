// SPDX-License-Identifier: MIT
//
// Names -> positions, for the keys and tensors of a file. Sorted by hash and then by name, so that
// a hostile file full of colliding hashes costs n log n and not n squared. It must not know what it
// names.
#ifndef SL_GGUF_NAME_INDEX_H
#define SL_GGUF_NAME_INDEX_H

#include "base/alloc.h"
#include "base/span.h"

typedef struct sl_name {
    sl_span text; // borrowed
    uint64_t hash;
    size_t i; // the position that the name stands for
} sl_name;

typedef struct sl_name_index {
    sl_name *names; // owned
    size_t n;
} sl_name_index; // zero-initialised is empty

// Room for n names; the caller then puts each, and sorts.
sl_status sl_name_index_init(sl_name_index *index, size_t n);
void sl_name_index_deinit(sl_name_index *index);
void sl_name_index_put(sl_name_index *index, size_t i, sl_span text);
void sl_name_index_sort(sl_name_index *index);

// Positions of the same name are neighbours, rising. Returns the first duplicate, or NULL.
const sl_name *sl_name_index_duplicate(const sl_name_index *index);
const sl_name *sl_name_index_find(const sl_name_index *index, sl_span text); // NULL if absent

#endif
