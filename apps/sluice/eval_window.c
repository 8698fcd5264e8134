// SPDX-License-Identifier: MIT
//
// Windows of a text, and sums over them.
#include "eval_window.h"

#include <math.h>
#include <stdlib.h>

#include "files.h"

int window_ids(int32_t **ids, size_t *n_ids, const session *s, const char *path, size_t n_ctx) {
    text source;
    *ids = NULL, *n_ids = 0;
    if (!s->model_info.has_tokenizer) return app_fail("the model has no tokenizer, so no text can be measured");
    int result = file_read(&source, path);
    if (result == APP_OK) result = session_encode(s, ids, n_ids, source.data, source.n, SLUICE_ADD_BOS);
    text_free(&source);
    if (result == APP_OK && *n_ids < n_ctx)
        result = app_fail("%s: has %zu tokens, less than one window of %zu", path, *n_ids, n_ctx);
    return result;
}

size_t window_rows(sluice_row *rows, size_t n_max, const sluice_model_info *m, const int32_t *ids, size_t n_ctx,
                   size_t at) {
    size_t n_left = n_ctx - 1 - at, n = n_left < n_max ? n_left : n_max; // the last token predicts nothing
    for (size_t i = 0; i < n; i++) {
        int32_t id = at + i == 0 && m->adds_bos ? m->bos : ids[at + i];
        rows[i] = (sluice_row){id, 0, (int32_t)(at + i), at + i >= n_ctx / 2};
    }
    return n;
}

void window_sum_add(window_sum *s, double value) { s->sum += value, s->sum_squares += value * value, s->n++; }

double window_sum_mean(const window_sum *s) { return s->n ? s->sum / (double)s->n : 0; }

double window_sum_error(const window_sum *s) {
    double mean = window_sum_mean(s);
    if (s->n < 2) return 0;
    return sqrt(fmax(s->sum_squares / (double)s->n - mean * mean, 0) / (double)(s->n - 1));
}
