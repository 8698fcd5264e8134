// SPDX-License-Identifier: MIT
//
// sluice imatrix: which columns of a model's matrices matter, for sluice quantize --imatrix. The text is read in
// windows without overlap; the first token of each is replaced by BOS if the model adds one, and a last window that is
// not full is dropped, as llama-imatrix does it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "interrupt.h"
#include "progress.h"
#include "session.h"

typedef struct imatrix_options {
    const char *out;
    int32_t n_window;
    bool json;
} imatrix_options;

#define AT(field) offsetof(imatrix_options, field)
static const option imatrix_table[] = {
    {'o', "out", OPTION_TEXT, AT(out), "FILE", 0, 0, "where the matrix goes (default: imatrix.gguf)"},
    {0, "chunks", OPTION_INT, AT(n_window), "N", 1, 1e9, "windows to read at most (default: the whole text)"},
    {0, "json", OPTION_FLAG, AT(json), NULL, 0, 0, "what was done, as one JSON object"},
};

// Rows of a step: what the layers read in it is kept.
enum { CHUNK = 64, WINDOW = 512 };

static sluice_status collect(sluice_imatrix *im, const session *s, int32_t *ids, size_t n_window, size_t n_ctx) {
    sluice_status status = SLUICE_OK;
    progress bar;
    progress_start(&bar, "importance");
    for (size_t w = 0; w < n_window && status == SLUICE_OK; w++) {
        if (s->model_info.adds_bos) ids[w * n_ctx] = s->model_info.bos;
        status = sluice_imatrix_add(im, ids + w * n_ctx, n_ctx);
        if (status == SLUICE_OK && progress_update(&bar, w + 1, n_window)) status = SLUICE_CANCELLED;
    }
    progress_end(&bar);
    return status;
}

static int report(const imatrix_options *o, size_t n_window, size_t n_ctx, double ms) {
    char line[160];
    if (o->json)
        snprintf(line, sizeof line, "{\"windows\": %zu, \"tokens\": %zu, \"seconds\": %.3f}\n", n_window,
                 n_window * n_ctx, ms / 1e3);
    else snprintf(line, sizeof line, "%zu windows of %zu tokens in %.1f s\n", n_window, n_ctx, ms / 1e3);
    return out_write(line, strlen(line));
}

static int make(session *s, const session_options *engine, const imatrix_options *o, const char *text_path,
                int32_t *ids, size_t n_ids) {
    sluice_engine_options options = session_get_engine_options(engine);
    size_t n_ctx = (size_t)options.n_ctx, n_window = n_ids / n_ctx;
    double start_ms = app_now_ms();
    if (n_window == 0) return app_fail("%s: has %zu tokens, less than one window of %zu", text_path, n_ids, n_ctx);
    if (o->n_window && (size_t)o->n_window < n_window) n_window = (size_t)o->n_window;
    sluice_imatrix *im;
    sluice_status status = sluice_imatrix_create(&im, s->model, &options);
    if (status == SLUICE_OK) status = collect(im, s, ids, n_window, n_ctx);
    if (status == SLUICE_OK) status = sluice_imatrix_write(im, o->out, text_path);
    int result = status == SLUICE_OK ? report(o, n_window, n_ctx, app_now_ms() - start_ms) : app_fail_library(status);
    sluice_imatrix_destroy(&im);
    return result;
}

static int make_of_text(session *s, const session_options *engine, const imatrix_options *o, const char *text_path) {
    text source;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    int result = file_read(&source, text_path);
    if (result == APP_OK) result = session_encode(s, &ids, &n_ids, source.data, source.n, SLUICE_ADD_BOS);
    text_free(&source);
    if (result == APP_OK) result = make(s, engine, o, text_path, ids, n_ids);
    free(ids);
    return result;
}

int cmd_imatrix(int argc, char **argv) {
    imatrix_options options = {.out = "imatrix.gguf"};
    session_options engine = {0};
    const option_group groups[] = {
        {"options", imatrix_table, sizeof imatrix_table / sizeof *imatrix_table, &options},
        {"engine", session_engine_options, sizeof session_engine_options / sizeof *session_engine_options, &engine},
        {"model", session_model_options, 2, &engine},
    };
    const command_line line = {"sluice imatrix MODEL FILE [options]",
                               "Runs MODEL over the text of FILE and writes how large the inputs of each weight matrix "
                               "are, column by\ncolumn. sluice quantize --imatrix (and llama-quantize) then keep more "
                               "of what matters. Best with the model\nat 16 bits, and some 100 windows of the kind of "
                               "text that it is for. --ctx is the window (512).\n",
                               groups,
                               3,
                               2,
                               2};
    const char *operands[2];
    int result = options_parse(&line, argc, argv, operands);
    if (result != OPTIONS_GO_ON) return result;
    if (!engine.n_ctx) engine.n_ctx = WINDOW;
    if (!engine.n_chunk) engine.n_chunk = CHUNK;
    interrupt_catch();
    session s;
    result = session_open_model(&s, operands[0], &engine, SESSION_WEIGHTS);
    if (result == APP_OK && !s.model_info.has_tokenizer) result = app_fail("%s: has no tokenizer", operands[0]);
    if (result == APP_OK) result = make_of_text(&s, &engine, &options, operands[1]);
    session_close(&s);
    return result;
}
