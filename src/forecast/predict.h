// SPDX-License-Identifier: MIT
//
// How fast: the bytes of a token over the bandwidth of the place they live in, and the products of
// a prompt over the rate of their processor. A time is the larger of the two, plus what is spent
// waiting at barriers. Shares of what a bus or a processor can do are constants of this module,
// with their reasons in predict.c.
#ifndef SL_FORECAST_PREDICT_H
#define SL_FORECAST_PREDICT_H

#include "forecast/machine.h"
#include "forecast/traffic.h"

// What one model asks for.
typedef struct sl_load {
    const sl_geometry *geometry;
    const sl_traffic *traffic;
    sl_type type_kv;
    uint32_t n_barrier; // of a decode step; 0: not known
} sl_load;

// What one machine gives.
typedef struct sl_rate {
    double gb_s;       // of the bus
    double share;      // of it that decoding reaches
    double gmac_s;     // 10^9 multiply-accumulates a second that prefill reaches; 0: not known
    double barrier_us; // of one barrier
} sl_rate;

sl_rate sl_rate_host(double measured_gb_s, int n_thread, uint32_t cpu_features);
sl_rate sl_rate_machine(const sl_machine *machine);

typedef struct sl_prediction {
    double weight_ms, kv_ms, state_ms, compute_ms, wait_ms, total_ms;
    double tok_s;      // decode: tokens a second; prefill: of the prompt
    const char *limit; // "memory bandwidth" or "arithmetic"
    bool is_floor;     // the rate of arithmetic is not known: the time is at least this
} sl_prediction;

// One decoded token whose sequence holds n_past positions.
sl_status sl_predict_decode(sl_prediction *out, const sl_load *load, const sl_rate *rate, uint32_t n_past);
// A prompt of n tokens into an empty sequence, up to its first token: total_ms is the TTFT.
sl_status sl_predict_prefill(sl_prediction *out, const sl_load *load, const sl_rate *rate, uint32_t n);

// Bytes that a decoded token moves: weights, caches at n_past, states read and written.
sl_status sl_predict_token_bytes(double *out, const sl_load *load, uint32_t n_past);

// Tokens a second if `share` of the bus is reached and nothing else takes time. 7.8 GB over 1024
// GB/s: 131 at 1.
static inline double sl_bus_tok_s(double gb_s, double share, double token_bytes) {
    return token_bytes > 0 ? gb_s * 1e9 * share / token_bytes : 0;
}

#endif
