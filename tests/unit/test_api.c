// SPDX-License-Identifier: MIT
// sl_test: MODULES sluice LIBS jansson
//
// The public functions against careless callers: every one with NULL and with values out of range
// gives a status and a reason, sets its results to nothing, and does not crash. What they compute
// is tested elsewhere; here also that failed steps change nothing, and that a described file is
// valid JSON whatever it holds.
#include "harness.h"

#include <jansson.h>

#include "gguf/gguf.h"
#include "sluice.h"

static sluice_model *model;
static sluice_engine *engine;
static sluice_model_info info;

static const char *tiny_path(void) { return test_source_path("tests/golden/tiny/gemma3.gguf"); }

static void open_all(void) {
    REQUIRE_OK(sluice_model_open(&model, tiny_path(), NULL), sluice_last_error());
    REQUIRE_OK(sluice_model_get_info(model, &info), sluice_last_error());
    sluice_engine_options o = sluice_engine_options_default();
    o.n_ctx = 40, o.n_seq = 3, o.n_row_max = 16, o.n_logit_max = 4, o.n_thread = 1;
    REQUIRE_OK(sluice_engine_create(&engine, model, &o), sluice_last_error());
}

static void close_all(void) {
    sluice_engine_destroy(&engine);
    sluice_model_close(&model);
    CHECK(!engine && !model);
}

#define REFUSED(want, expr)                                                                   \
    do {                                                                                      \
        int got_ = (int)(expr);                                                               \
        if (got_ != (int)(want) || !sluice_last_error()[0])                                   \
            test_failed(__FILE__, __LINE__, "%s: %d (%s)", #expr, got_, sluice_last_error()); \
    } while (0)
#define BAD(expr) REFUSED(SLUICE_BAD_ARG, expr)

static int dirty; // an address that is no object; results must not keep it

TEST(files) {
    sluice_file *file = (void *)&dirty;
    char *text = (void *)&dirty;
    BAD(sluice_file_open(NULL, tiny_path()));
    BAD(sluice_file_open(&file, NULL));
    CHECK(file == NULL);
    file = (void *)&dirty;
    REFUSED(SLUICE_IO, sluice_file_open(&file, "/nonexistent/file"));
    CHECK(file == NULL);
    BAD(sluice_file_describe(NULL, true, 0, &text));
    CHECK(text == NULL);
    REQUIRE_OK(sluice_file_open(&file, tiny_path()), sluice_last_error());
    BAD(sluice_file_describe(file, true, 0, NULL));
    sluice_file_close(&file);
    sluice_file_close(&file);
    sluice_file_close(NULL);
    sluice_free(NULL);
    CHECK(file == NULL);
}

TEST(models) {
    BAD(sluice_model_open(NULL, tiny_path(), NULL));
    model = (void *)&dirty;
    BAD(sluice_model_open(&model, NULL, NULL));
    CHECK(model == NULL);
    sluice_model_options o = sluice_model_options_default();
    o.size = 0;
    BAD(sluice_model_open(&model, tiny_path(), &o));
    o.size = sizeof o + 1;
    BAD(sluice_model_open(&model, tiny_path(), &o));
    o = sluice_model_options_default();
    o.check = o.vocab_only = true;
    BAD(sluice_model_open(&model, tiny_path(), &o));
    BAD(sluice_model_get_info(NULL, &info));
    CHECK(info.arch == NULL);
    CHECK(!sluice_model_is_stop(NULL, 1));
    sluice_model_close(NULL);
    open_all();
    BAD(sluice_model_get_info(model, NULL));
    CHECK_TEXT(info.arch, "gemma3");
    CHECK(info.n_vocab > 0 && info.n_layer > 0 && info.weight_bytes > 0 && info.has_tokenizer);
    CHECK(!sluice_model_is_stop(model, -1) && !sluice_model_is_stop(model, INT32_MAX));
    CHECK(sluice_model_is_stop(model, info.eos));
    close_all();
}

TEST(an_older_and_shorter_options_struct_is_read_as_far_as_it_goes) {
    sluice_sampler_options o = sluice_sampler_options_default();
    o.size = offsetof(sluice_sampler_options, top_k); // a caller that knows no more than temp
    o.temp = 0, o.top_p = 99;
    sluice_sampler *sampler;
    REQUIRE_OK(sluice_sampler_create(&sampler, 3, 0, &o), sluice_last_error());
    int32_t token;
    REQUIRE_OK(sluice_sample(sampler, (float[]){1, 3, 2}, &token), sluice_last_error());
    CHECK_INT(token, 1);
    sluice_sampler_destroy(&sampler);
}

TEST(a_vocabulary_alone_gives_text_but_no_engine) {
    sluice_model_options o = sluice_model_options_default();
    o.vocab_only = true;
    REQUIRE_OK(sluice_model_open(&model, tiny_path(), &o), sluice_last_error());
    REQUIRE_OK(sluice_model_get_info(model, &info), sluice_last_error());
    CHECK_TEXT(info.arch, "gemma3");
    CHECK(info.n_vocab > 0);
    BAD(sluice_engine_create(&engine, model, NULL));
    char *text;
    BAD(sluice_explain(model, NULL, false, &text));
    size_t n;
    REQUIRE_OK(sluice_encode(model, NULL, 0, &n, "abc", 3, 0), sluice_last_error());
    CHECK(n > 0);
    sluice_model_close(&model);
}

TEST(text) {
    open_all();
    int32_t ids[64] = {0};
    char text[256];
    size_t n = 77;
    BAD(sluice_encode(NULL, ids, 64, &n, "a", 1, 0));
    CHECK_INT(n, 0);
    BAD(sluice_encode(model, ids, 64, NULL, "a", 1, 0));
    BAD(sluice_encode(model, NULL, 64, &n, "a", 1, 0));
    BAD(sluice_encode(model, ids, 64, &n, NULL, 1, 0));
    REQUIRE_OK(sluice_encode(model, ids, 64, &n, NULL, 0, 0), sluice_last_error());
    REQUIRE_OK(sluice_encode(model, NULL, 0, &n, "hello, world", 12, 0), sluice_last_error());
    size_t n_all = n;
    CHECK(n_all > 1 && n_all <= 15);
    REFUSED(SLUICE_FULL, sluice_encode(model, ids, 1, &n, "hello, world", 12, 0));
    CHECK_INT(n, n_all);
    REQUIRE_OK(sluice_encode(model, ids, 64, &n, "hello, world", 12, 0), sluice_last_error());
    BAD(sluice_decode(NULL, text, sizeof text, &n, ids, n_all, 0));
    BAD(sluice_decode(model, text, sizeof text, NULL, ids, n_all, 0));
    BAD(sluice_decode(model, NULL, 1, &n, ids, n_all, 0));
    BAD(sluice_decode(model, text, sizeof text, &n, NULL, 1, 0));
    BAD(sluice_decode(model, text, sizeof text, &n, (int32_t[]){info.n_vocab}, 1, 0));
    BAD(sluice_decode(model, text, sizeof text, &n, (int32_t[]){-1}, 1, 0));
    REFUSED(SLUICE_FULL, sluice_decode(model, text, 2, &n, ids, n_all, 0));
    REQUIRE_OK(sluice_decode(model, text, sizeof text, &n, ids, n_all, 0), sluice_last_error());
    CHECK(n == 12 && memcmp(text, "hello, world", 12) == 0);
    close_all();
}

TEST(streams) {
    open_all();
    sluice_stream *stream = (void *)&dirty;
    const char *piece;
    size_t n;
    BAD(sluice_stream_create(NULL, model, 0));
    BAD(sluice_stream_create(&stream, NULL, 0));
    CHECK(stream == NULL);
    BAD(sluice_stream_push(NULL, 0, &piece, &n));
    CHECK(n == 0 && piece);
    REQUIRE_OK(sluice_stream_create(&stream, model, SLUICE_SHOW_SPECIAL), sluice_last_error());
    BAD(sluice_stream_push(stream, 0, NULL, &n));
    BAD(sluice_stream_push(stream, 0, &piece, NULL));
    BAD(sluice_stream_push(stream, -2, &piece, &n));
    BAD(sluice_stream_push(stream, info.n_vocab, &piece, &n));
    for (int32_t id = 0; id < info.n_vocab; id++)
        REQUIRE_OK(sluice_stream_push(stream, id, &piece, &n), sluice_last_error());
    REQUIRE_OK(sluice_stream_push(stream, -1, &piece, &n), sluice_last_error());
    sluice_stream_destroy(&stream);
    sluice_stream_destroy(&stream);
    sluice_stream_destroy(NULL);
    close_all();
}

TEST(render) {
    open_all();
    const char *conversation = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}";
    char *text = (void *)&dirty;
    BAD(sluice_render(model, "x", conversation, 0, NULL));
    BAD(sluice_render(model, "x", NULL, 0, &text));
    CHECK(text == NULL);
    BAD(sluice_render(NULL, NULL, conversation, 0, &text));
    REFUSED(SLUICE_UNSUPPORTED, sluice_render(model, NULL, conversation, 0, &text)); // this file has none
    REFUSED(SLUICE_BAD_INPUT, sluice_render(NULL, "{{ 1", conversation, 0, &text));
    REFUSED(SLUICE_BAD_INPUT, sluice_render(NULL, "x", "{\"messages\"", 0, &text));
    REQUIRE_OK(sluice_render(NULL, "<{{ messages[0]['content'] }}>", conversation, 0, &text), sluice_last_error());
    CHECK_TEXT(text, "<hi>");
    sluice_free(text);
    close_all();
}

TEST(engine_options) {
    open_all();
    sluice_engine *e = (void *)&dirty;
    BAD(sluice_engine_create(NULL, model, NULL));
    BAD(sluice_engine_create(&e, NULL, NULL));
    CHECK(e == NULL);
#define WITH(want, ...)                                                          \
    do {                                                                         \
        sluice_engine_options o = sluice_engine_options_default();               \
        char *text = (void *)&dirty;                                             \
        o.n_thread = 1;                                                          \
        __VA_ARGS__;                                                             \
        e = (void *)&dirty;                                                      \
        REFUSED(want, sluice_engine_create(&e, model, &o));                      \
        CHECK(e == NULL);                                                        \
        if ((want) == SLUICE_NO_MEMORY) break; /* which explain does not mind */ \
        REFUSED(want, sluice_explain(model, &o, false, &text));                  \
        CHECK(text == NULL);                                                     \
    } while (0)
    WITH(SLUICE_BAD_ARG, o.size = 0);
    WITH(SLUICE_BAD_ARG, o.n_ctx = -1);
    WITH(SLUICE_BAD_ARG, o.n_seq = 0);
    WITH(SLUICE_BAD_ARG, o.n_row_max = 0);
    WITH(SLUICE_BAD_ARG, o.n_logit_max = -5);
    WITH(SLUICE_BAD_ARG, o.n_thread = -1);
    WITH(SLUICE_BAD_ARG, o.n_thread_prefill = 1 << 20);
    WITH(SLUICE_UNSUPPORTED, o.backend = "abacus");
    WITH(SLUICE_UNSUPPORTED, o.kv_k = "q4_k");
    WITH(SLUICE_UNSUPPORTED, o.kv_v = "no such type");
    WITH(SLUICE_NO_MEMORY, o.n_ctx = INT32_MAX);
    CHECK(strstr(sluice_last_error(), "n_ctx"));
    WITH(SLUICE_NO_MEMORY, o.n_ctx = INT32_MAX, o.n_seq = INT32_MAX);
    WITH(SLUICE_NO_MEMORY, o.n_ctx = 1 << 20, o.n_seq = 1 << 9);
    CHECK(strstr(sluice_last_error(), "n_seq"));
    close_all();
}

TEST(engine_questions) {
    open_all();
    sluice_engine_info engine_info;
    sluice_engine_stats stats;
    char *text = (void *)&dirty;
    BAD(sluice_engine_get_info(NULL, &engine_info));
    BAD(sluice_engine_get_info(engine, NULL));
    BAD(sluice_engine_get_stats(NULL, &stats));
    BAD(sluice_engine_get_stats(engine, NULL));
    BAD(sluice_explain(NULL, NULL, false, &text));
    CHECK(text == NULL);
    BAD(sluice_explain(model, NULL, false, NULL));
    CHECK(sluice_logits(NULL, 0) == NULL && sluice_logits(engine, 0) == NULL);
    CHECK_INT(sluice_seq_length(NULL, 0), 0);
    CHECK_INT(sluice_seq_length(engine, -1), 0);
    CHECK_INT(sluice_seq_length(engine, 3), 0);
    REQUIRE_OK(sluice_engine_get_info(engine, &engine_info), sluice_last_error());
    CHECK_INT(engine_info.n_ctx, 40);
    CHECK_INT(engine_info.n_seq, 3);
    CHECK_INT(engine_info.n_row_max, 16);
    CHECK_INT(engine_info.n_logit_max, 4);
    CHECK(engine_info.kv_bytes > 0 && engine_info.workspace_bytes > 0 && engine_info.token_bytes > 0);
    // three sequences of two blocks of 32
    CHECK_INT(engine_info.kv_bytes, engine_info.kv_position_bytes * 3 * 64);
    for (int json = 0; json < 2; json++) {
        REQUIRE_OK(sluice_explain(model, NULL, json, &text), sluice_last_error());
        CHECK(strstr(text, "matmul"));
        if (json) {
            json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
            CHECK_INT(json_array_size(json_object_get(root, "programs")), 3);
            json_decref(root);
        }
        sluice_free(text);
    }
    sluice_engine_destroy(NULL);
    close_all();
}

TEST(steps_that_cannot_be_made_change_nothing) {
    open_all();
    int32_t prompt[20] = {5, 6, 7, 8, 9};
    REQUIRE_OK(sluice_prefill(engine, 0, prompt, 5, NULL, NULL), sluice_last_error());
    float *before = malloc((size_t)info.n_vocab * sizeof *before);
    memcpy(before, sluice_logits(engine, 0), (size_t)info.n_vocab * sizeof *before);
    sluice_row good = {3, 0, 5, true};
    BAD(sluice_step(NULL, &good, 1));
    BAD(sluice_step(engine, NULL, 1));
    BAD(sluice_step(engine, &good, 0));
    sluice_row rows[41];
    for (int i = 0; i < 41; i++) rows[i] = (sluice_row){3, 1, i, false};
    BAD(sluice_step(engine, rows, 17));
    BAD(sluice_step(engine, rows, SIZE_MAX));
#define ROW(...) BAD(sluice_step(engine, (sluice_row[]){good, {__VA_ARGS__}}, 2))
    ROW(info.n_vocab, 0, 6, false);
    ROW(-1, 0, 6, false);
    ROW(3, 3, 0, false);
    ROW(3, -1, 0, false);
    ROW(3, 0, 5, false); // twice the same position
    ROW(3, 0, 7, false); // a gap
    ROW(3, 1, 5, false); // of the empty sequence
    ROW(3, 1, -1, false);
    ROW(3, 0, INT32_MIN, false);
    for (int i = 0; i < 5; i++) rows[i].wants_logits = true;
    BAD(sluice_step(engine, rows, 5));
    CHECK(strstr(sluice_last_error(), "n_logit_max"));
    BAD(sluice_prefill(NULL, 0, prompt, 5, NULL, NULL));
    BAD(sluice_prefill(engine, 0, NULL, 5, NULL, NULL));
    BAD(sluice_prefill(engine, 3, prompt, 5, NULL, NULL));
    BAD(sluice_prefill(engine, 0, prompt, 0, NULL, NULL));
    prompt[19] = info.n_vocab;
    BAD(sluice_prefill(engine, 0, prompt, 20, NULL, NULL));
    BAD(sluice_seq_truncate(NULL, 0, 0));
    BAD(sluice_seq_truncate(engine, 3, 0));
    BAD(sluice_seq_truncate(engine, 0, 6));
    BAD(sluice_seq_truncate(engine, 0, -1));
    BAD(sluice_seq_fork(NULL, 1, 0, 0));
    BAD(sluice_seq_fork(engine, 0, 0, 0));
    BAD(sluice_seq_fork(engine, 1, 0, 6));
    BAD(sluice_seq_fork(engine, 1, 3, 0));
    BAD(sluice_seq_fork(engine, -1, 0, 0));
    CHECK_INT(sluice_seq_length(engine, 0), 5);
    CHECK_INT(sluice_seq_length(engine, 1), 0);
    CHECK(memcmp(before, sluice_logits(engine, 0), (size_t)info.n_vocab * sizeof *before) == 0);
    CHECK(sluice_logits(engine, 1) == NULL && sluice_logits(engine, SIZE_MAX) == NULL);
    sluice_sampler *sampler;
    int32_t token, of_logits;
    REQUIRE_OK(sluice_sampler_create(&sampler, info.n_vocab, 0, NULL), sluice_last_error());
    BAD(sluice_sample_row(NULL, engine, 0, &token));
    BAD(sluice_sample_row(sampler, NULL, 0, &token));
    BAD(sluice_sample_row(sampler, engine, 0, NULL));
    BAD(sluice_sample_row(sampler, engine, 1, &token));
    CHECK_INT(token, 0);
    sluice_sampler_destroy(&sampler);
    sluice_sampler_options greedy = sluice_sampler_options_default();
    greedy.temp = 0;
    REQUIRE_OK(sluice_sampler_create(&sampler, info.n_vocab, 0, &greedy), sluice_last_error());
    REQUIRE_OK(sluice_sample(sampler, sluice_logits(engine, 0), &of_logits), sluice_last_error());
    REQUIRE_OK(sluice_sample_row(sampler, engine, 0, &token), sluice_last_error());
    CHECK_INT(token, of_logits);
    sluice_sampler_destroy(&sampler);
    free(before);
    close_all();
}

static int stop_at_20(void *user, uint64_t n, uint64_t total) {
    ++*(int *)user;
    CHECK_INT(total, 36);
    return n >= 20;
}

TEST(a_full_context_and_a_cancel_say_so) {
    open_all();
    int32_t prompt[64] = {0};
    int n_calls = 0;
    REFUSED(SLUICE_FULL, sluice_prefill(engine, 0, prompt, 41, NULL, NULL));
    CHECK_INT(sluice_seq_length(engine, 0), 0);
    REFUSED(SLUICE_CANCELLED, sluice_prefill(engine, 0, prompt, 36, stop_at_20, &n_calls));
    CHECK_INT(sluice_seq_length(engine, 0), 32); // two whole chunks
    CHECK_INT(n_calls, 2);
    REQUIRE_OK(sluice_prefill(engine, 0, prompt, 8, NULL, NULL), sluice_last_error());
    REFUSED(SLUICE_FULL, sluice_step(engine, &(sluice_row){1, 0, 40, true}, 1));
    CHECK_INT(sluice_seq_length(engine, 0), 40);
    for (int32_t seq = 1; seq < 3; seq++) // the others still have all their room
        REQUIRE_OK(sluice_prefill(engine, seq, prompt, 40, NULL, NULL), sluice_last_error());
    close_all();
}

TEST(samplers) {
    sluice_sampler *sampler = (void *)&dirty;
    int32_t token = 9, ids[4];
    float logits[4] = {1, 2, 3, 4}, logprobs[4], of = 7;
    BAD(sluice_sampler_create(NULL, 4, 4, NULL));
    BAD(sluice_sampler_create(&sampler, 0, 4, NULL));
    CHECK(sampler == NULL);
    BAD(sluice_sampler_create(&sampler, 4, -1, NULL));
    sluice_sampler_options o = sluice_sampler_options_default();
    o.size = 3;
    BAD(sluice_sampler_create(&sampler, 4, 4, &o));
    o = sluice_sampler_options_default();
    o.top_p = NAN;
    BAD(sluice_sampler_create(&sampler, 4, 4, &o));
    BAD(sluice_sample(NULL, logits, &token));
    CHECK_INT(token, 0);
    REQUIRE_OK(sluice_sampler_create(&sampler, 4, 4, NULL), sluice_last_error());
    BAD(sluice_sample(sampler, NULL, &token));
    BAD(sluice_sample(sampler, logits, NULL));
    sluice_sampler_accept(NULL, 1);
    sluice_sampler_accept(sampler, -1);
    sluice_sampler_accept(sampler, 4);
    REQUIRE_OK(sluice_sample(sampler, logits, &token), sluice_last_error());
    CHECK(token >= 0 && token < 4);
    char *state = (void *)&dirty;
    size_t n = 7;
    BAD(sluice_sampler_save(NULL, &state, &n));
    CHECK(state == NULL && n == 0);
    BAD(sluice_sampler_save(sampler, NULL, &n));
    BAD(sluice_sampler_save(sampler, &state, NULL));
    REQUIRE_OK(sluice_sampler_save(sampler, &state, &n), sluice_last_error());
    BAD(sluice_sampler_restore(NULL, state, n));
    BAD(sluice_sampler_restore(sampler, NULL, n));
    REFUSED(SLUICE_BAD_FILE, sluice_sampler_restore(sampler, state, n - 1));
    REQUIRE_OK(sluice_sampler_restore(sampler, state, n), sluice_last_error());
    sluice_free(state);
    sluice_sampler_destroy(&sampler);
    sluice_sampler_destroy(&sampler);
    sluice_sampler_destroy(NULL);
    CHECK_INT(sluice_top_logprobs(NULL, 4, 2, ids, logprobs, 0, &of), 0);
    CHECK_INT(sluice_top_logprobs(logits, 4, 2, NULL, logprobs, 0, NULL), 0);
    CHECK_INT(sluice_top_logprobs(logits, 4, 2, ids, NULL, 0, NULL), 0);
    CHECK_INT(sluice_top_logprobs(logits, 4, 0, NULL, NULL, 3, &of), 0);
    CHECK(of > -1 && of < 0);
    CHECK_INT(sluice_top_logprobs(logits, 4, 2, ids, logprobs, 0, NULL), 2);
    CHECK_INT(ids[0], 3);
}

TEST(status_names) {
    for (int i = -1; i <= SLUICE_INTERNAL + 1; i++) CHECK(sluice_status_name((sluice_status)i)[0]);
    CHECK_TEXT(sluice_status_name(SLUICE_OK), "ok");
    CHECK(sluice_last_error() != NULL);
}

// ---- a file that holds everything
// ------------------------------------------------------------------------------

static sl_status fill(void *user, size_t i, uint64_t off, void *out, size_t n_bytes) {
    (void)user, (void)i, (void)off;
    memset(out, 0, n_bytes);
    return SL_OK;
}

TEST(a_description_is_valid_json_whatever_the_file_holds) {
    char path[4200], *text;
    snprintf(path, sizeof path, "%s/odd.gguf", test_scratch_dir());
    sl_gguf_writer *w;
    const sl_span texts[] = {{"a\"b\\c", 5}, {"\xff\xc3", 2}, {"nul\0l", 5}, {NULL, 0}};
    const float floats[] = {NAN, -INFINITY, 0.1f, -0.0f, 3e38f, 1e-45f};
    const int32_t ints[] = {INT32_MIN, 0, INT32_MAX};
    uint64_t dim[] = {32, 3};
    REQUIRE_OK(sl_gguf_writer_create(&w), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_text(w, "general.architecture", sl_span_of("odd")), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_text(w, "odd.long", sl_span_make((char[300]){[298] = 'x', [299] = '\xc3'}, 300)),
               sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_f32(w, "odd.nan", NAN), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_bool(w, "odd.bool", true), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_u32(w, "odd.u32", UINT32_MAX), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_texts(w, "odd.texts", texts, 4), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_f32s(w, "odd.floats", floats, 6), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_i32s(w, "odd.ints", ints, 3), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_add_tensor(w, "odd.weight", SL_TYPE_Q8_0, dim, 2), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_write(w, path, fill, NULL), sl_error_text());
    sl_gguf_writer_destroy(w);

    sluice_file *file;
    REQUIRE_OK(sluice_file_open(&file, path), sluice_last_error());
    for (size_t max = 0; max < 3; max++) {
        REQUIRE_OK(sluice_file_describe(file, true, max, &text), sluice_last_error());
        json_error_t error;
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
        if (!root) test_failed(__FILE__, __LINE__, "%s in %s", error.text, text);
        REQUIRE(root);
        json_t *metadata = json_object_get(root, "metadata");
        json_t *values = json_object_get(json_object_get(metadata, "odd.floats"), "value");
        CHECK_INT(json_array_size(values), max ? max : 6);
        CHECK(json_is_null(json_array_get(values, 0)));
        if (max == 0) CHECK((float)json_real_value(json_array_get(values, 2)) == 0.1f);
        if (max == 0) CHECK((float)json_real_value(json_array_get(values, 5)) == 1e-45f);
        CHECK_INT(json_integer_value(json_object_get(json_object_get(metadata, "odd.u32"), "value")), UINT32_MAX);
        CHECK_INT(json_integer_value(json_object_get(json_object_get(metadata, "odd.texts"), "n")), 4);
        CHECK_INT(json_array_size(json_object_get(root, "tensors")), 1);
        json_decref(root);
        sluice_free(text);
    }
    REQUIRE_OK(sluice_file_describe(file, false, 2, &text), sluice_last_error());
    CHECK(strstr(text, "odd.weight") && strstr(text, "Q8_0") && strstr(text, "..."));
    sluice_free(text);
    sluice_file_close(&file);
    // and no engine of it
    REFUSED(SLUICE_UNSUPPORTED, sluice_model_open(&model, path, NULL));
    CHECK(strstr(sluice_last_error(), "odd"));
}
