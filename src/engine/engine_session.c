// SPDX-License-Identifier: MIT
//
// A sequence to a file and back, with bytes of the caller's own.
#include "engine/engine_part.h"

#include <string.h>

#include "os/os.h"

static sl_engine_blocks blocks_of(const sl_engine *e, int32_t seq) {
    sl_kv_extent x = sl_kv_extent_of(&e->kv, seq);
    sl_engine_blocks b = {.ids = sl_kv_tokens(&e->kv, seq),
                          .n_pos = (uint32_t)x.n,
                          .n_ctx = x.n_gone || x.n > e->kv.shape.n_ctx ? (uint32_t)e->kv.shape.n_ctx : 0,
                          .n_gone = (uint32_t)x.n_gone,
                          .gone_hash = x.gone_hash};
    for (int32_t c = 0; c < SL_KV_N_CLASS && e->kv.cls[c].n_blk; c++) {
        b.first[c] = (uint32_t)e->kv.cls[c].first[seq];
        b.blk[c] = e->kv.cls[c].table + (size_t)seq * (size_t)e->kv.n_blk_seq + b.first[c];
    }
    b.open = SL_KV_OPEN_SLOTS * seq + sl_kv_open_at(&e->kv, seq, x.n / SL_KV_BLK_LEN);
    return b;
}

static sl_status save(const sl_engine *e, int32_t seq, const char *path, const sl_engine_form *form, const void *app,
                      size_t n_bytes) {
    sl_engine_blocks blocks = blocks_of(e, seq);
    sl_atomic_file file;
    SL_TRY(sl_atomic_file_open(&file, path, true));
    sl_status status = sl_engine_blocks_write(e, file.file, form, &blocks, app, n_bytes);
    if (status == SL_OK) status = sl_atomic_file_commit(&file);
    sl_atomic_file_cancel(&file);
    return status;
}

sl_status sl_engine_session_save(const sl_engine *e, int32_t seq, const char *path, const void *app, size_t n_bytes) {
    SL_TRY(sl_engine_check_seq(e, seq));
    sl_engine_form form;
    sl_status status = sl_engine_form_init(&form, e);
    if (status == SL_OK) status = save(e, seq, path, &form, app, n_bytes);
    sl_engine_form_deinit(&form);
    return status;
}

// ---- restoring ------------------------------------------------------------------------------------------------------

static sl_status check_fit(const sl_engine *e, const sl_session_view *v) {
    const sl_session_head *h = v->head;
    sl_engine_form form;
    sl_status status = sl_engine_form_init(&form, e);
    if (status == SL_OK) status = sl_engine_form_check(&form, v);
    sl_engine_form_deinit(&form);
    if (status != SL_OK) return status;
    if (h->first) return SL_FAIL(SL_UNSUPPORTED, "is a part of a prefix and no session");
    if (h->n_ctx && (!e->kv.shape.moves || h->n_ctx != (uint32_t)e->kv.shape.n_ctx))
        return SL_FAIL(SL_UNSUPPORTED, "holds %u positions in a window of %u, and goes on in one of that size only",
                       h->n_pos, h->n_ctx);
    if (!h->n_ctx && h->n_pos > (uint32_t)e->kv.shape.n_ctx)
        return SL_FAIL(SL_FULL, "holds %u positions, and the context has %d", h->n_pos, e->kv.shape.n_ctx);
    if (e->kv.cls[1].n_blk && sl_session_n_blk(h, 1) > (uint32_t)e->kv.cls[1].n_blk_seq)
        return SL_FAIL(SL_UNSUPPORTED,
                       "was made with larger prefill steps, and has more of its windows than fits here");
    return SL_OK;
}

static sl_status restore(sl_engine *e, int32_t seq, const sl_session_view *v) {
    SL_TRY(check_fit(e, v));
    SL_TRY(sl_kv_truncate(&e->kv, seq, 0));
    const sl_session_head *h = v->head;
    sl_kv_extent x = {(int32_t)h->n_pos, (int32_t)h->window_first, (int32_t)h->n_gone, h->gone_hash};
    SL_TRY(sl_kv_fill(&e->kv, seq, &x));
    if (e->kv.shape.opens) sl_kv_set_open(&e->kv, seq, 0, x.n / SL_KV_BLK_LEN);
    sl_engine_blocks blocks = blocks_of(e, seq);
    sl_status status = sl_engine_blocks_read(e, &blocks, v);
    if (status != SL_OK) return sl_kv_retract(&e->kv, seq, 0), status;
    memcpy(sl_kv_tokens(&e->kv, seq), v->ids, v->n_id * sizeof *v->ids);
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
