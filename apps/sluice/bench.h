// SPDX-License-Identifier: MIT
//
// sluice bench: what one run asks for and what it finds, between the part that measures and those
// that print.
//
// Times are as vLLM defines them. TTFT: from the request to its first token, so prefill and one
// sample. ITL: from one token to the next, so one step and one sample. TPOT: the mean of the ITLs.
#ifndef SLUICE_BENCH_H
#define SLUICE_BENCH_H

#include "bench_machine.h"
#include "bench_stats.h"
#include "number_list.h"
#include "session.h"

enum { BENCH_MAX = NUMBER_LIST_MAX, BENCH_ROWS_MAX = 64, BENCH_ROW_STEPS = 16 };

typedef struct bench_request {
    number_list prefill, depth, rows; // each rising
    int32_t n_decode, n_rep;
    bool fill; // the context before a decode is copies of its first 32 positions, not computed
} bench_request;

typedef struct bench_read { // the memory's bandwidth with a number of threads
    int32_t n_thread;       // 0: a device's own memory, read by the device
    series gb_s;
} bench_read;

typedef struct bench_prefill {
    int32_t n;
    double n_op;        // multiplications and additions, by the plan
    double bytes;       // read from memory, by the plan
    series tok_s, ttft; // a value of each run; ttft in ms
} bench_prefill;

typedef struct bench_decode {
    int32_t depth, n;
    double bytes, n_op;              // of a token, half way, by the plan
    series tok_s, itl;               // of each run; of each token of all runs, in ms
    series n_alloc, n_fault, joules; // of each run, a token; joules is empty if not offered
} bench_decode;

typedef struct bench_rows { // steps of several rows of one sequence, as when drafts are checked
    int32_t n;
    double bytes, n_op; // of a step
    series step;        // in ms, of all runs
} bench_rows;

typedef struct bench {
    session session;
    const char *path, *backend;
    char kv[20]; // type of the cache, or types of K and V
    bench_request request;
    machine machine;
    energy_meter meter;
    machine_time began, ended;
    bench_read read[BENCH_MAX];
    size_t n_read, limit; // read[limit] is the best: the limit that shares are of
    bench_prefill prefill[BENCH_MAX];
    bench_decode decode[BENCH_MAX];
    bench_rows rows[BENCH_MAX];
    size_t n_prefill, n_decode, n_rows;
} bench; // zero-initialised is empty

int bench_init(bench *b); // takes all memory; request and session are set
int bench_measure(bench *b);
void bench_free(bench *b); // not the session

double bench_read_gb_s(const bench *b); // the measured limit: a median
// Bytes and speed to GB/s, and to a share of the limit.
double bench_decode_gb_s(const bench_decode *d);
double bench_share(const bench *b, double gb_s);

// Largest spreads between runs, and whether a figure can be trusted.
typedef struct bench_noise {
    double read, prefill, decode, steal, others; // shares; NAN: unknown
    char why[8][96];
    size_t n_why; // 0: quiet
} bench_noise;
bench_noise bench_get_noise(const bench *b);

int bench_print_table(const bench *b);
int bench_print_json(const bench *b);
int bench_print_csv(const bench *b);
int bench_write_html(const bench *b, const char *path);

#endif
