// SPDX-License-Identifier: MIT
//
// A chain of chunks that only grows and is freed at once: names, tables and other small things of a model.
// Not thread-safe. Memory is zeroed and 16-byte aligned.
#ifndef SL_BASE_ARENA_H
#define SL_BASE_ARENA_H

#include "base/alloc.h"
#include "base/span.h"

typedef struct sl_arena {
    struct sl_arena_chunk *head; // owned
    size_t n_bytes;              // handed out so far
} sl_arena;                      // zero-initialised is empty

sl_status sl_arena_alloc(sl_arena *arena, void *out, size_t n, size_t elem_bytes, const char *what);

// A NUL-terminated copy.
sl_status sl_arena_text(sl_arena *arena, char **out, sl_span text);

void sl_arena_deinit(sl_arena *arena);

#endif
