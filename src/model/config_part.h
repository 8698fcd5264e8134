// SPDX-License-Identifier: MIT
//
// The pieces of sl_config_read that have files of their own. Private to config*.c.
#ifndef SL_MODEL_CONFIG_PART_H
#define SL_MODEL_CONFIG_PART_H

#include "model/config.h"
#include "model/config_key.h"

// What the file says of rotary scaling: rope.scaling.*, rope_freqs.weight.
typedef enum sl_rope_kind { SL_ROPE_PLAIN, SL_ROPE_LINEAR, SL_ROPE_YARN } sl_rope_kind;
typedef struct sl_rope_scaling {
    sl_rope_kind kind;
    double factor, beta_fast, beta_slow, mscale;
    uint32_t n_ctx_orig;
} sl_rope_scaling;

sl_status sl_rope_scaling_read(sl_rope_scaling *out, const sl_keys *keys, uint32_t n_ctx_train);

// One rotary set: frequencies of `base` with the scaling, then divided by the file's
// rope_freqs.weight, if any.
sl_status sl_rope_build(sl_config_rope *out, const sl_keys *keys, const sl_rope_scaling *scaling, uint32_t n_rot,
                        double base, bool interleaved, sl_arena *arena);

// Refuses, by name, keys "ARCH.*" that would change the results and that no other code here
// honours.
sl_status sl_config_refuse_keys(const sl_keys *keys);

#endif
