// SPDX-License-Identifier: MIT
//
// Methods of texts: case, classes, searching, padding. Positions are characters, not bytes. A
// method of a text that is marked as markup gives markup.
#include "text/jinja_builtin.h"
#include "text/jinja_text.h"

// Bytes of self, or of its life.
static sl_status give(sl_jinja_call *c, sl_jinja_value *out, sl_span s) {
    SL_TRY(sl_jinja_text_share(c->run, out, s.data, s.n_bytes));
    out->flags = c->self.flags;
    return SL_OK;
}

static sl_status give_buf(sl_jinja_call *c, sl_jinja_value *out, sl_buf *buf) {
    SL_TRY(sl_jinja_take(c->run, out, buf, SL_OK));
    out->flags = c->self.flags;
    return SL_OK;
}

static sl_status yes(sl_jinja_value *out, bool b) { return *out = sl_jinja_bool(b), SL_OK; }

// ---- case ----

static sl_status map_case(sl_jinja_call *c, sl_jinja_value *out, sl_jinja_case to) {
    sl_buf buf = sl_jinja_scratch(c->run);
    sl_jinja_map_case(&buf, sl_jinja_span(c->self), to);
    return give_buf(c, out, &buf);
}

// A letter after a letter is lowered (title), or any but the first (capitalize).
static sl_status map_words(sl_jinja_call *c, sl_jinja_value *out, bool every_word) {
    sl_span s = sl_jinja_span(c->self);
    sl_buf buf = sl_jinja_scratch(c->run);
    bool inside = false;
    for (size_t at = 0; at < s.n_bytes;) {
        size_t next = at;
        uint32_t cp = sl_jinja_char(s, &next);
        bool first = every_word ? !inside : at == 0;
        sl_jinja_map_char(&buf, s, &at, first ? SL_JINJA_TITLE : SL_JINJA_LOWER);
        inside = sl_jinja_is_cased(cp);
    }
    return give_buf(c, out, &buf);
}

#define METHOD(name, expr) \
    static sl_status method_##name(sl_jinja_call *c, sl_jinja_value *out) { return (expr); }

METHOD(upper, map_case(c, out, SL_JINJA_UPPER))
METHOD(lower, map_case(c, out, SL_JINJA_LOWER))
METHOD(swapcase, map_case(c, out, SL_JINJA_SWAP))
METHOD(casefold, map_case(c, out, SL_JINJA_FOLD))
METHOD(title, map_words(c, out, true))
METHOD(capitalize, map_words(c, out, false))

// ---- classes ----

static sl_status all_are(sl_jinja_call *c, sl_jinja_value *out, bool (*is)(uint32_t cp), bool empty) {
    sl_span s = sl_jinja_span(c->self);
    bool all = s.n_bytes > 0 || empty;
    for (size_t at = 0; at < s.n_bytes && all;) all = is(sl_jinja_char(s, &at));
    return yes(out, all);
}

static bool is_alnum(uint32_t cp) { return sl_jinja_is_alpha(cp) || sl_jinja_is_numeric(cp); }
static bool is_ascii(uint32_t cp) { return cp < 0x80; }

METHOD(isalpha, all_are(c, out, sl_jinja_is_alpha, false))
METHOD(isalnum, all_are(c, out, is_alnum, false))
METHOD(isdigit, all_are(c, out, sl_jinja_is_digit, false))
METHOD(isdecimal, all_are(c, out, sl_jinja_is_decimal, false))
METHOD(isnumeric, all_are(c, out, sl_jinja_is_numeric, false))
METHOD(isspace, all_are(c, out, sl_jinja_is_space, false))
METHOD(isascii, all_are(c, out, is_ascii, true))
METHOD(isprintable, all_are(c, out, sl_jinja_is_printable, true))
METHOD(isupper, sl_jinja_test_find(sl_span_of("upper"))->run(c, out))
METHOD(islower, sl_jinja_test_find(sl_span_of("lower"))->run(c, out))

static sl_status method_istitle(sl_jinja_call *c, sl_jinja_value *out) {
    sl_span s = sl_jinja_span(c->self);
    bool any = false, inside = false;
    for (size_t at = 0; at < s.n_bytes;) {
        uint32_t cp = sl_jinja_char(s, &at);
        bool cased = sl_jinja_is_cased(cp);
        if (cased && sl_jinja_is_lower(cp) != inside) return yes(out, false);
        any |= cased;
        inside = cased;
    }
    return yes(out, any);
}

// ---- searching ----

// Cuts self to [v[at], v[at + 1]) in characters; *begin is where, SIZE_MAX if that is past the end.
static sl_status window(sl_jinja_call *c, sl_span *out, size_t *begin, int at) {
    int64_t n = (int64_t)c->self.as.text->n_chars, from = 0, to = n;
    if (c->v[at].type != SL_JINJA_NONE) SL_TRY(sl_jinja_want_int(c->v[at], 0, &from));
    if (c->v[at + 1].type != SL_JINJA_NONE) SL_TRY(sl_jinja_want_int(c->v[at + 1], n, &to));
    if (from < 0) from = SL_MAX(from + n, 0);
    if (to < 0) to = SL_MAX(to + n, 0);
    to = SL_MIN(to, n);
    *begin = SIZE_MAX;
    *out = sl_span_make("", 0);
    if (from > n || from > to) return SL_OK;
    *begin = (size_t)from;
    size_t first = sl_jinja_offset(c->self.as.text, (size_t)from), last = sl_jinja_offset(c->self.as.text, (size_t)to);
    *out = sl_span_make(c->self.as.text->data + first, last - first);
    return sl_jinja_step(c->run, last / 16);
}

static sl_status find(sl_jinja_call *c, sl_jinja_value *out, bool last, bool must) {
    sl_span in, what;
    size_t begin, at = SIZE_MAX;
    SL_TRY(sl_jinja_want_text(c->v[0], &what));
    SL_TRY(window(c, &in, &begin, 1));
    if (begin != SIZE_MAX && last) SL_TRY(sl_jinja_rfind(c->run, &at, in, what));
    if (begin != SIZE_MAX && !last) at = sl_jinja_find(in, what);
    if (at == SIZE_MAX && must) return SL_FAIL(SL_BAD_INPUT, "index: the text is not in there");
    *out = sl_jinja_int(at == SIZE_MAX ? -1 : (int64_t)(begin + sl_jinja_count_chars(in.data, at)));
    return SL_OK;
}

METHOD(find, find(c, out, false, false))
METHOD(rfind, find(c, out, true, false))
METHOD(index, find(c, out, false, true))
METHOD(rindex, find(c, out, true, true))

static sl_status method_count(sl_jinja_call *c, sl_jinja_value *out) {
    sl_span in, what;
    size_t begin;
    int64_t n = 0;
    SL_TRY(sl_jinja_want_text(c->v[0], &what));
    SL_TRY(window(c, &in, &begin, 1));
    if (what.n_bytes == 0) n = begin == SIZE_MAX ? 0 : (int64_t)sl_jinja_count_chars(in.data, in.n_bytes) + 1;
    for (size_t at = 0; what.n_bytes; n++) {
        size_t found = sl_jinja_find(sl_span_make(in.data + at, in.n_bytes - at), what);
        if (found == SIZE_MAX) break;
        at += found + what.n_bytes;
    }
    return *out = sl_jinja_int(n), SL_OK;
}

static bool has_affix(sl_span s, sl_span affix, bool end) {
    if (affix.n_bytes > s.n_bytes) return false;
    return affix.n_bytes == 0 || memcmp(s.data + (end ? s.n_bytes - affix.n_bytes : 0), affix.data, affix.n_bytes) == 0;
}

static sl_status affix_test(sl_jinja_call *c, sl_jinja_value *out, bool end) {
    sl_span in, affix;
    size_t begin;
    bool any = false;
    SL_TRY(window(c, &in, &begin, 1));
    if (c->v[0].type == SL_JINJA_TUPLE) {
        for (size_t i = 0; i < c->v[0].as.list->n && !any; i++) {
            SL_TRY(sl_jinja_want_text(c->v[0].as.list->items[i], &affix));
            any = begin != SIZE_MAX && has_affix(in, affix, end);
        }
    } else {
        SL_TRY(sl_jinja_want_text(c->v[0], &affix));
        any = begin != SIZE_MAX && has_affix(in, affix, end);
    }
    return yes(out, any);
}

METHOD(startswith, affix_test(c, out, false))
METHOD(endswith, affix_test(c, out, true))

static sl_status remove_affix(sl_jinja_call *c, sl_jinja_value *out, bool end) {
    sl_span s = sl_jinja_span(c->self), affix;
    SL_TRY(sl_jinja_want_text(c->v[0], &affix));
    bool has = has_affix(s, affix, end);
    return give(c, out,
                sl_span_make(s.data + (has && !end ? affix.n_bytes : 0), s.n_bytes - (has ? affix.n_bytes : 0)));
}

METHOD(removeprefix, remove_affix(c, out, false))
METHOD(removesuffix, remove_affix(c, out, true))

// ---- stripping, replacing, padding ----

static sl_status strip(sl_jinja_call *c, sl_jinja_value *out, int sides) {
    sl_span set, *chars = NULL;
    if (c->v[0].type != SL_JINJA_MISSING && c->v[0].type != SL_JINJA_NONE) {
        SL_TRY(sl_jinja_want_text(c->v[0], &set));
        SL_TRY(sl_jinja_step(c->run, (set.n_bytes / 64 + 1) * (c->self.as.text->n_bytes / 64 + 1)));
        chars = &set;
    }
    return give(c, out, sl_jinja_strip(sl_jinja_span(c->self), chars, sides));
}

METHOD(strip, strip(c, out, 3))
METHOD(lstrip, strip(c, out, 1))
METHOD(rstrip, strip(c, out, 2))

static sl_status method_replace(sl_jinja_call *c, sl_jinja_value *out) {
    sl_span old, new_text;
    int64_t count;
    SL_TRY(sl_jinja_want_text(c->v[0], &old));
    SL_TRY(sl_jinja_want_text(c->v[1], &new_text));
    SL_TRY(sl_jinja_want_int(c->v[2], -1, &count));
    if (c->self.flags & SL_JINJA_MARKUP) {
        sl_jinja_value escaped;
        SL_TRY(sl_jinja_escaped(c->run, &escaped, c->v[1]));
        new_text = sl_jinja_span(escaped);
    }
    SL_TRY(sl_jinja_replace(c->run, out, sl_jinja_span(c->self), old, new_text, count));
    out->flags = c->self.flags;
    return SL_OK;
}

static sl_status pad(sl_jinja_call *c, sl_jinja_value *out, int side) { // 0 left, 1 right, 2 both
    int64_t width, n = (int64_t)c->self.as.text->n_chars;
    sl_span fill = sl_span_of(" ");
    sl_jinja_value left, right;
    SL_TRY(sl_jinja_want_int(c->v[0], 0, &width));
    if (c->v[1].type != SL_JINJA_MISSING) SL_TRY(sl_jinja_want_text(c->v[1], &fill));
    if (sl_jinja_count_chars(fill.data, fill.n_bytes) != 1)
        return SL_FAIL(SL_BAD_INPUT, "padding is done with one character");
    int64_t gap = width > n ? width - n : 0;
    int64_t n_left = side == 0 ? gap : side == 1 ? 0 : gap / 2 + (gap & width & 1); // as CPython splits it
    SL_TRY(sl_jinja_repeat(c->run, &left, fill, n_left));
    SL_TRY(sl_jinja_repeat(c->run, &right, fill, gap - n_left));
    SL_TRY(sl_jinja_text_join(c->run, out, *left.as.text, *c->self.as.text));
    SL_TRY(sl_jinja_text_join(c->run, out, *out->as.text, *right.as.text));
    out->flags = c->self.flags;
    return SL_OK;
}

METHOD(rjust, pad(c, out, 0))
METHOD(ljust, pad(c, out, 1))
METHOD(center, pad(c, out, 2))

static sl_status method_zfill(sl_jinja_call *c, sl_jinja_value *out) {
    int64_t width, n = (int64_t)c->self.as.text->n_chars;
    sl_span s = sl_jinja_span(c->self);
    sl_jinja_value zeros;
    SL_TRY(sl_jinja_want_int(c->v[0], 0, &width));
    size_t sign = s.n_bytes && (s.data[0] == '-' || s.data[0] == '+');
    SL_TRY(sl_jinja_repeat(c->run, &zeros, sl_span_of("0"), width - n));
    SL_TRY(sl_jinja_text_join(c->run, out, sl_jinja_text_of(sl_span_make(s.data, sign)), *zeros.as.text));
    sl_jinja_text rest = {s.data + sign, s.n_bytes - sign, c->self.as.text->n_chars - sign};
    SL_TRY(sl_jinja_text_join(c->run, out, *out->as.text, rest));
    out->flags = c->self.flags;
    return SL_OK;
}

// ---- formatting ----

static sl_status method_format(sl_jinja_call *c, sl_jinja_value *out) {
    return sl_jinja_str_format(c->run, out, c->self, c->args);
}

static sl_status method_format_map(sl_jinja_call *c, sl_jinja_value *out) {
    if (c->v[0].type != SL_JINJA_DICT) return SL_FAIL(SL_BAD_INPUT, "format_map takes a dict");
    return sl_jinja_str_format(c->run, out, c->self, &(sl_jinja_args){.kw = c->v[0].as.dict});
}

#define TEXT_METHOD(name, signature, n_required) \
    { #name, method_##name, signature, n_required, SL_JINJA_TEXT }
static const sl_jinja_builtin entries[] = {
    TEXT_METHOD(upper, "/", 0),
    TEXT_METHOD(lower, "/", 0),
    TEXT_METHOD(swapcase, "/", 0),
    TEXT_METHOD(casefold, "/", 0),
    TEXT_METHOD(title, "/", 0),
    TEXT_METHOD(capitalize, "/", 0),
    TEXT_METHOD(isalpha, "/", 0),
    TEXT_METHOD(isalnum, "/", 0),
    TEXT_METHOD(isdigit, "/", 0),
    TEXT_METHOD(isdecimal, "/", 0),
    TEXT_METHOD(isnumeric, "/", 0),
    TEXT_METHOD(isspace, "/", 0),
    TEXT_METHOD(isascii, "/", 0),
    TEXT_METHOD(isprintable, "/", 0),
    TEXT_METHOD(isupper, "/", 0),
    TEXT_METHOD(islower, "/", 0),
    TEXT_METHOD(istitle, "/", 0),
    TEXT_METHOD(find, "/sub start end", 1),
    TEXT_METHOD(rfind, "/sub start end", 1),
    TEXT_METHOD(index, "/sub start end", 1),
    TEXT_METHOD(rindex, "/sub start end", 1),
    TEXT_METHOD(count, "/sub start end", 1),
    TEXT_METHOD(startswith, "/prefix start end", 1),
    TEXT_METHOD(endswith, "/suffix start end", 1),
    TEXT_METHOD(removeprefix, "/prefix", 1),
    TEXT_METHOD(removesuffix, "/suffix", 1),
    TEXT_METHOD(strip, "/chars", 0),
    TEXT_METHOD(lstrip, "/chars", 0),
    TEXT_METHOD(rstrip, "/chars", 0),
    TEXT_METHOD(replace, "/old new count", 2),
    TEXT_METHOD(rjust, "/width fillchar", 1),
    TEXT_METHOD(ljust, "/width fillchar", 1),
    TEXT_METHOD(center, "/width fillchar", 1),
    TEXT_METHOD(zfill, "/width", 1),
    TEXT_METHOD(format, "*", 0),
    TEXT_METHOD(format_map, "/mapping", 1),
};
const sl_jinja_table sl_jinja_methods_text = {entries, SL_COUNT(entries)};
