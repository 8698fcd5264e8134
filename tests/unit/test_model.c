// SPDX-License-Identifier: MIT
// sl_test: MODULES model
//
// Config, weights and vocabulary of small files: what is read, and that everything impossible or
// unknown is refused with its name in the reason.
#include "base/alloc.h"
#include "model_file.h"

typedef struct refusal {
    const char *arch;
    edit edit;
    sl_status status;
    const char *reason; // part of it
} refusal;

static void check_refusal(const refusal *c) {
    edit edits[2] = {c->edit, END};
    model_recipe r = recipe(c->arch);
    r.edits = edits;
    sl_model *m = (sl_model *)&r;
    const char *path = write_model(&r);
    sl_error_clear();
    sl_status status = sl_model_open(&m, path, NULL);
    const char *text = sl_error_text(), *at = strstr(text, path);
    if (status != c->status || m || !strstr(text, c->reason) || !at || strstr(at + 1, path))
        test_failed(__FILE__, __LINE__, "%s, %s: status %d, \"%s\"; wanted %d and \"%s\"", c->arch, c->edit.name,
                    status, text, c->status, c->reason);
    if (status == SL_OK) sl_model_close(m);
}

static void check_refusals(const refusal *cases, size_t n) {
    for (size_t i = 0; i < n; i++) check_refusal(&cases[i]);
}

TEST(what_a_family_does_not_do_is_refused_by_name) {
    static const refusal cases[] = {
        {"llama", INT(".expert_count", 8), SL_UNSUPPORTED, "'llama.expert_count'"},
        {"llama", INT(".expert_used_count", 2), SL_UNSUPPORTED, "'llama.expert_used_count'"},
        {"llama", INT(".nextn_predict_layers", 1), SL_UNSUPPORTED, "nextn_predict_layers"},
        {"llama", BOOL(".use_parallel_residual", 1), SL_UNSUPPORTED, "use_parallel_residual"},
        {"llama", FLOAT(".logit_scale", 0.5), SL_UNSUPPORTED, "logit_scale"},
        {"llama", FLOAT(".residual_scale", 0.5), SL_UNSUPPORTED, "residual_scale"},
        {"llama", FLOAT(".embedding_scale", 12), SL_UNSUPPORTED, "embedding_scale"},
        {"llama", FLOAT(".attention.clamp_kqv", 8), SL_UNSUPPORTED, "clamp_kqv"},
        {"llama", FLOAT(".attention.max_alibi_bias", 8), SL_UNSUPPORTED, "max_alibi_bias"},
        {"qwen3", BOOL(".attention.causal", 0), SL_UNSUPPORTED, "attention.causal"},
        {"qwen3", INT(".pooling_type", 3), SL_UNSUPPORTED, "pooling_type"},
        {"gemma3", INT(".embedding_length_out", 32), SL_UNSUPPORTED, "embedding_length_out"},
        {"gemma3", INT(".attention.key_length_swa", 16), SL_UNSUPPORTED, "key_length_swa"},
        {"gemma3", INT(".attention.shared_kv_layers", 2), SL_UNSUPPORTED, "shared_kv_layers"},
        {"llama", FLOAT(".attention.something_new", 2), SL_UNSUPPORTED, "attention.something_new"},
        {"llama", TEXT(".attention.kind", "local"), SL_UNSUPPORTED, "attention.kind"},
        {"llama", FLOAT(".rope.scaling.alpha", 2), SL_UNSUPPORTED, "rope.scaling.alpha"},
        {"llama", INTS(".rope.dimension_sections", 8, 4), SL_UNSUPPORTED, "dimension_sections"},
        {"llama", TEXT(".rope.scaling.type", "longrope"), SL_UNSUPPORTED, "'longrope'"},
        {"llama", TEXT(".rope.scaling.type", "wavy"), SL_UNSUPPORTED, "'wavy'"},
        {"mamba", DROP_K("none"), SL_UNSUPPORTED, "'mamba'"},
        {"llama4", DROP_K("none"), SL_UNSUPPORTED, "'llama4'"},
        {"qwen3moe", DROP_K("none"), SL_UNSUPPORTED, "'qwen3moe'"},
        {"llama", ADD_T("blk.1.attn_qkv.weight", 64, 256), SL_UNSUPPORTED, "'blk.1.attn_qkv.weight'"},
        {"llama", ADD_T("blk.1.attn_sinks.weight", 4, 1), SL_UNSUPPORTED, "attn_sinks"},
        {"llama", ADD_T("blk.1.ffn_gate_exps.weight", 64, 96), SL_UNSUPPORTED, "ffn_gate_exps"},
        {"llama", ADD_T("blk.0.attn_q_norm.weight", 32, 1), SL_UNSUPPORTED, "attn_q_norm"},
        {"llama", ADD_T("blk.0.post_ffw_norm.weight", 64, 1), SL_UNSUPPORTED, "post_ffw_norm"},
        {"llama", ADD_T("blk.3.attn_norm.weight", 64, 1), SL_UNSUPPORTED, "'blk.3.attn_norm.weight'"},
        {"llama", ADD_T("blk.00.attn_norm.weight", 64, 1), SL_UNSUPPORTED, "'blk.00.attn_norm.weight'"},
        {"llama", ADD_T("rope_factors_long.weight", 16, 1), SL_UNSUPPORTED, "rope_factors_long"},
        {"llama", ADD_T("output_norm.bias", 64, 1), SL_UNSUPPORTED, "output_norm.bias"},
    };
    check_refusals(cases, SL_COUNT(cases));
}

TEST(impossible_keys_are_refused_by_name) {
    static const refusal cases[] = {
        {"llama", DROP_K("general.architecture"), SL_BAD_FILE, "general.architecture"},
        {"llama", DROP_K(".block_count"), SL_BAD_FILE, "'llama.block_count' is missing"},
        {"llama", DROP_K(".embedding_length"), SL_BAD_FILE, "embedding_length"},
        {"llama", DROP_K(".context_length"), SL_BAD_FILE, "context_length"},
        {"llama", DROP_K(".feed_forward_length"), SL_BAD_FILE, "feed_forward_length"},
        {"llama", DROP_K(".attention.head_count"), SL_BAD_FILE, "attention.head_count"},
        {"llama", DROP_K(".attention.layer_norm_rms_epsilon"), SL_BAD_FILE, "layer_norm_rms_epsilon"},
        {"llama", INT(".block_count", 0), SL_BAD_FILE, "block_count"},
        {"llama", INT(".block_count", 1025), SL_BAD_FILE, "block_count"},
        {"llama", INT(".block_count", -1), SL_BAD_FILE, "block_count"},
        {"llama", INT(".block_count", 4294967299.0), SL_BAD_FILE, "block_count"},
        {"llama", INT(".block_count", 1024), SL_BAD_FILE, "'blk.3.attn_norm.weight' is missing"},
        {"llama", TEXT(".block_count", "3"), SL_BAD_FILE, "block_count"},
        {"llama", INTS(".block_count", 3, 3), SL_BAD_FILE, "block_count"},
        {"llama", FLOAT(".block_count", 3), SL_BAD_FILE, "block_count"},
        {"llama", INT(".embedding_length", 0), SL_BAD_FILE, "embedding_length"},
        {"llama", INT(".embedding_length", 1e12), SL_BAD_FILE, "embedding_length"},
        {"llama", INT(".embedding_length", 128), SL_BAD_FILE, "'token_embd.weight'"},
        {"llama", INT(".context_length", 0), SL_BAD_FILE, "context_length"},
        {"llama", INT(".attention.head_count", 0), SL_BAD_FILE, "head_count"},
        {"llama", INT(".attention.head_count", 1e9), SL_BAD_FILE, "head_count"},
        {"llama", INT(".attention.head_count_kv", 3), SL_BAD_FILE, "head_count_kv"},
        {"llama", INT(".attention.head_count_kv", 0), SL_BAD_FILE, "head_count_kv"},
        {"llama", INT(".attention.head_count_kv", 8), SL_BAD_FILE, "head_count_kv"},
        {"llama", INTS(".attention.head_count", 4, 2), SL_BAD_FILE, "2 elements for 3 layers"},
        {"llama", INTS(".attention.head_count", 4, 2000), SL_BAD_FILE, "2000 elements"},
        {"llama", FLOATS(".attention.head_count", 4, 3), SL_BAD_FILE, "head_count"},
        {"llama", INTS(".attention.key_length", 32, 3), SL_BAD_FILE, "key_length"},
        {"llama", INT(".attention.key_length", 33), SL_BAD_FILE, "key_length"},
        {"llama", INT(".attention.key_length", 0), SL_BAD_FILE, "key_length"},
        {"llama", INT(".attention.key_length", 4096), SL_BAD_FILE, "key_length"},
        {"llama", INT(".attention.value_length", 16), SL_BAD_FILE, "'blk.0.attn_v.weight'"},
        {"llama", INT(".rope.dimension_count", 34), SL_BAD_FILE, "rope.dimension_count"},
        {"llama", INT(".rope.dimension_count", 7), SL_BAD_FILE, "rope.dimension_count"},
        {"llama", FLOAT(".rope.freq_base", 0), SL_BAD_FILE, "rope.freq_base"},
        {"llama", FLOAT(".rope.freq_base", -5), SL_BAD_FILE, "rope.freq_base"},
        {"llama", FLOAT(".rope.freq_base", NAN), SL_BAD_FILE, "rope.freq_base"},
        {"llama", FLOAT(".rope.freq_base", INFINITY), SL_BAD_FILE, "rope.freq_base"},
        {"llama", TEXT(".rope.freq_base", "10000"), SL_BAD_FILE, "rope.freq_base"},
        {"llama", FLOAT(".rope.scaling.factor", -2), SL_BAD_FILE, "rope.scaling.factor"},
        {"llama", INT(".rope.scaling.type", 2), SL_BAD_FILE, "rope.scaling.type"},
        {"llama", FLOAT(".attention.layer_norm_rms_epsilon", 0), SL_BAD_FILE, "layer_norm_rms_epsilon"},
        {"llama", FLOAT(".attention.layer_norm_rms_epsilon", -1), SL_BAD_FILE, "layer_norm_rms_epsilon"},
        {"llama", FLOAT(".attention.layer_norm_rms_epsilon", NAN), SL_BAD_FILE, "layer_norm_rms_epsilon"},
        {"llama", INT(".attention.sliding_window", -1), SL_BAD_FILE, "sliding_window"},
        {"gemma2", FLOAT(".attn_logit_softcapping", -1), SL_BAD_FILE, "attn_logit_softcapping"},
        {"gemma2", FLOAT(".final_logit_softcapping", NAN), SL_BAD_FILE, "final_logit_softcapping"},
        {"gemma3", INTS(".attention.sliding_window_pattern", 1, 4), SL_BAD_FILE, "sliding_window_pattern"},
    };
    check_refusals(cases, SL_COUNT(cases));
}

TEST(impossible_tensors_are_refused_by_name) {
    static const refusal cases[] = {
        {"llama", DROP_T("token_embd.weight"), SL_BAD_FILE, "'token_embd.weight' is missing"},
        {"llama", DROP_T("output_norm.weight"), SL_BAD_FILE, "'output_norm.weight' is missing"},
        {"llama", DROP_T("blk.2.ffn_down.weight"), SL_BAD_FILE, "'blk.2.ffn_down.weight' is missing"},
        {"qwen2", DROP_T("blk.1.attn_k.bias"), SL_BAD_FILE, "'blk.1.attn_k.bias' is missing"},
        {"qwen3", DROP_T("blk.0.attn_q_norm.weight"), SL_BAD_FILE, "'blk.0.attn_q_norm.weight' is missing"},
        {"gemma2", DROP_T("blk.0.post_ffw_norm.weight"), SL_BAD_FILE, "'blk.0.post_ffw_norm.weight' is missing"},
        {"llama", ADD_T("blk.1.attn_q.bias", 128, 1), SL_BAD_FILE, "'blk.0.attn_q.bias' is missing"},
        {"llama", SHAPE_T("blk.1.attn_q.weight", 128, 64), SL_BAD_FILE, "128 x 64"},
        {"llama", SHAPE_T("blk.0.attn_norm.weight", 32, 1), SL_BAD_FILE, "'blk.0.attn_norm.weight'"},
        {"llama", SHAPE_T("output_norm.weight", 65, 1), SL_BAD_FILE, "'output_norm.weight'"},
        {"llama", RETYPE_T("blk.0.attn_norm.weight", SL_TYPE_F16), SL_UNSUPPORTED, "must be F32"},
        {"qwen2", RETYPE_T("blk.2.attn_q.bias", SL_TYPE_BF16), SL_UNSUPPORTED, "'blk.2.attn_q.bias'"},
        {"llama", RETYPE_T("blk.2.attn_q.weight", 24), SL_UNSUPPORTED, "type I8"},
        {"llama", ADD_T("rope_freqs.weight", 15, 1), SL_BAD_FILE, "rope_freqs.weight"},
    };
    check_refusals(cases, SL_COUNT(cases));
}

TEST(impossible_vocabularies_are_refused_by_name) {
    static const refusal cases[] = {
        {"llama", TEXT("tokenizer.ggml.model", "bert"), SL_UNSUPPORTED, "'bert'"},
        {"llama", TEXT("tokenizer.ggml.model", "t5"), SL_UNSUPPORTED, "'t5'"},
        {"llama", TEXT("tokenizer.ggml.model", "gpt2"), SL_BAD_FILE, "tokenizer.ggml.merges"},
        {"llama", INT("tokenizer.ggml.model", 1), SL_BAD_FILE, "tokenizer.ggml.model"},
        {"llama", DROP_K("tokenizer.ggml.tokens"), SL_BAD_FILE, "tokenizer.ggml.tokens"},
        {"llama", INTS("tokenizer.ggml.tokens", 1, 300), SL_BAD_FILE, "tokenizer.ggml.tokens"},
        {"llama", DROP_K("tokenizer.ggml.scores"), SL_BAD_FILE, "tokenizer.ggml.scores"},
        {"llama", FLOATS("tokenizer.ggml.scores", 1, 299), SL_BAD_FILE, "299 elements for 300"},
        {"llama", INTS("tokenizer.ggml.scores", 1, 300), SL_BAD_FILE, "tokenizer.ggml.scores"},
        {"llama", FLOATS("tokenizer.ggml.scores", NAN, 300), SL_BAD_FILE, "tokenizer.ggml.scores"},
        {"llama", FLOATS("tokenizer.ggml.token_type", 1, 300), SL_BAD_FILE, "tokenizer.ggml.token_type"},
        {"llama", INTS("tokenizer.ggml.token_type", 7, 300), SL_BAD_FILE, "tokenizer.ggml.token_type"},
        {"llama", INTS("tokenizer.ggml.token_type", 1, 301), SL_BAD_FILE, "tokenizer.ggml.token_type"},
        {"llama", INTS("tokenizer.ggml.merges", 1, 3), SL_BAD_FILE, "tokenizer.ggml.merges"},
        {"llama", INT("tokenizer.ggml.bos_token_id", 300), SL_BAD_FILE, "bos_token_id"},
        {"llama", INT("tokenizer.ggml.eos_token_id", -2), SL_BAD_FILE, "eos_token_id"},
        {"llama", INT("tokenizer.ggml.eot_token_id", 1e12), SL_BAD_FILE, "eot_token_id"},
        {"llama", TEXT("tokenizer.ggml.eos_token_id", "1"), SL_BAD_FILE, "eos_token_id"},
        {"llama", INT("tokenizer.ggml.add_bos_token", 1), SL_BAD_FILE, "add_bos_token"},
        {"llama", INT("tokenizer.chat_template", 1), SL_BAD_FILE, "chat_template"},
        {"llama", SHAPE_T("token_embd.weight", 64, 301), SL_BAD_FILE, "300 tokens"},
    };
    check_refusals(cases, SL_COUNT(cases));
}

static sl_model *open_with(const char *arch, const edit *edits) {
    model_recipe r = recipe(arch);
    r.edits = edits;
    return make_model(&r);
}

TEST(values_that_change_nothing_are_no_reason_to_refuse) {
    static const edit edits[] = {INT(".expert_count", 0),
                                 INT(".expert_used_count", 0),
                                 FLOAT(".logit_scale", 1),
                                 FLOAT(".residual_scale", 0),
                                 BOOL(".attention.causal", 1),
                                 FLOAT(".attention.clamp_kqv", 0),
                                 INTS(".rope.dimension_sections", 0, 4),
                                 TEXT(".rope.scaling.type", "none"),
                                 BOOL(".rope.scaling.finetuned", 1),
                                 TEXT(".tensor_data_layout", "Meta AI original pth"),
                                 INT(".vocab_size", 300),
                                 TEXT("some.key", "of somebody's own"),
                                 END};
    sl_model_close(open_with("llama", edits));
    static const edit qwen[] = {BOOL(".use_parallel_residual", 1), END};
    sl_model_close(open_with("qwen2", qwen));
}

TEST(a_window_holds_in_every_family) {
    static const char *const archs[] = {"llama", "smollm3", "qwen2", "qwen3"};
    static const edit window[] = {INT(".attention.sliding_window", 7), END};
    static const edit pattern[] = {INT(".attention.sliding_window", 7), INT(".attention.sliding_window_pattern", 2),
                                   END};
    for (size_t i = 0; i < SL_COUNT(archs); i++) {
        sl_model *m = open_with(archs[i], window);
        for (int l = 0; l < 3; l++) CHECK_INT(m->config.layer[l].window, 7);
        sl_model_close(m);
        m = open_with(archs[i], pattern);
        for (int l = 0; l < 3; l++) CHECK_INT(m->config.layer[l].window, l == 1 ? 0 : 7);
        sl_model_close(m);
    }
}

TEST(gemmas_have_their_patterns) {
    model_recipe r = recipe("gemma2");
    r.n_layer = 4;
    sl_model *m = make_model(&r);
    for (int l = 0; l < 4; l++) CHECK_INT(m->config.layer[l].window, l % 2 ? 0 : 4096);
    CHECK(m->config.attn_softcap == 50 && m->config.final_softcap == 30 && m->config.embed_scale == 8);
    CHECK_INT(m->config.n_rope, 1);
    sl_model_close(m);
    static const edit edits[] = {INT(".attention.sliding_window", 9), FLOAT(".rope.freq_base", 1e6), END};
    r = recipe("gemma3");
    r.n_layer = 7;
    r.edits = edits;
    m = make_model(&r);
    for (int l = 0; l < 7; l++) {
        CHECK_INT(m->config.layer[l].window, l == 5 ? 0 : 9);
        CHECK_INT(m->config.layer[l].rope, l == 5 ? 0 : 1);
    }
    CHECK(m->config.attn_softcap == 0 && m->config.final_softcap == 0);
    CHECK_NEAR(m->config.attn_scale, 1 / sqrt(32), 1e-7);
    sl_model_close(m);
}

TEST(the_27b_gemmas_scale_by_their_width) {
    for (uint32_t n_layer = 45; n_layer <= 46; n_layer++) {
        model_recipe r = recipe("gemma2");
        r.n_layer = n_layer;
        r.n_ff = 32, r.n_vocab = 64; // n_embd / n_head = 16, head_dim 32
        sl_model *m = make_model(&r);
        CHECK_NEAR(m->config.attn_scale, 1 / sqrt(n_layer == 46 ? 16 : 32), 1e-7);
        sl_model_close(m);
    }
}

TEST(smollm3_leaves_every_fourth_layer_unrotated) {
    model_recipe r = recipe("smollm3");
    r.n_layer = 8;
    sl_model *m = make_model(&r);
    for (int l = 0; l < 8; l++) CHECK_INT(m->config.layer[l].rope, l % 4 == 3 ? -1 : 0);
    sl_model_close(m);
}

TEST(rotary_scaling) {
    static const edit linear[] = {FLOAT(".rope.scaling.factor", 4), END};
    static const edit off[] = {FLOAT(".rope.scaling.factor", 4), TEXT(".rope.scaling.type", "none"), END};
    sl_model *m = open_with("llama", linear);
    for (int i = 0; i < 16; i++) CHECK_NEAR(m->config.rope[0].inv_freq[i] * pow(1e4, i / 16.0), 0.25, 1e-12);
    sl_model_close(m);
    m = open_with("llama", off);
    CHECK_NEAR(m->config.rope[0].inv_freq[0], 1, 0);
    sl_model_close(m);
    // transformers 5.24, _compute_yarn_parameters: theta 10000, factor 8, 32 columns, 512 positions
    // (float32 there)
    static const double want[16] = {
        1.0,     0.5623413,     0.27669930,    0.13337096,    0.0625,   0.028117066,   0.011858541,   0.0044456985,
        0.00125, 7.0292666e-04, 3.9528471e-04, 2.2228493e-04, 1.25e-04, 7.0292666e-05, 3.9528471e-05, 2.2228493e-05};
    static const edit yarn[] = {FLOAT(".rope.scaling.factor", 8), TEXT(".rope.scaling.type", "yarn"),
                                INT(".rope.scaling.original_context_length", 512), END};
    m = open_with("qwen3", yarn);
    for (int i = 0; i < 16; i++) CHECK(fabs(m->config.rope[0].inv_freq[i] / want[i] - 1) < 3e-7);
    CHECK_NEAR(m->config.rope[0].mscale, 1.2079441541679836, 1e-7);
    sl_model_close(m);
}

TEST(layers_may_differ) {
    static const edit edits[] = {INTS(".attention.head_count", 4, 3), INTS(".attention.head_count_kv", 2, 3),
                                 INTS(".feed_forward_length", 96, 3), END};
    sl_model_close(open_with("llama", edits));
}

TEST(head_size_follows_from_the_width) {
    static const edit edits[] = {DROP_K(".attention.key_length"), DROP_K(".attention.value_length"),
                                 DROP_K(".attention.head_count_kv"), END};
    model_recipe r = recipe("llama");
    r.n_head_kv = 4, r.head_dim = 16, r.edits = edits;
    sl_model *m = make_model(&r);
    CHECK_INT(m->config.layer[2].head_dim, 16);
    CHECK_INT(m->config.layer[2].n_head_kv, 4);
    CHECK(m->weights.tied && m->weights.output.source == m->weights.token_embd.source);
    sl_model_close(m);
}

TEST(a_file_without_vocabulary_has_token_ids_only) {
    static const edit absent[] = {DROP_K("tokenizer.ggml.model"), END};
    static const edit none[] = {TEXT("tokenizer.ggml.model", "no_vocab"), END};
    sl_model *m = open_with("llama", absent);
    CHECK_INT(m->vocab.kind, SL_VOCAB_NONE);
    CHECK_INT(m->vocab.bos, -1);
    sl_model_close(m);
    m = open_with("llama", none);
    CHECK_INT(m->vocab.kind, SL_VOCAB_NONE);
    sl_model_close(m);
}

TEST(vocabulary) {
    static const edit edits[] = {INT("tokenizer.ggml.eot_token_id", 7),
                                 INT("tokenizer.ggml.unknown_token_id", 4294967295.0),
                                 BOOL("tokenizer.ggml.add_bos_token", 0), TEXT("tokenizer.ggml.pre", "x"), END};
    model_recipe r = recipe("llama");
    r.edits = edits;
    sl_model *m;
    REQUIRE_OK(sl_model_open(&m, write_model(&r), &(sl_model_options){.vocab_only = true, .pre = "y"}),
               sl_error_text());
    const sl_vocab *v = &m->vocab;
    CHECK(v->kind == SL_VOCAB_SPM && v->n_vocab == 300 && v->bos == 0 && v->eos == 1 && v->unk == -1);
    CHECK(v->add_bos == 0 && v->add_eos == -1 && v->add_space_prefix == -1);
    CHECK(sl_span_is(v->pre, "y") && sl_span_is(v->token[3], "word3"));
    CHECK(v->score[299] == -299 && v->type[1] == 3 && v->type[299] == 1);
    REQUIRE(v->n_stop == 2);
    CHECK(v->stop[0] == 1 && v->stop[1] == 7);
    sl_model_close(m);
}

TEST(weights_are_looked_through_for_nan) {
    static const uint32_t types[] = {SL_TYPE_F32,  SL_TYPE_F16,    SL_TYPE_BF16,   SL_TYPE_Q4_0,
                                     SL_TYPE_Q4_1, SL_TYPE_Q5_0,   SL_TYPE_Q5_1,   SL_TYPE_Q8_0,
                                     SL_TYPE_Q2_K, SL_TYPE_Q3_K,   SL_TYPE_Q4_K,   SL_TYPE_Q5_K,
                                     SL_TYPE_Q6_K, SL_TYPE_IQ4_NL, SL_TYPE_IQ4_XS, SL_TYPE_MXFP4};
    static const uint16_t scale_at[] = {2, 0, 0, 0, 2, 0, 2, 0, 82, 108, 2, 2, 208, 0, 0, 0}; // facts of the format
    for (size_t i = 0; i < SL_COUNT(types); i++) {
        model_recipe r = recipe("llama");
        r.type = (sl_type)types[i];
        r.n_embd = 256, r.n_ff = 256, r.head_dim = 64, r.n_head = 4;
        sl_model *m = make_model(&r);
        CHECK_INT(sl_weights_check(m->gguf), SL_OK);
        const sl_weight *w = &m->weights.layer[2].ffn_down;
        const sl_type_info *info = sl_type_find(types[i]);
        char path[512];
        snprintf(path, sizeof path, "%s", sl_gguf_path(m->gguf));
        uint64_t at = sl_gguf_tensor_at(m->gguf, w->source)->file_off + w->n_bytes - info->blk_bytes + scale_at[i];
        sl_model_close(m);
        FILE *f = fopen(path, "r+b");
        REQUIRE(f && fseek(f, (long)at, SEEK_SET) == 0);
        uint8_t nan[2] = {0xff, 0x7f}; // of every kind
        if (types[i] == SL_TYPE_MXFP4) nan[0] = 0xff, nan[1] = 0;
        fwrite(nan, 1, types[i] == SL_TYPE_MXFP4 ? 1 : 2, f);
        fclose(f);
        REQUIRE_OK(sl_model_open(&m, path, NULL), sl_error_text());
        sl_status status = sl_weights_check(m->gguf);
        if (status != SL_BAD_FILE || !strstr(sl_error_text(), "blk.2.ffn_down.weight"))
            test_failed(__FILE__, __LINE__, "%s: status %d, %s", info->name, status, sl_error_text());
        sl_model_close(m);
    }
}

TEST(a_header_alone_can_be_planned) {
    model_recipe r = recipe("llama");
    const char *path = write_model(&r);
    sl_model *m;
    REQUIRE_OK(sl_model_open(&m, path, NULL), sl_error_text());
    uint64_t data = sl_gguf_tensor_at(m->gguf, 0)->file_off;
    sl_model_close(m);
    char command[700];
    snprintf(command, sizeof command, "truncate -s %llu '%s'", (unsigned long long)data, path);
    REQUIRE(system(command) == 0);
    CHECK_INT(sl_model_open(&m, path, NULL), SL_BAD_FILE);
    REQUIRE_OK(sl_model_open(&m, path, &(sl_model_options){.header_only = true}), sl_error_text());
    CHECK(m->weights.token_embd.data == NULL && m->weights.token_embd.n_bytes == 300 * 64 * 4);
    sl_model_close(m);
}

TEST(no_memory_is_an_error_and_no_leak) {
    model_recipe r = recipe("gemma3");
    const char *path = write_model(&r);
    sl_status status = SL_NO_MEMORY;
    int n = 0;
    while (status == SL_NO_MEMORY && n++ < 1000) {
        sl_model *m;
        sl_alloc_fail_at((uint64_t)n);
        status = sl_model_open(&m, path, NULL);
        sl_alloc_fail_at(0);
        CHECK((status == SL_OK) == (m != NULL));
        sl_model_close(m);
    }
    CHECK_INT(status, SL_OK);
    CHECK(n > 3);
}
