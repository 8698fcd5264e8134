// SPDX-License-Identifier: MIT
//
// Sequences: their way forward (open, extend, commit), back (retract, truncate), and sideways (fork, reuse). Who calls
// has checked sequence numbers where the functions return nothing.
#include "kv/kv_part.h"

#include <string.h>

static sl_status check_seq(const sl_kv *kv, int32_t seq) {
    return seq >= 0 && seq < kv->shape.n_seq ? SL_OK : SL_FAIL(SL_BAD_ARG, "there is no sequence %d", seq);
}

int32_t sl_kv_first_seen(const sl_kv *kv, int32_t c, int32_t n) {
    int32_t window = kv->shape.window;
    return c == 0 || n < window ? 0 : (n + 1 - window) / kv->shape.blk_len;
}

// The block of a class that holds the sequence's last position and has room for more; -1 if the next position begins a
// new one.
static int32_t open_block(const sl_kv *kv, int32_t c, int32_t seq) {
    int32_t n = kv->length[seq], blk_len = kv->shape.blk_len;
    return n % blk_len && kv->cls[c].n_blk ? sl_kv_table(kv, c, seq)[sl_kv_entry(kv, seq, n / blk_len)] : -1;
}

static int32_t n_available(const sl_kv *kv, int32_t c) { return kv->cls[c].n_free + kv->cls[c].n_idle; }

// ---- forward --------------------------------------------------------------------------------------------------------

// Must this sequence copy its open block, if the extending ones before it have done so? The last holder writes in
// place, or leaves the block to the tree, which gives it up when its memory is needed.
static bool needs_copy(const sl_kv *kv, const int32_t *n_more, int32_t seq) {
    int32_t blk = open_block(kv, 0, seq);
    if (blk < 0 || kv->cls[0].n_ref[blk] == 1) return false;
    uint32_t n_before = 0;
    for (int32_t s = 0; s < seq; s++) n_before += n_more[s] > 0 && open_block(kv, 0, s) == blk;
    return n_before + 1 < kv->cls[0].n_ref[blk];
}

static sl_status check_room(const sl_kv *kv, int32_t seq, int32_t n_more) {
    int32_t n = kv->length[seq], n_ctx = kv->shape.n_ctx;
    if (!kv->shape.moves && (n_more < 0 || n_more > n_ctx - n))
        return SL_FAIL(SL_FULL, "the context is full: sequence %d holds %d of %d positions, and %d more do not fit",
                       seq, n, n_ctx, n_more);
    if (n_more < 0 || n_more > INT32_MAX - kv->shape.blk_len - n)
        return SL_FAIL(SL_FULL, "sequence %d has %d positions, and %d more cannot be counted", seq, n, n_more);
    if ((kv->shape.window || kv->shape.moves) && n_more > kv->shape.n_row_max)
        return SL_FAIL(SL_BAD_ARG, "a step adds %d positions at most, not %d", kv->shape.n_row_max, n_more);
    return SL_OK;
}

// Class 1 is not asked, for it has room for the windows of all sequences; nor is class 0 where they move.
sl_status sl_kv_can_extend(const sl_kv *kv, const int32_t *n_more) {
    int64_t n_need = 0;
    for (int32_t seq = 0; seq < kv->shape.n_seq; seq++) {
        if (n_more[seq] == 0) continue;
        int32_t n = kv->length[seq];
        SL_TRY(check_room(kv, seq, n_more[seq]));
        n_need += sl_kv_blocks(kv, n + n_more[seq]) - sl_kv_blocks(kv, n) + needs_copy(kv, n_more, seq);
    }
    if (!kv->shape.moves && n_need > n_available(kv, 0))
        return SL_FAIL(SL_FULL, "the KV pool is full: %lld blocks of %d positions are needed and %d are free",
                       (long long)n_need, kv->shape.blk_len, n_available(kv, 0));
    return SL_OK;
}

sl_status sl_kv_open(sl_kv *kv, int32_t seq, sl_kv_copies *copies) {
    for (int32_t c = 0; c < SL_KV_N_CLASS; c++) copies->cls[c].dst = copies->cls[c].src = -1;
    SL_TRY(check_seq(kv, seq));
    int32_t at = sl_kv_entry(kv, seq, kv->length[seq] / kv->shape.blk_len), blk = open_block(kv, 0, seq);
    // A leaf without another holder is taken over; what it held past this sequence is forgotten.
    if (blk >= 0 && kv->cls[0].n_ref[blk] == 1 && kv->cls[0].node[blk] >= 0 && sl_kv_is_leaf(kv, blk))
        sl_kv_unlink(kv, blk);
    for (int32_t c = 0; c < SL_KV_N_CLASS; c++) {
        sl_kv_class *k = &kv->cls[c];
        blk = open_block(kv, c, seq);
        if (blk < 0 || (k->n_ref[blk] == 1 && k->node[blk] < 0)) continue;
        if (n_available(kv, c) > 0) {
            copies->cls[c].src = blk;
            copies->cls[c].dst = sl_kv_table(kv, c, seq)[at] = sl_kv_take(kv, c);
        } else if (c == 1 && k->n_ref[blk] == 1) {
            sl_kv_unlink_window(kv, k->node[blk]);
        } else {
            sl_kv_opened(kv, seq, *copies, false);
            return SL_FAIL(SL_FULL, "the KV pool is full");
        }
    }
    return SL_OK;
}

void sl_kv_opened(sl_kv *kv, int32_t seq, sl_kv_copies copies, bool done) {
    int32_t at = sl_kv_entry(kv, seq, kv->length[seq] / kv->shape.blk_len);
    for (int32_t c = 0; c < SL_KV_N_CLASS; c++) {
        if (copies.cls[c].dst < 0) continue;
        if (!done) sl_kv_table(kv, c, seq)[at] = copies.cls[c].src;
        sl_kv_release(kv, c, done ? copies.cls[c].src : copies.cls[c].dst);
    }
}

// What the window of a sequence that ends at entry `end` has no room for.
static void let_windows_go(sl_kv *kv, int32_t seq, int32_t end) {
    sl_kv_class *k = &kv->cls[1];
    if (k->n_blk == 0) return;
    int32_t *table = sl_kv_table(kv, 1, seq), *first = &k->first[seq];
    for (; *first < end - k->n_blk_seq; table[(*first)++] = 0) sl_kv_release(kv, 1, table[*first]);
}

static void take_entries(sl_kv *kv, int32_t seq, int32_t begin, int32_t end) {
    for (int32_t c = 0; c < SL_KV_N_CLASS && kv->cls[c].n_blk; c++)
        for (int32_t i = SL_MAX(begin, kv->cls[c].first[seq]); i < end; i++)
            sl_kv_table(kv, c, seq)[i] = sl_kv_take(kv, c);
}

sl_status sl_kv_extend(sl_kv *kv, int32_t seq, int32_t n_more) {
    SL_TRY(check_seq(kv, seq));
    SL_TRY(check_room(kv, seq, n_more));
    int32_t n = kv->length[seq], end = sl_kv_entries(kv, seq, n + n_more);
    if (!kv->shape.moves && end - sl_kv_blocks(kv, n) > n_available(kv, 0))
        return SL_FAIL(SL_FULL, "the KV pool is full");
    let_windows_go(kv, seq, end);
    if (kv->shape.moves) sl_kv_move(kv, seq, n_more);
    take_entries(kv, seq, sl_kv_entries(kv, seq, n), sl_kv_entries(kv, seq, n + n_more));
    kv->length[seq] = n + n_more;
    return SL_OK;
}

sl_kv_extent sl_kv_extent_of(const sl_kv *kv, int32_t seq) {
    return (sl_kv_extent){kv->length[seq], kv->cls[1].n_blk ? kv->cls[1].first[seq] : 0, kv->n_gone[seq],
                          kv->gone_hash[seq]};
}

// Could a sequence have this extent?
static sl_status check_extent(const sl_kv *kv, const sl_kv_extent *x) {
    const sl_kv_class *window = &kv->cls[1];
    const bool moves = kv->shape.moves;
    int32_t n_max = moves ? INT32_MAX - kv->shape.blk_len : kv->shape.n_ctx;
    if (x->n < 0 || x->n > n_max || x->n_gone < 0 ||
        x->n_gone > (moves ? sl_kv_hidden(kv, x->n) / kv->shape.blk_len : 0))
        return SL_FAIL(SL_BAD_ARG, "%d positions do not fit into a sequence, or too few of them are there", x->n);
    int32_t n_entry = sl_kv_blocks(kv, x->n) - x->n_gone, first_seen = sl_kv_first_seen(kv, 1, x->n) - x->n_gone;
    if (n_entry > kv->n_blk_seq) return SL_FAIL(SL_BAD_ARG, "%d blocks do not fit into a sequence", n_entry);
    if (window->n_blk && (x->first < 0 || x->first > first_seen || n_entry - x->first > window->n_blk_seq))
        return SL_FAIL(SL_BAD_ARG, "the blocks from %d on are not a window of %d positions", x->first, x->n);
    return SL_OK;
}

sl_status sl_kv_fill(sl_kv *kv, int32_t seq, const sl_kv_extent *x) {
    SL_TRY(check_seq(kv, seq));
    if (kv->length[seq] != 0) return SL_FAIL(SL_BAD_ARG, "sequence %d is not empty", seq);
    SL_TRY(check_extent(kv, x));
    int32_t n_entry = sl_kv_blocks(kv, x->n) - x->n_gone;
    if (n_entry > n_available(kv, 0)) return SL_FAIL(SL_FULL, "the KV pool is full");
    if (kv->cls[1].n_blk) kv->cls[1].first[seq] = x->n ? x->first : 0;
    kv->n_gone[seq] = x->n_gone, kv->gone_hash[seq] = x->gone_hash;
    take_entries(kv, seq, 0, n_entry);
    kv->length[seq] = x->n;
    return SL_OK;
}

static void append_window(sl_kv *kv, int32_t seq, int32_t at, bool has_window) {
    sl_kv_class *k = &kv->cls[1];
    int32_t *table = sl_kv_table(kv, 1, seq), *first = &k->first[seq];
    int32_t keep = has_window ? at + 1 - k->n_blk_seq : at;
    for (; *first < keep; table[(*first)++] = 0) sl_kv_release(kv, 1, table[*first]);
    if (has_window) table[at] = sl_kv_take(kv, 1);
    else *first = at + 1;
}

sl_status sl_kv_append(sl_kv *kv, int32_t seq, bool has_window) {
    SL_TRY(check_seq(kv, seq));
    int32_t n = kv->length[seq], blk_len = kv->shape.blk_len, at = n / blk_len;
    if (n % blk_len || blk_len > kv->shape.n_ctx - n)
        return SL_FAIL(SL_BAD_ARG, "sequence %d has no room for a whole block after %d positions", seq, n);
    if (n_available(kv, 0) == 0) return SL_FAIL(SL_FULL, "the KV pool is full");
    sl_kv_table(kv, 0, seq)[at] = sl_kv_take(kv, 0);
    if (kv->cls[1].n_blk) append_window(kv, seq, at, has_window);
    kv->length[seq] = n + blk_len;
    return SL_OK;
}

void sl_kv_commit(sl_kv *kv, int32_t seq) {
    if (!kv->shape.caches) return;
    int32_t n_full = sl_kv_publishable(kv, seq);
    while (kv->n_shared[seq] < n_full) sl_kv_publish(kv, seq, kv->n_shared[seq]++, kv->shape.blk_len);
}

// ---- back -----------------------------------------------------------------------------------------------------------

static void cut(sl_kv *kv, int32_t seq, int32_t n) {
    int32_t end = sl_kv_entries(kv, seq, kv->length[seq]), keep = sl_kv_entries(kv, seq, n);
    for (int32_t c = 0; c < SL_KV_N_CLASS && kv->cls[c].n_blk; c++) {
        int32_t *table = sl_kv_table(kv, c, seq), *first = &kv->cls[c].first[seq];
        for (int32_t i = end; i-- > SL_MAX(keep, *first);) { // leaves first
            sl_kv_release(kv, c, table[i]);
            table[i] = 0;
        }
        if (n == 0) *first = 0;
    }
    for (int32_t i = 0; i < 2; i++) // open blocks of what is gone
        if ((int64_t)kv->open_blk[2 * seq + i] * kv->shape.blk_len >= n) kv->open_blk[2 * seq + i] = -1;
    kv->length[seq] = n;
    kv->n_shared[seq] = SL_MIN(kv->n_shared[seq], n / kv->shape.blk_len);
    if (n <= kv->shape.blk_len) sl_kv_forget_gone(kv, seq);
}

void sl_kv_retract(sl_kv *kv, int32_t seq, int32_t n) { cut(kv, seq, n); }

// Is the window of the row after n positions still there?
static bool has_window(const sl_kv *kv, int32_t seq, int32_t n) {
    return kv->cls[1].n_blk == 0 || n == 0 || sl_kv_first_seen(kv, 1, n) - kv->n_gone[seq] >= kv->cls[1].first[seq];
}

static sl_status check_view(const sl_kv *kv, int32_t seq, int32_t n) {
    if (sl_kv_has_view(kv, seq, n)) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED,
                   "sequence %d can be taken back to 0 .. %d or to %d .. %d positions, not to %d: of what was between "
                   "it has let go, as its context of %d was full",
                   seq, kv->shape.blk_len, sl_kv_gone(kv, seq) + kv->shape.n_ctx - kv->shape.blk_len, kv->length[seq],
                   n, kv->shape.n_ctx);
}

static sl_status check_window(const sl_kv *kv, int32_t seq, int32_t n) {
    if (has_window(kv, seq, n)) return SL_OK;
    int32_t oldest = (kv->cls[1].first[seq] + kv->n_gone[seq]) * kv->shape.blk_len + kv->shape.window - 1;
    return SL_FAIL(SL_UNSUPPORTED,
                   "sequence %d can be taken back to 0 or to %d .. %d positions, not to %d: its layers with a window "
                   "of %d have let go of what was before",
                   seq, oldest, kv->length[seq], n, kv->shape.window);
}

static sl_status check_end(const sl_kv *kv, int32_t seq, int32_t n) {
    if (sl_kv_can_end(kv, seq, n)) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED,
                   "sequence %d cannot end after %d positions: its keys there are codes of whole blocks of %d; take it "
                   "back to %d and compute the rest again",
                   seq, n, kv->shape.blk_len, n - n % kv->shape.blk_len);
}

// May the sequence be taken back to n positions?
static sl_status check_back(const sl_kv *kv, int32_t seq, int32_t n) {
    SL_TRY(check_view(kv, seq, n));
    SL_TRY(check_window(kv, seq, n));
    return check_end(kv, seq, n);
}

// The last block, of which only a part is filled, becomes a leaf if the sequence is about to let it go.
static void publish_rest(sl_kv *kv, int32_t seq, int32_t n) {
    int32_t at = kv->length[seq] / kv->shape.blk_len, n_tok = kv->length[seq] % kv->shape.blk_len;
    if (!kv->shape.caches || kv->shape.opens || n_tok == 0 || at < sl_kv_blocks(kv, n) || at != kv->n_shared[seq] ||
        at >= kv->n_blk_seen || kv->n_gone[seq])
        return;
    int32_t blk = sl_kv_table(kv, 0, seq)[at];
    if (kv->cls[0].node[blk] < 0 && kv->cls[0].n_ref[blk] == 1) sl_kv_publish(kv, seq, at, n_tok);
}

sl_status sl_kv_truncate(sl_kv *kv, int32_t seq, int32_t n) {
    SL_TRY(check_seq(kv, seq));
    if (n < 0 || n > kv->length[seq])
        return SL_FAIL(SL_BAD_ARG, "sequence %d has %d positions; it cannot keep %d", seq, kv->length[seq], n);
    SL_TRY(check_back(kv, seq, n));
    publish_rest(kv, seq, n);
    cut(kv, seq, n);
    return SL_OK;
}

// ---- sideways -------------------------------------------------------------------------------------------------------

sl_status sl_kv_fork(sl_kv *kv, int32_t dst, int32_t src, int32_t n) {
    SL_TRY(check_seq(kv, dst));
    SL_TRY(check_seq(kv, src));
    if (dst == src || kv->length[dst] != 0)
        return SL_FAIL(SL_BAD_ARG, "sequence %d must be another one than %d, and empty", dst, src);
    if (n < 0 || n > kv->length[src])
        return SL_FAIL(SL_BAD_ARG, "sequence %d has %d positions, not %d", src, kv->length[src], n);
    SL_TRY(check_back(kv, src, n));
    int32_t n_entry = sl_kv_entries(kv, src, n);
    for (int32_t c = 0; c < SL_KV_N_CLASS && kv->cls[c].n_blk; c++) {
        int32_t *to = sl_kv_table(kv, c, dst), *from = sl_kv_table(kv, c, src);
        if (n > 0) kv->cls[c].first[dst] = kv->cls[c].first[src];
        for (int32_t i = kv->cls[c].first[dst]; i < n_entry; i++) sl_kv_hold(kv, c, to[i] = from[i]);
    }
    size_t token_bytes = (size_t)n_entry * (size_t)kv->shape.blk_len * sizeof *kv->token;
    memcpy(sl_kv_tokens(kv, dst), sl_kv_tokens(kv, src), token_bytes);
    if (n > kv->shape.blk_len) kv->n_gone[dst] = kv->n_gone[src], kv->gone_hash[dst] = kv->gone_hash[src];
    kv->length[dst] = n;
    if (kv->shape.opens && n % kv->shape.blk_len) sl_kv_set_open(kv, dst, 0, n / kv->shape.blk_len);
    kv->n_shared[dst] = SL_MIN(kv->n_shared[src], n / kv->shape.blk_len);
    return SL_OK;
}

// An empty sequence begins with n positions, the last of them in `node`.
static void attach(sl_kv *kv, int32_t seq, int32_t node, int32_t n, const int32_t *ids) {
    int32_t first = kv->cls[1].n_blk ? sl_kv_first_seen(kv, 1, n) : INT32_MAX;
    for (int32_t i = sl_kv_blocks(kv, n); i-- > 0; node = kv->tree[node].parent) {
        sl_kv_hold(kv, 0, sl_kv_table(kv, 0, seq)[i] = node);
        if (i >= first) sl_kv_hold(kv, 1, sl_kv_table(kv, 1, seq)[i] = kv->tree[node].window_blk);
    }
    if (kv->cls[1].n_blk) kv->cls[1].first[seq] = first;
    memcpy(sl_kv_tokens(kv, seq), ids, (size_t)n * sizeof *ids);
    kv->length[seq] = n;
    kv->n_shared[seq] = n / kv->shape.blk_len;
}

int32_t sl_kv_reuse(sl_kv *kv, int32_t seq, const int32_t *ids, int32_t n) {
    int32_t n_own = sl_kv_own_beginning(kv, seq, ids, n), node;
    if (!sl_kv_has_view(kv, seq, n_own)) n_own = kv->shape.blk_len;
    if (!sl_kv_can_end(kv, seq, n_own)) n_own -= n_own % kv->shape.blk_len;
    if (!has_window(kv, seq, n_own)) n_own = 0;
    int32_t n_tree = sl_kv_find(kv, ids, n, &node);
    if (n_tree <= n_own) {
        publish_rest(kv, seq, n_own);
        cut(kv, seq, n_own);
    } else { // nodes that this lets go of stay, for nothing is taken meanwhile
        publish_rest(kv, seq, 0);
        cut(kv, seq, 0);
        n_tree = sl_kv_find(kv, ids, n, &node); // there may be one more now
        attach(kv, seq, node, n_tree, ids);
    }
    return kv->length[seq];
}
