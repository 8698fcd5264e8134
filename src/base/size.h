// SPDX-License-Identifier: MIT
//
// Checked arithmetic for every size that comes from a file or a socket. Each returns false on overflow and
// then leaves *out at 0.
#ifndef SL_BASE_SIZE_H
#define SL_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

SL_MUST_CHECK static inline bool sl_size_add(uint64_t *out, uint64_t a, uint64_t b) {
    if (__builtin_add_overflow(a, b, out)) return *out = 0, false;
    return true;
}

SL_MUST_CHECK static inline bool sl_size_mul(uint64_t *out, uint64_t a, uint64_t b) {
    if (__builtin_mul_overflow(a, b, out)) return *out = 0, false;
    return true;
}

// Rounds up to a multiple of `align`, a power of two.
SL_MUST_CHECK static inline bool sl_size_align(uint64_t *out, uint64_t a, uint64_t align) {
    if (!sl_size_add(out, a, align - 1)) return false;
    *out &= ~(align - 1);
    return true;
}

// For sizes already known to be small (our own layouts).
static inline size_t sl_round_up(size_t a, size_t align) { return (a + align - 1) / align * align; }

#endif
