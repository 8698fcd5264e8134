// SPDX-License-Identifier: MIT
//
// See kv.h for the invariants. Who calls has checked sequence numbers and lengths where the
// functions return nothing.
#include "kv/kv.h"

#include <string.h>

sl_status sl_kv_init(sl_kv *kv, int32_t blk_len, int32_t n_blk, int32_t n_seq, int32_t n_ctx) {
    *kv = (sl_kv){0};
    if (blk_len < 1 || n_blk < 1 || n_seq < 1 || n_ctx < 1)
        return SL_FAIL(SL_BAD_ARG, "a KV pool needs at least one block, sequence and position");
    kv->blk_len = blk_len, kv->n_blk = n_blk, kv->n_seq = n_seq, kv->n_ctx = n_ctx;
    kv->n_blk_seq = (n_ctx - 1) / blk_len + 1;
    sl_status status;
    SL_TRY_OUT(sl_alloc(&kv->table, (size_t)n_seq, (size_t)kv->n_blk_seq * sizeof *kv->table, "KV block table"));
    SL_TRY_OUT(sl_alloc(&kv->length, (size_t)n_seq, sizeof *kv->length, "sequence lengths"));
    SL_TRY_OUT(sl_alloc(&kv->n_ref, (size_t)n_blk, sizeof *kv->n_ref, "KV reference counts"));
    SL_TRY_OUT(sl_alloc(&kv->free_stack, (size_t)n_blk, sizeof *kv->free_stack, "KV free list"));
    // low blocks on top, so that a short run stays in few pages
    for (int32_t i = 0; i < n_blk; i++) kv->free_stack[i] = n_blk - 1 - i;
    kv->n_free = n_blk;
out:
    if (status != SL_OK) sl_kv_deinit(kv);
    return status;
}

void sl_kv_deinit(sl_kv *kv) {
    sl_free(kv->table);
    sl_free(kv->length);
    sl_free(kv->n_ref);
    sl_free(kv->free_stack);
    *kv = (sl_kv){0};
}

static int32_t *table_of(const sl_kv *kv, int32_t seq) { return kv->table + (size_t)seq * (size_t)kv->n_blk_seq; }

static int32_t blocks_of(const sl_kv *kv, int32_t n_pos) { return n_pos ? (n_pos - 1) / kv->blk_len + 1 : 0; }

// The block that holds the sequence's last position and has room for more; -1 if the next position
// begins a new one.
static int32_t open_block(const sl_kv *kv, int32_t seq) {
    int32_t n = kv->length[seq];
    return n % kv->blk_len ? table_of(kv, seq)[n / kv->blk_len] : -1;
}

static int32_t take_block(sl_kv *kv) {
    SL_CHECK(kv->n_free > 0); // can_extend was asked
    int32_t blk = kv->free_stack[--kv->n_free];
    kv->n_ref[blk] = 1;
    return blk;
}

static void drop_block(sl_kv *kv, int32_t blk) {
    SL_ASSERT(kv->n_ref[blk] > 0);
    if (--kv->n_ref[blk] == 0) kv->free_stack[kv->n_free++] = blk;
}

// Must this sequence copy its open block, if the extending ones before it have done so? The last
// holder writes in place.
static bool needs_copy(const sl_kv *kv, const int32_t *n_more, int32_t seq) {
    int32_t blk = open_block(kv, seq);
    if (blk < 0 || kv->n_ref[blk] == 1) return false;
    uint32_t n_before = 0;
    for (int32_t s = 0; s < seq; s++) n_before += n_more[s] > 0 && open_block(kv, s) == blk;
    return n_before + 1 < kv->n_ref[blk];
}

sl_status sl_kv_can_extend(const sl_kv *kv, const int32_t *n_more) {
    int64_t n_need = 0;
    for (int32_t seq = 0; seq < kv->n_seq; seq++) {
        if (n_more[seq] == 0) continue;
        int32_t n = kv->length[seq];
        if (n_more[seq] < 0 || n_more[seq] > kv->n_ctx - n)
            return SL_FAIL(SL_FULL, "the context is full: sequence %d holds %d of %d positions, and %d more do not fit",
                           seq, n, kv->n_ctx, n_more[seq]);
        n_need += blocks_of(kv, n + n_more[seq]) - blocks_of(kv, n) + needs_copy(kv, n_more, seq);
    }
    if (n_need > kv->n_free)
        return SL_FAIL(SL_FULL, "the KV pool is full: %lld blocks of %d positions are needed and %d are free",
                       (long long)n_need, kv->blk_len, kv->n_free);
    return SL_OK;
}

sl_status sl_kv_extend(sl_kv *kv, int32_t seq, int32_t n_more, sl_kv_copy *copy) {
    *copy = (sl_kv_copy){-1, -1};
    if (seq < 0 || seq >= kv->n_seq) return SL_FAIL(SL_BAD_ARG, "there is no sequence %d", seq);
    int32_t n = kv->length[seq], *table = table_of(kv, seq), blk = open_block(kv, seq);
    if (n_more < 0 || n_more > kv->n_ctx - n) return SL_FAIL(SL_FULL, "the context of sequence %d is full", seq);
    if (n_more == 0) return SL_OK;
    bool copies = blk >= 0 && kv->n_ref[blk] > 1;
    if (blocks_of(kv, n + n_more) - blocks_of(kv, n) + copies > kv->n_free)
        return SL_FAIL(SL_FULL, "the KV pool is full");
    if (copies) {
        *copy = (sl_kv_copy){take_block(kv), blk};
        table[n / kv->blk_len] = copy->dst;
        drop_block(kv, blk);
    }
    for (int32_t i = blocks_of(kv, n); i < blocks_of(kv, n + n_more); i++) table[i] = take_block(kv);
    kv->length[seq] = n + n_more;
    return SL_OK;
}

void sl_kv_retract(sl_kv *kv, int32_t seq, int32_t n, sl_kv_copy copy) {
    sl_kv_truncate(kv, seq, n);
    if (copy.dst < 0) return;
    kv->n_ref[copy.src]++;
    table_of(kv, seq)[n / kv->blk_len] = copy.src;
    drop_block(kv, copy.dst);
}

void sl_kv_truncate(sl_kv *kv, int32_t seq, int32_t n) {
    SL_CHECK(n >= 0 && n <= kv->length[seq]);
    int32_t *table = table_of(kv, seq);
    for (int32_t i = blocks_of(kv, kv->length[seq]); i-- > blocks_of(kv, n);) {
        drop_block(kv, table[i]);
        table[i] = 0;
    }
    kv->length[seq] = n;
}

sl_status sl_kv_fork(sl_kv *kv, int32_t dst, int32_t src, int32_t n) {
    if (dst < 0 || dst >= kv->n_seq || src < 0 || src >= kv->n_seq)
        return SL_FAIL(SL_BAD_ARG, "there is no sequence %d", dst < 0 || dst >= kv->n_seq ? dst : src);
    if (dst == src || kv->length[dst] != 0)
        return SL_FAIL(SL_BAD_ARG, "sequence %d must be another one than %d, and empty", dst, src);
    if (n < 0 || n > kv->length[src])
        return SL_FAIL(SL_BAD_ARG, "sequence %d has %d positions, not %d", src, kv->length[src], n);
    for (int32_t i = 0; i < blocks_of(kv, n); i++) {
        int32_t blk = table_of(kv, src)[i];
        table_of(kv, dst)[i] = blk;
        kv->n_ref[blk]++;
    }
    kv->length[dst] = n;
    return SL_OK;
}
