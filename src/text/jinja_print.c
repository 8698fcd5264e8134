// SPDX-License-Identifier: MIT
//
// Python's str() and repr(). Floats print the shortest digits that read back as the same number, in
// Python's layout. Depth is bounded, since a namespace can hold itself.
#include <locale.h>
#include <math.h>

#include "base/utf8.h"
#include "text/jinja_callable.h"
#include "text/jinja_text.h"

sl_buf sl_jinja_scratch(const sl_jinja_run *run) {
    size_t room = run->max_arena_bytes - run->arena.n_bytes;
    return (sl_buf){.max_bytes = SL_MAX(room, (size_t)1)};
}

sl_status sl_jinja_take(sl_jinja_run *run, sl_jinja_value *out, sl_buf *buf, sl_status status) {
    if (status == SL_OK) status = buf->status;
    if (status == SL_OK) status = sl_jinja_step(run, buf->n_bytes / 8); // what it took to build
    if (status == SL_OK) status = sl_jinja_text_copy(run, out, buf->data, buf->n_bytes);
    sl_buf_deinit(buf);
    return status;
}

// ---- numbers ----

// printf and strtod write and read the decimal point of the process's locale, which is not ours to
// choose.
static char decimal_point(void) {
    const struct lconv *conv = localeconv();
    return conv && conv->decimal_point && conv->decimal_point[0] ? conv->decimal_point[0] : '.';
}

sl_status sl_jinja_parse_float(double *out, const char *data, size_t n, bool *ok) {
    char small[64], *text = small, *end;
    *out = 0;
    *ok = false;
    if (n >= sizeof small) SL_TRY(sl_alloc(&text, n + 1, 1, "number"));
    char point = decimal_point();
    for (size_t i = 0; i < n; i++) text[i] = data[i] == '.' ? point : data[i];
    text[n] = 0;
    *out = strtod(text, &end);
    *ok = n > 0 && end == text + n;
    if (text != small) sl_free(text);
    return SL_OK;
}

// Digits and decimal exponent of |f|: 0.d1d2... * 10^exp.
static int shortest_digits(char digits[20], int *exp, double f) {
    char text[48];
    for (int n = 1; n <= 17; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, f);
        if (n == 17 || strtod(text, NULL) == f) break;
    }
    int n = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
    *exp = *p ? atoi(p + 1) + 1 : 1;
    while (n > 1 && digits[n - 1] == '0') n--;
    digits[n] = 0;
    return n;
}

void sl_jinja_float_repr(char out[40], double f) {
    char digits[20];
    int exp;
    if (isnan(f)) {
        strcpy(out, "nan");
        return;
    }
    if (signbit(f)) *out++ = '-';
    f = fabs(f);
    if (isinf(f)) {
        strcpy(out, "inf");
        return;
    }
    int n = shortest_digits(digits, &exp, f);
    if (f == 0) exp = 1;
    if (exp > 16 || exp < -3) {
        out += sprintf(out, "%c%s%s", digits[0], n > 1 ? "." : "", digits + 1);
        sprintf(out, "e%c%02d", exp > 0 ? '+' : '-', abs(exp - 1));
    } else if (exp <= 0) {
        out += sprintf(out, "0.");
        for (int i = exp; i < 0; i++) *out++ = '0';
        strcpy(out, digits);
    } else {
        for (int i = 0; i < SL_MAX(n, exp); i++) {
            if (i == exp) *out++ = '.';
            *out++ = i < n ? digits[i] : '0';
        }
        strcpy(out, n > exp ? "" : ".0");
    }
}

// ---- repr ----

static void repr_text(sl_buf *buf, sl_span s) {
    bool single = memchr(s.data, '\'', s.n_bytes) != NULL, both = single && memchr(s.data, '"', s.n_bytes);
    char quote = single && !both ? '"' : '\'';
    sl_buf_append(buf, &quote, 1);
    for (size_t i = 0; i < s.n_bytes && buf->status == SL_OK;) {
        size_t begin = i;
        uint32_t cp = sl_jinja_char(s, &i);
        if (cp == (unsigned char)quote || cp == '\\') sl_buf_printf(buf, "\\%c", (int)cp);
        else if (cp == '\n') sl_buf_text(buf, "\\n");
        else if (cp == '\r') sl_buf_text(buf, "\\r");
        else if (cp == '\t') sl_buf_text(buf, "\\t");
        else if (sl_jinja_is_printable(cp)) sl_buf_append(buf, s.data + begin, i - begin);
        else sl_buf_printf(buf, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
    }
    sl_buf_append(buf, &quote, 1);
}

static sl_status repr_list(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v, unsigned depth) {
    bool tuple = v.type == SL_JINJA_TUPLE;
    sl_buf_text(buf, tuple ? "(" : "[");
    for (size_t i = 0; i < v.as.list->n; i++) {
        if (i) sl_buf_text(buf, ", ");
        SL_TRY(sl_jinja_repr_to(run, buf, v.as.list->items[i], depth + 1));
    }
    sl_buf_text(buf, tuple ? v.as.list->n == 1 ? ",)" : ")" : "]");
    return buf->status;
}

static sl_status repr_dict(sl_jinja_run *run, sl_buf *buf, const sl_jinja_dict *dict, unsigned depth) {
    sl_buf_text(buf, "{");
    for (size_t i = 0; i < dict->n; i++) {
        if (i) sl_buf_text(buf, ", ");
        SL_TRY(sl_jinja_repr_to(run, buf, dict->entries[i].key, depth + 1));
        sl_buf_text(buf, ": ");
        SL_TRY(sl_jinja_repr_to(run, buf, dict->entries[i].value, depth + 1));
    }
    sl_buf_text(buf, "}");
    return buf->status;
}

static sl_status repr_view(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v, unsigned depth) {
    static const char *const names[] = {"dict_keys([", "dict_values([", "dict_items(["};
    sl_jinja_iter it;
    bool done;
    sl_buf_text(buf, names[v.aux]);
    SL_TRY(sl_jinja_iter_init(&it, v));
    for (size_t i = 0;; i++) {
        sl_jinja_value item;
        SL_TRY(sl_jinja_iter_next(run, &it, &item, &done));
        if (done) break;
        if (i) sl_buf_text(buf, ", ");
        SL_TRY(sl_jinja_repr_to(run, buf, item, depth + 1));
    }
    sl_buf_text(buf, "])");
    return buf->status;
}

static void repr_range(sl_buf *buf, const sl_jinja_range *r) {
    sl_buf_printf(buf, "range(%lld, %lld", (long long)r->start, (long long)r->stop);
    if (r->step != 1) sl_buf_printf(buf, ", %lld", (long long)r->step);
    sl_buf_text(buf, ")");
}

// Things without a literal. Python shows an address for some of them, which nobody can want.
static sl_status repr_object(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v) {
    size_t n;
    switch (v.type) {
    case SL_JINJA_MACRO:
        sl_buf_text(buf, "<Macro ");
        if (v.as.macro->name) repr_text(buf, sl_span_make(v.as.macro->name->data, v.as.macro->name->n_bytes));
        else sl_buf_text(buf, "anonymous");
        sl_buf_text(buf, ">");
        break;
    case SL_JINJA_LOOP:
        SL_TRY(sl_jinja_loop_length(run, &n, v.as.loop));
        sl_buf_printf(buf, "<LoopContext %zu/%zu>", v.as.loop->index, n);
        break;
    default: sl_buf_printf(buf, "<%s object>", sl_jinja_type_name(v));
    }
    return buf->status;
}

sl_status sl_jinja_repr_to(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v, unsigned depth) {
    char number[40];
    if (depth > SL_JINJA_MAX_NESTING)
        return SL_FAIL(SL_BAD_INPUT, "a value nests more than %d deep and cannot be printed", SL_JINJA_MAX_NESTING);
    SL_TRY(sl_jinja_step(run, 4)); // a print costs as much as a few nodes
    switch (v.type) {
    case SL_JINJA_MISSING:
    case SL_JINJA_UNDEFINED: sl_buf_text(buf, "Undefined"); return buf->status;
    case SL_JINJA_NONE: sl_buf_text(buf, "None"); return buf->status;
    case SL_JINJA_BOOL: sl_buf_text(buf, v.as.b ? "True" : "False"); return buf->status;
    case SL_JINJA_INT: sl_buf_printf(buf, "%lld", (long long)v.as.i); return buf->status;
    case SL_JINJA_FLOAT:
        sl_jinja_float_repr(number, v.as.f);
        sl_buf_text(buf, number);
        return buf->status;
    case SL_JINJA_TEXT:
        if (v.flags & SL_JINJA_MARKUP) sl_buf_text(buf, "Markup(");
        repr_text(buf, sl_jinja_span(v));
        if (v.flags & SL_JINJA_MARKUP) sl_buf_text(buf, ")");
        return buf->status;
    case SL_JINJA_LIST:
    case SL_JINJA_TUPLE: return repr_list(run, buf, v, depth);
    case SL_JINJA_DICT: return repr_dict(run, buf, v.as.dict, depth);
    case SL_JINJA_RANGE: repr_range(buf, v.as.range); return buf->status;
    case SL_JINJA_VIEW: return repr_view(run, buf, v, depth);
    case SL_JINJA_NAMESPACE:
        sl_buf_text(buf, "<Namespace ");
        SL_TRY(repr_dict(run, buf, v.as.dict, depth));
        sl_buf_text(buf, ">");
        return buf->status;
    default: return repr_object(run, buf, v);
    }
}

sl_status sl_jinja_str_to(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v) {
    if (v.type == SL_JINJA_TEXT) {
        SL_TRY(sl_jinja_step(run, v.as.text->n_bytes / 64));
        sl_buf_append(buf, v.as.text->data, v.as.text->n_bytes);
        return buf->status;
    }
    if (v.type == SL_JINJA_UNDEFINED) return SL_OK;
    return sl_jinja_repr_to(run, buf, v, 0);
}

sl_status sl_jinja_str(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value v) {
    if (v.type == SL_JINJA_TEXT) {
        *out = v;
        out->flags = 0;
        return SL_OK;
    }
    sl_buf buf = sl_jinja_scratch(run);
    return sl_jinja_take(run, out, &buf, sl_jinja_str_to(run, &buf, v));
}
