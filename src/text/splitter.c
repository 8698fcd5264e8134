// SPDX-License-Identifier: MIT
//
// The steps run depth first, so nothing is stored between them. PCRE2 is told not to check UTF-8 again: it would read
// the rest of the text at every match.
#include "text/splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/alloc.h"

struct sl_splitter {
    int n_step;
    sl_split_kind kind[SL_SPLIT_MAX_STEPS];
    pcre2_code *code[SL_SPLIT_MAX_STEPS]; // owned
    pcre2_general_context *general;       // owned
    pcre2_match_context *limits;          // owned
};

struct sl_split_run {
    pcre2_match_data *match; // owned
};

static void *allocate(PCRE2_SIZE n_bytes, void *user) {
    (void)user;
    void *memory;
    return sl_alloc(&memory, n_bytes, 1, "a pattern") == SL_OK ? memory : NULL;
}

static void release(void *memory, void *user) {
    (void)user;
    sl_free(memory);
}

static sl_status compile(sl_splitter *splitter, const sl_split_step *step) {
    int error;
    PCRE2_SIZE at;
    pcre2_compile_context *context = pcre2_compile_context_create(splitter->general);
    if (!context) return SL_FAIL(SL_NO_MEMORY, "no memory for a pre-tokenizer pattern");
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)step->pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &at, context);
    pcre2_compile_context_free(context);
    if (!code) {
        PCRE2_UCHAR text[128] = "";
        pcre2_get_error_message(error, text, sizeof text);
        return SL_FAIL(error == PCRE2_ERROR_HEAP_FAILED ? SL_NO_MEMORY : SL_INTERNAL,
                       "cannot compile a pre-tokenizer pattern: %s at %zu", (char *)text, (size_t)at);
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); // where no code may be generated, PCRE2 interprets
    splitter->kind[splitter->n_step] = step->kind;
    splitter->code[splitter->n_step++] = code;
    return SL_OK;
}

sl_status sl_splitter_create(sl_splitter **out, const sl_split_step *step) {
    sl_splitter *splitter;
    sl_status status = SL_OK;
    *out = NULL;
    SL_TRY(sl_alloc(&splitter, 1, sizeof *splitter, "a pre-tokenizer"));
    splitter->general = pcre2_general_context_create(allocate, release, NULL);
    splitter->limits = splitter->general ? pcre2_match_context_create(splitter->general) : NULL;
    if (!splitter->limits) SL_TRY_OUT(SL_FAIL(SL_NO_MEMORY, "no memory for a pre-tokenizer"));
    pcre2_set_match_limit(splitter->limits, UINT32_MAX); // the patterns are ours, and linear
    for (int i = 0; i < SL_SPLIT_MAX_STEPS && step[i].kind != SL_SPLIT_END; i++)
        SL_TRY_OUT(compile(splitter, &step[i]));
    *out = splitter;
out:
    if (status != SL_OK) sl_splitter_destroy(splitter);
    return status;
}

void sl_splitter_destroy(sl_splitter *splitter) {
    if (!splitter) return;
    for (int i = 0; i < splitter->n_step; i++) pcre2_code_free(splitter->code[i]);
    pcre2_match_context_free(splitter->limits);
    pcre2_general_context_free(splitter->general);
    sl_free(splitter);
}

sl_status sl_split_run_create(sl_split_run **out, const sl_splitter *splitter) {
    *out = NULL;
    sl_split_run *run;
    SL_TRY(sl_alloc(&run, 1, sizeof *run, "a pre-tokenizer"));
    run->match = pcre2_match_data_create(1, splitter->general);
    if (!run->match) return sl_free(run), SL_FAIL(SL_NO_MEMORY, "no memory for a pre-tokenizer");
    *out = run;
    return SL_OK;
}

void sl_split_run_destroy(sl_split_run *run) {
    if (!run) return;
    pcre2_match_data_free(run->match);
    sl_free(run);
}

typedef struct run_context {
    const sl_splitter *splitter;
    pcre2_match_data *match;
    sl_split_emit *emit;
    void *user;
} run_context;

// The next match of a step at or after `from`: [*start, *end), empty if there is none.
static sl_status find(const run_context *run, int step, sl_span text, size_t from, size_t *start, size_t *end) {
    const sl_splitter *splitter = run->splitter;
    int n = pcre2_match(splitter->code[step], (PCRE2_SPTR)text.data, text.n_bytes, from, PCRE2_NO_UTF_CHECK, run->match,
                        splitter->limits);
    *start = *end = text.n_bytes;
    if (n == PCRE2_ERROR_NOMATCH) return SL_OK;
    if (n == PCRE2_ERROR_NOMEMORY || n == PCRE2_ERROR_HEAPLIMIT)
        return SL_FAIL(SL_NO_MEMORY, "no memory to cut a text of %zu bytes into words", text.n_bytes);
    if (n < 0) return SL_FAIL(SL_INTERNAL, "pre-tokenizer step %d failed with PCRE2 error %d", step, n);
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(run->match);
    *start = bounds[0], *end = bounds[1];
    return SL_OK;
}

static size_t count_characters(sl_span text) {
    size_t n = 0;
    for (size_t i = 0; i < text.n_bytes; i++) n += ((uint8_t)text.data[i] & 0xc0) != 0x80;
    return n;
}

static size_t characters_bytes(sl_span text, size_t n_char) {
    size_t i = 0;
    for (; i < text.n_bytes; i++) {
        if (((uint8_t)text.data[i] & 0xc0) != 0x80 && n_char-- == 0) break;
    }
    return i;
}

static sl_status split(const run_context *run, int step, sl_span text);

// Pieces of three characters; the first one is shorter if they don't come out even.
static sl_status split_threes(const run_context *run, int step, sl_span match) {
    size_t n_char = count_characters(match) % 3;
    for (; match.n_bytes > 0; n_char = 0) {
        size_t n = characters_bytes(match, n_char ? n_char : 3);
        SL_TRY(split(run, step + 1, sl_span_make(match.data, n)));
        match = sl_span_make(match.data + n, match.n_bytes - n);
    }
    return SL_OK;
}

static sl_status split(const run_context *run, int step, sl_span text) {
    if (text.n_bytes == 0) return SL_OK;
    if (step == run->splitter->n_step) return run->emit(run->user, text);
    size_t done = 0, start, end;
    for (;; done = end) {
        SL_TRY(find(run, step, text, done, &start, &end));
        SL_TRY(split(run, step + 1, sl_span_make(text.data + done, start - done)));
        if (start == end) return SL_OK;
        sl_span match = sl_span_make(text.data + start, end - start);
        if (run->splitter->kind[step] == SL_SPLIT_THREES) SL_TRY(split_threes(run, step, match));
        else SL_TRY(split(run, step + 1, match));
    }
}

sl_status sl_splitter_split(const sl_splitter *splitter, sl_split_run *run, sl_span text, sl_split_emit *emit,
                            void *user) {
    run_context context = {splitter, run->match, emit, user};
    return split(&context, 0, text);
}
