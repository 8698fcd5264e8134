// SPDX-License-Identifier: MIT
//
// Filters about single values: defaults, numbers, lengths, ends of sequences, JSON; and the way
// from a filter's name to it.
#include <math.h>

#include "text/jinja_builtin.h"
#include "text/jinja_literal.h"
#include "text/jinja_text.h"

static sl_status filter_default(sl_jinja_call *c, sl_jinja_value *out) {
    bool use = c->self.type == SL_JINJA_UNDEFINED || (sl_jinja_truth(c->v[1]) && !sl_jinja_truth(c->self));
    if (!use) return *out = c->self, SL_OK;
    *out = c->v[0];
    return out->type == SL_JINJA_MISSING ? sl_jinja_text_share(c->run, out, "", 0) : SL_OK;
}

// ---- numbers ----

static sl_status truncated(sl_jinja_value *out, double f) {
    if (fabs(f) >= 0x1p63) return SL_FAIL(SL_UNSUPPORTED, "an integer has more than 64 bits");
    return *out = sl_jinja_int((int64_t)f), SL_OK;
}

static sl_status text_to_int(sl_jinja_call *c, sl_jinja_value *out) {
    int64_t base;
    double f;
    bool ok;
    SL_TRY(sl_jinja_want_int(c->v[1], 10, &base));
    if (base != 0 && (base < 2 || base > 36)) ok = false;
    else SL_TRY(sl_jinja_parse_int(out, &ok, sl_jinja_span(c->self), (int)base));
    if (ok) return SL_OK;
    SL_TRY(sl_jinja_to_float(&f, &ok, sl_jinja_span(c->self)));
    if (ok && isfinite(f)) return truncated(out, f);
    *out = c->v[0].type == SL_JINJA_MISSING ? sl_jinja_int(0) : c->v[0];
    return SL_OK;
}

static sl_status filter_int(sl_jinja_call *c, sl_jinja_value *out) {
    if (c->self.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(c->self);
    if (c->self.type == SL_JINJA_TEXT) return text_to_int(c, out);
    if (sl_jinja_is_int(c->self)) return *out = sl_jinja_int(sl_jinja_as_int(c->self)), SL_OK;
    if (c->self.type == SL_JINJA_FLOAT && isinf(c->self.as.f)) return SL_FAIL(SL_BAD_INPUT, "infinity is no integer");
    if (c->self.type == SL_JINJA_FLOAT && !isnan(c->self.as.f)) return truncated(out, c->self.as.f);
    *out = c->v[0].type == SL_JINJA_MISSING ? sl_jinja_int(0) : c->v[0];
    return SL_OK;
}

static sl_status filter_float(sl_jinja_call *c, sl_jinja_value *out) {
    double f = 0;
    bool ok = true;
    if (c->self.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(c->self);
    if (sl_jinja_is_number(c->self)) f = sl_jinja_as_float(c->self);
    else if (c->self.type == SL_JINJA_TEXT) SL_TRY(sl_jinja_to_float(&f, &ok, sl_jinja_span(c->self)));
    else ok = false;
    *out = ok ? sl_jinja_float(f) : c->v[0].type == SL_JINJA_MISSING ? sl_jinja_float(0) : c->v[0];
    return SL_OK;
}

static sl_status filter_abs(sl_jinja_call *c, sl_jinja_value *out) {
    if (c->self.type == SL_JINJA_FLOAT) return *out = sl_jinja_float(fabs(c->self.as.f)), SL_OK;
    if (!sl_jinja_is_int(c->self)) return SL_FAIL(SL_BAD_INPUT, "abs: a %s is no number", sl_jinja_type_name(c->self));
    return sl_jinja_unary(out, c->self, sl_jinja_as_int(c->self) < 0);
}

// To tens, hundreds ...; halves go to the even side.
static int64_t round_int(int64_t v, int64_t digits) {
    if (digits >= 0) return v;
    if (digits < -18) return 0;
    int64_t unit = 1;
    for (; digits < 0; digits++) unit *= 10;
    int64_t rest = v % unit, low = v - rest;
    if (rest < 0) rest += unit, low -= unit;
    bool up = rest > unit - rest || (rest == unit - rest && low / unit % 2 != 0);
    return up ? low + unit : low;
}

static sl_status round_float(sl_jinja_value *out, double f, int64_t digits) {
    char text[420];
    bool ok;
    *out = sl_jinja_float(f);
    if (!isfinite(f) || digits > 60) return SL_OK;
    if (digits < 0) {
        double unit = pow(10, digits < -308 ? 308.0 : (double)-digits);
        return *out = sl_jinja_float(digits < -308 ? copysign(0, f) : rint(f / unit) * unit), SL_OK;
    }
    int n = snprintf(text, sizeof text, "%.*f", (int)digits, f); // correctly rounded
    for (int i = 0; i < n; i++)
        if (text[i] != '-' && (text[i] < '0' || text[i] > '9')) text[i] = '.'; // whatever the locale's point is
    SL_TRY(sl_jinja_parse_float(&f, text, (size_t)n, &ok));
    return *out = sl_jinja_float(f), SL_OK;
}

static sl_status filter_round(sl_jinja_call *c, sl_jinja_value *out) {
    int64_t digits;
    sl_span method = sl_span_of("common");
    SL_TRY(sl_jinja_want_int(c->v[0], 0, &digits));
    if (c->v[1].type != SL_JINJA_MISSING) SL_TRY(sl_jinja_want_text(c->v[1], &method));
    bool up = sl_span_is(method, "ceil"), down = sl_span_is(method, "floor");
    if (!up && !down && !sl_span_is(method, "common")) return SL_FAIL(SL_BAD_INPUT, "round: no such method");
    if (!sl_jinja_is_number(c->self))
        return SL_FAIL(SL_BAD_INPUT, "round: a %s is no number", sl_jinja_type_name(c->self));
    if (up || down) {
        double unit = pow(10, (double)digits), f = sl_jinja_as_float(c->self) * unit;
        if (!isfinite(f)) return SL_FAIL(SL_BAD_INPUT, "round: the number is not finite");
        return *out = sl_jinja_float((up ? ceil(f) : floor(f)) / unit), SL_OK;
    }
    if (sl_jinja_is_int(c->self)) return *out = sl_jinja_int(round_int(sl_jinja_as_int(c->self), digits)), SL_OK;
    return round_float(out, c->self.as.f, digits);
}

// ---- sequences ----

static sl_status filter_length(sl_jinja_call *c, sl_jinja_value *out) {
    size_t n;
    if (c->self.type == SL_JINJA_LOOP) SL_TRY(sl_jinja_loop_length(c->run, &n, c->self.as.loop));
    else SL_TRY(sl_jinja_len(&n, c->self));
    return *out = sl_jinja_int((int64_t)n), SL_OK;
}

static sl_status filter_list(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    SL_TRY(sl_jinja_collect(c->run, &all, c->self));
    return sl_jinja_list_make(c->run, out, SL_JINJA_LIST, &all.items, all.n);
}

static sl_status filter_first(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_iter it;
    bool done;
    SL_TRY(sl_jinja_iter_init(&it, c->self));
    SL_TRY(sl_jinja_iter_next(c->run, &it, out, &done));
    return done ? sl_jinja_undefined_hint(c->run, out, "No first item, sequence was empty.") : SL_OK;
}

static sl_status filter_last(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    if (!sl_jinja_sized(c->self)) return SL_FAIL(SL_BAD_INPUT, "last: a %s has no end", sl_jinja_type_name(c->self));
    if (c->self.type == SL_JINJA_TEXT && c->self.as.text->n_chars)
        return sl_jinja_getitem(c->run, out, c->self, sl_jinja_int(-1));
    SL_TRY(sl_jinja_collect(c->run, &all, c->self));
    if (all.n) return *out = all.items[all.n - 1], SL_OK;
    return sl_jinja_undefined_hint(c->run, out, "No last item, sequence was empty.");
}

static sl_status filter_join(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value between;
    sl_jinja_iter it;
    bool done;
    if (c->v[0].type == SL_JINJA_MISSING) SL_TRY(sl_jinja_text_share(c->run, &between, "", 0));
    else SL_TRY(sl_jinja_str(c->run, &between, c->v[0]));
    SL_TRY(sl_jinja_iter_init(&it, c->self));
    sl_buf buf = sl_jinja_scratch(c->run);
    sl_status status = SL_OK;
    for (bool first = true; status == SL_OK; first = false) {
        sl_jinja_value item;
        status = sl_jinja_iter_next(c->run, &it, &item, &done);
        if (status != SL_OK || done) break;
        if (!first) status = sl_jinja_str_to(c->run, &buf, between);
        if (status == SL_OK) status = sl_jinja_follow(c->run, &item, item, c->v[1], (sl_jinja_value){0});
        if (status == SL_OK) status = sl_jinja_str_to(c->run, &buf, item);
    }
    return sl_jinja_take(c->run, out, &buf, status);
}

static sl_status filter_sum(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value sum = c->v[1].type == SL_JINJA_MISSING ? sl_jinja_int(0) : c->v[1];
    sl_jinja_iter it;
    bool done;
    if (sum.type == SL_JINJA_TEXT) return SL_FAIL(SL_BAD_INPUT, "sum: texts are joined with join");
    SL_TRY(sl_jinja_iter_init(&it, c->self));
    for (sl_jinja_value item;;) {
        SL_TRY(sl_jinja_iter_next(c->run, &it, &item, &done));
        if (done) return *out = sum, SL_OK;
        SL_TRY(sl_jinja_follow(c->run, &item, item, c->v[0], (sl_jinja_value){0}));
        SL_TRY(sl_jinja_binary(c->run, &sum, SL_OP_ADD, sum, item));
    }
}

static sl_status filter_tojson(sl_jinja_call *c, sl_jinja_value *out) {
    return sl_jinja_json_dump(c->run, out, c->self, c->v);
}

static sl_status filter_attr(sl_jinja_call *c, sl_jinja_value *out) {
    bool found;
    if (c->v[0].type != SL_JINJA_TEXT) return SL_FAIL(SL_BAD_INPUT, "attr: the name is no text");
    SL_TRY(sl_jinja_own_attr(c->run, out, c->self, c->v[0].as.text, &found));
    if (!found) *out = sl_jinja_undefined(c->v[0].as.text, 1u + c->self.type);
    return SL_OK;
}

static const sl_jinja_builtin entries[] = {
    {"default", filter_default, "default_value boolean", 0, 0},
    {"d", filter_default, "default_value boolean", 0, 0},
    {"int", filter_int, "default base", 0, 0},
    {"float", filter_float, "default", 0, 0},
    {"abs", filter_abs, "", 0, 0},
    {"round", filter_round, "precision method", 0, 0},
    {"length", filter_length, "", 0, 0},
    {"count", filter_length, "", 0, 0},
    {"list", filter_list, "", 0, 0},
    {"first", filter_first, "", 0, 0},
    {"last", filter_last, "", 0, 0},
    {"join", filter_join, "d attribute", 0, 0},
    {"sum", filter_sum, "attribute start", 0, 0},
    {"tojson", filter_tojson, "ensure_ascii indent separators sort_keys", 0, 0},
    {"attr", filter_attr, "name", 1, 0},
};
const sl_jinja_table sl_jinja_filters_value = {entries, SL_COUNT(entries)};

const sl_jinja_builtin *sl_jinja_filter_find(sl_span name) {
    const sl_jinja_table *const tables[] = {&sl_jinja_filters_value, &sl_jinja_filters_text, &sl_jinja_filters_list,
                                            &sl_jinja_filters_pick};
    const sl_jinja_builtin *found = NULL;
    for (size_t i = 0; i < SL_COUNT(tables) && !found; i++)
        found = sl_jinja_table_find(tables[i]->entries, tables[i]->n, name);
    return found;
}

bool sl_jinja_name_unsupported(sl_span name, bool filter) {
    static const char *const names[] = {"filesizeformat", "pprint",   "random", "striptags",
                                        "urlize",         "wordwrap", "xmlattr"};
    for (size_t i = 0; i < SL_COUNT(names) && filter; i++)
        if (sl_span_is(name, names[i])) return true;
    return false;
}
