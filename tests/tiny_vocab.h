// SPDX-License-Identifier: MIT
//
// Two vocabularies made by hand: one of each kind, small enough to work out results on paper. Tests add tokens and
// merges.
#ifndef SL_TESTS_TINY_VOCAB_H
#define SL_TESTS_TINY_VOCAB_H

#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer.h"

enum { TINY_MAX = 512 };

typedef struct tiny_vocab {
    sl_vocab_source source;
    sl_span token[TINY_MAX], merge[TINY_MAX];
    uint8_t type[TINY_MAX];
    float score[TINY_MAX];
    char byte_text[256][8];
} tiny_vocab;

static inline int32_t tiny_add(tiny_vocab *vocab, const char *text, sl_token_type type, float score) {
    int32_t id = vocab->source.n_vocab++;
    vocab->token[id] = sl_span_of(text);
    vocab->type[id] = (uint8_t)type;
    vocab->score[id] = score;
    return id;
}

// "left right": the token that it makes must be there already.
static inline void tiny_merge(tiny_vocab *vocab, const char *line) {
    vocab->merge[vocab->source.n_merge++] = sl_span_of(line);
}

static inline void tiny_init(tiny_vocab *vocab, sl_tokenizer_kind kind) {
    memset(vocab, 0, sizeof *vocab);
    vocab->source = (sl_vocab_source){.kind = kind,
                                      .token = vocab->token,
                                      .score = vocab->score,
                                      .type = vocab->type,
                                      .merge = vocab->merge,
                                      .bos = -1,
                                      .eos = -1,
                                      .unk = -1,
                                      .add_bos = -1,
                                      .add_eos = -1,
                                      .add_space_prefix = -1,
                                      .ignore_merges = -1};
}

// Ids: 0..255 are the bytes, then TINY_HE...
enum {
    TINY_HE = 256,
    TINY_LL,
    TINY_LLO,
    TINY_HELLO,
    TINY_W,
    TINY_WO,
    TINY_ELL,
    TINY_END,
    TINY_TOOL,
    TINY_TOOLS,
    TINY_UNK
};

static inline void tiny_bpe(tiny_vocab *vocab) {
    tiny_init(vocab, SL_TOKENIZER_BPE);
    sl_byte_alphabet alphabet;
    sl_byte_alphabet_init(&alphabet);
    for (int b = 0; b < 256; b++) {
        vocab->byte_text[b][sl_utf8_encode(vocab->byte_text[b], alphabet.letter[b])] = 0;
        tiny_add(vocab, vocab->byte_text[b], SL_TOKEN_NORMAL, 0);
    }
    static const char *const words[] = {"he", "ll", "llo", "hello", "\xc4\xa0w", "\xc4\xa0wo", "ell"};
    for (int i = 0; i < 7; i++) tiny_add(vocab, words[i], SL_TOKEN_NORMAL, 0);
    tiny_add(vocab, "<|end|>", SL_TOKEN_CONTROL, 0);
    tiny_add(vocab, "<tool>", SL_TOKEN_USER_DEFINED, 0);
    tiny_add(vocab, "<tool>s", SL_TOKEN_USER_DEFINED, 0);
    tiny_add(vocab, "<unk>", SL_TOKEN_UNKNOWN, 0);
    static const char *const merges[] = {"l l", "h e", "ll o", "he llo", "\xc4\xa0 w", "\xc4\xa0w o", "e ll"};
    for (int i = 0; i < 7; i++) tiny_merge(vocab, merges[i]);
}

// Ids: 0 <unk>, 1 <s>, 2 </s>, 3..258 the bytes, then TINY_SPACE...
enum { TINY_SPACE = 259, TINY_A, TINY_B, TINY_AB, TINY_BA, TINY_SPACE_A, TINY_SPACES, TINY_TURN, TINY_BR };

static inline void tiny_spm(tiny_vocab *vocab) {
    tiny_init(vocab, SL_TOKENIZER_SPM);
    vocab->source.unk = tiny_add(vocab, "<unk>", SL_TOKEN_UNKNOWN, 0);
    vocab->source.bos = tiny_add(vocab, "<s>", SL_TOKEN_CONTROL, 0);
    vocab->source.eos = tiny_add(vocab, "</s>", SL_TOKEN_CONTROL, 0);
    for (int b = 0; b < 256; b++) {
        snprintf(vocab->byte_text[b], sizeof vocab->byte_text[b], "<0x%02X>", (unsigned)b);
        tiny_add(vocab, vocab->byte_text[b], SL_TOKEN_BYTE, 0);
    }
    tiny_add(vocab, "\xe2\x96\x81", SL_TOKEN_NORMAL, -9);
    tiny_add(vocab, "a", SL_TOKEN_NORMAL, -10);
    tiny_add(vocab, "b", SL_TOKEN_NORMAL, -11);
    tiny_add(vocab, "ab", SL_TOKEN_NORMAL, -2);
    tiny_add(vocab, "ba", SL_TOKEN_NORMAL, -1);
    tiny_add(vocab,
             "\xe2\x96\x81"
             "a",
             SL_TOKEN_NORMAL, -3);
    tiny_add(vocab, "   ", SL_TOKEN_USER_DEFINED, 0);
    tiny_add(vocab, "<turn>", SL_TOKEN_CONTROL, 0);
    tiny_add(vocab, "<br>", SL_TOKEN_USER_DEFINED, 0);
}

#endif
