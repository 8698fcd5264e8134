// SPDX-License-Identifier: MIT
// sl_test: MODULES sluice LIBS jansson BACKENDS cuda
//
// Tiny random models of every family and of every block type, whose logits were made by independent references
// (tools/make_tiny_goldens.py). Two measures over the 40 to 48 positions: the largest error over the root mean square
// of the logits, and the mean KL(reference || ours). With an f32 cache nothing but float32 rounding is left on `ref`;
// `cpu` and `cuda` multiply F32 weights in float32, and block types with 16-bit activations. The f16 cache rounds K and
// V to 11 bits.
#include "harness.h"

#include <jansson.h>

#include "sluice.h"

typedef struct golden {
    json_t *root;
    int32_t ids[64];
    size_t n;
    float *logits; // (n, n_vocab)
    int32_t n_vocab;
} golden;

static const char *golden_path(const char *name, const char *suffix) {
    char relative[256];
    snprintf(relative, sizeof relative, "tests/golden/tiny/%s%s", name, suffix);
    return test_source_path(relative);
}

// A .npy file of version 1, little-endian float32, two dimensions (numpy.lib.format).
static void load_npy(golden *g, const char *path) {
    FILE *file = fopen(path, "rb");
    REQUIRE(file);
    char head[10], dict[4096] = {0};
    REQUIRE(fread(head, 1, 10, file) == 10 && memcmp(head, "\x93NUMPY\x01", 7) == 0);
    size_t n_dict = (unsigned char)head[8] | (size_t)(unsigned char)head[9] << 8, rows, cols;
    REQUIRE(n_dict < sizeof dict && fread(dict, 1, n_dict, file) == n_dict && strstr(dict, "'<f4'"));
    REQUIRE(sscanf(strchr(dict, '('), "(%zu, %zu)", &rows, &cols) == 2 && rows == g->n);
    g->n_vocab = (int32_t)cols;
    g->logits = malloc(rows * cols * sizeof(float));
    REQUIRE(g->logits && fread(g->logits, sizeof(float), rows * cols, file) == rows * cols);
    fclose(file);
}

static golden golden_open(const char *name) {
    golden g = {.root = json_load_file(golden_path(name, ".json"), 0, NULL)};
    REQUIRE(g.root);
    json_t *ids = json_object_get(g.root, "ids");
    g.n = json_array_size(ids);
    REQUIRE(g.n > 0 && g.n <= 64);
    for (size_t i = 0; i < g.n; i++) g.ids[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    load_npy(&g, golden_path(name, ".npy"));
    return g;
}

typedef struct distance {
    double error, kl; // largest; mean over the positions
} distance;

static double log_sum_exp(const float *x, int32_t n) {
    double max = -INFINITY, sum = 0;
    for (int32_t i = 0; i < n; i++) max = fmax(max, x[i]);
    for (int32_t i = 0; i < n; i++) sum += exp(x[i] - max);
    return max + log(sum);
}

static void add_distance(distance *d, const float *want, const float *got, int32_t n, double rms) {
    double z_want = log_sum_exp(want, n), z_got = log_sum_exp(got, n), kl = 0;
    for (int32_t i = 0; i < n; i++) {
        double p = want[i] - z_want, q = got[i] - z_got;
        kl += exp(p) * (p - q);
        double error = fabs((double)got[i] - want[i]) / rms;
        if (!(error <= d->error)) d->error = error; // NaN sticks
    }
    d->kl += kl;
}

static distance measure(const char *name, const char *backend, const char *kv) {
    golden g = golden_open(name);
    sluice_model *model;
    sluice_engine *engine;
    REQUIRE_OK(sluice_model_open(&model, golden_path(name, ".gguf"), NULL), sluice_last_error());
    sluice_engine_options o = sluice_engine_options_default();
    o.backend = backend;
    o.kv_k = o.kv_v = kv;
    o.n_ctx = 128;
    o.n_row_max = o.n_logit_max = 64;
    o.n_thread = 2;
    sluice_status status = sluice_engine_create(&engine, model, &o);
    if (status == SLUICE_DEVICE) test_skip_device(sluice_last_error());
    REQUIRE_OK(status, sluice_last_error());
    sluice_row rows[64];
    for (size_t i = 0; i < g.n; i++) rows[i] = (sluice_row){g.ids[i], 0, (int32_t)i, true};
    REQUIRE_OK(sluice_step(engine, rows, g.n), sluice_last_error());
    double sum = 0;
    for (size_t i = 0; i < g.n * (size_t)g.n_vocab; i++) sum += (double)g.logits[i] * g.logits[i];
    double rms = sqrt(sum / (double)(g.n * (size_t)g.n_vocab));
    distance d = {0};
    for (size_t i = 0; i < g.n; i++)
        add_distance(&d, g.logits + i * (size_t)g.n_vocab, sluice_logits(engine, i), g.n_vocab, rms);
    d.kl /= (double)g.n;
    printf("    %-24s %-4s %-4s error %.2e, KL %.2e\n", name, backend, kv, d.error, d.kl);
    sluice_engine_destroy(&engine);
    sluice_model_close(&model);
    free(g.logits);
    json_decref(g.root);
    return d;
}

static void check_f32(const char *name) {
    CHECK(measure(name, test_backend(), "f32").error < 1e-3);
    CHECK(measure(name, test_backend(), "f16").kl < 1e-5);
    if (strcmp(test_backend(), "cpu") != 0) return;
    CHECK(measure(name, "ref", "f32").error < 1e-4);
    CHECK(measure(name, "ref", "f16").kl < 1e-5);
}

static void check_quantised(const char *name) {
    CHECK(measure(name, test_backend(), "f16").kl < 1e-4);
    if (strcmp(test_backend(), "cpu") == 0) CHECK(measure(name, "ref", "f32").error < 1e-4);
}

TEST(llama_rope_factors) { check_f32("llama-rope-factors"); }
TEST(llama_linear_spm) { check_f32("llama-linear-spm"); }
TEST(llama_biases) { check_f32("llama-biases"); }
TEST(llama_tied_wide_heads) { check_f32("llama-tied-wide-heads"); }
TEST(mistral) { check_f32("mistral"); }
TEST(mistral_window) { check_f32("mistral-window"); }
TEST(smollm3) { check_f32("smollm3"); }
TEST(qwen2) { check_f32("qwen2"); }
TEST(qwen2_tied) { check_f32("qwen2-tied"); }
TEST(qwen3) { check_f32("qwen3"); }
TEST(qwen3_output) { check_f32("qwen3-output"); }
TEST(qwen3_yarn) { check_f32("qwen3-yarn"); }
TEST(gemma2) { check_f32("gemma2"); }
TEST(gemma3) { check_f32("gemma3"); }
TEST(gemma3_linear) { check_f32("gemma3-linear"); }
TEST(llama_every_k_type) { check_quantised("llama-k-types"); }
TEST(qwen2_every_old_type) { check_quantised("qwen2-old-types"); }
TEST(gemma3_every_old_type) { check_quantised("gemma3-old-types"); }
