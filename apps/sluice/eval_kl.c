// SPDX-License-Identifier: MIT
//
// sluice eval kl: how far the laws that a model gives are from those that were saved, position by position.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_stats.h"
#include "eval.h"
#include "eval_law.h"
#include "eval_chart.h"
#include "interrupt.h"
#include "json_out.h"
#include "npy.h"
#include "progress.h"
#include "session.h"
#include "token_ids.h"

typedef struct kl_options {
    const char *ids_path, *ref_path, *html;
    bool json;
} kl_options;

#define AT(field) offsetof(kl_options, field)
static const option kl_table[] = {
    {0, "ids", OPTION_TEXT, AT(ids_path), "FILE.json", 0, 0,
     "the ids that the logits were saved for (-: standard input)"},
    {0, "ref", OPTION_TEXT, AT(ref_path), "F.npy", 0, 0, "the logits, as sluice eval logits writes them"},
    {0, "json", OPTION_FLAG, AT(json), NULL, 0, 0, "as one JSON object"},
    {0, "html", OPTION_TEXT, AT(html), "FILE", 0, 0, "also write a report with a chart"},
};

// Position 0 is kept apart: it has no context, and engines differ there by what means nothing later.
typedef struct kl_result {
    const char *path, *ref_path;
    series gap; // in nats, of all positions but the first; if there is one only, of that
    double first;
    size_t n_pos, n_same, max_at;
} kl_result;

typedef struct kl_work {
    sluice_row *rows; // (n_row_max)
    float *ref;       // (n_vocab)
    law law;
} kl_work;

static void keep(kl_result *r, double gap, bool same) {
    size_t pos = r->n_pos++;
    r->n_same += same;
    if (pos == 0) r->first = gap;
    else {
        if (r->gap.n == 0 || gap > r->gap.value[r->max_at - 1]) r->max_at = pos;
        series_push(&r->gap, gap);
    }
}

static int compare_rows(kl_result *r, kl_work *w, npy *ref, const session *s, size_t n) {
    int result = APP_OK;
    for (size_t i = 0; i < n && result == APP_OK; i++) {
        result = npy_read_row(ref, w->ref);
        if (result != APP_OK) break;
        law_take(&w->law, w->ref);
        law_gap gap = law_compare(&w->law, sluice_logits(s->engine, i));
        if (!isfinite(gap.divergence)) result = app_fail("position %zu: the divergence is not finite", r->n_pos);
        else keep(r, gap.divergence, gap.same_best);
    }
    return result;
}

static int measure(kl_result *r, kl_work *w, npy *ref, session *s, const int32_t *ids) {
    size_t n_chunk = (size_t)s->engine_info.n_row_max;
    progress bar;
    progress_start(&bar, "divergence");
    int result = APP_OK;
    for (size_t at = 0; at < ref->n_row && result == APP_OK; at += n_chunk) {
        size_t n = ref->n_row - at < n_chunk ? ref->n_row - at : n_chunk;
        for (size_t i = 0; i < n; i++) w->rows[i] = (sluice_row){ids[at + i], 0, (int32_t)(at + i), true};
        sluice_status status = sluice_step(s->engine, w->rows, n);
        if (status == SLUICE_OK && progress_update(&bar, at + n, ref->n_row)) status = SLUICE_CANCELLED;
        if (status != SLUICE_OK) progress_end(&bar), result = app_fail_library(status);
        else result = compare_rows(r, w, ref, s, n);
    }
    progress_end(&bar);
    return result;
}

// ---- what is printed ------------------------------------------------------------------------------------------------

static int print_json(const kl_result *r, const summary *s) {
    return json_print(json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:f, s:I, s:f}", "positions", (json_int_t)r->n_pos,
                                "mean", s->mean, "median", s->p50, "p90", s->p90, "p99", s->p99, "max", s->max,
                                "max_at", (json_int_t)r->max_at, "position_0", r->first, "top1_equal",
                                (json_int_t)r->n_same, "top1", (double)r->n_same / (double)r->n_pos));
}

static int print_text(const kl_result *r, const summary *s) {
    char line[512];
    snprintf(line, sizeof line,
             "KL divergence from %.200s, in nats\n"
             "  mean %.3e   median %.3e   p90 %.3e   p99 %.3e   max %.3e (position %zu)\n"
             "  position 0 apart: %.3e\n"
             "likeliest token equal: %zu of %zu (%.2f %%)\n",
             r->ref_path, s->mean, s->p50, s->p90, s->p99, s->max, r->max_at, r->first, r->n_same, r->n_pos,
             100 * (double)r->n_same / (double)r->n_pos);
    return out_write(line, strlen(line));
}

static int write_page(const kl_result *r, const summary *s, const session *of, const char *path) {
    page p = {0};
    char shares[32];
    page_begin(&p, of->model_info.name, r->path, "sluice eval kl");
    page_markup(&p, "<p class=\"soft\">KL divergence from ");
    page_text(&p, r->ref_path);
    page_markup(&p, "</p>\n<div class=\"tiles\">\n");
    page_tile(&p, number_show(s->mean * 1e3).text, "mnat", "mean");
    page_tile(&p, number_show(s->p50 * 1e3).text, "mnat", "median");
    page_tile(&p, number_show(s->p99 * 1e3).text, "mnat", "p99");
    snprintf(shares, sizeof shares, "%.2f", 100 * (double)r->n_same / (double)r->n_pos);
    page_tile(&p, shares, "%", "likeliest token equal");
    page_markup(&p, "</div>\n<section><h2>Divergence by position</h2>\n");
    chart_divergence(&p, &r->gap);
    page_markup(&p,
                "<p class=\"soft note\">Position 0, which is apart: %.3e nats. The line is the mean.</p>"
                "</section>\n",
                r->first);
    return page_end(&p, path);
}

static int report(kl_result *r, const session *s, const kl_options *options) {
    summary gaps = series_summarize(&r->gap);
    if (r->gap.n == 0)
        gaps = (summary){.mean = r->first, .p50 = r->first, .p90 = r->first, .p99 = r->first, .max = r->first};
    int result = options->html ? write_page(r, &gaps, s, options->html) : APP_OK;
    if (result != APP_OK) return result;
    return options->json ? print_json(r, &gaps) : print_text(r, &gaps);
}

// ---- the command ----------------------------------------------------------------------------------------------------

static int take_memory(kl_result *r, kl_work *w, const session *s, size_t n_pos) {
    w->rows = calloc((size_t)s->engine_info.n_row_max, sizeof *w->rows);
    w->ref = calloc((size_t)s->model_info.n_vocab, sizeof *w->ref);
    if (!w->rows || !w->ref) return app_fail("out of memory");
    int result = law_init(&w->law, (size_t)s->model_info.n_vocab);
    return result == APP_OK ? series_init(&r->gap, n_pos) : result;
}

static int check_sizes(const npy *ref, const session *s, size_t n_ids, int32_t n_ctx) {
    if (ref->n_col != (size_t)s->model_info.n_vocab)
        return app_fail("%s: has rows of %zu logits, but the model has %d tokens", ref->path, ref->n_col,
                        (int)s->model_info.n_vocab);
    if (ref->n_row != n_ids)
        return app_fail("%s: has logits of %zu positions, but there are %zu ids", ref->path, ref->n_row, n_ids);
    if (n_ctx && n_ids > (size_t)n_ctx)
        return app_fail("there are %zu ids but the context holds %d; raise --ctx", n_ids, (int)n_ctx);
    return APP_OK;
}

static int evaluate(session *s, session_options *engine, const char *path, const kl_options *options) {
    int32_t *ids = NULL;
    size_t n_ids = 0;
    npy ref = {0};
    kl_work work = {0};
    kl_result r = {.path = path, .ref_path = options->ref_path};
    int result = token_ids_read(&ids, &n_ids, options->ids_path, s->model_info.n_vocab);
    if (result == APP_OK) result = npy_open(&ref, options->ref_path);
    if (result == APP_OK) result = check_sizes(&ref, s, n_ids, engine->n_ctx);
    if (result == APP_OK) {
        if (!engine->n_ctx) engine->n_ctx = (int32_t)n_ids; // no more than is needed
        if (!engine->n_chunk) engine->n_chunk = EVAL_CHUNK;
        result = session_open_engine(s, engine, engine->n_chunk);
    }
    if (result == APP_OK) result = take_memory(&r, &work, s, n_ids);
    if (result == APP_OK) result = measure(&r, &work, &ref, s, ids);
    if (result == APP_OK) result = report(&r, s, options);
    npy_close(&ref);
    law_free(&work.law);
    series_free(&r.gap);
    free(work.rows), free(work.ref), free(ids);
    return result;
}

int eval_kl(int argc, char **argv) {
    kl_options options = {0};
    session_options engine = {0};
    const option_group groups[] = {
        {"options", kl_table, sizeof kl_table / sizeof *kl_table, &options},
        {"engine", session_engine_options, sizeof session_engine_options / sizeof *session_engine_options, &engine},
        {"model", session_model_options, 2, &engine},
    };
    const command_line line = {
        "sluice eval kl MODEL --ids FILE.json --ref F.npy [options]",
        "Compares the laws of the next token that a model gives after each of the ids with those "
        "of saved logits:\n"
        "KL(saved || model) in nats, its mean and percentiles, and how often the likeliest token "
        "is the same.\n",
        groups,
        3,
        1,
        1};
    const char *path;
    int result = options_parse(&line, argc, argv, &path);
    if (result != OPTIONS_GO_ON) return result;
    if (!options.ids_path || !options.ref_path) return app_usage("--ids and --ref are needed; usage: %s", line.usage);
    interrupt_catch();
    session s;
    result = session_open_model(&s, path, &engine, SESSION_WEIGHTS);
    if (result == APP_OK) result = evaluate(&s, &engine, path, &options);
    session_close(&s);
    return result;
}
