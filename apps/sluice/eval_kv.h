// SPDX-License-Identifier: MIT
//
// sluice eval kv: what it finds, between the part that measures and those that print.
#ifndef SLUICE_EVAL_KV_H
#define SLUICE_EVAL_KV_H

#include "bench_stats.h"
#include "eval_window.h"

enum { KV_MAX = 12, KV_NAME = 24 };
#define KV_BOUND 0.015 // of the perplexity: what costs more is never recommended
// Half of a window is scored, and must see whole blocks of 32 as codes; of fewer predictions the error is not known.
enum { KV_WINDOW_MIN = 64, KV_SCORED_MIN = 64 };

typedef struct kv_type {
    char name[2 * KV_NAME], k[KV_NAME], v[KV_NAME]; // "q8_0/q4_0", "q8_0", "q4_0"
    sluice_engine *engine;                          // owned
    uint64_t position_bytes;
    window_sum nll, more; // of each token; and by how much more than the reference, token by token
    series gap;           // KL(reference || this) of each, in nats
    size_t n_same;        // where the likeliest token is that of the reference
} kv_type;

typedef struct kv_table {
    const char *model_path, *text_path;
    session session;            // without an engine
    kv_type type[KV_MAX];       // [0] is the reference: f16
    size_t n, n_window, n_done; // n_done: windows measured
    size_t n_ctx, n_chunk;
} kv_table; // zero-initialised is empty

double kv_bits(const kv_table *t, size_t i); // of a value, by the bytes that the engine takes
double kv_ppl(const kv_type *type);          // perplexity
double kv_loss(const kv_type *type);         // as a share of the reference's perplexity
double kv_loss_error(const kv_type *type);   // its standard error
bool kv_is_safe(const kv_type *type);        // below the bound also if the error is twice its standard error
size_t kv_recommended(const kv_table *t);    // the one of fewest bits that is safe

int kv_print_table(const kv_table *t);
int kv_print_json(const kv_table *t);
int kv_write_page(const kv_table *t, const char *path);

#endif
