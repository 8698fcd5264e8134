// SPDX-License-Identifier: MIT
//
// sluice eval ppl: perplexity, in llama-perplexity's windows.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "eval_window.h"
#include "files.h"
#include "interrupt.h"
#include "progress.h"

typedef struct ppl_options {
    bool json;
} ppl_options;

static const option ppl_table[] = {
    {0, "json", OPTION_FLAG, offsetof(ppl_options, json), NULL, 0, 0, "as one JSON object"},
};

// Adds the negative log-likelihoods of one window.
static sluice_status score_window(window_sum *score, session *s, const int32_t *ids, size_t n, sluice_row *rows) {
    size_t n_chunk = (size_t)s->engine_info.n_row_max, n_row;
    sluice_status status = sluice_seq_truncate(s->engine, 0, 0);
    for (size_t at = 0; status == SLUICE_OK; at += n_row) {
        size_t n_logit = 0;
        n_row = window_rows(rows, n_chunk, &s->model_info, ids, n, at);
        if (n_row == 0) break;
        status = sluice_step(s->engine, rows, n_row);
        for (size_t i = 0; i < n_row && status == SLUICE_OK; i++) {
            if (!rows[i].wants_logits) continue;
            float logprob;
            sluice_top_logprobs(sluice_logits(s->engine, n_logit++), (size_t)s->model_info.n_vocab, 0, NULL, NULL,
                                ids[at + i + 1], &logprob);
            window_sum_add(score, -(double)logprob);
        }
    }
    return status;
}

static int print_ppl(const window_sum *score, size_t n_ids, size_t n_window, bool json) {
    double ppl = exp(window_sum_mean(score)), error = ppl * window_sum_error(score);
    char line[256];
    if (!isfinite(ppl)) return app_fail("the perplexity is not a finite number");
    if (json) {
        snprintf(line, sizeof line,
                 "{\"ppl\": %.6f, \"stderr\": %.6f, \"tokens\": %zu, \"windows\": %zu, \"scored\": "
                 "%zu}\n",
                 ppl, error, n_ids, n_window, score->n);
    } else {
        snprintf(line, sizeof line, "perplexity %.4f +- %.4f (%zu windows, %zu of %zu tokens scored)\n", ppl, error,
                 n_window, score->n, n_ids);
    }
    return out_write(line, strlen(line));
}

static int score_text(session *s, const int32_t *ids, size_t n_ids, bool json) {
    size_t n_ctx = (size_t)s->engine_info.n_ctx, n_window = n_ids / n_ctx;
    sluice_row *rows = calloc((size_t)s->engine_info.n_row_max, sizeof *rows);
    if (!rows) return app_fail("out of memory");
    window_sum score = {0};
    progress bar;
    progress_start(&bar, "perplexity");
    sluice_status status = SLUICE_OK;
    for (size_t w = 0; w < n_window && status == SLUICE_OK; w++) {
        status = score_window(&score, s, ids + w * n_ctx, n_ctx, rows);
        if (status == SLUICE_OK && progress_update(&bar, w + 1, n_window)) status = SLUICE_CANCELLED;
    }
    progress_end(&bar);
    free(rows);
    return status == SLUICE_OK ? print_ppl(&score, n_ids, n_window, json) : app_fail_library(status);
}

static int evaluate(session *s, session_options *engine, const char *text_path, bool json) {
    int32_t *ids = NULL;
    size_t n_ids = 0;
    if (!engine->n_ctx) engine->n_ctx = WINDOW_LENGTH;
    if (!engine->n_chunk) engine->n_chunk = EVAL_CHUNK;
    if (engine->n_ctx < WINDOW_MIN) return app_usage("--ctx must be at least 4: a window that can be halved");
    int result = window_ids(&ids, &n_ids, s, text_path, (size_t)engine->n_ctx);
    if (result == APP_OK) result = session_open_engine(s, engine, engine->n_chunk);
    if (result == APP_OK) result = score_text(s, ids, n_ids, json);
    free(ids);
    return result;
}

int eval_ppl(int argc, char **argv) {
    ppl_options options = {0};
    session_options engine = {0};
    const option_group groups[] = {
        {"options", ppl_table, 1, &options},
        {"engine", session_engine_options, sizeof session_engine_options / sizeof *session_engine_options, &engine},
        {"model", session_model_options, 2, &engine},
    };
    const command_line line = {"sluice eval ppl MODEL FILE [options]",
                               "Prints the perplexity of a text. --ctx is the window (512). In "
                               "each window the predictions of the second\n"
                               "half are scored, as llama-perplexity does it.\n",
                               groups,
                               3,
                               2,
                               2};
    const char *operands[2];
    int result = options_parse(&line, argc, argv, operands);
    if (result != OPTIONS_GO_ON) return result;
    interrupt_catch();
    session s;
    result = session_open_model(&s, operands[0], &engine, SESSION_WEIGHTS);
    if (result == APP_OK) result = evaluate(&s, &engine, operands[1], options.json);
    session_close(&s);
    return result;
}
