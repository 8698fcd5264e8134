// SPDX-License-Identifier: MIT
//
// The results as a table for people, and as comma-separated values.
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "files.h"

static int add(text *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int add(text *out, const char *fmt, ...) {
    char line[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    return text_append(out, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

static int write_out(int result, text *out) {
    if (result == APP_OK) result = out_write(out->data, out->n);
    text_free(out);
    return result;
}

// ---- table --------------------------------------------------------------------------------------

static int add_head(text *out, const bench *b) {
    const sluice_model_info *m = &b->session.model_info;
    const sluice_engine_info *e = &b->session.engine_info;
    int result = add(out, "%.200s (%s, %s): %.1f M parameters, %.1f MiB\n", m->name[0] ? m->name : b->path, m->arch,
                     m->type, (double)m->n_params * 1e-6, (double)m->weight_bytes / 0x1p20);
    if (result == APP_OK) {
        result = add(out, "%s, %d processors; threads %d, prefill %d; KV %s; median of %d\n", e->device,
                     (int)b->machine.n_cpu, (int)e->n_thread, (int)e->n_thread_prefill, b->kv, (int)b->request.n_rep);
    }
    if (result == APP_OK && b->request.fill)
        result = add(out, "the cache before a decode is filled with copies of its first 32 positions, not computed\n");
    return result;
}

static int add_reads(text *out, const bench *b) {
    bool own = b->read[0].n_thread == 0;
    int result = add(out, "\nmemory read  %s      GB/s  spread\n", own ? " device" : "threads");
    for (size_t i = 0; i < b->n_read && result == APP_OK; i++) {
        summary s = series_summarize(&b->read[i].gb_s);
        result = add(out, "%20d%10.1f%7.0f %%%s\n", (int)b->read[i].n_thread, s.p50, s.spread * 100,
                     i == b->limit ? "  the limit" : "");
    }
    return result;
}

static int add_prefill(text *out, const bench *b) {
    if (!b->n_prefill) return APP_OK;
    int result = add(out, "\nprefill      tokens     tok/s  spread   TTFT ms\n");
    for (size_t i = 0; i < b->n_prefill && result == APP_OK; i++) {
        const bench_prefill *p = &b->prefill[i];
        summary s = series_summarize(&p->tok_s);
        result =
            add(out, "%19d%10.1f%7.0f %%%10.1f\n", (int)p->n, s.p50, s.spread * 100, series_summarize(&p->ttft).p50);
    }
    return result;
}

static int add_decode(text *out, const bench *b) {
    if (!b->n_decode) return APP_OK;
    bool above = false;
    int result = add(out,
                     "\ndecode        depth     tok/s  spread    p50 ms     p90     p99     "
                     "max  p99/p50  MB/token    GB/s  of limit  allocs  faults%s\n",
                     b->meter.n ? "  J/token" : "");
    for (size_t i = 0; i < b->n_decode && result == APP_OK; i++) {
        const bench_decode *d = &b->decode[i];
        summary s = series_summarize(&d->tok_s), t = series_summarize(&d->itl);
        double gb_s = bench_decode_gb_s(d);
        result = add(out, "%19d%10.1f%7.0f %%%10.2f%8.2f%8.2f%8.2f%9.3f%10.1f%8.1f%8.0f %%", (int)d->depth, s.p50,
                     s.spread * 100, t.p50, t.p90, t.p99, t.max, t.p50 > 0 ? t.p99 / t.p50 : 0, d->bytes * 1e-6, gb_s,
                     bench_share(b, gb_s) * 100);
        if (result == APP_OK)
            result = add(out, "%8.3g%8.3g", series_summarize(&d->n_alloc).max, series_summarize(&d->n_fault).max);
        if (result == APP_OK && d->joules.n) result = add(out, "%9.3f", series_summarize(&d->joules).p50);
        if (result == APP_OK) result = add(out, "\n");
        above |= bench_share(b, gb_s) > 1;
    }
    if (result == APP_OK && above)
        result = add(out, "More than the limit: weights stayed in the processor's caches.\n");
    return result;
}

static int add_rows(text *out, const bench *b) {
    if (!b->n_rows) return APP_OK;
    int result = add(out, "\nstep           rows   ms/step  spread  ratio     tok/s    GB/s\n");
    for (size_t i = 0; i < b->n_rows && result == APP_OK; i++) {
        const bench_rows *r = &b->rows[i];
        summary s = series_summarize(&r->step);
        double first = series_summarize(&b->rows[0].step).p50;
        result = add(out, "%19d%10.2f%7.0f %%%7.2f%10.1f%8.1f\n", (int)r->n, s.p50, s.spread * 100,
                     first > 0 ? s.p50 / first : 0, s.p50 > 0 ? r->n * 1e3 / s.p50 : 0,
                     s.p50 > 0 ? r->bytes * 1e-6 / s.p50 : 0);
    }
    return result;
}

static int add_noise(text *out, const bench *b) {
    bench_noise noise = bench_get_noise(b);
    if (!noise.n_why) return add(out, "\nThe machine was quiet.\n");
    int result = add(out, "\nThe machine was noisy: ");
    for (size_t i = 0; i < noise.n_why && result == APP_OK; i++) result = add(out, "%s%s", i ? "; " : "", noise.why[i]);
    return result == APP_OK ? add(out, ".\n") : result;
}

int bench_print_table(const bench *b) {
    text out = {0};
    int result = add_head(&out, b);
    if (result == APP_OK) result = add_reads(&out, b);
    if (result == APP_OK) result = add_prefill(&out, b);
    if (result == APP_OK) result = add_decode(&out, b);
    if (result == APP_OK) result = add_rows(&out, b);
    if (result == APP_OK) result = add_noise(&out, b);
    return write_out(result, &out);
}

// ---- comma-separated values ---------------------------------------------------------------------

// A line for each figure. What a kind does not have stays empty.
int bench_print_csv(const bench *b) {
    text out = {0};
    int result = add(&out, "kind,threads,n,depth,tok_s,tok_s_min,tok_s_max,ttft_ms,itl_p50_ms,"
                           "itl_p90_ms,itl_p99_ms,itl_max_ms,bytes,gb_s,share,allocs,faults,"
                           "joules\n");
    int n_decode = (int)b->session.engine_info.n_thread;
    int n_prefill = (int)b->session.engine_info.n_thread_prefill;
    for (size_t i = 0; i < b->n_read && result == APP_OK; i++)
        result = add(&out, "read,%d,,,,,,,,,,,,%.4g,,,,\n", (int)b->read[i].n_thread,
                     series_summarize(&b->read[i].gb_s).p50);
    for (size_t i = 0; i < b->n_prefill && result == APP_OK; i++) {
        const bench_prefill *p = &b->prefill[i];
        summary s = series_summarize(&p->tok_s);
        result = add(&out, "prefill,%d,%d,,%.6g,%.6g,%.6g,%.6g,,,,,%.0f,,,,,\n", n_prefill, (int)p->n, s.p50, s.min,
                     s.max, series_summarize(&p->ttft).p50, p->bytes);
    }
    for (size_t i = 0; i < b->n_decode && result == APP_OK; i++) {
        const bench_decode *d = &b->decode[i];
        summary s = series_summarize(&d->tok_s), t = series_summarize(&d->itl);
        double gb_s = bench_decode_gb_s(d);
        result = add(&out,
                     "decode,%d,%d,%d,%.6g,%.6g,%.6g,,%.6g,%.6g,%.6g,%.6g,%.0f,%.4g,%.4g,"
                     "%.3g,%.3g,",
                     n_decode, (int)d->n, (int)d->depth, s.p50, s.min, s.max, t.p50, t.p90, t.p99, t.max, d->bytes,
                     gb_s, bench_share(b, gb_s), series_summarize(&d->n_alloc).max, series_summarize(&d->n_fault).max);
        if (result == APP_OK && d->joules.n) result = add(&out, "%.4g", series_summarize(&d->joules).p50);
        if (result == APP_OK) result = add(&out, "\n");
    }
    for (size_t i = 0; i < b->n_rows && result == APP_OK; i++) {
        const bench_rows *r = &b->rows[i];
        summary s = series_summarize(&r->step);
        result = add(&out, "rows,%d,%d,%d,%.6g,%.6g,%.6g,,%.6g,%.6g,%.6g,%.6g,%.0f,,,,,\n", n_decode, (int)r->n,
                     (int)b->request.depth.value[0], r->n * 1e3 / s.p50, r->n * 1e3 / s.max, r->n * 1e3 / s.min, s.p50,
                     s.p90, s.p99, s.max, r->bytes);
    }
    return write_out(result, &out);
}
