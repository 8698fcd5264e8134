// SPDX-License-Identifier: MIT
//
// Unicode normalisation form C, in time linear in the text.
#ifndef SL_TEXT_NFC_H
#define SL_TEXT_NFC_H

#include "base/alloc.h"
#include "base/span.h"

// Every code point below U+0300 is its own NFC, so text without any above needs no work.
static inline bool sl_nfc_may_change(sl_span text) {
    for (size_t i = 0; i < text.n_bytes; i++) {
        if ((uint8_t)text.data[i] >= 0xcc) return true; // the first byte of U+0300
    }
    return false;
}

// `text` must be valid UTF-8. *out is owned by the caller (sl_free); NULL on failure.
sl_status sl_nfc(char **out, size_t *n_out, sl_span text);

#endif
