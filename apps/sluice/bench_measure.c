// SPDX-License-Identifier: MIT
//
// The measuring. The machine changes while it is measured, so bandwidth is read before, after, and
// again before each run; a run is always followed by one of another kind. Within a run nothing is
// taken, printed or asked of the system.
#include "bench.h"

#include <math.h>
#include <stdlib.h>

#include "interrupt.h"
#include "progress.h"

enum { WARM_TOKENS = 2 }; // the sweep over the memory has emptied the caches

typedef struct worker { // what a measuring needs beside the results
    bench *b;
    sluice_engine *engine;
    sluice_sampler *sampler; // greedy
    int32_t *ids;            // (n_ids) pseudo-random and valid: the prompt of every length
    sluice_row *rows;        // (BENCH_ROWS_MAX)
    progress bar;
    uint64_t n_done, n_total; // tokens
} worker;

static int advance(worker *w, uint64_t n_tokens) {
    w->n_done += n_tokens;
    if (progress_update(&w->bar, w->n_done, w->n_total) == 0) return APP_OK;
    progress_end(&w->bar);
    return app_fail_library(SLUICE_CANCELLED);
}

static int stop_asked(void *user, uint64_t n, uint64_t total) {
    (void)user, (void)n, (void)total;
    return interrupt_seen();
}

static int fail(worker *w, sluice_status status) {
    progress_end(&w->bar);
    return app_fail_library(status);
}

// ---- memory -------------------------------------------------------------------------------------

// A device has read its own memory when the engine was made.
static int measure_read(worker *w, bench_read *read) {
    double gb_s = w->b->session.engine_info.read_gb_s;
    sluice_status status = read->n_thread ? sluice_measure_bandwidth(read->n_thread, &gb_s) : SLUICE_OK;
    if (status != SLUICE_OK) return fail(w, status);
    series_push(&read->gb_s, gb_s);
    return advance(w, 0);
}

static int measure_all_reads(worker *w) {
    bench *b = w->b;
    for (size_t i = 0; i < b->n_read; i++) {
        if (measure_read(w, &b->read[i]) != APP_OK) return APP_FAILED;
    }
    return APP_OK;
}

// The best number of threads; one that is not that of decode must be clearly better.
static void choose_limit(bench *b) {
    double best = 0;
    for (size_t i = 0; i < b->n_read; i++) {
        bool is_decode = b->read[i].n_thread == b->session.engine_info.n_thread;
        double gb_s = b->read[i].gb_s.value[0] * (is_decode ? 1.1 : 1);
        if (gb_s > best) best = gb_s, b->limit = i;
    }
}

// ---- prefill ------------------------------------------------------------------------------------

static sluice_status sample(worker *w, int32_t *token) { return sluice_sample_row(w->sampler, w->engine, 0, token); }

static int run_prefill(worker *w, bench_prefill *p, bool counted) {
    int32_t token;
    double start = app_now_ms();
    sluice_status status = sluice_seq_truncate(w->engine, 0, 0);
    if (status == SLUICE_OK) status = sluice_prefill(w->engine, 0, w->ids, (size_t)p->n, stop_asked, NULL);
    double filled = app_now_ms();
    if (status == SLUICE_OK) status = sample(w, &token);
    double end = app_now_ms();
    if (status != SLUICE_OK) return fail(w, status);
    if (counted) {
        series_push(&p->tok_s, p->n * 1e3 / (filled - start));
        series_push(&p->ttft, end - start);
    }
    return advance(w, (uint64_t)p->n);
}

static int measure_prefill(worker *w) {
    bench *b = w->b;
    if (b->n_prefill && run_prefill(w, &b->prefill[0], false) != APP_OK) return APP_FAILED;
    for (int32_t rep = 0; rep < b->request.n_rep && b->n_prefill; rep++) {
        if (measure_read(w, &b->read[b->limit]) != APP_OK) return APP_FAILED;
        for (size_t i = 0; i < b->n_prefill; i++) {
            if (run_prefill(w, &b->prefill[i], true) != APP_OK) return APP_FAILED;
        }
    }
    return APP_OK;
}

// ---- decode -------------------------------------------------------------------------------------

// The first 32 positions are computed, the others copied.
static sluice_status fill_with_copies(worker *w, int32_t depth) {
    enum { N_FIRST = 32 };
    sluice_status status = sluice_seq_truncate(w->engine, 0, 0);
    if (status == SLUICE_OK) status = sluice_prefill(w->engine, 0, w->ids, N_FIRST, NULL, NULL);
    return status == SLUICE_OK ? sluice_seq_fill(w->engine, 0, depth) : status;
}

static int fill_to(worker *w, int32_t depth) {
    int32_t n_past = sluice_seq_length(w->engine, 0);
    sluice_status status = SLUICE_OK;
    if (n_past > depth) status = sluice_seq_truncate(w->engine, 0, depth);
    if (n_past < depth && w->b->request.fill && depth > 32) {
        status = fill_with_copies(w, depth);
    } else if (n_past < depth) {
        status = sluice_prefill(w->engine, 0, w->ids + n_past, (size_t)(depth - n_past), stop_asked, NULL);
    }
    return status == SLUICE_OK ? APP_OK : fail(w, status);
}

// n greedy steps after `depth` positions; itl may be NULL.
static sluice_status decode(worker *w, int32_t depth, int32_t n, series *itl) {
    int32_t token = w->ids[depth];
    double then = app_now_ms();
    for (int32_t i = 0; i < n; i++) {
        if (interrupt_seen()) return SLUICE_CANCELLED;
        sluice_status status = sluice_step(w->engine, &(sluice_row){token, 0, depth + i, true}, 1);
        if (status == SLUICE_OK) status = sample(w, &token);
        if (status != SLUICE_OK) return status;
        double now = app_now_ms();
        if (itl) series_push(itl, now - then);
        then = now;
    }
    return SLUICE_OK;
}

static int run_decode(worker *w, bench_decode *d) {
    sluice_engine_stats before, after;
    const energy_meter *meter = &w->b->meter;
    sluice_status status = sluice_engine_get_stats(w->engine, &before);
    if (status != SLUICE_OK) return fail(w, status);
    energy_reading energy_before = energy_read(meter);
    double start = app_now_ms();
    status = decode(w, d->depth, d->n, &d->itl);
    double time = app_now_ms() - start;
    energy_reading energy_after = energy_read(meter);
    if (status == SLUICE_OK) status = sluice_engine_get_stats(w->engine, &after);
    if (status != SLUICE_OK) return fail(w, status);
    uint64_t n_fault = after.n_minor_fault + after.n_major_fault - before.n_minor_fault - before.n_major_fault;
    double joules = energy_between(meter, &energy_before, &energy_after);
    series_push(&d->tok_s, d->n * 1e3 / time);
    series_push(&d->n_alloc, (double)(after.n_alloc - before.n_alloc) / d->n);
    series_push(&d->n_fault, (double)n_fault / d->n);
    if (isfinite(joules)) series_push(&d->joules, joules / d->n);
    return advance(w, (uint64_t)d->n);
}

static int warm_up(worker *w, const bench_decode *d) {
    if (fill_to(w, d->depth) != APP_OK) return APP_FAILED;
    sluice_status status = decode(w, d->depth, d->n < WARM_TOKENS ? d->n : WARM_TOKENS, NULL);
    return status == SLUICE_OK ? fill_to(w, d->depth) : fail(w, status);
}

static int measure_decode(worker *w) {
    bench *b = w->b;
    for (size_t i = 0; i < b->n_decode; i++) {
        bench_decode *d = &b->decode[i];
        for (int32_t rep = 0; rep < b->request.n_rep; rep++) {
            if (measure_read(w, &b->read[b->limit]) != APP_OK) return APP_FAILED;
            if (warm_up(w, d) != APP_OK || run_decode(w, d) != APP_OK) return APP_FAILED;
        }
    }
    return APP_OK;
}

// ---- several rows -------------------------------------------------------------------------------

// A step as when n - 1 drafts are checked: each row's logits are wanted and sampled, then
// forgotten.
static sluice_status step_rows(worker *w, int32_t depth, int32_t n) {
    int32_t token;
    for (int32_t i = 0; i < n; i++) w->rows[i] = (sluice_row){w->ids[depth + i], 0, depth + i, true};
    sluice_status status = sluice_step(w->engine, w->rows, (size_t)n);
    for (int32_t i = 0; i < n && status == SLUICE_OK; i++)
        status = sluice_sample_row(w->sampler, w->engine, (size_t)i, &token);
    return status;
}

static int run_rows(worker *w, bench_rows *r, int32_t depth) {
    for (int32_t i = 0; i < BENCH_ROW_STEPS; i++) {
        double start = app_now_ms();
        sluice_status status = step_rows(w, depth, r->n);
        double time = app_now_ms() - start;
        if (status == SLUICE_OK) status = sluice_seq_truncate(w->engine, 0, depth);
        if (status == SLUICE_OK && interrupt_seen()) status = SLUICE_CANCELLED;
        if (status != SLUICE_OK) return fail(w, status);
        if (i > 0) series_push(&r->step, time); // the first one warms this width up
    }
    return advance(w, BENCH_ROW_STEPS);
}

static int measure_rows(worker *w) {
    bench *b = w->b;
    int32_t depth = b->request.depth.value[0];
    if (b->n_rows && fill_to(w, depth) != APP_OK) return APP_FAILED;
    for (int32_t rep = 0; rep < b->request.n_rep; rep++) {
        for (size_t i = 0; i < b->n_rows; i++) {
            if (run_rows(w, &b->rows[i], depth) != APP_OK) return APP_FAILED;
        }
    }
    return APP_OK;
}

// ---- all of it ----------------------------------------------------------------------------------

// Ids that no prompt would hold, but valid ones, and the same on every machine (PCG32's
// multiplier).
static void choose_ids(int32_t *ids, size_t n, int32_t n_vocab) {
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((state >> 33) % (uint64_t)n_vocab);
    }
}

static uint64_t count_tokens(const bench *b) {
    uint64_t n = b->n_decode * (uint64_t)b->request.n_decode + b->n_rows * BENCH_ROW_STEPS;
    for (size_t i = 0; i < b->n_prefill; i++) n += (uint64_t)b->prefill[i].n;
    n *= (uint64_t)b->request.n_rep;
    return b->n_prefill ? n + (uint64_t)b->prefill[0].n : n;
}

static int start(worker *w, bench *b) {
    *w = (worker){.b = b, .engine = b->session.engine, .n_total = count_tokens(b)};
    size_t n_ids = (size_t)b->session.engine_info.n_ctx + BENCH_ROWS_MAX;
    w->ids = calloc(n_ids, sizeof *w->ids);
    w->rows = calloc(BENCH_ROWS_MAX, sizeof *w->rows);
    if (!w->ids || !w->rows) return app_fail("out of memory");
    choose_ids(w->ids, n_ids, b->session.model_info.n_vocab);
    sluice_sampler_options greedy = sluice_sampler_options_default();
    greedy.temp = 0;
    sluice_status status = sluice_sampler_create(&w->sampler, b->session.model_info.n_vocab, 1, &greedy);
    return status == SLUICE_OK ? APP_OK : app_fail_library(status);
}

int bench_measure(bench *b) {
    worker w;
    int result = start(&w, b);
    progress_start(&w.bar, "measuring");
    b->began = machine_time_read(STAT_PATH);
    if (result == APP_OK) result = measure_all_reads(&w);
    if (result == APP_OK) choose_limit(b), result = measure_prefill(&w);
    if (result == APP_OK) result = measure_decode(&w);
    if (result == APP_OK) result = measure_rows(&w);
    if (result == APP_OK) result = measure_all_reads(&w);
    b->ended = machine_time_read(STAT_PATH);
    progress_end(&w.bar);
    sluice_sampler_destroy(&w.sampler);
    free(w.ids), free(w.rows);
    return result != APP_OK && interrupt_seen() ? APP_INTERRUPTED : result;
}
