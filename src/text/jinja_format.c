// SPDX-License-Identifier: MIT
//
// text % values and text.format(values): finds the fields and their values. How one value is laid
// out is in jinja_format_spec.c. In markup every value is escaped.
#include "text/jinja_callable.h"
#include "text/jinja_format.h"
#include "text/jinja_text.h"

// ---- % ----

typedef struct percent {
    sl_jinja_run *run;
    sl_buf buf;
    sl_span format;
    size_t at;
    sl_jinja_value args;
    size_t n_used; // of a tuple, or 1 once a single value is used
    bool markup, by_name;
} percent;

static sl_status next_value(percent *p, sl_jinja_value *out) {
    bool tuple = p->args.type == SL_JINJA_TUPLE;
    if (p->n_used >= (tuple ? p->args.as.list->n : 1))
        return SL_FAIL(SL_BAD_INPUT, "there are fewer values than %% fields");
    *out = tuple ? p->args.as.list->items[p->n_used] : p->args;
    p->n_used++;
    return SL_OK;
}

static sl_status named_value(percent *p, sl_jinja_value *out) { // at "(name)"
    size_t begin = p->at, depth = 1;
    while (p->at < p->format.n_bytes && depth > 0) {
        char c = p->format.data[p->at++];
        depth += (c == '(') - (c == ')');
    }
    if (depth) return SL_FAIL(SL_BAD_INPUT, "a %%(name) field does not end");
    if (p->args.type != SL_JINJA_DICT) return SL_FAIL(SL_BAD_INPUT, "%%(name) fields need a dict");
    const sl_jinja_value *v =
        sl_jinja_dict_text(p->args.as.dict, sl_span_make(p->format.data + begin, p->at - 1 - begin));
    if (!v) return SL_FAIL(SL_BAD_INPUT, "the dict lacks the name of a %% field");
    p->by_name = true;
    *out = *v;
    return SL_OK;
}

static sl_status percent_number(percent *p, int *out) { // digits or *
    if (p->at < p->format.n_bytes && p->format.data[p->at] == '*') {
        sl_jinja_value v;
        p->at++;
        SL_TRY(next_value(p, &v));
        if (!sl_jinja_is_int(v) || sl_jinja_as_int(v) > 1 << 20 || sl_jinja_as_int(v) < -(1 << 20))
            return SL_FAIL(SL_BAD_INPUT, "* in a %% field needs a number of a reasonable size");
        return *out = (int)sl_jinja_as_int(v), SL_OK;
    }
    for (*out = 0; p->at < p->format.n_bytes && p->format.data[p->at] >= '0' && p->format.data[p->at] <= '9'; p->at++) {
        *out = *out * 10 + p->format.data[p->at] - '0';
        if (*out > 1 << 20) return SL_FAIL(SL_BAD_INPUT, "a %% field is too wide");
    }
    return SL_OK;
}

static sl_status percent_field(percent *p) {
    sl_jinja_field f = {.fill = sl_span_of(" "), .align = '>', .sign = '-', .precision = -1};
    sl_jinja_value v = {0};
    sl_span s = p->format;
    if (p->at < s.n_bytes && s.data[p->at] == '(') {
        p->at++;
        SL_TRY(named_value(p, &v));
    }
    bool zero = false;
    for (; p->at < s.n_bytes && s.data[p->at] && strchr("#0- +", s.data[p->at]); p->at++) {
        char c = s.data[p->at];
        if (c == '#') f.alternate = true;
        if (c == '-') f.align = '<';
        if (c == '0') zero = true;
        if (c == '+' || (c == ' ' && f.sign != '+')) f.sign = c;
    }
    SL_TRY(percent_number(p, &f.width));
    if (f.width < 0) f.align = '<', f.width = -f.width;
    if (p->at < s.n_bytes && s.data[p->at] == '.') {
        p->at++;
        SL_TRY(percent_number(p, &f.precision));
        if (f.precision < 0) f.precision = 0;
    }
    while (p->at < s.n_bytes && s.data[p->at] && strchr("hlL", s.data[p->at])) p->at++;
    if (p->at == s.n_bytes) return SL_FAIL(SL_BAD_INPUT, "a %% field is not complete");
    f.type = s.data[p->at++];
    if (f.type == '%') return sl_buf_text(&p->buf, "%"), p->buf.status;
    if (v.type == SL_JINJA_MISSING) SL_TRY(next_value(p, &v));
    if (zero && f.align == '>' && strchr("diouxXeEfFgG", f.type)) f.fill = sl_span_of("0"), f.align = '=';
    return sl_jinja_percent_value(p->run, &p->buf, v, &f, p->markup);
}

static sl_status percent_all(percent *p) {
    while (p->at < p->format.n_bytes) {
        sl_span rest = sl_span_make(p->format.data + p->at, p->format.n_bytes - p->at);
        size_t n = sl_jinja_find(rest, sl_span_of("%"));
        sl_buf_append(&p->buf, rest.data, n == SIZE_MAX ? rest.n_bytes : n);
        if (n == SIZE_MAX) break;
        p->at += n + 1;
        SL_TRY(sl_jinja_step(p->run, 1));
        SL_TRY(percent_field(p));
    }
    bool mapping = p->args.type == SL_JINJA_DICT || p->args.type == SL_JINJA_LIST || p->args.type == SL_JINJA_RANGE ||
                   p->args.type == SL_JINJA_UNDEFINED; // what Python takes for one
    size_t n_args = p->args.type == SL_JINJA_TUPLE ? p->args.as.list->n : mapping ? 0 : 1;
    if (p->n_used < n_args && !p->by_name) return SL_FAIL(SL_BAD_INPUT, "there are more values than %% fields");
    return p->buf.status;
}

sl_status sl_jinja_percent(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value format, sl_jinja_value args) {
    percent p = {.run = run,
                 .buf = sl_jinja_scratch(run),
                 .format = sl_jinja_span(format),
                 .args = args,
                 .markup = format.flags & SL_JINJA_MARKUP};
    sl_status status = percent_all(&p);
    SL_TRY(sl_jinja_take(run, out, &p.buf, status));
    out->flags = format.flags;
    return SL_OK;
}

// ---- format() ----

typedef struct formatter {
    sl_jinja_run *run;
    const sl_jinja_args *args;
    bool markup;
    int numbering; // 0 open, 1 automatic, 2 by hand
    size_t n_auto;
} formatter;

static sl_status field_root(formatter *f, sl_jinja_value *out, sl_span name) {
    size_t digits = 0, index = 0;
    while (digits < name.n_bytes && digits < 9 && name.data[digits] >= '0' && name.data[digits] <= '9')
        index = index * 10 + (size_t)(name.data[digits++] - '0');
    if (digits == name.n_bytes) {
        int mode = name.n_bytes ? 2 : 1;
        if (f->numbering && f->numbering != mode) return SL_FAIL(SL_BAD_INPUT, "format: {} and {0} cannot be mixed");
        f->numbering = mode;
        if (mode == 1) index = f->n_auto++;
        if (index >= f->args->n_pos) return SL_FAIL(SL_BAD_INPUT, "format: there is no value %zu", index);
        return *out = f->args->pos[index], SL_OK;
    }
    const sl_jinja_value *v = sl_jinja_dict_text(f->args->kw, name);
    if (!v)
        return SL_FAIL(SL_BAD_INPUT, "format: there is no value '%.*s'", (int)SL_MIN(name.n_bytes, 100u), name.data);
    return *out = *v, SL_OK;
}

// name.attr[item]...
static sl_status field_value(formatter *f, sl_jinja_value *out, sl_span name) {
    size_t at = 0;
    while (at < name.n_bytes && name.data[at] != '.' && name.data[at] != '[') at++;
    SL_TRY(field_root(f, out, sl_span_make(name.data, at)));
    while (at < name.n_bytes) {
        bool item = name.data[at++] == '[';
        size_t begin = at, digits = 0;
        sl_jinja_value key;
        while (at < name.n_bytes && (item ? name.data[at] != ']' : name.data[at] != '.' && name.data[at] != '[')) at++;
        SL_TRY(sl_jinja_text_copy(f->run, &key, name.data + begin, at - begin));
        if (at == begin || (item && at == name.n_bytes))
            return SL_FAIL(SL_BAD_INPUT, "format: a field has an empty part");
        int64_t number = 0;
        while (digits < at - begin && digits < 18 && name.data[begin + digits] >= '0' &&
               name.data[begin + digits] <= '9')
            number = number * 10 + name.data[begin + digits++] - '0';
        if (item && digits == at - begin) key = sl_jinja_int(number);
        if (item) at++;
        if (item && at < name.n_bytes && name.data[at] != '.' && name.data[at] != '[')
            return SL_FAIL(SL_BAD_INPUT, "format: after ']' there is something else than '.' or '['");
        SL_TRY(item ? sl_jinja_getitem(f->run, out, *out, key) : sl_jinja_getattr(f->run, out, *out, key.as.text));
    }
    return SL_OK;
}

static sl_status format_into(formatter *f, sl_buf *buf, sl_span s, int depth);

// The text between { and }: name, !conversion, :spec (which may have fields of its own).
static sl_status format_field(formatter *f, sl_buf *buf, sl_span field, int depth) {
    sl_jinja_value v;
    size_t name = 0, brackets = 0;
    for (; name < field.n_bytes; name++) {
        brackets += field.data[name] == '[';
        if (field.data[name] == ']' && brackets) brackets--;
        if (!brackets && (field.data[name] == '!' || field.data[name] == ':')) break;
    }
    SL_TRY(field_value(f, &v, sl_span_make(field.data, name)));
    sl_span rest = sl_span_make(field.data + name, field.n_bytes - name);
    if (rest.n_bytes && rest.data[0] == '!') {
        if (rest.n_bytes < 2 || (rest.n_bytes > 2 && rest.data[2] != ':') || !strchr("rsa", rest.data[1]))
            return SL_FAIL(SL_BAD_INPUT, "format: the conversion after '!' is r, s or a");
        SL_TRY(sl_jinja_convert(f->run, &v, v, rest.data[1]));
        rest = sl_span_make(rest.data + 2, rest.n_bytes - 2);
    }
    if (rest.n_bytes) rest = sl_span_make(rest.data + 1, rest.n_bytes - 1);
    sl_buf spec = sl_jinja_scratch(f->run), plain = sl_jinja_scratch(f->run);
    sl_status status = format_into(f, &spec, rest, depth + 1);
    bool is_markup = v.type == SL_JINJA_TEXT && (v.flags & SL_JINJA_MARKUP);
    if (status == SL_OK && f->markup && is_markup && spec.n_bytes)
        status = SL_FAIL(SL_BAD_INPUT, "format: markup takes no format");
    if (status == SL_OK) status = sl_jinja_format_value(f->run, &plain, v, sl_span_make(spec.data, spec.n_bytes));
    if (status == SL_OK && f->markup && !is_markup) sl_jinja_escape(buf, sl_span_make(plain.data, plain.n_bytes));
    else sl_buf_append(buf, plain.data, plain.n_bytes);
    sl_buf_deinit(&spec);
    sl_buf_deinit(&plain);
    return status == SL_OK ? buf->status : status;
}

static sl_status format_into(formatter *f, sl_buf *buf, sl_span s, int depth) {
    if (depth > 2) return SL_FAIL(SL_BAD_INPUT, "format: fields nest too deep");
    for (size_t at = 0; at < s.n_bytes;) {
        char c = s.data[at++];
        bool doubled = at < s.n_bytes && s.data[at] == c;
        if ((c != '{' && c != '}') || (doubled && depth == 0)) {
            sl_buf_append(buf, &c, 1);
            at += c == '{' || c == '}';
            continue;
        }
        if (c == '}') return SL_FAIL(SL_BAD_INPUT, "format: a single '}' stands alone");
        size_t begin = at, open = 1;
        for (; at < s.n_bytes && open; at++) open += (size_t)(s.data[at] == '{') - (size_t)(s.data[at] == '}');
        if (open) return SL_FAIL(SL_BAD_INPUT, "format: a '{' is not closed");
        SL_TRY(sl_jinja_step(f->run, 1));
        SL_TRY(format_field(f, buf, sl_span_make(s.data + begin, at - 1 - begin), depth));
    }
    return buf->status;
}

sl_status sl_jinja_str_format(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value format,
                              const sl_jinja_args *args) {
    formatter f = {.run = run, .args = args, .markup = format.flags & SL_JINJA_MARKUP};
    sl_buf buf = sl_jinja_scratch(run);
    sl_status status = format_into(&f, &buf, sl_jinja_span(format), 0);
    SL_TRY(sl_jinja_take(run, out, &buf, status));
    out->flags = format.flags;
    return SL_OK;
}
