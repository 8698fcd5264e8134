// SPDX-License-Identifier: MIT
// sl_test: MODULES engine
//
// What an engine is said to take is what it takes, to the byte.
#include "engine/engine.h"
#include "model_file.h"

static void compare(const sl_model *model, const sl_engine_options *o) {
    sl_engine_estimate want;
    sl_engine_memory got;
    sl_engine *e;
    REQUIRE_OK(sl_engine_estimate_make(&want, model, o), sl_error_text());
    REQUIRE_OK(sl_engine_create(&e, model, o), sl_error_text());
    sl_engine_get_memory(e, &got);
    CHECK_INT(want.memory.weight_bytes, got.weight_bytes);
    CHECK_INT(want.memory.kv_bytes, got.kv_bytes);
    CHECK_INT(want.memory.workspace_bytes, got.workspace_bytes);
    CHECK_INT(want.memory.other_bytes, got.other_bytes);
    CHECK(want.n_barrier > 0);
    sl_engine_destroy(e);
}

TEST(the_estimate_is_what_engines_take) {
    static const char *const archs[] = {"llama", "qwen2", "gemma3"};
    static const uint32_t shapes[][4] = {{1, 1, 1, 1}, {100, 1, 8, 8}, {200, 3, 64, 2}, {2048, 2, 512, 8}};
    for (size_t a = 0; a < SL_COUNT(archs); a++) {
        model_recipe r = recipe(archs[a]);
        r.type = SL_TYPE_Q8_0;
        sl_model *model = make_model(&r);
        for (size_t i = 0; i < SL_COUNT(shapes); i++)
            for (size_t b = 0; sl_backend_at(b); b++) {
                if (sl_backend_at(b)->probe() != SL_OK) continue; // there is no such device
                sl_engine_options o = {
                    .backend = sl_backend_at(b),
                    .n_ctx = shapes[i][0],
                    .n_seq = shapes[i][1],
                    .n_row_max = shapes[i][2],
                    .n_logit_max = shapes[i][3],
                    .n_thread = 2,
                    .n_thread_prefill = 2,
                    .type_k = i % 2 ? SL_TYPE_F32 : SL_TYPE_F16,
                    .type_v = i % 2 ? SL_TYPE_F32 : SL_TYPE_F16,
                };
                compare(model, &o);
            }
        sl_model_close(model);
    }
}

TEST(refusals_take_nothing) {
    model_recipe r = recipe("llama");
    sl_model *model = make_model(&r);
    sl_engine_estimate estimate;
    sl_engine_options o = {.backend = sl_backend_at(0), .n_ctx = 0, .n_seq = 1, .n_row_max = 1, .n_logit_max = 1};
    CHECK_INT(sl_engine_estimate_make(&estimate, model, &o), SL_BAD_ARG);
    CHECK_INT(estimate.memory.weight_bytes, 0);
    sl_model_close(model);
}
