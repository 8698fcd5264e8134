// SPDX-License-Identifier: MIT
//
// The alphabet in which byte-level BPE files write bytes: those that print in Latin-1 stand for themselves, the other
// 68 (controls, space, delete, no-break space, soft hyphen) for U+0100 and up, in order (a fact of GPT-2's tokenizer).
#ifndef SL_TEXT_BYTE_ALPHABET_H
#define SL_TEXT_BYTE_ALPHABET_H

#include "base/span.h"

enum { SL_BYTE_LETTER_COUNT = 256 + 68 }; // code points below this may be letters

typedef struct sl_byte_alphabet {
    uint16_t letter[256];               // byte -> code point
    int16_t byte[SL_BYTE_LETTER_COUNT]; // code point -> byte, or -1
} sl_byte_alphabet;

void sl_byte_alphabet_init(sl_byte_alphabet *alphabet);

// Writes the bytes that `text` stands for to `out` (at most text.n_bytes) and sets *n_out; false if some of it is not
// in the alphabet.
bool sl_byte_alphabet_decode(const sl_byte_alphabet *alphabet, char *out, size_t *n_out, sl_span text);

// Writes `bytes` in the alphabet; `out` holds 2 * bytes.n_bytes. Returns the length.
size_t sl_byte_alphabet_encode(const sl_byte_alphabet *alphabet, char *out, sl_span bytes);

#endif
