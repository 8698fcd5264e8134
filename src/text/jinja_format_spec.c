// SPDX-License-Identifier: MIT
//
// The layout of one value: Python's format specifications and % conversions, which share all but
// their spelling.
#include "text/jinja_format.h"

#include <math.h>

#include "base/utf8.h"
#include "text/jinja_callable.h"
#include "text/jinja_text.h"

static void put_fill(sl_buf *buf, sl_span fill, size_t n) {
    for (; n > 0 && buf->status == SL_OK; n--) sl_buf_append(buf, fill.data, fill.n_bytes);
}

// `prefix` (sign, 0x) stays in front of the fill where align is '='.
static void put_padded(sl_buf *buf, sl_span prefix, sl_span body, const sl_jinja_field *f, char align) {
    size_t n = sl_jinja_count_chars(prefix.data, prefix.n_bytes) + sl_jinja_count_chars(body.data, body.n_bytes);
    size_t gap = f->width > 0 && (size_t)f->width > n ? (size_t)f->width - n : 0;
    size_t left = align == '>' ? gap : align == '^' ? gap / 2 : 0;
    put_fill(buf, f->fill, left);
    sl_buf_append(buf, prefix.data, prefix.n_bytes);
    if (align == '=') put_fill(buf, f->fill, gap);
    sl_buf_append(buf, body.data, body.n_bytes);
    if (align != '=') put_fill(buf, f->fill, gap - left);
}

sl_status sl_jinja_convert(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value v, char how) {
    if (how == 's') return sl_jinja_str(run, out, v);
    sl_buf buf = sl_jinja_scratch(run);
    SL_TRY(sl_jinja_take(run, out, &buf, sl_jinja_repr_to(run, &buf, v, 0)));
    if (how == 'r') return SL_OK;
    buf = sl_jinja_scratch(run);
    for (size_t at = 0; at < out->as.text->n_bytes;) {
        uint32_t cp = sl_jinja_char(sl_jinja_span(*out), &at);
        if (cp < 0x80) sl_buf_printf(&buf, "%c", (int)cp);
        else sl_buf_printf(&buf, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
    }
    return sl_jinja_take(run, out, &buf, SL_OK);
}

// ---- digits ----

// Groups digits from the right, with zeros in front of them until there are `width` characters.
static void put_grouped(sl_buf *buf, const char *digits, size_t n, char separator, size_t every, size_t width) {
    size_t all = n;
    while (separator && all && all + (all - 1) / every < width) all++;
    for (size_t i = all; i > 0 && buf->status == SL_OK; i--) {
        sl_buf_append(buf, i > n ? "0" : digits + n - i, 1);
        if (separator && i > 1 && (i - 1) % every == 0) sl_buf_append(buf, &separator, 1);
    }
}

// How wide a grouped number has to be where zeros fill it; `rest` characters are not digits of it.
static size_t grouped_width(const sl_jinja_field *f, size_t rest) {
    bool zeros = f->group && f->align == '=' && f->fill.data[0] == '0';
    return zeros && f->width > 0 && (size_t)f->width > rest ? (size_t)f->width - rest : 0;
}

static const char *sign_of(bool negative, char sign) {
    return negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "";
}

static sl_status put_int(sl_buf *buf, int64_t v, const sl_jinja_field *f) {
    char digits[70], prefix[4];
    uint64_t rest = v < 0 ? -(uint64_t)v : (uint64_t)v;
    unsigned base = f->type == 'x' || f->type == 'X' ? 16 : f->type == 'o' ? 8 : f->type == 'b' ? 2 : 10;
    size_t n = sizeof digits;
    do digits[--n] = (f->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[rest % base];
    while ((rest /= base) != 0);
    char mark[3] = {'0', f->type, 0};
    snprintf(prefix, sizeof prefix, "%s%s", sign_of(v < 0, f->sign), f->alternate && base != 10 ? mark : "");
    sl_buf body = {.max_bytes = buf->max_bytes};
    size_t n_digits = sizeof digits - n;
    for (int zeros = f->precision - (int)n_digits; zeros > 0 && body.status == SL_OK; zeros--) sl_buf_text(&body, "0");
    put_grouped(&body, digits + n, n_digits, f->group, base == 10 ? 3 : 4, grouped_width(f, strlen(prefix)));
    put_padded(buf, sl_span_of(prefix), sl_span_make(body.data, body.n_bytes), f, f->align ? f->align : '>');
    sl_buf_deinit(&body);
    return buf->status;
}

static void fix_point(sl_buf *text) { // the locale's decimal point
    for (size_t i = 0; i < text->n_bytes; i++) {
        char c = text->data[i];
        bool kept = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+';
        if (!kept) text->data[i] = '.';
    }
}

// No type but a precision: as g, but a whole number shows ".0", and exponents begin one digit
// earlier to leave room for it.
static void short_digits(sl_buf *text, double v, int precision) {
    char small[64];
    int digits = SL_MIN(SL_MAX(precision, 1), 40);
    snprintf(small, sizeof small, "%.*e", digits - 1, v);
    char *e = strchr(small, 'e');
    int exp = atoi(e + 1);
    if (exp >= -4 && exp < digits - 1) {
        sl_buf_printf(text, "%.*g", precision, v);
        size_t n = 0;
        while (n < text->n_bytes && text->data[n] >= '0' && text->data[n] <= '9') n++;
        if (n == text->n_bytes) sl_buf_text(text, ".0");
        return;
    }
    char *end = e;
    while (digits > 1 && end[-1] == '0') end--;
    if (end > small + 1 && (end[-1] < '0' || end[-1] > '9')) end--; // the point
    sl_buf_append(text, small, (size_t)(end - small));
    sl_buf_text(text, e);
}

// Digits of |v|, as the type says.
static void float_digits(sl_buf *text, double v, const sl_jinja_field *f, char type) {
    int precision = f->precision < 0 ? 6 : f->precision;
    if (!isfinite(v)) {
        bool upper = type >= 'A' && type <= 'Z';
        sl_buf_text(text, isnan(v) ? upper ? "NAN" : "nan" : upper ? "INF" : "inf");
    } else if (type == 0 && f->precision < 0) {
        char repr[40];
        sl_jinja_float_repr(repr, v);
        sl_buf_text(text, repr);
    } else {
        switch (type) { // '#' keeps the point and the zeros of g
        case 0: short_digits(text, v, precision); break;
        case 'e': sl_buf_printf(text, f->alternate ? "%#.*e" : "%.*e", precision, v); break;
        case 'E': sl_buf_printf(text, f->alternate ? "%#.*E" : "%.*E", precision, v); break;
        case 'g': sl_buf_printf(text, f->alternate ? "%#.*g" : "%.*g", precision, v); break;
        case 'G': sl_buf_printf(text, f->alternate ? "%#.*G" : "%.*G", precision, v); break;
        default: sl_buf_printf(text, f->alternate ? "%#.*f" : "%.*f", precision, type == '%' ? v * 100 : v);
        }
        fix_point(text);
    }
    if (type == '%') sl_buf_text(text, "%");
}

static sl_status put_float(sl_buf *buf, double v, const sl_jinja_field *f) {
    char type = f->type == 'n' ? 'g' : f->type;
    sl_buf text = {.max_bytes = buf->max_bytes}, body = {.max_bytes = buf->max_bytes};
    bool negative = signbit(v) && !isnan(v);
    float_digits(&text, fabs(v), f, type);
    size_t whole = 0;
    while (whole < text.n_bytes && text.data[whole] >= '0' && text.data[whole] <= '9') whole++;
    size_t rest = text.n_bytes - whole + strlen(sign_of(negative, f->sign));
    put_grouped(&body, text.data, whole, f->group, 3, grouped_width(f, rest));
    sl_buf_append(&body, text.data + whole, text.n_bytes - whole);
    if (text.status == SL_OK && body.status == SL_OK)
        put_padded(buf, sl_span_of(sign_of(negative, f->sign)), sl_span_make(body.data, body.n_bytes), f,
                   f->align ? f->align : '>');
    sl_status status = text.status != SL_OK ? text.status : body.status != SL_OK ? body.status : buf->status;
    sl_buf_deinit(&text);
    sl_buf_deinit(&body);
    return status;
}

static sl_status put_text(sl_buf *buf, sl_jinja_value s, const sl_jinja_field *f) {
    sl_span span = sl_jinja_span(s);
    if (f->precision >= 0 && (size_t)f->precision < s.as.text->n_chars)
        span.n_bytes = sl_jinja_offset(s.as.text, (size_t)f->precision);
    put_padded(buf, sl_span_make(NULL, 0), span, f, f->align ? f->align : '<');
    return buf->status;
}

// ---- % ----

static sl_status percent_int(sl_jinja_value v, int64_t *out, char type) {
    if (v.type == SL_JINJA_FLOAT && strchr("diu", type) && isfinite(v.as.f) && fabs(v.as.f) < 0x1p63)
        return *out = (int64_t)v.as.f, SL_OK;
    if (v.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(v);
    if (!sl_jinja_is_int(v))
        return SL_FAIL(SL_BAD_INPUT, "%%%c needs a whole number, not a %s", type, sl_jinja_type_name(v));
    return *out = sl_jinja_as_int(v), SL_OK;
}

static sl_status percent_char(sl_buf *buf, sl_jinja_value v, sl_jinja_field *f, sl_jinja_run *run) {
    char bytes[4];
    int64_t cp = sl_jinja_is_int(v) ? sl_jinja_as_int(v) : -1;
    if (v.type == SL_JINJA_TEXT && v.as.text->n_chars == 1) return put_text(buf, v, f);
    if (cp < 0 || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return SL_FAIL(SL_BAD_INPUT, "%%c needs one character or its number");
    SL_TRY(sl_jinja_text_copy(run, &v, bytes, sl_utf8_encode(bytes, (uint32_t)cp)));
    return put_text(buf, v, f);
}

sl_status sl_jinja_percent_value(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v, const sl_jinja_field *given,
                                 bool markup) {
    sl_jinja_field f = *given;
    int64_t i = 0;
    switch (f.type) {
    case 's':
    case 'r':
    case 'a':
        SL_TRY(f.type == 's' && markup ? sl_jinja_escaped(run, &v, v) : sl_jinja_convert(run, &v, v, f.type));
        if (f.type != 's' && markup) SL_TRY(sl_jinja_escaped(run, &v, v));
        return put_text(buf, v, &f);
    case 'c': f.precision = -1; return percent_char(buf, v, &f, run);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': SL_TRY(percent_int(v, &i, f.type)); return put_int(buf, i, &f);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (v.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(v);
        if (!sl_jinja_is_number(v))
            return SL_FAIL(SL_BAD_INPUT, "%%%c needs a number, not a %s", f.type, sl_jinja_type_name(v));
        return put_float(buf, sl_jinja_as_float(v), &f);
    default: return SL_FAIL(SL_BAD_INPUT, "there is no %% field of type '%c'", f.type);
    }
}

// ---- format specifications ----

static bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

static bool take_number(sl_span s, size_t *at, int *out) {
    size_t begin = *at;
    for (*out = 0; *at < s.n_bytes && s.data[*at] >= '0' && s.data[*at] <= '9'; ++*at)
        if ((*out = *out * 10 + s.data[*at] - '0') > 1 << 20) return false;
    if (*at == begin) *out = -1;
    return true;
}

static sl_status parse_spec(sl_jinja_field *f, sl_span s, char zero_align) {
    size_t at = 0, first = 0;
    *f = (sl_jinja_field){.width = -1, .precision = -1};
    if (s.n_bytes) sl_jinja_char(s, &first);
    if (first && first < s.n_bytes && is_align(s.data[first])) {
        f->fill = sl_span_make(s.data, first);
        f->align = s.data[first];
        at = first + 1;
    } else if (s.n_bytes && is_align(s.data[0])) {
        f->align = s.data[at++];
    }
    if (at < s.n_bytes && s.data[at] && strchr("+- ", s.data[at])) f->sign = s.data[at++];
    if (at < s.n_bytes && s.data[at] == '#') f->alternate = true, at++;
    if (at < s.n_bytes && s.data[at] == '0') {
        if (!f->fill.data) f->fill = sl_span_of("0");
        if (!f->align) f->align = zero_align;
        at++;
    }
    if (!f->fill.data) f->fill = sl_span_of(" ");
    bool good = take_number(s, &at, &f->width);
    if (at < s.n_bytes && (s.data[at] == ',' || s.data[at] == '_')) f->group = s.data[at++];
    if (at < s.n_bytes && s.data[at] == '.') {
        at++;
        good = good && take_number(s, &at, &f->precision) && f->precision >= 0;
    }
    if (at < s.n_bytes) f->type = s.data[at++];
    return good && at == s.n_bytes ? SL_OK : SL_FAIL(SL_BAD_INPUT, "format: a format specification is wrong");
}

static sl_status wrong_type(const sl_jinja_field *f, sl_jinja_value v) {
    return SL_FAIL(SL_BAD_INPUT, "format: '%c' does not fit a %s", f->type ? f->type : '=', sl_jinja_type_name(v));
}

sl_status sl_jinja_format_value(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v, sl_span spec) {
    sl_jinja_field f;
    if (spec.n_bytes == 0) return sl_jinja_str_to(run, buf, v);
    SL_TRY(parse_spec(&f, spec, v.type == SL_JINJA_TEXT ? '<' : '='));
    if (v.type == SL_JINJA_TEXT) {
        if ((f.type && f.type != 's') || f.align == '=' || f.sign || f.alternate || f.group) return wrong_type(&f, v);
        return put_text(buf, v, &f);
    }
    if (!sl_jinja_is_number(v)) return SL_FAIL(SL_BAD_INPUT, "format: a %s takes no format", sl_jinja_type_name(v));
    if (v.type == SL_JINJA_FLOAT || (f.type && strchr("eEfFgG%", f.type))) {
        if ((f.type && !strchr("eEfFgGn%", f.type)) || (f.group && f.type == 'n')) return wrong_type(&f, v);
        return put_float(buf, sl_jinja_as_float(v), &f);
    }
    if (f.group && f.type == 'n') return wrong_type(&f, v);
    if (f.type == 'c' && !f.sign && !f.group && f.precision < 0) {
        if (!f.align) f.align = '<';
        return percent_char(buf, v, &f, run);
    }
    if ((f.type && !strchr("dxXobn", f.type)) || f.precision >= 0 || (f.group == ',' && f.type && f.type != 'd'))
        return wrong_type(&f, v);
    return put_int(buf, sl_jinja_as_int(v), &f);
}
