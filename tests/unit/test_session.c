// SPDX-License-Identifier: MIT
// sl_test: MODULES engine
//
// Sessions: what was saved goes on with the same bits in another engine, whatever was saved; any other file, and any
// file with one bit turned, is refused in words; and a save that is killed or fails leaves the file that there was.
// Prefixes: what is reused from the tree gives the same bits as a fresh start, and a chat computes only its new tokens.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/xxh64.h"
#include "engine_case.h"
#include "sample/sample.h"

// Sequence 0 with N random ids, which the caller gets.
static void fill(sl_engine *e, int32_t ids[N]) {
    random_ids(ids, N);
    prefill(e, 0, ids, N);
}

static sl_status load(sl_engine *e, int32_t seq, const char *path) {
    char *app;
    size_t n;
    sl_status status = sl_engine_session_load(e, seq, path, &app, &n);
    CHECK((status == SL_OK) == (app != NULL));
    sl_free(app);
    return status;
}

// ---- there and back -------------------------------------------------------------------------------------------------

static void there_and_back(const char *name, const sl_backend *backend, sl_type type) {
    sl_model *m = open_model(name);
    sl_engine_options o = options_of(backend, type);
    sl_engine *a = open_engine(m, &o), *b = open_engine(m, &o);
    int32_t ids[N];
    random_ids(ids, N);
    for (size_t n = 1; n < N; n += 11) {
        REQUIRE_OK(sl_engine_seq_truncate(a, 0, 0), sl_error_text());
        prefill(a, 0, ids, n);
        REQUIRE_OK(sl_engine_session_save(a, 0, file_path("s"), "own\0bytes", 9), sl_error_text());
        char *app;
        size_t n_app;
        int32_t seq = (int32_t)n % 3;
        REQUIRE_OK(sl_engine_session_load(b, seq, file_path("s"), &app, &n_app), sl_error_text());
        CHECK(n_app == 9 && memcmp(app, "own\0bytes", 10) == 0);
        sl_free(app);
        CHECK_INT(sl_engine_seq_length(b, seq), n);
        CHECK(memcmp(sl_engine_seq_ids(b, seq), ids, n * sizeof *ids) == 0);
        for (int i = 0; i < 5; i++) {
            int32_t token = (int32_t)test_below(N_VOCAB), pos = (int32_t)n + i;
            REQUIRE_OK(sl_engine_step(a, &(sl_row){token, 0, pos, true}, 1), sl_error_text());
            REQUIRE_OK(sl_engine_step(b, &(sl_row){token, seq, pos, true}, 1), sl_error_text());
            same_logits(a, b);
        }
    }
    sl_engine_destroy(a);
    sl_engine_destroy(b);
    sl_model_close(m);
}

TEST(llama_goes_on_as_if_it_had_never_been_away) {
    there_and_back("llama-linear-spm", &sl_backend_cpu, SL_TYPE_F16);
    there_and_back("llama-linear-spm", &sl_backend_ref, SL_TYPE_F32);
}
TEST(codes_go_on_as_if_they_had_never_been_away) {
    there_and_back("qwen3", &sl_backend_cpu, SL_TYPE_Q4_0);
    there_and_back("qwen3", &sl_backend_ref, SL_TYPE_Q8_0);
}
TEST(gemma_goes_on_as_if_it_had_never_been_away) { there_and_back("gemma3", &sl_backend_cpu, SL_TYPE_F16); }

// ---- refusals -------------------------------------------------------------------------------------------------------

static void refused(sl_engine *e, sl_status want, const char *words) {
    CHECK_INT(load(e, 0, file_path("s")), want);
    if (!strstr(sl_error_text(), words) || strchr(sl_error_text(), '\n'))
        test_failed(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", sl_error_text(), words);
}

static uint8_t bytes[1 << 20];

TEST(torn_and_damaged_files_cost_only_the_prefix) {
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_of(&sl_backend_cpu, SL_TYPE_F16);
    sl_engine *e = open_engine(m, &o);
    int32_t ids[N];
    random_ids(ids, N);
    prefill(e, 1, ids, N);
    REQUIRE_OK(sl_engine_session_save(e, 1, file_path("s"), "app", 3), sl_error_text());
    size_t n = read_file(file_path("s"), bytes, sizeof bytes);
    prefill(e, 0, ids, 7);
    for (int i = 0; i < 300; i++) { // a bit turned anywhere
        size_t at = i < 100 ? (size_t)i : test_below((uint32_t)n);
        bytes[at] ^= (uint8_t)(1 << i % 8);
        write_file(file_path("s"), bytes, n);
        sl_status status = load(e, 0, file_path("s"));
        if (status != SL_BAD_FILE && status != SL_UNSUPPORTED)
            test_failed(__FILE__, __LINE__, "bit %d of byte %zu: status %d", i % 8, at, status);
        bytes[at] ^= (uint8_t)(1 << i % 8);
    }
    for (int i = 0; i < 100; i++) { // cut anywhere
        write_file(file_path("s"), bytes, i < 50 ? (size_t)i * 8 : test_below((uint32_t)n));
        refused(e, SL_BAD_FILE, i < 13 ? "is no session" : "in the middle");
    }
    write_file(file_path("s"), bytes, n + 1);
    refused(e, SL_BAD_FILE, "do not add up");
    CHECK_INT(load(e, 0, file_path("not there")), SL_IO);
    CHECK_INT(sl_engine_seq_length(e, 0), 7); // as it was
    write_file(file_path("s"), bytes, n);
    CHECK_INT(load(e, 3, file_path("s")), SL_BAD_ARG);
    REQUIRE_OK(load(e, 0, file_path("s")), sl_error_text());
    CHECK_INT(sl_engine_seq_length(e, 0), N);
    sl_engine_destroy(e);
    sl_model_close(m);
}

static void refused_by(const char *name, const sl_engine_options *o, sl_status status, const char *words) {
    sl_model *m = open_model(name);
    sl_engine *e = open_engine(m, o);
    refused(e, status, words);
    CHECK_INT(sl_engine_seq_length(e, 0), 0);
    sl_engine_destroy(e);
    sl_model_close(m);
}

TEST(foreign_files_are_refused_by_name) {
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_of(&sl_backend_cpu, SL_TYPE_F16);
    sl_engine *e = open_engine(m, &o);
    int32_t ids[N];
    fill(e, ids);
    REQUIRE_OK(sl_engine_session_save(e, 0, file_path("s"), NULL, 0), sl_error_text());
    sl_engine_destroy(e);
    sl_model_close(m);
    refused_by("qwen3", &o, SL_UNSUPPORTED, "another model");
    o.type_k = o.type_v = SL_TYPE_F32;
    refused_by("llama-linear-spm", &o, SL_UNSUPPORTED, "values of type F16, and this engine F32 and F32");
    o.backend = &sl_backend_ref, o.type_k = o.type_v = SL_TYPE_F16;
    refused_by("llama-linear-spm", &o, SL_UNSUPPORTED, "another backend than ref");
    o.backend = &sl_backend_cpu, o.n_ctx = 64;
    refused_by("llama-linear-spm", &o, SL_FULL, "holds 100 positions, and the context has 64");
}

// ---- saves that do not end ------------------------------------------------------------------------------------------

static _Noreturn void save_for_ever(const sl_engine *e, const char *path) {
    for (;;)
        if (sl_engine_session_save(e, 0, path, NULL, 0) != SL_OK) _exit(1);
}

TEST(a_kill_in_the_middle_of_a_save_leaves_the_old_file_or_the_new) {
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_of(&sl_backend_ref, SL_TYPE_F32); // has no threads, which a fork would lose
    sl_engine *e = open_engine(m, &o), *other = open_engine(m, &o);
    int32_t ids[N];
    fill(e, ids);
    const char *path = file_path("killed");
    REQUIRE_OK(sl_engine_session_save(e, 0, path, NULL, 0), sl_error_text());
    for (int i = 0; i < 25; i++) {
        pid_t child = fork();
        if (child == 0) save_for_ever(e, path);
        usleep(1000 + test_below(20000));
        kill(child, SIGKILL);
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        REQUIRE_OK(load(other, 0, path), sl_error_text());
        CHECK_INT(sl_engine_seq_length(other, 0), N);
    }
    sl_engine_destroy(e);
    sl_engine_destroy(other);
    sl_model_close(m);
}

TEST(a_full_disk_leaves_the_old_file) {
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_of(&sl_backend_ref, SL_TYPE_F32);
    sl_engine *e = open_engine(m, &o);
    int32_t ids[N];
    fill(e, ids);
    REQUIRE_OK(sl_engine_session_save(e, 0, file_path("s"), NULL, 0), sl_error_text());
    size_t n = read_file(file_path("s"), bytes, sizeof bytes);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t limit = 0; limit < n; limit += n / 20 + 1) {
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, RLIM_INFINITY});
        CHECK_INT(sl_engine_session_save(e, 0, file_path("s"), NULL, 0), SL_IO);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
        REQUIRE_OK(load(e, 1, file_path("s")), sl_error_text());
    }
    for (uint64_t k = 1;; k++) { // and no memory
        sl_alloc_fail_at(k);
        sl_status status = sl_engine_session_save(e, 0, file_path("s"), NULL, 0);
        if (status == SL_OK) status = load(e, 1, file_path("s"));
        sl_alloc_fail_at(0);
        if (status == SL_OK) break;
        CHECK_INT(status, SL_NO_MEMORY);
        REQUIRE_OK(load(e, 1, file_path("s")), sl_error_text());
    }
    sl_engine_destroy(e);
    sl_model_close(m);
}

// ---- sampled text ---------------------------------------------------------------------------------------------------

static sl_sampler *open_sampler(uint64_t seed) {
    sl_sampler_options o = {.temp = 1.5f, .top_p = 0.95f, .typical_p = 1, .penalty_window = 20, .seed = seed};
    o.repeat_penalty = 1.2f, o.frequency_penalty = 0.3f;
    sl_sampler *s;
    REQUIRE_OK(sl_sampler_create(&s, N_VOCAB, 256, &o), sl_error_text());
    return s;
}

// Goes on with `token` by n more; the last, which the sequence does not hold yet, is returned.
static int32_t speak(sl_engine *e, sl_sampler *s, int32_t token, int32_t *said, int n) {
    for (int i = 0; i < n; i++) {
        REQUIRE_OK(sl_engine_step(e, &(sl_row){token, 0, sl_engine_seq_length(e, 0), true}, 1), sl_error_text());
        REQUIRE_OK(sl_sampler_sample(s, sl_engine_logits(e, 0), &token), sl_error_text());
        sl_sampler_accept(s, token);
        said[i] = token;
    }
    return token;
}

// n tokens more than the file at `path` has, if there is one, to `fd`; then all of it is in the file.
static _Noreturn void speak_and_die(sl_engine *e, const char *path, bool goes_on, int n, int fd) {
    sl_sampler *s = open_sampler(goes_on ? 99 : 5); // what it draws by is in the file
    char *kept = NULL, *keeps;
    uint8_t *state;
    int32_t token = 1, said[N];
    size_t n_bytes;
    if (goes_on) {
        REQUIRE_OK(sl_engine_session_load(e, 0, path, &kept, &n_bytes), sl_error_text());
        memcpy(&token, kept, sizeof token);
        REQUIRE_OK(sl_sampler_restore(s, (uint8_t *)kept + sizeof token, n_bytes - sizeof token), sl_error_text());
    }
    token = speak(e, s, token, said, n);
    REQUIRE_OK(sl_sampler_save(s, &state, &n_bytes), sl_error_text());
    REQUIRE(keeps = malloc(n_bytes + sizeof token));
    memcpy(keeps, &token, sizeof token);
    memcpy(keeps + sizeof token, state, n_bytes);
    REQUIRE_OK(sl_engine_session_save(e, 0, path, keeps, n_bytes + sizeof token), sl_error_text());
    REQUIRE(write(fd, said, (size_t)n * sizeof *said) == (ssize_t)((size_t)n * sizeof *said));
    kill(getpid(), SIGKILL);
    _exit(1);
}

TEST(sampled_text_goes_on_as_if_nobody_had_been_killed) {
    enum { N_SAID = 60 };
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_of(&sl_backend_ref, SL_TYPE_F32); // has no threads, which a fork would lose
    sl_engine *e = open_engine(m, &o);
    sl_sampler *s = open_sampler(5);
    int32_t want[N_SAID], got[N_SAID];
    const char *path = file_path("killed");
    speak(e, s, 1, want, N_SAID);
    REQUIRE_OK(sl_engine_seq_truncate(e, 0, 0), sl_error_text());
    for (int n_done = 0, n; n_done < N_SAID; n_done += n) {
        n = SL_MIN(7, N_SAID - n_done);
        int fd[2], status;
        REQUIRE(pipe(fd) == 0);
        pid_t child = fork();
        if (child == 0) speak_and_die(e, path, n_done > 0, n, fd[1]);
        close(fd[1]);
        REQUIRE(read(fd[0], got + n_done, (size_t)n * sizeof *got) == (ssize_t)((size_t)n * sizeof *got));
        close(fd[0]);
        REQUIRE(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    }
    CHECK(memcmp(got, want, sizeof got) == 0);
    sl_sampler_destroy(s);
    sl_engine_destroy(e);
    sl_model_close(m);
}

// ---- windows --------------------------------------------------------------------------------------------------------

// An engine that lets go of what windows have passed (small steps), and one that keeps everything (a step may be as
// wide as the context): the same bits.
static void windows(const char *name, const sl_backend *backend, sl_type type) {
    sl_model *m = open_model(name);
    sl_engine_options o = options_of(backend, type);
    o.n_ctx = 512, o.n_seq = 2;
    sl_engine *e = open_engine(m, &o);
    o.n_row_max = 512;
    sl_engine *all = open_engine(m, &o);
    sl_engine_memory small, large;
    sl_engine_get_memory(e, &small);
    sl_engine_get_memory(all, &large);
    CHECK(small.kv_bytes < large.kv_bytes * 3 / 4);
    sl_engine_estimate estimate;
    REQUIRE_OK(sl_engine_estimate_make(&estimate, m, &o), sl_error_text());
    CHECK_INT(estimate.memory.kv_bytes, large.kv_bytes);
    o.n_row_max = 24;
    REQUIRE_OK(sl_engine_estimate_make(&estimate, m, &o), sl_error_text());
    CHECK_INT(estimate.memory.kv_bytes, small.kv_bytes);
    CHECK_INT(estimate.memory.other_bytes, small.other_bytes);
    CHECK(sl_engine_plan(e, 0)->shape.n_window_blk > 0 && sl_engine_plan(all, 0)->shape.n_window_blk == 0);
    int32_t ids[500];
    random_ids(ids, 500);
    for (int i = 0; i < 12; i++) {
        size_t n = 1 + test_below(450), kept;
        int32_t seq = (int32_t)test_below(2);
        ids[test_below(500)] = (int32_t)test_below(N_VOCAB);
        REQUIRE_OK(sl_engine_seq_reuse(e, seq, ids, n, &kept), sl_error_text());
        prefill(e, seq, ids + kept, n - kept);
        for (int k = 0; k < 3; k++) { // there, back within the slack, and there
            REQUIRE_OK(sl_engine_step(e, &(sl_row){ids[n], seq, (int32_t)n, true}, 1), sl_error_text());
            REQUIRE_OK(sl_engine_seq_truncate(e, seq, (int32_t)n), sl_error_text());
        }
        REQUIRE_OK(sl_engine_seq_truncate(all, 0, 0), sl_error_text());
        prefill(all, 0, ids, n + 1);
        same_logits(e, all);
        if (i % 3 == 0) {
            REQUIRE_OK(sl_engine_session_save(e, seq, file_path("s"), NULL, 0), sl_error_text());
            REQUIRE_OK(load(e, 1 - seq, file_path("s")), sl_error_text());
            REQUIRE_OK(sl_engine_step(e, &(sl_row){ids[n], 1 - seq, (int32_t)n, true}, 1), sl_error_text());
            same_logits(e, all);
        }
    }
    REQUIRE_OK(sl_engine_seq_truncate(e, 0, 0), sl_error_text());
    prefill(e, 0, ids, 400);
    CHECK_INT(sl_engine_seq_truncate(e, 0, 40), SL_UNSUPPORTED);
    CHECK(strstr(sl_error_text(), "window"));
    CHECK_INT(sl_engine_seq_length(e, 0), 400);
    sl_engine_stats s;
    sl_engine_get_stats(e, &s);
    CHECK_INT(s.n_alloc, 0);
    sl_engine_destroy(e);
    sl_engine_destroy(all);
    sl_model_close(m);
}

TEST(windows_that_let_go_give_the_bits_of_those_that_keep) {
    windows("gemma3", &sl_backend_cpu, SL_TYPE_F16);
    windows("gemma2", &sl_backend_cpu, SL_TYPE_BF16);
    windows("mistral-window", &sl_backend_ref, SL_TYPE_F32);
}

// ---- prefixes -------------------------------------------------------------------------------------------------------

static uint64_t rows_of(const sl_engine *e) {
    sl_engine_stats s;
    sl_engine_get_stats(e, &s);
    return s.n_row;
}

static void reused_prefixes(const char *name, const sl_backend *backend, sl_type type) {
    sl_model *m = open_model(name);
    sl_engine_options o = options_of(backend, type);
    sl_engine *e = open_engine(m, &o);
    o.prefix_cache = false;
    sl_engine *fresh = open_engine(m, &o);
    int32_t ids[N];
    random_ids(ids, N);
    for (int i = 0; i < 60; i++) {
        int32_t seq = (int32_t)test_below(3);
        size_t n = 1 + test_below(N), kept;
        ids[test_below(N)] = (int32_t)test_below(N_VOCAB); // the beginning before it is known
        if (test_below(2)) {
            REQUIRE_OK(sl_engine_seq_truncate(e, seq, 0), sl_error_text());
            uint64_t n_row = rows_of(e);
            prefill(e, seq, ids, n);
            CHECK(rows_of(e) - n_row <= n);
        } else {
            REQUIRE_OK(sl_engine_seq_reuse(e, seq, ids, n, &kept), sl_error_text());
            REQUIRE(kept < n && kept == (size_t)sl_engine_seq_length(e, seq));
            prefill(e, seq, ids + kept, n - kept);
        }
        REQUIRE_OK(sl_engine_seq_truncate(fresh, 0, 0), sl_error_text());
        prefill(fresh, 0, ids, n);
        same_logits(e, fresh);
    }
    sl_engine_stats s;
    sl_engine_get_stats(e, &s);
    CHECK(s.n_reused > 500 && s.n_reused < s.n_prompt);
    CHECK_INT(s.n_alloc, 0);
    sl_engine_destroy(e);
    sl_engine_destroy(fresh);
    sl_model_close(m);
}

TEST(reused_prefixes_give_the_bits_of_a_fresh_start) {
    reused_prefixes("llama-linear-spm", &sl_backend_cpu, SL_TYPE_F16);
    reused_prefixes("qwen3", &sl_backend_ref, SL_TYPE_F32);
    reused_prefixes("gemma3", &sl_backend_cpu, SL_TYPE_F16);
    reused_prefixes("qwen3", &sl_backend_cpu, SL_TYPE_Q4_0);
    reused_prefixes("qwen3", &sl_backend_ref, SL_TYPE_Q8_0);
}

TEST(requests_at_the_same_time_share_their_beginning) {
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_of(&sl_backend_cpu, SL_TYPE_F16);
    sl_engine *e = open_engine(m, &o);
    int32_t ids[N];
    fill(e, ids);
    ids[70]++;
    uint64_t n_row = rows_of(e);
    prefill(e, 1, ids, N); // while sequence 0 lives
    CHECK_INT(rows_of(e) - n_row, N - 70);
    sl_engine_stats s;
    sl_engine_get_stats(e, &s);
    CHECK_INT(s.n_blk_held, 4 + 2); // two blocks are shared
    sl_engine_destroy(e);
    sl_model_close(m);
}

// 50 turns: each brings a message, of which the engine knows nothing, behind all that was said.
TEST(a_chat_computes_only_its_new_tokens) {
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_of(&sl_backend_cpu, SL_TYPE_F16);
    enum { TURNS = 50, MESSAGE = 9, ANSWER = 7, TURN = MESSAGE + ANSWER };
    o.n_ctx = TURNS * TURN;
    sl_engine *e = open_engine(m, &o);
    int32_t ids[TURNS * TURN];
    random_ids(ids, TURNS * TURN);
    for (int turn = 0; turn < TURNS; turn++) {
        size_t n = (size_t)(turn * TURN + MESSAGE), kept;
        uint64_t n_row = rows_of(e);
        REQUIRE_OK(sl_engine_seq_reuse(e, 0, ids, n, &kept), sl_error_text());
        CHECK_INT(kept, turn * TURN);
        prefill(e, 0, ids + kept, n - kept);
        CHECK_INT(rows_of(e) - n_row, MESSAGE);
        for (size_t i = n; i < n + ANSWER; i++)
            REQUIRE_OK(sl_engine_step(e, &(sl_row){ids[i], 0, (int32_t)i, true}, 1), sl_error_text());
    }
    sl_engine_destroy(e);
    sl_model_close(m);
}

// Known values, made with the xxhash package of Python (xxh64).
TEST(xxh64_is_xxh64) {
    CHECK(sl_xxh64("", 0, 0) == 0xef46db3751d8e999u);
    CHECK(sl_xxh64("a", 1, 0) == 0xd24ec4f1a98c6e5bu);
    CHECK(sl_xxh64("abc", 3, 0) == 0x44bc2cf5ad770999u);
    uint8_t rising[101];
    for (int i = 0; i < 101; i++) rising[i] = (uint8_t)i;
    CHECK(sl_xxh64(rising, 101, 7) == 0xe878e9791dbc64fau);
}
