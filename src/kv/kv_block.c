// SPDX-License-Identifier: MIT
//
// Blocks between held, idle and free. Idle ones that may be given up stand in a list by their last use; of class 0
// these are the leaves of the tree, of class 1 all. An idle node that stands above a held one, as only moving sequences
// leave them (kv_move.c), is in no list; it is found when there is nothing else.
#include "kv/kv_part.h"

static bool is_listed(const sl_kv *kv, int32_t c, int32_t idle_blk) { return c == 1 || sl_kv_is_leaf(kv, idle_blk); }

void sl_kv_unlist(sl_kv *kv, int32_t c, int32_t blk) {
    sl_kv_class *k = &kv->cls[c];
    int32_t older = k->older[blk], newer = k->newer[blk];
    *(older < 0 ? &k->oldest : &k->newer[older]) = newer;
    *(newer < 0 ? &k->newest : &k->older[newer]) = older;
}

static void list_newest(sl_kv *kv, int32_t c, int32_t blk) {
    sl_kv_class *k = &kv->cls[c];
    k->older[blk] = k->newest, k->newer[blk] = -1;
    *(k->newest < 0 ? &k->oldest : &k->newer[k->newest]) = blk;
    k->newest = blk;
}

void sl_kv_list_oldest(sl_kv *kv, int32_t c, int32_t blk) {
    sl_kv_class *k = &kv->cls[c];
    k->newer[blk] = k->oldest, k->older[blk] = -1;
    *(k->oldest < 0 ? &k->newest : &k->older[k->oldest]) = blk;
    k->oldest = blk;
}

void sl_kv_free(sl_kv *kv, int32_t c, int32_t blk) {
    sl_kv_class *k = &kv->cls[c];
    SL_ASSERT(k->n_ref[blk] == 0 && k->node[blk] < 0);
    k->free_stack[k->n_free++] = blk;
}

void sl_kv_hold(sl_kv *kv, int32_t c, int32_t blk) {
    sl_kv_class *k = &kv->cls[c];
    if (k->n_ref[blk]++ > 0) return;
    k->n_idle--;
    if (is_listed(kv, c, blk)) sl_kv_unlist(kv, c, blk);
}

void sl_kv_release(sl_kv *kv, int32_t c, int32_t blk) {
    sl_kv_class *k = &kv->cls[c];
    SL_ASSERT(k->n_ref[blk] > 0);
    if (--k->n_ref[blk] > 0) return;
    if (k->node[blk] < 0) {
        sl_kv_free(kv, c, blk);
        return;
    }
    k->n_idle++;
    if (is_listed(kv, c, blk)) list_newest(kv, c, blk);
}

static int32_t find_idle(const sl_kv *kv) {
    int32_t blk = 0;
    while (kv->cls[0].n_ref[blk] > 0 || kv->cls[0].node[blk] < 0) blk++;
    return blk;
}

// Gives up the idle block that was used longest ago.
static void evict(sl_kv *kv, int32_t c) {
    sl_kv_class *k = &kv->cls[c];
    int32_t blk = k->oldest;
    SL_CHECK(k->n_idle > 0); // who takes has asked
    if (blk < 0) {
        SL_CHECK(c == 0);
        sl_kv_uproot(kv, find_idle(kv));
        return;
    }
    sl_kv_unlist(kv, c, blk);
    k->n_idle--;
    if (c == 0) sl_kv_unlink(kv, blk), kv->n_evicted++;
    else sl_kv_unlink_window(kv, k->node[blk]);
    sl_kv_free(kv, c, blk);
}

int32_t sl_kv_take(sl_kv *kv, int32_t c) {
    sl_kv_class *k = &kv->cls[c];
    if (k->n_free == 0) evict(kv, c);
    int32_t blk = k->free_stack[--k->n_free];
    k->n_ref[blk] = 1;
    return blk;
}

// A block is the i-th of all sequences that hold it. It is as full as it is in the one that has most of it, and counted
// with the first.
static int32_t count_unused_of(const sl_kv *kv, int32_t seq) {
    const int32_t blk_len = kv->shape.blk_len, i = kv->length[seq] / blk_len;
    int32_t blk, n_most = kv->length[seq] % blk_len;
    if (n_most == 0) return 0;
    blk = sl_kv_table(kv, 0, seq)[sl_kv_entry(kv, seq, i)];
    for (int32_t s = 0; s < kv->shape.n_seq; s++) {
        int32_t entry = sl_kv_entry(kv, s, i);
        if (sl_kv_blocks(kv, kv->length[s]) <= i || (i && entry < 1) || sl_kv_table(kv, 0, s)[entry] != blk) continue;
        if (s < seq) return 0;
        n_most = SL_MAX(n_most, SL_MIN(blk_len, kv->length[s] - i * blk_len));
    }
    return blk_len - n_most;
}

int32_t sl_kv_count_unused(const sl_kv *kv) {
    int32_t n = 0;
    for (int32_t seq = 0; seq < kv->shape.n_seq; seq++) n += count_unused_of(kv, seq);
    return n;
}
