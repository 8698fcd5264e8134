// SPDX-License-Identifier: MIT
//
// Who holds which block: the pools, the block tables, and the tree of cached prefixes. Pure bookkeeping over integers,
// sized once; the bytes of the blocks are the backend's. A block holds blk_len positions of every layer of its class.
//
// Class 0 keeps all positions of a sequence. Class 1, which there may not be, is for layers that see a window only: of
// it a sequence holds its newest n_blk_seq blocks, and older ones are let go.
//
// The tree: a full block of class 0 is a node under the block before it, so a node stands for the exact tokens from the
// start of a sequence to its end, and two sequences of the same tokens share it. A node may have the block of class 1
// of the same positions beside it. What nobody holds stays in the tree as long as its memory is not needed.
//
// Moving (shape.moves): a row sees n_ctx positions at most, its first block (the sinks) and the newest; a sequence lets
// go of blocks after the first when its table is full, and the entries behind them move down. See kv_move.c.
//
// Invariants:
//  1. A block is held (n_ref table entries), or idle (n_ref 0, in the tree), or free.
//  2. A sequence of n positions holds blocks 0 .. ceil(n / blk_len) - 1 of class 0, in order, less n_gone[seq] after
//     the first, and of class 1 those from entry first[seq] on, which cover the window of the next row.
//  3. Only a block that one table entry and no node refers to is written (copy on write).
//  4. A node that is held has a parent that is held: so idle nodes can always be given up, leaves first. Not so below a
//     block that a moving sequence has let go; there a whole branch leaves the tree when its memory is needed.
//  5. Nothing here allocates after init. No compaction, no growth.
#ifndef SL_KV_KV_H
#define SL_KV_KV_H

#include "base/alloc.h"

enum { SL_KV_N_CLASS = 2 };

typedef struct sl_kv_shape {
    int32_t blk_len;      // positions of a block
    int32_t n_seq, n_ctx; // sequences; positions of each
    int32_t n_blk;        // blocks of class 0
    int32_t window;       // positions that a row sees in class 1; 0: there is no class 1
    int32_t n_window_blk; // blocks of class 1: n_seq times sl_kv_window_blocks at least
    int32_t n_row_max;    // positions that a sequence is extended by at once, at most
    bool caches;          // keep prefixes in the tree
    bool opens;           // a block that is not full is kept apart, see kv_open.c
    bool moves;           // a full sequence goes on; n_ctx is a multiple of blk_len, 2 of them at least, and n_blk
                          // n_seq times sl_kv_table_blocks
} sl_kv_shape;

typedef struct sl_kv_class {
    int32_t n_blk;          // 0: there is no such class
    int32_t n_blk_seq;      // that a sequence holds at most
    int32_t *table;         // (n_seq, sl_kv.n_blk_seq) owned; entries that hold no block are 0
    int32_t *first;         // (n_seq) owned; the first that is held
    uint32_t *n_ref;        // (n_blk) owned; table entries
    int32_t *node;          // (n_blk) owned; the node that it belongs to; -1: none
    int32_t *older, *newer; // (n_blk) owned; of idle blocks that may be given up, by their last use; -1: none
    int32_t oldest, newest;
    int32_t *free_stack; // (n_blk) owned
    int32_t n_free, n_idle;
} sl_kv_class;

// Numbered as its block of class 0.
typedef struct sl_kv_node {
    int32_t parent;     // -1: begins a sequence
    int32_t child;      // the first; -1: a leaf
    int32_t prev, next; // siblings; -1: none
    int32_t n_tok;      // fewer than blk_len only in leaves
    int32_t window_blk; // its block of class 1; -1: given up
    bool is_stored;     // for who keeps nodes elsewhere too; false at first
} sl_kv_node;

typedef struct sl_kv {
    sl_kv_shape shape;
    int32_t n_blk_seq;  // table entries of a sequence
    int32_t n_blk_seen; // blocks that a row sees, at most
    sl_kv_class cls[SL_KV_N_CLASS];
    int32_t *length;     // (n_seq) owned; positions
    int32_t *n_shared;   // (n_seq) owned; first blocks of the sequence that are nodes, each under the one before
    int32_t *open_blk;   // (n_seq, 2) owned; the block that each open block of the sequence has; -1: none
    int32_t *n_gone;     // (n_seq) owned; blocks after the first that were let go
    uint64_t *gone_hash; // (n_seq) owned; of their tokens, see kv_move.c
    int32_t *token;      // (n_seq, n_blk_seq * blk_len) owned; what is in the table's blocks; written by who extends
    sl_kv_node *tree;    // (n_blk) owned
    int32_t *tree_token; // (n_blk, blk_len) owned
    int32_t root;        // the first node without a parent; -1: none
    uint64_t n_evicted;  // blocks of class 0 whose prefix was given up for their memory
} sl_kv;

// Bytes to be copied before the sequence is written, by class; dst < 0: nothing.
typedef struct sl_kv_copies {
    struct {
        int32_t dst, src;
    } cls[SL_KV_N_CLASS];
} sl_kv_copies;

// Blocks of class 1 that a sequence needs: its window, a step of n_row_max rows, and SL_KV_SLACK positions more. So one
// can always go back by n_row_max + SL_KV_SLACK positions, less what a step has added to it.
enum { SL_KV_SLACK = 64 };
int64_t sl_kv_window_blocks(int32_t blk_len, int32_t window, int32_t n_row_max);
// Table entries of a sequence of n_ctx positions. Where it moves, as many more as the rows of a step and SL_KV_SLACK
// need, so the same holds for going back.
int64_t sl_kv_table_blocks(int32_t blk_len, int32_t n_ctx, int32_t n_row_max, bool moves);

sl_status sl_kv_init(sl_kv *kv, const sl_kv_shape *shape);
void sl_kv_deinit(sl_kv *kv);
uint64_t sl_kv_shape_bytes(const sl_kv_shape *shape); // what init takes

// What is in the table's blocks: position pos of a sequence, if it is there, at index pos or, behind the first block,
// pos - sl_kv_gone(seq).
static inline int32_t *sl_kv_tokens(const sl_kv *kv, int32_t seq) {
    return kv->token + (size_t)seq * (size_t)kv->n_blk_seq * (size_t)kv->shape.blk_len;
}

// Positions after the first block that were let go.
static inline int32_t sl_kv_gone(const sl_kv *kv, int32_t seq) { return kv->n_gone[seq] * kv->shape.blk_len; }

// Positions after the first block that the row at pos does not see any more. It depends on nothing else.
static inline int32_t sl_kv_hidden(const sl_kv *kv, int32_t pos) {
    return SL_MAX(pos / kv->shape.blk_len - kv->n_blk_seen + 1, 0) * kv->shape.blk_len;
}

// ---- extending: can_extend for all; open, copy, opened, extend for each; then commit, or retract, for each ----------

// May every sequence be extended by n_more[seq] positions? SL_FULL says whether the context or the pool is at its end.
sl_status sl_kv_can_extend(const sl_kv *kv, const int32_t *n_more);
// Makes the last block of a sequence writable, if it has room for more. The caller makes the copies and says whether
// all of them are done; if not, the sequence is as it was.
sl_status sl_kv_open(sl_kv *kv, int32_t seq, sl_kv_copies *copies);
void sl_kv_opened(sl_kv *kv, int32_t seq, sl_kv_copies copies, bool done);
sl_status sl_kv_extend(sl_kv *kv, int32_t seq, int32_t n_more);
// What a sequence holds besides its tokens.
typedef struct sl_kv_extent {
    int32_t n;          // positions
    int32_t first;      // the first table entry of class 1
    int32_t n_gone;     // as in sl_kv
    uint64_t gone_hash; // as in sl_kv
} sl_kv_extent;
sl_kv_extent sl_kv_extent_of(const sl_kv *kv, int32_t seq);
// Gives an empty sequence an extent, whose bytes and tokens come from elsewhere.
sl_status sl_kv_fill(sl_kv *kv, int32_t seq, const sl_kv_extent *extent);
// Gives a sequence of whole blocks, which all are in view, one more, whose bytes come from elsewhere. Without its block
// of class 1, where there is that class, the sequence loses its window, and sl_kv_reuse must follow before it is
// extended.
sl_status sl_kv_append(sl_kv *kv, int32_t seq, bool has_window);
// The positions and tokens that were added are written: full blocks become nodes of the tree.
void sl_kv_commit(sl_kv *kv, int32_t seq);
// Takes back an extension of a sequence that had n positions.
void sl_kv_retract(sl_kv *kv, int32_t seq, int32_t n);

// ---- open blocks, where shape.opens ---------------------------------------------------------------------------------

// Before sl_kv_extend by n_more > 0: the open block (0 or 1) of the block that the next position is in; if the step
// ends in another block, that has the other one.
int32_t sl_kv_begin_open(sl_kv *kv, int32_t seq, int32_t n_more);
int32_t sl_kv_open_at(const sl_kv *kv, int32_t seq, int32_t blk); // which holds it; -1: none
void sl_kv_set_open(sl_kv *kv, int32_t seq, int32_t i, int32_t blk);
// May the sequence end after n positions? It may at the end of a block, and in one that an open block holds.
bool sl_kv_can_end(const sl_kv *kv, int32_t seq, int32_t n);

// ---- sequences ------------------------------------------------------------------------------------------------------

// Positions of held blocks that nothing is at: the rest of the last block of each sequence.
int32_t sl_kv_count_unused(const sl_kv *kv);
// Keeps the first n positions. SL_UNSUPPORTED if something that the next row sees has been let go, or if the sequence
// may not end there: how far back is said.
sl_status sl_kv_truncate(sl_kv *kv, int32_t seq, int32_t n);
// dst (empty) begins with the first n positions of src, sharing blocks; who calls copies the open block, which is then
// open block 0 of dst. Refused as truncate is.
sl_status sl_kv_fork(sl_kv *kv, int32_t dst, int32_t src, int32_t n);
// Makes the sequence hold the longest beginning of ids (n) that it has already or that the tree has; returns its
// length. Nothing is computed or copied.
int32_t sl_kv_reuse(sl_kv *kv, int32_t seq, const int32_t *ids, int32_t n);

#endif
