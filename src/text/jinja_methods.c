// SPDX-License-Identifier: MIT
//
// Methods of everything but texts, and the way from a value and a name to its method.
#include <math.h>

#include "text/jinja_builtin.h"

// ---- dict ----

static sl_status dict_get(sl_jinja_call *c, sl_jinja_value *out) {
    const sl_jinja_value *v;
    SL_TRY(sl_jinja_dict_find(c->run, &v, c->self.as.dict, c->v[0]));
    *out = v ? *v : c->v[1].type == SL_JINJA_MISSING ? sl_jinja_none() : c->v[1];
    return SL_OK;
}

static sl_status view(sl_jinja_call *c, sl_jinja_value *out, sl_jinja_view what) {
    *out = (sl_jinja_value){.type = SL_JINJA_VIEW, .aux = what, .as.dict = c->self.as.dict};
    return SL_OK;
}

static sl_status dict_keys(sl_jinja_call *c, sl_jinja_value *out) { return view(c, out, SL_JINJA_KEYS); }
static sl_status dict_values(sl_jinja_call *c, sl_jinja_value *out) { return view(c, out, SL_JINJA_VALUES); }
static sl_status dict_items(sl_jinja_call *c, sl_jinja_value *out) { return view(c, out, SL_JINJA_ITEMS); }

static sl_status copy(sl_jinja_call *c, sl_jinja_value *out) { return *out = c->self, SL_OK; } // nothing changes it

static sl_status dict_fromkeys(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec keys = {0};
    SL_TRY(sl_jinja_dict_make(c->run, out));
    SL_TRY(sl_jinja_collect(c->run, &keys, c->v[0]));
    for (size_t i = 0; i < keys.n; i++)
        SL_TRY(sl_jinja_dict_set(c->run, out->as.dict, keys.items[i],
                                 c->v[1].type == SL_JINJA_MISSING ? sl_jinja_none() : c->v[1]));
    return SL_OK;
}

// ---- sequences ----

static sl_status list_count(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    int64_t n = 0;
    bool same;
    SL_TRY(sl_jinja_collect(c->run, &all, c->self));
    for (size_t i = 0; i < all.n; i++) {
        SL_TRY(sl_jinja_equal(c->run, &same, all.items[i], c->v[0]));
        n += same;
    }
    return *out = sl_jinja_int(n), SL_OK;
}

static sl_status list_index(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    int64_t from, to;
    bool same;
    SL_TRY(sl_jinja_collect(c->run, &all, c->self));
    int64_t n = (int64_t)all.n;
    SL_TRY(sl_jinja_want_int(c->v[1], 0, &from));
    SL_TRY(sl_jinja_want_int(c->v[2], n, &to));
    if (from < 0) from = SL_MAX(from + n, 0);
    if (to < 0) to += n;
    for (int64_t i = from; i < SL_MIN(to, n); i++) {
        SL_TRY(sl_jinja_equal(c->run, &same, all.items[i], c->v[0]));
        if (same) return *out = sl_jinja_int(i), SL_OK;
    }
    return SL_FAIL(SL_BAD_INPUT, "index: the value is not in the %s", sl_jinja_type_name(c->self));
}

// ---- cyclers and loops ----

static sl_status cycler_next(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_cycler *cycler = c->self.as.cycler;
    *out = cycler->items[cycler->pos];
    cycler->pos = (cycler->pos + 1) % cycler->n;
    return SL_OK;
}

static sl_status cycler_reset(sl_jinja_call *c, sl_jinja_value *out) {
    (void)out; // none
    c->self.as.cycler->pos = 0;
    return SL_OK;
}

static sl_status loop_cycle(sl_jinja_call *c, sl_jinja_value *out) {
    if (!c->args->n_pos || c->args->kw->n) return SL_FAIL(SL_BAD_INPUT, "cycle takes one or more values");
    *out = c->args->pos[(c->self.as.loop->index - 1) % c->args->n_pos];
    return SL_OK;
}

static sl_status loop_changed(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_loop *loop = c->self.as.loop;
    sl_jinja_value now, *items = NULL;
    bool same = false;
    if (c->args->kw->n) return SL_FAIL(SL_BAD_INPUT, "changed takes no keywords");
    SL_TRY(sl_jinja_list_make(c->run, &now, SL_JINJA_TUPLE, &items, c->args->n_pos));
    if (c->args->n_pos) memcpy(items, c->args->pos, c->args->n_pos * sizeof *items);
    if (loop->last_changed.type) SL_TRY(sl_jinja_equal(c->run, &same, now, loop->last_changed));
    loop->last_changed = now;
    return *out = sl_jinja_bool(!same), SL_OK;
}

// ---- numbers ----

static sl_status int_bit_length(sl_jinja_call *c, sl_jinja_value *out) {
    int64_t v = sl_jinja_as_int(c->self), n = 0;
    for (uint64_t m = v < 0 ? -(uint64_t)v : (uint64_t)v; m; m >>= 1) n++;
    return *out = sl_jinja_int(n), SL_OK;
}

static sl_status float_is_integer(sl_jinja_call *c, sl_jinja_value *out) {
    return *out = sl_jinja_bool(isfinite(c->self.as.f) && c->self.as.f == floor(c->self.as.f)), SL_OK;
}

static const sl_jinja_builtin entries[] = {
    {"get", dict_get, "/key default", 1, SL_JINJA_DICT},
    {"keys", dict_keys, "/", 0, SL_JINJA_DICT},
    {"values", dict_values, "/", 0, SL_JINJA_DICT},
    {"items", dict_items, "/", 0, SL_JINJA_DICT},
    {"copy", copy, "/", 0, SL_JINJA_DICT},
    {"fromkeys", dict_fromkeys, "/iterable value", 1, SL_JINJA_DICT},
    {"copy", copy, "/", 0, SL_JINJA_LIST},
    {"count", list_count, "/value", 1, SL_JINJA_LIST},
    {"index", list_index, "/value start stop", 1, SL_JINJA_LIST},
    {"count", list_count, "/value", 1, SL_JINJA_TUPLE},
    {"index", list_index, "/value start stop", 1, SL_JINJA_TUPLE},
    {"count", list_count, "/value", 1, SL_JINJA_RANGE},
    {"index", list_index, "/value", 1, SL_JINJA_RANGE},
    {"next", cycler_next, "/", 0, SL_JINJA_CYCLER},
    {"reset", cycler_reset, "/", 0, SL_JINJA_CYCLER},
    {"cycle", loop_cycle, "*", 0, SL_JINJA_LOOP},
    {"changed", loop_changed, "*", 0, SL_JINJA_LOOP},
    {"bit_length", int_bit_length, "/", 0, SL_JINJA_INT},
    {"is_integer", float_is_integer, "/", 0, SL_JINJA_FLOAT},
};
const sl_jinja_table sl_jinja_methods_other = {entries, SL_COUNT(entries)};

const sl_jinja_builtin *sl_jinja_method_find(sl_jinja_value of, sl_span name) {
    const sl_jinja_table *const tables[] = {&sl_jinja_methods_other, &sl_jinja_methods_split, &sl_jinja_methods_text};
    int type = of.type == SL_JINJA_BOOL ? SL_JINJA_INT : of.type;
    if (of.type == SL_JINJA_FUNCTION && strcmp(of.as.builtin->name, "dict") == 0 && sl_span_is(name, "fromkeys"))
        type = SL_JINJA_DICT;
    for (size_t t = 0; t < SL_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t]->n; i++)
            if (tables[t]->entries[i].of == type && sl_span_is(name, tables[t]->entries[i].name))
                return &tables[t]->entries[i];
    return NULL;
}
