// SPDX-License-Identifier: MIT
//
// What a model is, as data: the typed, range-checked reading of a file's metadata. Everything in
// which one family differs from another is a field here; the builders do not ask for a family's
// name.
#ifndef SL_MODEL_CONFIG_H
#define SL_MODEL_CONFIG_H

#include "base/arena.h"
#include "gguf/gguf.h"

enum { SL_MAX_LAYERS = 1024, SL_MAX_ROPES = 2 };

typedef enum sl_builder { SL_BUILDER_LLAMA, SL_BUILDER_GEMMA } sl_builder; // which plan/build_*.c

typedef struct sl_config_rope {
    uint32_t n_rot;
    bool interleaved; // pairs (2i, 2i+1)
    double *inv_freq; // (n_rot/2) scaling and factors applied; owned by the model's arena
    float mscale;     // of cos and sin (YaRN); 1
} sl_config_rope;

typedef struct sl_config_layer {
    uint32_t n_head, n_head_kv, head_dim, v_dim, n_ff;
    uint32_t window; // visible positions, the own one included; 0 = all
    int32_t rope;    // index into sl_config.rope; -1 = none
} sl_config_layer;

typedef struct sl_config {
    char arch[64];  // general.architecture
    char name[128]; // general.name, or ""
    sl_builder builder;
    uint32_t n_layer, n_embd, n_vocab, n_ctx_train;
    uint32_t file_type; // general.file_type; 0 if absent
    float norm_eps;
    float embed_scale;   // gemma: sqrt(n_embd) as float32; else 1
    float attn_scale;    // 1/sqrt(head_dim) unless the family says otherwise
    float attn_softcap;  // 0 = none
    float final_softcap; // 0 = none
    uint8_t act;         // sl_act of the gate (plan/ir.h): 0 SiLU, 1 tanh GELU
    bool post_norms;     // norms after attention and feed-forward (gemma)
    bool qk_norms;       // Q and K are normed per head before the rotation
    bool qkv_biases;     // Q, K and V must have biases; otherwise they may
    uint32_t n_rope;
    sl_config_rope rope[SL_MAX_ROPES];
    sl_config_layer *layer; // (n_layer); owned by the model's arena
} sl_config;

// Reads and checks. SL_UNSUPPORTED names an unknown architecture or feature (experts, an unknown
// rope scaling, ...); SL_BAD_FILE names a missing or impossible key. A feature that the file names
// is honoured or refused, never ignored.
sl_status sl_config_read(sl_config *out, const sl_gguf *gguf, sl_arena *arena);

#endif
