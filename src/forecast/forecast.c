// SPDX-License-Identifier: MIT
//
// Puts the parts together: model, machine, memory, speed, placements.
#include "forecast/forecast.h"

#include "base/size.h"
#include "forecast/bandwidth.h"
#include "os/os.h"

#define USABLE       0.95 // of a device's memory: the rest is the driver's and the screen's
#define USABLE_APPLE 0.75 // what macOS gives the GPU unless told otherwise (facts-anchors section 7)
#define DEFAULT_HOST "ddr5-5600x2"

// What a process holds beside the engine's memory: code and libraries, then tables of the vocabulary. Measured on five
// files with 49,152 to 262,144 tokens, as the rest of the largest resident set: docs/plan.md.
#define PROGRAM_BYTES 9.0e6
#define TOKEN_BYTES   58.0
#define MERGE_BYTES   26.0

enum { DEFAULT_CTX = 4096 };

const sl_type sl_forecast_kv_types[SL_FORECAST_KV_TYPES] = {SL_TYPE_F16, SL_TYPE_Q8_0, SL_TYPE_Q4_0};
const double sl_forecast_shares[SL_FORECAST_SHARES] = {1, 0.90, 0.85, 0.80, 0.70, 0.65, 0.50};

// ---- machines
// ----------------------------------------------------------------------------------------------------

static sl_status use_this_machine(sl_forecast *f, const sl_forecast_options *o) {
    sl_machine *m = &f->device;
    sl_bandwidth b = {.gb_s = o->gb_s};
    f->this_machine = true;
    f->n_thread = o->n_thread > 0 ? o->n_thread : sl_cpu_count();
    if (o->gb_s <= 0) SL_TRY(sl_bandwidth_get(&b, o->cache_path, f->n_thread));
    f->busy = b.busy, f->remembered = b.remembered;
    *m = (sl_machine){.kind = SL_MACHINE_HOST,
                      .memory = "",
                      .gb_s = b.gb_s,
                      .mem_bytes = (double)sl_memory_total_bytes(),
                      .link = "NVMe 4.0",
                      .source = o->gb_s > 0 ? "as given" : "measured"};
    snprintf(m->name, sizeof m->name, "%s", sl_cpu_name());
    snprintf(m->how, sizeof m->how, "read by %d thread%s, %s", f->n_thread, f->n_thread == 1 ? "" : "s",
             o->gb_s > 0    ? "as given"
             : b.remembered ? "measured before"
             : b.busy       ? "now, while others were busy: less than there is"
                            : "now");
    f->device_rate = sl_rate_host(b.gb_s, f->n_thread, sl_cpu_features());
    f->usable_bytes = (double)sl_memory_free_bytes();
    return SL_OK;
}

static sl_status use_named_machine(sl_forecast *f, const char *name) {
    sl_span device = sl_span_of(name), host = sl_span_of(DEFAULT_HOST);
    const char *plus = strchr(name, '+');
    if (plus) device.n_bytes = (size_t)(plus - name), host = sl_span_of(plus + 1);
    SL_TRY(sl_machine_find(&f->device, device));
    f->device_rate = sl_rate_machine(&f->device);
    bool apple = strncmp(f->device.name, "Apple", 5) == 0;
    f->usable_bytes = f->device.mem_bytes * (apple ? USABLE_APPLE : USABLE);
    if (f->device.kind != SL_MACHINE_GPU) {
        if (plus) return SL_FAIL(SL_BAD_ARG, "'%s' has one memory; only a GPU stands beside a host's", f->device.name);
        return SL_OK;
    }
    SL_TRY(sl_machine_find(&f->host, host));
    f->host_rate = sl_rate_machine(&f->host);
    return SL_OK;
}

// ---- memory
// ------------------------------------------------------------------------------------------------------

// The largest context whose cache fits beside the rest.
static uint32_t largest_ctx(const sl_forecast *f, double each_bytes) {
    double room = f->usable_bytes - (f->need_bytes - (double)f->kv_bytes);
    if (f->usable_bytes <= 0 || room <= 0) return 0;
    if (f->need_bytes <= f->usable_bytes) return SL_MAX(f->n_ctx, f->geometry.n_ctx_train);
    return each_bytes > 0 ? (uint32_t)SL_MIN(room / each_bytes, (double)f->n_ctx) : 0;
}

static double array_length(const sl_gguf *gguf, const char *key) {
    const sl_gguf_kv *kv = sl_gguf_find(gguf, key);
    return kv ? (double)kv->n : 0;
}

static double program_bytes(const sl_gguf *gguf) {
    double metadata = (double)sl_gguf_tensor_at(gguf, 0)->file_off; // mapped, and read at start
    return PROGRAM_BYTES + metadata + TOKEN_BYTES * array_length(gguf, "tokenizer.ggml.tokens") +
           MERGE_BYTES * array_length(gguf, "tokenizer.ggml.merges");
}

static sl_status sum_memory(sl_forecast *f, const sl_gguf *gguf) {
    const sl_forecast_engine *e = &f->engine;
    sl_kv_sizes kv;
    SL_TRY(sl_geometry_kv(&kv, &f->geometry, f->type_kv, f->n_ctx));
    bool exact = e->runs && e->has_type;
    f->weight_bytes = e->runs ? e->weight_bytes : f->traffic.file_bytes;
    f->kv_bytes = exact ? e->kv_bytes : kv.growing_bytes + kv.window_bytes;
    f->state_bytes = kv.state_bytes;
    f->workspace_bytes = e->runs ? e->workspace_bytes : 0;
    f->other_bytes = e->runs ? e->other_bytes : 0;
    f->copy_bytes = e->runs ? e->copy_bytes : 0;
    f->program_bytes = e->runs && f->device.kind == SL_MACHINE_HOST ? (uint64_t)program_bytes(gguf) : 0;
    double kept_bytes = f->copy_bytes ? (double)(f->copy_bytes + e->file_bytes) : (double)f->weight_bytes;
    f->need_bytes = kept_bytes + (double)f->kv_bytes + (double)f->state_bytes + (double)f->workspace_bytes +
                    (double)f->other_bytes + (double)f->program_bytes;
    // Windows are full long before a context is cut, so each position less frees position_bytes.
    double each = exact ? (double)f->kv_bytes / f->n_ctx : (double)kv.position_bytes;
    f->n_ctx_fit = largest_ctx(f, each);
    for (int i = 0; i < SL_FORECAST_KV_TYPES; i++)
        f->kv_possible[i] = sl_geometry_kv(&f->kv[i], &f->geometry, sl_forecast_kv_types[i], f->n_ctx) == SL_OK;
    return SL_OK;
}

// ---- speed
// -------------------------------------------------------------------------------------------------------

static sl_status predict(sl_forecast *f) {
    static const uint32_t prompts[SL_FORECAST_PROMPTS] = {8, 128, 512, 4096};
    const uint32_t depths[SL_FORECAST_DEPTHS] = {0, f->n_ctx / 2, f->n_ctx - 1};
    f->load = (sl_load){&f->geometry, &f->traffic, f->type_kv, f->engine.runs ? f->engine.n_barrier : 0};
    SL_TRY(sl_predict_token_bytes(&f->token_bytes, &f->load, 0));
    for (int i = 0; i < SL_FORECAST_DEPTHS; i++) {
        f->depth[i] = depths[i];
        SL_TRY(sl_predict_decode(&f->decode[i], &f->load, &f->device_rate, depths[i]));
    }
    for (int i = 0; i < SL_FORECAST_PROMPTS && prompts[i] <= f->n_ctx; i++) {
        f->prompt[i] = prompts[i];
        SL_TRY(sl_predict_prefill(&f->prefill[i], &f->load, &f->device_rate, prompts[i]));
        f->n_prompt++;
    }
    sl_placement_ask ask = {
        .load = &f->load,
        .device = &f->device,
        .host = f->host.name[0] ? &f->host : NULL,
        .device_rate = &f->device_rate,
        .host_rate = &f->host_rate,
        .need_bytes = f->need_bytes,
        .usable_bytes = f->usable_bytes,
        .host_bytes = f->host.mem_bytes,
        .n_past = f->n_ctx / 2,
    };
    return sl_placements(f->placement, &f->n_placement, &ask);
}

sl_status sl_forecast_make(sl_forecast *out, const sl_gguf *gguf, const sl_forecast_options *o, sl_arena *arena) {
    sl_forecast *f = out;
    *f = (sl_forecast){.engine = o->engine, .type_kv = o->type_kv};
    SL_TRY(sl_geometry_read(&f->geometry, gguf, arena));
    SL_TRY(sl_traffic_read(&f->traffic, gguf, &f->geometry));
    if (sl_gguf_n_tensors(gguf) == 0)
        return SL_FAIL(SL_BAD_FILE, "the file has no tensors, so there are no weights to plan for");
    f->n_ctx = o->n_ctx > 0 ? o->n_ctx : SL_MIN(f->geometry.n_ctx_train, (uint32_t)DEFAULT_CTX);
    if (o->device) SL_TRY(use_named_machine(f, o->device));
    else SL_TRY(use_this_machine(f, o));
    SL_TRY(sum_memory(f, gguf));
    return predict(f);
}
