// SPDX-License-Identifier: MIT
// sl_test: MODULES sluice RESOURCE cpu
//
// A token costs no allocation and no page fault: 200 decode steps (the step, the choice of the
// token, its text) after the engine was created and the prompt read, counted through an interposed
// allocator, the library's own counter, and the kernel's fault counters. No warm-up beyond that:
// the first decode step counts too.
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "sluice.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)
#define INTERPOSED 1

static _Atomic uint64_t n_malloc;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t elem_bytes);
void *__libc_realloc(void *ptr, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n) {
    n_malloc++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t elem_bytes) {
    n_malloc++;
    return __libc_calloc(n, elem_bytes);
}

void *realloc(void *ptr, size_t n) {
    n_malloc++;
    return __libc_realloc(ptr, n);
}

void *aligned_alloc(size_t align, size_t n) {
    n_malloc++;
    return __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n) {
    n_malloc++;
    *out = __libc_memalign(align, n);
    return *out ? 0 : ENOMEM;
}
#else
static uint64_t n_malloc;
#endif

#ifdef SANITIZED
enum { N_STEP = 5 }; // many times slower, and there only to see the accesses
#else
enum { N_STEP = 200 };
#endif

typedef struct counts {
    uint64_t n_malloc, n_minor, n_major;
} counts;

static counts count_now(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (counts){n_malloc, (uint64_t)usage.ru_minflt, (uint64_t)usage.ru_majflt};
}

#ifdef INTERPOSED // the counters themselves must see what they are for
TEST(the_counters_count) {
    count_now(); // its own page
    counts before = count_now();
    enum { N_BYTES = 1 << 20 };
    char *volatile p = malloc(N_BYTES);
    for (int i = 0; i < N_BYTES; i += 4096) p[i] = 1;
    counts after = count_now();
    free(p);
    CHECK_INT(after.n_malloc - before.n_malloc, 1);
    CHECK(after.n_minor - before.n_minor >= 1);
}
#endif

static bool moves; // in a context that is full several times

// n_seq sequences decode together, one row each.
static void check(const char *path, const char *backend, const char *kv, int32_t n_seq, int32_t n_thread) {
    sluice_model *model;
    sluice_engine *engine;
    sluice_sampler *sampler;
    sluice_stream *stream = NULL;
    sluice_model_info info;
    REQUIRE_OK(sluice_model_open(&model, path, NULL), sluice_last_error());
    REQUIRE_OK(sluice_model_get_info(model, &info), sluice_last_error());
    sluice_engine_options o = sluice_engine_options_default();
    o.backend = backend, o.n_ctx = moves ? 64 : 512, o.ctx_window = moves, o.n_seq = n_seq, o.n_row_max = 64,
    o.n_thread = n_thread;
    o.kv_k = o.kv_v = kv;
    REQUIRE_OK(sluice_engine_create(&engine, model, &o), sluice_last_error());
    sluice_sampler_options s = sluice_sampler_options_default();
    s.typical_p = 0.95f, s.repeat_penalty = 1.1f;
    REQUIRE_OK(sluice_sampler_create(&sampler, info.n_vocab, 512, &s), sluice_last_error());
    if (info.has_tokenizer) REQUIRE_OK(sluice_stream_create(&stream, model, 0), sluice_last_error());
    sluice_row rows[8];
    for (int32_t seq = 0; seq < n_seq; seq++) {
        int32_t ids[70];
        for (int i = 0; i < 70; i++) ids[i] = (int32_t)test_below((uint32_t)info.n_vocab);
        REQUIRE_OK(sluice_prefill(engine, seq, ids, (size_t)(40 + 3 * seq), NULL, NULL), sluice_last_error());
        rows[seq] = (sluice_row){ids[0], seq, sluice_seq_length(engine, seq), true};
    }
    sluice_engine_stats stats_before, stats_after;
    REQUIRE_OK(sluice_engine_get_stats(engine, &stats_before), sluice_last_error());
    counts before = count_now();
    for (int i = 0; i < N_STEP; i++) {
        REQUIRE_OK(sluice_step(engine, rows, (size_t)n_seq), sluice_last_error());
        for (int32_t seq = 0; seq < n_seq; seq++) {
            const char *text;
            size_t n_bytes;
            REQUIRE_OK(sluice_sample(sampler, sluice_logits(engine, (size_t)seq), &rows[seq].token),
                       sluice_last_error());
            sluice_sampler_accept(sampler, rows[seq].token);
            if (stream) REQUIRE_OK(sluice_stream_push(stream, rows[seq].token, &text, &n_bytes), sluice_last_error());
            rows[seq].pos++;
        }
    }
    counts after = count_now();
    REQUIRE_OK(sluice_engine_get_stats(engine, &stats_after), sluice_last_error());
    CHECK_INT(after.n_malloc - before.n_malloc, 0);
    CHECK_INT(stats_after.n_alloc, 0);
    CHECK_INT(stats_after.n_step - stats_before.n_step, N_STEP);
    CHECK_INT(stats_after.n_row - stats_before.n_row, N_STEP * n_seq);
#ifndef SANITIZED // whose shadow memory faults
    CHECK_INT(after.n_minor - before.n_minor, 0);
    CHECK_INT(after.n_major - before.n_major, 0);
    CHECK_INT(stats_after.n_minor_fault - stats_before.n_minor_fault, 0);
    CHECK_INT(stats_after.n_major_fault - stats_before.n_major_fault, 0);
#endif
    sluice_stream_destroy(&stream);
    sluice_sampler_destroy(&sampler);
    sluice_engine_destroy(&engine);
    sluice_model_close(&model);
}

static const char *tiny(const char *name) {
    char relative[128];
    snprintf(relative, sizeof relative, "tests/golden/tiny/%s.gguf", name);
    return test_source_path(relative);
}

TEST(smollm2) { check(test_model_path("SmolLM2-135M-Instruct.Q4_1.gguf"), "cpu", "f16", 1, 2); }
TEST(tiny_one_thread) { check(tiny("llama-k-types"), "cpu", "f16", 1, 1); }
TEST(tiny_five_users_three_threads) { check(tiny("gemma3-old-types"), "cpu", "f16", 5, 3); }
TEST(tiny_f32_cache) { check(tiny("qwen3"), "cpu", "f32", 1, 2); }
TEST(codes_over_block_borders) { check(tiny("qwen3"), "cpu", "q8_0", 3, 2); }
TEST(contexts_that_move) {
    moves = true;
    check(tiny("qwen3"), "cpu", "f16", 1, 2);
    check(tiny("qwen3"), "cpu", "q4_0", 3, 2);
    check(tiny("gemma3"), "cpu", "f16", 2, 1);
}
TEST(four_bits) { check(tiny("qwen3"), "cpu", "q4_0", 1, 3); }
TEST(smollm2_four_bits) { check(test_model_path("SmolLM2-135M-Instruct.Q4_1.gguf"), "cpu", "q4_0", 1, 2); }
TEST(tiny_on_ref) { check(tiny("gemma2"), "ref", "f32", 1, 1); }

__attribute__((constructor)) static void set_timeout(void) { test_set_timeout(300); }
