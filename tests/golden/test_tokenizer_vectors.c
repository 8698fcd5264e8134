// SPDX-License-Identifier: MIT
// sl_test: MODULES text model gguf base LIBS jansson
//
// Real vocabularies against the models' own tokenizers:
//   - our strings, recorded in tokenizer/vectors.txt by tools/make_tokenizer_vectors.py, on the real models;
//   - the strings of ../shared/peer/tok-*.json, where that folder is there;
//   - the peer's test suite: its vocabulary files with their .inp and .out (these .out are Hugging Face's ids).
// Files come from the cache of tools/fetch_models.py; a missing one skips its test.
#include "harness.h"

#include <jansson.h>
#include <time.h>

#include "model/vocab.h"
#include "vocab_loader.h"

double vocab_loader_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static char *read_whole(const char *path, size_t *n_bytes) {
    FILE *f = fopen(path, "rb");
    if (!f) test_skip("%s is not there", path);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *data = malloc((size_t)size + 1);
    *n_bytes = fread(data, 1, (size_t)size, f);
    data[*n_bytes] = 0;
    fclose(f);
    return data;
}

static const char *peer_path(const char *name) {
    char file[256];
    snprintf(file, sizeof file, "../peer/models/%s", name);
    return test_model_path(file);
}

static void open_vocab(vocab_file *file, const char *path) {
    REQUIRE_OK(vocab_open(file, path), sl_error_text());
    printf("    %s: created in %.0f ms\n", strrchr(path, '/') + 1, file->create_ms);
}

static size_t encode(const vocab_file *file, int32_t **ids, sl_span text, bool special) {
    sl_encode_options options = {.parse_special = special};
    size_t n, cap = 4 * text.n_bytes + 8; // what tokenizer.h promises to be enough
    *ids = malloc(cap * sizeof **ids);
    REQUIRE_OK(sl_tokenizer_encode(file->tokenizer, *ids, cap, &n, text, &options), sl_error_text());
    REQUIRE(n <= cap);
    return n;
}

static void check_encode(const vocab_file *file, sl_span text, bool special, const int32_t *want, size_t n_want) {
    int32_t *ids;
    size_t n = encode(file, &ids, text, special), i = 0;
    while (i < n && i < n_want && ids[i] == want[i]) i++;
    if (i != n || i != n_want)
        test_failed(__FILE__, __LINE__, "\"%.*s\": id %zu of %zu is %d; wanted are %zu, there %d",
                    (int)SL_MIN(text.n_bytes, 60), text.data, i, n, i < n ? ids[i] : -1, n_want,
                    i < n_want ? want[i] : -1);
    free(ids);
}

// ---- our strings ---------------------------------------------------------------------------------------------

static size_t from_hex(char *out, const char *hex, size_t n) {
    for (size_t i = 0; i + 1 < n; i += 2) {
        unsigned byte;
        REQUIRE(sscanf(hex + i, "%2x", &byte) == 1);
        out[i / 2] = (char)byte;
    }
    return n / 2;
}

static uint64_t hash_ids(const int32_t *ids, size_t n) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        for (int b = 0; b < 4; b++) h = (h ^ ((uint32_t)ids[i] >> 8 * b & 0xff)) * 1099511628211u;
    return h;
}

static void check_long(const vocab_file *file, sl_span unit, size_t count, const char *want) {
    char *text = malloc(unit.n_bytes * count);
    for (size_t i = 0; i < count; i++) memcpy(text + i * unit.n_bytes, unit.data, unit.n_bytes);
    int32_t *ids;
    size_t n = encode(file, &ids, sl_span_make(text, unit.n_bytes * count), false);
    char got[64];
    snprintf(got, sizeof got, "n=%zu fnv=%016llx", n, (unsigned long long)hash_ids(ids, n));
    CHECK_TEXT(got, want);
    free(ids);
    free(text);
}

// A line without its file name: "p 6162 1 2 3" or "p 61*100 n=.. fnv=..".
static void check_line(const vocab_file *file, char *line) {
    static char text[4096];
    static int32_t want[4096];
    bool special = line[0] == 's';
    char *hex = line + 2, *end = hex + strcspn(hex, " ");
    size_t n_hex = strcspn(hex, " *-"), n_want = 0;
    REQUIRE(n_hex / 2 <= sizeof text);
    sl_span span = sl_span_make(text, from_hex(text, hex, n_hex));
    if (hex[n_hex] == '*') {
        check_long(file, span, strtoul(hex + n_hex + 1, NULL, 10), end + 1);
        return;
    }
    for (char *at = end; *at == ' '; n_want++) want[n_want] = (int32_t)strtol(at, &at, 10);
    check_encode(file, span, special, want, n_want);
}

static int check_vectors(const char *model, const char *recorded_as) {
    vocab_file file;
    char name[128];
    size_t n_bytes, n_name = strlen(recorded_as);
    int n_line = 0;
    snprintf(name, sizeof name, "%s.gguf", model);
    open_vocab(&file, test_model_path(name));
    char *lines = read_whole(test_source_path("tests/golden/tokenizer/vectors.txt"), &n_bytes);
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, recorded_as, n_name) != 0 || line[n_name] != ' ') continue;
        check_line(&file, line + n_name + 1);
        n_line++;
    }
    free(lines);
    vocab_close(&file);
    printf("    %d strings\n", n_line);
    return n_line;
}

#define SMOLLM2    "SmolLM2-135M-Instruct.Q4_1"
#define GEMMA3     "gemma-3-270m-q4_k_m"
#define QWEN_SMALL "qwen2.5-coder-0.5b-instruct-q4_k_m"
#define QWEN_LARGE "qwen2.5-coder-1.5b-instruct-q4_k_m"

TEST(our_strings_smollm2) { CHECK(check_vectors(SMOLLM2, SMOLLM2) > 100); }
TEST(our_strings_gemma3) { CHECK(check_vectors(GEMMA3, GEMMA3) > 100); }
TEST(our_strings_qwen_small) { CHECK(check_vectors(QWEN_SMALL, QWEN_SMALL) > 100); }
TEST(our_strings_qwen_large) { CHECK(check_vectors(QWEN_LARGE, QWEN_SMALL) > 100); } // the same vocabulary

// ---- ../shared/peer ------------------------------------------------------------------------------------------

// The ids of string i: Hugging Face's where the two differ.
static const json_t *shared_ids(const json_t *root, const char *kind, size_t i) {
    const char *agrees = json_string_value(json_object_get(json_object_get(root, "hf"), kind));
    char key[32];
    snprintf(key, sizeof key, "%zu", i);
    const json_t *hf = json_object_get(json_object_get(json_object_get(root, "hf_ids"), kind), key);
    if (agrees[i] == '0' && hf) return hf;
    const json_t *ids = json_array_get(json_object_get(root, kind), i);
    return json_is_null(ids) ? json_array_get(json_object_get(root, "plain"), i) : ids;
}

static void check_shared(const char *model) {
    char path[256];
    snprintf(path, sizeof path, "../shared/peer/tok-%s.json", model);
    json_t *root = json_load_file(test_source_path(path), JSON_ALLOW_NUL, NULL);
    if (!root) test_skip("%s is not beside the checkout", path);
    vocab_file file;
    snprintf(path, sizeof path, "%s.gguf", model);
    open_vocab(&file, test_model_path(path));
    json_t *string;
    size_t i;
    json_array_foreach(json_object_get(root, "strings"), i, string) {
        json_t *text = json_object_get(string, "text");
        for (int special = 0; special < 2; special++) {
            const json_t *ids = shared_ids(root, special ? "special" : "plain", i);
            int32_t want[1024];
            size_t n = json_array_size(ids);
            REQUIRE(n <= 1024);
            for (size_t k = 0; k < n; k++) want[k] = (int32_t)json_integer_value(json_array_get(ids, k));
            check_encode(&file, sl_span_make(json_string_value(text), json_string_length(text)), special, want, n);
        }
    }
    CHECK_INT(i, 40);
    vocab_close(&file);
    json_decref(root);
}

TEST(shared_strings_smollm2) { check_shared(SMOLLM2); }
TEST(shared_strings_gemma3) { check_shared(GEMMA3); }
TEST(shared_strings_qwen_small) { check_shared(QWEN_SMALL); }
TEST(shared_strings_qwen_large) { check_shared(QWEN_LARGE); }

// ---- the peer's test suite -----------------------------------------------------------------------------------

// Inputs whose .out is not what the model's own tokenizer gives: qwen35 normalises to NFC first, the .out does not.
// What is right is the ids of the same text in NFC; each of these decomposed letters has a composed one.
static bool compose_by_hand(char *out, size_t *n_out, sl_span text) {
    static const struct {
        const char *apart, *whole;
    } letters[] = {{"e\xcc\x81", "\xc3\xa9"}, {"a\xcc\x80", "\xc3\xa0"}};
    *n_out = 0;
    for (size_t i = 0; i < text.n_bytes;) {
        size_t k = 0;
        while (k < 2 && (text.n_bytes - i < 3 || memcmp(text.data + i, letters[k].apart, 3) != 0)) k++;
        if (k < 2) memcpy(out + *n_out, letters[k].whole, 2), *n_out += 2, i += 3;
        else out[(*n_out)++] = text.data[i++];
    }
    return *n_out != text.n_bytes;
}

static void check_composed(const vocab_file *file, sl_span text, sl_span composed) {
    int32_t *want;
    size_t n = encode(file, &want, composed, false);
    check_encode(file, text, false, want, n);
    free(want);
}

static void check_suite(const char *name) {
    static const char separator[] = "\n__ggml_vocab_test__\n";
    char file_name[128];
    size_t n_in, n_out, n_case = 0, n_composed = 0, n_nfc;
    vocab_file file;
    snprintf(file_name, sizeof file_name, "ggml-vocab-%s.gguf.inp", name);
    char *in = read_whole(peer_path(file_name), &n_in);
    snprintf(file_name, sizeof file_name, "ggml-vocab-%s.gguf.out", name);
    char *out = read_whole(peer_path(file_name), &n_out), *at = out;
    char *nfc = malloc(n_in);
    snprintf(file_name, sizeof file_name, "ggml-vocab-%s.gguf", name);
    open_vocab(&file, peer_path(file_name));
    for (char *text = in, *end; text < in + n_in; text = end + strlen(separator)) {
        end = strstr(text, separator);
        if (!end) end = in + n_in; // gemma-4's file does not end with a separator
        static int32_t want[4096];
        size_t n = 0;
        for (char *line_end = at + strcspn(at, "\n"); at < line_end && *at;) {
            at += strspn(at, " ");
            if (at < line_end) want[n++] = (int32_t)strtol(at, &at, 10);
        }
        at += *at == '\n';
        sl_span span = sl_span_make(text, (size_t)(end - text));
        n_case++;
        if (strcmp(name, "qwen35") == 0 && compose_by_hand(nfc, &n_nfc, span)) {
            n_composed++;
            check_composed(&file, span, sl_span_make(nfc, n_nfc));
        } else check_encode(&file, span, false, want, n);
    }
    printf("    %zu strings, of them %zu by NFC\n", n_case, n_composed);
    CHECK(n_case >= 46);
    CHECK_INT(n_composed, strcmp(name, "qwen35") == 0 ? 3 : 0);
    vocab_close(&file);
    free(in), free(out), free(nfc);
}

TEST(suite_command_r) { check_suite("command-r"); }
TEST(suite_deepseek_coder) { check_suite("deepseek-coder"); }
TEST(suite_deepseek_llm) { check_suite("deepseek-llm"); }
TEST(suite_falcon) { check_suite("falcon"); }
TEST(suite_gemma_4) { check_suite("gemma-4"); }
TEST(suite_gpt_2) { check_suite("gpt-2"); }
TEST(suite_llama_bpe) { check_suite("llama-bpe"); }
TEST(suite_llama_spm) { check_suite("llama-spm"); }
TEST(suite_mpt) { check_suite("mpt"); }
TEST(suite_phi_3) { check_suite("phi-3"); }
TEST(suite_qwen2) { check_suite("qwen2"); }
TEST(suite_qwen35) { check_suite("qwen35"); }
TEST(suite_refact) { check_suite("refact"); }
TEST(suite_starcoder) { check_suite("starcoder"); }

// Vocabularies without vectors: what goes in comes out.
static void check_round_trips(const char *name) {
    char file_name[128];
    size_t n_in, n_text;
    vocab_file file;
    char *in = read_whole(peer_path("ggml-vocab-gpt-2.gguf.inp"), &n_in);
    snprintf(file_name, sizeof file_name, "ggml-vocab-%s.gguf", name);
    open_vocab(&file, peer_path(file_name));
    int32_t *ids;
    size_t n = encode(&file, &ids, sl_span_make(in, n_in), false);
    char *text = malloc(n_in + 1);
    REQUIRE_OK(sl_tokenizer_decode(file.tokenizer, text, n_in, &n_text, ids, n, NULL), sl_error_text());
    CHECK_INT(n_text, n_in);
    CHECK(memcmp(text, in, n_in) == 0);
    vocab_close(&file);
    free(in), free(ids), free(text);
}

TEST(round_trip_aquila) { check_round_trips("aquila"); }
TEST(round_trip_baichuan) { check_round_trips("baichuan"); }
TEST(round_trip_gpt_neox) { check_round_trips("gpt-neox"); }

TEST(other_kinds_are_refused_by_name) {
    static const char *const names[][2] = {{"ggml-vocab-bert-bge.gguf", "bert"},
                                           {"ggml-vocab-nomic-bert-moe.gguf", "t5"}};
    for (int i = 0; i < 2; i++) {
        sl_gguf *gguf;
        sl_vocab vocab;
        sl_arena arena = {0};
        REQUIRE_OK(sl_gguf_open(&gguf, peer_path(names[i][0]), &(sl_gguf_options){.allow_no_data = true}),
                   sl_error_text());
        CHECK_INT(sl_vocab_read(&vocab, gguf, (sl_span){0}, &arena), SL_UNSUPPORTED);
        CHECK(strstr(sl_error_text(), names[i][1]));
        sl_arena_deinit(&arena);
        sl_gguf_close(gguf);
    }
}
