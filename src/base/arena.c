// SPDX-License-Identifier: MIT
#include "base/arena.h"

#include "base/size.h"

enum { CHUNK_BYTES = 64 * 1024, ALIGN = 16 };

typedef struct sl_arena_chunk {
    struct sl_arena_chunk *next; // owned
    size_t n_bytes, n_used;
    _Alignas(ALIGN) char data[];
} chunk;

sl_status sl_arena_alloc(sl_arena *arena, void *out, size_t n, size_t elem_bytes, const char *what) {
    void **p = out;
    uint64_t n_bytes;
    *p = NULL;
    if (!sl_size_mul(&n_bytes, n, elem_bytes) || !sl_size_align(&n_bytes, n_bytes, ALIGN) ||
        n_bytes > PTRDIFF_MAX - sizeof(chunk))
        return SL_FAIL(SL_NO_MEMORY, "out of memory: %s is too large", what);
    chunk *c = arena->head;
    if (!c || c->n_bytes - c->n_used < n_bytes) {
        size_t room = SL_MAX((size_t)n_bytes, (size_t)CHUNK_BYTES);
        SL_TRY(sl_alloc(&c, 1, sizeof(chunk) + room, what));
        c->n_bytes = room;
        c->next = arena->head;
        arena->head = c;
    }
    *p = c->data + c->n_used;
    c->n_used += n_bytes;
    arena->n_bytes += n_bytes;
    return SL_OK;
}

sl_status sl_arena_text(sl_arena *arena, char **out, sl_span text) {
    SL_TRY(sl_arena_alloc(arena, out, text.n_bytes + 1, 1, "text"));
    if (text.n_bytes) memcpy(*out, text.data, text.n_bytes);
    return SL_OK;
}

void sl_arena_deinit(sl_arena *arena) {
    for (chunk *c = arena->head, *next; c; c = next) {
        next = c->next;
        sl_free(c);
    }
    *arena = (sl_arena){0};
}
