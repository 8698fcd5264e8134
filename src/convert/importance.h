// SPDX-License-Identifier: MIT
//
// Importance matrices: for each weight matrix the mean square of its input, column by column, over some text. Read from
// GGUF (general.type "imatrix": NAME.in_sum2 and NAME.counts, as llama-imatrix and sluice imatrix write it) and from
// the older .dat form. Hostile bytes are refused; memory taken is proportional to the file.
#ifndef SL_CONVERT_IMPORTANCE_H
#define SL_CONVERT_IMPORTANCE_H

#include "base/span.h"
#include "base/status.h"

typedef struct sl_importance sl_importance;

sl_status sl_importance_open(sl_importance **out, const char *path);
// Parses bytes; nothing of them is needed afterwards.
sl_status sl_importance_parse(sl_importance **out, const uint8_t *data, size_t n_bytes);
void sl_importance_close(sl_importance *importance); // NULL is fine

size_t sl_importance_n(const sl_importance *importance); // matrices

// The matrix's values, (n_mat, n_col): positive, of mean 1 in each row; borrowed. *n is their number. NULL if the file
// has none of this name.
const float *sl_importance_find(const sl_importance *importance, sl_span name, uint64_t *n);

#endif
