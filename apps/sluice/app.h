// SPDX-License-Identifier: MIT
//
// What every command of the program shares: how it fails, and how it reads and writes.
//
// A failure is one line on stderr, "sluice: reason", and a status that is not 0. A write that fails
// is a failure: nothing here ignores a full disk or a reader that went away. This program sees only
// sluice.h of the library.
#ifndef SLUICE_APP_H
#define SLUICE_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice.h"

enum { APP_OK = 0, APP_FAILED = 1, APP_USAGE = 2, APP_INTERRUPTED = 130 };

typedef int app_command(int argc, char **argv); // argv[0] is the command's name; the result is the exit status
app_command cmd_run, cmd_tokenize, cmd_render, cmd_explain, cmd_plan, cmd_inspect, cmd_eval, cmd_bench, cmd_quantize,
    cmd_imatrix;

// Each prints one line and returns the status to leave with.
int app_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));  // APP_FAILED
int app_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2))); // APP_USAGE
int app_fail_library(sluice_status status); // the library's reason; APP_INTERRUPTED for SLUICE_CANCELLED
void app_note(const char *fmt, ...) __attribute__((format(printf, 1, 2))); // the same line, not a failure

double app_now_ms(void); // a clock that only goes forward

// The candidate that `word` was probably meant to be, or NULL if none is near.
const char *app_nearest(const char *word, const char *const *candidates, size_t n);

#endif
