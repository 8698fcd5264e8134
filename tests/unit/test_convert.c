// SPDX-License-Identifier: MIT
// sl_test: MODULES convert model gguf quant os base
//
// Mixes, importance files, and quantising whole files: which types, the same bytes for any number of threads, and what
// is refused.
#include "model_file.h"

#include "base/alloc.h"
#include "base/half.h"
#include "convert/importance.h"
#include "convert/quantize.h"
#include "os/os.h"

// ---- mixes --------------------------------------------------------------------------------------

static sl_mix_choice *choose(const sl_gguf *gguf, const char *mix) {
    sl_mix_choice *choice;
    sl_mix_request request = {.mix = sl_mix_find(mix)};
    REQUIRE(request.mix);
    REQUIRE_OK(sl_mix_choose(&choice, gguf, &request), sl_error_text());
    return choice;
}

static void check_type(const sl_gguf *gguf, const sl_mix_choice *choice, const char *name, const char *type) {
    const sl_gguf_tensor *t = sl_gguf_tensor_find(gguf, name);
    REQUIRE(t);
    size_t i = (size_t)(t - sl_gguf_tensor_at(gguf, 0));
    const char *got = sl_type_name(choice[i].type);
    if (strcmp(got, type) != 0) test_failed(__FILE__, __LINE__, "%s is %s, not %s", name, got, type);
}

static sl_gguf *open_model(uint32_t n_layer, uint32_t n_embd, uint32_t n_ff, bool untied) {
    model_recipe r = recipe("llama");
    r.n_layer = n_layer, r.n_embd = n_embd, r.n_ff = n_ff, r.untied = untied, r.head_dim = n_embd / r.n_head;
    sl_gguf *gguf;
    REQUIRE_OK(sl_gguf_open(&gguf, write_model(&r), NULL), sl_error_text());
    return gguf;
}

TEST(q4_k_m_gives_more_bits_where_users_expect_them) {
    sl_gguf *gguf = open_model(16, 256, 512, true);
    sl_mix_choice *c = choose(gguf, "q4_k_m");
    check_type(gguf, c, "token_embd.weight", "Q4_K");
    check_type(gguf, c, "output.weight", "Q6_K");
    check_type(gguf, c, "output_norm.weight", "F32");
    check_type(gguf, c, "blk.0.attn_norm.weight", "F32");
    check_type(gguf, c, "blk.0.attn_q.weight", "Q4_K");
    for (int i = 0; i < 16; i++) { // the first and last eighth, and every third between
        const char *want = i < 2 || i >= 14 || (i - 2) % 3 == 2 ? "Q6_K" : "Q4_K";
        char name[64];
        snprintf(name, sizeof name, "blk.%d.attn_v.weight", i);
        check_type(gguf, c, name, want);
        snprintf(name, sizeof name, "blk.%d.ffn_down.weight", i);
        check_type(gguf, c, name, want);
    }
    sl_free(c);
    c = choose(gguf, "Q3_K"); // the medium one
    check_type(gguf, c, "blk.0.ffn_down.weight", "Q5_K");
    check_type(gguf, c, "blk.1.ffn_down.weight", "Q4_K");
    check_type(gguf, c, "blk.1.attn_v.weight", "Q5_K");
    check_type(gguf, c, "blk.2.attn_v.weight", "Q4_K");
    check_type(gguf, c, "blk.5.attn_output.weight", "Q4_K");
    check_type(gguf, c, "blk.5.ffn_up.weight", "Q3_K");
    sl_free(c);
    sl_gguf_close(gguf);
}

TEST(rows_that_are_no_whole_blocks_fall_back) {
    sl_gguf *gguf = open_model(3, 96, 40, false);
    sl_mix_choice *c = choose(gguf, "Q4_K_S");
    check_type(gguf, c, "token_embd.weight", "Q8_0"); // tied, so it is the output
    check_type(gguf, c, "blk.0.attn_q.weight", "Q5_0");
    check_type(gguf, c, "blk.0.attn_v.weight", "Q5_1"); // Q5_K by the mix
    check_type(gguf, c, "blk.2.ffn_down.weight", "F16");
    sl_free(c);
    c = choose(gguf, "Q3_K_S");
    check_type(gguf, c, "blk.0.attn_q.weight", "IQ4_NL");
    sl_free(c);
    c = choose(gguf, "Q6_K");
    check_type(gguf, c, "blk.0.attn_q.weight", "Q8_0");
    sl_free(c);
    sl_gguf_close(gguf);
    CHECK(sl_mix_find("Q4_K_XL") == NULL);
}

// ---- importance files ---------------------------------------------------------------------------

static void put_i32(uint8_t *out, size_t *n, int32_t value) { memcpy(out + *n, &value, 4), *n += 4; }

static size_t make_dat(uint8_t *out) {
    const float values[4] = {1, 3, 0, 4};
    size_t n = 0;
    put_i32(out, &n, 2);
    for (int i = 0; i < 2; i++) {
        put_i32(out, &n, 3);
        memcpy(out + n, i ? "b.w" : "a.w", 3), n += 3;
        put_i32(out, &n, 5);
        put_i32(out, &n, 4);
        memcpy(out + n, values, sizeof values), n += sizeof values;
    }
    return n;
}

TEST(the_old_form_is_read_and_scaled) {
    uint8_t data[256];
    size_t n_bytes = make_dat(data);
    sl_importance *im;
    uint64_t n;
    REQUIRE_OK(sl_importance_parse(&im, data, n_bytes), sl_error_text());
    CHECK_INT(sl_importance_n(im), 2);
    const float *v = sl_importance_find(im, sl_span_of("b.w"), &n);
    REQUIRE(v && n == 4);
    CHECK_NEAR(v[0], 0.5, 1e-6); // mean 1
    CHECK_NEAR(v[3], 2.0, 1e-6);
    CHECK(v[2] > 0); // of a column that was never used
    CHECK(sl_importance_find(im, sl_span_of("c.w"), &n) == NULL);
    sl_importance_close(im);
    for (size_t cut = 0; cut < n_bytes; cut++) { // each a reason, none a read past the end
        uint8_t *exact = test_guarded(cut ? cut : 1);
        memcpy(exact, data, cut);
        sl_error_clear();
        CHECK_INT(sl_importance_parse(&im, exact, cut), SL_BAD_FILE);
        CHECK(im == NULL && sl_error_text()[0]);
    }
    const float bad[] = {-1, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        memcpy(data + 4 + 4 + 3 + 8, &bad[i], 4);
        CHECK_INT(sl_importance_parse(&im, data, n_bytes), SL_BAD_FILE);
        CHECK(strstr(sl_error_text(), "a.w"));
    }
}

// ---- files --------------------------------------------------------------------------------------

typedef struct bad_value {
    uint64_t at; // element of the first matrix
    float value;
} bad_value;

enum { COL = 256, ROW = 40 };

static sl_status fill_values(void *user, size_t i, uint64_t off, void *out, size_t n_bytes) {
    const bad_value *bad = user;
    for (size_t k = 0; k < n_bytes / 4; k++) {
        uint64_t at = off / 4 + k;
        float value = 0.01f * (float)((at * 2654435761u + i * 40503u) % 2001) - 10; // the same each time
        if (bad && i == 0 && at == bad->at) value = bad->value;
        memcpy((char *)out + 4 * k, &value, 4);
    }
    return SL_OK;
}

static const char *in_scratch(const char *name) {
    static char path[4][512];
    static unsigned next;
    snprintf(path[next % 4], sizeof path[0], "%s/%s", test_scratch_dir(), name);
    return path[next++ % 4];
}

// Two matrices, experts, a vector; as F32, or of another type with zeros for bytes.
static sl_gguf *open_values(const bad_value *bad) {
    sl_gguf_writer *w;
    sl_gguf *gguf;
    const uint64_t dim[3] = {COL, ROW, 3};
    const char *path = in_scratch("values.gguf");
    REQUIRE_OK(sl_gguf_writer_create(&w), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_text(w, "general.architecture", sl_span_of("test")), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_text(w, "general.name", sl_span_of("kept")), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_add_tensor(w, "blk.0.ffn_up.weight", SL_TYPE_F32, dim, 2), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_add_tensor(w, "blk.0.ffn_up_exps.weight", SL_TYPE_F32, dim, 3), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_add_tensor(w, "blk.0.ffn_norm.weight", SL_TYPE_F32, dim, 1), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_write(w, path, fill_values, (void *)(uintptr_t)bad), sl_error_text());
    sl_gguf_writer_destroy(w);
    REQUIRE_OK(sl_gguf_open(&gguf, path, NULL), sl_error_text());
    return gguf;
}

static sl_quantize_options options_of(const char *mix) {
    return (sl_quantize_options){.request = {.mix = sl_mix_find(mix)}, .n_thread = 1};
}

static sl_status quantize(const sl_gguf *gguf, const char *path, const sl_quantize_options *o) {
    sl_quantize_report report;
    sl_status status = sl_quantize(&report, gguf, path, o);
    sl_quantize_report_deinit(&report);
    return status;
}

static bool same_files(const char *a, const char *b) {
    sl_map x, y;
    REQUIRE_OK(sl_map_open(&x, a), sl_error_text());
    REQUIRE_OK(sl_map_open(&y, b), sl_error_text());
    bool same = x.n_bytes == y.n_bytes && memcmp(x.data, y.data, x.n_bytes) == 0;
    sl_map_close(&x), sl_map_close(&y);
    return same;
}

TEST(any_number_of_threads_gives_the_same_file) {
    sl_gguf *gguf = open_values(NULL), *result;
    for (size_t i = 0; sl_mix_at(i); i++) {
        sl_quantize_options o = options_of(sl_mix_at(i)->name);
        if (strcmp(o.request.mix->name, "Q2_K_S") == 0) continue;
        const char *one = in_scratch("one.gguf"), *many = in_scratch("many.gguf");
        REQUIRE_OK(quantize(gguf, one, &o), sl_error_text());
        o.n_thread = 5;
        REQUIRE_OK(quantize(gguf, many, &o), sl_error_text());
        if (!same_files(one, many)) test_failed(__FILE__, __LINE__, "%s differs", o.request.mix->name);
        REQUIRE_OK(sl_gguf_open(&result, one, NULL), sl_error_text());
        int64_t number;
        sl_span name;
        REQUIRE_OK(sl_gguf_read_int(sl_gguf_find(result, "general.file_type"), 0, &number, 0, 99), sl_error_text());
        CHECK_INT(number, o.request.mix->file_type);
        REQUIRE_OK(sl_gguf_read_int(sl_gguf_find(result, "general.quantization_version"), 0, &number, 0, 99), "");
        CHECK_INT(number, 2);
        REQUIRE_OK(sl_gguf_read_text(sl_gguf_find(result, "general.name"), &name), sl_error_text());
        CHECK(sl_span_is(name, "kept"));
        CHECK_INT(sl_gguf_n_tensors(result), 3);
        REQUIRE_OK(sl_weights_check(result), sl_error_text());
        sl_gguf_close(result);
    }
    sl_gguf_close(gguf);
}

TEST(what_cannot_be_encoded_is_refused_by_name) {
    static const struct {
        bad_value bad;
        const char *mix, *reason;
    } cases[] = {
        {{777, NAN}, "Q4_K_M", "'blk.0.ffn_up.weight' holds a NaN or an infinity at element 777"},
        {{10239, INFINITY}, "Q8_0", "at element 10239"},
        {{0, -INFINITY}, "F32", "at element 0"}, // copied as it is
        {{5000, 70000}, "F16", "holds 70000 at element 5000, more than the 16-bit numbers of F16 can"},
        {{1, 1e30f}, "IQ4_XS", "1e+30"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int n_thread = 1; n_thread < 8; n_thread += 3) {
            sl_gguf *gguf = open_values(&cases[i].bad);
            sl_quantize_options o = options_of(cases[i].mix);
            const char *path = in_scratch("refused.gguf");
            o.n_thread = n_thread;
            CHECK_INT(quantize(gguf, path, &o), SL_BAD_FILE);
            if (!strstr(sl_error_text(), cases[i].reason)) test_failed(__FILE__, __LINE__, "%s", sl_error_text());
            FILE *file = fopen(path, "rb");
            CHECK(file == NULL);
            sl_gguf_close(gguf);
        }
    sl_gguf *gguf = open_values(&(bad_value){3, 1e30f});
    sl_quantize_options o = options_of("BF16"); // has the range
    REQUIRE_OK(quantize(gguf, in_scratch("wide.gguf"), &o), sl_error_text());
    CHECK_INT(quantize(gguf, in_scratch("values.gguf"), &o), SL_BAD_ARG);
    CHECK(strstr(sl_error_text(), "another file"));
    o = options_of("Q2_K_S");
    CHECK_INT(quantize(gguf, in_scratch("wide.gguf"), &o), SL_BAD_ARG);
    sl_gguf_close(gguf);
}

static int stop(void *user, uint64_t n, uint64_t total) {
    CHECK(n > 0 && n <= total);
    ++*(int *)user;
    return 1;
}

TEST(progress_can_stop_it) {
    sl_gguf *gguf = open_values(NULL);
    int n_call = 0;
    sl_quantize_options o = options_of("Q8_0");
    o.progress = stop, o.user = &n_call;
    CHECK_INT(quantize(gguf, in_scratch("stopped.gguf"), &o), SL_CANCELLED);
    CHECK_INT(n_call, 1);
    CHECK(fopen(in_scratch("stopped.gguf"), "rb") == NULL);
    sl_gguf_close(gguf);
}

TEST(every_allocation_may_fail) {
    sl_gguf *gguf = open_values(NULL);
    sl_quantize_options o = options_of("Q4_K_M");
    o.n_thread = 3;
    uint64_t n = 1;
    for (sl_status status = SL_NO_MEMORY; status != SL_OK && n < 1000; n++) {
        sl_alloc_fail_at(n);
        status = quantize(gguf, in_scratch("memory.gguf"), &o);
        sl_alloc_fail_at(0);
        CHECK(status == SL_OK || status == SL_NO_MEMORY);
    }
    CHECK(n > 5 && n < 1000);
    sl_gguf_close(gguf);
}

static void write_part(const char *name, uint32_t no, const char *tensor) {
    sl_gguf_writer *w;
    const uint64_t dim[2] = {COL, ROW};
    REQUIRE_OK(sl_gguf_writer_create(&w), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_u32(w, "split.count", 2), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_u32(w, "split.no", no), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_add_tensor(w, tensor, SL_TYPE_F32, dim, 2), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_write(w, in_scratch(name), fill_values, NULL), sl_error_text());
    sl_gguf_writer_destroy(w);
}

TEST(a_split_set_becomes_one_file) {
    sl_gguf *gguf, *result;
    sl_quantize_options o = options_of("Q4_K_S");
    write_part("set-00001-of-00002.gguf", 0, "blk.0.ffn_up.weight");
    write_part("set-00002-of-00002.gguf", 1, "blk.1.ffn_up.weight");
    REQUIRE_OK(sl_gguf_open(&gguf, in_scratch("set-00001-of-00002.gguf"), NULL), sl_error_text());
    CHECK_INT(quantize(gguf, in_scratch("set-00002-of-00002.gguf"), &o), SL_BAD_ARG); // it is read
    REQUIRE_OK(quantize(gguf, in_scratch("whole.gguf"), &o), sl_error_text());
    REQUIRE_OK(sl_gguf_open(&result, in_scratch("whole.gguf"), NULL), sl_error_text());
    CHECK_INT(sl_gguf_n_files(result), 1);
    CHECK_INT(sl_gguf_n_tensors(result), 2);
    CHECK(sl_gguf_find(result, "split.count") == NULL);
    CHECK_INT(sl_gguf_tensor_find(result, "blk.1.ffn_up.weight")->type_id, SL_TYPE_Q4_K);
    sl_gguf_close(result), sl_gguf_close(gguf);
}

TEST(a_dry_run_reports_and_writes_nothing) {
    sl_gguf *gguf = open_values(NULL);
    sl_quantize_options o = options_of("Q4_0");
    sl_quantize_report report;
    sl_buf text = {0};
    o.dry_run = true;
    REQUIRE_OK(sl_quantize(&report, gguf, NULL, &o), sl_error_text());
    CHECK_INT(report.n_out_bytes, 4 * COL * ROW / 32 * 18 + 4 * COL);
    sl_quantize_report_text(&report, gguf, true, &text);
    CHECK(strstr(text.data, "\"blk.0.ffn_up_exps.weight\"") && strstr(text.data, "F32    -> Q4_0"));
    sl_buf_deinit(&text);
    sl_quantize_report_deinit(&report);
    sl_gguf_close(gguf);
}
