// SPDX-License-Identifier: MIT
//
// sluice eval logits: the logits of a sequence of ids, for comparison with other programs.
#include <stdlib.h>

#include "eval.h"
#include "files.h"
#include "interrupt.h"
#include "npy.h"
#include "progress.h"
#include "session.h"
#include "token_ids.h"

typedef struct logits_options {
    const char *ids_path, *out_path;
} logits_options;

static const option logits_table[] = {
    {0, "ids", OPTION_TEXT, offsetof(logits_options, ids_path), "FILE.json", 0, 0,
     "[id, ...] or {\"ids\": [...]} (-: standard input)"},
    {0, "out", OPTION_TEXT, offsetof(logits_options, out_path), "F.npy", 0, 0, "where to write the array"},
};

static int write_logits(new_file *f, session *s, const int32_t *ids, size_t n_ids) {
    size_t n_vocab = (size_t)s->model_info.n_vocab, n_chunk = (size_t)s->engine_info.n_row_max;
    sluice_row *rows = calloc(n_chunk, sizeof *rows);
    if (!rows) return app_fail("out of memory");
    progress bar;
    progress_start(&bar, "logits");
    int result = APP_OK;
    for (size_t at = 0; at < n_ids && result == APP_OK; at += n_chunk) {
        size_t n = n_ids - at < n_chunk ? n_ids - at : n_chunk;
        for (size_t i = 0; i < n; i++) rows[i] = (sluice_row){ids[at + i], 0, (int32_t)(at + i), true};
        sluice_status status = sluice_step(s->engine, rows, n);
        if (status == SLUICE_OK && progress_update(&bar, at + n, n_ids)) status = SLUICE_CANCELLED;
        if (status != SLUICE_OK) progress_end(&bar), result = app_fail_library(status);
        for (size_t i = 0; i < n && result == APP_OK; i++) {
            result = new_file_write(f, sluice_logits(s->engine, i), n_vocab * sizeof(float));
        }
    }
    progress_end(&bar);
    free(rows);
    return result;
}

static int evaluate(session *s, session_options *engine, const logits_options *options) {
    int32_t *ids = NULL;
    size_t n_ids = 0;
    new_file f = {0};
    int result = token_ids_read(&ids, &n_ids, options->ids_path, s->model_info.n_vocab);
    if (result == APP_OK && engine->n_ctx && n_ids > (size_t)engine->n_ctx && !engine->ctx_window) {
        result = app_fail("there are %zu ids but the context holds %d; raise --ctx, or let it move on (--ctx-window)",
                          n_ids, (int)engine->n_ctx);
    }
    if (result == APP_OK) {
        if (!engine->n_ctx) engine->n_ctx = (int32_t)n_ids; // no more than is needed
        if (!engine->n_chunk) engine->n_chunk = EVAL_CHUNK;
        result = session_open_engine(s, engine, engine->n_chunk);
    }
    if (result == APP_OK) result = new_file_open(&f, options->out_path);
    if (result == APP_OK) result = npy_write_head(&f, n_ids, (size_t)s->model_info.n_vocab);
    if (result == APP_OK) result = write_logits(&f, s, ids, n_ids);
    if (result == APP_OK) result = new_file_commit(&f);
    new_file_abandon(&f);
    free(ids);
    return result;
}

int eval_logits(int argc, char **argv) {
    logits_options options = {0};
    session_options engine = {0};
    const option_group groups[] = {
        {"options", logits_table, 2, &options},
        {"engine", session_engine_options, sizeof session_engine_options / sizeof *session_engine_options, &engine},
        {"model", session_model_options, 2, &engine},
    };
    const command_line line = {"sluice eval logits MODEL --ids FILE.json --out F.npy [options]",
                               "Writes the logits after each token of a sequence as a float32 numpy array of shape (n, "
                               "n_vocab). The ids\n"
                               "are taken as they are: no BOS is added. The file appears when it is complete.\n",
                               groups,
                               3,
                               1,
                               1};
    const char *path;
    int result = options_parse(&line, argc, argv, &path);
    if (result != OPTIONS_GO_ON) return result;
    if (!options.ids_path || !options.out_path) return app_usage("--ids and --out are needed; usage: %s", line.usage);
    interrupt_catch();
    session s;
    result = session_open_model(&s, path, &engine, SESSION_WEIGHTS);
    if (result == APP_OK) result = evaluate(&s, &engine, &options);
    session_close(&s);
    return result;
}
