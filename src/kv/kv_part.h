// SPDX-License-Identifier: MIT
//
// The inside of kv: what the tables and the tree ask of each other.
#ifndef SL_KV_KV_PART_H
#define SL_KV_KV_PART_H

#include "kv/kv.h"

static inline int32_t *sl_kv_table(const sl_kv *kv, int32_t c, int32_t seq) {
    return kv->cls[c].table + (size_t)seq * (size_t)kv->n_blk_seq;
}

static inline int32_t sl_kv_blocks(const sl_kv *kv, int32_t n_pos) {
    return n_pos ? (n_pos - 1) / kv->shape.blk_len + 1 : 0;
}

// The table entry of block blk, if it is there.
static inline int32_t sl_kv_entry(const sl_kv *kv, int32_t seq, int32_t blk) { return blk ? blk - kv->n_gone[seq] : 0; }

// Table entries that n positions of a sequence take.
static inline int32_t sl_kv_entries(const sl_kv *kv, int32_t seq, int32_t n) {
    int32_t n_blk = sl_kv_blocks(kv, n);
    return n_blk > 1 ? n_blk - kv->n_gone[seq] : n_blk;
}

static inline int32_t sl_kv_common(const int32_t *a, const int32_t *b, int32_t n) {
    int32_t i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i;
}

static inline bool sl_kv_is_leaf(const sl_kv *kv, int32_t node) { return kv->tree[node].child < 0; }

// The first block of a class that the row after n positions sees.
int32_t sl_kv_first_seen(const sl_kv *kv, int32_t c, int32_t n);

// A table entry more, or less, refers to the block.
void sl_kv_hold(sl_kv *kv, int32_t c, int32_t blk);
void sl_kv_release(sl_kv *kv, int32_t c, int32_t blk);
// A free block, or the idle one that was used longest ago; held. There must be one.
int32_t sl_kv_take(sl_kv *kv, int32_t c);

// Lists an idle block as the next to be given up.
void sl_kv_list_oldest(sl_kv *kv, int32_t c, int32_t blk);
void sl_kv_unlist(sl_kv *kv, int32_t c, int32_t blk);
// A block that no table and no node refers to any more.
void sl_kv_free(sl_kv *kv, int32_t c, int32_t blk);

// ---- moving ---------------------------------------------------------------------------------------------------------

// Makes room in the table for n_more positions. No row of a step that adds them sees what is let go.
void sl_kv_move(sl_kv *kv, int32_t seq, int32_t n_more);
// Has the sequence everything that the row after n positions sees, or rather that class 0 keeps of it?
bool sl_kv_has_view(const sl_kv *kv, int32_t seq, int32_t n);
// A sequence that has let go of nothing.
void sl_kv_forget_gone(sl_kv *kv, int32_t seq);
// How many of ids (n) the sequence begins with; what was let go is compared by its hash.
int32_t sl_kv_own_beginning(const sl_kv *kv, int32_t seq, const int32_t *ids, int32_t n);
// The first blocks of a sequence that were computed with all before them in view, so that they may be nodes.
int32_t sl_kv_publishable(const sl_kv *kv, int32_t seq);

// ---- the tree -------------------------------------------------------------------------------------------------------

// Makes block i of a sequence a node of n_tok positions; if there is one of the same tokens, the sequence holds that in
// place of its own. The blocks before must be nodes. A part of a block is only added if no node begins with it.
void sl_kv_publish(sl_kv *kv, int32_t seq, int32_t i, int32_t n_tok);
// Takes a leaf out of the tree; its block belongs to who holds it, or is left to the caller.
void sl_kv_unlink(sl_kv *kv, int32_t node);
// Takes an idle node and all below it out of the tree. What nobody holds is free then; the rest is held by moving
// sequences only, which do not need the tree.
void sl_kv_uproot(sl_kv *kv, int32_t node);
// Takes the block of class 1 away from a node.
void sl_kv_unlink_window(sl_kv *kv, int32_t node);

// The longest beginning of ids (n) at which a sequence may go on; *node is its last. 0: none.
int32_t sl_kv_find(const sl_kv *kv, const int32_t *ids, int32_t n, int32_t *node);

#endif
