// SPDX-License-Identifier: MIT
//
// The block pool and the block tables: who holds which block. Pure bookkeeping over integers, sized
// once; the bytes of the blocks are the backend's. A block holds blk_len positions of every
// attention layer at once.
//
// Invariants:
//  1. A block is either in the free stack (n_ref 0) or held by n_ref >= 1 table entries.
//  2. A sequence of n positions holds exactly ceil(n / blk_len) blocks, in order.
//  3. Only a block with n_ref 1 is ever written: extending a sequence into a shared last block
//     takes a fresh one and reports a copy to be made (copy on write).
//  4. Nothing here allocates after init. No compaction, no growth.
#ifndef SL_KV_KV_H
#define SL_KV_KV_H

#include "base/alloc.h"

typedef struct sl_kv {
    int32_t blk_len;     // positions of a block
    int32_t n_blk;       // blocks of the pool
    int32_t n_seq;       // sequences
    int32_t n_blk_seq;   // table entries of a sequence
    int32_t n_ctx;       // positions that a sequence may have
    int32_t *table;      // (n_seq, n_blk_seq) owned; entries past a sequence's blocks are 0
    int32_t *length;     // (n_seq) owned; positions
    uint32_t *n_ref;     // (n_blk) owned
    int32_t *free_stack; // (n_blk) owned
    int32_t n_free;
} sl_kv;

typedef struct sl_kv_copy {
    int32_t dst, src; // blocks; dst < 0: nothing to copy
} sl_kv_copy;

sl_status sl_kv_init(sl_kv *kv, int32_t blk_len, int32_t n_blk, int32_t n_seq, int32_t n_ctx);
void sl_kv_deinit(sl_kv *kv);

// May every sequence be extended by n_more[seq] positions? SL_FULL says whether the context or the
// pool is at its end.
sl_status sl_kv_can_extend(const sl_kv *kv, const int32_t *n_more);
// Extends; *copy says which block's bytes the caller must copy before it writes (at most one).
sl_status sl_kv_extend(sl_kv *kv, int32_t seq, int32_t n_more, sl_kv_copy *copy);
// Takes back an extension of a sequence that had n positions, its copy too: for a step that failed.
// Several are taken back in the reverse order of their making, with nothing in between.
void sl_kv_retract(sl_kv *kv, int32_t seq, int32_t n, sl_kv_copy copy);
void sl_kv_truncate(sl_kv *kv, int32_t seq, int32_t n);
// dst (empty) begins with the first n positions of src, sharing blocks.
sl_status sl_kv_fork(sl_kv *kv, int32_t dst, int32_t src, int32_t n);

#endif
