// SPDX-License-Identifier: MIT
//
// Filters that give texts. Where jinja2 keeps the markup mark of a text (soft_str) it is kept here.
#include "text/jinja_builtin.h"
#include "text/jinja_text.h"

static sl_status soft_str(sl_jinja_call *c, sl_jinja_value *out) {
    if (c->self.type == SL_JINJA_TEXT) return *out = c->self, SL_OK;
    return sl_jinja_str(c->run, out, c->self);
}

// ---- case ----

static sl_status map_case(sl_jinja_call *c, sl_jinja_value *out, sl_jinja_case to) {
    sl_jinja_value s;
    SL_TRY(soft_str(c, &s));
    sl_buf buf = sl_jinja_scratch(c->run);
    sl_jinja_map_case(&buf, sl_jinja_span(s), to);
    SL_TRY(sl_jinja_take(c->run, out, &buf, SL_OK));
    out->flags = s.flags;
    return SL_OK;
}

static sl_status filter_upper(sl_jinja_call *c, sl_jinja_value *out) { return map_case(c, out, SL_JINJA_UPPER); }
static sl_status filter_lower(sl_jinja_call *c, sl_jinja_value *out) { return map_case(c, out, SL_JINJA_LOWER); }

static sl_status filter_capitalize(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value s;
    SL_TRY(soft_str(c, &s));
    sl_buf buf = sl_jinja_scratch(c->run);
    for (size_t at = 0; at < s.as.text->n_bytes;)
        sl_jinja_map_char(&buf, sl_jinja_span(s), &at, at == 0 ? SL_JINJA_TITLE : SL_JINJA_LOWER);
    SL_TRY(sl_jinja_take(c->run, out, &buf, SL_OK));
    out->flags = s.flags;
    return SL_OK;
}

static bool begins_word(uint32_t cp) {
    return cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<' || sl_jinja_is_space(cp);
}

// The rest of a word is lowered by itself, so that a final sigma looks no further.
static sl_status filter_title(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value s;
    SL_TRY(soft_str(c, &s));
    sl_span all = sl_jinja_span(s);
    sl_buf buf = sl_jinja_scratch(c->run);
    for (size_t at = 0; at < all.n_bytes;) {
        size_t first = at;
        bool separator = begins_word(sl_jinja_char(all, &first));
        if (separator) {
            sl_buf_append(&buf, all.data + at, first - at);
            at = first;
            continue;
        }
        size_t end = first;
        for (size_t next = end; next < all.n_bytes; end = next)
            if (begins_word(sl_jinja_char(all, &next))) break;
        sl_jinja_map_char(&buf, all, &at, SL_JINJA_UPPER);
        sl_jinja_map_case(&buf, sl_span_make(all.data + first, end - first), SL_JINJA_LOWER);
        at = end;
    }
    return sl_jinja_take(c->run, out, &buf, SL_OK);
}

// ---- shape ----

static sl_status filter_trim(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value s;
    sl_span set, *chars = NULL;
    SL_TRY(soft_str(c, &s));
    if (c->v[0].type != SL_JINJA_MISSING && c->v[0].type != SL_JINJA_NONE) {
        SL_TRY(sl_jinja_want_text(c->v[0], &set));
        SL_TRY(sl_jinja_step(c->run, (set.n_bytes / 64 + 1) * (s.as.text->n_bytes / 64 + 1)));
        chars = &set;
    }
    sl_span r = sl_jinja_strip(sl_jinja_span(s), chars, 3);
    SL_TRY(sl_jinja_text_share(c->run, out, r.data, r.n_bytes));
    out->flags = s.flags;
    return SL_OK;
}

static sl_status filter_replace(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value s, old, new_text;
    int64_t count = -1;
    SL_TRY(sl_jinja_str(c->run, &s, c->self));
    SL_TRY(sl_jinja_str(c->run, &old, c->v[0]));
    SL_TRY(sl_jinja_str(c->run, &new_text, c->v[1]));
    if (c->v[2].type != SL_JINJA_NONE) SL_TRY(sl_jinja_want_int(c->v[2], -1, &count));
    return sl_jinja_replace(c->run, out, sl_jinja_span(s), sl_jinja_span(old), sl_jinja_span(new_text), count);
}

// Takes the next line off `rest`, without its end.
static sl_span take_line(sl_span *rest) {
    size_t at = 0, end = 0;
    while (at < rest->n_bytes) {
        end = at;
        uint32_t cp = sl_jinja_char(*rest, &at);
        if (!sl_jinja_is_line_end(cp)) {
            end = at;
            continue;
        }
        if (cp == '\r' && at < rest->n_bytes && rest->data[at] == '\n') at++;
        break;
    }
    sl_span line = sl_span_make(rest->data, end);
    *rest = sl_span_make(rest->data + at, rest->n_bytes - at);
    return line;
}

static sl_status filter_indent(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value spaces = c->v[0];
    sl_span rest;
    bool first = sl_jinja_truth(c->v[1]), blank = sl_jinja_truth(c->v[2]);
    SL_TRY(sl_jinja_want_text(c->self, &rest));
    if (spaces.type != SL_JINJA_TEXT) {
        int64_t width;
        SL_TRY(sl_jinja_want_int(spaces, 4, &width));
        SL_TRY(sl_jinja_repeat(c->run, &spaces, sl_span_of(" "), width));
    }
    sl_span indent = sl_jinja_span(spaces);
    sl_buf buf = sl_jinja_scratch(c->run);
    if (first) sl_buf_append(&buf, indent.data, indent.n_bytes);
    bool ended = rest.n_bytes && sl_jinja_is_line_end((unsigned char)rest.data[rest.n_bytes - 1]);
    for (bool begin = true; (begin || rest.n_bytes || ended) && buf.status == SL_OK; begin = false) {
        if (!rest.n_bytes) ended = false; // a newline at the end makes one more, empty line
        sl_span line = take_line(&rest);
        if (!begin) sl_buf_text(&buf, "\n");
        if (!begin && (blank || line.n_bytes)) sl_buf_append(&buf, indent.data, indent.n_bytes);
        sl_buf_append(&buf, line.data, line.n_bytes);
    }
    SL_TRY(sl_jinja_take(c->run, out, &buf, SL_OK));
    out->flags = c->self.flags;
    return SL_OK;
}

static sl_status filter_truncate(sl_jinja_call *c, sl_jinja_value *out) {
    int64_t length, leeway;
    size_t n;
    sl_span s, end = sl_span_of("...");
    SL_TRY(sl_jinja_want_int(c->v[0], 255, &length));
    if (c->v[2].type != SL_JINJA_MISSING) SL_TRY(sl_jinja_want_text(c->v[2], &end));
    SL_TRY(sl_jinja_want_int(c->v[3].type == SL_JINJA_NONE ? (sl_jinja_value){0} : c->v[3], 5, &leeway));
    SL_TRY(sl_jinja_len(&n, c->self));
    int64_t n_end = (int64_t)sl_jinja_count_chars(end.data, end.n_bytes);
    if (length < n_end || leeway < 0) return SL_FAIL(SL_BAD_INPUT, "truncate: the length is too small");
    if ((int64_t)n <= length || (int64_t)n - length <= leeway) return *out = c->self, SL_OK; // whatever it is
    SL_TRY(sl_jinja_want_text(c->self, &s));
    sl_span kept = sl_span_make(s.data, sl_jinja_offset(c->self.as.text, (size_t)(length - n_end)));
    size_t space = SIZE_MAX;
    if (!sl_jinja_truth(c->v[1])) SL_TRY(sl_jinja_rfind(c->run, &space, kept, sl_span_of(" ")));
    if (space != SIZE_MAX) kept.n_bytes = space;
    return sl_jinja_text_join(c->run, out, sl_jinja_text_of(kept), sl_jinja_text_of(end));
}

static sl_status filter_center(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value s, width = c->v[0].type == SL_JINJA_MISSING ? sl_jinja_int(80) : c->v[0];
    SL_TRY(soft_str(c, &s));
    const sl_jinja_builtin *center = sl_jinja_method_find(s, sl_span_of("center"));
    return sl_jinja_builtin_call(c->run, out, center, s, &(sl_jinja_args){&width, 1, &sl_jinja_no_kw});
}

static sl_status filter_wordcount(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value s;
    int64_t n = 0;
    bool inside = false;
    SL_TRY(soft_str(c, &s));
    for (size_t at = 0; at < s.as.text->n_bytes;) {
        bool word = sl_jinja_is_word(sl_jinja_char(sl_jinja_span(s), &at));
        n += word && !inside;
        inside = word;
    }
    *out = sl_jinja_int(n);
    return SL_OK;
}

// ---- escaping ----

static sl_status filter_string(sl_jinja_call *c, sl_jinja_value *out) { return soft_str(c, out); }

static sl_status filter_safe(sl_jinja_call *c, sl_jinja_value *out) {
    SL_TRY(soft_str(c, out));
    out->flags = SL_JINJA_MARKUP;
    return SL_OK;
}

static sl_status filter_escape(sl_jinja_call *c, sl_jinja_value *out) { return sl_jinja_escaped(c->run, out, c->self); }

static sl_status filter_forceescape(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value plain;
    SL_TRY(sl_jinja_str(c->run, &plain, c->self));
    return sl_jinja_escaped(c->run, out, plain);
}

static void quote(sl_buf *buf, sl_span s, bool query) {
    for (size_t i = 0; i < s.n_bytes; i++) {
        unsigned char b = (unsigned char)s.data[i];
        bool plain = (b >= '0' && b <= '9') || ((b | 32) >= 'a' && (b | 32) <= 'z') || (b && strchr("_.-~", b));
        if (plain || (b == '/' && !query)) sl_buf_append(buf, s.data + i, 1);
        else if (b == ' ' && query) sl_buf_text(buf, "+");
        else sl_buf_printf(buf, "%%%02X", b);
    }
}

static sl_status quote_pairs(sl_jinja_call *c, sl_buf *buf, sl_jinja_value pairs) {
    sl_jinja_iter it;
    bool done, first = true;
    if (pairs.type == SL_JINJA_DICT) {
        pairs.type = SL_JINJA_VIEW;
        pairs.aux = SL_JINJA_ITEMS;
    }
    SL_TRY(sl_jinja_iter_init(&it, pairs));
    for (sl_jinja_value item;; first = false) {
        sl_jinja_vec pair = {0};
        SL_TRY(sl_jinja_iter_next(c->run, &it, &item, &done));
        if (done) return SL_OK;
        SL_TRY(sl_jinja_collect(c->run, &pair, item));
        if (pair.n != 2) return SL_FAIL(SL_BAD_INPUT, "urlencode: pairs are wanted");
        if (!first) sl_buf_text(buf, "&");
        for (int i = 0; i < 2; i++) {
            SL_TRY(sl_jinja_str(c->run, &item, pair.items[i]));
            quote(buf, sl_jinja_span(item), true);
            if (i == 0) sl_buf_text(buf, "=");
        }
    }
}

static sl_status filter_urlencode(sl_jinja_call *c, sl_jinja_value *out) {
    sl_buf buf = sl_jinja_scratch(c->run);
    sl_status status = SL_OK;
    if (c->self.type == SL_JINJA_TEXT || !sl_jinja_iterable(c->self)) {
        SL_TRY(sl_jinja_str(c->run, out, c->self));
        quote(&buf, sl_jinja_span(*out), false);
    } else {
        status = quote_pairs(c, &buf, c->self);
    }
    return sl_jinja_take(c->run, out, &buf, status);
}

static sl_status filter_format(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value s, args = {.type = SL_JINJA_DICT, .as.dict = (sl_jinja_dict *)c->args->kw}, *items = NULL;
    if (c->args->n_pos && c->args->kw->n) return SL_FAIL(SL_BAD_INPUT, "format takes values or keywords, not both");
    SL_TRY(soft_str(c, &s));
    if (!c->args->kw->n) {
        SL_TRY(sl_jinja_list_make(c->run, &args, SL_JINJA_TUPLE, &items, c->args->n_pos));
        if (c->args->n_pos) memcpy(items, c->args->pos, c->args->n_pos * sizeof *items);
    }
    return sl_jinja_percent(c->run, out, s, args);
}

static const sl_jinja_builtin entries[] = {
    {"upper", filter_upper, "", 0, 0},
    {"lower", filter_lower, "", 0, 0},
    {"capitalize", filter_capitalize, "", 0, 0},
    {"title", filter_title, "", 0, 0},
    {"trim", filter_trim, "chars", 0, 0},
    {"replace", filter_replace, "old new count", 2, 0},
    {"indent", filter_indent, "width first blank", 0, 0},
    {"truncate", filter_truncate, "length killwords end leeway", 0, 0},
    {"center", filter_center, "width", 0, 0},
    {"wordcount", filter_wordcount, "", 0, 0},
    {"string", filter_string, "", 0, 0},
    {"safe", filter_safe, "", 0, 0},
    {"escape", filter_escape, "", 0, 0},
    {"e", filter_escape, "", 0, 0},
    {"forceescape", filter_forceescape, "", 0, 0},
    {"urlencode", filter_urlencode, "", 0, 0},
    {"format", filter_format, "*", 0, 0},
};
const sl_jinja_table sl_jinja_filters_text = {entries, SL_COUNT(entries)};
