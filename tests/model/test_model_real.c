// SPDX-License-Identifier: MIT
// sl_test: MODULES plan
//
// The real files: config, weights and vocabulary are what these models are known to have; opening
// and planning are quick.
#include <time.h>

#include "harness.h"
#include "plan/plan.h"

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static sl_model *open_model(const char *file) {
    const char *path = test_model_path(file);
    sl_model *m = NULL;
    double start = now_ms();
    REQUIRE_OK(sl_model_open(&m, path, NULL), sl_error_text());
    double ms = now_ms() - start;
    printf("  %s: opened in %.1f ms, %.1f M parameters\n", file, ms, (double)m->weights.n_params / 1e6);
    CHECK(ms < 1000); // 100 ms is the aim (3 to 14 ms seen); a loaded machine is given more
    return m;
}

// A plan for decoding and one for prefill, each verified as it is made.
static void check_plans(const sl_model *m) {
    for (uint32_t n_row = 1; n_row <= 512; n_row *= 512) {
        sl_plan_shape shape = {.n_row_max = n_row,
                               .n_logit_max = 1,
                               .n_ctx = 4096,
                               .n_slot = 1,
                               .n_kv_blk = 128,
                               .type_k = SL_TYPE_F16,
                               .type_v = SL_TYPE_F16};
        sl_plan_options options = {.shape = shape, .fusions = SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD};
        sl_plan *p;
        double start = now_ms();
        REQUIRE_OK(sl_plan_create(&p, m, &options), sl_error_text());
        double ms = now_ms() - start;
        sl_cost one = sl_plan_cost(p, 1, 1, 0);
        printf("  %u rows: planned in %.2f ms, %.1f MB a token, workspace %.2f MB\n", n_row, ms,
               (double)one.weight_bytes / 1e6, (double)p->workspace_bytes / 1e6);
        CHECK(ms < 1000);
        CHECK(one.weight_bytes <= m->weights.n_bytes + 4096);
        sl_plan_destroy(p);
    }
}

static void check_stops(const sl_model *m, const int32_t *want, int32_t n) {
    CHECK_INT(m->vocab.n_stop, n);
    for (int32_t i = 0; i < n && i < m->vocab.n_stop; i++) CHECK_INT(m->vocab.stop[i], want[i]);
}

TEST(smollm2) {
    sl_model *m = open_model("SmolLM2-135M-Instruct.Q4_1.gguf");
    const sl_config *c = &m->config;
    CHECK_TEXT(c->arch, "llama");
    CHECK_INT(c->n_layer, 30);
    CHECK_INT(c->n_embd, 576);
    CHECK_INT(c->n_vocab, 49152);
    CHECK_INT(c->layer[29].n_head, 9);
    CHECK_INT(c->layer[29].n_head_kv, 3);
    CHECK_INT(c->layer[29].head_dim, 64);
    CHECK_INT(c->layer[29].window, 0);
    CHECK_INT(c->n_rope, 1);
    CHECK(c->rope[0].interleaved);
    CHECK_NEAR(c->rope[0].inv_freq[31], pow(1e5, -62.0 / 64), 1e-15);
    CHECK(m->weights.tied);
    CHECK_INT(m->weights.token_embd.type, SL_TYPE_Q8_0);
    CHECK_INT(m->weights.layer[3].ffn_down.type, SL_TYPE_Q4_1);
    CHECK_INT(m->vocab.kind, SL_VOCAB_BPE);
    CHECK(sl_span_is(m->vocab.pre, "smollm"));
    CHECK_INT(m->vocab.bos, 1);
    CHECK(m->vocab.chat_template.n_bytes > 100);
    check_stops(m, (int32_t[]){0, 2}, 2);
    CHECK_INT(sl_weights_check(m->gguf), SL_OK);
    check_plans(m);
    sl_model_close(m);
}

TEST(gemma3) {
    sl_model *m = open_model("gemma-3-270m-q4_k_m.gguf");
    const sl_config *c = &m->config;
    CHECK_TEXT(c->arch, "gemma3");
    CHECK_INT(c->n_layer, 18);
    CHECK_INT(c->layer[0].window, 512);
    CHECK_INT(c->layer[5].window, 0);
    CHECK_INT(c->layer[0].rope, 1);
    CHECK_INT(c->layer[5].rope, 0);
    CHECK_INT(c->n_rope, 2);
    CHECK_NEAR(c->rope[0].inv_freq[1], pow(1e6, -2.0 / 256), 1e-15);
    CHECK_NEAR(c->rope[1].inv_freq[1], pow(1e4, -2.0 / 256), 1e-15);
    CHECK(c->post_norms && c->qk_norms && c->act == 1);
    CHECK(c->embed_scale == sqrtf(640.0f));
    CHECK(c->final_softcap == 0);
    CHECK_INT(m->vocab.kind, SL_VOCAB_SPM);
    CHECK_INT(m->vocab.n_vocab, 262144);
    check_stops(m, (int32_t[]){1, 106}, 2); // and not 212, "</s>", which is struck-out text
    check_plans(m);
    sl_model_close(m);
}

TEST(qwen2) {
    sl_model *m = open_model("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    CHECK_TEXT(m->config.arch, "qwen2");
    CHECK(!m->config.rope[0].interleaved);
    CHECK(!m->weights.tied);
    CHECK(m->weights.layer[23].attn_q_bias.data != NULL);
    CHECK_INT(m->weights.layer[23].attn_q_bias.n_col, 896);
    check_stops(m, (int32_t[]){151643, 151645}, 2); // "</s>" is a plain word there
    check_plans(m);
    sl_model_close(m);
    m = open_model("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf");
    CHECK_INT(m->config.n_layer, 28);
    CHECK_INT(m->weights.output.type, SL_TYPE_Q6_K);
    check_plans(m);
    sl_model_close(m);
}
