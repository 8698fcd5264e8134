// SPDX-License-Identifier: MIT
//
// Reads numbers and strings as Python does. Integers are 64 bits wide; a longer one is refused,
// never rounded.
#include "text/jinja_literal.h"

#include <utf8proc.h>

#include "base/utf8.h"
#include "text/jinja_text.h"

bool sl_jinja_is_name_char(uint32_t cp, bool first) {
    if (cp == '_' || sl_jinja_is_alpha(cp)) return true;
    if (cp < 0x80) return !first && cp >= '0' && cp <= '9';
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    if (c == UTF8PROC_CATEGORY_NL) return true;
    return !first && (c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC ||
                      c == UTF8PROC_CATEGORY_PC || cp == 0xb7);
}

// ---- numbers ----

static int digit_value(int c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
}

// Digits of `base` from `at`, single underscores between them; the end of them.
static size_t digits_end(sl_span s, size_t at, int base) {
    size_t end = at;
    for (size_t i = at; i < s.n_bytes; i++) {
        if (digit_value(s.data[i]) < base) end = i + 1;
        else if (s.data[i] != '_' || end != i || i == at) break;
    }
    return end;
}

static sl_status parse_digits(int64_t *out, sl_span s, int base) {
    *out = 0;
    for (size_t i = 0; i < s.n_bytes; i++) {
        if (s.data[i] == '_') continue;
        if (__builtin_mul_overflow(*out, base, out) || __builtin_add_overflow(*out, digit_value(s.data[i]), out))
            return SL_FAIL(SL_UNSUPPORTED, "the number %.*s... has more than 64 bits", (int)SL_MIN(s.n_bytes, 20u),
                           s.data);
    }
    return SL_OK;
}

// Length of a float literal at the start of s, 0 if there is none.
static size_t float_length(sl_span s) {
    size_t whole = digits_end(s, 0, 10), at = whole;
    if (whole == 0) return 0;
    if (at + 1 < s.n_bytes && s.data[at] == '.' && digit_value(s.data[at + 1]) < 10) at = digits_end(s, at + 1, 10);
    size_t fraction = at;
    if (at + 1 < s.n_bytes && (s.data[at] | 32) == 'e') {
        at += 1 + (s.data[at + 1] == '+' || s.data[at + 1] == '-');
        if (at < s.n_bytes && digit_value(s.data[at]) < 10) return digits_end(s, at, 10);
    }
    return fraction > whole ? fraction : 0;
}

static sl_status parse_plain_float(double *out, bool *ok, sl_span s) { // drops underscores
    char small[64], *text = small;
    size_t n = 0;
    if (s.n_bytes > sizeof small) SL_TRY(sl_alloc(&text, s.n_bytes, 1, "number"));
    for (size_t i = 0; i < s.n_bytes; i++)
        if (s.data[i] != '_') text[n++] = s.data[i];
    sl_status status = sl_jinja_parse_float(out, text, n, ok);
    if (text != small) sl_free(text);
    return status;
}

sl_status sl_jinja_number(sl_jinja_value *out, size_t *n, sl_span s, bool may_be_float) {
    int64_t i;
    bool ok;
    double f;
    *n = may_be_float ? float_length(s) : 0;
    if (*n) {
        SL_TRY(parse_plain_float(&f, &ok, sl_span_make(s.data, *n)));
        return *out = sl_jinja_float(f), SL_OK;
    }
    int letter = s.n_bytes > 2 && s.data[0] == '0' ? s.data[1] | 32 : 0;
    int base = letter == 'b' ? 2 : letter == 'o' ? 8 : letter == 'x' ? 16 : 10;
    size_t skip = base == 10 ? 0 : 2 + (s.n_bytes > 3 && s.data[2] == '_');
    *n = digits_end(s, skip, base == 10 && s.data[0] == '0' ? 1 : base);
    if (skip && *n == skip) skip = 0, base = 10, *n = digits_end(s, 0, 1); // "0x" alone is 0 and a name
    SL_TRY(parse_digits(&i, sl_span_make(s.data + skip, *n - skip), base));
    return *out = sl_jinja_int(i), SL_OK;
}

sl_status sl_jinja_parse_int(sl_jinja_value *out, bool *ok, sl_span s, int base) {
    *ok = false;
    s = sl_jinja_strip(s, NULL, 3);
    bool minus = s.n_bytes && s.data[0] == '-';
    size_t at = s.n_bytes && (minus || s.data[0] == '+');
    int letter = s.n_bytes - at > 2 && s.data[at] == '0' ? s.data[at + 1] | 32 : 0;
    int by_prefix = letter == 'b' ? 2 : letter == 'o' ? 8 : letter == 'x' ? 16 : 0;
    if (by_prefix && (base == 0 || base == by_prefix)) {
        base = by_prefix;
        at += 2 + (s.data[at + 2] == '_');
    } else if (base == 0) {
        base = 10;
        size_t zeros = digits_end(s, at, 1); // 0 and 000 are numbers, 007 is none
        if (zeros > at && zeros != s.n_bytes) return SL_OK;
    }
    if (at == s.n_bytes || digits_end(s, at, base) != s.n_bytes) return SL_OK;
    int64_t i;
    SL_TRY(parse_digits(&i, sl_span_make(s.data + at, s.n_bytes - at), base));
    *ok = true;
    return *out = sl_jinja_int(minus ? -i : i), SL_OK;
}

sl_status sl_jinja_to_float(double *out, bool *ok, sl_span s) {
    *ok = false;
    s = sl_jinja_strip(s, NULL, 3);
    size_t at = s.n_bytes && (s.data[0] == '-' || s.data[0] == '+');
    sl_span rest = sl_span_make(s.data + at, s.n_bytes - at);
    static const char *const names[] = {"inf", "infinity", "nan"};
    for (size_t i = 0; i < SL_COUNT(names); i++) {
        size_t k = 0, n = strlen(names[i]);
        while (k < n && rest.n_bytes == n && (rest.data[k] | 32) == names[i][k]) k++;
        if (k == n) {
            *ok = true;
            *out = i == 2 ? (double)__builtin_nan("") : (double)__builtin_inf();
            if (s.data[0] == '-') *out = -*out;
            return SL_OK;
        }
    }
    bool fraction_only = rest.n_bytes > 1 && rest.data[0] == '.';
    for (size_t i = 0; i < rest.n_bytes; i++) { // strtod also takes hex and more
        char c = rest.data[i];
        if (!(c >= '0' && c <= '9') && !strchr(".eE+-_", c)) return SL_OK;
        bool digit_before = i > 0 && digit_value(rest.data[i - 1]) < 10;
        bool digit_after = i + 1 < rest.n_bytes && digit_value(rest.data[i + 1]) < 10;
        if (c == '_' && !(digit_before && digit_after)) return SL_OK;
    }
    if (rest.n_bytes == 0 || !(digit_value(rest.data[fraction_only]) < 10)) return SL_OK;
    return parse_plain_float(out, ok, s);
}

// ---- strings ----

typedef struct unescaper {
    sl_buf ascii; // the text with all but ASCII written as \x, \u and \U, as jinja2 does before it
                  // undoes escapes
    sl_buf out;
    size_t at;
} unescaper;

static void write_ascii(unescaper *u, sl_span s) {
    for (size_t i = 0; i < s.n_bytes;) {
        size_t begin = i;
        uint32_t cp = sl_jinja_char(s, &i);
        if (cp < 0x80) sl_buf_append(&u->ascii, s.data + begin, 1);
        else sl_buf_printf(&u->ascii, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
    }
}

static void put(unescaper *u, uint32_t cp) {
    char bytes[4];
    sl_buf_append(&u->out, bytes, sl_utf8_encode(bytes, cp));
}

static sl_status put_hex(unescaper *u, size_t n_digits) {
    uint32_t cp = 0;
    for (size_t i = 0; i < n_digits; i++) {
        int d = u->at < u->ascii.n_bytes ? digit_value(u->ascii.data[u->at++]) : 99;
        if (d > 15) return SL_FAIL(SL_BAD_INPUT, "an escape in a string needs %zu hexadecimal digits", n_digits);
        cp = cp << 4 | (uint32_t)d;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return SL_FAIL(SL_BAD_INPUT, "a string holds an escape that is no character (U+%X)", (unsigned)cp);
    put(u, cp);
    return SL_OK;
}

static sl_status undo_escape(unescaper *u) {
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    if (u->at == u->ascii.n_bytes) return SL_FAIL(SL_BAD_INPUT, "a string ends with a backslash");
    char c = u->ascii.data[u->at++];
    const char *known = c ? strchr(from, c) : NULL;
    if (known) return put(u, (unsigned char)to[known - from]), SL_OK;
    if (c == '\n') return SL_OK;
    if (c == 'x') return put_hex(u, 2);
    if (c == 'u') return put_hex(u, 4);
    if (c == 'U') return put_hex(u, 8);
    if (c == 'N') return SL_FAIL(SL_UNSUPPORTED, "characters by name (\\N{...}) are not supported");
    if (c >= '0' && c <= '7') {
        uint32_t cp = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && u->at < u->ascii.n_bytes && (u->ascii.data[u->at] & 0xf8) == '0'; i++)
            cp = cp << 3 | (uint32_t)(u->ascii.data[u->at++] - '0');
        return put(u, cp), SL_OK;
    }
    put(u, '\\');
    put(u, (unsigned char)c);
    return SL_OK;
}

sl_status sl_jinja_unescape(sl_jinja_run *run, sl_jinja_value *out, sl_span s) {
    if (!memchr(s.data, '\\', s.n_bytes)) return sl_jinja_text_share(run, out, s.data, s.n_bytes);
    unescaper u = {.ascii = sl_jinja_scratch(run), .out = sl_jinja_scratch(run)};
    sl_status status = SL_OK;
    write_ascii(&u, s);
    if (u.ascii.status != SL_OK) status = u.ascii.status;
    while (u.at < u.ascii.n_bytes && status == SL_OK) {
        char c = u.ascii.data[u.at++];
        if (c == '\\') status = undo_escape(&u);
        else put(&u, (unsigned char)c);
    }
    sl_buf_deinit(&u.ascii);
    return sl_jinja_take(run, out, &u.out, status);
}
