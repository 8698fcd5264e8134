// SPDX-License-Identifier: MIT
//
// Names -> shaped, checked views of a file's tensors. A missing, misshapen or undecodable tensor is
// refused by name before anything is allocated for the engine.
#ifndef SL_MODEL_WEIGHTS_H
#define SL_MODEL_WEIGHTS_H

#include "model/config.h"

// One tensor as a matrix; name is NULL if the model does not have it.
typedef struct sl_weight {
    const char *name; // borrowed from the arena
    sl_type type;
    uint32_t n_row;      // outputs; 1 for vectors
    uint32_t n_col;      // inputs, contiguous
    const uint8_t *data; // borrowed from the mapping; NULL in a header-only file
    uint64_t n_bytes;
    uint32_t source; // index of the tensor in the file
} sl_weight;

// Optional ones (bias, norms) are absent when the file has none; which are required follows from
// the config.
typedef struct sl_weights_layer {
    sl_weight attn_norm, attn_q, attn_k, attn_v, attn_output;
    sl_weight attn_q_bias, attn_k_bias, attn_v_bias, attn_output_bias;
    sl_weight attn_q_norm, attn_k_norm, attn_post_norm;
    sl_weight ffn_norm, ffn_gate, ffn_up, ffn_down, ffn_post_norm;
    sl_weight ffn_gate_bias, ffn_up_bias, ffn_down_bias;
} sl_weights_layer;

typedef struct sl_weights {
    sl_weight token_embd, output_norm, output, output_bias; // output = token_embd if tied
    bool tied;
    sl_weights_layer *layer; // (n_layer); owned by the model's arena
    uint64_t n_params;       // elements of all tensors in the file
    uint64_t n_bytes;        // of all tensors in the file
} sl_weights;

sl_status sl_weights_read(sl_weights *out, const sl_gguf *gguf, const sl_config *config, sl_arena *arena);

// Looks for NaN and infinities: in F32/F16/BF16 data and in the scales of quantised blocks (all of
// it: reads the whole file once; `--check`). SL_BAD_FILE names the tensor.
sl_status sl_weights_check(const sl_gguf *gguf);
sl_status sl_weights_check_tensor(const sl_gguf_tensor *tensor);

#endif
