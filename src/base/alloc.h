// SPDX-License-Identifier: MIT
//
// The only door to the heap. Counts every call, so that a test can prove that a sealed step makes none, and can
// be told to fail the n-th one. Thread-safe. Memory is zeroed.
#ifndef SL_BASE_ALLOC_H
#define SL_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// n * elem_bytes zeroed bytes (at least one), checked for overflow; *out is NULL on failure.
// `what` goes into the message. Owned by the caller, freed by sl_free.
sl_status sl_alloc(void *out, size_t n, size_t elem_bytes, const char *what);

// Grows *ptr (n_old elements) to n_new elements; new ones are zeroed. On failure *ptr is untouched.
sl_status sl_realloc(void *ptr, size_t n_old, size_t n_new, size_t elem_bytes, const char *what);

void sl_free(void *ptr); // NULL is fine

// Calls of sl_alloc and sl_realloc so far, in the whole process.
uint64_t sl_alloc_count(void);

// Tests only: the n-th allocation from now fails (1 = the next). 0 turns it off.
void sl_alloc_fail_at(uint64_t n);

// While a thread is sealed an allocation on it is a bug: debug builds abort, release builds count it.
void sl_alloc_seal(int on);
uint64_t sl_alloc_sealed_count(void);

#endif
