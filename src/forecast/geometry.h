// SPDX-License-Identifier: MIT
//
// What a model keeps of a sequence, from its metadata alone: per layer the keys and values of each
// position, or of a window of them, and recurrent states of fixed size. Also for architectures that
// the engine cannot run. One that is not in the table, or that names a cache of a kind not known
// here, is refused by name: nothing is guessed.
//
// Invariant: n_layer counts the layers that every token passes; heads that predict further tokens
// (nextn_predict_layers) are the last blocks of the file and not among them.
#ifndef SL_FORECAST_GEOMETRY_H
#define SL_FORECAST_GEOMETRY_H

#include "base/arena.h"
#include "gguf/gguf.h"

typedef struct sl_geometry_layer {
    uint32_t n_head;          // query heads; 0: no attention
    uint32_t n_head_kv;       // heads in the cache; 0: no cache
    uint32_t k_dim, v_dim;    // of a head in the cache; MLA: k_dim is the latent's, v_dim 0
    uint32_t window;          // positions that the cache keeps; 0 = all
    bool shared;              // reads the cache of an earlier layer and has none of its own
    uint64_t n_state, n_conv; // float32 elements of a recurrent state and of its short convolution
} sl_geometry_layer;

typedef struct sl_geometry {
    char arch[64], name[128];
    uint32_t n_layer, n_layer_nextn, n_embd, n_ctx_train;
    uint32_t n_expert, n_expert_used; // 0: no experts; used: the most of any layer
    sl_geometry_layer *layer;         // (n_layer); owned by the arena
} sl_geometry;

// SL_UNSUPPORTED names the architecture or the feature; SL_BAD_FILE the missing or impossible key.
sl_status sl_geometry_read(sl_geometry *out, const sl_gguf *gguf, sl_arena *arena);

// Bytes of a sequence in one type for K and V; SL_UNSUPPORTED if heads are no whole blocks of the
// type, SL_NO_MEMORY if the sum is more than any machine has.
typedef struct sl_kv_sizes {
    uint64_t position_bytes; // for each further position, in layers that keep all of them
    uint64_t growing_bytes;  // of those layers at n_ctx
    uint64_t window_bytes;   // of the layers that keep min(n_ctx, window)
    uint64_t state_bytes;    // recurrent, float32, whatever n_ctx
    uint64_t read_bytes;     // of the caches, by one row that sees n_ctx positions; shared ones each time
} sl_kv_sizes;
sl_status sl_geometry_kv(sl_kv_sizes *out, const sl_geometry *g, sl_type type, uint32_t n_ctx);

// Multiply-accumulates of attention for one row that sees n_pos positions.
double sl_geometry_attention_macs(const sl_geometry *g, uint32_t n_pos);

#endif
