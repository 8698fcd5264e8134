// SPDX-License-Identifier: MIT
//
// The results as one JSON object. Times are in ms, bandwidths in GB/s (10^9), shares and spreads of
// one; what the system does not offer is null.
#include "bench.h"

#include <math.h>
#include <string.h>

#include "conversation.h"
#include "json_out.h"

static json_t *values_to_json(const series *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n; i++) json_array_append_new(array, json_real(s->value[i]));
    return array;
}

static json_t *reads_to_json(const bench *b) {
    json_t *array = json_array();
    for (size_t i = 0; i < b->n_read; i++) {
        const bench_read *r = &b->read[i];
        summary s = series_summarize(&r->gb_s);
        json_array_append_new(array, json_pack("{s:i, s:f, s:f, s:o}", "threads", (int)r->n_thread, "gb_s", s.p50,
                                               "spread", s.spread, "runs", values_to_json(&r->gb_s)));
    }
    return array;
}

static json_t *prefill_to_json(const bench *b) {
    json_t *array = json_array();
    for (size_t i = 0; i < b->n_prefill; i++) {
        const bench_prefill *p = &b->prefill[i];
        summary s = series_summarize(&p->tok_s), ttft = series_summarize(&p->ttft);
        json_array_append_new(array, json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:o}", "n", (int)p->n, "tok_s", s.p50,
                                               "ttft_ms", ttft.p50, "spread", s.spread, "bytes", p->bytes, "operations",
                                               p->n_op, "runs", values_to_json(&p->tok_s)));
    }
    return array;
}

static json_t *itl_to_json(const series *itl) {
    summary t = series_summarize(itl);
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "p50", t.p50, "p90", t.p90, "p99", t.p99, "max", t.max, "mean",
                     t.mean, "jitter", t.p50 > 0 ? t.p99 / t.p50 : 0);
}

static json_t *decode_to_json(const bench *b) {
    json_t *array = json_array();
    for (size_t i = 0; i < b->n_decode; i++) {
        const bench_decode *d = &b->decode[i];
        summary s = series_summarize(&d->tok_s);
        double gb_s = bench_decode_gb_s(d);
        json_t *entry =
            json_pack("{s:i, s:i, s:f, s:f, s:o, s:f, s:f, s:f, s:f}", "depth", (int)d->depth, "n", (int)d->n, "tok_s",
                      s.p50, "tpot_ms", series_summarize(&d->itl).mean, "itl_ms", itl_to_json(&d->itl), "bytes",
                      d->bytes, "operations", d->n_op, "gb_s", gb_s, "share", bench_share(b, gb_s));
        json_t *rest = json_pack("{s:f, s:f, s:o, s:f, s:o}", "allocs", series_summarize(&d->n_alloc).max, "faults",
                                 series_summarize(&d->n_fault).max, "joules",
                                 json_finite(d->joules.n ? series_summarize(&d->joules).p50 : NAN), "spread", s.spread,
                                 "runs", values_to_json(&d->tok_s));
        json_object_update(entry, rest);
        json_decref(rest);
        json_array_append_new(array, entry);
    }
    return array;
}

static json_t *rows_to_json(const bench *b) {
    json_t *array = json_array();
    for (size_t i = 0; i < b->n_rows; i++) {
        const bench_rows *r = &b->rows[i];
        summary s = series_summarize(&r->step);
        json_array_append_new(array, json_pack("{s:i, s:f, s:f, s:f, s:f}", "n", (int)r->n, "step_ms", s.p50, "ratio",
                                               s.p50 / series_summarize(&b->rows[0].step).p50, "bytes", r->bytes,
                                               "spread", s.spread));
    }
    return array;
}

static json_t *machine_to_json(const bench *b) {
    const machine *m = &b->machine;
    return json_pack("{s:o, s:o, s:i, s:I}", "cpu", json_any_text(m->cpu, strlen(m->cpu)), "system",
                     json_any_text(m->system, strlen(m->system)), "processors", (int)m->n_cpu, "memory_bytes",
                     (json_int_t)m->memory_bytes);
}

static json_t *model_to_json(const bench *b) {
    const sluice_model_info *m = &b->session.model_info;
    return json_pack("{s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:f}", "path", json_any_text(b->path, strlen(b->path)),
                     "name", json_any_text(m->name, strlen(m->name)), "arch", m->arch, "type", m->type, "parameters",
                     (json_int_t)m->n_params, "file_bytes", (json_int_t)m->file_bytes, "weight_bytes",
                     (json_int_t)m->weight_bytes, "load_ms", b->session.load_ms);
}

static json_t *options_to_json(const bench *b) {
    const sluice_engine_info *e = &b->session.engine_info;
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:i, s:b}", "backend", b->backend, "device", e->device,
                     "threads", (int)e->n_thread, "threads_prefill", (int)e->n_thread_prefill, "ctx", (int)e->n_ctx,
                     "chunk", (int)e->n_row_max, "kv", b->kv, "reps", (int)b->request.n_rep, "fill", b->request.fill);
}

static json_t *memory_to_json(const bench *b) {
    const sluice_engine_info *e = &b->session.engine_info;
    return json_pack("{s:I, s:I, s:I, s:I}", "weight_bytes", (json_int_t)e->weight_bytes, "kv_bytes",
                     (json_int_t)e->kv_bytes, "workspace_bytes", (json_int_t)e->workspace_bytes, "other_bytes",
                     (json_int_t)e->other_bytes);
}

static json_t *noise_to_json(const bench *b) {
    bench_noise noise = bench_get_noise(b);
    json_t *why = json_array();
    for (size_t i = 0; i < noise.n_why; i++) json_array_append_new(why, json_string(noise.why[i]));
    return json_pack("{s:b, s:o, s:o, s:o}", "noisy", (int)(noise.n_why > 0), "why", why, "steal",
                     json_finite(noise.steal), "others", json_finite(noise.others));
}

int bench_print_json(const bench *b) {
    const sluice_engine_info *e = &b->session.engine_info;
    bench_noise noise = bench_get_noise(b);
    json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:o, s:f, s:I, s:I, s:o, s:o, s:o, s:o, s:{s:f, s:f, s:f}, s:o}",
                             "version", SLUICE_VERSION, "machine", machine_to_json(b), "model", model_to_json(b),
                             "options", options_to_json(b), "memory", memory_to_json(b), "read_gb_s",
                             bench_read_gb_s(b), "bytes_per_token", (json_int_t)e->token_bytes, "kv_bytes_per_position",
                             (json_int_t)e->kv_position_bytes, "read", reads_to_json(b), "prefill", prefill_to_json(b),
                             "decode", decode_to_json(b), "rows", rows_to_json(b), "spread", "read", noise.read,
                             "prefill", noise.prefill, "decode", noise.decode, "noise", noise_to_json(b));
    return json_print(root);
}
