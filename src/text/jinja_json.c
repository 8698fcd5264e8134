// SPDX-License-Identifier: MIT
//
// JSON in (by jansson: order kept, a repeated key keeps its place and takes the last value, as in
// Python) and out (byte for byte what Python's json.dumps writes, with its four options).
#include <jansson.h>
#include <math.h>

#include "base/utf8.h"
#include "text/jinja_text.h"

// ---- in ----

static sl_status from_json(sl_jinja_run *run, sl_jinja_value *out, const json_t *json, unsigned depth);

static sl_status from_array(sl_jinja_run *run, sl_jinja_value *out, const json_t *json, unsigned depth) {
    sl_jinja_value *items = NULL;
    SL_TRY(sl_jinja_list_make(run, out, SL_JINJA_LIST, &items, json_array_size(json)));
    for (size_t i = 0; i < json_array_size(json); i++)
        SL_TRY(from_json(run, &items[i], json_array_get(json, i), depth + 1));
    return SL_OK;
}

static sl_status from_object(sl_jinja_run *run, sl_jinja_value *out, const json_t *json, unsigned depth) {
    const char *name;
    json_t *member;
    sl_jinja_value key, value;
    SL_TRY(sl_jinja_dict_make(run, out));
    json_object_foreach((json_t *)json, name, member) {
        SL_TRY(sl_jinja_text_copy(run, &key, name, strlen(name)));
        SL_TRY(from_json(run, &value, member, depth + 1));
        SL_TRY(sl_jinja_dict_set(run, out->as.dict, key, value));
    }
    return SL_OK;
}

static sl_status from_json(sl_jinja_run *run, sl_jinja_value *out, const json_t *json, unsigned depth) {
    if (depth > SL_JINJA_MAX_NESTING)
        return SL_FAIL(SL_BAD_INPUT, "the conversation nests more than %d deep", SL_JINJA_MAX_NESTING);
    switch (json_typeof(json)) {
    case JSON_OBJECT: return from_object(run, out, json, depth);
    case JSON_ARRAY: return from_array(run, out, json, depth);
    case JSON_STRING: return sl_jinja_text_copy(run, out, json_string_value(json), json_string_length(json));
    case JSON_INTEGER: *out = sl_jinja_int(json_integer_value(json)); return SL_OK;
    case JSON_REAL: *out = sl_jinja_float(json_real_value(json)); return SL_OK;
    case JSON_TRUE:
    case JSON_FALSE: *out = sl_jinja_bool(json_is_true(json)); return SL_OK;
    default: *out = sl_jinja_none(); return SL_OK;
    }
}

sl_status sl_jinja_json_parse(sl_jinja_run *run, sl_jinja_value *out, sl_span text) {
    json_error_t error;
    json_t *json = json_loadb(text.data ? text.data : "", text.n_bytes, JSON_ALLOW_NUL, &error);
    *out = sl_jinja_none();
    if (!json) return SL_FAIL(SL_BAD_INPUT, "the conversation is no JSON: line %d: %s", error.line, error.text);
    sl_status status = from_json(run, out, json, 0);
    json_decref(json);
    return status;
}

// ---- out ----

typedef struct writer {
    sl_jinja_run *run;
    sl_buf buf;
    bool ensure_ascii, sort_keys, pretty;
    sl_span indent, item_separator, key_separator;
} writer;

static char short_escape(uint32_t cp) { // the letter after the backslash, 0 if there is none
    switch (cp) {
    case '"':
    case '\\': return (char)cp;
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    case '\f': return 'f';
    case '\b': return 'b';
    default: return 0;
    }
}

static void write_text(writer *w, sl_span s) {
    sl_buf_text(&w->buf, "\"");
    for (size_t i = 0; i < s.n_bytes && w->buf.status == SL_OK;) {
        size_t begin = i;
        uint32_t cp = sl_jinja_char(s, &i);
        char letter = short_escape(cp);
        if (letter) sl_buf_printf(&w->buf, "\\%c", letter);
        else if (cp < 0x20 || (w->ensure_ascii && cp == 0x7f)) sl_buf_printf(&w->buf, "\\u%04x", (unsigned)cp);
        else if (!w->ensure_ascii || cp < 0x80) sl_buf_append(&w->buf, s.data + begin, i - begin);
        else if (cp < 0x10000) sl_buf_printf(&w->buf, "\\u%04x", (unsigned)cp);
        else sl_buf_printf(&w->buf, "\\u%04x\\u%04x", 0xd7c0 + (unsigned)(cp >> 10), 0xdc00 + (unsigned)(cp & 0x3ff));
    }
    sl_buf_text(&w->buf, "\"");
}

static void write_float(writer *w, double f) {
    char number[40];
    sl_jinja_float_repr(number, f);
    sl_buf_text(&w->buf, isnan(f) ? "NaN" : isinf(f) ? f < 0 ? "-Infinity" : "Infinity" : number);
}

static void write_line(writer *w, unsigned depth) {
    if (!w->pretty) return;
    sl_buf_text(&w->buf, "\n");
    for (unsigned i = 0; i < depth; i++) sl_buf_append(&w->buf, w->indent.data, w->indent.n_bytes);
}

static sl_status write_value(writer *w, sl_jinja_value v, unsigned depth);

static sl_status write_list(writer *w, const sl_jinja_list *list, unsigned depth) {
    if (list->n == 0) return sl_buf_text(&w->buf, "[]"), w->buf.status;
    sl_buf_text(&w->buf, "[");
    for (size_t i = 0; i < list->n; i++) {
        if (i) sl_buf_append(&w->buf, w->item_separator.data, w->item_separator.n_bytes);
        write_line(w, depth + 1);
        SL_TRY(write_value(w, list->items[i], depth + 1));
    }
    write_line(w, depth);
    sl_buf_text(&w->buf, "]");
    return w->buf.status;
}

static sl_status write_key(writer *w, sl_jinja_value key) {
    switch (key.type) {
    case SL_JINJA_TEXT: write_text(w, sl_jinja_span(key)); return SL_OK;
    case SL_JINJA_NONE: sl_buf_text(&w->buf, "\"null\""); return SL_OK;
    case SL_JINJA_BOOL:
    case SL_JINJA_INT:
    case SL_JINJA_FLOAT:
        sl_buf_text(&w->buf, "\"");
        SL_TRY(write_value(w, key, 0));
        sl_buf_text(&w->buf, "\"");
        return SL_OK;
    default: return SL_FAIL(SL_BAD_INPUT, "tojson: a %s cannot be a key in JSON", sl_jinja_type_name(key));
    }
}

static sl_status sorted_entries(writer *w, const sl_jinja_dict *dict, sl_jinja_value **order) {
    sl_jinja_value *keys;
    SL_TRY(sl_jinja_alloc(w->run, &keys, dict->n, sizeof *keys));
    SL_TRY(sl_jinja_alloc(w->run, order, dict->n, sizeof **order));
    for (size_t i = 0; i < dict->n; i++) {
        keys[i] = dict->entries[i].key;
        (*order)[i] = sl_jinja_int((int64_t)i);
    }
    return sl_jinja_sort(w->run, *order, keys, dict->n, false);
}

static sl_status write_dict(writer *w, const sl_jinja_dict *dict, unsigned depth) {
    sl_jinja_value *order = NULL;
    if (dict->n == 0) return sl_buf_text(&w->buf, "{}"), w->buf.status;
    if (w->sort_keys) SL_TRY(sorted_entries(w, dict, &order));
    sl_buf_text(&w->buf, "{");
    for (size_t i = 0; i < dict->n; i++) {
        const sl_jinja_entry *e = &dict->entries[order ? (size_t)order[i].as.i : i];
        if (i) sl_buf_append(&w->buf, w->item_separator.data, w->item_separator.n_bytes);
        write_line(w, depth + 1);
        SL_TRY(write_key(w, e->key));
        sl_buf_append(&w->buf, w->key_separator.data, w->key_separator.n_bytes);
        SL_TRY(write_value(w, e->value, depth + 1));
    }
    write_line(w, depth);
    sl_buf_text(&w->buf, "}");
    return w->buf.status;
}

static sl_status write_value(writer *w, sl_jinja_value v, unsigned depth) {
    if (depth > SL_JINJA_MAX_NESTING)
        return SL_FAIL(SL_BAD_INPUT, "tojson: a value nests more than %d deep", SL_JINJA_MAX_NESTING);
    SL_TRY(sl_jinja_step(w->run, 4 + (v.type == SL_JINJA_TEXT ? v.as.text->n_bytes / 64 : 0)));
    switch (v.type) {
    case SL_JINJA_NONE: sl_buf_text(&w->buf, "null"); break;
    case SL_JINJA_BOOL: sl_buf_text(&w->buf, v.as.b ? "true" : "false"); break;
    case SL_JINJA_INT: sl_buf_printf(&w->buf, "%lld", (long long)v.as.i); break;
    case SL_JINJA_FLOAT: write_float(w, v.as.f); break;
    case SL_JINJA_TEXT: write_text(w, sl_jinja_span(v)); break;
    case SL_JINJA_LIST:
    case SL_JINJA_TUPLE: return write_list(w, v.as.list, depth);
    case SL_JINJA_DICT: return write_dict(w, v.as.dict, depth);
    case SL_JINJA_UNDEFINED: return sl_jinja_fail_undefined(v);
    default: return SL_FAIL(SL_BAD_INPUT, "tojson: a %s has no JSON", sl_jinja_type_name(v));
    }
    return w->buf.status;
}

static sl_status set_indent(writer *w, sl_jinja_value v) {
    w->pretty = v.type != SL_JINJA_MISSING && v.type != SL_JINJA_NONE;
    if (!w->pretty) return SL_OK;
    if (sl_jinja_is_text(v)) return w->indent = sl_jinja_span(v), SL_OK;
    if (!sl_jinja_is_int(v))
        return SL_FAIL(SL_BAD_INPUT, "tojson: indent is a %s, not a number", sl_jinja_type_name(v));
    int64_t n = SL_MAX(sl_jinja_as_int(v), 0);
    char *spaces;
    SL_TRY(sl_jinja_alloc(w->run, &spaces, (size_t)n, 1));
    memset(spaces, ' ', (size_t)n);
    w->indent = sl_span_make(spaces, (size_t)n);
    return SL_OK;
}

static sl_status set_separators(writer *w, sl_jinja_value v) {
    w->item_separator = sl_span_of(w->pretty ? "," : ", ");
    w->key_separator = sl_span_of(": ");
    if (v.type == SL_JINJA_MISSING || v.type == SL_JINJA_NONE) return SL_OK;
    sl_jinja_vec two = {0};
    SL_TRY(sl_jinja_collect(w->run, &two, v));
    if (two.n != 2 || !sl_jinja_is_text(two.items[0]) || !sl_jinja_is_text(two.items[1]))
        return SL_FAIL(SL_BAD_INPUT, "tojson: separators are two texts");
    w->item_separator = sl_jinja_span(two.items[0]);
    w->key_separator = sl_jinja_span(two.items[1]);
    return SL_OK;
}

// opt: ensure_ascii, indent, separators, sort_keys
sl_status sl_jinja_json_dump(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value v, const sl_jinja_value opt[4]) {
    writer w = {.run = run, .ensure_ascii = sl_jinja_truth(opt[0]), .sort_keys = sl_jinja_truth(opt[3])};
    SL_TRY(set_indent(&w, opt[1]));
    SL_TRY(set_separators(&w, opt[2]));
    w.buf = sl_jinja_scratch(run);
    sl_status status = write_value(&w, v, 0);
    return sl_jinja_take(run, out, &w.buf, status);
}
