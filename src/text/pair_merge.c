// SPDX-License-Identifier: MIT
//
// The merge loop. Invariants: a heap entry is current if its key is the key of its symbol now; others are dropped when
// they come up. A merge adds at most two entries and takes one away, so 2n entries always suffice. A merged-away symbol
// has key SL_KEY_NONE, so nothing in the heap refers to it any more.
#include "text/pair_merge.h"

void sl_merger_deinit(sl_merger *merger) {
    sl_free(merger->symbol);
    sl_free(merger->heap);
    *merger = (sl_merger){0};
}

static sl_status grow(sl_merger *m) {
    size_t cap = m->cap ? 2 * m->cap : 64;
    SL_TRY(sl_realloc(&m->symbol, m->cap, cap, sizeof *m->symbol, "tokenizer symbols"));
    SL_TRY(sl_realloc(&m->heap, 2 * m->cap, 2 * cap, sizeof *m->heap, "tokenizer heap"));
    m->cap = cap;
    return SL_OK;
}

sl_status sl_merger_push(sl_merger *m, int32_t id, size_t off, size_t len) {
    if (m->n == m->cap) SL_TRY(grow(m));
    int32_t i = (int32_t)m->n++;
    m->symbol[i] = (sl_symbol){.id = id,
                               .off = (uint32_t)off,
                               .len = (uint32_t)len,
                               .prev = i - 1,
                               .next = -1,
                               .key = SL_KEY_NONE,
                               .merged = -1};
    if (i > 0) m->symbol[i - 1].next = i;
    return SL_OK;
}

static void sift_up(sl_merger *m, size_t at, uint64_t entry) {
    uint64_t *heap = m->heap;
    for (size_t up; at > 0 && heap[up = (at - 1) / 2] > entry; at = up, m->n_step++) heap[at] = heap[up];
    heap[at] = entry;
}

static void sift_down(sl_merger *m, size_t at, uint64_t entry) {
    uint64_t *heap = m->heap;
    for (size_t down; (down = 2 * at + 1) < m->n_heap; at = down, m->n_step++) {
        if (down + 1 < m->n_heap && heap[down + 1] < heap[down]) down++;
        if (heap[down] >= entry) break;
        heap[at] = heap[down];
    }
    heap[at] = entry;
}

static uint64_t pop(sl_merger *m) {
    uint64_t top = m->heap[0], last = m->heap[--m->n_heap];
    if (m->n_heap > 0) sift_down(m, 0, last);
    return top;
}

// Works out the pair that begins at `left` anew; returns whether it merges.
static bool update(sl_merger *m, int32_t left, sl_pair_key *pair_key, const void *ctx) {
    sl_symbol *s = &m->symbol[left];
    s->key = s->next < 0 ? SL_KEY_NONE : pair_key(ctx, &s->merged, s, &m->symbol[s->next]);
    return s->key != SL_KEY_NONE;
}

static uint64_t entry_of(const sl_merger *m, int32_t left) {
    return (uint64_t)m->symbol[left].key << 32 | (uint32_t)left;
}

void sl_merger_run(sl_merger *m, sl_pair_key *pair_key, const void *ctx) {
    m->n_heap = 0;
    for (size_t i = 0; i + 1 < m->n; i++) {
        if (update(m, (int32_t)i, pair_key, ctx)) m->heap[m->n_heap++] = entry_of(m, (int32_t)i);
    }
    for (size_t i = m->n_heap / 2; i-- > 0;) sift_down(m, i, m->heap[i]);

    while (m->n_heap > 0) {
        uint64_t top = pop(m);
        int32_t i = (int32_t)(uint32_t)top;
        sl_symbol *left = &m->symbol[i];
        if (left->key != top >> 32) continue;
        sl_symbol *right = &m->symbol[left->next];
        left->id = left->merged;
        left->len += right->len;
        left->next = right->next;
        right->key = SL_KEY_NONE;
        if (left->next >= 0) m->symbol[left->next].prev = i;
        if (update(m, i, pair_key, ctx)) sift_up(m, m->n_heap++, entry_of(m, i));
        if (left->prev >= 0 && update(m, left->prev, pair_key, ctx)) sift_up(m, m->n_heap++, entry_of(m, left->prev));
    }
}
