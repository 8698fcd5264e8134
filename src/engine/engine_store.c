// SPDX-License-Identifier: MIT
//
// Prefixes in a folder: each full block of the tree as a file, so that it comes back after it was given up for its
// memory and after the end of the process. Between answers everything new is written; so to give up a block costs
// nothing, and a step calls nothing. A file is one block in the form of a session file, with the ids of all positions
// up to its end: as in the tree, a prefix is known by its tokens and never by a hash alone, which finds only the name.
//
// The time of a file is that of its last use, less a microsecond for each block before it: so the end of a chain goes
// before its beginning.
#include <string.h>

#include "base/xxh64.h"
#include "engine/engine_part.h"
#include "engine/prefix_folder.h"

struct sl_engine_store {
    sl_prefix_folder folder;
    sl_engine_form form; // owned
    uint64_t form_hash;
};

uint64_t sl_engine_store_memory(uint32_t n_layer) {
    return sizeof(sl_engine_store) + n_layer * sizeof(sl_session_layer);
}

sl_status sl_engine_store_open(sl_engine *e, const char *path, uint64_t budget_bytes) {
    sl_engine_store *s;
    SL_TRY(sl_alloc(&s, 1, sizeof *s, "folder of prefixes"));
    e->store = s;
    e->memory.other_bytes += sl_engine_store_memory(e->plans.plan[0]->n_kv);
    SL_TRY(sl_engine_form_init(&s->form, e));
    s->form_hash = sl_xxh64(&s->form.head, sizeof s->form.head, 0);
    s->form_hash = sl_xxh64(s->form.layer, s->form.head.n_layer * sizeof *s->form.layer, s->form_hash);
    return sl_prefix_folder_open(&s->folder, path, budget_bytes);
}

void sl_engine_store_close(sl_engine_store *s) {
    if (!s) return;
    sl_engine_form_deinit(&s->form);
    sl_free(s);
}

uint64_t sl_engine_store_bytes(const sl_engine_store *s) { return s ? s->folder.n_bytes : 0; }

// The chain with one block more.
static uint64_t hash_chain(const int32_t *ids, uint64_t hash) {
    return sl_xxh64(ids, SL_KV_BLK_LEN * sizeof *ids, hash);
}

static int64_t time_of_use(int64_t now_ns, int32_t i_blk) { return now_ns - INT64_C(1000) * i_blk; }

// ---- to the folder --------------------------------------------------------------------------------------------------

typedef struct chain {   // of the tree, from its beginning on
    int32_t *node, *ids; // (n), (n, SL_KV_BLK_LEN); owned
    int32_t n;
} chain;

static sl_status write_block(const sl_engine *e, const char *path, const sl_engine_blocks *blocks, int64_t since_ns) {
    sl_engine_store *s = e->store;
    sl_session_head head;
    sl_atomic_file file;
    SL_TRY(sl_engine_form_fill(&head, &s->form, blocks, 0));
    SL_TRY(sl_prefix_folder_make_room(&s->folder, head.file_bytes, since_ns));
    SL_TRY(sl_atomic_file_open(&file, path, true));
    sl_status status = sl_engine_blocks_write(e, file.file, &s->form, blocks, NULL, 0);
    if (status == SL_OK) status = sl_atomic_file_publish(&file);
    sl_atomic_file_cancel(&file);
    if (status == SL_OK) s->folder.n_bytes += head.file_bytes;
    return status;
}

static sl_status store_chain(sl_engine *e, const chain *c, int64_t now_ns) {
    uint64_t hash = e->store->form_hash;
    int64_t since_ns = time_of_use(now_ns, e->kv.n_blk_seq); // what this call has written or used is kept
    for (int32_t i = 0; i < c->n; i++) {
        char path[SL_PREFIX_PATH_BYTES];
        sl_kv_node *node = &e->kv.tree[c->node[i]];
        bool has_window = node->window_blk >= 0;
        hash = hash_chain(c->ids + (size_t)i * SL_KV_BLK_LEN, hash);
        sl_prefix_folder_path(path, &e->store->folder, (sl_prefix_key){e->store->form_hash, hash});
        if (!sl_file_touch(path, time_of_use(now_ns, i))) {
            sl_engine_blocks blocks = {.ids = c->ids,
                                       .n_pos = (uint32_t)(i + 1) * SL_KV_BLK_LEN,
                                       .first = {(uint32_t)i, (uint32_t)(i + !has_window)},
                                       .blk = {&c->node[i], &node->window_blk}};
            SL_TRY(write_block(e, path, &blocks, since_ns));
            sl_file_touch(path, time_of_use(now_ns, i));
        }
        node->is_stored = true;
    }
    return SL_OK;
}

// What ends in a node.
static sl_status store_to(sl_engine *e, int32_t last, int64_t now_ns) {
    const size_t blk_len = SL_KV_BLK_LEN;
    chain c = {0};
    sl_status status;
    for (int32_t node = last; node >= 0; node = e->kv.tree[node].parent) c.n++;
    SL_TRY_OUT(sl_alloc(&c.node, (size_t)c.n, sizeof *c.node, "a prefix"));
    SL_TRY_OUT(sl_alloc(&c.ids, (size_t)c.n, blk_len * sizeof *c.ids, "a prefix"));
    for (int32_t i = c.n, node = last; i-- > 0; node = e->kv.tree[node].parent) {
        c.node[i] = node;
        memcpy(c.ids + (size_t)i * blk_len, e->kv.tree_token + (size_t)node * blk_len, blk_len * sizeof *c.ids);
    }
    status = store_chain(e, &c, now_ns);
out:
    sl_free(c.ids);
    sl_free(c.node);
    return status;
}

static bool is_full(const sl_kv *kv, int32_t node) { return kv->tree[node].n_tok == kv->shape.blk_len; }

// A full block under which there is none: all others are in the chain of such a one.
static bool ends_chain(const sl_kv *kv, int32_t node) {
    if (kv->cls[0].node[node] < 0 || !is_full(kv, node)) return false;
    for (int32_t child = kv->tree[node].child; child >= 0; child = kv->tree[child].next)
        if (is_full(kv, child)) return false;
    return true;
}

sl_status sl_engine_prefix_save(sl_engine *e) {
    if (!e->store) return SL_OK;
    int64_t now_ns = sl_clock_date_ns();
    bool looked = false;
    for (int32_t node = 0; node < e->kv.cls[0].n_blk; node++) {
        if (!ends_chain(&e->kv, node) || e->kv.tree[node].is_stored) continue;
        if (!looked) SL_TRY(sl_prefix_folder_look(&e->store->folder)); // others may write there too
        looked = true;
        sl_status status = store_to(e, node, now_ns);
        if (status != SL_OK && status != SL_FULL) return status;
        e->kv.tree[node].is_stored = true; // or its end did not fit, and will not the next time
    }
    return SL_OK;
}

// ---- from the folder ------------------------------------------------------------------------------------------------

// The file of block i, if it is good. A bad one is removed: it would only be read again.
static bool open_block(sl_engine *e, sl_map *map, sl_session_view *v, const char *path, const int32_t *ids, int32_t i) {
    if (sl_map_open(map, path) != SL_OK) return false;
    size_t n = (size_t)(i + 1) * SL_KV_BLK_LEN;
    if (sl_session_parse(v, map->data, map->n_bytes) == SL_OK && sl_engine_form_check(&e->store->form, v) == SL_OK &&
        v->head->n_pos == n && v->head->first == (uint32_t)i && memcmp(v->ids, ids, n * sizeof *ids) == 0)
        return true;
    sl_map_close(map);
    sl_file_remove(path);
    return false;
}

static sl_status take_block(sl_engine *e, int32_t seq, const sl_session_view *v) {
    uint32_t i = v->head->first;
    bool has_window = v->head->window_first <= i && e->kv.cls[1].n_blk;
    SL_TRY(sl_kv_append(&e->kv, seq, has_window));
    sl_engine_blocks to = {.n_pos = v->head->n_pos, .first = {i, i + !has_window}};
    for (int32_t c = 0; c < SL_KV_N_CLASS && e->kv.cls[c].n_blk; c++)
        to.blk[c] = e->kv.cls[c].table + (size_t)seq * (size_t)e->kv.n_blk_seq + i;
    sl_status status = sl_engine_blocks_read(e, &to, v);
    if (status != SL_OK) return sl_kv_retract(&e->kv, seq, (int32_t)i * SL_KV_BLK_LEN), status;
    size_t at = (size_t)i * SL_KV_BLK_LEN;
    memcpy(sl_kv_tokens(&e->kv, seq) + at, v->ids + at, SL_KV_BLK_LEN * sizeof *v->ids);
    sl_kv_commit(&e->kv, seq);
    return SL_OK;
}

// Blocks are appended to whole blocks: what the sequence holds of the block that the folder has, goes.
static void keep_whole_blocks(sl_engine *e, int32_t seq, const int32_t *ids) {
    for (int32_t n; (n = e->kv.length[seq]) % SL_KV_BLK_LEN;) sl_kv_reuse(&e->kv, seq, ids, n - n % SL_KV_BLK_LEN);
}

int32_t sl_engine_store_load(sl_engine *e, int32_t seq, const int32_t *ids, int32_t n) {
    int64_t now_ns = sl_clock_date_ns();
    uint64_t hash = e->store->form_hash;
    int32_t n_hashed = 0, n_loaded = 0;
    bool touched = false;
    for (;;) {
        char path[SL_PREFIX_PATH_BYTES];
        sl_map map;
        sl_session_view v;
        int32_t i = e->kv.length[seq] / SL_KV_BLK_LEN;
        if (i < n_hashed - 1) hash = e->store->form_hash, n_hashed = 0; // gone back further than to the block's start
        if ((i + 1) * SL_KV_BLK_LEN > n) break;
        for (; n_hashed <= i; n_hashed++) hash = hash_chain(ids + (size_t)n_hashed * SL_KV_BLK_LEN, hash);
        sl_prefix_folder_path(path, &e->store->folder, (sl_prefix_key){e->store->form_hash, hash});
        if (!open_block(e, &map, &v, path, ids, i)) break;
        touched = true;
        sl_status status = SL_OK;
        keep_whole_blocks(e, seq, ids);
        bool fits = e->kv.length[seq] / SL_KV_BLK_LEN == i;
        if (fits) status = take_block(e, seq, &v);
        sl_map_close(&map);
        if (status != SL_OK) break;
        if (fits) n_loaded += SL_KV_BLK_LEN, sl_file_touch(path, time_of_use(now_ns, i));
    }
    if (touched) sl_kv_reuse(&e->kv, seq, ids, n); // what was let go meanwhile, if its window is there, or a whole one
    return SL_MIN(n_loaded, e->kv.length[seq]);
}
