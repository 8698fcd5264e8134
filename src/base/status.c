// SPDX-License-Identifier: MIT
//
// The thread-local reason of the last failure. Must not allocate: it reports allocation failures too.
#include "base/status.h"

#include <stdarg.h>
#include <string.h>

enum { ERROR_TEXT_BYTES = 1024 };
static SL_THREAD_LOCAL char error_text[ERROR_TEXT_BYTES];

sl_status sl_fail(sl_status code, const char *fmt, ...) {
    // The arguments may point into the old text, so format beside it first.
    char text[ERROR_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    memcpy(error_text, text, sizeof text);
    return code;
}

sl_status sl_fail_prefix(sl_status code, const char *fmt, ...) {
    char prefix[ERROR_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    return sl_fail(code, "%.300s: %.700s", prefix, error_text);
}

const char *sl_error_text(void) { return error_text; }

void sl_error_clear(void) { error_text[0] = 0; }

const char *sl_status_name(sl_status code) {
    static const char *const names[SL_STATUS_COUNT] = {
        "ok",   "bad argument", "out of memory", "input/output error", "bad file",       "unsupported",
        "full", "cancelled",    "bad input",     "device error",       "internal error",
    };
    return (unsigned)code < SL_STATUS_COUNT ? names[code] : "unknown status";
}

void sl_panic(const char *file, int line, const char *what) {
    fprintf(stderr, "sluice: internal error at %s:%d: %s\n", file, line, what);
    abort();
}
