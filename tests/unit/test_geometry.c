// SPDX-License-Identifier: MIT
// sl_test: MODULES forecast
//
// What models keep of a sequence, against known bytes: the table of the project's notes
// (facts-anchors, section 8) and the figures that other programs report of real models.
#include "forecast/geometry.h"
#include "metadata.h"

typedef struct known { // of one model, cache in f16
    sl_geometry g;
    sl_arena arena;
    metadata m;
} known;

static void read_known(known *k) { REQUIRE_OK(sl_geometry_read(&k->g, meta_parse(&k->m), &k->arena), sl_error_text()); }

static void drop(known *k) {
    sl_arena_deinit(&k->arena);
    sl_gguf_close(k->m.gguf);
}

static sl_kv_sizes sizes(const known *k, sl_type type, uint32_t n_ctx) {
    sl_kv_sizes s;
    REQUIRE_OK(sl_geometry_kv(&s, &k->g, type, n_ctx), sl_error_text());
    return s;
}

static uint64_t total(const known *k, sl_type type, uint32_t n_ctx) {
    sl_kv_sizes s = sizes(k, type, n_ctx);
    return s.growing_bytes + s.window_bytes + s.state_bytes;
}

static const uint64_t mib = 1024 * 1024;

// ---- attention in every layer -------------------------------------------------------------------

TEST(plain_attention) {
    static const struct {
        const char *arch;
        uint32_t n_layer, n_head, n_head_kv, dim;
        uint64_t position_bytes;
    } models[] = {
        {"llama", 16, 32, 8, 64, 32768},                                                // Llama-3.2-1B
        {"llama", 28, 24, 8, 128, 114688},                                              // 3B
        {"llama", 32, 32, 8, 128, 131072},                                              // Llama-3.1-8B
        {"llama", 80, 64, 8, 128, 327680},                                              // 70B
        {"llama", 40, 32, 8, 128, 163840},                                              // Mistral Small 24B
        {"qwen3", 36, 32, 8, 128, 147456},                                              // Qwen3-4B, 8B
        {"qwen3moe", 48, 32, 4, 128, 98304},                                            // Qwen3-30B-A3B
        {"qwen3", 64, 64, 8, 128, 262144},                                              // Qwen3-32B
        {"glm4", 61, 48, 2, 128, 62464},                                                // GLM-4-32B
        {"glm4moe", 46, 96, 8, 128, 188416},                                            // GLM-4.5-Air
        {"seed_oss", 64, 80, 8, 128, 262144},                                           // Seed-OSS-36B
        {"llama", 60, 56, 8, 128, 245760},                                              // Yi-34B
        {"command-r", 40, 64, 64, 128, 1310720}, {"command-r", 40, 64, 8, 128, 163840}, // 08-2024
    };
    for (size_t i = 0; i < SL_COUNT(models); i++) {
        static known k;
        k = (known){0};
        meta_begin(&k.m, models[i].arch, models[i].n_layer, 4096);
        meta_heads(&k.m, models[i].n_head, models[i].n_head_kv, models[i].dim, models[i].dim);
        read_known(&k);
        sl_kv_sizes s = sizes(&k, SL_TYPE_F16, 65536);
        CHECK_INT(s.position_bytes, models[i].position_bytes);
        CHECK_INT(s.growing_bytes, models[i].position_bytes * 65536);
        CHECK_INT(s.window_bytes + s.state_bytes, 0);
        CHECK_INT(sizes(&k, SL_TYPE_Q4_0, 65536).growing_bytes, models[i].position_bytes * 65536 * 9 / 32);
        CHECK_INT(sizes(&k, SL_TYPE_Q8_0, 65536).growing_bytes,
                  models[i].position_bytes * 65536 * 35 / 64); // K 9 bits, V 8.5
        drop(&k);
    }
}

TEST(heads_and_dims_may_be_absent) {
    static known k;
    meta_begin(&k.m, "gpt2", 12, 768);
    meta_int(&k.m, "attention.head_count", 12);
    read_known(&k);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 1).position_bytes, 12 * 2 * 768 * 2);
    drop(&k);
}

TEST(nine_gigabytes_become_two_and_a_half) { // 64k tokens of 144 KiB each, in q4_0
    static known k;
    meta_begin(&k.m, "qwen3", 36, 4096);
    meta_heads(&k.m, 32, 8, 128, 128);
    read_known(&k);
    CHECK_INT(total(&k, SL_TYPE_F16, 65536), 9ull << 30);
    CHECK_INT(total(&k, SL_TYPE_Q4_0, 65536), (9ull << 30) * 9 / 32); // 2.53 GiB
    drop(&k);
}

// ---- windows ------------------------------------------------------------------------------------

static uint32_t five_local_one_full(uint32_t i) { return i % 6 < 5; }
static uint32_t four_local_one_full(uint32_t i) { return i % 5 < 4; }
static uint32_t gemma4_31b_kv(uint32_t i) { return i % 6 < 5 ? 16 : 4; }
static uint32_t gemma4_12b_kv(uint32_t i) { return i % 6 < 5 ? 8 : 1; }
static uint32_t gemma4_26b_kv(uint32_t i) { return i % 6 < 5 ? 8 : 2; }

static void check_window(known *k, uint64_t position_bytes, uint64_t window_bytes) {
    read_known(k);
    sl_kv_sizes s = sizes(k, SL_TYPE_F16, 65536);
    CHECK_INT(s.position_bytes, position_bytes);
    CHECK_INT(s.growing_bytes, position_bytes * 65536);
    CHECK_INT(s.window_bytes, window_bytes);
    drop(k);
}

TEST(gemma3_windows) {
    static const struct {
        uint32_t n_layer, n_head_kv, dim;
        uint64_t position_bytes, window_mib;
    } models[] = {{34, 4, 256, 20480, 116}, {48, 8, 256, 65536, 320}, {62, 16, 128, 81920, 416}};
    for (size_t i = 0; i < SL_COUNT(models); i++) {
        static known k;
        k = (known){0};
        meta_begin(&k.m, "gemma3", models[i].n_layer, 3840);
        meta_heads(&k.m, 16, models[i].n_head_kv, models[i].dim, models[i].dim);
        meta_int(&k.m, "attention.sliding_window", 1024);
        check_window(&k, models[i].position_bytes, models[i].window_mib * mib);
    }
}

static void gemma4(known *k, uint32_t n_layer, uint32_t (*n_head_kv)(uint32_t), uint32_t window) {
    meta_begin(&k->m, "gemma4", n_layer, 3840);
    meta_int(&k->m, "attention.head_count", 16);
    meta_ints(&k->m, "attention.head_count_kv", n_layer, n_head_kv);
    meta_int(&k->m, "attention.key_length", 512), meta_int(&k->m, "attention.value_length", 512);
    meta_int(&k->m, "attention.key_length_swa", 256);
    meta_int(&k->m, "attention.value_length_swa", 256);
    meta_int(&k->m, "attention.sliding_window", window);
}

TEST(gemma4_31b_to_the_byte) {
    static known k;
    gemma4(&k, 60, gemma4_31b_kv, 1024);
    meta_ints(&k.m, "attention.sliding_window_pattern", 60, five_local_one_full);
    read_known(&k);
    CHECK_INT(total(&k, SL_TYPE_BF16, 32768), 3523215360);
    CHECK_INT(total(&k, SL_TYPE_BF16, 65536), 6207569920);
    CHECK_INT(total(&k, SL_TYPE_BF16, 131072), 11576279040);
    CHECK_INT(total(&k, SL_TYPE_BF16, 262144), 22313697280);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 512).window_bytes, 400 * mib); // shorter than the window
    drop(&k);
}

TEST(gemma4_12b_and_26b) {
    static known k;
    gemma4(&k, 48, gemma4_12b_kv, 1024);
    meta_ints(&k.m, "attention.sliding_window_pattern", 48, five_local_one_full);
    check_window(&k, 16384, 320 * mib);
    k = (known){0};
    gemma4(&k, 30, gemma4_26b_kv, 1024);
    meta_ints(&k.m, "attention.sliding_window_pattern", 30, five_local_one_full);
    check_window(&k, 20480, 200 * mib);
}

static uint32_t one_kv(uint32_t i) { return (void)i, 1; }

TEST(gemma4_e2b_shares_caches) { // 35 layers, the last 20 read earlier ones; 3 full and 12 local
                                 // caches
    static known k;
    gemma4(&k, 35, one_kv, 512);
    meta_ints(&k.m, "attention.sliding_window_pattern", 35, four_local_one_full);
    meta_int(&k.m, "attention.shared_kv_layers", 20);
    read_known(&k);
    sl_kv_sizes s = sizes(&k, SL_TYPE_F16, 65536);
    CHECK_INT(s.position_bytes, 6144);
    CHECK_INT(s.window_bytes, 6 * mib);
    CHECK_INT(s.read_bytes, 7 * 2048 * 65536ull + 28 * 1024 * 512); // but all 35 layers read
    drop(&k);
}

TEST(gpt_oss_and_laguna) {
    static known k;
    meta_begin(&k.m, "gpt-oss", 24, 2880);
    meta_heads(&k.m, 64, 8, 64, 64);
    meta_int(&k.m, "attention.sliding_window", 128);
    check_window(&k, 24576, 3 * mib);
    k = (known){0};
    meta_begin(&k.m, "gpt-oss", 36, 2880);
    meta_heads(&k.m, 64, 8, 64, 64);
    meta_int(&k.m, "attention.sliding_window", 128);
    check_window(&k, 36864, 9 * mib / 2);
    k = (known){0};
    meta_begin(&k.m, "laguna", 40, 2048);
    meta_heads(&k.m, 48, 8, 128, 128);
    meta_int(&k.m, "attention.sliding_window", 512);
    read_known(&k);
    CHECK_INT(k.g.layer[0].window, 0); // the first of four sees all
    CHECK_INT(k.g.layer[3].window, 512);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 65536).position_bytes, 40960);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 65536).window_bytes, 60 * mib);
    drop(&k);
}

// ---- latents ------------------------------------------------------------------------------------

static void latent(known *k, const char *arch, uint32_t n_layer, uint32_t nextn) {
    meta_begin(&k->m, arch, n_layer + nextn, 7168);
    meta_heads(&k->m, 128, 1, 576, 512);
    meta_int(&k->m, "attention.key_length_mla", 192);
    meta_int(&k->m, "attention.value_length_mla", 128);
    meta_int(&k->m, "attention.kv_lora_rank", 512);
    meta_int(&k->m, "rope.dimension_count", 64);
    if (nextn) meta_int(&k->m, "nextn_predict_layers", nextn);
}

TEST(multi_head_latent_attention) {
    static known k;
    latent(&k, "deepseek2", 61, 0); // DeepSeek-V3
    read_known(&k);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 65536).position_bytes, 70272);
    drop(&k);
    k = (known){0};
    latent(&k, "deepseek2", 47, 1); // GLM-4.7-Flash: the head that predicts ahead is not counted
    read_known(&k);
    CHECK_INT(k.g.n_layer, 47);
    CHECK_INT(k.g.n_layer_nextn, 1);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 65536).position_bytes, 54144);
    drop(&k);
}

TEST(old_files_without_a_latent_keep_whole_heads) {
    static known k;
    meta_begin(&k.m, "deepseek2", 27, 2048);
    meta_heads(&k.m, 16, 16, 192, 128);
    meta_int(&k.m, "attention.kv_lora_rank", 512);
    read_known(&k);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 1).position_bytes, 27 * 16 * (192 + 128) * 2);
    drop(&k);
}

// ---- recurrent layers ---------------------------------------------------------------------------

// Gated delta nets: n_v heads of 128, 16 groups, state 128, convolution 4; every fourth layer
// attends.
static void delta_net(known *k, const char *arch, uint32_t n_layer, uint32_t n_head_kv, uint32_t n_v) {
    meta_begin(&k->m, arch, n_layer, 2048);
    meta_heads(&k->m, 16, n_head_kv, 256, 256);
    meta_int(&k->m, "ssm.conv_kernel", 4);
    meta_int(&k->m, "ssm.inner_size", n_v * 128);
    meta_int(&k->m, "ssm.state_size", 128);
    meta_int(&k->m, "ssm.group_count", 16);
    meta_int(&k->m, "full_attention_interval", 4);
    read_known(k);
}

TEST(qwen35_9b_as_llama_cpp_reports_it) { // its KV and states in MiB at six contexts
    static const uint32_t n_ctx[] = {4096, 8192, 16384, 32768, 65536, 131072};
    static const int want[] = {178, 306, 562, 1074, 2098, 4146};
    static known k;
    delta_net(&k, "qwen35", 32, 4, 32);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 1).position_bytes, 32768);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 1).state_bytes, 48 * mib + 9 * mib / 4);
    for (size_t i = 0; i < SL_COUNT(n_ctx); i++) CHECK_INT(total(&k, SL_TYPE_F16, n_ctx[i]) / mib, want[i]);
    drop(&k);
}

TEST(qwen35_others) {
    static const struct {
        const char *arch;
        uint32_t n_layer, n_head_kv, n_v;
        uint64_t position_bytes, state_mib;
    } models[] = {
        {"qwen35moe", 40, 2, 32, 20480, 60},  // 35B-A3B
        {"qwen35", 64, 4, 48, 65536, 144},    // 27B
        {"qwen35", 24, 2, 16, 12288, 18},     // 0.8B
        {"qwen35moe", 60, 2, 64, 30720, 180}, // 397B-A17B
        {"qwen3next", 48, 2, 32, 24576, 72},  // 80B-A3B
    };
    for (size_t i = 0; i < SL_COUNT(models); i++) {
        static known k;
        k = (known){0};
        delta_net(&k, models[i].arch, models[i].n_layer, models[i].n_head_kv, models[i].n_v);
        CHECK_INT(sizes(&k, SL_TYPE_F16, 65536).position_bytes, models[i].position_bytes);
        uint64_t n_state = 0;
        for (uint32_t l = 0; l < k.g.n_layer; l++) n_state += k.g.layer[l].n_state * 4;
        CHECK_INT(n_state, models[i].state_mib * mib);
        drop(&k);
    }
}

TEST(quantised_caches_as_reported) {
    static known k;
    delta_net(&k, "qwen35", 64, 4, 48); // 27B in q4_0: 1152 MiB at 64k, 2304 at 128k
    CHECK_INT(sizes(&k, SL_TYPE_Q4_0, 65536).growing_bytes, 1152 * mib);
    CHECK_INT(sizes(&k, SL_TYPE_Q4_0, 131072).growing_bytes, 2304 * mib);
    drop(&k);
    k = (known){0};
    delta_net(&k, "qwen35moe", 40, 2, 32); // 35B-A3B in q8_0 at 128,000: 1328 MiB at 8.5 bits, K has 9; states 63
    CHECK_INT(sizes(&k, SL_TYPE_Q8_0, 128000).growing_bytes / mib, 1328 * 35 / 34);
    CHECK_INT((sizes(&k, SL_TYPE_Q8_0, 128000).state_bytes + mib / 2) / mib, 63);
    drop(&k);
}

static uint32_t nemotron_kv(uint32_t i) { return i < 6 ? 2 : 0; }
static uint32_t nemotron_ff(uint32_t i) { return i < 29 ? 0 : 1856; }

// 6 layers attend, 23 are recurrent, 23 have experts only. (In the file they are mixed; the order
// is nothing here.)
static void nemotron(known *k) {
    meta_begin(&k->m, "nemotron_h_moe", 52, 2688);
    meta_int(&k->m, "attention.head_count", 32);
    meta_ints(&k->m, "attention.head_count_kv", 52, nemotron_kv);
    meta_ints(&k->m, "feed_forward_length", 52, nemotron_ff);
    meta_int(&k->m, "attention.key_length", 128), meta_int(&k->m, "attention.value_length", 128);
    meta_int(&k->m, "ssm.conv_kernel", 4);
    meta_int(&k->m, "ssm.inner_size", 4096);
    meta_int(&k->m, "ssm.state_size", 128);
    meta_int(&k->m, "ssm.group_count", 8);
    read_known(k);
}

TEST(nemotron_keeps_little) {
    static known k;
    nemotron(&k);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 65536).position_bytes, 6144);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 65536).state_bytes, 23 * (2 * mib + 3 * 6144 * 4));
    drop(&k);
}

TEST(falcon_h1_has_both_in_every_layer) {
    static known k;
    meta_begin(&k.m, "falcon-h1", 72, 5120);
    meta_heads(&k.m, 20, 4, 128, 128);
    meta_int(&k.m, "ssm.conv_kernel", 4), meta_int(&k.m, "ssm.inner_size", 4096);
    meta_int(&k.m, "ssm.state_size", 256), meta_int(&k.m, "ssm.group_count", 2);
    read_known(&k);
    sl_kv_sizes s = sizes(&k, SL_TYPE_F16, 65536);
    CHECK_INT(s.position_bytes, 147456);
    CHECK_INT(s.state_bytes, 72ull * 4 * (4096 * 256 + 3 * (4096 + 2 * 2 * 256)));
    drop(&k);
}

TEST(models_without_attention) {
    static known k;
    meta_begin(&k.m, "mamba2", 64, 2560);
    meta_int(&k.m, "ssm.conv_kernel", 4), meta_int(&k.m, "ssm.inner_size", 5120);
    meta_int(&k.m, "ssm.state_size", 128), meta_int(&k.m, "ssm.group_count", 1);
    read_known(&k);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 65536).growing_bytes, 0);
    CHECK_INT(total(&k, SL_TYPE_F16, 65536), 64ull * 4 * (5120 * 128 + 3 * (5120 + 256)));
    drop(&k);
    k = (known){0};
    meta_begin(&k.m, "rwkv7", 32, 4096);
    meta_int(&k.m, "wkv.head_size", 64);
    read_known(&k);
    CHECK_INT(total(&k, SL_TYPE_F16, 65536), 32ull * 4 * (4096 * 64 + 2 * 4096));
    drop(&k);
}

// vLLM pads caches to pages: a page holds one layer's state (float32, its convolution in 16 bits)
// or as many positions, a multiple of 16, as reach that size. It keeps two states, and layers go in
// groups as large as the number that attend.
static uint64_t vllm_bytes(const known *k, uint32_t n_ctx) {
    uint64_t position = 0, state = 0, n_attend = 0, n_state = 0;
    for (uint32_t i = 0; i < k->g.n_layer; i++) {
        const sl_geometry_layer *l = &k->g.layer[i];
        if (l->n_state) state = l->n_state * 4 + l->n_conv * 2, n_state++;
        if (l->n_head_kv) position = l->n_head_kv * (l->k_dim + l->v_dim) * 2ull, n_attend++;
    }
    uint64_t n_pos = (state + position * 16 - 1) / (position * 16) * 16, page = n_pos * position;
    uint64_t n_group = (n_state + n_attend - 1) / n_attend;
    return page * ((n_ctx + n_pos - 1) / n_pos * n_attend + 2 * n_group * n_attend);
}

TEST(pages_of_vllm_to_the_byte) {
    static known k;
    delta_net(&k, "qwen35", 64, 4, 48);
    CHECK_INT(vllm_bytes(&k, 262144), 17520656384);
    drop(&k);
    k = (known){0};
    delta_net(&k, "qwen35moe", 40, 2, 32);
    CHECK_INT(vllm_bytes(&k, 262144), 5514854400);
    drop(&k);
    k = (known){0};
    nemotron(&k);
    CHECK_INT(vllm_bytes(&k, 262144), 1725628416);
    drop(&k);
}

// ---- refusals -----------------------------------------------------------------------------------

static void refused(known *k, sl_status want, const char *word) {
    sl_status status = sl_geometry_read(&k->g, meta_parse(&k->m), &k->arena);
    CHECK_INT(status, want);
    if (!strstr(sl_error_text(), word)) test_failed(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", sl_error_text(), word);
    drop(k);
    *k = (known){0};
}

TEST(what_is_not_known_is_refused_by_name) {
    static known k;
    static const char *const archs[] = {"deepseek32", "deepseek4", "glm-dsa",       "qwen4exp",
                                        "bert",       "t5",        "llama2\x1b[31m"};
    for (size_t i = 0; i < SL_COUNT(archs); i++) {
        meta_begin(&k.m, archs[i], 4, 64);
        meta_heads(&k.m, 4, 4, 16, 16);
        refused(&k, SL_UNSUPPORTED, i + 1 < SL_COUNT(archs) ? archs[i] : "llama2?[31m");
    }
    latent(&k, "deepseek2", 61, 0);
    meta_int(&k.m, "attention.indexer.top_k", 2048);
    refused(&k, SL_UNSUPPORTED, "attention.indexer.top_k");
}

TEST(broken_keys_are_refused) {
    static known k;
    meta_begin(&k.m, "llama", 4, 64);
    refused(&k, SL_BAD_FILE, "attention.head_count");
    meta_begin(&k.m, "llama", 4, 64);
    meta_int(&k.m, "attention.head_count", 7); // does not divide 64
    refused(&k, SL_BAD_FILE, "width of a head");
    meta_begin(&k.m, "gpt-oss", 4, 64);
    meta_heads(&k.m, 4, 4, 16, 16);
    refused(&k, SL_BAD_FILE, "attention.sliding_window");
    gemma4(&k, 6, gemma4_31b_kv, 1024);
    refused(&k, SL_BAD_FILE, "attention.sliding_window_pattern");
    meta_begin(&k.m, "qwen35", 4, 64);
    meta_heads(&k.m, 4, 4, 16, 16);
    refused(&k, SL_BAD_FILE, "ssm.conv_kernel");
    meta_begin(&k.m, "llama", 4, 64);
    meta_heads(&k.m, 4, 4, 16, 16);
    meta_int(&k.m, "nextn_predict_layers", 4);
    refused(&k, SL_BAD_FILE, "nextn_predict_layers");
    latent(&k, "deepseek2", 4, 0);
    meta_int(&k.m, "expert_count", 8);
    refused(&k, SL_BAD_FILE, "expert_used_count");
    meta_begin(&k.m, "deepseek2", 4, 64);
    meta_heads(&k.m, 4, 1, 576, 512);
    meta_int(&k.m, "attention.key_length_mla", 192), meta_int(&k.m, "attention.value_length_mla", 128);
    meta_int(&k.m, "attention.kv_lora_rank", 256), meta_int(&k.m, "rope.dimension_count", 64);
    refused(&k, SL_BAD_FILE, "latent");
}

TEST(caches_beyond_counting_are_refused) {
    static known k;
    sl_kv_sizes s;
    meta_begin(&k.m, "llama", 1024, 1 << 20);
    meta_heads(&k.m, 1 << 14, 1 << 14, 1 << 16, 1 << 16);
    read_known(&k);
    CHECK_INT(sl_geometry_kv(&s, &k.g, SL_TYPE_F32, UINT32_MAX), SL_NO_MEMORY);
    CHECK(sl_geometry_attention_macs(&k.g, UINT32_MAX) > 1e18);
    drop(&k);
}

TEST(a_type_needs_whole_blocks) {
    static known k;
    sl_kv_sizes s;
    meta_begin(&k.m, "phi2", 32, 2560);
    meta_heads(&k.m, 32, 32, 80, 80);
    read_known(&k);
    CHECK_INT(sizes(&k, SL_TYPE_F16, 1).position_bytes, 32 * 32 * 160 * 2);
    CHECK_INT(sl_geometry_kv(&s, &k.g, SL_TYPE_Q8_0, 1), SL_UNSUPPORTED);
    CHECK(strstr(sl_error_text(), "80"));
    drop(&k);
}
