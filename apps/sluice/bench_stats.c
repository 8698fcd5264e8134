// SPDX-License-Identifier: MIT
//
// Sorting, and looking at the right place.
#include "bench_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int series_init(series *s, size_t cap) {
    *s = (series){.value = malloc((cap + 1) * sizeof *s->value), .cap = cap};
    if (!s->value) return app_fail("out of memory");
    for (size_t i = 0; i <= cap; i++) s->value[i] = (double)i; // not 0: that could become a calloc
    return APP_OK;
}

void series_free(series *s) {
    free(s->value);
    *s = (series){0};
}

void series_push(series *s, double value) {
    if (s->n < s->cap) s->value[s->n++] = value;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double nearest_rank(const double *sorted, size_t n, double share) {
    size_t rank = (size_t)ceil(share * (double)n);
    return sorted[rank > 0 ? rank - 1 : 0];
}

summary series_summarize(const series *s) {
    summary out = {.n = s->n};
    double *sorted = s->n ? malloc(s->n * sizeof *sorted) : NULL, sum = 0;
    if (!sorted) return (summary){0};
    memcpy(sorted, s->value, s->n * sizeof *sorted);
    qsort(sorted, s->n, sizeof *sorted, compare);
    for (size_t i = 0; i < s->n; i++) sum += sorted[i];
    out.min = sorted[0], out.max = sorted[s->n - 1], out.mean = sum / (double)s->n;
    out.p50 = (sorted[(s->n - 1) / 2] + sorted[s->n / 2]) / 2;
    out.p90 = nearest_rank(sorted, s->n, 0.90);
    out.p99 = nearest_rank(sorted, s->n, 0.99);
    out.spread = out.p50 > 0 ? (out.max - out.min) / out.p50 : 0;
    free(sorted);
    return out;
}
