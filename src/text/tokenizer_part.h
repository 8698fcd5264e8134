// SPDX-License-Identifier: MIT
//
// The inside of a tokenizer, shared by tokenizer.c, token_piece.c, bpe.c and spm.c and by nobody else.
#ifndef SL_TEXT_TOKENIZER_PART_H
#define SL_TEXT_TOKENIZER_PART_H

#include "text/byte_alphabet.h"
#include "text/pretokenizer.h"
#include "text/special_tokens.h"
#include "text/token_map.h"
#include "text/tokenizer.h"

// BPE: (left, right) -> what they merge to.
typedef struct sl_pair_slot {
    int32_t left, right;
    uint32_t rank_plus_1; // 0: free
    int32_t merged;
} sl_pair_slot;

struct sl_tokenizer {
    sl_vocab_source source; // its spans are borrowed
    unsigned flags;         // SL_PRE_*
    bool add_bos, add_eos, add_space_prefix, ignore_merges;
    sl_token_map map;
    sl_special_tokens special;
    int32_t byte_id[256]; // the token that stands for a byte that nothing else covers, or -1
    // what each token prints: piece_data[piece_off[id] .. piece_off[id + 1])
    uint32_t *piece_off; // owned, (n_vocab + 1)
    char *piece_data;    // owned
    // BPE
    sl_byte_alphabet alphabet;
    sl_splitter *splitter; // owned
    sl_pair_slot *pair;    // owned
    unsigned pair_shift;   // 64 - log2 of the slots
    // SPM: some token has this byte right before a U+2581; before any other byte text can be cut there
    bool glued[256];
};

static inline sl_token_type sl_token_type_of(const sl_tokenizer *tokenizer, int32_t id) {
    return tokenizer->source.type ? (sl_token_type)tokenizer->source.type[id] : SL_TOKEN_NORMAL;
}

// Where ids go: the first `cap` are kept, all are counted.
typedef struct sl_id_sink {
    int32_t *ids; // borrowed
    size_t cap;
    size_t n;
} sl_id_sink;

static inline void sl_id_sink_put(sl_id_sink *sink, int32_t id) {
    if (sink->n < sink->cap) sink->ids[sink->n] = id;
    sink->n++;
}

// The length of the valid UTF-8 at the start of `text`.
size_t sl_text_valid_bytes(sl_span text);
// The byte of a token "<0xXX>", or -1.
int sl_byte_token_value(sl_span text);

sl_status sl_pieces_init(sl_tokenizer *tokenizer);

sl_status sl_bpe_init(sl_tokenizer *tokenizer, const sl_pretokenizer *pre);
sl_status sl_bpe_encode(const sl_tokenizer *tokenizer, sl_id_sink *sink, sl_span text, bool parse_special);

void sl_spm_init(sl_tokenizer *tokenizer);
sl_status sl_spm_encode(const sl_tokenizer *tokenizer, sl_id_sink *sink, sl_span text, bool parse_special);

#endif
