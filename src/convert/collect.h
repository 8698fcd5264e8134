// SPDX-License-Identifier: MIT
//
// Making an importance matrix: runs a model over text and sums up the squares of what its layers' matrix products read.
#ifndef SL_CONVERT_COLLECT_H
#define SL_CONVERT_COLLECT_H

#include "engine/engine.h"

typedef struct sl_collector sl_collector;

// The model must outlive the collector. Of the options one sequence counts, and n_ctx is the window.
sl_status sl_collector_create(sl_collector **out, const sl_model *model, const sl_engine_options *options);
void sl_collector_destroy(sl_collector *collector); // NULL is fine
// One window of 1 .. n_ctx ids, read by itself.
sl_status sl_collector_add(sl_collector *collector, const int32_t *ids, size_t n);
// As GGUF, in the form that llama.cpp knows. `source` names the text.
sl_status sl_collector_write(const sl_collector *collector, const char *path, const char *source);

#endif
