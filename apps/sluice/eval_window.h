// SPDX-License-Identifier: MIT
//
// A text in windows, as llama-perplexity takes them, so that figures compare: of n_ctx tokens, without overlap; the
// first token of each is replaced by BOS if the model adds one; the predictions that the second half makes are scored;
// a last window that is not full is dropped.
#ifndef SLUICE_EVAL_WINDOW_H
#define SLUICE_EVAL_WINDOW_H

#include "session.h"

enum { WINDOW_LENGTH = 512, WINDOW_MIN = 4 }; // what --ctx is if it is not given; its least

// The ids of a file, one window of them at least. *ids is the caller's to free().
int window_ids(int32_t **ids, size_t *n_ids, const session *s, const char *path, size_t n_ctx);

// The rows of a step, n_max at most, that begins at position `at` of the window that is at ids; 0: it is at its end. A
// row that wants logits predicts ids[row.pos + 1].
size_t window_rows(sluice_row *rows, size_t n_max, const sluice_model_info *m, const int32_t *ids, size_t n_ctx,
                   size_t at);

// The figures of a value that was taken many times.
typedef struct window_sum {
    double sum, sum_squares;
    size_t n;
} window_sum;
void window_sum_add(window_sum *s, double value);
double window_sum_mean(const window_sum *s);
double window_sum_error(const window_sum *s); // of the mean: its standard error

#endif
