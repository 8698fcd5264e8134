// SPDX-License-Identifier: MIT
// sl_test: MODULES gguf os base
//
// Any bytes through the GGUF reader, with and without their data; then a walk over all that it
// found.
#include "gguf_bytes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    for (int allow_no_data = 0; allow_no_data < 2; allow_no_data++) {
        sl_gguf *gguf;
        sl_gguf_options options = {.allow_no_data = allow_no_data};
        if (sl_gguf_parse(&gguf, data, n_bytes, &options) == SL_OK) sink += walk_gguf(gguf);
        else if (gguf || sl_error_text()[0] == 0) abort(); // a failure has a reason and no result
        sl_gguf_close(gguf);
    }
    return 0;
}
