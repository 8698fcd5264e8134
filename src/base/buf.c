// SPDX-License-Identifier: MIT
#include "base/buf.h"

#include <stdarg.h>

#include "base/utf8.h"

static bool reserve(sl_buf *buf, size_t more) {
    if (buf->status != SL_OK) return false;
    if (buf->max_bytes && more > buf->max_bytes - buf->n_bytes) {
        buf->status = SL_FAIL(SL_FULL, "the text is longer than %zu bytes", buf->max_bytes);
        return false;
    }
    size_t need = buf->n_bytes + more + 1;
    if (need <= buf->cap_bytes) return true;
    size_t cap = SL_MAX(need, buf->cap_bytes * 2 + 64);
    buf->status = sl_realloc(&buf->data, buf->cap_bytes, cap, 1, "text buffer");
    if (buf->status != SL_OK) return false;
    buf->cap_bytes = cap;
    return true;
}

void sl_buf_append(sl_buf *buf, const char *data, size_t n_bytes) {
    if (!reserve(buf, n_bytes)) return;
    if (n_bytes) memcpy(buf->data + buf->n_bytes, data, n_bytes);
    buf->n_bytes += n_bytes;
    buf->data[buf->n_bytes] = 0;
}

void sl_buf_text(sl_buf *buf, const char *text) { sl_buf_append(buf, text, strlen(text)); }

void sl_buf_printf(sl_buf *buf, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !reserve(buf, (size_t)n)) return;
    va_start(ap, fmt);
    vsnprintf(buf->data + buf->n_bytes, (size_t)n + 1, fmt, ap);
    va_end(ap);
    buf->n_bytes += (size_t)n;
}

void sl_buf_json(sl_buf *buf, sl_span text) {
    sl_buf_text(buf, "\"");
    for (size_t i = 0; i < text.n_bytes;) {
        uint32_t cp;
        size_t n = sl_utf8_decode(&cp, text.data + i, text.n_bytes - i);
        if (n == 0) {
            sl_buf_text(buf, "\xef\xbf\xbd");
            i++;
            continue;
        }
        if (cp == '"' || cp == '\\') sl_buf_printf(buf, "\\%c", (int)cp);
        else if (cp == '\n') sl_buf_text(buf, "\\n");
        else if (cp < 0x20 || cp == 0x7f) sl_buf_printf(buf, "\\u%04x", (unsigned)cp);
        else sl_buf_append(buf, text.data + i, n);
        i += n;
    }
    sl_buf_text(buf, "\"");
}

sl_status sl_buf_take(sl_buf *buf, char **out, size_t *out_bytes) {
    *out = NULL;
    if (out_bytes) *out_bytes = 0;
    sl_buf_append(buf, "", 0); // an empty text is still a text
    sl_status status = buf->status;
    if (status == SL_OK) {
        *out = buf->data;
        if (out_bytes) *out_bytes = buf->n_bytes;
        buf->data = NULL;
    }
    sl_buf_deinit(buf);
    return status;
}

void sl_buf_deinit(sl_buf *buf) {
    sl_free(buf->data);
    *buf = (sl_buf){.max_bytes = buf->max_bytes};
}
