// SPDX-License-Identifier: MIT
//
// Opening a model and an engine, with a bar while that takes long.
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "progress.h"

#define AT(field) offsetof(session_options, field)
#define KV_TYPES  "f32|f16|bf16|q8_0|q5_0|q4_0"

const option session_model_options[2] = {
    {0, "pre", OPTION_TEXT, AT(pre), "NAME", 0, 0, "pre-tokenizer to use in place of the file's"},
    {0, "check", OPTION_FLAG, AT(check), NULL, 0, 0, "read all weights first and refuse NaN and infinities"},
};

const option session_engine_options[12] = {
    {0, "backend", OPTION_CHOICE, AT(backend), "cpu|cuda|ref", 0, 0, "what computes (cpu; ref is the slow definition)"},
    {0, "ctx", OPTION_INT, AT(n_ctx), "N", 0, INT32_MAX, "positions to keep (0: the model's, at most 4096)"},
    {0, "ctx-window", OPTION_FLAG, AT(ctx_window), NULL, 0, 0,
     "go on when they are full: the first 32 and the newest are seen, those between are let go"},
    {0, "threads", OPTION_INT, AT(n_thread), "N", 0, 1024,
     "threads while decoding (0: as many as a short measurement finds fastest)"},
    {0, "threads-prefill", OPTION_INT, AT(n_thread_prefill), "N", 0, 1024,
     "threads in prefill (0: as --threads, or measured too)"},
    {0, "chunk", OPTION_INT, AT(n_chunk), "N", 0, 65536, "tokens of a prefill step (0: 512)"},
    {0, "kv", OPTION_CHOICE, AT(kv), KV_TYPES, 0, 0,
     "type of the KV cache (f16, or q8_0 if memory is too small for it; on ref f32)"},
    {0, "kv-k", OPTION_CHOICE, AT(kv_k), KV_TYPES, 0, 0, "type of K in it (as --kv)"},
    {0, "kv-v", OPTION_CHOICE, AT(kv_v), KV_TYPES, 0, 0, "type of V in it (as --kv)"},
    {0, "kv-no-rotate", OPTION_FLAG, AT(kv_plain), NULL, 0, 0,
     "quantised V is not rotated, for comparisons (K never is)"},
    {0, "repack", OPTION_CHOICE, AT(repack), "auto|on|off", 0, 0,
     "copy weights into the order of the kernels (auto: if memory is free)"},
    {0, "wire", OPTION_FLAG, AT(wire), NULL, 0, 0, "lock weights and workspace into memory"},
};

const option session_prefix_options[2] = {
    {0, "kv-disk", OPTION_TEXT, AT(prefix_path), "DIR", 0, 0,
     "keep what was computed of prompts in DIR, for prompts that begin alike, also of later runs"},
    {0, "kv-disk-gib", OPTION_REAL, AT(prefix_gib), "N", 1e-6, 1e6, "GiB that DIR may take (8)"},
};

int session_open_model(session *s, const char *path, const session_options *options, session_need need) {
    *s = (session){0};
    double start = app_now_ms();
    progress bar;
    progress_start(&bar, "reading");
    sluice_model_options model_options = sluice_model_options_default();
    model_options.vocab_only = need == SESSION_VOCAB;
    model_options.header_only = need == SESSION_HEADER;
    model_options.check = options->check;
    model_options.pre = options->pre;
    model_options.progress = progress_update;
    model_options.user = &bar;
    sluice_status status = sluice_model_open(&s->model, path, &model_options);
    if (status == SLUICE_OK) status = sluice_model_get_info(s->model, &s->model_info);
    progress_end(&bar);
    s->load_ms = app_now_ms() - start;
    return status == SLUICE_OK ? APP_OK : app_fail_library(status);
}

sluice_engine_options session_get_engine_options(const session_options *options) {
    sluice_engine_options e = sluice_engine_options_default();
    if (options->backend) e.backend = options->backend;
    if (options->n_ctx) e.n_ctx = options->n_ctx;
    e.ctx_window = options->ctx_window;
    if (options->n_thread) e.n_thread = options->n_thread;
    if (options->n_thread_prefill) e.n_thread_prefill = options->n_thread_prefill;
    if (options->n_chunk) e.n_row_max = options->n_chunk;
    if (options->kv) e.kv_k = e.kv_v = options->kv;
    if (options->kv_k) e.kv_k = options->kv_k;
    if (options->kv_v) e.kv_v = options->kv_v;
    e.kv_rotate = !options->kv_plain;
    if (options->repack)
        e.repack = strcmp(options->repack, "on") == 0    ? SLUICE_REPACK_ON
                   : strcmp(options->repack, "off") == 0 ? SLUICE_REPACK_OFF
                                                         : SLUICE_REPACK_AUTO;
    e.wire = options->wire;
    e.prefix_cache = options->prefix_cache;
    e.prefix_path = options->prefix_path;
    if (options->prefix_gib > 0) e.prefix_bytes = (uint64_t)((double)options->prefix_gib * 0x1p30);
    return e;
}

int session_open_engine(session *s, const session_options *options, int32_t n_logit_max) {
    double start = app_now_ms();
    progress bar;
    s->ctx_window = options->ctx_window;
    progress_start(&bar, "loading");
    sluice_engine_options engine_options = session_get_engine_options(options);
    engine_options.n_logit_max = n_logit_max;
    char cache[4096];
    engine_options.cache_path = file_cache_path(cache, sizeof cache);
    engine_options.progress = progress_update;
    engine_options.user = &bar;
    sluice_status status = sluice_engine_create(&s->engine, s->model, &engine_options);
    if (status == SLUICE_OK) status = sluice_engine_get_info(s->engine, &s->engine_info);
    progress_end(&bar);
    s->load_ms += app_now_ms() - start;
    if (status != SLUICE_OK) return app_fail_library(status);
    const sluice_engine_info *info = &s->engine_info;
    uint64_t wanted_bytes = info->weight_bytes + info->kv_bytes + info->workspace_bytes;
    if (options->wire && info->wired_bytes < wanted_bytes) {
        app_note("locked %.1f of %.1f MiB; \"ulimit -l unlimited\" lets it lock more",
                 (double)info->wired_bytes / 0x1p20, (double)wanted_bytes / 0x1p20);
    }
    return APP_OK;
}

void session_keep_prefixes(session *s) {
    if (sluice_prefix_save(s->engine) == SLUICE_OK || s->prefix_failed) return;
    s->prefix_failed = true;
    app_note("prefixes are not kept: %s", sluice_last_error());
}

void session_close(session *s) {
    sluice_engine_destroy(&s->engine);
    sluice_model_close(&s->model);
}

int session_encode(const session *s, int32_t **ids, size_t *n, const char *bytes, size_t n_bytes, unsigned flags) {
    *ids = NULL, *n = 0;
    size_t cap = n_bytes + 8; // nearly always enough: a token stands for at least a byte, save what is added in front
    for (;;) {
        int32_t *room = realloc(*ids, cap * sizeof **ids);
        if (!room) return free(*ids), *ids = NULL, app_fail("out of memory");
        *ids = room;
        sluice_status status = sluice_encode(s->model, room, cap, n, bytes, n_bytes, flags);
        if (status == SLUICE_OK) return APP_OK;
        if (status != SLUICE_FULL || *n <= cap) return free(*ids), *ids = NULL, app_fail_library(status);
        cap = *n; // composed characters may come apart under normalisation
    }
}
