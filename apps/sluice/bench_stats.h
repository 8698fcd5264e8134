// SPDX-License-Identifier: MIT
//
// Figures that were measured again and again, and what is said of them. Exact order statistics: all
// values are kept, so no histogram has to guess. It must not know what the figures mean.
#ifndef SLUICE_BENCH_STATS_H
#define SLUICE_BENCH_STATS_H

#include "app.h"

typedef struct series { // in the order of measuring
    double *value;      // owned
    size_t n, cap;
} series;

// Room for cap values, touched now: a push in a measured loop costs no page fault.
int series_init(series *s, size_t cap); // APP_OK, or has printed why not
void series_free(series *s);
void series_push(series *s, double value);

typedef struct summary {
    size_t n;
    double min, p50, p90, p99, max, mean; // all 0 if n is 0
    double spread;                        // (max - min) / p50
} summary;

// p50 is the mean of the two middle values if n is even, as a median is; p90 and p99 are the
// smallest value that at least this share of the values does not exceed (nearest rank).
summary series_summarize(const series *s);

#endif
