// SPDX-License-Identifier: MIT
//
// The words that builders are written in. Each adds one op and returns the value it writes, so that
// a builder reads like the paper. The first failure is kept in `status` and later calls do nothing;
// a builder need not look. Private to build*.c.
#ifndef SL_PLAN_BUILD_COMMON_H
#define SL_PLAN_BUILD_COMMON_H

#include "plan/plan.h"

typedef struct sl_build {
    sl_plan *plan;
    const sl_config *config;
    const sl_weights *weights;
    uint16_t *weight_id; // by tensor of the file: its weight id + 1, or 0. Owned
    size_t n_source;
    uint32_t op_cap, value_cap, weight_cap;
    int16_t layer; // of the ops being added; -1 outside the layers
    // Value ids: of positions, and of cells where sequences move.
    uint16_t rope_table[SL_MAX_ROPES], cell_table[SL_MAX_ROPES];
    sl_status status;
} sl_build;

uint16_t sl_build_embed(sl_build *b, const sl_weight *table, float scale);
uint16_t sl_build_norm(sl_build *b, uint16_t x,
                       const sl_weight *weight); // over groups of the weight's length
uint16_t sl_build_matmul(sl_build *b, uint16_t x, const sl_weight *weight,
                         const sl_weight *bias); // bias may be absent
uint16_t sl_build_rope(sl_build *b, uint16_t x, uint32_t n_head, const sl_config_layer *layer,
                       const uint16_t table[SL_MAX_ROPES]); // x itself if the layer has none
void sl_build_kv_write(sl_build *b, uint16_t k, uint16_t v);
// After K and V are written. q_first: for the first block; another one than q only where sequences move.
uint16_t sl_build_attend(sl_build *b, uint16_t q, uint16_t q_first, const sl_config_layer *layer);
uint16_t sl_build_glu(sl_build *b, uint16_t gate, uint16_t up);
uint16_t sl_build_add(sl_build *b, uint16_t x, uint16_t y);
uint16_t sl_build_gather(sl_build *b, uint16_t x);
uint16_t sl_build_softcap(sl_build *b, uint16_t x, float cap); // x itself if cap is 0

// What all families share: tables and embedding at the top, norm and output at the bottom,
// attention's inputs.
uint16_t sl_build_begin(sl_build *b);
void sl_build_end(sl_build *b, uint16_t x);
uint16_t sl_build_attention(sl_build *b, uint16_t x,
                            uint32_t layer);                    // from the normed input to the output matrix
uint16_t sl_build_ffn(sl_build *b, uint16_t x, uint32_t layer); // gate, up, down

// One for each sl_builder.
void sl_build_llama(sl_build *b);
void sl_build_gemma(sl_build *b);

#endif
