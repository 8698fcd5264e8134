// SPDX-License-Identifier: MIT
//
// Blocks of the KV pool to a file and back, for sessions and for the folder of prefixes. Who reads has found all of the
// file good before (sl_session_parse, sl_engine_form_check). The format is in session_file.h.
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

sl_status sl_engine_form_init(sl_engine_form *form, const sl_engine *e) {
    const sl_plan *plan = e->plans.plan[0];
    *form = (sl_engine_form){.head = {.version = SL_SESSION_VERSION,
                                      .n_layer = plan->n_kv,
                                      .model_hash = hash_model(e->gguf),
                                      .layout = LAYOUT,
                                      .blk_len = SL_KV_BLK_LEN,
                                      .n_vocab = e->n_vocab}};
    sl_session_set_magic(&form->head);
    snprintf(form->head.backend, sizeof form->head.backend, "%s", e->backend->name);
    SL_TRY(sl_alloc(&form->layer, plan->n_kv, sizeof *form->layer, "layers of a session"));
    for (uint32_t i = 0; i < plan->n_kv; i++) form->layer[i] = layer_of(&plan->kv[i]);
    return SL_OK;
}

void sl_engine_form_deinit(sl_engine_form *form) {
    sl_free(form->layer);
    *form = (sl_engine_form){0};
}

sl_status sl_engine_form_fill(sl_session_head *out, const sl_engine_form *form, const sl_engine_blocks *blocks,
                              size_t n_app_bytes) {
    *out = form->head;
    out->n_pos = blocks->n_pos, out->first = blocks->first[0], out->window_first = blocks->first[1];
    out->n_ctx = blocks->n_ctx, out->n_gone = blocks->n_gone, out->gone_hash = blocks->gone_hash;
    out->app_bytes = n_app_bytes;
    if (sl_session_file_bytes(out, form->layer, &out->file_bytes)) return SL_OK;
    return SL_FAIL(SL_NO_MEMORY, "a session of 2^64 bytes");
}

// ---- where the blocks are -------------------------------------------------------------------------------------------

typedef struct walk { // over the K and V blocks, in the order of the file
    uint64_t off;     // in the KV buffer
    uint64_t n_bytes;
    uint32_t section;
} walk;

typedef sl_status visit(void *user, const walk *at);

static sl_status walk_blocks(const sl_engine *e, const sl_engine_blocks *blocks, visit *each, void *user) {
    const sl_plan *plan = e->plans.plan[0];
    uint32_t end = blocks->n_pos ? (blocks->n_pos - 1) / SL_KV_BLK_LEN + 1 - blocks->n_gone : 0;
    for (uint32_t i = 0; i < 2 * plan->n_kv; i++) {
        const sl_plan_kv *kv = &plan->kv[i / 2];
        uint64_t n_bytes = i % 2 ? kv->v_blk_bytes : kv->k_blk_bytes, off = i % 2 ? kv->v_off : kv->k_off;
        for (uint32_t b = blocks->first[kv->cls]; b < end; b++) {
            uint64_t blk = (uint64_t)blocks->blk[kv->cls][b - blocks->first[kv->cls]];
            SL_TRY(each(user, &(walk){off + blk * n_bytes, n_bytes, 3 + i}));
        }
        const sl_plan_open *open = i % 2 ? &kv->v_open : &kv->k_open;
        if (open->blk_bytes && blocks->n_pos % SL_KV_BLK_LEN)
            SL_TRY(each(user, &(walk){sl_plan_open_off(open, blocks->open), open->blk_bytes, 3 + i}));
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

// ---- writing --------------------------------------------------------------------------------------------------------

typedef struct writing {
    const sl_engine *e;
    const sl_engine_blocks *blocks;
    FILE *file;
    uint8_t *stage; // owned; one block
    uint64_t *sum;  // owned; (n_section)
} writing;

static sl_status put(writing *s, const void *data, size_t n_bytes) {
    if (n_bytes == 0) return SL_OK;
    errno = 0;
    if (fwrite(data, 1, n_bytes, s->file) == n_bytes) return SL_OK;
    return SL_FAIL(SL_IO, "cannot write keys and values: %s", errno ? strerror(errno) : "the file is full");
}

static sl_status put_section(writing *s, uint32_t i, const void *data, size_t n_bytes) {
    s->sum[i] = sl_xxh64(data, n_bytes, 0);
    return put(s, data, n_bytes);
}

static sl_status put_block(void *user, const walk *at) {
    writing *s = user;
    SL_TRY(s->e->backend->buf_read(s->e->device, s->stage, &s->e->kv_buf, at->off, at->n_bytes));
    s->sum[at->section] = sl_xxh64(s->stage, at->n_bytes, s->sum[at->section]);
    return put(s, s->stage, at->n_bytes);
}

static sl_status put_front(writing *s, const sl_session_head *h) {
    SL_TRY(put(s, h, sizeof *h));
    return put(s, s->sum, sl_session_n_section(h->n_layer) * sizeof *s->sum);
}

// The front is written twice: as room, and at the end with its sums.
static sl_status put_all(writing *s, sl_session_head *h, const sl_session_layer *layer, const void *app) {
    SL_TRY(put_front(s, h));
    SL_TRY(put_section(s, 0, layer, h->n_layer * sizeof *layer));
    SL_TRY(put_section(s, 1, s->blocks->ids, sl_session_n_id(h) * sizeof(int32_t)));
    SL_TRY(put_section(s, 2, app, h->app_bytes));
    SL_TRY(walk_blocks(s->e, s->blocks, put_block, s));
    h->head_hash = sl_session_hash_head(h, s->sum);
    if (fseek(s->file, 0, SEEK_SET) != 0) return SL_FAIL(SL_IO, "cannot write keys and values: %s", strerror(errno));
    return put_front(s, h);
}

sl_status sl_engine_blocks_write(const sl_engine *e, FILE *file, const sl_engine_form *form,
                                 const sl_engine_blocks *blocks, const void *app, size_t n_app_bytes) {
    writing s = {.e = e, .blocks = blocks, .file = file};
    sl_session_head h;
    sl_status status;
    SL_TRY(sl_engine_form_fill(&h, form, blocks, n_app_bytes));
    SL_TRY_OUT(sl_alloc(&s.sum, sl_session_n_section(h.n_layer), sizeof *s.sum, "sums of a session"));
    SL_TRY_OUT(sl_alloc(&s.stage, 1, largest_block(e->plans.plan[0]), "a block of a session"));
    status = put_all(&s, &h, form->layer, app);
out:
    sl_free(s.stage);
    sl_free(s.sum);
    return status;
}

// ---- reading ------------------------------------------------------------------------------------------------------

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

sl_status sl_engine_form_check(const sl_engine_form *form, const sl_session_view *v) {
    const sl_session_head *has = v->head, *wants = &form->head;
    if (memcmp(has->backend, wants->backend, sizeof has->backend) != 0)
        return SL_FAIL(SL_UNSUPPORTED, "was made by another backend than %s", wants->backend);
    if (has->model_hash != wants->model_hash || has->n_vocab != wants->n_vocab || has->n_layer != wants->n_layer)
        return SL_FAIL(SL_UNSUPPORTED, "was made with another model");
    if (has->layout != wants->layout || has->blk_len != wants->blk_len)
        return SL_FAIL(SL_UNSUPPORTED, "was made by another version of sluice, which orders keys and values otherwise");
    for (uint32_t i = 0; i < has->n_layer; i++) SL_TRY(check_layer(i, &v->layer[i], &form->layer[i]));
    return SL_OK;
}

typedef struct reading {
    sl_engine *e;
    const uint8_t *from;
    uint8_t *stage; // owned; one block
    sl_device_buf view;
} reading;

static sl_status get_block(void *user, const walk *at) {
    reading *r = user;
    memcpy(r->stage, r->from, at->n_bytes);
    r->from += at->n_bytes;
    return r->e->backend->buf_copy(r->e->device, &r->e->kv_buf, at->off, &r->view, 0, at->n_bytes);
}

sl_status sl_engine_blocks_read(sl_engine *e, const sl_engine_blocks *to, const sl_session_view *v) {
    size_t n_bytes = largest_block(e->plans.plan[0]);
    reading r = {.e = e, .from = v->kv};
    SL_TRY(sl_alloc(&r.stage, 1, n_bytes, "a block of a session"));
    sl_status status = e->backend->buf_create(e->device, &r.view, r.stage, n_bytes, "a block of a session");
    if (status == SL_OK) status = walk_blocks(e, to, get_block, &r);
    e->backend->buf_destroy(e->device, &r.view);
    sl_free(r.stage);
    return status;
}
