// SPDX-License-Identifier: MIT
//
// sluice bench: how fast a model runs on this machine, and how much of what the memory allows that
// is.
#include "bench.h"

#include <stdio.h>
#include <string.h>

#include "interrupt.h"

typedef struct bench_options {
    const char *prefill, *depth, *rows, *html;
    int32_t n_decode, n_rep;
    bool json, csv, fill;
} bench_options;

#define AT(field) offsetof(bench_options, field)
static const option bench_table[] = {
    {0, "prefill", OPTION_TEXT, AT(prefill), "N,N..", 0, 0, "prompt lengths (32,128,512; 0: none)"},
    {0, "decode", OPTION_INT, AT(n_decode), "N", 0, 1 << 20, "tokens of a decode run (64; 0: none)"},
    {0, "depth", OPTION_TEXT, AT(depth), "D,D..", 0, 0, "positions in the context when decode begins (0,512)"},
    {0, "reps", OPTION_INT, AT(n_rep), "R", 1, 1000, "runs of each; the median counts (3)"},
    {0, "rows", OPTION_TEXT, AT(rows), "R,R..", 0, 0,
     "also time steps of R rows of one sequence, as when drafts are checked"},
    {0, "fill", OPTION_FLAG, AT(fill), NULL, 0, 0,
     "do not compute the context before a decode: its positions are copies of the first 32"},
    {0, "json", OPTION_FLAG, AT(json), NULL, 0, 0, "as one JSON object"},
    {0, "csv", OPTION_FLAG, AT(csv), NULL, 0, 0, "as comma-separated values"},
    {0, "html", OPTION_TEXT, AT(html), "FILE", 0, 0, "also write a report with charts"},
};

static int read_request(bench_request *out, const bench_options *o) {
    enum { POSITION_MAX = 1 << 24 };
    int result = number_list_parse(&out->prefill, "prefill", o->prefill, 0, POSITION_MAX);
    if (result == OPTIONS_GO_ON) result = number_list_parse(&out->depth, "depth", o->depth, 0, POSITION_MAX);
    if (result == OPTIONS_GO_ON && o->rows) result = number_list_parse(&out->rows, "rows", o->rows, 1, BENCH_ROWS_MAX);
    if (result != OPTIONS_GO_ON) return result;
    if (out->prefill.value[0] == 0) {
        if (out->prefill.n > 1) return app_usage("--prefill 0 means none; no length can follow it");
        out->prefill.n = 0;
    }
    if (o->json && o->csv) return app_usage("--json and --csv exclude each other");
    out->n_decode = o->n_decode, out->n_rep = o->n_rep, out->fill = o->fill;
    return OPTIONS_GO_ON;
}

// Positions that the longest of it all takes.
static int64_t positions_needed(const bench_request *r) {
    int64_t most = r->prefill.n ? r->prefill.value[r->prefill.n - 1] : 0;
    int64_t n_rows = r->rows.n ? r->rows.value[r->rows.n - 1] : 0;
    int64_t deepest = r->depth.value[r->depth.n - 1] + (int64_t)r->n_decode;
    int64_t checked = r->depth.value[0] + n_rows;
    if (deepest > most) most = deepest;
    return checked > most ? checked : most;
}

static int open_engine(bench *b, session_options *engine) {
    int64_t n_needed = positions_needed(&b->request);
    if (engine->n_ctx && engine->n_ctx < n_needed) {
        return app_usage("the runs need %lld positions but --ctx is %d", (long long)n_needed, (int)engine->n_ctx);
    }
    if (!engine->n_ctx) engine->n_ctx = n_needed > 1 ? (int32_t)n_needed : 1;
    b->backend = engine->backend ? engine->backend : "cpu";
    int32_t n_rows = b->request.rows.n ? b->request.rows.value[b->request.rows.n - 1] : 1;
    int result = session_open_engine(&b->session, engine, n_rows);
    const sluice_engine_info *info = &b->session.engine_info;
    if (strcmp(info->kv_k, info->kv_v) == 0) snprintf(b->kv, sizeof b->kv, "%s", info->kv_k);
    else snprintf(b->kv, sizeof b->kv, "%s/%s", info->kv_k, info->kv_v);
    return result;
}

static int report(const bench *b, const bench_options *options) {
    int result = options->html ? bench_write_html(b, options->html) : APP_OK;
    if (result != APP_OK) return result;
    if (options->json) return bench_print_json(b);
    return options->csv ? bench_print_csv(b) : bench_print_table(b);
}

int cmd_bench(int argc, char **argv) {
    bench_options options = {.prefill = "32,128,512", .depth = "0,512", .n_decode = 64, .n_rep = 3};
    session_options engine = {0};
    const option_group groups[] = {
        {"options", bench_table, sizeof bench_table / sizeof *bench_table, &options},
        {"engine", session_engine_options, sizeof session_engine_options / sizeof *session_engine_options, &engine},
    };
    const command_line line = {
        "sluice bench MODEL [options]",
        "Measures read bandwidth of the memory, prefill by prompt length, decode by depth of the "
        "context, and how\n"
        "evenly tokens come; says what share of the bandwidth decode reaches, and if the machine "
        "was noisy.\n",
        groups,
        2,
        1,
        1};
    static bench b; // large
    int result = options_parse(&line, argc, argv, &b.path);
    if (result == OPTIONS_GO_ON) result = read_request(&b.request, &options);
    if (result != OPTIONS_GO_ON) return result;
    interrupt_catch();
    result = session_open_model(&b.session, b.path, &engine, SESSION_WEIGHTS);
    if (result == APP_OK) result = open_engine(&b, &engine);
    if (result == APP_OK) result = bench_init(&b);
    if (result == APP_OK) result = bench_measure(&b);
    if (result == APP_OK) result = report(&b, &options);
    bench_free(&b);
    session_close(&b.session);
    return result;
}
