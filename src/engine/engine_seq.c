// SPDX-License-Identifier: MIT
//
// Sequences: prefill in chunks, and the ways back and sideways, which compute nothing.
#include "engine/engine_part.h"

#include <string.h>

sl_status sl_engine_check_seq(const sl_engine *e, int32_t seq) {
    if (seq >= 0 && seq < e->kv.shape.n_seq) return SL_OK;
    return SL_FAIL(SL_BAD_ARG, "there is no sequence %d; the engine has %d", seq, e->kv.shape.n_seq);
}

static sl_status check_ids(const sl_engine *e, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= e->n_vocab)
            return SL_FAIL(SL_BAD_ARG, "id %d at %zu is not in 0 .. %u", ids[i], i, e->n_vocab - 1);
    return SL_OK;
}

// Positions of a sequence at most.
static int32_t seq_limit(const sl_engine *e) {
    return e->kv.shape.moves ? INT32_MAX - e->kv.shape.blk_len : e->kv.shape.n_ctx;
}

// Of ids, of which n may be held, the sequence holds as much as is known; the figures count it. The folder has blocks
// that all before is in view of.
static int32_t reuse(sl_engine *e, int32_t seq, const int32_t *ids, int32_t n) {
    int32_t n_held = sl_kv_reuse(&e->kv, seq, ids, n), n_disk = 0;
    int32_t n_most = SL_MIN(n, e->kv.shape.n_ctx);
    if (e->store && n_held < n_most) n_disk = sl_engine_store_load(e, seq, ids, n_most), n_held = e->kv.length[seq];
    e->stats.n_prompt += (uint64_t)n_held;
    e->stats.n_reused += (uint64_t)(n_held - n_disk);
    e->stats.n_disk += (uint64_t)n_disk;
    return n_held;
}

sl_status sl_engine_prefill(sl_engine *e, int32_t seq, const int32_t *ids, size_t n,
                            int (*progress)(void *user, uint64_t n, uint64_t total), void *user) {
    SL_TRY(sl_engine_check_seq(e, seq));
    if (n == 0) return SL_FAIL(SL_BAD_ARG, "there are no tokens to prefill");
    int32_t first = e->kv.length[seq];
    if (n > (size_t)(seq_limit(e) - first))
        return SL_FAIL(SL_FULL, "%zu tokens do not fit: the context has %d positions and %d of them are taken", n,
                       seq_limit(e), first);
    SL_TRY(check_ids(e, ids, n));
    size_t done = 0;
    if (first == 0 && e->kv.shape.caches) done = (size_t)reuse(e, seq, ids, (int32_t)n - 1);
    while (done < n) {
        size_t n_row = SL_MIN(n - done, (size_t)e->n_row_max);
        for (size_t i = 0; i < n_row; i++)
            e->rows[i] = (sl_row){ids[done + i], seq, first + (int32_t)(done + i), done + i + 1 == n};
        SL_TRY(sl_engine_step(e, e->rows, n_row));
        done += n_row;
        e->stats.n_prompt += n_row;
        if (progress && progress(user, done, n) != 0)
            return SL_FAIL(SL_CANCELLED, "stopped after %zu of %zu tokens", done, n);
    }
    return SL_OK;
}

const int32_t *sl_engine_seq_ids(const sl_engine *e, int32_t seq) {
    return seq >= 0 && seq < e->kv.shape.n_seq ? sl_kv_tokens(&e->kv, seq) : NULL;
}

sl_status sl_engine_seq_reuse(sl_engine *e, int32_t seq, const int32_t *ids, size_t n, size_t *n_held) {
    *n_held = 0;
    SL_TRY(sl_engine_check_seq(e, seq));
    SL_TRY(check_ids(e, ids, n));
    if (n > 0) *n_held = (size_t)reuse(e, seq, ids, (int32_t)SL_MIN(n - 1, (size_t)seq_limit(e)));
    else return sl_engine_seq_truncate(e, seq, 0);
    return SL_OK;
}

sl_status sl_engine_seq_truncate(sl_engine *e, int32_t seq, int32_t n) { return sl_kv_truncate(&e->kv, seq, n); }

sl_status sl_engine_seq_fork(sl_engine *e, int32_t dst, int32_t src, int32_t n) {
    SL_TRY(sl_kv_fork(&e->kv, dst, src, n));
    if (!e->kv.shape.opens || n % e->kv.shape.blk_len == 0) return SL_OK;
    int32_t from = SL_KV_OPEN_SLOTS * src + sl_kv_open_at(&e->kv, src, n / e->kv.shape.blk_len);
    sl_status status = sl_engine_copy_open(e, SL_KV_OPEN_SLOTS * dst, from);
    if (status != SL_OK) sl_kv_retract(&e->kv, dst, 0);
    return status;
}

// The next n_more positions, at most a step's; new blocks are copies of the ones before them.
static sl_status fill_some(sl_engine *e, int32_t seq, int32_t n_more) {
    const int32_t blk_len = e->kv.shape.blk_len, n_old = e->kv.length[seq], n = n_old + n_more;
    int32_t *token = sl_kv_tokens(&e->kv, seq);
    SL_TRY(sl_kv_extend(&e->kv, seq, n_more));
    for (int32_t pos = n_old; pos < n; pos++) token[pos] = token[pos % blk_len];
    for (int32_t c = 0; c < SL_KV_N_CLASS && e->kv.cls[c].n_blk; c++) {
        const int32_t *table = e->kv.cls[c].table + (size_t)seq * (size_t)e->kv.n_blk_seq;
        for (int32_t blk = (n_old - 1) / blk_len + 1; blk * blk_len < n; blk++)
            SL_TRY(sl_engine_copy_block(e, c, table[blk], table[blk - 1]));
    }
    return SL_OK;
}

sl_status sl_engine_seq_fill(sl_engine *e, int32_t seq, int32_t n) {
    SL_TRY(sl_engine_check_seq(e, seq));
    const int32_t blk_len = e->kv.shape.blk_len, n_old = e->kv.length[seq];
    if (n_old == 0 || n_old % blk_len != 0 || n < n_old)
        return SL_FAIL(SL_BAD_ARG, "sequence %d has %d positions; filling needs whole blocks of %d, and to grow", seq,
                       n_old, blk_len);
    if (n > e->kv.shape.n_ctx)
        return SL_FAIL(SL_FULL, "sequence %d cannot be filled with %d positions: the context has %d", seq, n,
                       e->kv.shape.n_ctx);
    if (e->kv.shape.caches) return SL_FAIL(SL_BAD_ARG, "what is not computed must not get into a prefix cache");
    memset(e->n_more, 0, (size_t)e->kv.shape.n_seq * sizeof *e->n_more);
    e->n_more[seq] = n - n_old;
    SL_TRY(sl_kv_can_extend(&e->kv, e->n_more));
    int32_t open = sl_kv_open_at(&e->kv, seq, n_old / blk_len - 1);
    for (int32_t at = n_old; at < n; at = e->kv.length[seq]) {
        sl_status status = fill_some(e, seq, SL_MIN(n - at, (int32_t)e->n_row_max));
        if (status != SL_OK) return sl_kv_retract(&e->kv, seq, 0), status;
    }
    if (e->kv.shape.opens && n % blk_len) sl_kv_set_open(&e->kv, seq, SL_MAX(open, 0), n / blk_len);
    return SL_OK;
}
