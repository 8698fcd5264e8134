// SPDX-License-Identifier: MIT
//
// Llama and its relatives (llama, mistral, smollm, qwen2, qwen3): norm, attend, add; norm, feed
// forward, add. Biases, norms of Q and K, windows and layers without rotation are data.
#include "plan/build_common.h"

void sl_build_llama(sl_build *b) {
    uint16_t x = sl_build_begin(b);
    for (uint32_t i = 0; i < b->config->n_layer; i++) {
        const sl_weights_layer *w = &b->weights->layer[i];
        b->layer = (int16_t)i;
        uint16_t h = sl_build_attention(b, sl_build_norm(b, x, &w->attn_norm), i);
        x = sl_build_add(b, h, x);
        h = sl_build_ffn(b, sl_build_norm(b, x, &w->ffn_norm), i);
        x = sl_build_add(b, h, x);
    }
    sl_build_end(b, x);
}
