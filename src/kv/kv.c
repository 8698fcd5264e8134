// SPDX-License-Identifier: MIT
//
// Birth and death of the pools, and what they take.
#include "kv/kv.h"

#include <string.h>

static int64_t table_blocks(const sl_kv_shape *s) {
    return sl_kv_table_blocks(s->blk_len, s->n_ctx, s->n_row_max, s->moves);
}

int64_t sl_kv_window_blocks(int32_t blk_len, int32_t window, int32_t n_row_max) {
    // so many positions touch at most so many blocks, wherever they begin
    int64_t n_pos = (int64_t)window - 1 + SL_KV_SLACK + n_row_max;
    return (n_pos + blk_len - 2) / blk_len + 1;
}

int64_t sl_kv_table_blocks(int32_t blk_len, int32_t n_ctx, int32_t n_row_max, bool moves) {
    int64_t n_blk = (n_ctx - 1) / blk_len + 1;
    // the rows of a step begin in one block and end at most so many later
    return moves ? n_blk + (n_row_max - 1 + blk_len - 1) / blk_len + (SL_KV_SLACK - 1) / blk_len + 1 : n_blk;
}

// Touched, so that the first step that writes there takes no page fault.
static sl_status take(void *out, size_t n, size_t elem_bytes, const char *what) {
    SL_TRY(sl_alloc(out, n, elem_bytes, what));
    memset(*(void **)out, 0, n * elem_bytes);
    return SL_OK;
}

static sl_status class_init(sl_kv_class *c, int32_t n_blk, int32_t n_blk_seq, size_t n_seq, size_t n_entry) {
    size_t n = (size_t)n_blk;
    *c = (sl_kv_class){.n_blk = n_blk, .n_blk_seq = n_blk_seq, .oldest = -1, .newest = -1};
    if (n_blk == 0) return SL_OK;
    SL_TRY(take(&c->table, n_seq, n_entry * sizeof *c->table, "KV block table"));
    SL_TRY(take(&c->first, n_seq, sizeof *c->first, "KV windows"));
    SL_TRY(take(&c->n_ref, n, sizeof *c->n_ref, "KV reference counts"));
    SL_TRY(take(&c->node, n, sizeof *c->node, "KV nodes"));
    SL_TRY(take(&c->older, n, sizeof *c->older, "KV ages"));
    SL_TRY(take(&c->newer, n, sizeof *c->newer, "KV ages"));
    SL_TRY(take(&c->free_stack, n, sizeof *c->free_stack, "KV free list"));
    // low blocks on top, so that a short run stays in few pages
    for (int32_t i = 0; i < n_blk; i++) c->free_stack[i] = n_blk - 1 - i, c->node[i] = -1;
    c->n_free = n_blk;
    return SL_OK;
}

static uint64_t class_bytes(const sl_kv_shape *s, uint64_t n_blk) {
    const sl_kv_class *c = NULL; // for sizes of its members only
    if (n_blk == 0) return 0;
    uint64_t seq_bytes = (uint64_t)table_blocks(s) * sizeof *c->table + sizeof *c->first;
    uint64_t blk_bytes = sizeof *c->n_ref + sizeof *c->node + 2 * sizeof *c->older + sizeof *c->free_stack;
    return (uint64_t)s->n_seq * seq_bytes + n_blk * blk_bytes;
}

uint64_t sl_kv_shape_bytes(const sl_kv_shape *s) {
    const sl_kv *kv = NULL;
    uint64_t seq_bytes = sizeof *kv->length + sizeof *kv->n_shared + 2 * sizeof *kv->open_blk + sizeof *kv->n_gone +
                         sizeof *kv->gone_hash;
    seq_bytes += (uint64_t)table_blocks(s) * (uint64_t)s->blk_len * sizeof *kv->token;
    uint64_t node_bytes = sizeof *kv->tree + (uint64_t)s->blk_len * sizeof *kv->tree_token;
    return class_bytes(s, (uint64_t)s->n_blk) + class_bytes(s, (uint64_t)s->n_window_blk) +
           (uint64_t)s->n_seq * seq_bytes + (uint64_t)s->n_blk * node_bytes;
}

static sl_status check_shape(const sl_kv_shape *s) {
    if (s->blk_len < 1 || s->n_blk < 1 || s->n_seq < 1 || s->n_ctx < 1)
        return SL_FAIL(SL_BAD_ARG, "a KV pool needs at least one block, sequence and position");
    if (s->window < 0 || (s->window == 0) != (s->n_window_blk == 0) || (s->window > 0 && s->n_row_max < 1))
        return SL_FAIL(SL_BAD_ARG, "blocks for windows need a window, and a bound for what a step adds");
    if (s->window > 0 && s->n_window_blk < s->n_seq * sl_kv_window_blocks(s->blk_len, s->window, s->n_row_max))
        return SL_FAIL(SL_BAD_ARG, "%d blocks are too few for windows of %d positions of %d sequences", s->n_window_blk,
                       s->window, s->n_seq);
    if (!s->moves) return SL_OK;
    if (s->n_ctx % s->blk_len != 0 || s->n_ctx < 2 * s->blk_len || s->n_row_max < 1 ||
        s->window > s->n_ctx - 2 * s->blk_len || s->n_blk < s->n_seq * table_blocks(s))
        return SL_FAIL(SL_BAD_ARG,
                       "sequences that move need whole blocks as their context, windows that end before the first of "
                       "them, and a pool in which all can be full");
    return SL_OK;
}

sl_status sl_kv_init(sl_kv *kv, const sl_kv_shape *s) {
    *kv = (sl_kv){.shape = *s, .root = -1};
    sl_status status;
    SL_TRY_OUT(check_shape(s));
    kv->n_blk_seq = (int32_t)table_blocks(s), kv->n_blk_seen = (s->n_ctx - 1) / s->blk_len + 1;
    size_t n_seq = (size_t)s->n_seq, n_blk = (size_t)s->n_blk;
    int32_t n_window = s->window ? (int32_t)sl_kv_window_blocks(s->blk_len, s->window, s->n_row_max) : 0;
    SL_TRY_OUT(class_init(&kv->cls[0], s->n_blk, kv->n_blk_seq, n_seq, (size_t)kv->n_blk_seq));
    SL_TRY_OUT(class_init(&kv->cls[1], s->n_window_blk, n_window, n_seq, (size_t)kv->n_blk_seq));
    SL_TRY_OUT(take(&kv->length, n_seq, sizeof *kv->length, "sequence lengths"));
    SL_TRY_OUT(take(&kv->n_shared, n_seq, sizeof *kv->n_shared, "shared blocks"));
    SL_TRY_OUT(take(&kv->open_blk, n_seq, 2 * sizeof *kv->open_blk, "open blocks"));
    for (size_t i = 0; i < 2 * n_seq; i++) kv->open_blk[i] = -1;
    SL_TRY_OUT(take(&kv->n_gone, n_seq, sizeof *kv->n_gone, "blocks that are gone"));
    SL_TRY_OUT(take(&kv->gone_hash, n_seq, sizeof *kv->gone_hash, "hashes of what is gone"));
    size_t token_bytes = (size_t)kv->n_blk_seq * (size_t)s->blk_len * sizeof *kv->token;
    SL_TRY_OUT(take(&kv->token, n_seq, token_bytes, "tokens of sequences"));
    SL_TRY_OUT(take(&kv->tree, n_blk, sizeof *kv->tree, "the tree of prefixes"));
    SL_TRY_OUT(take(&kv->tree_token, n_blk, (size_t)s->blk_len * sizeof *kv->tree_token, "tokens of prefixes"));
out:
    if (status != SL_OK) sl_kv_deinit(kv);
    return status;
}

void sl_kv_deinit(sl_kv *kv) {
    for (int32_t i = 0; i < SL_KV_N_CLASS; i++) {
        sl_kv_class *c = &kv->cls[i];
        sl_free(c->table);
        sl_free(c->first);
        sl_free(c->n_ref);
        sl_free(c->node);
        sl_free(c->older);
        sl_free(c->newer);
        sl_free(c->free_stack);
    }
    sl_free(kv->length);
    sl_free(kv->n_shared);
    sl_free(kv->open_blk);
    sl_free(kv->n_gone);
    sl_free(kv->gone_hash);
    sl_free(kv->token);
    sl_free(kv->tree);
    sl_free(kv->tree_token);
    *kv = (sl_kv){0};
}
