// SPDX-License-Identifier: MIT
// sl_test: MODULES sample base
//
// Any bytes as the state of a sampler. What is accepted is what it saves again, but for tokens that its window has no
// room for; what is refused leaves it able to draw.
#include <stdlib.h>
#include <string.h>

#include "sample/sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { VOCAB = 40, WINDOW = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    sl_sampler_options o = {.temp = 1, .top_p = 1, .typical_p = 1, .repeat_penalty = 1.5f, .penalty_window = WINDOW};
    sl_sampler *s;
    float logits[VOCAB] = {1, 2, 3};
    if (sl_sampler_create(&s, VOCAB, WINDOW, &o) != SL_OK) abort();
    bool good = sl_sampler_restore(s, data, n_bytes) == SL_OK;
    uint8_t *saved;
    size_t n_saved;
    if (sl_sampler_save(s, &saved, &n_saved) != SL_OK) abort();
    if (good && n_saved > n_bytes) abort();
    if (good && n_saved == n_bytes && memcmp(saved, data, n_bytes) != 0) abort();
    sl_free(saved);
    for (int i = 0; i < 2 * WINDOW; i++) {
        int32_t token;
        if (sl_sampler_sample(s, logits, &token) != SL_OK || token < 0 || token >= VOCAB) abort();
        sl_sampler_accept(s, token);
    }
    sl_sampler_destroy(s);
    return 0;
}
