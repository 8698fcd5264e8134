// SPDX-License-Identifier: MIT
// sl_test: MODULES engine
//
// Sequences that go on in a full context: what is kept of them, in the pool, in files and in the tree, and what is
// refused. That their bits do not depend on how they were computed is in tests/model/test_bits.c.
#include "engine_case.h"

enum { N_CTX = 96, N_LONG = 300 };

static sl_engine_options window_options(const sl_backend *backend, sl_type type) {
    sl_engine_options o = options_of(backend, type);
    o.n_ctx = N_CTX - 5; // rounded up
    o.ctx_window = true;
    return o;
}

static void step(sl_engine *e, int32_t seq, int32_t token) {
    REQUIRE_OK(sl_engine_step(e, &(sl_row){token, seq, sl_engine_seq_length(e, seq), true}, 1), sl_error_text());
}

static void go_on_alike(sl_engine *a, int32_t seq_a, sl_engine *b, int32_t seq_b) {
    for (int i = 0; i < 40; i++) { // over a block's border at least
        int32_t token = (int32_t)test_below(N_VOCAB);
        float kept[N_VOCAB];
        step(a, seq_a, token);
        memcpy(kept, sl_engine_logits(a, 0), sizeof kept);
        step(b, seq_b, token);
        CHECK(memcmp(kept, sl_engine_logits(b, 0), sizeof kept) == 0);
    }
}

static sl_status load(sl_engine *e, const char *path) {
    char *app;
    size_t n_app;
    sl_status status = sl_engine_session_load(e, 0, path, &app, &n_app);
    sl_free(app);
    return status;
}

static void check_sessions(const char *name, const sl_backend *backend, sl_type type) {
    sl_model *m = open_model(name);
    sl_engine_options o = window_options(backend, type);
    sl_engine *a = open_engine(m, &o), *b = open_engine(m, &o);
    int32_t ids[N_LONG];
    random_ids(ids, N_LONG);
    static const size_t lengths[] = {N_CTX, N_CTX + 1, 150, 224, N_LONG};
    for (size_t i = 0; i < SL_COUNT(lengths); i++) {
        REQUIRE_OK(sl_engine_seq_truncate(a, 1, 0), sl_error_text());
        prefill(a, 1, ids, lengths[i]);
        REQUIRE_OK(sl_engine_session_save(a, 1, file_path("s"), NULL, 0), sl_error_text());
        REQUIRE_OK(load(b, file_path("s")), sl_error_text());
        CHECK_INT(sl_engine_seq_length(b, 0), lengths[i]);
        CHECK_INT(sl_engine_seq_gone(b, 0), sl_engine_seq_gone(a, 1));
        go_on_alike(a, 1, b, 0);
    }
    CHECK(sl_engine_seq_gone(b, 0) > 0);
    sl_engine_destroy(a);
    sl_engine_destroy(b);
    sl_model_close(m);
}

TEST(sessions_go_on) {
    check_sessions("qwen3", &sl_backend_cpu, SL_TYPE_F16);
    check_sessions("qwen3", &sl_backend_cpu, SL_TYPE_Q4_0);
    check_sessions("gemma3", &sl_backend_cpu, SL_TYPE_F16); // layers with windows
    check_sessions("qwen3", &sl_backend_ref, SL_TYPE_Q8_0);
}

TEST(a_session_that_went_back_to_as_much_as_its_window_goes_on) {
    sl_model *m = open_model("qwen3");
    sl_engine_options o = window_options(&sl_backend_cpu, SL_TYPE_F16);
    sl_engine *a = open_engine(m, &o), *b = open_engine(m, &o);
    int32_t ids[N_LONG], n = 0;
    random_ids(ids, N_LONG);
    while (sl_engine_seq_gone(a, 0) == 0) prefill(a, 0, ids + n++, 1);
    REQUIRE_OK(sl_engine_seq_truncate(a, 0, N_CTX), sl_error_text());
    REQUIRE_OK(sl_engine_session_save(a, 0, file_path("back"), NULL, 0), sl_error_text());
    REQUIRE_OK(load(b, file_path("back")), sl_error_text());
    go_on_alike(a, 0, b, 0);
    sl_engine_destroy(b);
    sl_engine_destroy(a);
    sl_model_close(m);
}

TEST(sessions_go_on_in_a_window_of_their_size_only) {
    sl_model *m = open_model("qwen3");
    sl_engine_options o = window_options(&sl_backend_cpu, SL_TYPE_F16);
    sl_engine *a = open_engine(m, &o);
    int32_t ids[N_LONG];
    random_ids(ids, N_LONG);
    prefill(a, 0, ids, N_CTX); // all of it is in view of all of it, so any context will do
    REQUIRE_OK(sl_engine_session_save(a, 0, file_path("fits"), NULL, 0), sl_error_text());
    prefill(a, 0, ids, 60);
    REQUIRE_OK(sl_engine_session_save(a, 0, file_path("moved"), NULL, 0), sl_error_text());
    for (int i = 0; i < 2; i++) {
        o.n_ctx = i ? 128 : 256, o.ctx_window = i;
        sl_engine *b = open_engine(m, &o);
        REQUIRE_OK(load(b, file_path("fits")), sl_error_text());
        CHECK_INT(load(b, file_path("moved")), SL_UNSUPPORTED);
        CHECK(strstr(sl_error_text(), "in a window of 96, and goes on in one of that size only"));
        CHECK_INT(sl_engine_seq_length(b, 0), N_CTX); // as it was
        sl_engine_destroy(b);
    }
    sl_engine_destroy(a);
    sl_model_close(m);
}

TEST(forks_and_ways_back) {
    sl_model *m = open_model("qwen3");
    sl_engine_options o = window_options(&sl_backend_cpu, SL_TYPE_F16);
    sl_engine *e = open_engine(m, &o), *fresh = open_engine(m, &o);
    int32_t ids[N_LONG];
    random_ids(ids, N_LONG);
    prefill(e, 0, ids, N_LONG);
    CHECK(sl_engine_seq_gone(e, 0) > 0 && sl_engine_seq_gone(e, 0) % 32 == 0);
    CHECK(memcmp(sl_engine_seq_ids(e, 0), ids, 32 * sizeof *ids) == 0);
    CHECK(memcmp(sl_engine_seq_ids(e, 0) + 32, ids + 32 + sl_engine_seq_gone(e, 0), 32 * sizeof *ids) == 0);
    REQUIRE_OK(sl_engine_seq_fork(e, 1, 0, N_LONG), sl_error_text());
    go_on_alike(e, 0, e, 1);
    int32_t back = N_LONG + 40 - 64; // a step's rows less the last step's, and 64
    REQUIRE_OK(sl_engine_seq_truncate(e, 1, back), sl_error_text());
    prefill(fresh, 0, ids, (size_t)back);
    go_on_alike(e, 1, fresh, 0);
    CHECK_INT(sl_engine_seq_truncate(e, 1, 40), SL_UNSUPPORTED);
    CHECK(strstr(sl_error_text(), "to 0 .. 32 or to"));
    CHECK_INT(sl_engine_seq_fork(e, 2, 1, 40), SL_UNSUPPORTED);
    REQUIRE_OK(sl_engine_seq_truncate(e, 1, 20), sl_error_text()); // and then it is as any other
    CHECK_INT(sl_engine_seq_gone(e, 1), 0);
    REQUIRE_OK(sl_engine_seq_truncate(fresh, 0, 20), sl_error_text());
    go_on_alike(e, 1, fresh, 0);
    sl_engine_destroy(e);
    sl_engine_destroy(fresh);
    sl_model_close(m);
}

TEST(a_conversation_is_recognised_and_another_is_not) {
    sl_model *m = open_model("qwen3");
    sl_engine_options o = window_options(&sl_backend_cpu, SL_TYPE_F16);
    sl_engine *e = open_engine(m, &o), *fresh = open_engine(m, &o);
    int32_t ids[N_LONG + 1];
    size_t n_held;
    random_ids(ids, N_LONG + 1);
    prefill(e, 0, ids, N_LONG);
    REQUIRE_OK(sl_engine_seq_reuse(e, 0, ids, N_LONG + 1, &n_held), sl_error_text());
    CHECK_INT(n_held, N_LONG);
    step(e, 0, ids[N_LONG]);
    prefill(fresh, 0, ids, N_LONG + 1);
    same_logits(e, fresh);
    REQUIRE_OK(sl_engine_seq_reuse(e, 1, ids, N_LONG + 1, &n_held), sl_error_text());
    CHECK_INT(n_held, N_CTX); // the tree has what saw all before it
    REQUIRE_OK(sl_engine_seq_truncate(e, 1, 0), sl_error_text());
    ids[50] ^= 1; // in what was let go
    REQUIRE_OK(sl_engine_seq_reuse(e, 0, ids, N_LONG + 1, &n_held), sl_error_text());
    CHECK_INT(n_held, 50); // of the tree
    prefill(e, 0, ids + n_held, N_LONG + 1 - n_held);
    REQUIRE_OK(sl_engine_seq_truncate(fresh, 0, 0), sl_error_text());
    prefill(fresh, 0, ids, N_LONG + 1);
    same_logits(e, fresh);
    sl_engine_destroy(e);
    sl_engine_destroy(fresh);
    sl_model_close(m);
}

TEST(what_cannot_move_says_so) {
    sl_model *m = open_model("qwen3");
    sl_engine_options o = window_options(&sl_backend_cpu, SL_TYPE_F16);
    sl_backend other = sl_backend_ref;
    sl_engine *e;
    other.fusions = 0, other.name = "other";
    o.backend = &other;
    CHECK_INT(sl_engine_create(&e, m, &o), SL_UNSUPPORTED);
    CHECK(strstr(sl_error_text(), "backend other cannot move on when the context is full (ctx_window)"));
    o = window_options(&sl_backend_cpu, SL_TYPE_F16), o.ctx_window = false;
    e = open_engine(m, &o);
    int32_t ids[N_LONG];
    random_ids(ids, N_LONG);
    prefill(e, 0, ids, N_CTX - 5);
    CHECK_INT(sl_engine_step(e, &(sl_row){1, 0, N_CTX - 5, true}, 1), SL_FULL);
    CHECK(strstr(sl_error_text(), "the context is full: sequence 0 holds 91 of 91 positions"));
    CHECK_INT(sl_engine_seq_gone(e, 0), 0);
    sl_engine_destroy(e);
    o.ctx_window = true;
    e = open_engine(m, &o);
    prefill(e, 0, ids, 32);
    CHECK_INT(sl_engine_seq_fill(e, 0, N_CTX + 1), SL_FULL);
    sl_engine_destroy(e);
    sl_model_close(m);
}
