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

// ---- the tree -------------------------------------------------------------------------------------------------------

// Makes block i of a sequence a node of n_tok positions; if there is one of the same tokens, the sequence holds that in
// place of its own. The blocks before must be nodes. A part of a block is only added if no node begins with it.
void sl_kv_publish(sl_kv *kv, int32_t seq, int32_t i, int32_t n_tok);
// Takes a leaf out of the tree; its block belongs to who holds it, or is left to the caller.
void sl_kv_unlink(sl_kv *kv, int32_t node);
// Takes the block of class 1 away from a node.
void sl_kv_unlink_window(sl_kv *kv, int32_t node);

// The longest beginning of ids (n) at which a sequence may go on; *node is its last. 0: none.
int32_t sl_kv_find(const sl_kv *kv, const int32_t *ids, int32_t n, int32_t *node);

#endif
