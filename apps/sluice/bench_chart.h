// SPDX-License-Identifier: MIT
//
// The charts of sluice bench.
#ifndef SLUICE_BENCH_CHART_H
#define SLUICE_BENCH_CHART_H

#include "bench.h"
#include "page.h"

void chart_ttft(page *p, const bench *b);
void chart_depth(page *p, const bench *b);
void chart_itl(page *p, const bench *b, const bench_decode *d, double from, double to);
void chart_roofline(page *p, const bench *b);

#endif
