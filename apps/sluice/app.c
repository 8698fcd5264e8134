// SPDX-License-Identifier: MIT
//
// Failures, the clock, and what a mistyped word was meant to be.
#include "app.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// One line whatever the reason holds: a file name may have a newline or an escape sequence in it.
static void print_line(const char *fmt, va_list args) {
    char line[2048];
    vsnprintf(line, sizeof line, fmt, args);
    for (unsigned char *c = (unsigned char *)line; *c; c++) {
        if (*c < 0x20 || *c == 0x7f) *c = '?';
    }
    fprintf(stderr, "sluice: %s\n", line);
}

int app_fail(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    print_line(fmt, args);
    va_end(args);
    return APP_FAILED;
}

int app_usage(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    print_line(fmt, args);
    va_end(args);
    return APP_USAGE;
}

void app_note(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    print_line(fmt, args);
    va_end(args);
}

int app_fail_library(sluice_status status) {
    if (status == SLUICE_CANCELLED) {
        app_note("interrupted");
        return APP_INTERRUPTED;
    }
    const char *reason = sluice_last_error();
    return app_fail("%s", *reason ? reason : sluice_status_name(status));
}

double app_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

// Insertions, deletions, changes and swaps of neighbours that lead from a to b (restricted
// Damerau-Levenshtein); words longer than the table count as far away.
static size_t edit_distance(const char *a, const char *b) {
    enum { MAX = 32 };
    size_t n_a = strlen(a), n_b = strlen(b), d[MAX + 1][MAX + 1];
    if (n_a > MAX || n_b > MAX) return SIZE_MAX;
    for (size_t i = 0; i <= n_a; i++) d[i][0] = i;
    for (size_t j = 0; j <= n_b; j++) d[0][j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        for (size_t j = 1; j <= n_b; j++) {
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            bool swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swap && d[i - 2][j - 2] + 1 < best) best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n_a][n_b];
}

const char *app_nearest(const char *word, const char *const *candidates, size_t n) {
    size_t limit = strlen(word) / 3 + 1, n_word = strlen(word);
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t distance = edit_distance(word, candidates[i]);
        // A beginning of the right word is a likely slip too: --temperature for --temp, --thread
        // for --threads.
        size_t n_candidate = strlen(candidates[i]), n_less = n_word < n_candidate ? n_word : n_candidate;
        if (n_less >= 3 && strncmp(word, candidates[i], n_less) == 0 && distance > 1) distance = 1;
        if (distance <= limit) limit = distance - (distance > 0), nearest = candidates[i];
    }
    return nearest;
}
