// SPDX-License-Identifier: MIT
//
// Whole characters out of pieces that may end in the middle of one. Invariant: `held` is a proper prefix of a character
// that further bytes can still complete; it never holds more than three bytes.
#include "base/utf8.h"
#include "text/tokenizer.h"

#define REPLACEMENT "\xef\xbf\xbd"

// Whether some bytes after `s` could make it a character. It is enough to try the extremes of a continuation byte.
static bool may_become_character(const char *s, size_t n) {
    for (int fill = 0x80; fill <= 0xbf; fill += 0x3f) {
        char whole[4];
        memset(whole, fill, sizeof whole);
        memcpy(whole, s, n);
        uint32_t cp;
        if (sl_utf8_decode(&cp, whole, sizeof whole) > n) return true;
    }
    return false;
}

static size_t put(char *out, const char *data, size_t n_bytes) {
    memcpy(out, data, n_bytes);
    return n_bytes;
}

// Hands out what is decided; returns the bytes written.
static size_t drain(sl_utf8_stream *stream, char *out) {
    size_t n_out = 0, used = 0;
    const char *held = (const char *)stream->held;
    while (used < stream->n_held) {
        uint32_t cp;
        size_t n = sl_utf8_decode(&cp, held + used, stream->n_held - used);
        if (n == 0 && may_become_character(held + used, stream->n_held - used)) break;
        if (n > 0) {
            n_out += put(out + n_out, held + used, n);
            used += n;
        } else { // the longest hopeful prefix becomes one U+FFFD (Unicode's recommended practice)
            for (n = stream->n_held - used - 1; n > 1 && !may_become_character(held + used, n);) n--;
            n_out += put(out + n_out, REPLACEMENT, 3);
            used += SL_MAX(n, (size_t)1);
        }
    }
    memmove(stream->held, stream->held + used, stream->n_held - used);
    stream->n_held = (uint8_t)(stream->n_held - used);
    return n_out;
}

size_t sl_utf8_stream_push(sl_utf8_stream *stream, char *out, sl_span piece) {
    size_t n_out = 0;
    for (size_t i = 0; i < piece.n_bytes; i++) {
        stream->held[stream->n_held++] = (uint8_t)piece.data[i];
        n_out += drain(stream, out + n_out);
    }
    return n_out;
}

size_t sl_utf8_stream_finish(sl_utf8_stream *stream, char *out) {
    size_t n_out = stream->n_held > 0 ? put(out, REPLACEMENT, 3) : 0;
    stream->n_held = 0;
    return n_out;
}
