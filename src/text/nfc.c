// SPDX-License-Identifier: MIT
//
// Decompose, order the marks, compose. utf8proc has the data and composes, but it orders the marks of one base by
// insertion: a megabyte of marks would take it hours. Here a long run is sorted by counting.
#include "text/nfc.h"

#include <utf8proc.h>

#include "base/utf8.h"

enum { MAX_DECOMPOSED = 4, SHORT_RUN = 16 };

static const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;

static int mark_class(int32_t cp) { return utf8proc_get_property(cp)->combining_class; }

static sl_status decompose(int32_t **out, size_t *n_out, sl_span text) {
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < text.n_bytes;) {
        if (n + MAX_DECOMPOSED > cap) {
            size_t more = SL_MAX(2 * cap, text.n_bytes / 2 + 64);
            SL_TRY(sl_realloc(out, cap, more, sizeof **out, "text to normalise"));
            cap = more;
        }
        uint32_t cp;
        int boundary = 0;
        i += sl_utf8_decode(&cp, text.data + i, text.n_bytes - i);
        utf8proc_ssize_t room = (utf8proc_ssize_t)(cap - n);
        utf8proc_ssize_t got = utf8proc_decompose_char((int32_t)cp, *out + n, room, options, &boundary);
        if (got < 0 || got > MAX_DECOMPOSED) return SL_FAIL(SL_INTERNAL, "cannot decompose U+%04X", (unsigned)cp);
        n += (size_t)got;
    }
    *n_out = n;
    return SL_OK;
}

static void sort_short(int32_t *cp, size_t n) {
    for (size_t i = 1; i < n; i++) {
        int32_t mark = cp[i];
        size_t at = i;
        for (; at > 0 && mark_class(cp[at - 1]) > mark_class(mark); at--) cp[at] = cp[at - 1];
        cp[at] = mark;
    }
}

static sl_status sort_long(int32_t *cp, size_t n) {
    int32_t *sorted;
    size_t start[257] = {0};
    SL_TRY(sl_alloc(&sorted, n, sizeof *sorted, "marks to order"));
    for (size_t i = 0; i < n; i++) start[mark_class(cp[i]) + 1]++;
    for (int c = 0; c < 256; c++) start[c + 1] += start[c];
    for (size_t i = 0; i < n; i++) sorted[start[mark_class(cp[i])]++] = cp[i];
    memcpy(cp, sorted, n * sizeof *cp);
    sl_free(sorted);
    return SL_OK;
}

// Stable by class within each run of marks (Unicode's canonical ordering).
static sl_status order_marks(int32_t *cp, size_t n) {
    for (size_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && mark_class(cp[end]) != 0;) end++;
        if (end - i > SHORT_RUN) SL_TRY(sort_long(cp + i, end - i));
        else sort_short(cp + i, end - i);
    }
    return SL_OK;
}

sl_status sl_nfc(char **out, size_t *n_out, sl_span text) {
    int32_t *cp = NULL;
    size_t n = 0;
    sl_status status;
    *out = NULL, *n_out = 0;
    SL_TRY_OUT(decompose(&cp, &n, text));
    SL_TRY_OUT(order_marks(cp, n));
    utf8proc_ssize_t n_composed = utf8proc_normalize_utf32(cp, (utf8proc_ssize_t)n, options);
    if (n_composed < 0) SL_TRY_OUT(SL_FAIL(SL_INTERNAL, "cannot compose text: %s", utf8proc_errmsg(n_composed)));
    SL_TRY_OUT(sl_alloc(out, (size_t)n_composed, 4, "normalised text"));
    for (size_t i = 0; i < (size_t)n_composed; i++) *n_out += sl_utf8_encode(*out + *n_out, (uint32_t)cp[i]);
out:
    sl_free(cp);
    return status;
}
