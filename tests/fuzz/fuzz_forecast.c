// SPDX-License-Identifier: MIT
// sl_test: MODULES forecast gguf os base
//
// Any bytes as the header of a model: geometry, traffic, a forecast on two machines and both
// reports. A refusal has a reason; whatever is not refused can be printed.
#include <stdlib.h>

#include "forecast/forecast.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void forecast(const sl_gguf *gguf, sl_type type, uint32_t n_ctx, const char *device) {
    sl_arena arena = {0};
    sl_buf out = {0};
    sl_forecast f;
    sl_forecast_options o = {.n_ctx = n_ctx, .type_kv = type, .device = device, .gb_s = 40, .n_thread = 2};
    sl_error_clear();
    if (sl_forecast_make(&f, gguf, &o, &arena) == SL_OK) {
        sl_forecast_text(&f, &out);
        sl_forecast_json(&f, &out);
        if (out.status != SL_OK) abort();
    } else if (sl_error_text()[0] == 0) {
        abort();
    }
    sl_buf_deinit(&out);
    sl_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    sl_gguf *gguf;
    if (sl_gguf_parse(&gguf, data, n_bytes, &(sl_gguf_options){.allow_no_data = true}) != SL_OK) return 0;
    forecast(gguf, SL_TYPE_F16, 0, NULL);
    forecast(gguf, SL_TYPE_Q4_0, INT32_MAX, "rtx 4090");
    sl_gguf_close(gguf);
    return 0;
}
