// SPDX-License-Identifier: MIT
//
// What a model will do on a machine, from the header of its file: memory by kind, whether it fits,
// how fast it decodes and answers, what limits it, and the other ways to place it. Reads no tensor
// data.
//
// What an engine itself would take is asked of the engine by the caller and handed in, so that the
// two cannot differ; this module must not know how an engine is built.
#ifndef SL_FORECAST_FORECAST_H
#define SL_FORECAST_FORECAST_H

#include "base/buf.h"
#include "forecast/placement.h"

typedef struct sl_forecast_engine {
    bool runs;     // the engine has a program for this model
    bool has_type; // and a cache of the type that is asked for: then kv_bytes is its own
    char why[256]; // if it does not run it
    uint64_t weight_bytes, kv_bytes, workspace_bytes, other_bytes;
    uint64_t copy_bytes,
        file_bytes;     // copies of weights; what is still read from the file beside them
    uint32_t n_barrier; // of a decode step
} sl_forecast_engine;

typedef struct sl_forecast_options {
    uint32_t n_ctx; // 0: what the model was trained for, at most 4096
    sl_type type_kv;
    bool auto_kv;           // it was not asked for
    const char *device;     // a name of the table, "GPU + memory of its host", or NULL: this machine
    const char *cache_path; // of measured bandwidths; may be NULL
    double gb_s;            // of this machine, if it is known; 0: remembered or measured
    int n_thread;           // of this machine; 0: all processors
    sl_forecast_engine engine;
} sl_forecast_options;

enum { SL_FORECAST_KV_TYPES = 3, SL_FORECAST_DEPTHS = 3, SL_FORECAST_PROMPTS = 4, SL_FORECAST_SHARES = 7 };
extern const sl_type sl_forecast_kv_types[SL_FORECAST_KV_TYPES];
extern const double sl_forecast_shares[SL_FORECAST_SHARES];

typedef struct sl_forecast {
    sl_geometry geometry;
    sl_traffic traffic;
    sl_load load;
    sl_forecast_engine engine;
    uint32_t n_ctx;
    sl_type type_kv;

    sl_machine device, host;             // host.name is "" if the device is the host
    bool this_machine, busy, remembered; // busy: while the bandwidth was measured
    int n_thread;                        // of this machine
    sl_rate device_rate, host_rate;

    uint64_t weight_bytes, kv_bytes, state_bytes, workspace_bytes,
        other_bytes;                 // the last two 0 if the engine does not run it
    uint64_t program_bytes;          // of the process beside the engine's memory; 0 for a device of its own
    uint64_t copy_bytes;             // weights repacked by the engine; their part of the file need not stay in
                                     // memory
    double need_bytes, usable_bytes; // usable: 0 if not known
    uint32_t n_ctx_fit;              // the largest context that fits; 0: none does, or the memory is not known
    sl_kv_sizes kv[SL_FORECAST_KV_TYPES];
    bool kv_possible[SL_FORECAST_KV_TYPES]; // heads are whole blocks of the type

    double token_bytes; // of a decoded token at the start of a sequence
    uint32_t depth[SL_FORECAST_DEPTHS], prompt[SL_FORECAST_PROMPTS];
    sl_prediction decode[SL_FORECAST_DEPTHS], prefill[SL_FORECAST_PROMPTS];
    size_t n_prompt, n_placement;
    sl_placement placement[SL_MAX_PLACEMENTS];
} sl_forecast;

// The arena owns the geometry.
sl_status sl_forecast_make(sl_forecast *out, const sl_gguf *gguf, const sl_forecast_options *options, sl_arena *arena);

void sl_forecast_text(const sl_forecast *f, sl_buf *out);
void sl_forecast_json(const sl_forecast *f, sl_buf *out);

#endif
