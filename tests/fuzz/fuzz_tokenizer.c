// SPDX-License-Identifier: MIT
// sl_test: MODULES text base
//
// Any bytes through the tokenizers of tiny_vocab.h. The first byte chooses the pre-tokenizer (or SentencePiece); a BPE
// round trip without normalisation gives the very bytes back, SentencePiece gives them back with marks as spaces.
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "text/pretokenizer.h"
#include "text/space_mark.h"
#include "text/tokenizer.h"

#include "../tiny_vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_PRE = 256 };

static const sl_tokenizer *tokenizer_of(uint8_t choice, const sl_pretokenizer **pre) {
    static sl_tokenizer *made[MAX_PRE];
    static tiny_vocab vocab[MAX_PRE];
    static size_t n_pre;
    while (sl_pretokenizer_at(n_pre)) n_pre++;
    size_t i = choice % (n_pre + 1);
    *pre = sl_pretokenizer_at(i);
    if (made[i]) return made[i];
    if (*pre) tiny_bpe(&vocab[i]), vocab[i].source.pre = sl_span_of((*pre)->name);
    else tiny_spm(&vocab[i]), vocab[i].source.add_space_prefix = 0;
    if (sl_tokenizer_create(&made[i], &vocab[i].source) != SL_OK) abort();
    return made[i];
}

static void check_stream(sl_span text) {
    sl_utf8_stream stream = {0};
    char *out = malloc(3 * (text.n_bytes + 8));
    size_t n = sl_utf8_stream_push(&stream, out, text);
    n += sl_utf8_stream_finish(&stream, out + n);
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t cp;
        step = sl_utf8_decode(&cp, out + i, n - i);
        if (step == 0) abort(); // what is handed out is UTF-8
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (n_bytes < 2) return 0;
    const sl_pretokenizer *pre;
    const sl_tokenizer *tokenizer = tokenizer_of(data[0], &pre);
    sl_encode_options options = {.parse_special = data[1] & 1};
    sl_span text = sl_span_make((const char *)data + 2, n_bytes - 2);
    size_t n, n_text, cap = 4 * text.n_bytes + 8;
    int32_t *ids = malloc(cap * sizeof *ids);
    char *back = malloc(3 * text.n_bytes + 1), *want = malloc(text.n_bytes + 1);
    if (sl_tokenizer_encode(tokenizer, ids, cap, &n, text, &options) != SL_OK || n > cap) abort();
    if (sl_tokenizer_decode(tokenizer, back, 3 * text.n_bytes, &n_text, ids, n,
                            &(sl_decode_options){.special = true}) != SL_OK)
        abort();
    size_t n_want = pre ? text.n_bytes : sl_space_mark_unescape(want, text);
    bool exact = !pre || !(pre->flags & (SL_PRE_NFC | SL_PRE_CHARS));
    if (exact && (n_text != n_want || memcmp(back, pre ? text.data : want, n_want) != 0)) abort();
    check_stream(text);
    free(ids), free(back), free(want);
    return 0;
}
