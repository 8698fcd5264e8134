// SPDX-License-Identifier: MIT
// sl_test: MODULES sluice
//
// The n-th allocation fails, for every n, in a whole life: open a model, describe its file, create
// an engine, encode, render, read the prompt, sample, stream. Each time the function that met it
// says so, gives back nothing, and what came before is released (AddressSanitizer builds look for
// leaks); when n is past the last allocation all succeeds. Where memory is only for speed (PCRE2's
// compiler of patterns), doing without it is as good.
#include "harness.h"

#include "base/alloc.h"
#include "sluice.h"

typedef struct life {
    sluice_file *file;
    sluice_model *model;
    sluice_engine *engine;
    sluice_sampler *sampler;
    sluice_stream *stream;
    char *description, *explanation, *prompt;
} life;

// A result must be NULL exactly if the function failed.
#define MAKE(result, expr)                                                                               \
    do {                                                                                                 \
        (result) = (void *)&(result);                                                                    \
        status = (expr);                                                                                 \
        if ((status == SLUICE_OK) != ((result) != NULL))                                                 \
            test_failed(__FILE__, __LINE__, "%s: status %d leaves %p", #expr, status, (void *)(result)); \
        if (status != SLUICE_OK) {                                                                       \
            (result) = NULL;                                                                             \
            return status;                                                                               \
        }                                                                                                \
    } while (0)
#define DO(expr)                                \
    do {                                        \
        status = (expr);                        \
        if (status != SLUICE_OK) return status; \
    } while (0)

static sluice_status live(life *l, const char *path, const char *backend) {
    sluice_status status;
    sluice_model_info info;
    MAKE(l->file, sluice_file_open(&l->file, path));
    MAKE(l->description, sluice_file_describe(l->file, true, 0, &l->description));
    sluice_model_options m = sluice_model_options_default();
    m.check = true;
    MAKE(l->model, sluice_model_open(&l->model, path, &m));
    DO(sluice_model_get_info(l->model, &info));
    sluice_engine_options e = sluice_engine_options_default();
    e.backend = backend, e.n_ctx = 64, e.n_row_max = 16, e.n_thread = 2, e.wire = true;
    MAKE(l->explanation, sluice_explain(l->model, &e, true, &l->explanation));
    MAKE(l->engine, sluice_engine_create(&l->engine, l->model, &e));
    MAKE(l->prompt,
         sluice_render(l->model, "{% for m in messages %}<{{ m.role | upper }}>{{ m.content }}{% endfor %}",
                       "{\"messages\": [{\"role\": \"user\", \"content\": \"hello there\"}]}", 0, &l->prompt));
    int32_t ids[64];
    size_t n;
    DO(sluice_encode(l->model, ids, 64, &n, l->prompt, strlen(l->prompt), SLUICE_ADD_BOS | SLUICE_PARSE_SPECIAL));
    sluice_sampler_options s = sluice_sampler_options_default();
    s.repeat_penalty = 1.1f, s.typical_p = 0.9f;
    MAKE(l->sampler, sluice_sampler_create(&l->sampler, info.n_vocab, 64, &s));
    MAKE(l->stream, sluice_stream_create(&l->stream, l->model, 0));
    DO(sluice_prefill(l->engine, 0, ids, n, NULL, NULL));
    int32_t token;
    const char *text;
    char all[256];
    DO(sluice_sample(l->sampler, sluice_logits(l->engine, 0), &token));
    DO(sluice_stream_push(l->stream, token, &text, &n));
    DO(sluice_step(l->engine, &(sluice_row){token, 0, sluice_seq_length(l->engine, 0), true}, 1));
    return sluice_decode(l->model, all, sizeof all, &n, ids, 3, 0);
}

static void end(life *l) {
    sluice_stream_destroy(&l->stream);
    sluice_sampler_destroy(&l->sampler);
    sluice_engine_destroy(&l->engine);
    sluice_model_close(&l->model);
    sluice_file_close(&l->file);
    sluice_free(l->description);
    sluice_free(l->explanation);
    sluice_free(l->prompt);
}

static void fail_each(const char *name, const char *backend) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s.gguf", test_source_path("tests/golden/tiny"), name);
    int n_without = 0;
    for (uint64_t n = 1;; n++) {
        life l = {0};
        uint64_t n_before = sl_alloc_count();
        sl_alloc_fail_at(n);
        sluice_status status = live(&l, path, backend);
        sl_alloc_fail_at(0);
        bool failed = sl_alloc_count() - n_before >= n;
        end(&l);
        if (status == SLUICE_OK && !failed) {
            printf("    %s on %s: %llu allocations\n", name, backend, (unsigned long long)n - 1);
            CHECK(n > 50);
            CHECK(n_without < 16);
            return;
        }
        if (status == SLUICE_OK) n_without++;
        else if (status != SLUICE_NO_MEMORY || !strstr(sluice_last_error(), "memory"))
            test_failed(__FILE__, __LINE__, "allocation %llu: status %d: %s", (unsigned long long)n, status,
                        sluice_last_error());
        REQUIRE(n < 100000);
    }
}

TEST(sentencepiece_on_cpu) { fail_each("gemma3", "cpu"); }
TEST(sentencepiece_on_ref) { fail_each("gemma2", "ref"); }
TEST(bpe_on_cpu) { fail_each("qwen3", "cpu"); }

__attribute__((constructor)) static void set_timeout(void) { test_set_timeout(300); }
