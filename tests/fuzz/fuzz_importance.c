// SPDX-License-Identifier: MIT
// sl_test: MODULES convert gguf os base
//
// Any bytes as an importance matrix. A refusal has a reason; what is accepted is positive and finite.
#include <math.h>
#include <stdlib.h>

#include "convert/importance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    sl_importance *im;
    sl_error_clear();
    if (sl_importance_parse(&im, data, n_bytes) != SL_OK) {
        if (im || sl_error_text()[0] == 0) abort();
        return 0;
    }
    static const char *const names[] = {"a.w", "b.w", "blk.0.ffn_up.weight"};
    for (int i = 0; i < 3; i++) {
        uint64_t n;
        const float *v = sl_importance_find(im, sl_span_of(names[i]), &n);
        for (uint64_t k = 0; v && k < n; k++)
            if (!(v[k] > 0) || isinf(v[k])) abort();
    }
    sl_importance_close(im);
    return 0;
}
