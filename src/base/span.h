// SPDX-License-Identifier: MIT
//
// A borrowed run of bytes: pointer and length, never NUL-terminated, never owned.
#ifndef SL_BASE_SPAN_H
#define SL_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct sl_span {
    const char *data; // borrowed; may be NULL if n_bytes is 0
    size_t n_bytes;
} sl_span;

static inline sl_span sl_span_of(const char *text) { return (sl_span){text, strlen(text)}; }

static inline sl_span sl_span_make(const char *data, size_t n_bytes) { return (sl_span){data, n_bytes}; }

static inline bool sl_span_equal(sl_span a, sl_span b) {
    return a.n_bytes == b.n_bytes && (a.n_bytes == 0 || memcmp(a.data, b.data, a.n_bytes) == 0);
}

static inline bool sl_span_is(sl_span a, const char *text) { return sl_span_equal(a, sl_span_of(text)); }

// FNV-1a, 64 bit (Fowler, Noll, Vo); for hash tables over trusted sizes.
static inline uint64_t sl_span_hash(sl_span s) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < s.n_bytes; i++) h = (h ^ (unsigned char)s.data[i]) * 1099511628211u;
    return h;
}

#endif
