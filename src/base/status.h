// SPDX-License-Identifier: MIT
//
// Status codes and the text that goes with them.
//
// Every function that can fail returns a sl_status. The reason, one plain sentence (what, where, what to
// do), is put into a fixed thread-local buffer by SL_FAIL and read by sl_error_text(). The codes have the
// same values as the public enum sluice_status (checked in api/). Three kinds of trouble:
//   input or environment -> a status;  caller's bug -> SL_BAD_ARG;  our own bug -> SL_ASSERT / SL_CHECK.
#ifndef SL_BASE_STATUS_H
#define SL_BASE_STATUS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"

typedef enum sl_status {
    SL_OK = 0,
    SL_BAD_ARG,     // the caller's mistake: a null handle, a flag out of range
    SL_NO_MEMORY,   // an allocation failed, or a request is larger than the machine
    SL_IO,          // open, read, write, map
    SL_BAD_FILE,    // a file that breaks its format
    SL_UNSUPPORTED, // well-formed, but an architecture, type, op or option that we do not have
    SL_FULL,        // context, KV pool or an output buffer is full
    SL_CANCELLED,   // a callback asked to stop
    SL_BAD_INPUT,   // text, JSON, template or request that cannot be used
    SL_DEVICE,      // a device failed
    SL_INTERNAL,    // a bug of ours, found by a check
    SL_STATUS_COUNT
} sl_status;

// Formats the reason into the thread's buffer (cut at its size) and returns `code`.
sl_status sl_fail(sl_status code, const char *fmt, ...) SL_PRINTF(2, 3);

// Puts "prefix: " before the current reason; for callers that know the file or the tensor. Returns `code`.
sl_status sl_fail_prefix(sl_status code, const char *fmt, ...) SL_PRINTF(2, 3);

// The reason of the last failure on this thread; "" if there was none. Borrowed: valid until the next failure.
const char *sl_error_text(void);
void sl_error_clear(void);

const char *sl_status_name(sl_status code);

// Ends the process: memory safety is gone. Prints where.
_Noreturn void sl_panic(const char *file, int line, const char *what);

#define SL_FAIL(code, ...) sl_fail((code), __VA_ARGS__)

// Forwards a failure to the caller.
#define SL_TRY(expr)                                                     \
    do {                                                                 \
        sl_status sl_try_status_ = (expr);                               \
        if (SL_UNLIKELY(sl_try_status_ != SL_OK)) return sl_try_status_; \
    } while (0)

// The same in a function with one exit label `out:` and a variable `status`.
#define SL_TRY_OUT(expr)                            \
    do {                                            \
        status = (expr);                            \
        if (SL_UNLIKELY(status != SL_OK)) goto out; \
    } while (0)

// SL_CHECK always runs (memory safety); SL_ASSERT only in builds without NDEBUG.
#define SL_CHECK(cond)                                                 \
    do {                                                               \
        if (SL_UNLIKELY(!(cond))) sl_panic(__FILE__, __LINE__, #cond); \
    } while (0)
#ifdef NDEBUG
#define SL_ASSERT(cond) ((void)sizeof(!(cond)))
#else
#define SL_ASSERT(cond) SL_CHECK(cond)
#endif

#endif
