// SPDX-License-Identifier: MIT
// sl_test: MODULES text
//
// Tokenizers over vocabularies made by hand: what each flag does, and what hostile text and files do.
#include "harness.h"

#include <stdarg.h>
#include <time.h>

#include "base/alloc.h"
#include "text/nfc.h"
#include "text/pair_merge.h"
#include "text/pretokenizer.h"
#include "text/tokenizer.h"
#include "tiny_vocab.h"

enum { MEGABYTE = 1 << 20 };

// A megabyte takes seconds under a sanitizer on a busy machine; a quadratic case takes hours.
__attribute__((constructor)) static void set_timeout(void) { test_set_timeout(600); }

static tiny_vocab vocab;

static sl_tokenizer *create(void) {
    sl_tokenizer *tokenizer;
    REQUIRE_OK(sl_tokenizer_create(&tokenizer, &vocab.source), sl_error_text());
    return tokenizer;
}

static size_t encode(const sl_tokenizer *tokenizer, int32_t *ids, size_t cap, sl_span text, bool bos, bool special) {
    size_t n;
    sl_encode_options options = {.add_bos = bos, .parse_special = special};
    REQUIRE_OK(sl_tokenizer_encode(tokenizer, ids, cap, &n, text, &options), sl_error_text());
    return n;
}

// Compares the ids of `text` with a list that ends with -1.
static void check_ids(const sl_tokenizer *tokenizer, const char *text, int bos, int special, ...) {
    int32_t ids[256];
    size_t n = encode(tokenizer, ids, 256, sl_span_of(text), bos, special), i = 0;
    va_list want;
    va_start(want, special);
    for (int32_t id; (id = va_arg(want, int)) >= 0; i++) {
        if (i >= n || ids[i] != id)
            test_failed(__FILE__, __LINE__, "\"%s\": id %zu is %d, not %d", text, i, i < n ? ids[i] : -1, id);
    }
    va_end(want);
    if (i != n) test_failed(__FILE__, __LINE__, "\"%s\" has %zu ids, not %zu", text, n, i);
}

static void check_decode(const sl_tokenizer *tokenizer, const int32_t *ids, size_t n, bool special, sl_span want) {
    size_t n_text;
    sl_decode_options options = {.special = special};
    REQUIRE_OK(sl_tokenizer_decode(tokenizer, NULL, 0, &n_text, ids, n, &options), sl_error_text());
    char *text = malloc(n_text + 1);
    REQUIRE_OK(sl_tokenizer_decode(tokenizer, text, n_text, &n_text, ids, n, &options), sl_error_text());
    if (!sl_span_equal(sl_span_make(text, n_text), want))
        test_failed(__FILE__, __LINE__, "%zu ids decode to %zu bytes \"%.*s\", not to %zu", n, n_text,
                    (int)SL_MIN(n_text, 80), text, want.n_bytes);
    free(text);
}

static void check_round_trip(const sl_tokenizer *tokenizer, sl_span text) {
    size_t n = encode(tokenizer, NULL, 0, text, false, true);
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    CHECK_INT(encode(tokenizer, ids, n, text, false, true), n);
    check_decode(tokenizer, ids, n, true, text);
    free(ids);
}

// ---- BPE -----------------------------------------------------------------------------------------------------

TEST(bpe_merges_by_rank) {
    tiny_bpe(&vocab);
    sl_tokenizer *tokenizer = create();
    check_ids(tokenizer, "hello", false, false, TINY_HELLO, -1);
    check_ids(tokenizer, "hell", false, false, TINY_HE, TINY_LL, -1); // "h e" ranks before "e ll"
    check_ids(tokenizer, "ell", false, false, TINY_ELL, -1);
    check_ids(tokenizer, "lll", false, false, TINY_LL, 'l', -1); // the leftmost of equals
    check_ids(tokenizer, "hello world", false, false, TINY_HELLO, TINY_WO, 'r', 'l', 'd', -1);
    check_ids(tokenizer, "", true, true, -1);
    sl_tokenizer_destroy(tokenizer);
}

TEST(bpe_special_tokens) {
    tiny_bpe(&vocab);
    sl_tokenizer *tokenizer = create();
    check_ids(tokenizer, "he<|end|>", false, true, TINY_HE, TINY_END, -1);
    check_ids(tokenizer, "he<|end|>", false, false, TINY_HE, '<', '|', 'e', 'n', 'd', '|', '>', -1);
    check_ids(tokenizer, "<tool>he", false, false, TINY_TOOL, TINY_HE, -1);
    check_ids(tokenizer, "<tool>she", false, false, TINY_TOOLS, TINY_HE, -1); // the longest
    check_ids(tokenizer, "<<tool>", false, false, '<', TINY_TOOL, -1);
    check_ids(tokenizer, "<tool", false, true, '<', 't', 'o', 'o', 'l', -1);
    check_ids(tokenizer, "<unk>", false, true, TINY_UNK, -1);
    check_ids(tokenizer, "<unk>", false, false, '<', 'u', 'n', 'k', '>', -1);
    CHECK_INT(sl_tokenizer_find(tokenizer, sl_span_of("<|end|>")), TINY_END);
    CHECK_INT(sl_tokenizer_find(tokenizer, sl_span_of("<|en")), -1);
    CHECK_INT(sl_tokenizer_type(tokenizer, TINY_TOOL), SL_TOKEN_USER_DEFINED);
    CHECK(sl_span_is(sl_tokenizer_raw(tokenizer, TINY_WO), "\xc4\xa0wo"));
    CHECK(sl_span_is(sl_tokenizer_piece(tokenizer, TINY_WO, NULL), " wo"));
    CHECK_INT(sl_tokenizer_piece(tokenizer, TINY_END, NULL).n_bytes, 0);
    check_decode(tokenizer, (int32_t[]){TINY_HE, TINY_END}, 2, true, sl_span_of("he<|end|>"));
    check_decode(tokenizer, (int32_t[]){TINY_HE, TINY_END, TINY_TOOL}, 3, false, sl_span_of("he<tool>"));
    sl_tokenizer_destroy(tokenizer);
}

TEST(bpe_bos_and_eos_are_the_file_s_wish) {
    tiny_bpe(&vocab);
    vocab.source.bos = vocab.source.eos = TINY_END;
    sl_tokenizer *tokenizer = create();
    CHECK(!sl_tokenizer_adds_bos(tokenizer));
    check_ids(tokenizer, "he", true, false, TINY_HE, -1);
    sl_tokenizer_destroy(tokenizer);
    vocab.source.add_bos = vocab.source.add_eos = 1;
    tokenizer = create();
    check_ids(tokenizer, "he", true, false, TINY_END, TINY_HE, TINY_END, -1);
    check_ids(tokenizer, "he", false, false, TINY_HE, -1);
    sl_tokenizer_destroy(tokenizer);
    vocab.source.add_bos = vocab.source.add_eos = -1;
    vocab.source.pre = sl_span_of("llama-bpe"); // adds BOS by default
    tokenizer = create();
    check_ids(tokenizer, "he", true, false, TINY_END, TINY_HE, -1);
    sl_tokenizer_destroy(tokenizer);
}

TEST(bpe_ignores_merges_where_the_family_does) {
    tiny_bpe(&vocab);
    int32_t id = tiny_add(&vocab, "hex", SL_TOKEN_NORMAL, 0);
    sl_tokenizer *tokenizer = create();
    check_ids(tokenizer, "hex", false, false, TINY_HE, 'x', -1);
    sl_tokenizer_destroy(tokenizer);
    vocab.source.ignore_merges = 1;
    tokenizer = create();
    check_ids(tokenizer, "hex", false, false, id, -1);
    check_ids(tokenizer, "hexe", false, false, TINY_HE, 'x', 'e', -1);
    sl_tokenizer_destroy(tokenizer);
}

TEST(bpe_counts_past_the_capacity) {
    tiny_bpe(&vocab);
    sl_tokenizer *tokenizer = create();
    int32_t ids[3] = {-7, -7, -7};
    CHECK_INT(encode(tokenizer, NULL, 0, sl_span_of("xyzx"), false, false), 4);
    CHECK_INT(encode(tokenizer, ids, 2, sl_span_of("xyzx"), false, false), 4);
    CHECK(ids[0] == 'x' && ids[1] == 'y' && ids[2] == -7);
    char text[4] = "....";
    size_t n;
    REQUIRE_OK(sl_tokenizer_decode(tokenizer, text, 3, &n, (int32_t[]){TINY_HELLO}, 1, NULL), sl_error_text());
    CHECK(n == 5 && memcmp(text, "hel.", 4) == 0);
    CHECK_INT(sl_tokenizer_decode(tokenizer, text, 3, &n, (int32_t[]){9999}, 1, NULL), SL_BAD_INPUT);
    CHECK_INT(sl_tokenizer_decode(tokenizer, text, 3, &n, (int32_t[]){-1}, 1, NULL), SL_BAD_INPUT);
    sl_tokenizer_destroy(tokenizer);
}

TEST(bpe_takes_invalid_utf8_byte_for_byte) {
    static const char *const bad[] = {
        "\xff",     "\x80",         "\xc3",    "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80",
        "\xe2\x82", "\xf0\x9f\x98", "\xfe\xff"};
    tiny_bpe(&vocab);
    sl_tokenizer *tokenizer = create();
    for (size_t i = 0; i < SL_COUNT(bad); i++) {
        char text[32];
        int32_t ids[32];
        snprintf(text, sizeof text, "he%shello", bad[i]);
        size_t n = encode(tokenizer, ids, 32, sl_span_of(text), false, false), n_bad = strlen(bad[i]);
        CHECK_INT(n, n_bad + 2);
        CHECK(ids[0] == TINY_HE && ids[n - 1] == TINY_HELLO);
        for (size_t b = 0; b < n_bad; b++) CHECK_INT(ids[1 + b], (uint8_t)bad[i][b]);
        check_round_trip(tokenizer, sl_span_of(text));
    }
    for (int round = 0; round < 300; round++) {
        char text[200];
        test_random_bytes(text, sizeof text);
        check_round_trip(tokenizer, sl_span_make(text, test_below(200)));
    }
    sl_tokenizer_destroy(tokenizer);
}

TEST(bpe_of_characters_falls_back_to_byte_tokens) {
    tiny_init(&vocab, SL_TOKENIZER_BPE);
    vocab.source.pre = sl_span_of("gemma4");
    int32_t unk = vocab.source.unk = tiny_add(&vocab, "<unk>", SL_TOKEN_UNKNOWN, 0);
    int32_t bos = vocab.source.bos = tiny_add(&vocab, "<bos>", SL_TOKEN_CONTROL, 0);
    int32_t space = tiny_add(&vocab, "\xe2\x96\x81", SL_TOKEN_NORMAL, 0), x = tiny_add(&vocab, "x", SL_TOKEN_NORMAL, 0);
    int32_t space_x = tiny_add(&vocab, "\xe2\x96\x81x", SL_TOKEN_NORMAL, 0);
    int32_t c3 = tiny_add(&vocab, "<0xC3>", SL_TOKEN_BYTE, 0), a9 = tiny_add(&vocab, "<0xa9>", SL_TOKEN_BYTE, 0);
    tiny_merge(&vocab, "\xe2\x96\x81 x");
    vocab.source.add_bos = 0; // such files are wrong
    sl_tokenizer *tokenizer = create();
    check_ids(tokenizer, "x  x\xc3\xa9", true, false, bos, x, space, space_x, c3, a9, -1);
    check_ids(tokenizer,
              "\xc3"
              "q",
              false, false, c3, unk, -1);
    check_decode(tokenizer, (int32_t[]){x, space_x, c3, a9}, 4, false, sl_span_of("x x\xc3\xa9"));
    sl_tokenizer_destroy(tokenizer);
}

TEST(bpe_normalises_where_the_family_does) {
    tiny_bpe(&vocab);
    vocab.source.pre = sl_span_of("qwen2");
    sl_tokenizer *tokenizer = create();
    check_ids(tokenizer, "e\xcc\x81", false, false, 0xc3, 0xa9, -1);    // U+0301 joins the e
    check_ids(tokenizer, "\xe2\x84\xab", false, false, 0xc3, 0x85, -1); // Angstrom sign
    check_ids(tokenizer, "e\xcc\x81\xff", false, false, 0xc3, 0xa9, 0xff, -1);
    check_ids(tokenizer, "<tool>\xcc\x81", false, false, TINY_TOOL, 0xcc, 0x81, -1);
    sl_tokenizer_destroy(tokenizer);
    vocab.source.pre = (sl_span){0};
    tokenizer = create();
    check_ids(tokenizer, "e\xcc\x81", false, false, 'e', 0xcc, 0x81, -1);
    sl_tokenizer_destroy(tokenizer);
}

TEST(an_unknown_pre_is_refused_by_name) {
    tiny_bpe(&vocab);
    vocab.source.pre = sl_span_of("no-such-thing");
    sl_tokenizer *tokenizer = (sl_tokenizer *)&vocab;
    CHECK_INT(sl_tokenizer_create(&tokenizer, &vocab.source), SL_UNSUPPORTED);
    CHECK(tokenizer == NULL);
    CHECK(strstr(sl_error_text(), "no-such-thing") && strstr(sl_error_text(), "--pre"));
}

TEST(hostile_vocabularies_are_harmless) {
    tiny_bpe(&vocab);
    tiny_add(&vocab, "", SL_TOKEN_CONTROL, 0);
    tiny_add(&vocab, "hello", SL_TOKEN_NORMAL, 0); // again
    tiny_add(&vocab, "<0x-1>", SL_TOKEN_BYTE, 0);
    tiny_add(&vocab, "<0xZZ>", SL_TOKEN_BYTE, 0);
    tiny_add(&vocab, "\xff\xfe", SL_TOKEN_NORMAL, 0);
    vocab.type[vocab.source.n_vocab - 1] = 200;
    static const char *const lines[] = {"", " ", "x", " x", "x ", "  ", "q q", "l l", "h e", "\xff \xfe", "h  e"};
    for (size_t i = 0; i < SL_COUNT(lines); i++) tiny_merge(&vocab, lines[i]);
    sl_tokenizer *tokenizer = create();
    check_ids(tokenizer, "hello", false, true, TINY_HELLO, -1);
    for (int32_t id = -2; id < vocab.source.n_vocab + 2; id++) sl_tokenizer_piece(tokenizer, id, NULL);
    check_round_trip(tokenizer, sl_span_of("<0x-1><0xZZ>"));
    sl_tokenizer_destroy(tokenizer);

    tiny_spm(&vocab);
    tiny_add(&vocab, "<0x-1>", SL_TOKEN_BYTE, NAN);
    tiny_add(&vocab, "aa", SL_TOKEN_NORMAL, NAN);
    tiny_add(&vocab, "bb", SL_TOKEN_NORMAL, INFINITY);
    tiny_add(&vocab, "abb", SL_TOKEN_NORMAL, -INFINITY);
    tokenizer = create();
    check_round_trip(tokenizer, sl_span_of("aabbaabbaaaabbbbb<0x-1>"));
    sl_tokenizer_destroy(tokenizer);

    vocab.source.n_vocab = 0;
    CHECK_INT(sl_tokenizer_create(&tokenizer, &vocab.source), SL_BAD_ARG);
}

// ---- SentencePiece -------------------------------------------------------------------------------------------

TEST(spm_merges_by_score) {
    tiny_spm(&vocab);
    vocab.source.add_space_prefix = 0;
    sl_tokenizer *tokenizer = create();
    check_ids(tokenizer, "aba", false, false, TINY_A, TINY_BA, -1); // "ba" scores better than "ab"
    check_ids(tokenizer, "abab", false, false, TINY_A, TINY_BA, TINY_B, -1);
    check_ids(tokenizer, "ab", false, false, TINY_AB, -1);
    check_ids(tokenizer, "a a", false, false, TINY_A, TINY_SPACE_A, -1);
    check_ids(tokenizer, "   a", false, false, TINY_SPACES, TINY_A, -1); // user-defined
    check_ids(tokenizer, "    a", false, false, TINY_SPACES, TINY_SPACE_A, -1);
    check_ids(tokenizer, "\xe2\x96\x81\xe2\x96\x81 a", false, false, TINY_SPACES, TINY_A, -1); // typed marks
    check_ids(tokenizer, "x", false, false, 3 + 'x', -1);
    check_ids(tokenizer,
              "\xc3\xa9"
              "a",
              false, false, 3 + 0xc3, 3 + 0xa9, TINY_A, -1);
    check_ids(tokenizer,
              "a\xff\xe2\x96"
              "b",
              false, false, TINY_A, 3 + 0xff, 3 + 0xe2, 3 + 0x96, TINY_B, -1);
    sl_tokenizer_destroy(tokenizer);
}

TEST(spm_puts_a_space_in_front) {
    tiny_spm(&vocab);
    sl_tokenizer *tokenizer = create();
    CHECK(sl_tokenizer_adds_bos(tokenizer));
    check_ids(tokenizer, "a", true, false, 1, TINY_SPACE_A, -1);
    check_ids(tokenizer, "", true, false, 1, -1);
    check_ids(tokenizer, "a<turn>a", false, true, TINY_SPACE_A, TINY_TURN, TINY_SPACE_A, -1);
    check_ids(tokenizer, "<br>a", false, false, TINY_BR, TINY_SPACE_A, -1);
    check_ids(tokenizer, "</s>", false, true, 2, -1);
    check_decode(tokenizer, (int32_t[]){1, TINY_SPACE_A, TINY_SPACE_A}, 3, false, sl_span_of("a a"));
    check_decode(tokenizer, (int32_t[]){1, TINY_A, TINY_SPACE_A}, 3, true, sl_span_of("<s>a a"));
    check_round_trip(tokenizer, sl_span_of("  ab \n ba\xf0\x9f\x99\x82 b"));
    sl_tokenizer_destroy(tokenizer);
}

TEST(spm_without_byte_tokens_says_unknown_once) {
    tiny_spm(&vocab);
    for (int b = 0; b < 256; b++) vocab.type[3 + b] = SL_TOKEN_NORMAL; // they only look like byte tokens
    vocab.source.add_space_prefix = 0;
    sl_tokenizer *tokenizer = create();
    check_ids(tokenizer, "axyzbx", false, false, TINY_A, 0, TINY_B, 0, -1);
    sl_tokenizer_destroy(tokenizer);
    vocab.source.unk = -1;
    tokenizer = create();
    check_ids(tokenizer, "axyzbx", false, false, TINY_A, TINY_B, -1);
    sl_tokenizer_destroy(tokenizer);
}

TEST(spm_round_trips_random_bytes) {
    tiny_spm(&vocab);
    vocab.source.add_space_prefix = 0;
    sl_tokenizer *tokenizer = create();
    for (int round = 0; round < 300; round++) {
        char text[200];
        size_t n = test_below(200);
        for (size_t i = 0; i < n; i++) text[i] = test_below(3) ? "ab <>br/stun"[test_below(12)] : (char)test_random();
        check_round_trip(tokenizer, sl_span_make(text, n));
    }
    sl_tokenizer_destroy(tokenizer);
}

// ---- parts ---------------------------------------------------------------------------------------------------

typedef struct cover {
    const char *at;
    size_t n_word;
} cover;

static sl_status follow(void *user, sl_span word) {
    cover *c = user;
    CHECK(word.n_bytes > 0);
    CHECK(word.data == c->at);
    c->at = word.data + word.n_bytes;
    c->n_word++;
    return SL_OK;
}

static size_t split(const char *pre, sl_span text) {
    sl_splitter *splitter;
    sl_split_run *run;
    cover c = {text.data, 0};
    REQUIRE_OK(sl_splitter_create(&splitter, sl_pretokenizer_find(sl_span_of(pre))->step), sl_error_text());
    REQUIRE_OK(sl_split_run_create(&run, splitter), sl_error_text());
    REQUIRE_OK(sl_splitter_split(splitter, run, text, follow, &c), sl_error_text());
    CHECK(c.at == text.data + text.n_bytes);
    sl_split_run_destroy(run);
    sl_splitter_destroy(splitter);
    return c.n_word;
}

TEST(every_pattern_covers_the_text) {
    static const char text[] = "It's  \xc3\xa9t\xc3\xa9 1234567\xc2\xbd\r\n\n \t x\xe4\xbb\x8a\xe5\xa4\xa9, "
                               "\xe2\x80\xa6\xf0\x9f\x99\x82\xe2\x80\x8d!! AaAA  <sentinel:1>IMGIMGAZ \x01 ";
    const sl_pretokenizer *pre;
    for (size_t i = 0; (pre = sl_pretokenizer_at(i)) != NULL; i++) {
        CHECK(sl_pretokenizer_find(sl_span_of(pre->name)) == pre); // names are unique
        CHECK(split(pre->name, sl_span_of(text)) > 1);
        CHECK_INT(split(pre->name, sl_span_of("")), 0);
    }
}

TEST(digits_group_from_the_right) {
    CHECK_INT(split("tiny_aya", sl_span_of("1234567")), 3);
    CHECK_INT(split("tiny_aya", sl_span_of("123456")), 2);
    CHECK_INT(split("superbpe", sl_span_of("a1234")), 3);
    CHECK_INT(split("afmoe", sl_span_of("\xd9\xa1\xd9\xa2\xd9\xa3\xd9\xa4")), 2); // Arabic-Indic
    CHECK_INT(split("llama-bpe", sl_span_of("1234567")), 3);
    CHECK_INT(split("qwen2", sl_span_of("1234567")), 7);
    CHECK_INT(split("gpt-2", sl_span_of("1234567 1")), 2);
}

// Equal neighbours merge to the next id: a binary counter, the worst case for a heap.
static uint32_t double_up(const void *ctx, int32_t *merged, const sl_symbol *left, const sl_symbol *right) {
    (void)ctx;
    if (left->id != right->id) return SL_KEY_NONE;
    *merged = left->id + 1;
    return (uint32_t)left->id;
}

TEST(merging_takes_n_log_n_steps) {
    enum { N = 1 << 18 };
    sl_merger merger = {0};
    for (int i = 0; i < N; i++) REQUIRE_OK(sl_merger_push(&merger, 0, (size_t)i, 1), sl_error_text());
    sl_merger_run(&merger, double_up, NULL);
    CHECK_INT(merger.symbol[0].len, N); // all of it became one
    CHECK_INT(merger.symbol[0].id, 18);
    CHECK(merger.n_step < 3ull * N * 18);
    sl_merger_deinit(&merger);
}

TEST(nfc_orders_marks_in_linear_time) {
    char *out;
    size_t n;
    REQUIRE_OK(sl_nfc(&out, &n, sl_span_of("a\xcc\x81\xcc\x96")), sl_error_text()); // above, below
    CHECK(sl_span_is(sl_span_make(out, n), "\xc3\xa1\xcc\x96"));
    sl_free(out);
    REQUIRE_OK(sl_nfc(&out, &n, sl_span_of("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab")), sl_error_text()); // jamo
    CHECK(sl_span_is(sl_span_make(out, n), "\xed\x95\x9c"));
    sl_free(out);
    CHECK(!sl_nfc_may_change(sl_span_of("\xc3\xa9\xcb\xbf")));
    CHECK(sl_nfc_may_change(sl_span_of("\xcc\x80")));
    enum { N = 100000 }; // insertion would take ten thousand million steps
    char *marks = malloc(4 * N + 1);
    marks[0] = 'x';
    for (int i = 0; i < N; i++) memcpy(marks + 1 + 4 * i, "\xcc\x81\xcc\x96", 4);
    REQUIRE_OK(sl_nfc(&out, &n, sl_span_make(marks, 4 * N + 1)), sl_error_text());
    CHECK_INT(n, 4 * N + 1);
    for (int i = 0; i < N; i++) CHECK(memcmp(out + 1 + 2 * i, "\xcc\x96", 2) == 0);
    sl_free(out);
    free(marks);
}

TEST(a_stream_hands_out_whole_characters) {
    static const struct {
        const char *in, *out;
    } cases[] = {{"h\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82!", "h\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82!"},
                 {"a\xff"
                  "b",
                  "a\xef\xbf\xbd"
                  "b"},
                 {"\xe2\x82", "\xef\xbf\xbd"},
                 {"\xe2\x82"
                  "A",
                  "\xef\xbf\xbd"
                  "A"},
                 {"\xf0\x9f\xc3\xa9", "\xef\xbf\xbd\xc3\xa9"},
                 {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                 {"\xf4\x90\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};
    for (size_t i = 0; i < SL_COUNT(cases); i++) {
        size_t n = strlen(cases[i].in);
        for (size_t step = 1; step <= n; step++) {
            sl_utf8_stream stream = {0};
            char out[64];
            size_t n_out = 0;
            for (size_t at = 0; at < n; at += step)
                n_out +=
                    sl_utf8_stream_push(&stream, out + n_out, sl_span_make(cases[i].in + at, SL_MIN(step, n - at)));
            n_out += sl_utf8_stream_finish(&stream, out + n_out);
            CHECK(sl_span_is(sl_span_make(out, n_out), cases[i].out));
            CHECK_INT(stream.n_held, 0);
        }
    }
    sl_utf8_stream stream = {0};
    char out[16];
    CHECK_INT(sl_utf8_stream_push(&stream, out, sl_span_of("\xf0\x9f\x99")), 0); // nothing yet
    CHECK_INT(sl_utf8_stream_push(&stream, out, sl_span_of("\x82")), 4);
}

// ---- size and failure ----------------------------------------------------------------------------------------

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void check_large(const sl_tokenizer *tokenizer, const char *name, const char *unit, size_t n_bytes) {
    size_t n_unit = strlen(unit), n = n_bytes / n_unit * n_unit;
    char *text = malloc(n);
    for (size_t i = 0; i < n; i += n_unit) memcpy(text + i, unit, n_unit);
    double start = now_ms();
    size_t n_ids = encode(tokenizer, NULL, 0, sl_span_make(text, n), false, true);
    printf("    %-12s %02x%02x.. %8zu bytes %8zu ids %6.0f ms\n", name, (uint8_t)unit[0], (uint8_t)unit[1], n, n_ids,
           now_ms() - start);
    CHECK(n_ids > 0);
    check_round_trip(tokenizer, sl_span_make(text, n));
    free(text);
}

TEST(a_megabyte_of_anything) { // times are printed only; the harness's timeout is the alarm for a quadratic case
    static const char *const units[] = {"a",
                                        "A",
                                        "l",
                                        " ",
                                        "\n",
                                        "\r\n",
                                        "7",
                                        " \n\t ",
                                        "'",
                                        "'s",
                                        "<",
                                        "<tool",
                                        "a ",
                                        "!",
                                        "\xe4\xbb\x8a",
                                        "\xf0\x9f\x91\xa9\xe2\x80\x8d",
                                        "\xff",
                                        "\xc3",
                                        "aA",
                                        "\xcc\x81"};
    static const char *const pres[] = {"",         "qwen2",    "llama-bpe", "deepseek-llm", "jais-2",
                                       "tiny_aya", "superbpe", "gpt-4o",    "exaone-moe",   "chameleon"};
    for (size_t p = 0; p < SL_COUNT(pres) + 1; p++) {
        bool spm = p == SL_COUNT(pres);
        if (spm) tiny_spm(&vocab), vocab.source.add_space_prefix = 0;
        else tiny_bpe(&vocab), vocab.source.pre = sl_span_of(pres[p]);
        sl_tokenizer *tokenizer = create();
        for (size_t i = 0; i < SL_COUNT(units); i++)
            check_large(tokenizer, spm ? "spm" : pres[p], units[i], p == 0 || spm ? MEGABYTE : MEGABYTE / 16);
        sl_tokenizer_destroy(tokenizer);
    }
}

TEST(every_failed_allocation_is_reported) {
    for (int kind = 0; kind < 2; kind++) {
        for (uint64_t n = 1;; n++) {
            if (kind == 0) tiny_bpe(&vocab), vocab.source.pre = sl_span_of("qwen2"), vocab.source.ignore_merges = 1;
            else tiny_spm(&vocab);
            sl_tokenizer *tokenizer;
            size_t n_ids;
            sl_alloc_fail_at(n);
            sl_status status = sl_tokenizer_create(&tokenizer, &vocab.source);
            sl_span text =
                sl_span_of("hello e\xcc\x81 <tool> a quite long sentence that makes the merger grow, so it is "
                           "longer_than_the_sixty_four_symbols_that_the_merger_begins_with_in_one_word_yes");
            if (status == SL_OK) status = sl_tokenizer_encode(tokenizer, NULL, 0, &n_ids, text, NULL);
            sl_alloc_fail_at(0);
            if (status != SL_OK) CHECK_INT(status, SL_NO_MEMORY);
            sl_tokenizer_destroy(tokenizer);
            if (status == SL_OK && n > 60) break;
        }
    }
}
