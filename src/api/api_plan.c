// SPDX-License-Identifier: MIT
//
// Forecasts: the engine is asked what it would take, and the forecast is made with that.
#include <string.h>

#include "api/api_part.h"
#include "forecast/bandwidth.h"
#include "forecast/forecast.h"
#include "os/os.h"
#include "quant/kv_codec.h"

enum { MAX_THREADS = 1024 };

sluice_plan_options sluice_plan_options_default(void) {
    return (sluice_plan_options){.size = sizeof(sluice_plan_options)};
}

static sl_status kv_type(sl_type *out, const char *name) {
    static const sl_type types[] = {SL_TYPE_F16,  SL_TYPE_F32,  SL_TYPE_BF16, SL_TYPE_Q8_0,  SL_TYPE_Q5_1,
                                    SL_TYPE_Q5_0, SL_TYPE_Q4_1, SL_TYPE_Q4_0, SL_TYPE_IQ4_NL};
    if (sl_type_parse(out, name))
        for (size_t i = 0; i < SL_COUNT(types); i++)
            if (types[i] == *out) return SL_OK;
    return SL_FAIL(SL_BAD_ARG,
                   "there is no KV cache of type '%s'; there are f32, f16, bf16, q8_0, q5_1, q5_0, "
                   "q4_1, q4_0 and iq4_nl",
                   name);
}

static sl_status read_options(sl_forecast_options *out, sluice_repack *repack, const sluice_plan_options *given) {
    sluice_plan_options o = sluice_plan_options_default();
    SL_TRY(sl_api_options(&o, given, sizeof o, "plan"));
    if (o.n_ctx < 0) return SL_FAIL(SL_BAD_ARG, "n_ctx is %d; it must be 0 (the model's) or more", o.n_ctx);
    if (o.n_thread < 0 || o.n_thread > MAX_THREADS)
        return SL_FAIL(SL_BAD_ARG, "n_thread is %d; 0 .. %d are possible", o.n_thread, MAX_THREADS);
    *out = (sl_forecast_options){
        .n_ctx = (uint32_t)o.n_ctx, .device = o.device, .cache_path = o.cache_path, .n_thread = o.n_thread};
    *repack = o.device ? SLUICE_REPACK_OFF : o.repack; // what is free there is not known
    out->auto_kv = !o.kv;
    return kv_type(&out->type_kv, o.kv ? o.kv : "f16");
}

// Asks the engine. A model that it lacks the means for is no failure; one that breaks its format
// is.
static sl_status ask_engine(sl_forecast_options *o, const char *path, sluice_repack repack, bool has_type) {
    sl_forecast_engine *e = &o->engine;
    sluice_model model = {0};
    sl_engine_estimate estimate;
    sl_engine_options options;
    sluice_engine_options wanted = sluice_engine_options_default();
    *e = (sl_forecast_engine){.has_type = has_type};
    wanted.n_ctx = (int32_t)o->n_ctx, wanted.n_thread = o->n_thread, wanted.repack = repack;
    wanted.kv_k = wanted.kv_v = has_type ? sl_type_name(o->type_kv) : "f16";
    sl_status status = sl_model_open(&model.model, path, &(sl_model_options){.header_only = true});
    if (status == SL_OK) status = sl_api_engine_options(&options, &model, &wanted);
    if (status == SL_OK) status = sl_engine_estimate_make(&estimate, model.model, &options);
    sl_model_close(model.model);
    if (status == SL_UNSUPPORTED && sl_kv_code_bits(o->type_kv) && has_type) // for heads that are no whole groups
        return ask_engine(o, path, repack, false);
    if (status == SL_UNSUPPORTED) {
        const char *why = sl_error_text(), *prefix = strstr(why, path); // the caller knows the path
        if (prefix == why && why[strlen(path)] == ':') why += strlen(path) + 2;
        snprintf(e->why, sizeof e->why, "%s", why);
        return SL_OK;
    }
    if (status != SL_OK) return status;
    e->runs = true;
    e->weight_bytes = estimate.memory.weight_bytes;
    e->kv_bytes = estimate.memory.kv_bytes;
    e->workspace_bytes = estimate.memory.workspace_bytes;
    e->other_bytes = estimate.memory.other_bytes;
    e->copy_bytes = estimate.memory.copy_bytes;
    e->file_bytes = estimate.file_bytes;
    e->n_barrier = estimate.n_barrier;
    return SL_OK;
}

static sl_status forecast(sl_forecast *out, const sl_gguf *gguf, sl_forecast_options *o, const char *path,
                          sluice_repack repack, sl_arena *arena) {
    SL_TRY(ask_engine(o, path, repack, sl_kv_type_possible(o->type_kv)));
    return sl_forecast_make(out, gguf, o, arena);
}

sluice_status sluice_plan(const char *path, const sluice_plan_options *options, bool json, char **text) {
    API_NEED(text);
    *text = NULL;
    API_NEED(path);
    sl_forecast_options o;
    sluice_repack repack = SLUICE_REPACK_AUTO;
    sl_gguf *gguf = NULL;
    sl_arena arena = {0};
    sl_buf out = {0};
    sl_forecast f;
    sl_status status;
    SL_TRY_OUT(read_options(&o, &repack, options));
    SL_TRY_OUT(sl_gguf_open(&gguf, path, &(sl_gguf_options){.allow_no_data = true}));
    SL_TRY_OUT(forecast(&f, gguf, &o, path, repack, &arena));
    if (o.auto_kv && f.usable_bytes > 0 && f.need_bytes > f.usable_bytes) { // as an engine chooses; never below Q8_0
        o.type_kv = SL_TYPE_Q8_0;
        if (forecast(&f, gguf, &o, path, repack, &arena) != SL_OK) {
            o.type_kv = SL_TYPE_F16;
            SL_TRY_OUT(forecast(&f, gguf, &o, path, repack, &arena));
        }
    }
    if (json) sl_forecast_json(&f, &out);
    else sl_forecast_text(&f, &out);
    status = sl_buf_take(&out, text, NULL);
out:
    sl_buf_deinit(&out);
    sl_arena_deinit(&arena);
    sl_gguf_close(gguf);
    return api_fail(status);
}

sluice_status sluice_measure_bandwidth(int n_thread, double *gb_s) {
    API_NEED(gb_s);
    *gb_s = 0;
    sl_bandwidth b;
    sl_status status = sl_bandwidth_measure(&b, n_thread ? n_thread : sl_cpu_count());
    *gb_s = b.gb_s;
    return api_fail(status);
}
