// SPDX-License-Identifier: MIT
//
// A sequence to a file and back. Saving replaces the file whole or not at all; restoring takes nothing before all of
// the file is found good, and made by the same model, backend and types. The format is in session_file.h.
#include <errno.h>
#include <string.h>

#include "base/xxh64.h"
#include "engine/engine_part.h"
#include "engine/session_file.h"
#include "os/os.h"

// To be raised when a backend changes the order of bytes in its KV blocks.
enum { LAYOUT = 2, SAMPLE_BYTES = 256 };

// ---- which model this is --------------------------------------------------------------------------------------------

static uint64_t hash_span(sl_span s, uint64_t hash) { return sl_xxh64(s.data, s.n_bytes, hash); }

// All metadata, the list of tensors, and some bytes at the start and in the middle of each. Another file of the same
// content has the same hash.
static uint64_t hash_model(const sl_gguf *gguf) {
    uint64_t hash = 0;
    for (size_t i = 0; i < sl_gguf_n_kv(gguf); i++) {
        const sl_gguf_kv *kv = sl_gguf_kv_at(gguf, i);
        hash = hash_span(kv->key, hash);
        hash = sl_xxh64(kv->data, kv->n_bytes, hash);
    }
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(gguf, i);
        hash = hash_span(t->name, hash);
        hash = sl_xxh64(t->dim, sizeof t->dim, hash + t->type_id);
        if (!t->data) continue;
        size_t n = SL_MIN(t->n_bytes, (uint64_t)SAMPLE_BYTES);
        hash = sl_xxh64(t->data, n, hash);
        hash = sl_xxh64(t->data + (t->n_bytes - n) / 2, n, hash);
    }
    return hash;
}

static sl_session_head head_of(const sl_engine *e, int32_t seq, uint64_t n_app_bytes) {
    const sl_plan *plan = e->plans.plan[0];
    sl_session_head h = {
        .version = SL_SESSION_VERSION,
        .n_layer = plan->n_kv,
        .model_hash = hash_model(e->gguf),
        .layout = LAYOUT,
        .blk_len = SL_KV_BLK_LEN,
        .n_vocab = e->n_vocab,
        .n_pos = (uint32_t)e->kv.length[seq],
        .app_bytes = n_app_bytes,
    };
    if (e->kv.cls[1].n_blk) h.window_first = (uint32_t)e->kv.cls[1].first[seq];
    sl_session_set_magic(&h);
    snprintf(h.backend, sizeof h.backend, "%s", e->backend->name);
    return h;
}

static uint8_t log2_of(uint32_t n) {
    uint8_t log = 0;
    while (n > 1) n /= 2, log++;
    return log;
}

static sl_session_layer layer_of(const sl_plan_kv *kv) {
    return (sl_session_layer){
        .n_head_kv = kv->n_head_kv,
        .head_dim = kv->head_dim,
        .v_dim = kv->v_dim,
        .window = kv->window,
        .cls = kv->cls,
        .type_k = kv->type_k,
        .type_v = kv->type_v,
        .rot_v = log2_of(kv->v_rot),
        .k_blk_bytes = kv->k_blk_bytes,
        .v_blk_bytes = kv->v_blk_bytes,
        .k_open_bytes = kv->k_open.blk_bytes,
        .v_open_bytes = kv->v_open.blk_bytes,
    };
}

// ---- where the blocks are -------------------------------------------------------------------------------------------

typedef struct walk { // over the K and V blocks of a sequence, in the order of the file
    uint64_t off;     // in the KV buffer
    uint64_t n_bytes;
    uint32_t section;
} walk;

typedef sl_status visit(void *user, const walk *at);

static sl_status walk_blocks(const sl_engine *e, int32_t seq, visit *each, void *user) {
    const sl_plan *plan = e->plans.plan[0];
    int32_t n = e->kv.length[seq], end = n ? (n - 1) / SL_KV_BLK_LEN + 1 : 0;
    for (uint32_t i = 0; i < 2 * plan->n_kv; i++) {
        const sl_plan_kv *kv = &plan->kv[i / 2];
        const sl_kv_class *cls = &e->kv.cls[kv->cls];
        const int32_t *table = cls->table + (size_t)seq * (size_t)e->kv.n_blk_seq;
        uint64_t n_bytes = i % 2 ? kv->v_blk_bytes : kv->k_blk_bytes, off = i % 2 ? kv->v_off : kv->k_off;
        for (int32_t b = cls->first[seq]; b < end; b++)
            SL_TRY(each(user, &(walk){off + (uint64_t)table[b] * n_bytes, n_bytes, 3 + i}));
        const sl_plan_open *open = i % 2 ? &kv->v_open : &kv->k_open;
        int32_t at = SL_KV_OPEN_SLOTS * seq + sl_kv_open_at(&e->kv, seq, n / SL_KV_BLK_LEN);
        if (open->blk_bytes && n % SL_KV_BLK_LEN)
            SL_TRY(each(user, &(walk){sl_plan_open_off(open, at), open->blk_bytes, 3 + i}));
    }
    return SL_OK;
}

static uint64_t largest_block(const sl_plan *plan) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < plan->n_kv; i++) {
        const sl_plan_kv *kv = &plan->kv[i];
        most = SL_MAX(most, SL_MAX(kv->k_blk_bytes, kv->v_blk_bytes));
        most = SL_MAX(most, SL_MAX(kv->k_open.blk_bytes, kv->v_open.blk_bytes));
    }
    return most;
}

// ---- saving ---------------------------------------------------------------------------------------------------------

typedef struct saving {
    const sl_engine *e;
    FILE *file;
    uint8_t *stage; // owned; one block
    uint64_t *sum;  // owned; (n_section)
} saving;

static sl_status put(saving *s, const void *data, size_t n_bytes) {
    if (n_bytes == 0) return SL_OK;
    errno = 0;
    if (fwrite(data, 1, n_bytes, s->file) == n_bytes) return SL_OK;
    return SL_FAIL(SL_IO, "cannot write the session: %s", errno ? strerror(errno) : "the file is full");
}

static sl_status put_section(saving *s, uint32_t i, const void *data, size_t n_bytes) {
    s->sum[i] = sl_xxh64(data, n_bytes, 0);
    return put(s, data, n_bytes);
}

static sl_status put_block(void *user, const walk *at) {
    saving *s = user;
    SL_TRY(s->e->backend->buf_read(s->e->device, s->stage, &s->e->kv_buf, at->off, at->n_bytes));
    s->sum[at->section] = sl_xxh64(s->stage, at->n_bytes, s->sum[at->section]);
    return put(s, s->stage, at->n_bytes);
}

static sl_status put_front(saving *s, const sl_session_head *h) {
    SL_TRY(put(s, h, sizeof *h));
    return put(s, s->sum, sl_session_n_section(h->n_layer) * sizeof *s->sum);
}

// The front is written twice: as room, and at the end with its sums.
static sl_status put_all(saving *s, int32_t seq, sl_session_head *h, const sl_session_layer *layer, const void *app) {
    SL_TRY(put_front(s, h));
    SL_TRY(put_section(s, 0, layer, h->n_layer * sizeof *layer));
    SL_TRY(put_section(s, 1, sl_kv_tokens(&s->e->kv, seq), h->n_pos * sizeof(int32_t)));
    SL_TRY(put_section(s, 2, app, h->app_bytes));
    SL_TRY(walk_blocks(s->e, seq, put_block, s));
    h->head_hash = sl_session_hash_head(h, s->sum);
    if (fseek(s->file, 0, SEEK_SET) != 0) return SL_FAIL(SL_IO, "cannot write the session: %s", strerror(errno));
    return put_front(s, h);
}

static sl_status save(saving *s, int32_t seq, sl_session_head *h, const sl_session_layer *layer, const char *path,
                      const void *app) {
    sl_atomic_file file;
    SL_TRY(sl_atomic_file_open(&file, path));
    s->file = file.file;
    sl_status status = put_all(s, seq, h, layer, app);
    if (status == SL_OK) status = sl_atomic_file_commit(&file);
    sl_atomic_file_cancel(&file);
    return status;
}

sl_status sl_engine_session_save(const sl_engine *e, int32_t seq, const char *path, const void *app, size_t n_bytes) {
    SL_TRY(sl_engine_check_seq(e, seq));
    const sl_plan *plan = e->plans.plan[0];
    saving s = {.e = e};
    sl_session_layer *layer = NULL;
    sl_session_head h = head_of(e, seq, n_bytes);
    sl_status status;
    SL_TRY_OUT(sl_alloc(&layer, h.n_layer, sizeof *layer, "layers of a session"));
    SL_TRY_OUT(sl_alloc(&s.sum, sl_session_n_section(h.n_layer), sizeof *s.sum, "sums of a session"));
    SL_TRY_OUT(sl_alloc(&s.stage, 1, largest_block(plan), "a block of a session"));
    for (uint32_t i = 0; i < h.n_layer; i++) layer[i] = layer_of(&plan->kv[i]);
    if (!sl_session_file_bytes(&h, layer, &h.file_bytes)) status = SL_FAIL(SL_NO_MEMORY, "a session of 2^64 bytes");
    else status = save(&s, seq, &h, layer, path, app);
out:
    sl_free(s.stage);
    sl_free(s.sum);
    sl_free(layer);
    return status;
}

// ---- restoring ------------------------------------------------------------------------------------------------------

static sl_status check_layer(uint32_t i, const sl_session_layer *has, const sl_session_layer *wants) {
    if (memcmp(has, wants, sizeof *has) == 0) return SL_OK;
    if (has->type_k != wants->type_k || has->type_v != wants->type_v)
        return SL_FAIL(SL_UNSUPPORTED, "has keys of type %s and values of type %s, and this engine %s and %s",
                       sl_type_name((sl_type)has->type_k), sl_type_name((sl_type)has->type_v),
                       sl_type_name((sl_type)wants->type_k), sl_type_name((sl_type)wants->type_v));
    if (has->rot_v != wants->rot_v) return SL_FAIL(SL_UNSUPPORTED, "has another rotation of values than this engine");
    if (has->cls != wants->cls)
        return SL_FAIL(SL_UNSUPPORTED, "was made with another context, in which layer %u keeps other positions", i);
    return SL_FAIL(SL_UNSUPPORTED, "has a layer %u of another shape than this engine", i);
}

static sl_status check_fit(const sl_engine *e, const sl_session_view *v) {
    const sl_plan *plan = e->plans.plan[0];
    const sl_session_head *h = v->head;
    char backend[sizeof h->backend + 1] = {0};
    memcpy(backend, h->backend, sizeof h->backend);
    if (strcmp(backend, e->backend->name) != 0)
        return SL_FAIL(SL_UNSUPPORTED, "was made by another backend than %s", e->backend->name);
    if (h->model_hash != hash_model(e->gguf) || h->n_vocab != e->n_vocab || h->n_layer != plan->n_kv)
        return SL_FAIL(SL_UNSUPPORTED, "was made with another model");
    if (h->layout != LAYOUT || h->blk_len != SL_KV_BLK_LEN)
        return SL_FAIL(SL_UNSUPPORTED, "was made by another version of sluice, which orders keys and values otherwise");
    for (uint32_t i = 0; i < h->n_layer; i++) {
        sl_session_layer wants = layer_of(&plan->kv[i]);
        SL_TRY(check_layer(i, &v->layer[i], &wants));
    }
    if (h->n_pos > (uint32_t)e->kv.shape.n_ctx)
        return SL_FAIL(SL_FULL, "holds %u positions, and the context has %d", h->n_pos, e->kv.shape.n_ctx);
    if (e->kv.cls[1].n_blk && sl_session_n_blk(h, 1) > (uint32_t)e->kv.cls[1].n_blk_seq)
        return SL_FAIL(SL_UNSUPPORTED,
                       "was made with larger prefill steps, and has more of its windows than fits here");
    return SL_OK;
}

typedef struct restoring {
    sl_engine *e;
    const uint8_t *from;
    uint8_t *stage; // owned; one block
    sl_device_buf view;
} restoring;

static sl_status get_block(void *user, const walk *at) {
    restoring *r = user;
    memcpy(r->stage, r->from, at->n_bytes);
    r->from += at->n_bytes;
    return r->e->backend->buf_copy(r->e->device, &r->e->kv_buf, at->off, &r->view, 0, at->n_bytes);
}

static sl_status get_blocks(sl_engine *e, int32_t seq, const sl_session_view *v) {
    size_t n_bytes = largest_block(e->plans.plan[0]);
    restoring r = {.e = e, .from = v->kv};
    SL_TRY(sl_alloc(&r.stage, 1, n_bytes, "a block of a session"));
    sl_status status = e->backend->buf_create(e->device, &r.view, r.stage, n_bytes, "a block of a session");
    if (status == SL_OK) status = walk_blocks(e, seq, get_block, &r);
    e->backend->buf_destroy(e->device, &r.view);
    sl_free(r.stage);
    return status;
}

static sl_status restore(sl_engine *e, int32_t seq, const sl_session_view *v) {
    SL_TRY(check_fit(e, v));
    SL_TRY(sl_kv_truncate(&e->kv, seq, 0));
    SL_TRY(sl_kv_fill(&e->kv, seq, (int32_t)v->head->n_pos, (int32_t)v->head->window_first));
    if (e->kv.shape.opens) sl_kv_set_open(&e->kv, seq, 0, (int32_t)v->head->n_pos / SL_KV_BLK_LEN);
    sl_status status = get_blocks(e, seq, v);
    if (status != SL_OK) return sl_kv_retract(&e->kv, seq, 0), status;
    memcpy(sl_kv_tokens(&e->kv, seq), v->ids, v->head->n_pos * sizeof *v->ids);
    sl_kv_commit(&e->kv, seq);
    return SL_OK;
}

static sl_status copy_app(sl_span app, char **out, size_t *n_bytes) {
    SL_TRY(sl_alloc(out, app.n_bytes + 1, 1, "the program's part of a session"));
    if (app.n_bytes) memcpy(*out, app.data, app.n_bytes);
    *n_bytes = app.n_bytes;
    return SL_OK;
}

sl_status sl_engine_session_load(sl_engine *e, int32_t seq, const char *path, char **app, size_t *n_app_bytes) {
    *app = NULL, *n_app_bytes = 0;
    SL_TRY(sl_engine_check_seq(e, seq));
    sl_map map;
    sl_session_view v;
    SL_TRY(sl_map_open(&map, path));
    sl_status status = sl_session_parse(&v, map.data, map.n_bytes);
    if (status == SL_OK) status = copy_app(v.app, app, n_app_bytes);
    if (status == SL_OK) status = restore(e, seq, &v);
    sl_map_close(&map);
    if (status == SL_OK) return SL_OK;
    sl_free(*app);
    *app = NULL, *n_app_bytes = 0;
    return sl_fail_prefix(status, "%s", path);
}
