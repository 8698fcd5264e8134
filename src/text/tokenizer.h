// SPDX-License-Identifier: MIT
//
// Text <-> tokens. The vocabulary comes as spans (model/vocab.c fills them from a file), so this module is testable
// without a file and must not know GGUF.
//
// Two algorithms: byte-pair encoding over bytes (model "gpt2", with a pre-tokenizer pattern chosen by name from a
// table) and SentencePiece's score-driven merging (model "llama"). Both run in time linear in the text, up to a
// logarithm: no text, of whatever content, is quadratic. No byte sequence fails: invalid UTF-8 is encoded byte for
// byte.
#ifndef SL_TEXT_TOKENIZER_H
#define SL_TEXT_TOKENIZER_H

#include <stdint.h>

#include "base/span.h"
#include "base/status.h"

// Values of tokenizer.ggml.token_type
typedef enum sl_token_type {
    SL_TOKEN_NORMAL = 1,
    SL_TOKEN_UNKNOWN,
    SL_TOKEN_CONTROL,
    SL_TOKEN_USER_DEFINED,
    SL_TOKEN_UNUSED,
    SL_TOKEN_BYTE
} sl_token_type;

typedef enum sl_tokenizer_kind { SL_TOKENIZER_BPE, SL_TOKENIZER_SPM } sl_tokenizer_kind;

// What a file says of its vocabulary. Spans are borrowed and must outlive the tokenizer.
typedef struct sl_vocab_source {
    sl_tokenizer_kind kind;
    sl_span pre;          // tokenizer.ggml.pre; {NULL, 0} if absent
    const sl_span *token; // (n_vocab)
    const float *score;   // (n_vocab) or NULL
    const uint8_t *type;  // (n_vocab) sl_token_type, or NULL: all normal
    int32_t n_vocab;
    const sl_span *merge; // (n_merge) "left right"
    int32_t n_merge;
    int32_t bos, eos, unk;                                    // -1: none. Already range-checked
    int8_t add_bos, add_eos, add_space_prefix, ignore_merges; // -1: not in the file; the kind's or `pre`'s default
} sl_vocab_source;

typedef struct sl_tokenizer sl_tokenizer; // immutable after create; shareable between threads

// SL_UNSUPPORTED if `pre` is unknown (the message names it and says how to override).
sl_status sl_tokenizer_create(sl_tokenizer **out, const sl_vocab_source *source);
void sl_tokenizer_destroy(sl_tokenizer *tokenizer); // NULL is fine

typedef struct sl_encode_options {
    bool add_bos;       // put BOS (and EOS at the end) where the file wants them
    bool parse_special; // control tokens in the text become their ids; user-defined ones always do
} sl_encode_options;

// Ids of `text`. *n_out gets the number there are; only the first `cap` are written to `ids` (so cap = 0 counts).
// There are hardly ever more ids than bytes, and never more than 4 * n_bytes + 8 (normalising and marking spaces can
// lengthen text that the vocabulary then has only bytes for). A byte without a token vanishes, as in the models' own
// tokenizers. Scratch memory comes from the heap and is freed.
sl_status sl_tokenizer_encode(const sl_tokenizer *tokenizer, int32_t *ids, size_t cap, size_t *n_out, sl_span text,
                              const sl_encode_options *options);

typedef struct sl_decode_options {
    bool special; // control tokens print their text; otherwise nothing
} sl_decode_options;

// The bytes of one token: decoded from the byte alphabet (BPE) or with U+2581 as a space (SPM), exact, borrowed from
// the tokenizer. Concatenation over a sequence is the text, but for the one leading space that an SPM file with
// add_space_prefix puts in front: see sl_tokenizer_decode.
sl_span sl_tokenizer_piece(const sl_tokenizer *tokenizer, int32_t id, const sl_decode_options *options);

// Whole sequence to text; like encode: *n_out is what there is, at most cap bytes are written. An id out of range
// fails.
sl_status sl_tokenizer_decode(const sl_tokenizer *tokenizer, char *text, size_t cap, size_t *n_out, const int32_t *ids,
                              size_t n_ids, const sl_decode_options *options);

// The text a control or any other token has in the file ("<|im_end|>").
sl_span sl_tokenizer_raw(const sl_tokenizer *tokenizer, int32_t id);
sl_token_type sl_tokenizer_type(const sl_tokenizer *tokenizer, int32_t id);
// The id whose text in the file is exactly `text`, or -1.
int32_t sl_tokenizer_find(const sl_tokenizer *tokenizer, sl_span text);
bool sl_tokenizer_adds_bos(const sl_tokenizer *tokenizer);

// ---- streaming ---------------------------------------------------------------------------------------------

// Holds back the bytes of an unfinished UTF-8 character, so that what is handed out is always whole characters; bytes
// that can never become one are replaced by U+FFFD only in the streamed text (never in sl_tokenizer_decode).
typedef struct sl_utf8_stream {
    uint8_t held[4];
    uint8_t n_held;
} sl_utf8_stream; // zero-initialised is empty

// Appends `piece`; writes whole characters to out, which must hold 3 * (piece.n_bytes + 4) bytes. Returns the bytes
// written.
size_t sl_utf8_stream_push(sl_utf8_stream *stream, char *out, sl_span piece);
size_t sl_utf8_stream_finish(sl_utf8_stream *stream, char *out); // what is held, as U+FFFD

#endif
