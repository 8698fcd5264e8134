// SPDX-License-Identifier: MIT
// sl_test: MODULES sluice RESOURCE cpu BACKENDS cuda
//
// The same bits: the logits of a text do not depend on the number of threads, on the size of the
// steps it came in, on who else was in the batch, or on blocks shared with another sequence. Every
// comparison is of all logits of all positions, to the last bit, with those of one thread and one
// row at a time.
#include "harness.h"

#include <dirent.h>

#include "sluice.h"

enum { MAX_TOK = 640 };

typedef struct text {
    const sluice_model *model;
    int32_t ids[MAX_TOK], n, n_vocab;
    float *want; // (n, n_vocab)
    const char *name;
    const char *kv; // type of the cache; NULL: the default
    int32_t n_ctx;  // of a window that the text is longer than; 0: all of it fits
} text;

typedef struct setting {
    const char *name;
    int32_t n_thread, n_thread_prefill, n_chunk;
    sluice_repack repack;
} setting;

static sluice_engine *open_engine(const text *t, const setting *s, int32_t n_seq) {
    sluice_engine_options o = sluice_engine_options_default();
    o.n_ctx = MAX_TOK + 32, o.n_seq = n_seq, o.n_row_max = 512, o.n_logit_max = 4 * MAX_TOK;
    if (t->n_ctx) o.n_ctx = t->n_ctx, o.ctx_window = true;
    o.repack = s->repack;
    o.kv_k = o.kv_v = t->kv;
    o.n_thread = s->n_thread, o.n_thread_prefill = s->n_thread_prefill;
    o.backend = test_backend();
    sluice_engine *e;
    sluice_status status = sluice_engine_create(&e, t->model, &o);
    // Backends other than cpu may lack a type of cache, or contexts that move, and nothing else.
    bool may_lack = (t->kv || t->n_ctx) && strcmp(test_backend(), "cpu") != 0;
    if (status == SLUICE_DEVICE || (status == SLUICE_UNSUPPORTED && may_lack)) test_skip_device(sluice_last_error());
    REQUIRE_OK(status, sluice_last_error());
    return e;
}

static void compare(const text *t, const char *how, const sluice_engine *e, size_t row, int32_t pos) {
    const float *got = sluice_logits(e, row), *want = t->want + (size_t)pos * (size_t)t->n_vocab;
    REQUIRE(got);
    if (memcmp(got, want, (size_t)t->n_vocab * sizeof *got) == 0) return;
    int32_t at = 0;
    while (memcmp(&got[at], &want[at], sizeof *got) == 0) at++;
    test_failed(__FILE__, __LINE__, "%s, %s: position %d, token %d: %.9g, not %.9g", t->name, how, pos, at,
                (double)got[at], (double)want[at]);
}

// Positions begin .. end-1 of the text in one step.
static void step(const text *t, sluice_engine *e, int32_t seq, int32_t begin, int32_t end) {
    sluice_row rows[MAX_TOK];
    for (int32_t i = begin; i < end; i++) rows[i - begin] = (sluice_row){t->ids[i], seq, i, true};
    REQUIRE_OK(sluice_step(e, rows, (size_t)(end - begin)), sluice_last_error());
}

static void check_setting(const text *t, const setting *s) {
    sluice_engine *e = open_engine(t, s, 1);
    for (int32_t begin = 0; begin < t->n; begin += s->n_chunk) {
        int32_t end = begin + s->n_chunk < t->n ? begin + s->n_chunk : t->n;
        step(t, e, 0, begin, end);
        for (int32_t i = begin; i < end; i++) compare(t, s->name, e, (size_t)(i - begin), i);
    }
    sluice_engine_destroy(&e);
}

// Our rows lie among rows of three other sequences, whose lengths and positions differ; n_ours of
// ours a step.
static void check_company(const text *t, int32_t n_ours) {
    static const setting two = {"", 2, 2, 0, SLUICE_REPACK_AUTO};
    char name[64];
    snprintf(name, sizeof name, "%d rows a step among others", n_ours);
    sluice_engine *e = open_engine(t, &two, 4);
    int32_t length[4] = {0};
    while (length[2] < t->n) {
        sluice_row rows[4 * MAX_TOK];
        int32_t n = 0, n_more[4], at[MAX_TOK], n_at = 0;
        for (int s = 0; s < 4; s++) {
            int32_t room = s == 2 ? t->n - length[s] : MAX_TOK - length[s];
            n_more[s] = s == 2 ? n_ours : (int32_t)test_below((uint32_t)n_ours + 1);
            n_more[s] = n_more[s] < room ? n_more[s] : room;
        }
        for (;;) { // at random, so that runs of one sequence are broken up
            int s = (int)test_below(4), tries = 0;
            while (n_more[s] == 0 && tries++ < 4) s = (s + 1) % 4;
            if (n_more[s] == 0) break;
            int32_t token = s == 2 ? t->ids[length[s]] : (int32_t)test_below((uint32_t)t->n_vocab);
            if (s == 2) at[n_at++] = n;
            rows[n++] = (sluice_row){token, s, length[s]++, true};
            n_more[s]--;
        }
        REQUIRE_OK(sluice_step(e, rows, (size_t)n), sluice_last_error());
        for (int32_t i = 0; i < n_at; i++) compare(t, name, e, (size_t)at[i], length[2] - n_at + i);
    }
    sluice_engine_destroy(&e);
}

// A fork inside a block, continued by both sides in one batch; then a truncation and the same
// again.
static void check_fork(const text *t) {
    static const setting two = {"", 2, 2, 0, SLUICE_REPACK_AUTO};
    sluice_engine *e = open_engine(t, &two, 3);
    int32_t half = t->n / 2 + 3;
    step(t, e, 0, 0, half);
    REQUIRE_OK(sluice_seq_fork(e, 2, 0, half), sluice_last_error());
    REQUIRE_OK(sluice_seq_fork(e, 1, 0, half - 2), sluice_last_error());
    // sequence 1 goes another way and must disturb nobody
    for (int32_t i = half - 2; i < half + 4; i++)
        REQUIRE_OK(sluice_step(e, &(sluice_row){t->ids[0], 1, i, false}, 1), sluice_last_error());
    for (int32_t i = half; i < t->n; i++) {
        sluice_row rows[2] = {{t->ids[i], 0, i, true}, {t->ids[i], 2, i, true}};
        REQUIRE_OK(sluice_step(e, rows, 2), sluice_last_error());
        compare(t, "fork, source", e, 0, i);
        compare(t, "fork, copy", e, 1, i);
    }
    int32_t back = half - 5;
    if (t->kv && t->kv[0] == 'q') { // keys are codes of whole blocks of 32
        if (back % 32 && back / 32 + 1 < t->n / 32) CHECK_INT(sluice_seq_truncate(e, 2, back), SLUICE_UNSUPPORTED);
        back -= back % 32;
    }
    REQUIRE_OK(sluice_seq_truncate(e, 2, back), sluice_last_error());
    step(t, e, 2, back, t->n);
    for (int32_t i = back; i < t->n; i++) compare(t, "truncated", e, (size_t)(i - back), i);
    sluice_engine_destroy(&e);
}

static void check_window(const char *path, int32_t n, int32_t n_ctx, const setting *settings, size_t n_settings,
                         const char *kv) {
    sluice_model *model;
    sluice_model_info info;
    REQUIRE_OK(sluice_model_open(&model, path, NULL), sluice_last_error());
    REQUIRE_OK(sluice_model_get_info(model, &info), sluice_last_error());
    text t = {
        .model = model, .n = n, .n_vocab = info.n_vocab, .name = strrchr(path, '/') + 1, .kv = kv, .n_ctx = n_ctx};
    for (int32_t i = 0; i < n; i++) t.ids[i] = (int32_t)test_below((uint32_t)info.n_vocab);
    t.want = malloc((size_t)n * (size_t)info.n_vocab * sizeof *t.want);
    static const setting alone = {"one thread, one row", 1, 1, 1, SLUICE_REPACK_OFF};
    sluice_engine *e = open_engine(&t, &alone, 1);
    double spread = 0;
    for (int32_t i = 0; i < n; i++) {
        step(&t, e, 0, i, i + 1);
        memcpy(t.want + (size_t)i * (size_t)t.n_vocab, sluice_logits(e, 0), (size_t)t.n_vocab * sizeof *t.want);
        spread = fmax(spread, fabs((double)(t.want[i * t.n_vocab] - t.want[0])));
    }
    CHECK(spread > 0); // or nothing below could fail
    sluice_engine_destroy(&e);
    for (size_t i = 0; i < n_settings; i++) check_setting(&t, &settings[i]);
    check_company(&t, 1);
    check_company(&t, 13);
    check_fork(&t);
    free(t.want);
    sluice_model_close(&model);
}

static void check_model(const char *path, int32_t n, const setting *settings, size_t n_settings, const char *kv) {
    check_window(path, n, 0, settings, n_settings, kv);
}

static const setting all_settings[] = {
    {"2 threads", 2, 2, 1, SLUICE_REPACK_ON},
    {"3 threads", 3, 3, 1, SLUICE_REPACK_OFF},
    {"7 threads", 7, 7, 1, SLUICE_REPACK_ON},
    {"steps of 3", 2, 2, 3, SLUICE_REPACK_ON},
    {"steps of 8", 2, 2, 8, SLUICE_REPACK_OFF},
    {"steps of 8, 7 threads", 7, 7, 8, SLUICE_REPACK_ON},
    {"steps of 9", 2, 2, 9, SLUICE_REPACK_ON},
    {"steps of 32", 2, 2, 32, SLUICE_REPACK_OFF},
    {"steps of 32, 3 threads", 3, 3, 32, SLUICE_REPACK_ON},
    {"steps of 512", 2, 2, 512, SLUICE_REPACK_ON},
    {"steps of 512, 7 threads", 7, 7, 512, SLUICE_REPACK_ON},
    {"steps of 512, 1 thread", 1, 1, 512, SLUICE_REPACK_ON},
};

static bool on_cpu(void) { return strcmp(test_backend(), "cpu") == 0; } // where levels mean something

// Every tiny model (families, weight types), at every level that this machine has.
static void check_tiny(const char *level) {
    if (level) setenv("SLUICE_CPU", level, 1);
    else unsetenv("SLUICE_CPU");
    DIR *dir = opendir(test_source_path("tests/golden/tiny"));
    REQUIRE(dir);
    int n_models = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        if (n < 5 || strcmp(entry->d_name + n - 5, ".gguf") != 0) continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", test_source_path("tests/golden/tiny"), entry->d_name);
        check_model(path, 70, all_settings, sizeof all_settings / sizeof *all_settings, NULL);
        n_models++;
    }
    closedir(dir);
    CHECK(n_models >= 8);
}

TEST(tiny_models_on_the_best_level) { check_tiny(NULL); }
TEST(tiny_models_on_the_generic_level) {
    if (on_cpu()) check_tiny("generic");
}
#if defined(__x86_64__)
TEST(tiny_models_on_avx2) {
    if (!on_cpu()) return;
    if (!__builtin_cpu_supports("avx2")) test_skip("this processor has no AVX2");
    check_tiny("avx2");
}
#elif defined(__aarch64__)
TEST(tiny_models_on_neon) {
    if (on_cpu()) check_tiny("neon");
}
#endif

static const setting few_settings[] = {
    {"3 threads", 3, 3, 1, SLUICE_REPACK_OFF},
    {"7 threads, steps of 8", 7, 7, 8, SLUICE_REPACK_ON},
    {"steps of 32", 2, 2, 32, SLUICE_REPACK_OFF},
    {"steps of 512, 7 threads", 7, 7, 512, SLUICE_REPACK_ON},
};

static void check_real(const char *file) {
    check_model(test_model_path(file), 40, few_settings, sizeof few_settings / sizeof *few_settings, NULL);
}

// Caches of codes; and texts of several chunks of attention, which are cut between threads.
TEST(caches_of_codes) {
    static const char *const types[] = {"q8_0", "q5_0", "q4_0", "bf16"};
    for (int i = 0; i < 4; i++)
        check_model(test_source_path("tests/golden/tiny/qwen3.gguf"), i == 2 ? 600 : 70, few_settings,
                    sizeof few_settings / sizeof *few_settings, types[i]);
}
TEST(long_texts) {
    check_model(test_source_path("tests/golden/tiny/gemma3-old-types.gguf"), 600, few_settings,
                sizeof few_settings / sizeof *few_settings, NULL);
}

// Texts that are longer than the context, which moves on in the middle of steps, tiles and chunks. gemma3 has layers
// with windows of their own, in a table of theirs where the context is long enough for that.
TEST(contexts_that_move) {
    static const struct {
        const char *name, *kv;
        int32_t n, n_ctx;
    } texts[] = {{"qwen3", NULL, 300, 96},
                 {"qwen3", "q4_0", 600, 320},
                 {"gemma3", NULL, 600, 96},
                 {"gemma3", NULL, 600, 300},
                 {"llama-rope-factors", NULL, 300, 64}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char path[64];
        snprintf(path, sizeof path, "tests/golden/tiny/%s.gguf", texts[i].name);
        check_window(test_source_path(path), texts[i].n, texts[i].n_ctx, few_settings,
                     sizeof few_settings / sizeof *few_settings, texts[i].kv);
    }
}

TEST(smollm2) { check_real("SmolLM2-135M-Instruct.Q4_1.gguf"); }
TEST(gemma3) { check_real("gemma-3-270m-q4_k_m.gguf"); }

__attribute__((constructor)) static void set_timeout(void) { test_set_timeout(600); }
