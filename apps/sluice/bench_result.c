// SPDX-License-Identifier: MIT
//
// Room for the results, what the plan says of each, and what follows from them.
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Past these a figure is called noisy.
#define NOISE_SPREAD 0.10
#define NOISE_STEAL  0.01
#define NOISE_OTHERS 0.05

static int init_reads(bench *b) {
    int32_t most = b->machine.n_cpu;
    // before and after all, before each round of prefills, before each run of decode
    size_t cap = 2 + (size_t)b->request.n_rep * (1 + b->n_decode);
    const sluice_engine_info *info = &b->session.engine_info;
    if (info->read_gb_s > 0) {
        b->n_read = 1;
        return series_init(&b->read[0].gb_s, cap);
    }
    if (info->n_thread > most) most = info->n_thread;
    if (info->n_thread_prefill > most) most = info->n_thread_prefill;
    for (int32_t n = 1; b->n_read < BENCH_MAX; n = n * 2 < most ? n * 2 : most) {
        bench_read *r = &b->read[b->n_read++];
        r->n_thread = n;
        if (series_init(&r->gb_s, cap) != APP_OK) return APP_FAILED;
        if (n == most) break;
    }
    return APP_OK;
}

static sluice_step_cost cost_of(const bench *b, int32_t n_row, int32_t n_past) {
    sluice_step_cost cost;
    sluice_status status = sluice_engine_get_cost(b->session.engine, n_row, n_past, &cost);
    return status == SLUICE_OK ? cost : (sluice_step_cost){0};
}

static int init_prefill(bench *b, size_t i) {
    bench_prefill *p = &b->prefill[i];
    size_t n_rep = (size_t)b->request.n_rep;
    p->n = b->request.prefill.value[i];
    int32_t n_chunk = b->session.engine_info.n_row_max;
    for (int32_t at = 0; at < p->n; at += n_chunk) {
        sluice_step_cost cost = cost_of(b, p->n - at < n_chunk ? p->n - at : n_chunk, at);
        p->bytes += (double)(cost.weight_bytes + cost.kv_bytes);
        p->n_op += 2 * (double)cost.n_mac;
    }
    int result = series_init(&p->tok_s, n_rep);
    return result == APP_OK ? series_init(&p->ttft, n_rep) : result;
}

static int init_decode(bench *b, size_t i) {
    bench_decode *d = &b->decode[i];
    size_t n_rep = (size_t)b->request.n_rep;
    d->depth = b->request.depth.value[i], d->n = b->request.n_decode;
    sluice_step_cost cost = cost_of(b, 1, d->depth + d->n / 2);
    d->bytes = (double)(cost.weight_bytes + cost.kv_bytes), d->n_op = 2 * (double)cost.n_mac;
    series *of_run[] = {&d->tok_s, &d->n_alloc, &d->n_fault, &d->joules};
    for (size_t k = 0; k < 4; k++) {
        if (series_init(of_run[k], n_rep) != APP_OK) return APP_FAILED;
    }
    return series_init(&d->itl, n_rep * (size_t)d->n);
}

static int init_rows(bench *b, size_t i) {
    bench_rows *r = &b->rows[i];
    r->n = b->request.rows.value[i];
    sluice_step_cost cost = cost_of(b, r->n, b->request.depth.value[0]);
    r->bytes = (double)(cost.weight_bytes + cost.kv_bytes), r->n_op = 2 * (double)cost.n_mac;
    return series_init(&r->step, (size_t)b->request.n_rep * BENCH_ROW_STEPS);
}

int bench_init(bench *b) {
    b->machine = machine_read();
    energy_open(&b->meter, ENERGY_FOLDER);
    b->n_prefill = b->request.prefill.n, b->n_rows = b->request.rows.n;
    b->n_decode = b->request.n_decode ? b->request.depth.n : 0;
    int result = init_reads(b);
    for (size_t i = 0; i < b->n_prefill && result == APP_OK; i++) result = init_prefill(b, i);
    for (size_t i = 0; i < b->n_decode && result == APP_OK; i++) result = init_decode(b, i);
    for (size_t i = 0; i < b->n_rows && result == APP_OK; i++) result = init_rows(b, i);
    return result;
}

void bench_free(bench *b) {
    for (size_t i = 0; i < BENCH_MAX; i++) {
        bench_decode *d = &b->decode[i];
        series_free(&b->read[i].gb_s);
        series_free(&b->prefill[i].tok_s), series_free(&b->prefill[i].ttft);
        series_free(&d->tok_s), series_free(&d->itl), series_free(&d->joules);
        series_free(&d->n_alloc), series_free(&d->n_fault);
        series_free(&b->rows[i].step);
    }
}

double bench_read_gb_s(const bench *b) { return series_summarize(&b->read[b->limit].gb_s).p50; }

double bench_decode_gb_s(const bench_decode *d) { return d->bytes * series_summarize(&d->tok_s).p50 * 1e-9; }

double bench_share(const bench *b, double gb_s) {
    double limit = bench_read_gb_s(b);
    return limit > 0 ? gb_s / limit : 0;
}

// ---- noise --------------------------------------------------------------------------------------

static void add_reason(bench_noise *noise, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_reason(bench_noise *noise, const char *fmt, ...) {
    if (noise->n_why == sizeof noise->why / sizeof *noise->why) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(noise->why[noise->n_why++], sizeof *noise->why, fmt, args);
    va_end(args);
}

bench_noise bench_get_noise(const bench *b) {
    bench_noise noise = {.steal = machine_steal(&b->began, &b->ended), .others = machine_others(&b->began, &b->ended)};
    noise.read = series_summarize(&b->read[b->limit].gb_s).spread;
    for (size_t i = 0; i < b->n_prefill; i++)
        noise.prefill = fmax(noise.prefill, series_summarize(&b->prefill[i].tok_s).spread);
    for (size_t i = 0; i < b->n_decode; i++)
        noise.decode = fmax(noise.decode, series_summarize(&b->decode[i].tok_s).spread);
    if (noise.read > NOISE_SPREAD) add_reason(&noise, "read bandwidth varied by %.0f %%", noise.read * 100);
    if (noise.prefill > NOISE_SPREAD) add_reason(&noise, "prefill runs varied by up to %.0f %%", noise.prefill * 100);
    if (noise.decode > NOISE_SPREAD) add_reason(&noise, "decode runs varied by up to %.0f %%", noise.decode * 100);
    if (noise.steal > NOISE_STEAL) add_reason(&noise, "the host took %.1f %% of the processors", noise.steal * 100);
    if (noise.others > NOISE_OTHERS)
        add_reason(&noise, "other processes took %.0f %% of the processors", noise.others * 100);
    return noise;
}
