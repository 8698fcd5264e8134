// SPDX-License-Identifier: MIT
//
// x.name, x[key] and slices, with the order of look-up that jinja2 has: a dot asks for the
// attribute first and the item then, brackets the other way round. What is not there is an
// undefined value, not a failure. Methods that would change a value are not there, as in jinja2's
// immutable sandbox.
#include "base/utf8.h"
#include "text/jinja_callable.h"
#include "text/jinja_text.h"

static sl_jinja_value no_such(sl_jinja_value of, const sl_jinja_text *name) {
    return sl_jinja_undefined(name, 1u + of.type);
}

// ---- attributes ----

static bool is_mutator(sl_jinja_value of, sl_span name) {
    static const char *const words[] = {"clear", "pop", "popitem", "setdefault", "update"};
    static const char *const list_words[] = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
    const char *const *all = of.type == SL_JINJA_DICT ? words : list_words;
    size_t n = of.type == SL_JINJA_DICT ? SL_COUNT(words) : SL_COUNT(list_words);
    if (of.type != SL_JINJA_DICT && of.type != SL_JINJA_LIST) return false;
    for (size_t i = 0; i < n; i++)
        if (sl_span_is(name, all[i])) return true;
    return false;
}

// Attributes of every Python object, which the sandbox hides; so a key of that name is reached by
// brackets only.
static bool is_private(sl_span name) {
    static const char *const words[] = {
        "__class__",
        "__doc__",
        "__init__",
        "__new__",
        "__dict__",
        "__eq__",
        "__ne__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__hash__",
        "__str__",
        "__repr__",
        "__len__",
        "__iter__",
        "__getitem__",
        "__contains__",
        "__add__",
        "__mul__",
        "__mod__",
        "__dir__",
        "__format__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__reduce__",
        "__reduce_ex__",
        "__sizeof__",
        "__subclasshook__",
        "__init_subclass__",
    };
    if (name.n_bytes < 4 || memcmp(name.data, "__", 2) != 0) return false;
    for (size_t i = 0; i < SL_COUNT(words); i++)
        if (sl_span_is(name, words[i])) return true;
    return false;
}

static bool number_attr(sl_jinja_value *out, sl_jinja_value of, sl_span name) {
    bool integer = sl_jinja_is_int(of);
    if (sl_span_is(name, "real")) return *out = integer ? sl_jinja_int(sl_jinja_as_int(of)) : of, true;
    if (sl_span_is(name, "imag")) return *out = integer ? sl_jinja_int(0) : sl_jinja_float(0), true;
    if (integer && sl_span_is(name, "numerator")) return *out = sl_jinja_int(sl_jinja_as_int(of)), true;
    if (integer && sl_span_is(name, "denominator")) return *out = sl_jinja_int(1), true;
    return false;
}

static sl_status macro_attr(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_macro *macro, sl_span name,
                            bool *found) {
    const sl_jinja_node *node = macro->node;
    *found = true;
    if (sl_span_is(name, "name")) {
        *out = macro->name ? sl_jinja_of_text(macro->name) : sl_jinja_none();
    } else if (sl_span_is(name, "arguments")) {
        sl_jinja_value *items = NULL;
        SL_TRY(sl_jinja_list_make(run, out, SL_JINJA_TUPLE, &items, node->n_list));
        size_t i = 0;
        for (const sl_jinja_node *p = node->list; p; p = p->next) items[i++] = sl_jinja_of_text(p->name);
    } else if (sl_span_is(name, "caller")) {
        *out = sl_jinja_bool(node->wants_caller);
    } else if (sl_span_is(name, "catch_kwargs")) {
        *out = sl_jinja_bool(node->wants_kwargs);
    } else if (sl_span_is(name, "catch_varargs")) {
        *out = sl_jinja_bool(node->wants_varargs);
    } else {
        *found = false;
    }
    return SL_OK;
}

static bool plain_attr(sl_jinja_value *out, sl_jinja_value of, sl_span name) {
    if (sl_jinja_is_number(of)) return number_attr(out, of, name);
    if (of.type == SL_JINJA_RANGE) {
        if (sl_span_is(name, "start")) return *out = sl_jinja_int(of.as.range->start), true;
        if (sl_span_is(name, "stop")) return *out = sl_jinja_int(of.as.range->stop), true;
        if (sl_span_is(name, "step")) return *out = sl_jinja_int(of.as.range->step), true;
    }
    if (of.type == SL_JINJA_TUPLE && (of.flags & SL_JINJA_GROUP)) {
        if (sl_span_is(name, "grouper")) return *out = of.as.list->items[0], true;
        if (sl_span_is(name, "list")) return *out = of.as.list->items[1], true;
    }
    if (of.type == SL_JINJA_CYCLER && sl_span_is(name, "current"))
        return *out = of.as.cycler->items[of.as.cycler->pos], true;
    return false;
}

sl_status sl_jinja_own_attr(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, const sl_jinja_text *name,
                            bool *found) {
    sl_span text = sl_span_make(name->data, name->n_bytes);
    sl_jinja_method *method;
    *found = false;
    if (of.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(of);
    if (of.type == SL_JINJA_LOOP) {
        SL_TRY(sl_jinja_loop_attr(run, out, of.as.loop, text, found));
    } else if (of.type == SL_JINJA_NAMESPACE) {
        const sl_jinja_value *v = sl_jinja_dict_text(of.as.dict, text);
        if ((*found = v != NULL)) *out = *v;
        return SL_OK;
    } else if (of.type == SL_JINJA_MACRO) {
        return macro_attr(run, out, of.as.macro, text, found);
    }
    if (*found || (*found = plain_attr(out, of, text))) return SL_OK;
    if (is_private(text) || is_mutator(of, text)) {
        *found = true;
        return sl_jinja_undefined_hint(run, out, "this attribute is not safe to use in a template");
    }
    const sl_jinja_builtin *builtin = sl_jinja_method_find(of, text);
    if (!builtin) return SL_OK;
    SL_TRY(sl_jinja_alloc(run, &method, 1, sizeof *method));
    *method = (sl_jinja_method){builtin, of};
    *out = (sl_jinja_value){.type = SL_JINJA_METHOD, .as.method = method};
    *found = true;
    return SL_OK;
}

sl_status sl_jinja_getattr(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, const sl_jinja_text *name) {
    const sl_jinja_value *item = NULL;
    bool found;
    SL_TRY(sl_jinja_own_attr(run, out, of, name, &found));
    if (found) return SL_OK;
    if (of.type == SL_JINJA_DICT) SL_TRY(sl_jinja_dict_find(run, &item, of.as.dict, sl_jinja_of_text(name)));
    *out = item ? *item : no_such(of, name);
    return SL_OK;
}

// ---- items ----

// A place counted from the front or, if negative, from the end; SIZE_MAX if it is outside.
static size_t place(int64_t i, size_t n) {
    if (i < 0) i += (int64_t)n;
    return i < 0 || i >= (int64_t)n ? SIZE_MAX : (size_t)i;
}

static sl_status char_at(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, size_t i) {
    size_t begin = sl_jinja_offset(of.as.text, i), end = begin;
    if (of.as.text->n_bytes != of.as.text->n_chars) SL_TRY(sl_jinja_step(run, begin / 16));
    sl_jinja_char(sl_jinja_span(of), &end);
    SL_TRY(sl_jinja_text_share(run, out, of.as.text->data + begin, end - begin));
    out->flags = of.flags;
    return SL_OK;
}

static sl_status item_at(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, int64_t index, bool *found) {
    size_t n, i;
    *found = false;
    if (of.type != SL_JINJA_TEXT && of.type != SL_JINJA_LIST && of.type != SL_JINJA_TUPLE && of.type != SL_JINJA_RANGE)
        return SL_OK;
    SL_TRY(sl_jinja_len(&n, of));
    if ((i = place(index, n)) == SIZE_MAX) return SL_OK;
    *found = true;
    if (of.type == SL_JINJA_TEXT) return char_at(run, out, of, i);
    *out = of.type == SL_JINJA_RANGE ? sl_jinja_int(of.as.range->start + (int64_t)i * of.as.range->step)
                                     : of.as.list->items[i];
    return SL_OK;
}

sl_status sl_jinja_getitem(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, sl_jinja_value key) {
    bool found = false;
    const sl_jinja_value *item = NULL;
    uint64_t hash;
    if (of.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(of);
    if (of.type == SL_JINJA_DICT) {
        if (sl_jinja_hash(run, &hash, key) == SL_OK) SL_TRY(sl_jinja_dict_find(run, &item, of.as.dict, key));
        if (item) return *out = *item, SL_OK;
    } else if (sl_jinja_is_int(key)) {
        SL_TRY(item_at(run, out, of, sl_jinja_as_int(key), &found));
        if (found) return SL_OK;
    }
    if (key.type == SL_JINJA_TEXT) {
        SL_TRY(sl_jinja_own_attr(run, out, of, key.as.text, &found));
        if (!found) *out = no_such(of, key.as.text);
        return SL_OK;
    }
    SL_TRY(sl_jinja_undefined_hint(run, out, "there is no such element"));
    return SL_OK;
}

// ---- slices ----

typedef struct slice {
    int64_t start, step;
    size_t n;
} slice;

static sl_status slice_bound(int64_t *out, sl_jinja_value v, int64_t instead, int64_t n, int64_t low, int64_t high) {
    *out = instead;
    if (v.type == SL_JINJA_NONE) return SL_OK;
    if (!sl_jinja_is_int(v)) return SL_FAIL(SL_BAD_INPUT, "a slice has whole numbers, not a %s", sl_jinja_type_name(v));
    int64_t i = sl_jinja_as_int(v);
    if (i < 0) i += n;
    *out = i < low ? low : i > high ? high : i;
    return SL_OK;
}

static sl_status slice_of(slice *out, const sl_jinja_value part[3], size_t len) {
    int64_t n = (int64_t)len, stop, step = 1;
    if (part[2].type != SL_JINJA_NONE) {
        if (!sl_jinja_is_int(part[2]) || (step = sl_jinja_as_int(part[2])) == 0)
            return SL_FAIL(SL_BAD_INPUT, "the step of a slice is a whole number and not 0");
    }
    if (step < -INT64_MAX) step = -INT64_MAX;
    bool back = step < 0;
    int64_t low = back ? -1 : 0, high = back ? n - 1 : n;
    SL_TRY(slice_bound(&out->start, part[0], back ? high : low, n, low, high));
    SL_TRY(slice_bound(&stop, part[1], back ? low : high, n, low, high));
    int64_t span = back ? out->start - stop : stop - out->start, stride = back ? -step : step;
    out->step = step;
    out->n = span <= 0 ? 0 : (size_t)((span - 1) / stride + 1);
    return SL_OK;
}

static sl_status slice_text(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, slice s) {
    const sl_jinja_text *text = of.as.text;
    if (text->n_bytes != text->n_chars) SL_TRY(sl_jinja_step(run, text->n_bytes / 16));
    if (s.step == 1 || s.n < 2) {
        size_t begin = s.n ? sl_jinja_offset(text, (size_t)s.start) : 0;
        size_t end = s.n ? sl_jinja_offset(text, (size_t)s.start + s.n) : 0;
        SL_TRY(sl_jinja_text_share(run, out, text->data + begin, end - begin));
    } else {
        char *bytes;
        size_t at = sl_jinja_offset(text, (size_t)s.start), n = 0;
        SL_TRY(sl_jinja_alloc(run, &bytes, SL_MIN(s.n * 4, text->n_bytes), 1));
        for (size_t i = 0;; i++) {
            size_t end = at;
            sl_jinja_char(sl_jinja_span(of), &end);
            memcpy(bytes + n, text->data + at, end - at);
            n += end - at;
            if (i + 1 == s.n) break;
            for (int64_t k = s.step; k > 0; k--) sl_jinja_char(sl_jinja_span(of), &at);
            for (int64_t k = s.step; k < 0; k++) do
                    at--;
                while (((unsigned char)text->data[at] & 0xc0) == 0x80);
        }
        SL_TRY(sl_jinja_text_share(run, out, bytes, n));
    }
    out->flags = of.flags;
    return SL_OK;
}

sl_status sl_jinja_slice(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, const sl_jinja_value part[3]) {
    slice s;
    size_t n;
    if (of.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(of);
    if (of.type != SL_JINJA_TEXT && of.type != SL_JINJA_LIST && of.type != SL_JINJA_TUPLE && of.type != SL_JINJA_RANGE)
        return SL_FAIL(SL_BAD_INPUT, "a %s has no slices", sl_jinja_type_name(of));
    SL_TRY(sl_jinja_len(&n, of));
    SL_TRY(slice_of(&s, part, n));
    if (of.type == SL_JINJA_TEXT) return slice_text(run, out, of, s);
    if (of.type == SL_JINJA_RANGE) {
        sl_jinja_range *range;
        const sl_jinja_range *from = of.as.range;
        SL_TRY(sl_jinja_alloc(run, &range, 1, sizeof *range));
        *range = (sl_jinja_range){from->start + s.start * from->step, 0, from->step * s.step, s.n};
        range->stop = range->start + (int64_t)s.n * range->step;
        *out = (sl_jinja_value){.type = SL_JINJA_RANGE, .as.range = range};
        return SL_OK;
    }
    sl_jinja_value *items = NULL;
    SL_TRY(sl_jinja_list_make(run, out, (sl_jinja_type)of.type, &items, s.n));
    for (size_t i = 0; i < s.n; i++) items[i] = of.as.list->items[s.start + (int64_t)i * s.step];
    return SL_OK;
}

// ---- paths ----

static sl_status follow_part(sl_jinja_run *run, sl_jinja_value *v, sl_jinja_value part, sl_jinja_value instead) {
    SL_TRY(sl_jinja_getitem(run, v, *v, part));
    bool given = instead.type != SL_JINJA_MISSING && instead.type != SL_JINJA_NONE;
    if (given && v->type == SL_JINJA_UNDEFINED) *v = instead;
    return SL_OK;
}

sl_status sl_jinja_follow(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, sl_jinja_value path,
                          sl_jinja_value instead) {
    *out = of;
    if (path.type == SL_JINJA_NONE || path.type == SL_JINJA_MISSING) return SL_OK;
    if (path.type != SL_JINJA_TEXT) return follow_part(run, out, path, instead);
    sl_span rest = sl_jinja_span(path);
    for (bool more = true; more;) {
        size_t n = sl_jinja_find(rest, sl_span_of("."));
        more = n != SIZE_MAX;
        sl_jinja_value part;
        size_t len = more ? n : rest.n_bytes, digits = 0;
        int64_t number = 0;
        while (digits < len && digits < 18 && rest.data[digits] >= '0' && rest.data[digits] <= '9')
            number = number * 10 + rest.data[digits++] - '0';
        if (len > 0 && digits == len) part = sl_jinja_int(number);
        else SL_TRY(sl_jinja_text_share(run, &part, rest.data, len));
        SL_TRY(follow_part(run, out, part, instead));
        if (more) rest = sl_span_make(rest.data + n + 1, rest.n_bytes - n - 1);
    }
    return SL_OK;
}
