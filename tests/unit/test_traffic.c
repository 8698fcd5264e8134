// SPDX-License-Identifier: MIT
// sl_test: MODULES forecast plan
//
// What a token reads and computes, counted from a file's tensors, is what plans say of it.
#include "forecast/traffic.h"
#include "model_file.h"
#include "plan/plan.h"

TEST(a_token_reads_what_plans_say) {
    static const char *const archs[] = {"llama", "smollm3", "qwen2", "qwen3", "gemma2", "gemma3"};
    for (size_t a = 0; a < SL_COUNT(archs); a++)
        for (int untied = 0; untied < 2; untied++) {
            model_recipe r = recipe(archs[a]);
            r.untied = untied, r.biases = a % 2, r.type = SL_TYPE_Q8_0;
            sl_model *model = make_model(&r);
            sl_plan *plan;
            sl_plan_options options = {.shape = {.n_row_max = 1,
                                                 .n_logit_max = 1,
                                                 .n_ctx = 256,
                                                 .n_slot = 1,
                                                 .n_kv_blk = 8,
                                                 .type_k = SL_TYPE_F16,
                                                 .type_v = SL_TYPE_F16}};
            REQUIRE_OK(sl_plan_create(&plan, model, &options), sl_error_text());
            sl_geometry g;
            sl_traffic t;
            sl_arena arena = {0};
            REQUIRE_OK(sl_geometry_read(&g, model->gguf, &arena), sl_error_text());
            REQUIRE_OK(sl_traffic_read(&t, model->gguf, &g), sl_error_text());
            for (uint32_t n_past = 0; n_past < 256; n_past += 100) {
                sl_cost cost = sl_plan_cost(plan, 1, 1, n_past);
                sl_kv_sizes kv;
                REQUIRE_OK(sl_geometry_kv(&kv, &g, SL_TYPE_F16, n_past + 1), sl_error_text());
                CHECK_INT(t.token_bytes, cost.weight_bytes);
                CHECK_INT(kv.read_bytes, cost.kv_read_bytes);
                CHECK_INT(t.row_mac + t.output_mac + (uint64_t)sl_geometry_attention_macs(&g, n_past + 1), cost.n_mac);
            }
            CHECK_INT(t.file_bytes, model->weights.n_bytes);
            CHECK_INT(t.n_param, model->weights.n_params);
            sl_arena_deinit(&arena);
            sl_plan_destroy(plan);
            sl_model_close(model);
        }
}
