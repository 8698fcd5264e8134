// SPDX-License-Identifier: MIT
//
// SentencePiece writes a space as U+2581 and does not tell the two apart.
#ifndef SL_TEXT_SPACE_MARK_H
#define SL_TEXT_SPACE_MARK_H

#include "base/span.h"

#define SL_SPACE_MARK "\xe2\x96\x81"
enum { SL_SPACE_MARK_BYTES = 3 };

// Spaces to marks; `out` holds 3 * text.n_bytes. Returns the length.
static inline size_t sl_space_mark_escape(char *out, sl_span text) {
    char *start = out;
    for (size_t i = 0; i < text.n_bytes; i++) {
        if (text.data[i] == ' ') memcpy(out, SL_SPACE_MARK, SL_SPACE_MARK_BYTES), out += SL_SPACE_MARK_BYTES;
        else *out++ = text.data[i];
    }
    return (size_t)(out - start);
}

// Marks to spaces; `out` holds text.n_bytes. Returns the length.
static inline size_t sl_space_mark_unescape(char *out, sl_span text) {
    char *start = out;
    for (size_t i = 0; i < text.n_bytes;) {
        bool mark = text.n_bytes - i >= SL_SPACE_MARK_BYTES && memcmp(text.data + i, SL_SPACE_MARK, 3) == 0;
        *out++ = mark ? ' ' : text.data[i];
        i += mark ? SL_SPACE_MARK_BYTES : 1;
    }
    return (size_t)(out - start);
}

#endif
