// SPDX-License-Identifier: MIT
//
// Methods of texts that cut and join. Parts share the bytes of the whole.
#include "text/jinja_builtin.h"
#include "text/jinja_text.h"

static sl_status push_part(sl_jinja_call *c, sl_jinja_vec *parts, const char *data, size_t n) {
    sl_jinja_value v;
    SL_TRY(sl_jinja_text_share(c->run, &v, data, n));
    v.flags = c->self.flags;
    return sl_jinja_push(c->run, parts, v);
}

static void turn(sl_jinja_vec *parts) {
    for (size_t i = 0; i < parts->n / 2; i++) {
        sl_jinja_value swap = parts->items[i];
        parts->items[i] = parts->items[parts->n - 1 - i];
        parts->items[parts->n - 1 - i] = swap;
    }
}

static sl_status split_spaces(sl_jinja_call *c, sl_jinja_vec *parts, int64_t max, bool from_end) {
    sl_span rest = sl_jinja_strip(sl_jinja_span(c->self), NULL, from_end ? 2 : 1);
    while (rest.n_bytes && max-- != 0) {
        size_t begin = 0, end = rest.n_bytes, at = 0;
        if (from_end) { // the word at the end begins after the last space
            begin = end;
            while (begin > 0) {
                size_t from = begin - 1;
                while (((unsigned char)rest.data[from] & 0xc0) == 0x80) from--;
                at = from;
                if (sl_jinja_is_space(sl_jinja_char(rest, &at))) break;
                begin = from;
            }
        } else {
            for (end = 0; end < rest.n_bytes; end = at)
                if (sl_jinja_is_space(sl_jinja_char(rest, &at))) break;
        }
        SL_TRY(push_part(c, parts, rest.data + begin, end - begin));
        rest = from_end ? sl_jinja_strip(sl_span_make(rest.data, begin), NULL, 2)
                        : sl_jinja_strip(sl_span_make(rest.data + end, rest.n_bytes - end), NULL, 1);
    }
    return rest.n_bytes ? push_part(c, parts, rest.data, rest.n_bytes) : SL_OK;
}

static sl_status split_at(sl_jinja_call *c, sl_jinja_vec *parts, sl_span between, int64_t max) {
    sl_span rest = sl_jinja_span(c->self);
    while (max-- != 0) {
        size_t at = sl_jinja_find(rest, between);
        if (at == SIZE_MAX) break;
        SL_TRY(push_part(c, parts, rest.data, at));
        rest = sl_span_make(rest.data + at + between.n_bytes, rest.n_bytes - at - between.n_bytes);
    }
    return push_part(c, parts, rest.data, rest.n_bytes);
}

static sl_status rsplit_at(sl_jinja_call *c, sl_jinja_vec *parts, sl_span between, int64_t max) {
    sl_span rest = sl_jinja_span(c->self);
    while (max-- != 0) {
        size_t at;
        SL_TRY(sl_jinja_rfind(c->run, &at, rest, between));
        if (at == SIZE_MAX) break;
        size_t end = at + between.n_bytes;
        SL_TRY(push_part(c, parts, rest.data + end, rest.n_bytes - end));
        rest.n_bytes = at;
    }
    return push_part(c, parts, rest.data, rest.n_bytes);
}

static sl_status split(sl_jinja_call *c, sl_jinja_value *out, bool from_end) {
    sl_jinja_vec parts = {0};
    sl_span between;
    int64_t max;
    SL_TRY(sl_jinja_want_int(c->v[1], -1, &max));
    SL_TRY(sl_jinja_step(c->run, c->self.as.text->n_bytes / 64));
    if (c->v[0].type == SL_JINJA_MISSING || c->v[0].type == SL_JINJA_NONE) {
        SL_TRY(split_spaces(c, &parts, max, from_end));
    } else {
        SL_TRY(sl_jinja_want_text(c->v[0], &between));
        if (between.n_bytes == 0) return SL_FAIL(SL_BAD_INPUT, "split: the separator is empty");
        SL_TRY(from_end ? rsplit_at(c, &parts, between, max) : split_at(c, &parts, between, max));
    }
    if (from_end) turn(&parts);
    return sl_jinja_list_make(c->run, out, SL_JINJA_LIST, &parts.items, parts.n);
}

static sl_status method_split(sl_jinja_call *c, sl_jinja_value *out) { return split(c, out, false); }
static sl_status method_rsplit(sl_jinja_call *c, sl_jinja_value *out) { return split(c, out, true); }

static sl_status method_splitlines(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec lines = {0};
    sl_span s = sl_jinja_span(c->self);
    bool keep = sl_jinja_truth(c->v[0]);
    for (size_t begin = 0, at = 0; begin < s.n_bytes; begin = at) {
        size_t end = begin;
        while (at < s.n_bytes) {
            uint32_t cp = sl_jinja_char(s, &at);
            if (sl_jinja_is_line_end(cp)) {
                if (cp == '\r' && at < s.n_bytes && s.data[at] == '\n') at++;
                break;
            }
            end = at;
        }
        SL_TRY(push_part(c, &lines, s.data + begin, (keep ? at : end) - begin));
    }
    return sl_jinja_list_make(c->run, out, SL_JINJA_LIST, &lines.items, lines.n);
}

static sl_status partition(sl_jinja_call *c, sl_jinja_value *out, bool from_end) {
    sl_span s = sl_jinja_span(c->self), between;
    SL_TRY(sl_jinja_want_text(c->v[0], &between));
    if (between.n_bytes == 0) return SL_FAIL(SL_BAD_INPUT, "partition: the separator is empty");
    size_t at = SIZE_MAX;
    if (from_end) SL_TRY(sl_jinja_rfind(c->run, &at, s, between));
    else at = sl_jinja_find(s, between);
    bool found = at != SIZE_MAX;
    size_t head = found ? at : from_end ? 0 : s.n_bytes, tail = found ? at + between.n_bytes : head;
    sl_jinja_vec parts = {0};
    SL_TRY(push_part(c, &parts, s.data, head));
    SL_TRY(push_part(c, &parts, s.data + head, tail - head));
    SL_TRY(push_part(c, &parts, s.data + tail, s.n_bytes - tail));
    return sl_jinja_list_make(c->run, out, SL_JINJA_TUPLE, &parts.items, parts.n);
}

static sl_status method_partition(sl_jinja_call *c, sl_jinja_value *out) { return partition(c, out, false); }
static sl_status method_rpartition(sl_jinja_call *c, sl_jinja_value *out) { return partition(c, out, true); }

static sl_status method_join(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec parts = {0};
    SL_TRY(sl_jinja_collect(c->run, &parts, c->v[0]));
    bool markup = c->self.flags & SL_JINJA_MARKUP;
    sl_buf buf = sl_jinja_scratch(c->run);
    sl_status status = SL_OK;
    for (size_t i = 0; i < parts.n && status == SL_OK; i++) {
        sl_span part = {0};
        if (i) status = sl_jinja_str_to(c->run, &buf, c->self);
        if (status == SL_OK && markup) status = sl_jinja_escaped(c->run, &parts.items[i], parts.items[i]);
        if (status == SL_OK) status = sl_jinja_want_text(parts.items[i], &part);
        sl_buf_append(&buf, part.data, part.n_bytes);
    }
    SL_TRY(sl_jinja_take(c->run, out, &buf, status));
    out->flags = c->self.flags;
    return SL_OK;
}

static const sl_jinja_builtin entries[] = {
    {"split", method_split, "sep maxsplit", 0, SL_JINJA_TEXT},
    {"rsplit", method_rsplit, "sep maxsplit", 0, SL_JINJA_TEXT},
    {"splitlines", method_splitlines, "keepends", 0, SL_JINJA_TEXT},
    {"partition", method_partition, "/sep", 1, SL_JINJA_TEXT},
    {"rpartition", method_rpartition, "/sep", 1, SL_JINJA_TEXT},
    {"join", method_join, "/iterable", 1, SL_JINJA_TEXT},
};
const sl_jinja_table sl_jinja_methods_split = {entries, SL_COUNT(entries)};
