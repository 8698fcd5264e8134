// SPDX-License-Identifier: MIT
//
// Gemma 2 and 3: as llama, with a norm after each block too, before it is added. Scaled embeddings,
// soft caps, windows and the two rotary bases are data.
#include "plan/build_common.h"

void sl_build_gemma(sl_build *b) {
    uint16_t x = sl_build_begin(b);
    for (uint32_t i = 0; i < b->config->n_layer; i++) {
        const sl_weights_layer *w = &b->weights->layer[i];
        b->layer = (int16_t)i;
        uint16_t h = sl_build_attention(b, sl_build_norm(b, x, &w->attn_norm), i);
        x = sl_build_add(b, sl_build_norm(b, h, &w->attn_post_norm), x);
        h = sl_build_ffn(b, sl_build_norm(b, x, &w->ffn_norm), i);
        x = sl_build_add(b, sl_build_norm(b, h, &w->ffn_post_norm), x);
    }
    sl_build_end(b, x);
}
