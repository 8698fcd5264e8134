// SPDX-License-Identifier: MIT
// sl_test: MODULES gguf os base
//
// The reader on bytes: honest files, hostile files, cut files, damaged files, and failing
// allocations. Bytes end at an inaccessible page, so that a read past the end is a crash also
// without a sanitizer.
#include "harness.h"

#include "base/alloc.h"
#include "gguf_hostile.h"
#include "os/os.h"

// Copies the first n bytes to the very end of `room`.
static const uint8_t *at_end(uint8_t *room, size_t n_room, const uint8_t *data, size_t n) {
    if (n) memcpy(room + n_room - n, data, n);
    return room + n_room - n;
}

static sl_gguf *parse_ok(const bytes *b) {
    static uint8_t *room;
    sl_gguf *gguf;
    if (!room) room = test_guarded(sizeof b->data);
    REQUIRE_OK(sl_gguf_parse(&gguf, at_end(room, sizeof b->data, b->data, b->n), b->n, NULL), sl_error_text());
    return gguf;
}

TEST(hostile_files_get_a_plain_reason) {
    uint8_t *room = test_guarded(4096);
    for (size_t i = 0; i < SL_COUNT(hostiles); i++) {
        const hostile *h = &hostiles[i];
        bytes b = {.n = 0};
        sl_gguf *gguf = (sl_gguf *)&b;
        h->make(&b);
        sl_error_clear();
        sl_status status = sl_gguf_parse(&gguf, at_end(room, 4096, b.data, b.n), b.n, NULL);
        if (status != h->status || !strstr(sl_error_text(), h->reason) || gguf)
            test_failed(__FILE__, __LINE__, "%s: status %d, \"%s\"; wanted %d, \"%s\"", h->name, status,
                        sl_error_text(), h->status, h->reason);
        if (status == SL_OK) sl_gguf_close(gguf);
    }
}

TEST(hostile_files_are_no_better_without_their_data) {
    for (size_t i = 0; i < SL_COUNT(hostiles); i++) {
        bytes b = {.n = 0};
        sl_gguf *gguf;
        hostiles[i].make(&b);
        sl_status status = sl_gguf_parse(&gguf, b.data, b.n, &(sl_gguf_options){.allow_no_data = true});
        bool only_data_missing = strstr(hostiles[i].name, "_larger") || strstr(hostiles[i].name, "too_large") ||
                                 strstr(hostiles[i].name, "offset_past") || strstr(hostiles[i].name, "no_data");
        if ((status == SL_OK) != only_data_missing)
            test_failed(__FILE__, __LINE__, "%s: status %d", hostiles[i].name, status);
        if (status != SL_OK) continue;
        CHECK(sl_gguf_tensor_at(gguf, 0)->data == NULL);
        walk_gguf(gguf);
        sl_gguf_close(gguf);
    }
}

static int64_t int_of(const sl_gguf *gguf, const char *key, uint64_t i) {
    int64_t value;
    REQUIRE_OK(sl_gguf_read_int(sl_gguf_find(gguf, key), i, &value, INT64_MIN, INT64_MAX), sl_error_text());
    return value;
}

static double float_of(const sl_gguf *gguf, const char *key, uint64_t i) {
    double value;
    REQUIRE_OK(sl_gguf_read_float(sl_gguf_find(gguf, key), i, &value), sl_error_text());
    return value;
}

TEST(values_of_every_kind_are_read) {
    bytes b = {.n = 0};
    make_valid(&b, 3);
    sl_gguf *gguf = parse_ok(&b);
    bool flag;
    sl_span text, texts[3];
    CHECK_INT(sl_gguf_n_kv(gguf), 17);
    CHECK_INT(int_of(gguf, "u8", 0), 200);
    CHECK_INT(int_of(gguf, "i8", 0), -128);
    CHECK_INT(int_of(gguf, "u16", 0), 65535);
    CHECK_INT(int_of(gguf, "i16", 0), -2);
    CHECK_INT(int_of(gguf, "u32", 0), 4000000000);
    CHECK_INT(int_of(gguf, "i32", 0), -5);
    CHECK_INT(int_of(gguf, "i64", 0), -7);
    CHECK_INT(int_of(gguf, "i32s", 1), -2);
    CHECK(float_of(gguf, "f32", 0) == 1.5);
    CHECK(float_of(gguf, "f64", 0) == -0.25);
    CHECK(float_of(gguf, "i8", 0) == -128);
    CHECK(float_of(gguf, "u64", 0) == 0x1p64);
    CHECK(sl_gguf_read_bool(sl_gguf_find(gguf, "bool"), 0, &flag) == SL_OK && flag);
    CHECK(sl_gguf_read_text(sl_gguf_find(gguf, "text"), &text) == SL_OK && sl_span_is(text, "hello"));
    CHECK(sl_gguf_read_texts(sl_gguf_find(gguf, "texts"), texts) == SL_OK);
    CHECK(sl_span_is(texts[0], "a") && sl_span_is(texts[1], "") && sl_span_is(texts[2], "ccc"));
    CHECK_INT(sl_gguf_find(gguf, "empty")->n, 0);
    CHECK(sl_gguf_find(gguf, "absent") == NULL);
    CHECK(sl_gguf_find(gguf, "") == NULL);
    sl_gguf_close(gguf);
}

#define CHECK_REFUSED(expr, text)                                                                   \
    do {                                                                                            \
        CHECK_INT(expr, SL_BAD_FILE);                                                               \
        if (!strstr(sl_error_text(), text)) test_failed(__FILE__, __LINE__, "%s", sl_error_text()); \
    } while (0)

TEST(values_of_wrong_kind_or_range_are_refused_by_name) {
    bytes b = {.n = 0};
    make_valid(&b, 3);
    sl_gguf *gguf = parse_ok(&b);
    int64_t integer;
    double number;
    bool flag;
    sl_span text, texts[3];
    CHECK_REFUSED(sl_gguf_read_int(sl_gguf_find(gguf, "u8"), 0, &integer, 1, 100), "'u8' holds 200; 1 to 100 are");
    CHECK_INT(integer, 0);
    CHECK_REFUSED(sl_gguf_read_int(sl_gguf_find(gguf, "u64"), 0, &integer, 0, INT64_MAX), "18446744073709551615");
    CHECK_REFUSED(sl_gguf_read_int(sl_gguf_find(gguf, "f32"), 0, &integer, 0, 9), "holds f32, not an integer");
    CHECK_REFUSED(sl_gguf_read_int(sl_gguf_find(gguf, "i32s"), 3, &integer, 0, 9), "3 elements; element 3");
    CHECK_REFUSED(sl_gguf_read_int(sl_gguf_find(gguf, "empty"), 0, &integer, 0, 9), "0 elements");
    CHECK_REFUSED(sl_gguf_read_float(sl_gguf_find(gguf, "texts"), 0, &number), "an array of string, not a number");
    CHECK_REFUSED(sl_gguf_read_float(sl_gguf_find(gguf, "bool"), 0, &number), "holds bool, not a number");
    CHECK_REFUSED(sl_gguf_read_bool(sl_gguf_find(gguf, "u8"), 0, &flag), "not a bool");
    CHECK_REFUSED(sl_gguf_read_bool(sl_gguf_find(gguf, "bad bool"), 0, &flag), "the bool 2");
    CHECK_REFUSED(sl_gguf_read_text(sl_gguf_find(gguf, "texts"), &text), "not a string");
    CHECK_REFUSED(sl_gguf_read_texts(sl_gguf_find(gguf, "i32s"), texts), "not an array of strings");
    CHECK_REFUSED(sl_gguf_read_texts(sl_gguf_find(gguf, "text"), texts), "not an array of strings");
    CHECK_INT(sl_gguf_read_int(NULL, 0, &integer, 0, 9), SL_BAD_ARG);
    sl_gguf_close(gguf);
}

TEST(tensors_may_stand_in_any_order_with_gaps) {
    for (uint32_t version = 2; version <= 3; version++) {
        bytes b = {.n = 0};
        make_valid(&b, version);
        sl_gguf *gguf = parse_ok(&b);
        CHECK_INT(sl_gguf_version(gguf), version);
        CHECK_INT(sl_gguf_alignment(gguf), 64);
        CHECK_INT(sl_gguf_n_tensors(gguf), 3);
        CHECK_INT(sl_gguf_n_files(gguf), 1);
        CHECK_TEXT(sl_gguf_path(gguf), "");
        const sl_gguf_tensor *late = sl_gguf_tensor_find(gguf, "late"), *middle = sl_gguf_tensor_find(gguf, "middle");
        REQUIRE(late && middle && late == sl_gguf_tensor_at(gguf, 0));
        CHECK(sl_gguf_tensor_find(gguf, "lat") == NULL);
        CHECK_INT(late->n_bytes, 36);
        CHECK_INT(late->data[0], (uint8_t)193); // put_data counts from 1
        CHECK_INT(middle->data[0], 65);
        CHECK_INT(middle->n_dims, 4);
        CHECK_INT(middle->dim[3], 1);
        CHECK_INT(late->dim[2], 1);
        CHECK_INT(late->file_off + late->n_bytes, b.n); // no padding after the last one
        sl_gguf_close(gguf);
    }
}

TEST(a_file_may_have_nothing_in_it) {
    bytes b = {.n = 0};
    put_head(&b, 3, 0, 0);
    sl_gguf *gguf = parse_ok(&b);
    CHECK(sl_gguf_find(gguf, "general.architecture") == NULL && sl_gguf_tensor_find(gguf, "output.weight") == NULL);
    sl_gguf_close(gguf);
    bytes named = {.n = 0};
    put_head(&named, 3, 1, 0); // 64 bytes are the longest name
    put_tensor(&named, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 1, 1, 0, TYPE_I8, 0);
    put_data(&named, 32, 1);
    sl_gguf_close(parse_ok(&named));
}

TEST(a_file_cut_at_any_byte_is_refused) {
    bytes b = {.n = 0};
    make_valid(&b, 3);
    uint8_t *room = test_guarded(b.n);
    size_t n_header_ok = 0;
    for (size_t n = 0; n < b.n; n++) {
        sl_gguf *gguf;
        const uint8_t *data = at_end(room, b.n, b.data, n);
        CHECK(sl_gguf_parse(&gguf, data, n, NULL) == SL_BAD_FILE && gguf == NULL);
        if (sl_gguf_parse(&gguf, data, n, &(sl_gguf_options){.allow_no_data = true}) != SL_OK) continue;
        n_header_ok++;
        walk_gguf(gguf);
        sl_gguf_close(gguf);
    }
    CHECK(n_header_ok >= 192 + 36 && n_header_ok < 192 + 36 + 64); // the cuts in the padding and the data
}

TEST(a_real_header_cut_at_every_4_KiB_is_refused) {
    const char *path = test_model_path("SmolLM2-135M-Instruct.Q4_1.gguf");
    sl_map map;
    sl_gguf *gguf;
    REQUIRE_OK(sl_map_open(&map, path), sl_error_text());
    REQUIRE_OK(sl_gguf_parse(&gguf, map.data, map.n_bytes, NULL), sl_error_text());
    size_t data_off = (size_t)sl_gguf_tensor_at(gguf, 0)->file_off;
    sl_gguf_close(gguf);
    uint8_t *room = test_guarded(data_off);
    for (size_t n = 0; n < data_off; n += 4096)
        CHECK(sl_gguf_parse(&gguf, at_end(room, data_off, map.data, n), n, NULL) == SL_BAD_FILE && gguf == NULL);
    for (size_t n = data_off; n < map.n_bytes; n += 4 << 20)
        CHECK(sl_gguf_parse(&gguf, map.data, n, NULL) == SL_BAD_FILE);
    sl_map_close(&map);
}

TEST(damaged_bytes_do_no_harm) {
    bytes good = {.n = 0};
    make_valid(&good, 3);
    uint8_t *room = test_guarded(good.n);
    int n_ok = 0, n_bad = 0;
    for (int i = 0; i < 20000; i++) {
        sl_gguf *gguf;
        memcpy(room, good.data, good.n);
        for (uint32_t k = 1 + test_below(3); k > 0; k--) {
            static const uint8_t nasty[] = {0, 1, 0x7f, 0x80, 0xff};
            size_t at = test_below((uint32_t)good.n);
            room[at] = test_below(2) ? nasty[test_below(5)] : (uint8_t)(room[at] ^ 1u << test_below(8));
        }
        sl_gguf_options options = {.allow_no_data = test_below(2)};
        if (sl_gguf_parse(&gguf, room, good.n, &options) != SL_OK) {
            n_bad++;
            continue;
        }
        walk_gguf(gguf);
        sl_gguf_close(gguf);
        n_ok++;
    }
    CHECK(n_ok > 1000 && n_bad > 1000); // both paths were walked
}

TEST(a_failing_allocation_is_reported) {
    bytes b = {.n = 0};
    make_valid(&b, 3);
    for (uint64_t n = 1;; n++) {
        sl_gguf *gguf;
        sl_alloc_fail_at(n);
        sl_status status = sl_gguf_parse(&gguf, b.data, b.n, NULL);
        sl_alloc_fail_at(0);
        if (status == SL_OK) {
            CHECK(n > 5);
            sl_gguf_close(gguf);
            return;
        }
        CHECK(status == SL_NO_MEMORY && gguf == NULL);
    }
}

// A file of n keys, each with one byte; freed by the caller.
static uint8_t *make_many_keys(uint32_t n_keys, size_t *n_bytes) {
    uint8_t *data = malloc(24 + (size_t)n_keys * (8 + 8 + 4 + 1));
    bytes part = {.n = 0};
    put_head(&part, 3, 0, n_keys);
    memcpy(data, part.data, *n_bytes = part.n);
    for (uint32_t i = 0; i < n_keys; i++) {
        char key[16];
        snprintf(key, sizeof key, "%08u", i);
        part.n = 0;
        put_kv(&part, key, SL_GGUF_U8), put_u8(&part, (uint8_t)i);
        memcpy(data + *n_bytes, part.data, part.n);
        *n_bytes += part.n;
    }
    return data;
}

TEST(many_keys_cost_time_in_proportion) {
    size_t n_bytes;
    uint8_t *data = make_many_keys(300000, &n_bytes);
    sl_gguf *gguf;
    REQUIRE_OK(sl_gguf_parse(&gguf, data, n_bytes, NULL), sl_error_text());
    CHECK_INT(int_of(gguf, "00299999", 0), (uint8_t)299999);
    CHECK(sl_gguf_find(gguf, "00300000") == NULL);
    sl_gguf_close(gguf);
    free(data);
}

TEST(too_many_keys_are_refused_although_they_are_there) {
    size_t n_bytes;
    uint8_t *data = make_many_keys((1 << 20) + 1, &n_bytes);
    sl_gguf *gguf;
    CHECK_REFUSED(sl_gguf_parse(&gguf, data, n_bytes, NULL), "1048577 keys and 0 tensors; at most");
    free(data);
}
