// SPDX-License-Identifier: MIT
//
// Bytes <-> letters of the byte-level alphabet.
#include "text/byte_alphabet.h"

#include "base/utf8.h"

static bool prints(int byte) { return (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad); }

void sl_byte_alphabet_init(sl_byte_alphabet *alphabet) {
    for (int i = 0; i < SL_BYTE_LETTER_COUNT; i++) alphabet->byte[i] = -1;
    int next = 256;
    for (int b = 0; b < 256; b++) {
        int letter = prints(b) ? b : next++;
        alphabet->letter[b] = (uint16_t)letter;
        alphabet->byte[letter] = (int16_t)b;
    }
}

bool sl_byte_alphabet_decode(const sl_byte_alphabet *alphabet, char *out, size_t *n_out, sl_span text) {
    *n_out = 0;
    for (size_t i = 0, n; i < text.n_bytes; i += n) {
        uint32_t cp;
        n = sl_utf8_decode(&cp, text.data + i, text.n_bytes - i);
        if (n == 0 || cp >= SL_BYTE_LETTER_COUNT || alphabet->byte[cp] < 0) return false;
        out[(*n_out)++] = (char)alphabet->byte[cp];
    }
    return true;
}

size_t sl_byte_alphabet_encode(const sl_byte_alphabet *alphabet, char *out, sl_span bytes) {
    size_t n = 0;
    for (size_t i = 0; i < bytes.n_bytes; i++) n += sl_utf8_encode(out + n, alphabet->letter[(uint8_t)bytes.data[i]]);
    return n;
}
