// SPDX-License-Identifier: MIT
//
// A forecast for programs: one JSON object. What is not known is null.
#include <ctype.h>

#include "forecast/forecast.h"

typedef unsigned long long ull;

static void put_text(sl_buf *out, const char *key, const char *text) {
    sl_buf_printf(out, "\"%s\": ", key);
    sl_buf_json(out, sl_span_of(text));
    sl_buf_text(out, ", ");
}

// 0 stands for "not known" in the fields that this is used for.
static void put_known(sl_buf *out, const char *key, double x) {
    if (x > 0) sl_buf_printf(out, "\"%s\": %.17g, ", key, x);
    else sl_buf_printf(out, "\"%s\": null, ", key);
}

// Types are written as --kv takes them.
static void put_type(sl_buf *out, const char *key, sl_type type) {
    char name[16];
    size_t n = 0;
    for (const char *c = sl_type_name(type); *c && n + 1 < sizeof name; c++)
        name[n++] = (char)tolower((unsigned char)*c);
    name[n] = 0;
    put_text(out, key, name);
}

static void put_model(const sl_forecast *f, sl_buf *out) {
    const sl_geometry *g = &f->geometry;
    const sl_traffic *t = &f->traffic;
    sl_buf_text(out, "{\"model\": {");
    put_text(out, "arch", g->arch);
    put_text(out, "name", g->name);
    put_text(out, "type", t->main_type);
    sl_buf_printf(out,
                  "\"n_layer\": %u, \"n_layer_nextn\": %u, \"n_embd\": %u, \"n_ctx_train\": %u, "
                  "\"n_expert\": %u, \"n_expert_used\": %u, ",
                  g->n_layer, g->n_layer_nextn, g->n_embd, g->n_ctx_train, g->n_expert, g->n_expert_used);
    sl_buf_printf(out,
                  "\"n_params\": %llu, \"tensor_bytes\": %llu, \"expert_bytes\": %llu, "
                  "\"token_bytes\": %llu, \"token_expert_bytes\": %llu},\n",
                  (ull)t->n_param, (ull)t->file_bytes, (ull)t->expert_bytes, (ull)t->token_bytes,
                  (ull)t->token_expert_bytes);
}

static void put_machine(sl_buf *out, const sl_machine *m, const sl_rate *r) {
    put_text(out, "name", m->name);
    put_text(out, "memory", m->memory);
    put_text(out, "link", m->link);
    put_text(out, "how", m->how);
    put_text(out, "source", m->source);
    put_known(out, "memory_bytes", m->mem_bytes);
    put_known(out, "gmac_s", r->gmac_s);
    sl_buf_printf(out, "\"gb_s\": %.9g, \"share\": %.9g", m->gb_s, r->share);
}

static void put_device(const sl_forecast *f, sl_buf *out) {
    sl_buf_printf(out, "\"device\": {\"this_machine\": %s, \"busy\": %s, \"remembered\": %s, ",
                  f->this_machine ? "true" : "false", f->busy ? "true" : "false", f->remembered ? "true" : "false");
    put_known(out, "n_thread", f->n_thread);
    put_known(out, "usable_bytes", f->usable_bytes);
    put_machine(out, &f->device, &f->device_rate);
    sl_buf_text(out, "},\n\"host\": ");
    if (f->host.name[0]) {
        sl_buf_text(out, "{");
        put_machine(out, &f->host, &f->host_rate);
        sl_buf_text(out, "},\n");
    } else {
        sl_buf_text(out, "null,\n");
    }
    sl_buf_printf(out, "\"engine\": {\"runs\": %s, \"has_kv_type\": %s, \"why\": ", f->engine.runs ? "true" : "false",
                  f->engine.has_type ? "true" : "false");
    sl_buf_json(out, sl_span_of(f->engine.why));
    sl_buf_printf(out, "},\n\"n_ctx\": %u, ", f->n_ctx);
}

static void put_memory(const sl_forecast *f, sl_buf *out) {
    put_type(out, "kv_type", f->type_kv);
    sl_buf_printf(out, "\n\"memory\": {\"weight_bytes\": %llu, \"kv_bytes\": %llu, \"state_bytes\": %llu, ",
                  (ull)f->weight_bytes, (ull)f->kv_bytes, (ull)f->state_bytes);
    sl_buf_printf(out, "\"copy_bytes\": %llu, ", (ull)f->copy_bytes);
    put_known(out, "workspace_bytes", (double)f->workspace_bytes);
    put_known(out, "other_bytes", (double)f->other_bytes);
    put_known(out, "program_bytes", (double)f->program_bytes);
    put_known(out, "n_ctx_fit", f->n_ctx_fit);
    sl_buf_printf(out, "\"total_bytes\": %.17g, ", f->need_bytes);
    if (f->usable_bytes > 0)
        sl_buf_printf(out, "\"fits\": %s, \"spare_bytes\": %.17g},\n",
                      f->need_bytes <= f->usable_bytes ? "true" : "false", f->usable_bytes - f->need_bytes);
    else sl_buf_text(out, "\"fits\": null, \"spare_bytes\": null},\n");
    sl_buf_text(out, "\"kv\": [");
    const char *comma = "";
    for (int i = 0; i < SL_FORECAST_KV_TYPES; i++) {
        const sl_kv_sizes *k = &f->kv[i];
        if (!f->kv_possible[i]) continue;
        sl_buf_printf(out, "%s{", comma);
        comma = ",\n  ";
        put_type(out, "type", sl_forecast_kv_types[i]);
        sl_buf_printf(out,
                      "\"position_bytes\": %llu, \"growing_bytes\": %llu, \"window_bytes\": %llu, "
                      "\"state_bytes\": %llu, \"total_bytes\": %llu}",
                      (ull)k->position_bytes, (ull)k->growing_bytes, (ull)k->window_bytes, (ull)k->state_bytes,
                      (ull)(k->growing_bytes + k->window_bytes + k->state_bytes));
    }
    sl_buf_text(out, "],\n");
}

static void put_prediction(sl_buf *out, const sl_prediction *p, const char *name, uint32_t n, const char *total) {
    sl_buf_printf(out,
                  "{\"%s\": %u, \"tok_s\": %.9g, \"%s\": %.9g, \"weight_ms\": %.9g, \"kv_ms\": "
                  "%.9g, \"state_ms\": %.9g, ",
                  name, n, p->tok_s, total, p->total_ms, p->weight_ms, p->kv_ms, p->state_ms);
    put_known(out, "compute_ms", p->compute_ms);
    put_text(out, "limit", p->limit);
    sl_buf_printf(out, "\"wait_ms\": %.9g, \"bound_only\": %s}", p->wait_ms, p->is_floor ? "true" : "false");
}

static void put_speed(const sl_forecast *f, sl_buf *out) {
    sl_buf_printf(out, "\"bytes_per_token\": %.17g,\n\"bus\": [", f->token_bytes);
    for (int i = 0; i < SL_FORECAST_SHARES; i++)
        sl_buf_printf(out, "%s{\"share\": %g, \"tok_s\": %.9g}", i ? ", " : "", sl_forecast_shares[i],
                      sl_bus_tok_s(f->device.gb_s, sl_forecast_shares[i], f->token_bytes));
    sl_buf_text(out, "],\n\"decode\": [");
    for (int i = 0; i < SL_FORECAST_DEPTHS; i++) {
        if (i) sl_buf_text(out, ",\n  ");
        put_prediction(out, &f->decode[i], "depth", f->depth[i], "ms");
    }
    sl_buf_text(out, "],\n\"prefill\": [");
    for (size_t i = 0; i < f->n_prompt; i++) {
        if (i) sl_buf_text(out, ",\n  ");
        put_prediction(out, &f->prefill[i], "n", f->prompt[i], "ttft_ms");
    }
    sl_buf_text(out, "],\n\"placements\": [");
}

void sl_forecast_json(const sl_forecast *f, sl_buf *out) {
    put_model(f, out);
    put_device(f, out);
    put_memory(f, out);
    put_speed(f, out);
    for (size_t i = 0; i < f->n_placement; i++) {
        const sl_placement *p = &f->placement[i];
        sl_buf_text(out, i ? ",\n  {" : "{");
        put_text(out, "what", p->what);
        put_text(out, "limit", p->limit);
        put_text(out, "note", p->note);
        sl_buf_printf(out,
                      "\"fits\": %s, \"device_bytes\": %.17g, \"host_bytes\": %.17g, "
                      "\"link_bytes\": %.17g, \"ms\": %.9g, \"tok_s\": %.9g}",
                      p->fits ? "true" : "false", p->device_bytes, p->host_bytes, p->link_bytes, p->ms, p->tok_s);
    }
    sl_buf_text(out, "]}\n");
}
