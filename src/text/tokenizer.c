// SPDX-License-Identifier: MIT
//
// A tokenizer as a whole: what both kinds share, and the small questions about a vocabulary.
#include "text/tokenizer.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/tokenizer_part.h"

// Far above any context, and small enough for 32-bit offsets after marking every space.
enum { MAX_TEXT_BYTES = 1 << 29 };

size_t sl_text_valid_bytes(sl_span text) {
    size_t i = 0;
    for (size_t n = 1; i < text.n_bytes && n > 0; i += n) {
        uint32_t cp;
        n = sl_utf8_decode(&cp, text.data + i, text.n_bytes - i);
    }
    return i;
}

static bool or_default(int8_t in_file, bool otherwise) { return in_file < 0 ? otherwise : in_file != 0; }

static void set_flags(sl_tokenizer *tokenizer, const sl_pretokenizer *pre) {
    const sl_vocab_source *source = &tokenizer->source;
    bool spm = source->kind == SL_TOKENIZER_SPM;
    tokenizer->flags = spm ? 0 : pre->flags;
    tokenizer->add_bos =
        or_default(source->add_bos, spm || (tokenizer->flags & SL_PRE_BOS)) || (tokenizer->flags & SL_PRE_FORCE_BOS);
    tokenizer->add_bos = tokenizer->add_bos && source->bos >= 0;
    tokenizer->add_eos = or_default(source->add_eos, false) && source->eos >= 0;
    tokenizer->add_space_prefix = spm && or_default(source->add_space_prefix, true);
    tokenizer->ignore_merges = or_default(source->ignore_merges, tokenizer->flags & SL_PRE_IGNORE_MERGES);
}

static void find_byte_tokens(sl_tokenizer *tokenizer) {
    for (int b = 0; b < 256; b++) tokenizer->byte_id[b] = -1;
    for (int32_t id = 0; id < tokenizer->source.n_vocab; id++) {
        if (sl_token_type_of(tokenizer, id) != SL_TOKEN_BYTE) continue;
        int byte = sl_byte_token_value(tokenizer->source.token[id]);
        if (byte >= 0) tokenizer->byte_id[byte] = id;
    }
}

static sl_status build(sl_tokenizer *tokenizer, const sl_pretokenizer *pre) {
    const sl_vocab_source *source = &tokenizer->source;
    bool marks = source->kind == SL_TOKENIZER_SPM;
    sl_byte_alphabet_init(&tokenizer->alphabet);
    find_byte_tokens(tokenizer);
    SL_TRY(sl_token_map_init(&tokenizer->map, source->token, source->n_vocab));
    SL_TRY(sl_special_tokens_init(&tokenizer->special, source, marks));
    SL_TRY(sl_pieces_init(tokenizer));
    if (source->kind == SL_TOKENIZER_BPE) return sl_bpe_init(tokenizer, pre);
    return sl_spm_init(tokenizer), SL_OK;
}

sl_status sl_tokenizer_create(sl_tokenizer **out, const sl_vocab_source *source) {
    *out = NULL;
    if (source->n_vocab <= 0 || source->n_merge < 0) return SL_FAIL(SL_BAD_ARG, "a tokenizer needs a vocabulary");
    const sl_pretokenizer *pre = NULL;
    if (source->kind == SL_TOKENIZER_BPE && !(pre = sl_pretokenizer_find(source->pre)))
        return SL_FAIL(SL_UNSUPPORTED,
                       "pre-tokenizer \"%.*s\" is unknown; if it equals a known one, say so with --pre NAME",
                       (int)SL_MIN(source->pre.n_bytes, (size_t)64), source->pre.data);
    sl_tokenizer *tokenizer;
    SL_TRY(sl_alloc(&tokenizer, 1, sizeof *tokenizer, "a tokenizer"));
    tokenizer->source = *source;
    set_flags(tokenizer, pre);
    sl_status status = build(tokenizer, pre);
    if (status != SL_OK) return sl_tokenizer_destroy(tokenizer), status;
    *out = tokenizer;
    return SL_OK;
}

void sl_tokenizer_destroy(sl_tokenizer *tokenizer) {
    if (!tokenizer) return;
    sl_token_map_deinit(&tokenizer->map);
    sl_special_tokens_deinit(&tokenizer->special);
    sl_splitter_destroy(tokenizer->splitter);
    sl_free(tokenizer->piece_off);
    sl_free(tokenizer->piece_data);
    sl_free(tokenizer->pair);
    sl_free(tokenizer);
}

sl_status sl_tokenizer_encode(const sl_tokenizer *tokenizer, int32_t *ids, size_t cap, size_t *n_out, sl_span text,
                              const sl_encode_options *options) {
    sl_id_sink sink = {ids, cap, 0};
    bool add_bos = options && options->add_bos, parse_special = options && options->parse_special;
    *n_out = 0;
    if (text.n_bytes > MAX_TEXT_BYTES)
        return SL_FAIL(SL_BAD_INPUT, "a text of %zu bytes is too long; at most %d are taken", text.n_bytes,
                       MAX_TEXT_BYTES);
    if (add_bos && tokenizer->add_bos) sl_id_sink_put(&sink, tokenizer->source.bos);
    if (tokenizer->source.kind == SL_TOKENIZER_BPE) SL_TRY(sl_bpe_encode(tokenizer, &sink, text, parse_special));
    else SL_TRY(sl_spm_encode(tokenizer, &sink, text, parse_special));
    if (add_bos && tokenizer->add_eos) sl_id_sink_put(&sink, tokenizer->source.eos);
    *n_out = sink.n;
    return SL_OK;
}

sl_span sl_tokenizer_raw(const sl_tokenizer *tokenizer, int32_t id) {
    if (id < 0 || id >= tokenizer->source.n_vocab) return (sl_span){0};
    return tokenizer->source.token[id];
}

sl_token_type sl_tokenizer_type(const sl_tokenizer *tokenizer, int32_t id) {
    if (id < 0 || id >= tokenizer->source.n_vocab) return SL_TOKEN_UNUSED;
    return sl_token_type_of(tokenizer, id);
}

int32_t sl_tokenizer_find(const sl_tokenizer *tokenizer, sl_span text) {
    return sl_token_map_find(&tokenizer->map, text);
}

bool sl_tokenizer_adds_bos(const sl_tokenizer *tokenizer) { return tokenizer->add_bos; }
