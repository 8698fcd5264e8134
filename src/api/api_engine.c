// SPDX-License-Identifier: MIT
//
// Engines: options by name become options by kind; all else is forwarded. The one place of the
// library that reads the environment.
#include <stdlib.h>
#include <string.h>

#include "api/api_part.h"
#include "forecast/measured.h"
#include "os/os.h"
#include "quant/kv_codec.h"

enum { MAX_THREADS = 1024, DEFAULT_CTX = 4096 };
static const uint64_t DEFAULT_PREFIX_BYTES = UINT64_C(8) << 30;

sluice_engine_options sluice_engine_options_default(void) {
    return (sluice_engine_options){
        .size = sizeof(sluice_engine_options),
        .backend = "cpu",
        .n_seq = 1,
        .n_row_max = 512,
        .n_logit_max = 8,
        .kv_rotate = true,
        .prefix_bytes = DEFAULT_PREFIX_BYTES,
    };
}

// The reference rounds nothing that it need not, the KV cache included.
static sl_status kv_type(sl_type *out, const char *name, const sl_backend *backend) {
    if (!name) name = backend == &sl_backend_ref ? "f32" : "f16";
    if (sl_type_parse(out, name) && sl_kv_type_possible(*out)) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED,
                   "a KV cache of type '%s' is not supported; there are f32, f16, bf16, q8_0, q5_0 and q4_0", name);
}

static sl_status no_backend(const char *name) {
    char names[64] = "";
    for (size_t i = 0; sl_backend_at(i); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", sl_backend_at(i)->name);
    return SL_FAIL(SL_UNSUPPORTED, "there is no backend '%s' in this build; there are %s", name, names);
}

static sl_status check_ranges(const sluice_engine_options *o) {
    if (o->n_ctx < 0) return SL_FAIL(SL_BAD_ARG, "n_ctx is %d; it must be 0 (the model's) or more", o->n_ctx);
    if (o->n_seq < 1) return SL_FAIL(SL_BAD_ARG, "n_seq is %d; it must be 1 or more", o->n_seq);
    if (o->n_row_max < 1) return SL_FAIL(SL_BAD_ARG, "n_row_max is %d; it must be 1 or more", o->n_row_max);
    if (o->n_logit_max < 1) return SL_FAIL(SL_BAD_ARG, "n_logit_max is %d; it must be 1 or more", o->n_logit_max);
    if (o->n_thread < 0 || o->n_thread > MAX_THREADS || o->n_thread_prefill < 0 || o->n_thread_prefill > MAX_THREADS)
        return SL_FAIL(SL_BAD_ARG, "threads are %d and %d; 0 .. %d are possible", o->n_thread, o->n_thread_prefill,
                       MAX_THREADS);
    if ((unsigned)o->repack > SLUICE_REPACK_OFF)
        return SL_FAIL(SL_BAD_ARG, "repack is %d; see enum sluice_repack", (int)o->repack);
    return SL_OK;
}

sl_status sl_api_engine_options(sl_engine_options *out, const sluice_model *model, const sluice_engine_options *given) {
    sluice_engine_options o = sluice_engine_options_default();
    SL_TRY(sl_api_options(&o, given, sizeof o, "engine"));
    SL_TRY(check_ranges(&o));
    const char *backend = o.backend ? o.backend : "cpu";
    int32_t n_ctx = o.n_ctx;
    uint32_t n_train = model->model->config.n_ctx_train;
    if (n_ctx == 0) n_ctx = n_train > 0 && n_train < DEFAULT_CTX ? (int32_t)n_train : DEFAULT_CTX;
    *out = (sl_engine_options){
        .backend = sl_backend_find(backend),
        .cpu_level = getenv("SLUICE_CPU"),
        .n_ctx = (uint32_t)n_ctx,
        .n_seq = (uint32_t)o.n_seq,
        .n_row_max = (uint32_t)o.n_row_max,
        .n_logit_max = (uint32_t)o.n_logit_max,
        .n_thread = o.n_thread,
        .n_thread_prefill = o.n_thread_prefill ? o.n_thread_prefill : o.n_thread,
        .repack = (sl_repack_choice)o.repack,
        .prefix_cache = o.prefix_cache || o.prefix_path,
        .prefix_path = o.prefix_path,
        .prefix_bytes = o.prefix_bytes,
        .kv_rotate = o.kv_rotate,
        .ctx_window = o.ctx_window,
        .wire = o.wire,
        .progress = o.progress,
        .user = o.user,
    };
    if (!out->backend) return no_backend(backend);
    out->kv_auto = !o.kv_k && !o.kv_v && out->backend != &sl_backend_ref;
    SL_TRY(kv_type(&out->type_k, o.kv_k, out->backend));
    return kv_type(&out->type_v, o.kv_v, out->backend);
}

// ---- numbers of threads that were measured before ---------------------------------------------

static void thread_key(char out[200], const sl_engine_options *o, const char *what) {
    snprintf(out, 200, "%s, %d processors, %s, threads of %s", sl_cpu_name(), sl_cpu_count(),
             o->cpu_level ? o->cpu_level : "best level", what);
}

static int known_threads(const sl_engine_options *o, const char *path, const char *what) {
    char key[200];
    thread_key(key, o, what);
    double n = sl_measured_find(path, key);
    return n >= 1 && n <= MAX_THREADS ? (int)n : 0;
}

static void keep_threads(const sl_engine_options *o, const sl_engine *e, const char *path) {
    char key[200];
    sl_device_info info;
    sl_engine_get_device(e, &info);
    thread_key(key, o, "decode");
    if (info.chose) sl_measured_keep(path, key, info.n_thread);
    thread_key(key, o, "prefill");
    if (info.chose_prefill) sl_measured_keep(path, key, info.n_thread_prefill);
}

sluice_status sluice_engine_create(sluice_engine **out, const sluice_model *model,
                                   const sluice_engine_options *options) {
    API_NEED(out);
    *out = NULL;
    API_NEED(model);
    sl_engine_options o;
    sl_status status = sl_api_engine_options(&o, model, options);
    if (status != SL_OK) return api_fail(status);
    sluice_engine *e;
    status = sl_alloc(&e, 1, sizeof *e, "engine");
    if (status != SL_OK) return api_fail(status);
    sluice_engine_options given = sluice_engine_options_default();
    (void)sl_api_options(&given, options, sizeof given, "engine"); // was fine a moment ago
    const char *path = given.cache_path;
    o.known_thread = known_threads(&o, path, "decode");
    o.known_thread_prefill = known_threads(&o, path, "prefill");
    status = sl_engine_create(&e->engine, model->model, &o);
    if (status == SL_OK) keep_threads(&o, e->engine, path);
    else sluice_engine_destroy(&e);
    *out = e;
    return api_fail(status);
}

void sluice_engine_destroy(sluice_engine **engine) {
    if (!engine || !*engine) return;
    sl_engine_destroy((*engine)->engine);
    sl_free(*engine);
    *engine = NULL;
}

static uint64_t kv_position_bytes(const sl_plan *plan) {
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < plan->n_kv; i++) n_bytes += plan->kv[i].k_blk_bytes + plan->kv[i].v_blk_bytes;
    return n_bytes / SL_KV_BLK_LEN;
}

// As options have it: in small letters.
static void name_type(char out[8], sl_type type) {
    const char *name = sl_type_name(type);
    for (int i = 0; i < 7 && name[i]; i++) out[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
}

sluice_status sluice_engine_get_info(const sluice_engine *engine, sluice_engine_info *out) {
    API_NEED(out);
    memset(out, 0, sizeof *out);
    API_NEED(engine);
    const sl_engine *e = engine->engine;
    const sl_plan *narrow = sl_engine_plan(e, 0), *wide = narrow;
    for (int i = 1; sl_engine_plan(e, i); i++) wide = sl_engine_plan(e, i);
    sl_engine_memory memory;
    sl_device_info device;
    sl_engine_get_memory(e, &memory);
    sl_engine_get_device(e, &device);
    *out = (sluice_engine_info){
        .n_ctx = (int32_t)wide->shape.n_ctx,
        .n_seq = (int32_t)wide->shape.n_slot,
        .n_row_max = (int32_t)wide->shape.n_row_max,
        .n_logit_max = (int32_t)wide->shape.n_logit_max,
        .n_thread = device.n_thread,
        .n_thread_prefill = device.n_thread_prefill,
        .weight_bytes = memory.weight_bytes,
        .copy_bytes = memory.copy_bytes,
        .kv_bytes = memory.kv_bytes,
        .workspace_bytes = memory.workspace_bytes,
        .other_bytes = memory.other_bytes,
        .wired_bytes = memory.wired_bytes,
        .token_bytes = sl_plan_cost(narrow, 1, 1, 0).weight_bytes,
        .kv_position_bytes = kv_position_bytes(narrow),
        .read_gb_s = device.read_gb_s,
    };
    _Static_assert(sizeof out->device == sizeof device.name, "names of devices");
    memcpy(out->device, device.name, sizeof out->device);
    name_type(out->kv_k, (sl_type)narrow->shape.type_k);
    name_type(out->kv_v, (sl_type)narrow->shape.type_v);
    return SLUICE_OK;
}

sluice_status sluice_engine_get_stats(const sluice_engine *engine, sluice_engine_stats *out) {
    API_NEED(out);
    memset(out, 0, sizeof *out);
    API_NEED(engine);
    sl_engine_stats s;
    sl_engine_get_stats(engine->engine, &s);
    *out = (sluice_engine_stats){
        .n_step = s.n_step,
        .n_row = s.n_row,
        .n_alloc = s.n_alloc,
        .n_minor_fault = s.n_minor_fault,
        .n_major_fault = s.n_major_fault,
        .n_prompt = s.n_prompt,
        .n_reused = s.n_reused,
        .n_disk = s.n_disk,
        .n_blk = s.n_blk,
        .n_blk_held = s.n_blk_held,
        .n_blk_cached = s.n_blk_cached,
        .n_evicted = s.n_evicted,
        .n_pos_held = s.n_pos_held,
        .disk_bytes = s.disk_bytes,
    };
    return SLUICE_OK;
}

sluice_status sluice_engine_get_cost(const sluice_engine *engine, int32_t n_row, int32_t n_past,
                                     sluice_step_cost *out) {
    API_NEED(out);
    memset(out, 0, sizeof *out);
    API_NEED(engine);
    if (n_row < 1 || n_past < 0)
        return api_fail(SL_FAIL(SL_BAD_ARG, "a step has 1 or more rows after 0 or more positions"));
    sl_cost cost = sl_plan_cost(sl_engine_plan(engine->engine, 0), (uint32_t)n_row, 1, (uint32_t)n_past);
    *out = (sluice_step_cost){cost.weight_bytes, cost.kv_read_bytes, cost.n_mac};
    return SLUICE_OK;
}

sluice_status sluice_explain(const sluice_model *model, const sluice_engine_options *options, bool json, char **text) {
    API_NEED(text);
    *text = NULL;
    API_NEED(model);
    sl_engine_options o;
    sl_status status = sl_api_engine_options(&o, model, options);
    return api_fail(status == SL_OK ? sl_engine_explain(model->model, &o, json, text) : status);
}

// ---- steps --------------------------------------------------------------------------------------

_Static_assert(sizeof(sluice_row) == sizeof(sl_row) && offsetof(sluice_row, token) == offsetof(sl_row, token) &&
                   offsetof(sluice_row, seq) == offsetof(sl_row, seq) &&
                   offsetof(sluice_row, pos) == offsetof(sl_row, pos) &&
                   offsetof(sluice_row, wants_logits) == offsetof(sl_row, wants_logits),
               "rows are handed through as they are");

sluice_status sluice_step(sluice_engine *engine, const sluice_row *rows, size_t n_row) {
    API_NEED(engine);
    API_NEED(rows);
    return api_fail(sl_engine_step(engine->engine, (const sl_row *)rows, n_row));
}

const float *sluice_logits(const sluice_engine *engine, size_t i) {
    return engine ? sl_engine_logits(engine->engine, i) : NULL;
}

sluice_status sluice_prefill(sluice_engine *engine, int32_t seq, const int32_t *ids, size_t n,
                             sluice_progress *progress, void *user) {
    API_NEED(engine);
    API_NEED(ids);
    return api_fail(sl_engine_prefill(engine->engine, seq, ids, n, progress, user));
}

int32_t sluice_seq_length(const sluice_engine *engine, int32_t seq) {
    return engine ? sl_engine_seq_length(engine->engine, seq) : 0;
}

int32_t sluice_seq_gone(const sluice_engine *engine, int32_t seq) {
    return engine ? sl_engine_seq_gone(engine->engine, seq) : 0;
}

const int32_t *sluice_seq_ids(const sluice_engine *engine, int32_t seq) {
    return engine ? sl_engine_seq_ids(engine->engine, seq) : NULL;
}

sluice_status sluice_seq_reuse(sluice_engine *engine, int32_t seq, const int32_t *ids, size_t n, size_t *n_held) {
    API_NEED(n_held);
    *n_held = 0;
    API_NEED(engine);
    API_NEED(ids);
    return api_fail(sl_engine_seq_reuse(engine->engine, seq, ids, n, n_held));
}

sluice_status sluice_prefix_save(sluice_engine *engine) {
    API_NEED(engine);
    return api_fail(sl_engine_prefix_save(engine->engine));
}

sluice_status sluice_seq_truncate(sluice_engine *engine, int32_t seq, int32_t n) {
    API_NEED(engine);
    return api_fail(sl_engine_seq_truncate(engine->engine, seq, n));
}

sluice_status sluice_seq_fork(sluice_engine *engine, int32_t dst, int32_t src, int32_t n) {
    API_NEED(engine);
    return api_fail(sl_engine_seq_fork(engine->engine, dst, src, n));
}

sluice_status sluice_seq_fill(sluice_engine *engine, int32_t seq, int32_t n) {
    API_NEED(engine);
    return api_fail(sl_engine_seq_fill(engine->engine, seq, n));
}
