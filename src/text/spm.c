// SPDX-License-Identifier: MIT
//
// SentencePiece's BPE: spaces become U+2581, special tokens are cut out, and of all neighbours whose joined text is a
// token the one with the best score merges first, the leftmost of equals. What no token covers becomes bytes.
// Control, unknown, byte and unused tokens never come out of a merge.
#include "base/half.h"
#include "base/size.h"
#include "base/utf8.h"
#include "text/pair_merge.h"
#include "text/space_mark.h"
#include "text/tokenizer_part.h"

// No merge crosses the place before a mark if no token has the byte in front of it there. This cuts text into words,
// which keeps the heap small.
static void find_glue(sl_tokenizer *tokenizer, sl_span token) {
    for (size_t i = 1; i + SL_SPACE_MARK_BYTES <= token.n_bytes; i++) {
        const char *lead = memchr(token.data + i, SL_SPACE_MARK[0], token.n_bytes - i - SL_SPACE_MARK_BYTES + 1);
        if (!lead) return;
        i = (size_t)(lead - token.data);
        if (memcmp(lead, SL_SPACE_MARK, SL_SPACE_MARK_BYTES) == 0) tokenizer->glued[(uint8_t)lead[-1]] = true;
    }
}

void sl_spm_init(sl_tokenizer *tokenizer) {
    for (int32_t id = 0; id < tokenizer->source.n_vocab; id++) find_glue(tokenizer, tokenizer->source.token[id]);
}

typedef struct spm_run {
    const sl_tokenizer *tokenizer;
    sl_id_sink *sink;
    const char *text; // of the word that is being merged
    sl_merger merger; // owned
    bool after_unknown;
} spm_run;

static int32_t find_token(const spm_run *run, size_t off, size_t len) {
    int32_t id = sl_token_map_find(&run->tokenizer->map, sl_span_make(run->text + off, len));
    if (id < 0) return -1;
    sl_token_type type = sl_token_type_of(run->tokenizer, id);
    return type == SL_TOKEN_NORMAL || type == SL_TOKEN_USER_DEFINED ? id : -1;
}

// Maps floats to integers so that the best score has the least key; NaN comes last.
static uint32_t score_key(float score) {
    uint32_t bits = sl_f32_bits(score);
    if (score != score) return SL_KEY_NONE - 1;
    if (bits == 0x80000000u) bits = 0; // -0
    return bits & 0x80000000u ? SL_MIN(bits, SL_KEY_NONE - 1) : 0x7fffffffu - bits;
}

static uint32_t pair_key(const void *ctx, int32_t *merged, const sl_symbol *left, const sl_symbol *right) {
    const spm_run *run = ctx;
    int32_t id = find_token(run, left->off, (size_t)left->len + right->len);
    if (id < 0) return SL_KEY_NONE;
    *merged = id;
    return run->tokenizer->source.score ? score_key(run->tokenizer->source.score[id]) : 0;
}

// Bytes that no token covers: byte tokens if the file has them, else one unknown token for the whole run.
static void put_bytes(spm_run *run, sl_span bytes) {
    for (size_t i = 0; i < bytes.n_bytes; i++) {
        int32_t id = run->tokenizer->byte_id[(uint8_t)bytes.data[i]], unk = run->tokenizer->source.unk;
        if (id >= 0) sl_id_sink_put(run->sink, id);
        else if (unk >= 0 && !run->after_unknown) sl_id_sink_put(run->sink, unk);
        run->after_unknown = id < 0;
    }
}

static sl_status encode_word(spm_run *run, sl_span word) {
    run->merger.n = 0;
    run->text = word.data;
    for (size_t i = 0, n; i < word.n_bytes; i += n) {
        uint32_t cp;
        n = sl_utf8_decode(&cp, word.data + i, word.n_bytes - i);
        n = SL_MAX(n, (size_t)1); // bytes that are no UTF-8 stand alone
        SL_TRY(sl_merger_push(&run->merger, -1, i, n));
    }
    sl_merger_run(&run->merger, pair_key, run);
    for (int32_t i = 0; i >= 0; i = run->merger.symbol[i].next) {
        const sl_symbol *symbol = &run->merger.symbol[i];
        int32_t id = symbol->id >= 0 ? symbol->id : find_token(run, symbol->off, symbol->len);
        if (id < 0) {
            put_bytes(run, sl_span_make(word.data + symbol->off, symbol->len));
            continue;
        }
        sl_id_sink_put(run->sink, id);
        run->after_unknown = false;
    }
    return SL_OK;
}

// The end of the word that begins at `from`.
static size_t word_end(const sl_tokenizer *tokenizer, sl_span text, size_t from) {
    for (size_t i = from + 1; i + SL_SPACE_MARK_BYTES <= text.n_bytes; i++) {
        if (text.data[i] != SL_SPACE_MARK[0] || memcmp(text.data + i, SL_SPACE_MARK, SL_SPACE_MARK_BYTES) != 0)
            continue;
        if (!tokenizer->glued[(uint8_t)text.data[i - 1]]) return i;
    }
    return text.n_bytes;
}

static sl_status encode_fragment(spm_run *run, sl_span text) {
    for (size_t i = 0, end; i < text.n_bytes; i = end) {
        end = word_end(run->tokenizer, text, i);
        SL_TRY(encode_word(run, sl_span_make(text.data + i, end - i)));
    }
    return SL_OK;
}

static sl_status encode_marked(spm_run *run, sl_span text, bool parse_special, char *prefixed) {
    const sl_tokenizer *tokenizer = run->tokenizer;
    for (size_t at = 0; at < text.n_bytes;) {
        sl_special_match match = sl_special_tokens_next(&tokenizer->special, text, at, parse_special);
        sl_span fragment = sl_span_make(text.data + at, match.off - at);
        if (fragment.n_bytes > 0 && prefixed) { // the fragment is the first one or follows a special token
            memcpy(prefixed, SL_SPACE_MARK, SL_SPACE_MARK_BYTES);
            memcpy(prefixed + SL_SPACE_MARK_BYTES, fragment.data, fragment.n_bytes);
            fragment = sl_span_make(prefixed, fragment.n_bytes + SL_SPACE_MARK_BYTES);
        }
        SL_TRY(encode_fragment(run, fragment));
        if (match.id >= 0) sl_id_sink_put(run->sink, match.id), run->after_unknown = false;
        at = match.off + match.len;
    }
    return SL_OK;
}

sl_status sl_spm_encode(const sl_tokenizer *tokenizer, sl_id_sink *sink, sl_span text, bool parse_special) {
    spm_run run = {.tokenizer = tokenizer, .sink = sink};
    char *marked = NULL, *prefixed = NULL;
    sl_status status;
    SL_TRY_OUT(sl_alloc(&marked, text.n_bytes, SL_SPACE_MARK_BYTES, "text with marked spaces"));
    sl_span escaped = sl_span_make(marked, sl_space_mark_escape(marked, text));
    if (tokenizer->add_space_prefix)
        SL_TRY_OUT(sl_alloc(&prefixed, escaped.n_bytes + SL_SPACE_MARK_BYTES, 1, "text with a space in front"));
    status = encode_marked(&run, escaped, parse_special, prefixed);
out:
    sl_free(marked);
    sl_free(prefixed);
    sl_merger_deinit(&run.merger);
    return status;
}
