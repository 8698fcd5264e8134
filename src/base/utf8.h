// SPDX-License-Identifier: MIT
//
// One code point at a time, strict: no surrogates, no overlong forms, nothing past U+10FFFF (RFC 3629).
#ifndef SL_BASE_UTF8_H
#define SL_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

// Decodes the code point at `text`. Returns its length in bytes, or 0 if the bytes there are no code point
// (wrong or cut off); *cp is then 0.
static inline size_t sl_utf8_decode(uint32_t *cp, const char *text, size_t n_bytes) {
    const unsigned char *s = (const unsigned char *)text;
    *cp = 0;
    if (n_bytes == 0) return 0;
    if (s[0] < 0x80) return *cp = s[0], 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > n_bytes) return 0;
    uint32_t v = s[0] & (0x7f >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        v = v << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)) return 0;
    return *cp = v, n;
}

// Writes `cp` (a valid code point) as UTF-8 and returns the length, 1 to 4.
static inline size_t sl_utf8_encode(char out[4], uint32_t cp) {
    if (cp < 0x80) return out[0] = (char)cp, 1;
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xff) | cp);
    return n;
}

#endif
