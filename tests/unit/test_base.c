// SPDX-License-Identifier: MIT
// sl_test: MODULES base
#include "harness.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/half.h"
#include "base/size.h"
#include "base/utf8.h"

TEST(half_round_trip_is_exact_for_every_value) {
    for (uint32_t h = 0; h < 65536; h++) {
        float f = sl_f16_to_f32((uint16_t)h);
        uint16_t back = sl_f16_from_f32(f);
        if (isnan(f)) CHECK(isnan(sl_f16_to_f32(back)));
        else CHECK_INT(back, h);
        float b = sl_bf16_to_f32((uint16_t)h);
        if (isnan(b)) CHECK(isnan(sl_bf16_to_f32(sl_bf16_from_f32(b))));
        else CHECK_INT(sl_bf16_from_f32(b), h);
    }
}

TEST(half_rounds_to_nearest_even) {
    for (int i = 0; i < 200000; i++) {
        float f = sl_f32_from_bits((uint32_t)test_random());
        if (!isfinite(f)) continue;
        uint16_t h = sl_f16_from_f32(f);
        if ((h & 0x7c00) == 0x7c00) {
            CHECK(fabsf(f) >= 65520.0f);
            continue;
        }
        double err = fabs((double)sl_f16_to_f32(h) - f);
        uint16_t up = (uint16_t)(h + 1), down = (uint16_t)(h - 1);
        if ((up & 0x7c00) != 0x7c00) CHECK(err <= fabs((double)sl_f16_to_f32(up) - f));
        if (h & 0x7fff) CHECK(err <= fabs((double)sl_f16_to_f32(down) - f));
    }
    CHECK_INT(sl_f16_from_f32(1.0f + 0x1p-11f), 0x3c00); // ties go to even
    CHECK_INT(sl_f16_from_f32(1.0f + 3 * 0x1p-11f), 0x3c02);
    CHECK_INT(sl_f16_from_f32(0x1p-25f), 0);
    CHECK_INT(sl_f16_from_f32(0x1.8p-24f), 2);
}

TEST(sizes_do_not_wrap) {
    uint64_t n;
    CHECK(!sl_size_add(&n, UINT64_MAX, 1));
    CHECK_INT(n, 0);
    CHECK(!sl_size_mul(&n, 1ull << 33, 1ull << 31));
    CHECK(!sl_size_align(&n, UINT64_MAX - 3, 32));
    CHECK(sl_size_align(&n, 33, 32));
    CHECK_INT(n, 64);
}

TEST(arena_hands_out_zeroed_aligned_memory) {
    sl_arena arena = {0};
    for (size_t n = 1; n < 200000; n = n * 2 + 1) {
        unsigned char *p;
        REQUIRE_OK(sl_arena_alloc(&arena, &p, n, 1, "test"), sl_error_text());
        CHECK_INT((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++) CHECK(p[i] == 0);
        memset(p, 0xff, n);
    }
    sl_arena_deinit(&arena);
}

TEST(allocation_fails_when_told_and_leaves_null) {
    void *p = &p;
    sl_alloc_fail_at(2);
    CHECK_INT(sl_alloc(&p, 1, 8, "first"), SL_OK);
    sl_free(p);
    CHECK_INT(sl_alloc(&p, 1, 8, "second"), SL_NO_MEMORY);
    CHECK(p == NULL);
    CHECK(strstr(sl_error_text(), "second"));
    CHECK_INT(sl_alloc(&p, SIZE_MAX, 8, "huge"), SL_NO_MEMORY);
}

TEST(buffer_appends_bounds_and_escapes) {
    sl_buf b = {.max_bytes = 40};
    sl_buf_json(&b, sl_span_make("a\"\\\n\x01\xff\xc3\xa9", 8));
    char *text;
    REQUIRE_OK(sl_buf_take(&b, &text, NULL), sl_error_text());
    CHECK_TEXT(text, "\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\xc3\xa9\"");
    sl_free(text);
    for (int i = 0; i < 50; i++) sl_buf_text(&b, "x");
    CHECK_INT(sl_buf_take(&b, &text, NULL), SL_FULL);
    CHECK(text == NULL);
}

TEST(utf8_accepts_each_code_point_and_nothing_else) {
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        if (cp >= 0xd800 && cp <= 0xdfff) continue;
        char s[4];
        uint32_t back;
        size_t n = sl_utf8_encode(s, cp);
        if (sl_utf8_decode(&back, s, n) != n || back != cp) test_failed(__FILE__, __LINE__, "U+%04X", cp);
        if (n > 1) CHECK(sl_utf8_decode(&back, s, n - 1) == 0);
    }
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xc3("};
    uint32_t cp;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK_INT(sl_utf8_decode(&cp, bad[i], strlen(bad[i])), 0);
}
