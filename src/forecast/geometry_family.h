// SPDX-License-Identifier: MIT
//
// How the architectures differ in what they keep of a sequence, one row each. Facts of the GGUF
// format as its converters write it (llama.cpp 0.5.0, src/models/*.cpp). Private to geometry*.c.
#ifndef SL_FORECAST_GEOMETRY_FAMILY_H
#define SL_FORECAST_GEOMETRY_FAMILY_H

#include <stdint.h>

#include "base/span.h"

typedef enum sl_window_rule {
    SL_WINDOW_NONE,    // all layers keep all positions, whatever the file says
    SL_WINDOW_FILE,    // if the file names a window
    SL_WINDOW_REQUIRED // the file must name it, or the table does
} sl_window_rule;

typedef enum sl_recurrent_rule { // which layers have a recurrent state
    SL_RECURRENT_NONE,
    SL_RECURRENT_ALL,      // and no attention at all
    SL_RECURRENT_BESIDE,   // all, beside their attention
    SL_RECURRENT_INTERVAL, // but every n-th: recurrent_layers or full_attention_interval
    SL_RECURRENT_NO_KV,    // those without KV heads
    SL_RECURRENT_NO_KV_FF, // those without KV heads and feed-forward; with feed-forward neither
} sl_recurrent_rule;

typedef enum sl_state_kind { // what the state is
    SL_STATE_SSM,            // ssm.state_size x ssm.inner_size, and its convolution (Mamba, gated delta nets)
    SL_STATE_SHORTCONV,      // a convolution only (LFM2)
    SL_STATE_KDA,            // kda.head_dim^2 for each head, and three convolutions (Kimi)
    SL_STATE_LINEAR,         // key_length^2 for each head (MiniMax-01)
    SL_STATE_WKV,            // wkv.head_size for each column, and shifted tokens (RWKV)
} sl_state_kind;

typedef struct sl_geometry_family {
    const char *name;
    uint8_t window_rule, recurrent, state;
    uint8_t dense_first;      // of each group of `pattern` layers the first sees all, not the last
    uint8_t mla;              // one latent a position where the file has *_length_mla
    uint32_t window, pattern; // if the file does not say; pattern 0: every layer has the window
    uint32_t n_layer_only;    // the window is that of the size with so many layers only; 0 = of all
    uint32_t n_layer_kv;      // layers with a cache of their own; 0 = all but shared_kv_layers
} sl_geometry_family;

const sl_geometry_family *sl_geometry_family_find(sl_span arch); // NULL if unknown

#endif
