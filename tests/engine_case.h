// SPDX-License-Identifier: MIT
//
// Engines of tiny models for tests of what they keep: sessions and prefixes.
#ifndef SL_TESTS_ENGINE_CASE_H
#define SL_TESTS_ENGINE_CASE_H

#include "engine/engine.h"
#include "harness.h"

enum { N_VOCAB = 256, N = 100 }; // ids that every tiny model has; of a prompt

static inline sl_model *open_model(const char *name) {
    char path[4200];
    sl_model *m;
    snprintf(path, sizeof path, "%s/%s.gguf", test_source_path("tests/golden/tiny"), name);
    REQUIRE_OK(sl_model_open(&m, path, NULL), sl_error_text());
    return m;
}

static inline sl_engine_options options_of(const sl_backend *backend, sl_type type) {
    return (sl_engine_options){
        .backend = backend,
        .n_ctx = 256,
        .n_seq = 3,
        .n_row_max = 24,
        .n_logit_max = 1,
        .n_thread = 1,
        .n_thread_prefill = 1,
        .type_k = type,
        .type_v = type,
        .prefix_cache = true,
    };
}

static inline sl_engine *open_engine(const sl_model *m, const sl_engine_options *o) {
    sl_engine *e;
    REQUIRE_OK(sl_engine_create(&e, m, o), sl_error_text());
    return e;
}

static inline void random_ids(int32_t *ids, int n) {
    for (int i = 0; i < n; i++) ids[i] = (int32_t)test_below(N_VOCAB);
}

static inline void prefill(sl_engine *e, int32_t seq, const int32_t *ids, size_t n) {
    REQUIRE_OK(sl_engine_prefill(e, seq, ids, n, NULL, NULL), sl_error_text());
}

static inline void same_logits(sl_engine *a, sl_engine *b) {
    REQUIRE(sl_engine_logits(a, 0) && sl_engine_logits(b, 0));
    size_t n_bytes = sl_engine_plan(a, 0)->n_vocab * sizeof(float);
    CHECK(memcmp(sl_engine_logits(a, 0), sl_engine_logits(b, 0), n_bytes) == 0);
}

static inline const char *file_path(const char *name) {
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", test_scratch_dir(), name);
    return path;
}

static inline size_t read_file(const char *path, uint8_t *out, size_t cap) {
    FILE *f = fopen(path, "rb");
    REQUIRE(f);
    size_t n = fread(out, 1, cap, f);
    fclose(f);
    REQUIRE(n > 0 && n < cap);
    return n;
}

static inline void write_file(const char *path, const uint8_t *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

#endif
