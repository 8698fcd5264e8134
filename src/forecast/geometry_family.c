// SPDX-License-Identifier: MIT
//
// The rows; see geometry_family.h. An architecture is added by adding its row and, in
// tests/unit/test_geometry.c, a model of it with its known bytes.
#include "forecast/geometry_family.h"

#include "base/compiler.h"

#define FILE_WINDOW(p)        .window_rule = SL_WINDOW_FILE, .pattern = (p)
#define REQUIRED_WINDOW(p)    .window_rule = SL_WINDOW_REQUIRED, .pattern = (p)
#define RECURRENT(rule, kind) .recurrent = SL_RECURRENT_##rule, .state = SL_STATE_##kind

// Attention in every layer over all positions.
static const sl_geometry_family plain = {.name = ""};
static const char *const plain_names[] = {
    "apertus",  "arcee",         "arctic",         "baichuan",     "bailingmoe", "bailingmoe2", "bitnet",
    "bloom",    "chameleon",     "chatglm",        "codeshell",    "command-r",  "dbrx",        "deci",
    "deepseek", "dots1",         "ernie4_5",       "ernie4_5-moe", "exaone",     "falcon",      "gemma",
    "glm4",     "glm4moe",       "gpt2",           "gptneox",      "granite",    "granitemoe",  "grok",
    "grovemoe", "hunyuan-dense", "hunyuan-moe",    "internlm2",    "jais",       "jais2",       "maincoder",
    "minicpm",  "minimax-m2",    "mistral3",       "mpt",          "nemotron",   "olmo",        "olmoe",
    "openelm",  "orion",         "pangu-embedded", "phi2",         "phi3",       "phimoe",      "plamo",
    "qwen",     "qwen2moe",      "qwen2vl",        "qwen3moe",     "qwen3vl",    "qwen3vlmoe",  "refact",
    "seed_oss", "stablelm",      "starcoder",      "starcoder2",   "xverse",
};

static const sl_geometry_family families[] = {
    // Attention in every layer; the engine honours a window that such a file names.
    {"llama", FILE_WINDOW(0)},
    {"smollm3", FILE_WINDOW(0)},
    {"qwen2", FILE_WINDOW(0)},
    {"qwen3", FILE_WINDOW(0)},
    // Windows in some layers.
    {"afmoe", FILE_WINDOW(4)},
    {"cohere2", REQUIRED_WINDOW(4)},
    {"cohere2moe", REQUIRED_WINDOW(4), .dense_first = 1},
    {"exaone-moe", REQUIRED_WINDOW(4), .window = 128},
    {"exaone4", REQUIRED_WINDOW(4), .window = 4096, .n_layer_only = 64},
    {"gemma2", REQUIRED_WINDOW(2), .window = 4096},
    {"gemma3", FILE_WINDOW(6)},
    {"gemma3n", REQUIRED_WINDOW(5), .n_layer_kv = 20},
    {"gemma4", REQUIRED_WINDOW(0)},
    {"gpt-oss", REQUIRED_WINDOW(2)},
    {"laguna", FILE_WINDOW(4), .dense_first = 1},
    {"mellum", FILE_WINDOW(4)},
    {"mimo2", REQUIRED_WINDOW(0)},
    {"olmo2", FILE_WINDOW(4)},
    {"plamo3", FILE_WINDOW(8)},
    {"step35", REQUIRED_WINDOW(0)},
    // One latent for keys and values of all heads.
    {"deepseek2", .mla = 1},
    {"mistral4", .mla = 1},
    // Recurrent layers.
    {"qwen3next", RECURRENT(INTERVAL, SSM)},
    {"qwen35", RECURRENT(INTERVAL, SSM)},
    {"qwen35moe", RECURRENT(INTERVAL, SSM)},
    {"minimax-01", RECURRENT(INTERVAL, LINEAR)},
    {"falcon-h1", RECURRENT(BESIDE, SSM)},
    {"granitehybrid", RECURRENT(NO_KV, SSM)},
    {"jamba", RECURRENT(NO_KV, SSM)},
    {"plamo2", RECURRENT(NO_KV, SSM)},
    {"nemotron_h", RECURRENT(NO_KV_FF, SSM)},
    {"nemotron_h_moe", RECURRENT(NO_KV_FF, SSM)},
    {"kimi-linear", RECURRENT(NO_KV, KDA), .mla = 1},
    {"lfm2", RECURRENT(NO_KV, SHORTCONV), FILE_WINDOW(0)},
    {"lfm2moe", RECURRENT(NO_KV, SHORTCONV)},
    {"mamba", RECURRENT(ALL, SSM)},
    {"mamba2", RECURRENT(ALL, SSM)},
    {"rwkv6", RECURRENT(ALL, WKV)},
    {"rwkv7", RECURRENT(ALL, WKV)},
};

const sl_geometry_family *sl_geometry_family_find(sl_span arch) {
    for (size_t i = 0; i < SL_COUNT(families); i++)
        if (sl_span_is(arch, families[i].name)) return &families[i];
    for (size_t i = 0; i < SL_COUNT(plain_names); i++)
        if (sl_span_is(arch, plain_names[i])) return &plain;
    return NULL;
}
