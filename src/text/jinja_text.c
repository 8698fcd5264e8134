// SPDX-License-Identifier: MIT
//
// Searching, classes and case of code points. The classes are Unicode's, by utf8proc; the few
// letters whose case takes several letters are in jinja_case_tab.h.
#define _GNU_SOURCE // memmem
#include "text/jinja_text.h"

#include <utf8proc.h>

#include "base/utf8.h"
#include "text/jinja_case_tab.h"

size_t sl_jinja_find(sl_span hay, sl_span needle) {
    if (needle.n_bytes == 0) return 0;
    if (needle.n_bytes > hay.n_bytes) return SIZE_MAX;
    const char *at = memmem(hay.data, hay.n_bytes, needle.data, needle.n_bytes);
    return at ? (size_t)(at - hay.data) : SIZE_MAX;
}

sl_status sl_jinja_rfind(sl_jinja_run *run, size_t *out, sl_span hay, sl_span needle) {
    size_t n = needle.n_bytes;
    *out = SIZE_MAX;
    if (n == 0) return *out = hay.n_bytes, SL_OK;
    for (size_t end = hay.n_bytes; end >= n; end--) {
        const char *at = hay.data + end - n;
        if (at[0] != needle.data[0] || at[n - 1] != needle.data[n - 1]) continue;
        SL_TRY(sl_jinja_step(run, n / 64)); // long needles may nearly fit at every place
        if (memcmp(at, needle.data, n) == 0) return *out = end - n, SL_OK;
    }
    return SL_OK;
}

size_t sl_jinja_offset(const sl_jinja_text *text, size_t at) {
    if (text->n_bytes == text->n_chars) return at;
    if (at == text->n_chars) return text->n_bytes;
    size_t i = 0;
    for (at++; i < text->n_bytes; i++)
        if (((unsigned char)text->data[i] & 0xc0) != 0x80 && --at == 0) break;
    return i;
}

uint32_t sl_jinja_char(sl_span s, size_t *at) {
    uint32_t cp;
    size_t n = sl_utf8_decode(&cp, s.data + *at, s.n_bytes - *at);
    *at += n ? n : 1; // texts are valid, so n is never 0
    return cp;
}

// ---- classes ----

bool sl_jinja_is_space(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x1f);
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

bool sl_jinja_is_line_end(uint32_t cp) {
    return (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

static utf8proc_category_t category(uint32_t cp) { return utf8proc_category((utf8proc_int32_t)cp); }

bool sl_jinja_is_printable(uint32_t cp) {
    if (cp < 0x80) return cp >= 0x20 && cp < 0x7f;
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
    }
}

bool sl_jinja_is_alpha(uint32_t cp) {
    if (cp < 0x80) return (cp | 32) >= 'a' && (cp | 32) <= 'z';
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool sl_jinja_is_decimal(uint32_t cp) {
    if (cp < 0x80) return cp >= '0' && cp <= '9';
    return category(cp) == UTF8PROC_CATEGORY_ND;
}

bool sl_jinja_is_digit(uint32_t cp) { // Numeric_Type=Digit: small closed sets
    return sl_jinja_is_decimal(cp) || cp == 0xb2 || cp == 0xb3 || cp == 0xb9 || cp == 0x2070 ||
           (cp >= 0x2074 && cp <= 0x2079) || (cp >= 0x2080 && cp <= 0x2089) || (cp >= 0x2460 && cp <= 0x2468) ||
           (cp >= 0x2474 && cp <= 0x247c) || (cp >= 0x2488 && cp <= 0x2490) || (cp >= 0x2776 && cp <= 0x277e) ||
           (cp >= 0x2780 && cp <= 0x2788) || (cp >= 0x278a && cp <= 0x2792);
}

bool sl_jinja_is_numeric(uint32_t cp) {
    if (sl_jinja_is_digit(cp)) return true;
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool sl_jinja_is_word(uint32_t cp) { return cp == '_' || sl_jinja_is_alpha(cp) || sl_jinja_is_numeric(cp); }

bool sl_jinja_is_upper(uint32_t cp) {
    return cp < 0x80 ? cp >= 'A' && cp <= 'Z' : category(cp) == UTF8PROC_CATEGORY_LU;
}

bool sl_jinja_is_lower(uint32_t cp) {
    return cp < 0x80 ? cp >= 'a' && cp <= 'z' : category(cp) == UTF8PROC_CATEGORY_LL || cp == 0xaa || cp == 0xba;
}

bool sl_jinja_is_cased(uint32_t cp) {
    return sl_jinja_is_upper(cp) || sl_jinja_is_lower(cp) || category(cp) == UTF8PROC_CATEGORY_LT;
}

sl_span sl_jinja_strip(sl_span s, const sl_span *set, int sides) {
    size_t begin = 0, end = s.n_bytes;
    while ((sides & 1) && begin < end) {
        size_t at = begin;
        uint32_t cp = sl_jinja_char(s, &at);
        if (!(set ? sl_jinja_find(*set, sl_span_make(s.data + begin, at - begin)) != SIZE_MAX : sl_jinja_is_space(cp)))
            break;
        begin = at;
    }
    while ((sides & 2) && end > begin) {
        size_t at = end - 1;
        while (((unsigned char)s.data[at] & 0xc0) == 0x80) at--;
        size_t from = at;
        uint32_t cp = sl_jinja_char(s, &at);
        if (!(set ? sl_jinja_find(*set, sl_span_make(s.data + from, end - from)) != SIZE_MAX : sl_jinja_is_space(cp)))
            break;
        end = from;
    }
    return sl_span_make(s.data + begin, end - begin);
}

// ---- case ----

static void put(sl_buf *buf, uint32_t cp) {
    char bytes[4];
    sl_buf_append(buf, bytes, sl_utf8_encode(bytes, cp));
}

static bool put_special(sl_buf *buf, uint32_t cp, bool title) {
    for (size_t i = 0; i < SL_COUNT(sl_jinja_case_tab); i++) {
        if (sl_jinja_case_tab[i].cp != cp) continue;
        const uint16_t *to = title ? sl_jinja_case_tab[i].title : sl_jinja_case_tab[i].upper;
        for (int k = 0; k < 3 && to[k]; k++) put(buf, to[k]);
        return true;
    }
    return false;
}

// A capital sigma ends a word if a cased letter comes before it and none after; marks and the like
// do not count.
static bool is_ignorable(uint32_t cp) {
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
           c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK || cp == '\'' || cp == '.' || cp == ':' ||
           cp == 0xb7 || cp == 0x2018 || cp == 0x2019;
}

static bool is_final_sigma(sl_span s, size_t begin, size_t end) {
    uint32_t cp = 0;
    size_t i = begin;
    while (i > 0) {
        size_t from = i - 1;
        while (((unsigned char)s.data[from] & 0xc0) == 0x80) from--;
        size_t at = from;
        cp = sl_jinja_char(s, &at);
        if (!is_ignorable(cp)) break;
        i = from;
    }
    if (i == 0 || !sl_jinja_is_cased(cp)) return false;
    for (i = end; i < s.n_bytes;) {
        cp = sl_jinja_char(s, &i);
        if (!is_ignorable(cp)) return !sl_jinja_is_cased(cp);
    }
    return true;
}

static void fold_char(sl_buf *buf, uint32_t cp) {
    utf8proc_int32_t out[8];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, out, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < n && i < 8; i++) put(buf, (uint32_t)out[i]);
}

static char map_ascii(char c, sl_jinja_case to) {
    bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
    bool flip = to == SL_JINJA_SWAP || (to == SL_JINJA_UPPER || to == SL_JINJA_TITLE ? lower : upper);
    return (upper || lower) && flip ? (char)(c ^ 0x20) : c;
}

void sl_jinja_map_char(sl_buf *buf, sl_span s, size_t *at, sl_jinja_case to) {
    size_t begin = *at;
    uint32_t cp = sl_jinja_char(s, at);
    if (cp < 0x80) return put(buf, (unsigned char)map_ascii((char)cp, to));
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    if (to == SL_JINJA_SWAP) {
        to = sl_jinja_is_upper(cp) ? SL_JINJA_LOWER : SL_JINJA_UPPER;
        if (!sl_jinja_is_upper(cp) && !sl_jinja_is_lower(cp)) return put(buf, cp);
    }
    if (to == SL_JINJA_FOLD) return fold_char(buf, cp);
    if (to != SL_JINJA_LOWER) {
        if (!put_special(buf, cp, to == SL_JINJA_TITLE))
            put(buf, (uint32_t)(to == SL_JINJA_TITLE ? utf8proc_totitle(c) : utf8proc_toupper(c)));
    } else if (cp == 0x130) {
        sl_buf_text(buf, "i\xcc\x87");
    } else if (cp == 0x3a3) {
        put(buf, is_final_sigma(s, begin, *at) ? 0x3c2 : 0x3c3);
    } else {
        put(buf, (uint32_t)utf8proc_tolower(c));
    }
}

void sl_jinja_map_case(sl_buf *buf, sl_span s, sl_jinja_case to) {
    for (size_t at = 0; at < s.n_bytes && buf->status == SL_OK;) {
        char run[256]; // ASCII goes by the block
        size_t n = 0;
        while (n < sizeof run && at + n < s.n_bytes && (unsigned char)s.data[at + n] < 0x80) {
            run[n] = map_ascii(s.data[at + n], to);
            n++;
        }
        sl_buf_append(buf, run, n);
        at += n;
        if (at < s.n_bytes && n < sizeof run) sl_jinja_map_char(buf, s, &at, to);
    }
}

// ---- building ----

void sl_jinja_escape(sl_buf *buf, sl_span s) {
    for (size_t i = 0; i < s.n_bytes; i++) {
        switch (s.data[i]) {
        case '&': sl_buf_text(buf, "&amp;"); break;
        case '<': sl_buf_text(buf, "&lt;"); break;
        case '>': sl_buf_text(buf, "&gt;"); break;
        case '\'': sl_buf_text(buf, "&#39;"); break;
        case '"': sl_buf_text(buf, "&#34;"); break;
        default: sl_buf_append(buf, s.data + i, 1);
        }
    }
}

sl_status sl_jinja_replace(sl_jinja_run *run, sl_jinja_value *out, sl_span s, sl_span old, sl_span new_text,
                           int64_t count) {
    sl_buf buf = sl_jinja_scratch(run);
    size_t at = 0;
    SL_TRY(sl_jinja_step(run, s.n_bytes / 64));
    while (count != 0 && buf.status == SL_OK) {
        sl_span rest = sl_span_make(s.data + at, s.n_bytes - at);
        size_t skip = sl_jinja_find(rest, old), n = old.n_bytes;
        if (skip == SIZE_MAX) break;
        sl_buf_append(&buf, rest.data, skip);
        sl_buf_append(&buf, new_text.data, new_text.n_bytes);
        at += skip + n;
        if (n == 0) { // between any two characters, and at both ends
            if (at == s.n_bytes) break;
            size_t next = at;
            sl_jinja_char(s, &next);
            sl_buf_append(&buf, s.data + at, next - at);
            at = next;
        }
        if (count > 0) count--;
    }
    sl_buf_append(&buf, s.data + at, s.n_bytes - at);
    return sl_jinja_take(run, out, &buf, SL_OK);
}
