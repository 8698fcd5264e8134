// SPDX-License-Identifier: MIT
//
// The charts of sluice eval.
#ifndef SLUICE_EVAL_CHART_H
#define SLUICE_EVAL_CHART_H

#include "bench_stats.h"
#include "eval_kv.h"
#include "eval_needle.h"
#include "page.h"

void chart_divergence(page *p, const series *gap); // gap[i] is of position i + 1
void chart_kv(page *p, const kv_table *t);
void chart_needle(page *p, const needle_table *t);

#endif
