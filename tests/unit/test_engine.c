// SPDX-License-Identifier: MIT
// sl_test: MODULES engine
//
// The engine on a backend that fails when told, and whose memory the CPU cannot see (as a GPU's):
// `ref` behind a veil. A failed step leaves every sequence as it was, also where blocks had to be
// copied first, and the logits that follow are those of an engine that never failed.
#include "harness.h"

#include "engine/engine.h"

// ---- the veil -----------------------------------------------------------------------------------

enum { MAX_BUFS = 8 };
static int run_fails_in, copy_fails_in, n_copy; // 1 = the next one
static struct {
    sl_device_buf workspace, kv; // as the program sees them
} unveiled[MAX_BUFS];
static int n_unveiled;

static bool counts_down(int *n) { return *n > 0 && --*n == 0; }

// The handle of a host buffer is its address.
static sl_device_buf unveil(const sl_device_buf *buf) {
    return (sl_device_buf){buf->handle, buf->n_bytes, buf->handle};
}

static sl_status buf_create(sl_device *device, sl_device_buf *out, void *host, size_t n_bytes, const char *what) {
    SL_TRY(sl_backend_ref.buf_create(device, out, host, n_bytes, what));
    out->host = NULL;
    return SL_OK;
}

static sl_status buf_copy(sl_device *device, sl_device_buf *dst, size_t dst_off, const sl_device_buf *src,
                          size_t src_off, size_t n_bytes) {
    n_copy++;
    if (counts_down(&copy_fails_in)) return SL_FAIL(SL_DEVICE, "the copy failed as told");
    sl_device_buf d = unveil(dst), s = unveil(src);
    return sl_backend_ref.buf_copy(device, &d, dst_off, &s, src_off, n_bytes);
}

static sl_status buf_read(sl_device *device, void *out, const sl_device_buf *src, size_t src_off, size_t n_bytes) {
    sl_device_buf s = unveil(src);
    return sl_backend_ref.buf_read(device, out, &s, src_off, n_bytes);
}

static sl_status compile(sl_device *device, sl_program **out, const sl_plan *plan, const sl_program_memory *memory) {
    REQUIRE(n_unveiled < MAX_BUFS && !memory->workspace->host && !memory->kv->host);
    unveiled[n_unveiled].workspace = unveil(memory->workspace);
    unveiled[n_unveiled].kv = unveil(memory->kv);
    sl_program_memory seen = *memory;
    seen.workspace = &unveiled[n_unveiled].workspace;
    seen.kv = &unveiled[n_unveiled].kv;
    n_unveiled++;
    return sl_backend_ref.compile(device, out, plan, &seen);
}

static void info(const sl_device *device, sl_device_info *out) {
    sl_backend_ref.info(device, out);
    out->own_memory = true;
}

static sl_status run(sl_program *program, const sl_step *step) {
    SL_TRY(sl_backend_ref.run(program, step));
    return counts_down(&run_fails_in) ? SL_FAIL(SL_DEVICE, "the step failed as told") : SL_OK;
}

// ---- tests --------------------------------------------------------------------------------------

static sl_model *model;
static sl_backend veiled;

static sl_engine *open_engine(const sl_backend *backend) {
    if (!model) {
        const char *path = test_source_path("tests/golden/tiny/llama-rope-factors.gguf");
        REQUIRE_OK(sl_model_open(&model, path, &(sl_model_options){0}), sl_error_text());
    }
    veiled = sl_backend_ref;
    veiled.buf_create = buf_create, veiled.buf_copy = buf_copy, veiled.buf_read = buf_read;
    veiled.compile = compile, veiled.run = run, veiled.info = info;
    veiled.fusions |= SL_FUSE_BEST;
    sl_engine_options o = {
        .backend = backend,
        .n_ctx = 100,
        .n_seq = 3,
        .n_row_max = 40,
        .n_logit_max = 40,
        .n_thread = 1,
        .n_thread_prefill = 1,
        .type_k = SL_TYPE_F32,
        .type_v = SL_TYPE_F32,
    };
    sl_engine *e;
    REQUIRE_OK(sl_engine_create(&e, model, &o), sl_error_text());
    return e;
}

static int32_t token_at(int32_t i) { return (i * 37 + 11) % 300; }

static sl_status step(sl_engine *e, int32_t seq, int32_t pos) {
    return sl_engine_step(e, &(sl_row){token_at(pos), seq, pos, true}, 1);
}

// The same logits as `want`, which is at the same position of its sequence 0.
static void compare(sl_engine *got, sl_engine *want, int32_t pos) {
    size_t n_bytes = sl_engine_plan(want, 0)->n_vocab * sizeof(float);
    REQUIRE(sl_engine_logits(got, 0) && sl_engine_logits(want, 0));
    if (memcmp(sl_engine_logits(got, 0), sl_engine_logits(want, 0), n_bytes) != 0)
        test_failed(__FILE__, __LINE__, "logits differ at position %d", pos);
}

TEST(memory_that_the_cpu_cannot_see_gives_the_same_logits) {
    sl_engine *plain = open_engine(&sl_backend_ref), *e = open_engine(&veiled);
    for (int32_t pos = 0; pos < 36; pos++) {
        REQUIRE_OK(step(plain, 0, pos), sl_error_text());
        REQUIRE_OK(step(e, 0, pos), sl_error_text());
        compare(e, plain, pos);
    }
    // several rows, several logits, each a row of its own
    int32_t ids[10];
    for (int32_t i = 0; i < 10; i++) ids[i] = token_at(i);
    sl_row rows[10];
    for (int32_t i = 0; i < 10; i++) rows[i] = (sl_row){ids[i], 1, i, i % 3 == 0};
    REQUIRE_OK(sl_engine_step(e, rows, 10), sl_error_text());
    REQUIRE_OK(sl_engine_step(plain, rows, 10), sl_error_text());
    for (size_t i = 0; i < 4; i++)
        CHECK(memcmp(sl_engine_logits(e, i), sl_engine_logits(plain, i),
                     sl_engine_plan(e, 0)->n_vocab * sizeof(float)) == 0);
    CHECK(sl_engine_logits(e, 4) == NULL);
    sl_engine_destroy(e);
    sl_engine_destroy(plain);
    sl_model_close(model);
}

// The device names it; the logits are read when they are asked for, and then all of them.
TEST(the_best_token_comes_without_the_logits) {
    sl_engine *plain = open_engine(&sl_backend_ref), *e = open_engine(&veiled);
    uint32_t n_vocab = sl_engine_plan(e, 0)->n_vocab;
    sl_row rows[6];
    for (int32_t i = 0; i < 6; i++) rows[i] = (sl_row){token_at(i), 0, i, i % 2 == 0};
    REQUIRE_OK(sl_engine_step(e, rows, 6), sl_error_text());
    REQUIRE_OK(sl_engine_step(plain, rows, 6), sl_error_text());
    for (size_t i = 0; i < 3; i++) {
        int32_t best = sl_engine_best(e, i);
        const float *logits = sl_engine_logits(plain, i);
        REQUIRE(best >= 0 && (uint32_t)best < n_vocab);
        for (uint32_t k = 0; k < n_vocab; k++)
            CHECK(k < (uint32_t)best ? logits[k] < logits[best] : logits[k] <= logits[best]);
        CHECK_INT(sl_engine_best(plain, i), -1);
    }
    CHECK_INT(sl_engine_best(e, 3), -1);
    for (size_t i = 3; i-- > 0;)
        CHECK(memcmp(sl_engine_logits(e, i), sl_engine_logits(plain, i), n_vocab * sizeof(float)) == 0);
    sl_engine_destroy(e);
    sl_engine_destroy(plain);
    sl_model_close(model);
}

TEST(a_failed_step_can_be_made_again) {
    sl_engine *plain = open_engine(&sl_backend_ref), *e = open_engine(&veiled);
    for (int32_t pos = 0; pos < 70; pos++) {
        REQUIRE_OK(step(plain, 0, pos), sl_error_text());
        run_fails_in = pos % 5 == 0;
        if (run_fails_in) {
            CHECK_INT(step(e, 0, pos), SL_DEVICE);
            CHECK(sl_engine_logits(e, 0) == NULL);
            CHECK_INT(sl_engine_seq_length(e, 0), pos);
        }
        REQUIRE_OK(step(e, 0, pos), sl_error_text());
        compare(e, plain, pos);
    }
    sl_engine_stats stats;
    sl_engine_get_stats(e, &stats);
    CHECK_INT(stats.n_step, 70);
    CHECK_INT(stats.n_alloc, 0);
    sl_engine_destroy(e);
    sl_engine_destroy(plain);
    sl_model_close(model);
}

// Two sequences share their last block and both extend it: one has to copy it, K and V of each
// layer. Each of these copies fails once, and then the step after them.
TEST(a_failed_copy_leaves_the_shared_block_shared) {
    sl_engine *plain = open_engine(&sl_backend_ref), *e = open_engine(&veiled);
    for (int32_t pos = 0; pos < 41; pos++) REQUIRE_OK(step(plain, 0, pos), sl_error_text());
    int n_copies = 0;
    for (int fail = 1; fail < 100; fail++) {
        for (int32_t seq = 0; seq < 3; seq++) sl_engine_seq_truncate(e, seq, 0);
        for (int32_t pos = 0; pos < 40; pos++) REQUIRE_OK(step(e, 0, pos), sl_error_text());
        REQUIRE_OK(sl_engine_seq_fork(e, 1, 0, 40), sl_error_text());
        const sl_row rows[3] = {{token_at(40), 0, 40, true}, {token_at(40), 1, 40, true}, {token_at(0), 2, 0, false}};
        n_copy = 0, copy_fails_in = fail, run_fails_in = 0;
        sl_status status = sl_engine_step(e, rows, 3);
        if (status == SL_OK) {
            n_copies = n_copy;
            break;
        }
        CHECK_INT(status, SL_DEVICE);
        for (int32_t seq = 0; seq < 3; seq++) CHECK_INT(sl_engine_seq_length(e, seq), seq < 2 ? 40 : 0);
        copy_fails_in = 0, run_fails_in = 1;
        CHECK_INT(sl_engine_step(e, rows, 3), SL_DEVICE); // now after the copies
        for (int32_t seq = 0; seq < 3; seq++) CHECK_INT(sl_engine_seq_length(e, seq), seq < 2 ? 40 : 0);
        for (int32_t seq = 0; seq < 2; seq++) { // each as if nothing had been
            REQUIRE_OK(step(e, seq, 40), sl_error_text());
            compare(e, plain, 40);
        }
    }
    CHECK_INT(n_copies, 2 * (int)sl_engine_plan(e, 0)->n_kv);
    sl_engine_destroy(e);
    sl_engine_destroy(plain);
    sl_model_close(model);
}
