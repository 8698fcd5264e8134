// SPDX-License-Identifier: MIT
//
// Byte-pair encoding: special tokens out, then normalise, cut into words, and in each word merge the pair of least rank
// until none is left. Words begin as single bytes, or, for the few files of characters (SL_PRE_CHARS), as characters.
// Bytes that are no UTF-8 never meet a pattern: each becomes the token of that byte.
#include "base/size.h"
#include "base/utf8.h"
#include "text/nfc.h"
#include "text/pair_merge.h"
#include "text/space_mark.h"
#include "text/tokenizer_part.h"

// ---- the table of merges -------------------------------------------------------------------------------------

static size_t pair_slot(const sl_tokenizer *tokenizer, int32_t left, int32_t right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    key ^= key >> 29; // so that the high bits of the product depend on both
    return (size_t)(key * 0x9e3779b97f4a7c15u >> tokenizer->pair_shift);
}

static size_t next_slot(const sl_tokenizer *tokenizer, size_t i) {
    return (i + 1) & (((size_t)1 << (64 - tokenizer->pair_shift)) - 1);
}

// Of equal pairs the first counts.
static void add_pair(sl_tokenizer *tokenizer, int32_t left, int32_t right, int32_t merged, int32_t rank) {
    size_t i = pair_slot(tokenizer, left, right);
    for (; tokenizer->pair[i].rank_plus_1 != 0; i = next_slot(tokenizer, i)) {
        if (tokenizer->pair[i].left == left && tokenizer->pair[i].right == right) return;
    }
    tokenizer->pair[i] = (sl_pair_slot){left, right, (uint32_t)rank + 1, merged};
}

static uint32_t pair_key(const void *ctx, int32_t *merged, const sl_symbol *left, const sl_symbol *right) {
    const sl_tokenizer *tokenizer = ctx;
    size_t i = pair_slot(tokenizer, left->id, right->id);
    for (; tokenizer->pair[i].rank_plus_1 != 0; i = next_slot(tokenizer, i)) {
        const sl_pair_slot *slot = &tokenizer->pair[i];
        if (slot->left == left->id && slot->right == right->id) return *merged = slot->merged, slot->rank_plus_1 - 1;
    }
    return SL_KEY_NONE;
}

// A line "left right" whose parts or whole are no tokens can never apply and is left out.
static sl_status load_merges(sl_tokenizer *tokenizer) {
    const sl_vocab_source *source = &tokenizer->source;
    unsigned bits = 4;
    while (((uint64_t)1 << bits) * 2 < (uint64_t)source->n_merge * 3) bits++;
    tokenizer->pair_shift = 64 - bits;
    SL_TRY(sl_alloc(&tokenizer->pair, (size_t)1 << bits, sizeof *tokenizer->pair, "the merge table"));
    for (int32_t rank = 0; rank < source->n_merge; rank++) {
        sl_span line = source->merge[rank];
        const char *space = line.n_bytes > 1 ? memchr(line.data + 1, ' ', line.n_bytes - 1) : NULL;
        if (!space) continue;
        sl_span head = sl_span_make(line.data, (size_t)(space - line.data));
        sl_span tail = sl_span_make(space + 1, line.n_bytes - head.n_bytes - 1);
        int32_t left = sl_token_map_find(&tokenizer->map, head), right = sl_token_map_find(&tokenizer->map, tail);
        int32_t merged = left < 0 || right < 0 ? -1 : sl_token_map_find_joined(&tokenizer->map, head, tail);
        if (merged >= 0) add_pair(tokenizer, left, right, merged, rank);
    }
    return SL_OK;
}

static void find_bytes(sl_tokenizer *tokenizer) {
    for (int b = 0; b < 256; b++) {
        char letter[4];
        size_t n = sl_utf8_encode(letter, tokenizer->alphabet.letter[b]);
        if (tokenizer->flags & SL_PRE_CHARS) continue; // byte_id is of the tokens of type BYTE
        tokenizer->byte_id[b] = sl_token_map_find(&tokenizer->map, sl_span_make(letter, n));
    }
}

sl_status sl_bpe_init(sl_tokenizer *tokenizer, const sl_pretokenizer *pre) {
    find_bytes(tokenizer);
    SL_TRY(load_merges(tokenizer));
    return sl_splitter_create(&tokenizer->splitter, pre->step);
}

// ---- encoding ------------------------------------------------------------------------------------------------

typedef struct bpe_run {
    const sl_tokenizer *tokenizer;
    sl_id_sink *sink;
    sl_split_run *split; // owned
    sl_merger merger;    // owned
    char *letters;       // owned; a word in the byte alphabet, for ignore_merges
} bpe_run;

// A byte that the vocabulary lacks vanishes, as in the models' own tokenizers, unless there is a token for the unknown.
static void put_byte(bpe_run *run, uint8_t byte) {
    const sl_tokenizer *tokenizer = run->tokenizer;
    int32_t id = tokenizer->byte_id[byte];
    if (id < 0 && (tokenizer->flags & SL_PRE_CHARS)) id = tokenizer->source.unk;
    if (id >= 0) sl_id_sink_put(run->sink, id);
}

static int32_t find_word(bpe_run *run, sl_span word) {
    const sl_tokenizer *tokenizer = run->tokenizer;
    if (word.n_bytes > tokenizer->map.longest_bytes) return -1;
    if (!(tokenizer->flags & SL_PRE_CHARS))
        word = sl_span_make(run->letters, sl_byte_alphabet_encode(&tokenizer->alphabet, run->letters, word));
    int32_t id = sl_token_map_find(&tokenizer->map, word);
    return id >= 0 && sl_token_type_of(tokenizer, id) == SL_TOKEN_NORMAL ? id : -1;
}

static sl_status push_bytes(bpe_run *run, sl_span word) {
    for (size_t i = 0; i < word.n_bytes; i++) {
        int32_t id = run->tokenizer->byte_id[(uint8_t)word.data[i]];
        SL_TRY(sl_merger_push(&run->merger, id, i, 1));
    }
    return SL_OK;
}

// Characters that are no tokens stay apart as bytes.
static sl_status push_characters(bpe_run *run, sl_span word) {
    for (size_t i = 0, n; i < word.n_bytes; i += n) {
        uint32_t cp;
        n = sl_utf8_decode(&cp, word.data + i, word.n_bytes - i);
        int32_t id = sl_token_map_find(&run->tokenizer->map, sl_span_make(word.data + i, n));
        if (id >= 0) SL_TRY(sl_merger_push(&run->merger, id, i, n));
        for (size_t b = i; id < 0 && b < i + n; b++) SL_TRY(sl_merger_push(&run->merger, -1, b, 1));
    }
    return SL_OK;
}

static sl_status encode_word(void *user, sl_span word) {
    bpe_run *run = user;
    const sl_tokenizer *tokenizer = run->tokenizer;
    if (tokenizer->ignore_merges) {
        int32_t id = find_word(run, word);
        if (id >= 0) return sl_id_sink_put(run->sink, id), SL_OK;
    }
    run->merger.n = 0;
    SL_TRY(tokenizer->flags & SL_PRE_CHARS ? push_characters(run, word) : push_bytes(run, word));
    sl_merger_run(&run->merger, pair_key, tokenizer);
    for (int32_t i = 0; i >= 0; i = run->merger.symbol[i].next) {
        const sl_symbol *symbol = &run->merger.symbol[i];
        if (symbol->id >= 0) sl_id_sink_put(run->sink, symbol->id);
        else put_byte(run, (uint8_t)word.data[symbol->off]);
    }
    return SL_OK;
}

static sl_status encode_valid(bpe_run *run, sl_span text) {
    const sl_tokenizer *tokenizer = run->tokenizer;
    char *normal = NULL, *marked = NULL;
    sl_status status;
    if ((tokenizer->flags & SL_PRE_NFC) && sl_nfc_may_change(text)) {
        size_t n;
        SL_TRY_OUT(sl_nfc(&normal, &n, text));
        text = sl_span_make(normal, n);
    }
    if (tokenizer->flags & SL_PRE_SPACE_MARK) {
        SL_TRY_OUT(sl_alloc(&marked, text.n_bytes, SL_SPACE_MARK_BYTES, "text with marked spaces"));
        text = sl_span_make(marked, sl_space_mark_escape(marked, text));
    }
    status = sl_splitter_split(tokenizer->splitter, run->split, text, encode_word, run);
out:
    sl_free(normal);
    sl_free(marked);
    return status;
}

static sl_status encode_fragment(bpe_run *run, sl_span text) {
    while (text.n_bytes > 0) {
        size_t n = sl_text_valid_bytes(text);
        if (n > 0) SL_TRY(encode_valid(run, sl_span_make(text.data, n)));
        else put_byte(run, (uint8_t)text.data[n++]);
        text = sl_span_make(text.data + n, text.n_bytes - n);
    }
    return SL_OK;
}

sl_status sl_bpe_encode(const sl_tokenizer *tokenizer, sl_id_sink *sink, sl_span text, bool parse_special) {
    bpe_run run = {.tokenizer = tokenizer, .sink = sink};
    sl_status status;
    SL_TRY_OUT(sl_split_run_create(&run.split, tokenizer->splitter));
    if (tokenizer->ignore_merges)
        SL_TRY_OUT(sl_alloc(&run.letters, tokenizer->map.longest_bytes, 2, "a word in the byte alphabet"));
    for (size_t at = 0; at < text.n_bytes;) {
        sl_special_match match = sl_special_tokens_next(&tokenizer->special, text, at, parse_special);
        SL_TRY_OUT(encode_fragment(&run, sl_span_make(text.data + at, match.off - at)));
        if (match.id >= 0) sl_id_sink_put(sink, match.id);
        at = match.off + match.len;
    }
out:
    sl_split_run_destroy(run.split);
    sl_merger_deinit(&run.merger);
    sl_free(run.letters);
    return status;
}
