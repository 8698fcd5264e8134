// SPDX-License-Identifier: MIT
//
// A sequence whose context is full goes on: it lets go of the blocks after its first and keeps that, which attention
// has come to lean on (attention sinks: Xiao et al. 2023, "Efficient Streaming Language Models"). A row in block b sees
// block 0 and the last n_blk_seen - 1 blocks up to b, whatever step it was in. The table has more entries than that, so
// that a step may span blocks and a sequence may be taken back a little. Only integers move, those of the table and of
// the tokens, when a new block is needed: the same work whatever the text's length.
//
// What a moving sequence writes depends on more than the tokens that are still there, so it is never in the tree. Of
// the tokens that were let go a hash is kept, for a conversation that comes back whole to be recognised: XXH64, block
// by block, each with the hash so far as its seed.
#include "kv/kv_part.h"

#include <string.h>

#include "base/xxh64.h"

static uint64_t hash_blocks(const sl_kv *kv, const int32_t *ids, int32_t n_blk, uint64_t hash) {
    const size_t n_bytes = (size_t)kv->shape.blk_len * sizeof *ids;
    for (int32_t i = 0; i < n_blk; i++, ids += kv->shape.blk_len) hash = sl_xxh64(ids, n_bytes, hash);
    return hash;
}

void sl_kv_forget_gone(sl_kv *kv, int32_t seq) { kv->n_gone[seq] = 0, kv->gone_hash[seq] = 0; }

// Entries 1 .. n of one class. Those of class 1 may have been let go before, as no window reaches so far.
static void drop(sl_kv *kv, int32_t c, int32_t seq, int32_t n, int32_t n_entry) {
    int32_t *table = sl_kv_table(kv, c, seq), *first = &kv->cls[c].first[seq];
    for (int32_t i = SL_MAX(1, *first); i <= n; i++) sl_kv_release(kv, c, table[i]);
    memmove(table + 1, table + 1 + n, (size_t)(n_entry - 1 - n) * sizeof *table);
    memset(table + n_entry - n, 0, (size_t)n * sizeof *table);
    if (c == 1) *first = SL_MAX(*first - n, 1);
}

void sl_kv_move(sl_kv *kv, int32_t seq, int32_t n_more) {
    const int32_t blk_len = kv->shape.blk_len;
    int32_t n_entry = sl_kv_entries(kv, seq, kv->length[seq]), *token = sl_kv_tokens(kv, seq) + blk_len;
    int32_t n = sl_kv_entries(kv, seq, kv->length[seq] + n_more) - kv->n_blk_seq;
    if (n <= 0) return;
    for (int32_t c = 0; c < SL_KV_N_CLASS && kv->cls[c].n_blk; c++) drop(kv, c, seq, n, n_entry);
    kv->gone_hash[seq] = hash_blocks(kv, token, n, kv->gone_hash[seq]);
    memmove(token, token + (size_t)n * (size_t)blk_len, (size_t)(n_entry - 1 - n) * (size_t)blk_len * sizeof *token);
    kv->n_gone[seq] += n;
    kv->n_shared[seq] = SL_MIN(kv->n_shared[seq], 1);
}

bool sl_kv_has_view(const sl_kv *kv, int32_t seq, int32_t n) {
    return n <= kv->shape.blk_len || sl_kv_gone(kv, seq) <= sl_kv_hidden(kv, n);
}

int32_t sl_kv_publishable(const sl_kv *kv, int32_t seq) {
    return kv->n_gone[seq] ? 0 : SL_MIN(kv->length[seq] / kv->shape.blk_len, kv->n_blk_seen);
}

int32_t sl_kv_own_beginning(const sl_kv *kv, int32_t seq, const int32_t *ids, int32_t n) {
    const int32_t blk_len = kv->shape.blk_len, gone = sl_kv_gone(kv, seq), *held = sl_kv_tokens(kv, seq);
    n = SL_MIN(n, kv->length[seq]);
    if (gone == 0) return sl_kv_common(held, ids, n);
    int32_t n_first = sl_kv_common(held, ids, SL_MIN(n, blk_len)), after = blk_len + gone;
    if (n_first < blk_len || n <= after) return n_first;
    if (hash_blocks(kv, ids + blk_len, kv->n_gone[seq], 0) != kv->gone_hash[seq]) return n_first;
    return after + sl_kv_common(held + blk_len, ids + after, n - after);
}
