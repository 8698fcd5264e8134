// SPDX-License-Identifier: MIT
//
// sluice eval kv: all types of the KV cache on one model and one text. An engine of each type takes every step in turn,
// so that their laws are compared token by token, with those of f16 at hand, and none is computed twice. They share the
// mapped weights.
#include "eval_kv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "eval_law.h"
#include "interrupt.h"
#include "progress.h"

typedef struct kv_options {
    const char *types, *html;
    int32_t n_window;
    bool json;
} kv_options;

#define AT(field) offsetof(kv_options, field)
static const option kv_option_table[] = {
    {0, "types", OPTION_TEXT, AT(types), "T,K/V..", 0, 0,
     "what to measure beside f16 (q8_0,q5_0,q8_0/q4_0,q4_0); K/V: one type for K, one for V"},
    {0, "windows", OPTION_INT, AT(n_window), "N", 0, INT32_MAX, "of the text, at most (0: all)"},
    {0, "json", OPTION_FLAG, AT(json), NULL, 0, 0, "as one JSON object"},
    {0, "html", OPTION_TEXT, AT(html), "FILE", 0, 0, "also write a report with a chart"},
};

// ---- the list of types ----------------------------------------------------------------------------------------------

static bool copy_name(char out[KV_NAME], const char *name, size_t n) {
    if (n == 0 || n >= KV_NAME) return false;
    memcpy(out, name, n);
    out[n] = '\0';
    return strspn(out, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

// "q8_0" or "q8_0/q4_0", n bytes of it.
static int add_type(kv_table *t, const char *name, size_t n) {
    if (t->n == KV_MAX) return app_usage("--types has more than %d types", KV_MAX - 1);
    kv_type *type = &t->type[t->n];
    const char *slash = memchr(name, '/', n);
    size_t n_k = slash ? (size_t)(slash - name) : n;
    if (n >= sizeof type->name || !copy_name(type->k, name, n_k) ||
        !copy_name(type->v, slash ? slash + 1 : name, slash ? n - n_k - 1 : n))
        return app_usage("--types must be types like q8_0, or q8_0/q4_0 for K and V apart, with commas between");
    memcpy(type->name, name, n), type->name[n] = '\0';
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->type[i].name, type->name) == 0)
            return i ? app_usage("--types has %s twice", type->name) : OPTIONS_GO_ON; // f16 is there already
    t->n++;
    return OPTIONS_GO_ON;
}

static int parse_types(kv_table *t, const char *list) {
    int result = add_type(t, "f16", 3);
    for (const char *at = list; result == OPTIONS_GO_ON;) {
        size_t n = strcspn(at, ",");
        result = add_type(t, at, n);
        if (!at[n]) break;
        at += n + 1;
    }
    return result;
}

// ---- measuring ------------------------------------------------------------------------------------------------------

static sluice_status open_engine(kv_type *type, const sluice_model *model, sluice_engine_options e) {
    sluice_engine_info info = {0};
    e.kv_k = type->k, e.kv_v = type->v;
    sluice_status status = sluice_engine_create(&type->engine, model, &e);
    if (status == SLUICE_OK) status = sluice_engine_get_info(type->engine, &info);
    type->position_bytes = info.kv_position_bytes;
    return status;
}

// What a model cannot have is left out, unless it was asked for.
static int open_engines(kv_table *t, const session_options *options, bool asked) {
    sluice_engine_options e = session_get_engine_options(options);
    e.n_ctx = (int32_t)t->n_ctx, e.n_row_max = e.n_logit_max = (int32_t)t->n_chunk;
    if (!options->repack) e.repack = SLUICE_REPACK_OFF; // or each engine would have its own copy
    for (size_t i = 0; i < t->n;) {
        sluice_status status = open_engine(&t->type[i], t->session.model, e);
        if (status == SLUICE_OK) {
            i++;
        } else if (status == SLUICE_UNSUPPORTED && i > 0 && !asked) {
            app_note("%s is left out: %s", t->type[i].name, sluice_last_error());
            memmove(&t->type[i], &t->type[i + 1], (--t->n - i) * sizeof *t->type);
        } else {
            return app_fail_library(status);
        }
    }
    return APP_OK;
}

static void compare_row(kv_table *t, law *reference, size_t i_logit, int32_t next) {
    law_take(reference, sluice_logits(t->type[0].engine, i_logit));
    for (size_t i = 0; i < t->n; i++) {
        kv_type *type = &t->type[i];
        const float *logits = sluice_logits(type->engine, i_logit);
        law_gap gap = law_compare(reference, logits);
        double nll = gap.log_sum - (double)logits[next];
        window_sum_add(&type->nll, nll);
        window_sum_add(&type->more, nll - (reference->log_sum - (double)reference->logits[next]));
        series_push(&type->gap, gap.divergence);
        type->n_same += gap.same_best;
    }
}

static sluice_status measure_window(kv_table *t, law *reference, sluice_row *rows, const int32_t *ids) {
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; i < t->n && status == SLUICE_OK; i++) status = sluice_seq_truncate(t->type[i].engine, 0, 0);
    for (size_t at = 0, n_row; status == SLUICE_OK; at += n_row) {
        n_row = window_rows(rows, t->n_chunk, &t->session.model_info, ids, t->n_ctx, at);
        if (n_row == 0) break;
        for (size_t i = 0; i < t->n && status == SLUICE_OK; i++) {
            status = sluice_step(t->type[i].engine, rows, n_row);
            if (status == SLUICE_OK && interrupt_seen()) status = SLUICE_CANCELLED;
        }
        for (size_t i = 0, n_logit = 0; i < n_row && status == SLUICE_OK; i++)
            if (rows[i].wants_logits) compare_row(t, reference, n_logit++, ids[at + i + 1]);
    }
    return status;
}

static int measure(kv_table *t, const int32_t *ids) {
    law reference = {0};
    sluice_row *rows = calloc(t->n_chunk, sizeof *rows);
    int result = rows ? law_init(&reference, (size_t)t->session.model_info.n_vocab) : app_fail("out of memory");
    for (size_t i = 0; i < t->n && result == APP_OK; i++) result = series_init(&t->type[i].gap, t->n_window * t->n_ctx);
    progress bar;
    progress_start(&bar, "KV types");
    sluice_status status = SLUICE_OK;
    while (t->n_done < t->n_window && result == APP_OK && status == SLUICE_OK) {
        status = measure_window(t, &reference, rows, ids + t->n_done * t->n_ctx);
        if (status == SLUICE_OK) t->n_done++;
        if (status == SLUICE_OK && progress_update(&bar, t->n_done, t->n_window)) status = SLUICE_CANCELLED;
    }
    progress_end(&bar);
    law_free(&reference);
    free(rows);
    return status == SLUICE_OK ? result : app_fail_library(status);
}

// ---- what the figures say -------------------------------------------------------------------------------------------

double kv_bits(const kv_table *t, size_t i) {
    return 16.0 * (double)t->type[i].position_bytes / (double)t->type[0].position_bytes;
}
double kv_ppl(const kv_type *type) { return exp(window_sum_mean(&type->nll)); }
double kv_loss(const kv_type *type) { return expm1(window_sum_mean(&type->more)); }
double kv_loss_error(const kv_type *type) { return (1 + kv_loss(type)) * window_sum_error(&type->more); }
bool kv_is_safe(const kv_type *type) {
    return type->more.n >= KV_SCORED_MIN && kv_loss(type) + 2 * kv_loss_error(type) < KV_BOUND;
}

size_t kv_recommended(const kv_table *t) {
    size_t best = 0;
    for (size_t i = 1; i < t->n; i++)
        if (kv_is_safe(&t->type[i]) && kv_bits(t, i) < kv_bits(t, best)) best = i;
    return best;
}

// ---- the command ----------------------------------------------------------------------------------------------------

static int evaluate(kv_table *t, const session_options *engine, const kv_options *options) {
    int32_t *ids = NULL;
    size_t n_ids = 0;
    t->n_ctx = engine->n_ctx ? (size_t)engine->n_ctx : WINDOW_LENGTH;
    t->n_chunk = engine->n_chunk ? (size_t)engine->n_chunk : EVAL_CHUNK;
    int result = window_ids(&ids, &n_ids, &t->session, t->text_path, t->n_ctx);
    t->n_window = n_ids / t->n_ctx;
    if (options->n_window && t->n_window > (size_t)options->n_window) t->n_window = (size_t)options->n_window;
    if (result == APP_OK) result = open_engines(t, engine, options->types != NULL);
    if (result == APP_OK) result = measure(t, ids);
    if (result == APP_OK && !isfinite(kv_ppl(&t->type[0]))) result = app_fail("the perplexity is not a finite number");
    if (result == APP_OK && options->html) result = kv_write_page(t, options->html);
    if (result == APP_OK) result = options->json ? kv_print_json(t) : kv_print_table(t);
    for (size_t i = 0; i < t->n; i++) {
        sluice_engine_destroy(&t->type[i].engine);
        series_free(&t->type[i].gap);
    }
    free(ids);
    return result;
}

int eval_kv(int argc, char **argv) {
    kv_options options = {0};
    session_options engine = {0};
    const option_group groups[] = {
        {"options", kv_option_table, sizeof kv_option_table / sizeof *kv_option_table, &options},
        {"engine", session_engine_options, sizeof session_engine_options / sizeof *session_engine_options, &engine},
        {"model", session_model_options, 2, &engine},
    };
    const command_line line = {"sluice eval kv MODEL FILE [options]",
                               "Measures on a text what each type of the KV cache costs a model beside f16: perplexity "
                               "in windows as\n"
                               "sluice eval ppl has them, divergence of the laws, bits of a value. Recommends the "
                               "smallest type that costs\n"
                               "less than 1.5 % of the perplexity, also if the error is twice its standard error.\n",
                               groups,
                               3,
                               2,
                               2};
    static kv_table t; // large
    const char *operands[2];
    int result = options_parse(&line, argc, argv, operands);
    if (result == OPTIONS_GO_ON) result = parse_types(&t, options.types ? options.types : "q8_0,q5_0,q8_0/q4_0,q4_0");
    if (result != OPTIONS_GO_ON) return result;
    if (engine.n_ctx && engine.n_ctx < KV_WINDOW_MIN)
        return app_usage("--ctx must be at least %d: the cache has codes from the 33rd position on", KV_WINDOW_MIN);
    if (engine.kv || engine.kv_k || engine.kv_v)
        return app_usage("eval kv measures many types: --types in place of --kv, --kv-k and --kv-v");
    t.model_path = operands[0], t.text_path = operands[1];
    interrupt_catch();
    result = session_open_model(&t.session, t.model_path, &engine, SESSION_WEIGHTS);
    if (result == APP_OK) result = evaluate(&t, &engine, &options);
    session_close(&t.session);
    return result;
}
