// SPDX-License-Identifier: MIT
//
// A forecast for people. GB is 10^9 bytes, as on a data sheet; exact bytes stand beside.
#include "forecast/forecast.h"

#define GB(bytes) ((double)(bytes) / 1e9)

static const char *plural(uint32_t n) { return n == 1 ? "" : "s"; }

static void print_head(const sl_forecast *f, sl_buf *out) {
    const sl_geometry *g = &f->geometry;
    const sl_machine *m = &f->device;
    sl_buf_printf(out, "model       %s%s%s, %u layers", g->name, g->name[0] ? ": " : "", g->arch, g->n_layer);
    if (g->n_layer_nextn) sl_buf_printf(out, " (and %u that predict further tokens)", g->n_layer_nextn);
    sl_buf_printf(out, ", %.4g billion parameters, mostly %s", (double)f->traffic.n_param / 1e9, f->traffic.main_type);
    if (g->n_expert) sl_buf_printf(out, ", %u of %u experts a token", g->n_expert_used, g->n_expert);
    sl_buf_printf(out, "\ndevice      %s%s\n", f->this_machine ? "this machine: " : "", m->name);
    sl_buf_printf(out, "bandwidth   %.5g GB/s (%s; %s)\n", m->gb_s, m->how, m->source);
    if (f->host.name[0])
        sl_buf_printf(out, "host        %s, %.5g GB/s, behind %s\n", f->host.name, f->host.gb_s, m->link);
    sl_buf_printf(out, "context     %u positions, KV cache %s\n", f->n_ctx, sl_type_name(f->type_kv));
    if (!f->engine.runs) sl_buf_printf(out, "engine      does not run it: %s\n", f->engine.why);
    else if (!f->engine.has_type)
        sl_buf_printf(out, "engine      runs it with an f16 or f32 cache; %s is arithmetic here\n",
                      sl_type_name(f->type_kv));
}

static void print_bytes(sl_buf *out, const char *what, uint64_t n_bytes, const char *note) {
    sl_buf_printf(out, "  %-12s %18llu  %9.3f GB  %s\n", what, (unsigned long long)n_bytes, GB(n_bytes), note);
}

static void print_fit(const sl_forecast *f, sl_buf *out) {
    double spare = f->usable_bytes - f->need_bytes;
    if (f->usable_bytes <= 0) {
        sl_buf_text(out, "  How much memory there is is not known, so neither is whether it fits.\n");
    } else if (spare >= 0) {
        sl_buf_printf(out, "  It fits: %.2f of %.2f GB remain%s.\n", GB(spare), GB(f->usable_bytes),
                      f->this_machine ? " of what is free" : "");
    } else {
        sl_buf_printf(out, "  It does not fit: %.2f GB too much for the %.2f GB that can be used. ", GB(-spare),
                      GB(f->usable_bytes));
        if (f->n_ctx_fit > 0) sl_buf_printf(out, "Lower --ctx to %u, or choose a smaller --kv.\n", f->n_ctx_fit);
        else
            sl_buf_text(out, "The weights alone are too much: choose a smaller quantisation, or a "
                             "placement below.\n");
    }
    if (!f->engine.runs) sl_buf_text(out, "  Workspace is not counted: the engine has no program for this model.\n");
}

static void print_memory(const sl_forecast *f, sl_buf *out) {
    const sl_kv_sizes *kv = &f->kv[0];
    bool keeps_more = f->engine.runs && f->engine.has_type && kv->window_bytes > 0;
    sl_buf_text(out, "\nmemory\n");
    const char *where = f->copy_bytes     ? "mapped file; what is copied need not stay in memory"
                        : f->this_machine ? "mapped file"
                                          : "";
    print_bytes(out, "weights", f->weight_bytes, where);
    if (f->copy_bytes) print_bytes(out, "repacked", f->copy_bytes, "copies of weights in the order of the kernels");
    print_bytes(out, "KV cache", f->kv_bytes,
                keeps_more ? "(the engine keeps all positions in window layers too)" : "");
    if (f->state_bytes) print_bytes(out, "states", f->state_bytes, "recurrent layers, float32");
    if (f->engine.runs) {
        print_bytes(out, "workspace", f->workspace_bytes, f->this_machine ? "" : "as on a CPU");
        print_bytes(out, "other", f->other_bytes, "");
        if (f->program_bytes) print_bytes(out, "program", f->program_bytes, "code, metadata, tokenizer; about");
    }
    print_bytes(out, "needed", (uint64_t)f->need_bytes, "");
    print_fit(f, out);
}

static void print_cache(const sl_forecast *f, sl_buf *out) {
    uint32_t n_full = 0, n_window = 0, n_shared = 0, n_state = 0;
    for (uint32_t i = 0; i < f->geometry.n_layer; i++) {
        const sl_geometry_layer *l = &f->geometry.layer[i];
        n_state += l->n_state + l->n_conv > 0;
        if (l->n_head_kv == 0) continue;
        if (l->shared) n_shared++;
        else if (l->window) n_window++;
        else n_full++;
    }
    sl_buf_printf(out, "\ncache of a sequence: %u layer%s keep%s every position", n_full, plural(n_full),
                  n_full == 1 ? "s" : "");
    if (n_window) sl_buf_printf(out, ", %u a window", n_window);
    if (n_shared) sl_buf_printf(out, ", %u share an earlier one", n_shared);
    if (n_state) sl_buf_printf(out, ", %u have a recurrent state", n_state);
    sl_buf_text(out, "\n  type   bytes a position        growing         windows          states   "
                     "          sum\n");
    for (int i = 0; i < SL_FORECAST_KV_TYPES; i++) {
        const sl_kv_sizes *k = &f->kv[i];
        if (!f->kv_possible[i]) {
            sl_buf_printf(out, "  %-5s  not possible: heads are no whole blocks\n",
                          sl_type_name(sl_forecast_kv_types[i]));
            continue;
        }
        sl_buf_printf(out, "  %-5s %17llu %14llu %15llu %15llu %15llu\n", sl_type_name(sl_forecast_kv_types[i]),
                      (unsigned long long)k->position_bytes, (unsigned long long)k->growing_bytes,
                      (unsigned long long)k->window_bytes, (unsigned long long)k->state_bytes,
                      (unsigned long long)(k->growing_bytes + k->window_bytes + k->state_bytes));
    }
}

static void print_decode(const sl_forecast *f, sl_buf *out) {
    const double *share = sl_forecast_shares;
    sl_buf_printf(out, "\ndecoding: %.3f GB a token at the start of a sequence; %.0f %% of the bus is expected\n",
                  GB(f->token_bytes), f->device_rate.share * 100);
    sl_buf_text(out, "   depth   weights ms   cache ms  state ms   wait ms   total ms     tok/s  limit\n");
    for (int i = 0; i < SL_FORECAST_DEPTHS; i++) {
        const sl_prediction *p = &f->decode[i];
        sl_buf_printf(out, "  %6u %12.3f %10.3f %9.3f %9.3f %10.3f %9.1f  %s\n", f->depth[i], p->weight_ms, p->kv_ms,
                      p->state_ms, p->wait_ms, p->total_ms, p->tok_s, p->limit);
    }
    sl_buf_printf(out, "the bus: %.3f GB / %.5g GB/s = %.3f ms. Tokens a second at a share of it\n ",
                  GB(f->token_bytes), f->device.gb_s, f->token_bytes / (f->device.gb_s * 1e6));
    for (int i = 0; i < SL_FORECAST_SHARES; i++) sl_buf_printf(out, "  %7.0f %%", share[i] * 100);
    sl_buf_text(out, "\n ");
    for (int i = 0; i < SL_FORECAST_SHARES; i++)
        sl_buf_printf(out, "  %9.1f", sl_bus_tok_s(f->device.gb_s, share[i], f->token_bytes));
    sl_buf_printf(
        out,
        "\n  So 80 to 85 %% of this bus is %.0f to %.0f tok/s, and a claim of %.0f to "
        "%.0f tok/s is one of 65 to 70 %%.\n",
        sl_bus_tok_s(f->device.gb_s, 0.80, f->token_bytes), sl_bus_tok_s(f->device.gb_s, 0.85, f->token_bytes),
        sl_bus_tok_s(f->device.gb_s, 0.65, f->token_bytes), sl_bus_tok_s(f->device.gb_s, 0.70, f->token_bytes));
}

static void print_prefill(const sl_forecast *f, sl_buf *out) {
    sl_buf_text(out, "\ntime to the first token\n  prompt     TTFT ms     tok/s  limit\n");
    for (size_t i = 0; i < f->n_prompt; i++) {
        const sl_prediction *p = &f->prefill[i];
        sl_buf_printf(out, "  %6u %s%10.1f %s%8.0f  %s%s\n", f->prompt[i], p->is_floor ? ">" : " ", p->total_ms,
                      p->is_floor ? "<" : " ", p->tok_s, p->limit,
                      p->is_floor ? " (no rate of arithmetic is known for it: a bound)" : "");
    }
}

static void print_placements(const sl_forecast *f, sl_buf *out) {
    sl_buf_printf(out, "\nplacements, a token at depth %u\n", f->n_ctx / 2);
    for (size_t i = 0; i < f->n_placement; i++) {
        const sl_placement *p = &f->placement[i];
        sl_buf_printf(out, "  %-42s %-8s %10.2f ms %9.2f tok/s  %s\n", p->what, p->fits ? "fits" : "too big", p->ms,
                      p->tok_s, p->limit);
        if (p->note[0]) sl_buf_printf(out, "      %s\n", p->note);
    }
}

void sl_forecast_text(const sl_forecast *f, sl_buf *out) {
    print_head(f, out);
    print_memory(f, out);
    print_cache(f, out);
    print_decode(f, out);
    print_prefill(f, out);
    print_placements(f, out);
}
