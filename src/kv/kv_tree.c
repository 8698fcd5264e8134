// SPDX-License-Identifier: MIT
//
// The tree of cached prefixes. A node is found by comparing tokens, child by child: no hash stands for a prefix. The
// children of a node are a list; looking through it is linear, and compares mostly the first token of each.
#include "kv/kv_part.h"

#include <string.h>

static int32_t *tokens_of(const sl_kv *kv, int32_t node) {
    return kv->tree_token + (size_t)node * (size_t)kv->shape.blk_len;
}

static int32_t *children_of(sl_kv *kv, int32_t node) { return node < 0 ? &kv->root : &kv->tree[node].child; }

// ---- nodes come and go ----------------------------------------------------------------------------------------------

static void link_node(sl_kv *kv, int32_t node, int32_t parent, const int32_t *ids, int32_t n_tok) {
    int32_t *head = children_of(kv, parent);
    kv->tree[node] =
        (sl_kv_node){.parent = parent, .child = -1, .prev = -1, .next = *head, .n_tok = n_tok, .window_blk = -1};
    if (*head >= 0) kv->tree[*head].prev = node;
    *head = node; // the parent is held by who publishes, so it is in no list
    kv->cls[0].node[node] = node;
    memcpy(tokens_of(kv, node), ids, (size_t)n_tok * sizeof *ids);
}

void sl_kv_unlink_window(sl_kv *kv, int32_t node) {
    kv->cls[1].node[kv->tree[node].window_blk] = -1;
    kv->tree[node].window_blk = -1;
}

void sl_kv_unlink(sl_kv *kv, int32_t node) {
    sl_kv_node *n = &kv->tree[node];
    SL_ASSERT(n->child < 0);
    int32_t window_blk = n->window_blk;
    if (n->next >= 0) kv->tree[n->next].prev = n->prev;
    *(n->prev < 0 ? children_of(kv, n->parent) : &kv->tree[n->prev].next) = n->next;
    kv->cls[0].node[node] = -1;
    // A parent that is left bare was last used with its children, so it is the next to go.
    if (n->parent >= 0 && sl_kv_is_leaf(kv, n->parent) && kv->cls[0].n_ref[n->parent] == 0)
        sl_kv_list_oldest(kv, 0, n->parent);
    if (window_blk < 0) return;
    sl_kv_unlink_window(kv, node);
    if (kv->cls[1].n_ref[window_blk] > 0) return;
    sl_kv_unlist(kv, 1, window_blk);
    kv->cls[1].n_idle--;
    sl_kv_free(kv, 1, window_blk);
}

// From the leaves up. Of an idle node all idle leaves are listed.
void sl_kv_uproot(sl_kv *kv, int32_t node) {
    for (int32_t at = node, parent;; at = parent) {
        while (!sl_kv_is_leaf(kv, at)) at = kv->tree[at].child;
        bool idle = kv->cls[0].n_ref[at] == 0;
        parent = kv->tree[at].parent;
        if (idle) sl_kv_unlist(kv, 0, at), kv->cls[0].n_idle--;
        sl_kv_unlink(kv, at);
        if (idle) sl_kv_free(kv, 0, at), kv->n_evicted++;
        if (at == node) return;
    }
}

// Of a sequence's own block and the node's, one is enough.
static void share_window(sl_kv *kv, int32_t seq, int32_t i, int32_t node) {
    if (kv->cls[1].n_blk == 0 || i < kv->cls[1].first[seq]) return;
    int32_t *entry = &sl_kv_table(kv, 1, seq)[i], own = *entry, blk = kv->tree[node].window_blk;
    if (blk < 0) {
        kv->tree[node].window_blk = own;
        kv->cls[1].node[own] = node;
    } else {
        sl_kv_hold(kv, 1, blk);
        *entry = blk;
        sl_kv_release(kv, 1, own);
    }
}

void sl_kv_publish(sl_kv *kv, int32_t seq, int32_t i, int32_t n_tok) {
    int32_t *entry = &sl_kv_table(kv, 0, seq)[i], parent = i ? entry[-1] : -1;
    const int32_t *ids = sl_kv_tokens(kv, seq) + (size_t)i * (size_t)kv->shape.blk_len;
    SL_ASSERT(kv->cls[0].node[*entry] < 0);
    for (int32_t node = *children_of(kv, parent), next; node >= 0; node = next) {
        next = kv->tree[node].next;
        int32_t n = kv->tree[node].n_tok, n_common = sl_kv_common(tokens_of(kv, node), ids, SL_MIN(n, n_tok));
        if (n_common == n_tok) { // it is there
            if (n_tok < kv->shape.blk_len) return;
            sl_kv_hold(kv, 0, node);
            sl_kv_release(kv, 0, *entry);
            *entry = node;
            share_window(kv, seq, i, node);
            return;
        }
        if (n_common == n && kv->cls[0].n_ref[node] == 0) { // a part of what comes now
            sl_kv_unlist(kv, 0, node);
            kv->cls[0].n_idle--;
            sl_kv_unlink(kv, node);
            sl_kv_free(kv, 0, node);
        }
    }
    link_node(kv, *entry, parent, ids, n_tok);
    share_window(kv, seq, i, *entry);
}

// ---- looking up -----------------------------------------------------------------------------------------------------

// Of the children, the one that has most of ids (n); *n_common of them.
static int32_t find_child(const sl_kv *kv, int32_t node, const int32_t *ids, int32_t n, int32_t *n_common) {
    int32_t best = -1;
    *n_common = 0;
    for (int32_t child = node < 0 ? kv->root : kv->tree[node].child; child >= 0; child = kv->tree[child].next) {
        int32_t k = sl_kv_common(tokens_of(kv, child), ids, SL_MIN(n, kv->tree[child].n_tok));
        if (k <= *n_common) continue;
        best = child, *n_common = k;
        if (k == kv->shape.blk_len) break;
    }
    return best;
}

int32_t sl_kv_find(const sl_kv *kv, const int32_t *ids, int32_t n, int32_t *node) {
    int32_t at = -1, n_done = 0, n_best = 0, n_window = 0; // n_window: blocks of class 1 in a row, up to here
    *node = -1;
    while (n_done < n) {
        int32_t n_common, child = find_child(kv, at, ids + n_done, n - n_done, &n_common), i;
        if (child < 0 || (kv->shape.opens && n_common < kv->shape.blk_len)) break;
        i = n_done / kv->shape.blk_len;
        at = child, n_done += n_common;
        n_window = kv->tree[at].window_blk >= 0 ? n_window + 1 : 0;
        if (kv->cls[1].n_blk == 0 || n_window > i - sl_kv_first_seen(kv, 1, n_done)) n_best = n_done, *node = at;
        if (n_common < kv->shape.blk_len) break;
    }
    return n_best;
}
