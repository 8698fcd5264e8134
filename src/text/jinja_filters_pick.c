// SPDX-License-Identifier: MIT
//
// map, select and their kin, the smallest and the largest: filters that apply other filters, tests
// or paths to each item.
#include "text/jinja_builtin.h"
#include "text/jinja_filters.h"
#include "text/jinja_text.h"

static sl_status apply_named(sl_jinja_call *c, sl_jinja_value *out, sl_jinja_value item, size_t at, bool filter) {
    sl_span name;
    SL_TRY(sl_jinja_want_text(c->args->pos[at], &name));
    const sl_jinja_builtin *builtin = filter ? sl_jinja_filter_find(name) : sl_jinja_test_find(name);
    if (!builtin)
        return SL_FAIL(SL_BAD_INPUT, "there is no %s '%.*s'", filter ? "filter" : "test",
                       (int)SL_MIN(name.n_bytes, 100u), name.data);
    sl_jinja_args args = {c->args->pos + at + 1, c->args->n_pos - at - 1, c->args->kw};
    SL_TRY(sl_jinja_deeper(c->run)); // map('map', 'map', ...)
    sl_status status = sl_jinja_builtin_call(c->run, out, builtin, item, &args);
    c->run->depth--;
    return status;
}

static sl_status map_into(sl_jinja_call *c, sl_jinja_vec *out) {
    const sl_jinja_value *path = sl_jinja_dict_text(c->args->kw, sl_span_of("attribute"));
    const sl_jinja_value *instead = sl_jinja_dict_text(c->args->kw, sl_span_of("default"));
    bool by_path = c->args->n_pos == 0 && path;
    sl_jinja_iter it;
    bool done;
    if (!sl_jinja_truth(c->self)) return SL_OK;
    if (by_path && c->args->kw->n != 1u + (instead != NULL))
        return SL_FAIL(SL_BAD_INPUT, "map takes attribute and default, or the name of a filter");
    if (!by_path && c->args->n_pos == 0) return SL_FAIL(SL_BAD_INPUT, "map needs the name of a filter");
    SL_TRY(sl_jinja_iter_init(&it, c->self));
    for (sl_jinja_value item;;) {
        SL_TRY(sl_jinja_iter_next(c->run, &it, &item, &done));
        if (done) return SL_OK;
        if (by_path) SL_TRY(sl_jinja_follow(c->run, &item, item, *path, instead ? *instead : (sl_jinja_value){0}));
        else SL_TRY(apply_named(c, &item, item, 0, true));
        SL_TRY(sl_jinja_push(c->run, out, item));
    }
}

static sl_status filter_map(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    sl_status status = map_into(c, &all);
    return sl_jinja_stream_close(c->run, out, &all, status);
}

static sl_status select_into(sl_jinja_call *c, sl_jinja_vec *out, bool want, bool by_attribute) {
    sl_jinja_iter it;
    bool done;
    if (!sl_jinja_truth(c->self)) return SL_OK;
    if (by_attribute && c->args->n_pos == 0) return SL_FAIL(SL_BAD_INPUT, "the name of an attribute is missing");
    SL_TRY(sl_jinja_iter_init(&it, c->self));
    for (sl_jinja_value item, v;;) {
        SL_TRY(sl_jinja_iter_next(c->run, &it, &item, &done));
        if (done) return SL_OK;
        v = item;
        if (by_attribute) SL_TRY(sl_jinja_follow(c->run, &v, item, c->args->pos[0], (sl_jinja_value){0}));
        if (c->args->n_pos > by_attribute) SL_TRY(apply_named(c, &v, v, by_attribute, false));
        if (sl_jinja_truth(v) == want) SL_TRY(sl_jinja_push(c->run, out, item));
    }
}

static sl_status select_stream(sl_jinja_call *c, sl_jinja_value *out, bool want, bool by_attribute) {
    sl_jinja_vec all = {0};
    sl_status status = select_into(c, &all, want, by_attribute);
    return sl_jinja_stream_close(c->run, out, &all, status);
}

static sl_status filter_select(sl_jinja_call *c, sl_jinja_value *out) { return select_stream(c, out, true, false); }
static sl_status filter_reject(sl_jinja_call *c, sl_jinja_value *out) { return select_stream(c, out, false, false); }
static sl_status filter_selectattr(sl_jinja_call *c, sl_jinja_value *out) { return select_stream(c, out, true, true); }
static sl_status filter_rejectattr(sl_jinja_call *c, sl_jinja_value *out) { return select_stream(c, out, false, true); }

static sl_status items_into(sl_jinja_call *c, sl_jinja_vec *out) {
    if (c->self.type == SL_JINJA_UNDEFINED) return SL_OK;
    if (c->self.type != SL_JINJA_DICT)
        return SL_FAIL(SL_BAD_INPUT, "items: a %s is no dict", sl_jinja_type_name(c->self));
    sl_jinja_value view = {.type = SL_JINJA_VIEW, .aux = SL_JINJA_ITEMS, .as.dict = c->self.as.dict};
    return sl_jinja_collect(c->run, out, view);
}

static sl_status filter_items(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    sl_status status = items_into(c, &all);
    return sl_jinja_stream_close(c->run, out, &all, status);
}

static sl_status lowered(sl_jinja_run *run, sl_jinja_value *v) {
    if (v->type != SL_JINJA_TEXT) return SL_OK;
    sl_buf buf = sl_jinja_scratch(run);
    sl_jinja_map_case(&buf, sl_jinja_span(*v), SL_JINJA_LOWER);
    return sl_jinja_take(run, v, &buf, SL_OK);
}

// The first of equal ones.
static sl_status extreme(sl_jinja_call *c, sl_jinja_value *out, int wanted) {
    sl_jinja_value best = {0}, key;
    sl_jinja_iter it;
    bool done;
    int cmp;
    SL_TRY(sl_jinja_iter_init(&it, c->self));
    for (sl_jinja_value item;;) {
        SL_TRY(sl_jinja_iter_next(c->run, &it, &item, &done));
        if (done) break;
        SL_TRY(sl_jinja_follow(c->run, &key, item, c->v[1], (sl_jinja_value){0}));
        if (!sl_jinja_truth(c->v[0])) SL_TRY(lowered(c->run, &key));
        if (best.type != SL_JINJA_MISSING) {
            SL_TRY(sl_jinja_compare(c->run, &cmp, key, best));
            if (cmp != wanted) continue;
        }
        best = key;
        *out = item;
    }
    if (best.type != SL_JINJA_MISSING) return SL_OK;
    return sl_jinja_undefined_hint(c->run, out, "No aggregated item, sequence was empty.");
}

static sl_status filter_min(sl_jinja_call *c, sl_jinja_value *out) { return extreme(c, out, -1); }
static sl_status filter_max(sl_jinja_call *c, sl_jinja_value *out) { return extreme(c, out, 1); }

static const sl_jinja_builtin entries[] = {
    {"map", filter_map, "*", 0, 0},
    {"select", filter_select, "*", 0, 0},
    {"reject", filter_reject, "*", 0, 0},
    {"selectattr", filter_selectattr, "*", 0, 0},
    {"rejectattr", filter_rejectattr, "*", 0, 0},
    {"items", filter_items, "", 0, 0},
    {"min", filter_min, "case_sensitive attribute", 0, 0},
    {"max", filter_max, "case_sensitive attribute", 0, 0},
};
const sl_jinja_table sl_jinja_filters_pick = {entries, SL_COUNT(entries)};
