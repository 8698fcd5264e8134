// SPDX-License-Identifier: MIT
// sl_test: MODULES gguf os base
//
// Files on disk: what is no file, split sets, and the writer, whose files must read back equal.
#include "harness.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "gguf_bytes.h"

static const char *in_scratch(const char *name) {
    static char path[8][4096];
    static unsigned next;
    char *p = path[next++ % 8];
    snprintf(p, 4096, "%s/%s", test_scratch_dir(), name);
    return p;
}

static const char *write_file(const char *name, const bytes *b) {
    const char *path = in_scratch(name);
    FILE *file = fopen(path, "wb");
    REQUIRE(file && fwrite(b->data, 1, b->n, file) == b->n);
    fclose(file);
    return path;
}

static void check_refused(const char *path, sl_status status, const char *reason) {
    sl_gguf *gguf = (sl_gguf *)&status;
    sl_error_clear();
    sl_status got = sl_gguf_open(&gguf, path, NULL);
    CHECK(gguf == NULL);
    if (got != status || !strstr(sl_error_text(), reason) || !strstr(sl_error_text(), path))
        test_failed(__FILE__, __LINE__, "%s: status %d, \"%s\"; wanted %d, \"%s\"", path, got, sl_error_text(), status,
                    reason);
    if (got == SL_OK) sl_gguf_close(gguf);
}

TEST(what_is_no_file_gets_a_plain_reason) {
    bytes b = {.n = 0};
    check_refused(in_scratch("missing.gguf"), SL_IO, "No such file");
    check_refused(test_scratch_dir(), SL_IO, "is a folder");
    REQUIRE(mkfifo(in_scratch("pipe"), 0600) == 0); // must not wait for a writer
    check_refused(in_scratch("pipe"), SL_IO, "no regular file");
    check_refused(write_file("empty.gguf", &b), SL_BAD_FILE, "the file is empty");
    put(&b, "Once upon a time\n", 17);
    check_refused(write_file("text.gguf", &b), SL_BAD_FILE, "no GGUF file");
    b.n = 0;
    make_valid(&b, 3);
    b.n--;
    check_refused(write_file("cut.gguf", &b), SL_BAD_FILE, "tensor 'late': the file is cut off");
    sl_gguf *gguf;
    CHECK_INT(sl_gguf_open(&gguf, NULL, NULL), SL_BAD_ARG);
}

// ---- split sets

static void put_u16_kv(bytes *b, const char *key, uint16_t value) { put_kv(b, key, SL_GGUF_U16), put(b, &value, 2); }

// Part `no` of `count` with one tensor, in the file NAME-0000x-of-0000y.gguf.
static const char *write_part(const char *name, unsigned no, unsigned count, unsigned says_no, unsigned says_count,
                              uint32_t n_tensors, const char *tensor) {
    char file[128];
    bytes b = {.n = 0};
    put_head(&b, 3, 1, 5);
    put_u16_kv(&b, "split.no", (uint16_t)says_no);
    put_u16_kv(&b, "split.count", (uint16_t)says_count);
    put_kv(&b, "split.tensors.count", SL_GGUF_I32), put_u32(&b, n_tensors);
    put_kv_u32(&b, "part", no);
    put_kv_u32(&b, "general.alignment", 32u << no); // each file has its own
    put_tensor(&b, tensor, 1, 2, 0, SL_TYPE_F16, 0);
    put_data(&b, 32u << no, 4);
    b.data[b.n - 4] = (uint8_t)no;
    snprintf(file, sizeof file, "%s-%05u-of-%05u.gguf", name, no + 1, count);
    return write_file(file, &b);
}

static int count_progress(void *user, uint64_t n, uint64_t total) {
    uint64_t *n_seen = user;
    CHECK(n > *n_seen && n <= total);
    *n_seen = n;
    return 0;
}

static int stop_progress(void *user, uint64_t n, uint64_t total) {
    (void)user;
    CHECK(n < total); // it stopped after the first file
    return 1;
}

TEST(a_split_set_opens_by_its_first_file) {
    const char *first = write_part("model", 0, 3, 0, 3, 3, "a");
    write_part("model", 1, 3, 1, 3, 3, "b"), write_part("model", 2, 3, 2, 3, 3, "c");
    sl_gguf *gguf;
    int64_t part;
    REQUIRE_OK(sl_gguf_open(&gguf, first, NULL), sl_error_text());
    CHECK_INT(sl_gguf_n_files(gguf), 3);
    CHECK_INT(sl_gguf_n_tensors(gguf), 3);
    CHECK_INT(sl_gguf_n_kv(gguf), 5);
    CHECK_TEXT(sl_gguf_path(gguf), first);
    CHECK(sl_gguf_read_int(sl_gguf_find(gguf, "part"), 0, &part, 0, 9) == SL_OK && part == 0);
    const char *names[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_find(gguf, names[i]);
        REQUIRE(t);
        CHECK_INT(t->file, i);
        CHECK_INT(t->data[0], i);
    }
    REQUIRE_OK(sl_gguf_prefault(gguf, NULL, NULL), sl_error_text());
    uint64_t n_seen = 0;
    CHECK_INT(sl_gguf_prefault(gguf, count_progress, &n_seen), SL_OK);
    CHECK_INT(n_seen, sl_gguf_file_bytes(gguf));
    CHECK_INT(sl_gguf_prefault(gguf, stop_progress, NULL), SL_CANCELLED);
    sl_gguf_close(gguf);
}

TEST(a_broken_split_set_is_refused_with_the_file_named) {
    write_part("m", 0, 2, 0, 2, 2, "a");
    const char *first = in_scratch("m-00001-of-00002.gguf"), *second = in_scratch("m-00002-of-00002.gguf");
    check_refused(second, SL_IO, "No such file");
    sl_gguf *gguf;
    CHECK_INT(sl_gguf_open(&gguf, first, NULL), SL_IO);
    CHECK(strstr(sl_error_text(), second) != NULL); // the missing one is named, not the first
    struct {
        unsigned says_no, says_count;
        uint32_t n_tensors;
        const char *tensor, *reason;
    } wrong[] = {
        {0, 2, 2, "b", "part 1 of its set, not part 2"},
        {1, 3, 2, "b", "another split set"},
        {1, 2, 9, "b", "another split set"},
        {1, 2, 2, "a", "'a' appears twice"},
        {0, 0, 2, "b", "another split set"},
    };
    for (size_t i = 0; i < SL_COUNT(wrong); i++) {
        write_part("m", 1, 2, wrong[i].says_no, wrong[i].says_count, wrong[i].n_tensors, wrong[i].tensor);
        CHECK_INT(sl_gguf_open(&gguf, first, NULL), SL_BAD_FILE);
        if (!strstr(sl_error_text(), wrong[i].reason)) test_failed(__FILE__, __LINE__, "%s", sl_error_text());
    }
    write_part("m", 1, 2, 1, 2, 2, "b");
    check_refused(second, SL_BAD_ARG, "part 2 of 2; open part 1");
    write_part("n", 0, 2, 0, 2, 5, "a"), write_part("n", 1, 2, 1, 2, 5, "b");
    check_refused(in_scratch("n-00001-of-00002.gguf"), SL_BAD_FILE, "should have 5 tensors, but its files have 2");
    REQUIRE(rename(first, in_scratch("renamed.gguf")) == 0);
    check_refused(in_scratch("renamed.gguf"), SL_BAD_FILE, "does not end in -00001-of-00002.gguf");
}

// ---- the writer

static sl_status fill_from(void *user, size_t i, uint64_t off, void *out, size_t n_bytes) {
    memcpy(out, sl_gguf_tensor_at(user, i)->data + off, n_bytes);
    return SL_OK;
}

static sl_status rewrite(sl_gguf *from, const char *path) {
    sl_gguf_writer *writer;
    sl_status status = sl_gguf_writer_create(&writer);
    if (status != SL_OK) return status;
    for (size_t i = 0; i < sl_gguf_n_kv(from); i++) SL_TRY_OUT(sl_gguf_writer_copy_kv(writer, sl_gguf_kv_at(from, i)));
    for (size_t i = 0; i < sl_gguf_n_tensors(from); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(from, i);
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n_bytes, t->name.data);
        SL_TRY_OUT(sl_gguf_writer_add_tensor(writer, name, (sl_type)t->type_id, t->dim, t->n_dims));
    }
    SL_TRY_OUT(sl_gguf_writer_write(writer, path, fill_from, from));
out:
    sl_gguf_writer_destroy(writer);
    return status;
}

static void check_equal(const sl_gguf *a, const sl_gguf *b) {
    REQUIRE(sl_gguf_n_kv(a) == sl_gguf_n_kv(b) && sl_gguf_n_tensors(a) == sl_gguf_n_tensors(b));
    CHECK_INT(sl_gguf_alignment(a), sl_gguf_alignment(b));
    for (size_t i = 0; i < sl_gguf_n_kv(a); i++) {
        const sl_gguf_kv *x = sl_gguf_kv_at(a, i), *y = sl_gguf_kv_at(b, i);
        CHECK(sl_span_equal(x->key, y->key) && x->kind == y->kind && x->elem_kind == y->elem_kind && x->n == y->n);
        REQUIRE(x->n_bytes == y->n_bytes && memcmp(x->data, y->data, x->n_bytes) == 0);
    }
    for (size_t i = 0; i < sl_gguf_n_tensors(a); i++) {
        const sl_gguf_tensor *x = sl_gguf_tensor_at(a, i), *y = sl_gguf_tensor_at(b, i);
        CHECK(sl_span_equal(x->name, y->name) && x->type_id == y->type_id && x->n_dims == y->n_dims);
        CHECK(memcmp(x->dim, y->dim, sizeof x->dim) == 0);
        REQUIRE(x->n_bytes == y->n_bytes && memcmp(x->data, y->data, x->n_bytes) == 0);
    }
}

static void check_round_trip(sl_gguf *a, const char *path) {
    sl_gguf *b;
    REQUIRE_OK(rewrite(a, path), sl_error_text());
    REQUIRE_OK(sl_gguf_open(&b, path, NULL), sl_error_text());
    check_equal(a, b);
    sl_gguf_close(b);
}

TEST(a_written_file_reads_back_equal) {
    bytes b = {.n = 0};
    make_valid(&b, 3);
    sl_gguf *a;
    REQUIRE_OK(sl_gguf_parse(&a, b.data, b.n, NULL), sl_error_text());
    check_round_trip(a, in_scratch("copy.gguf"));
    sl_gguf_close(a);
}

TEST(a_real_model_written_anew_reads_back_equal) {
    sl_gguf *a;
    REQUIRE_OK(sl_gguf_open(&a, test_model_path("SmolLM2-135M-Instruct.Q4_1.gguf"), NULL), sl_error_text());
    check_round_trip(a, in_scratch("model.gguf"));
    sl_gguf_close(a);
}

TEST(values_set_by_the_writer_read_back) {
    sl_gguf_writer *writer;
    sl_gguf *gguf;
    int64_t integer;
    double number;
    bool flag;
    sl_span text, words[] = {sl_span_of("one"), sl_span_of(""), sl_span_of("three")}, back[3];
    REQUIRE_OK(sl_gguf_writer_create(&writer), sl_error_text());
    CHECK_INT(sl_gguf_writer_set_u32(writer, "n", 1), SL_OK);
    CHECK_INT(sl_gguf_writer_set_text(writer, "s", sl_span_of("text")), SL_OK);
    CHECK_INT(sl_gguf_writer_set_u32(writer, "n", 7), SL_OK); // replaces
    CHECK_INT(sl_gguf_writer_set_f32(writer, "f", 0.5f), SL_OK);
    CHECK_INT(sl_gguf_writer_set_bool(writer, "b", true), SL_OK);
    CHECK_INT(sl_gguf_writer_set_texts(writer, "ss", words, 3), SL_OK);
    CHECK_INT(sl_gguf_writer_set_i32s(writer, "is", (int32_t[]){-1, 2}, 2), SL_OK);
    CHECK_INT(sl_gguf_writer_set_f32s(writer, "fs", (float[]){0.25f}, 1), SL_OK);
    CHECK_INT(sl_gguf_writer_set_f32s(writer, "none", NULL, 0), SL_OK);
    REQUIRE_OK(sl_gguf_writer_write(writer, in_scratch("w.gguf"), NULL, NULL), sl_error_text());
    sl_gguf_writer_destroy(writer);
    REQUIRE_OK(sl_gguf_open(&gguf, in_scratch("w.gguf"), NULL), sl_error_text());
    CHECK_INT(sl_gguf_n_kv(gguf), 8);
    CHECK(sl_gguf_read_int(sl_gguf_find(gguf, "n"), 0, &integer, 0, 9) == SL_OK && integer == 7);
    CHECK(sl_gguf_read_int(sl_gguf_find(gguf, "is"), 0, &integer, -9, 9) == SL_OK && integer == -1);
    CHECK(sl_gguf_read_float(sl_gguf_find(gguf, "f"), 0, &number) == SL_OK && number == 0.5);
    CHECK(sl_gguf_read_float(sl_gguf_find(gguf, "fs"), 0, &number) == SL_OK && number == 0.25);
    CHECK(sl_gguf_read_bool(sl_gguf_find(gguf, "b"), 0, &flag) == SL_OK && flag);
    CHECK(sl_gguf_read_text(sl_gguf_find(gguf, "s"), &text) == SL_OK && sl_span_is(text, "text"));
    CHECK(sl_gguf_read_texts(sl_gguf_find(gguf, "ss"), back) == SL_OK && sl_span_is(back[2], "three"));
    CHECK_INT(sl_gguf_find(gguf, "none")->n, 0);
    sl_gguf_close(gguf);
}

TEST(the_writer_refuses_what_the_reader_would) {
    sl_gguf_writer *writer;
    REQUIRE_OK(sl_gguf_writer_create(&writer), sl_error_text());
    CHECK_INT(sl_gguf_writer_set_u32(writer, "", 1), SL_BAD_ARG);
    CHECK_INT(sl_gguf_writer_add_tensor(writer, "", SL_TYPE_F32, (uint64_t[]){4}, 1), SL_BAD_ARG);
    CHECK_INT(sl_gguf_writer_add_tensor(writer, "t", SL_TYPE_Q4_0, (uint64_t[]){33}, 1), SL_BAD_FILE);
    CHECK_INT(sl_gguf_writer_add_tensor(writer, "t", SL_TYPE_F32, (uint64_t[]){4}, 5), SL_BAD_ARG);
    CHECK_INT(sl_gguf_writer_add_tensor(writer, "t", SL_TYPE_F32, (uint64_t[]){4}, 1), SL_OK);
    CHECK_INT(sl_gguf_writer_set_u32(writer, "general.alignment", 7), SL_OK);
    CHECK_INT(sl_gguf_writer_write(writer, in_scratch("no.gguf"), fill_from, NULL), SL_BAD_FILE);
    CHECK_INT(sl_gguf_writer_set_u32(writer, "general.alignment", 64), SL_OK);
    CHECK_INT(sl_gguf_writer_add_tensor(writer, "t", SL_TYPE_F32, (uint64_t[]){4}, 1), SL_OK);
    CHECK_INT(sl_gguf_writer_write(writer, in_scratch("no.gguf"), fill_from, NULL), SL_BAD_FILE);
    CHECK(access(in_scratch("no.gguf"), F_OK) != 0);
    sl_gguf_writer_destroy(writer);
}

static sl_status fill_fails(void *user, size_t i, uint64_t off, void *out, size_t n_bytes) {
    (void)user, (void)i, (void)out, (void)n_bytes;
    return off == 0 ? SL_OK : SL_FAIL(SL_CANCELLED, "stopped");
}

TEST(a_failed_write_leaves_the_old_file_and_nothing_else) {
    bytes b = {.n = 0};
    put(&b, "old", 3);
    const char *path = write_file("keep.gguf", &b);
    sl_gguf_writer *writer;
    REQUIRE_OK(sl_gguf_writer_create(&writer), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_add_tensor(writer, "t", SL_TYPE_F32, (uint64_t[]){1 << 20}, 1), sl_error_text());
    CHECK_INT(sl_gguf_writer_write(writer, path, fill_fails, NULL), SL_CANCELLED);
    CHECK_INT(sl_gguf_writer_write(writer, test_scratch_dir(), fill_fails, NULL), SL_IO);
    CHECK_INT(sl_gguf_writer_write(writer, in_scratch("none/x.gguf"), fill_fails, NULL), SL_IO);
    sl_gguf_writer_destroy(writer);
    struct stat st;
    CHECK(stat(path, &st) == 0 && st.st_size == 3);
    char command[4200];
    snprintf(command, sizeof command, "test \"$(ls '%s')\" = keep.gguf", test_scratch_dir());
    CHECK_INT(system(command), 0);
}

TEST(failing_allocations_of_a_rewrite_are_reported) {
    bytes b = {.n = 0};
    make_valid(&b, 3);
    sl_gguf *a;
    REQUIRE_OK(sl_gguf_parse(&a, b.data, b.n, NULL), sl_error_text());
    for (uint64_t n = 1; n < 100; n++) {
        sl_alloc_fail_at(n);
        sl_status status = rewrite(a, in_scratch("f.gguf"));
        sl_alloc_fail_at(0);
        if (status == SL_OK) {
            CHECK(n > 5);
            break;
        }
        CHECK_INT(status, SL_NO_MEMORY);
    }
    sl_gguf_close(a);
}
