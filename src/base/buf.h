// SPDX-License-Identifier: MIT
//
// A growing byte string for prints, JSON and rendered prompts. A failed append is remembered, so that a caller can
// write a whole text and ask once. Never used inside a step.
#ifndef SL_BASE_BUF_H
#define SL_BASE_BUF_H

#include "base/alloc.h"
#include "base/span.h"

typedef struct sl_buf {
    char *data;     // owned, NUL-terminated when not NULL
    size_t n_bytes; // without the NUL
    size_t cap_bytes;
    size_t max_bytes; // 0 = no bound; appending past it fails with SL_FULL
    sl_status status; // the first failure; later appends do nothing
} sl_buf;             // zero-initialised is empty

void sl_buf_append(sl_buf *buf, const char *data, size_t n_bytes);
void sl_buf_text(sl_buf *buf, const char *text);
void sl_buf_printf(sl_buf *buf, const char *fmt, ...) SL_PRINTF(2, 3);

// `text` as a JSON string with quotes; invalid UTF-8 becomes U+FFFD, so the result is always valid JSON.
void sl_buf_json(sl_buf *buf, sl_span text);

// Hands the text over (owned by the caller, sl_free) and empties the buffer; *out is NULL on failure.
sl_status sl_buf_take(sl_buf *buf, char **out, size_t *out_bytes);
void sl_buf_deinit(sl_buf *buf);

#endif
