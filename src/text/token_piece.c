// SPDX-License-Identifier: MIT
//
// Tokens -> text. All pieces are made at load, so that a piece is a look-up. A piece is never longer than its token.
#include "base/size.h"
#include "text/space_mark.h"
#include "text/tokenizer_part.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

int sl_byte_token_value(sl_span text) {
    if (text.n_bytes != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') return -1;
    int high = hex_digit(text.data[3]), low = hex_digit(text.data[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static size_t copy(char *out, sl_span text) {
    memcpy(out, text.data, text.n_bytes);
    return text.n_bytes;
}

// Writes what a token prints and returns its length.
static size_t make_piece(const sl_tokenizer *tokenizer, char *out, int32_t id) {
    sl_span text = tokenizer->source.token[id];
    sl_token_type type = sl_token_type_of(tokenizer, id);
    bool marks = tokenizer->source.kind == SL_TOKENIZER_SPM || (tokenizer->flags & SL_PRE_SPACE_MARK);
    if (text.n_bytes == 0) return 0;
    if (type == SL_TOKEN_BYTE) {
        int byte = sl_byte_token_value(text);
        if (byte >= 0) return *out = (char)byte, 1;
    }
    if (type == SL_TOKEN_CONTROL || type == SL_TOKEN_UNKNOWN) return copy(out, text);
    if (marks) return sl_space_mark_unescape(out, text);
    size_t n;
    bool letters = type != SL_TOKEN_USER_DEFINED && !(tokenizer->flags & SL_PRE_CHARS);
    if (letters && sl_byte_alphabet_decode(&tokenizer->alphabet, out, &n, text)) return n;
    return copy(out, text);
}

sl_status sl_pieces_init(sl_tokenizer *tokenizer) {
    int32_t n_vocab = tokenizer->source.n_vocab;
    uint64_t n_bytes = 0;
    for (int32_t id = 0; id < n_vocab; id++) {
        if (!sl_size_add(&n_bytes, n_bytes, tokenizer->source.token[id].n_bytes) || n_bytes > UINT32_MAX)
            return SL_FAIL(SL_UNSUPPORTED, "the token texts are over 4 GiB");
    }
    SL_TRY(sl_alloc(&tokenizer->piece_off, (size_t)n_vocab + 1, sizeof *tokenizer->piece_off, "token pieces"));
    SL_TRY(sl_alloc(&tokenizer->piece_data, n_bytes, 1, "token pieces"));
    size_t at = 0;
    for (int32_t id = 0; id < n_vocab; id++) {
        tokenizer->piece_off[id] = (uint32_t)at;
        at += make_piece(tokenizer, tokenizer->piece_data + at, id);
    }
    tokenizer->piece_off[n_vocab] = (uint32_t)at;
    return SL_OK;
}

sl_span sl_tokenizer_piece(const sl_tokenizer *tokenizer, int32_t id, const sl_decode_options *options) {
    if (id < 0 || id >= tokenizer->source.n_vocab) return (sl_span){0};
    sl_token_type type = sl_token_type_of(tokenizer, id);
    bool hidden = type == SL_TOKEN_CONTROL || type == SL_TOKEN_UNKNOWN || type == SL_TOKEN_UNUSED;
    if (hidden && !(options && options->special)) return (sl_span){0};
    uint32_t off = tokenizer->piece_off[id];
    return sl_span_make(tokenizer->piece_data + off, tokenizer->piece_off[id + 1] - off);
}

sl_status sl_tokenizer_decode(const sl_tokenizer *tokenizer, char *text, size_t cap, size_t *n_out, const int32_t *ids,
                              size_t n_ids, const sl_decode_options *options) {
    bool strip = tokenizer->add_space_prefix; // the space that encoding put in front
    *n_out = 0;
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || ids[i] >= tokenizer->source.n_vocab) {
            *n_out = 0;
            return SL_FAIL(SL_BAD_INPUT, "token %zu is %d; the vocabulary has %d", i, ids[i],
                           tokenizer->source.n_vocab);
        }
        sl_span piece = sl_tokenizer_piece(tokenizer, ids[i], options);
        sl_token_type type = sl_token_type_of(tokenizer, ids[i]);
        if (strip && type != SL_TOKEN_CONTROL && type != SL_TOKEN_UNKNOWN) {
            strip = false;
            if (piece.n_bytes > 0 && piece.data[0] == ' ') piece = sl_span_make(piece.data + 1, piece.n_bytes - 1);
        }
        if (piece.n_bytes > 0 && *n_out < cap) memcpy(text + *n_out, piece.data, SL_MIN(piece.n_bytes, cap - *n_out));
        *n_out += piece.n_bytes;
    }
    return SL_OK;
}
