// SPDX-License-Identifier: MIT
//
// Filters that make sequences out of sequences: sorting, grouping, cutting. Where jinja2 gives a
// generator the result is made at once, but handed out only once, and a failure shows only when its
// place is reached.
#include "text/jinja_builtin.h"
#include "text/jinja_filters.h"
#include "text/jinja_text.h"

sl_status sl_jinja_stream_close(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_vec *vec, sl_status status) {
    if (status == SL_FULL || status == SL_NO_MEMORY) return status; // bounds hold at once
    SL_TRY(sl_jinja_stream_make(run, out, vec->items, vec->n));
    out->as.stream->status = status;
    if (status == SL_OK) return SL_OK;
    sl_jinja_value reason;
    SL_TRY(sl_jinja_text_copy(run, &reason, sl_error_text(), strlen(sl_error_text()) + 1));
    out->as.stream->reason = reason.as.text->data;
    return SL_OK;
}

static sl_status fold_case(sl_jinja_run *run, sl_jinja_value *v, bool case_sensitive) {
    if (case_sensitive || v->type != SL_JINJA_TEXT) return SL_OK;
    sl_buf buf = sl_jinja_scratch(run);
    sl_jinja_map_case(&buf, sl_jinja_span(*v), SL_JINJA_LOWER);
    return sl_jinja_take(run, v, &buf, SL_OK);
}

// What an item is sorted by: the value at `path`, texts without regard to case.
static sl_status key_of(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value item, sl_jinja_value path,
                        sl_jinja_value instead, bool case_sensitive) {
    SL_TRY(sl_jinja_follow(run, out, item, path, instead));
    return fold_case(run, out, case_sensitive);
}

// "a,b.c" gives a list of two keys.
static sl_status keys_of(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value item, sl_jinja_value paths,
                         bool case_sensitive) {
    sl_jinja_vec keys = {0};
    sl_jinja_value path = paths, key;
    sl_span rest = paths.type == SL_JINJA_TEXT ? sl_jinja_span(paths) : sl_span_make(NULL, 0);
    for (bool more = true; more;) {
        size_t n = paths.type == SL_JINJA_TEXT ? sl_jinja_find(rest, sl_span_of(",")) : SIZE_MAX;
        more = n != SIZE_MAX;
        if (paths.type == SL_JINJA_TEXT) SL_TRY(sl_jinja_text_share(run, &path, rest.data, more ? n : rest.n_bytes));
        SL_TRY(key_of(run, &key, item, path, (sl_jinja_value){0}, case_sensitive));
        SL_TRY(sl_jinja_push(run, &keys, key));
        if (more) rest = sl_span_make(rest.data + n + 1, rest.n_bytes - n - 1);
    }
    return sl_jinja_list_make(run, out, SL_JINJA_LIST, &keys.items, keys.n);
}

static sl_status filter_sort(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    sl_jinja_value *keys;
    SL_TRY(sl_jinja_collect(c->run, &all, c->self));
    SL_TRY(sl_jinja_alloc(c->run, &keys, all.n, sizeof *keys));
    for (size_t i = 0; i < all.n; i++)
        SL_TRY(keys_of(c->run, &keys[i], all.items[i], c->v[2], sl_jinja_truth(c->v[1])));
    SL_TRY(sl_jinja_sort(c->run, all.items, keys, all.n, sl_jinja_truth(c->v[0])));
    return sl_jinja_list_make(c->run, out, SL_JINJA_LIST, &all.items, all.n);
}

static sl_status filter_dictsort(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    sl_jinja_value *keys, view = {.type = SL_JINJA_VIEW, .aux = SL_JINJA_ITEMS, .as.dict = c->self.as.dict};
    sl_span by = sl_span_of("key");
    if (c->v[1].type != SL_JINJA_MISSING) SL_TRY(sl_jinja_want_text(c->v[1], &by));
    if (!sl_span_is(by, "key") && !sl_span_is(by, "value"))
        return SL_FAIL(SL_BAD_INPUT, "dictsort sorts by \"key\" or by \"value\"");
    if (c->self.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(c->self);
    if (c->self.type != SL_JINJA_DICT)
        return SL_FAIL(SL_BAD_INPUT, "dictsort: a %s is no dict", sl_jinja_type_name(c->self));
    SL_TRY(sl_jinja_collect(c->run, &all, view));
    SL_TRY(sl_jinja_alloc(c->run, &keys, all.n, sizeof *keys));
    for (size_t i = 0; i < all.n; i++) {
        keys[i] = all.items[i].as.list->items[sl_span_is(by, "value")];
        SL_TRY(fold_case(c->run, &keys[i], sl_jinja_truth(c->v[0])));
    }
    SL_TRY(sl_jinja_sort(c->run, all.items, keys, all.n, sl_jinja_truth(c->v[2])));
    return sl_jinja_list_make(c->run, out, SL_JINJA_LIST, &all.items, all.n);
}

static sl_status unique_into(sl_jinja_call *c, sl_jinja_vec *out) {
    sl_jinja_value seen, key;
    sl_jinja_iter it;
    bool done;
    SL_TRY(sl_jinja_dict_make(c->run, &seen));
    SL_TRY(sl_jinja_iter_init(&it, c->self));
    for (sl_jinja_value item;;) {
        SL_TRY(sl_jinja_iter_next(c->run, &it, &item, &done));
        if (done) return SL_OK;
        SL_TRY(key_of(c->run, &key, item, c->v[1], (sl_jinja_value){0}, sl_jinja_truth(c->v[0])));
        size_t n = seen.as.dict->n;
        SL_TRY(sl_jinja_dict_set(c->run, seen.as.dict, key, sl_jinja_none()));
        if (seen.as.dict->n > n) SL_TRY(sl_jinja_push(c->run, out, item));
    }
}

static sl_status filter_unique(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    sl_status status = unique_into(c, &all);
    return sl_jinja_stream_close(c->run, out, &all, status);
}

static sl_status filter_reverse(sl_jinja_call *c, sl_jinja_value *out) {
    const sl_jinja_value part[3] = {sl_jinja_none(), sl_jinja_none(), sl_jinja_int(-1)};
    sl_jinja_vec all = {0};
    if (c->self.type == SL_JINJA_TEXT) return sl_jinja_slice(c->run, out, c->self, part);
    SL_TRY(sl_jinja_collect(c->run, &all, c->self));
    for (size_t i = 0; i < all.n / 2; i++) {
        sl_jinja_value swap = all.items[i];
        all.items[i] = all.items[all.n - 1 - i];
        all.items[all.n - 1 - i] = swap;
    }
    if (sl_jinja_sized(c->self)) return sl_jinja_stream_make(c->run, out, all.items, all.n);
    return sl_jinja_list_make(c->run, out, SL_JINJA_LIST, &all.items, all.n);
}

static bool given(sl_jinja_value v) { return v.type != SL_JINJA_MISSING && v.type != SL_JINJA_NONE; }

static sl_status push_list(sl_jinja_run *run, sl_jinja_vec *to, sl_jinja_vec *list) {
    sl_jinja_value v;
    SL_TRY(sl_jinja_list_make(run, &v, SL_JINJA_LIST, &list->items, list->n));
    return sl_jinja_push(run, to, v);
}

static sl_status batch_into(sl_jinja_call *c, sl_jinja_vec *out) {
    sl_jinja_vec line = {0};
    sl_jinja_iter it;
    int64_t n;
    bool done;
    SL_TRY(sl_jinja_want_int(c->v[0], 0, &n));
    SL_TRY(sl_jinja_iter_init(&it, c->self));
    for (sl_jinja_value item;;) {
        SL_TRY(sl_jinja_iter_next(c->run, &it, &item, &done));
        if (done) break;
        if ((int64_t)line.n == n) {
            SL_TRY(push_list(c->run, out, &line));
            line = (sl_jinja_vec){0};
        }
        SL_TRY(sl_jinja_push(c->run, &line, item));
    }
    if (!line.n) return SL_OK;
    while (given(c->v[1]) && (int64_t)line.n < n) SL_TRY(sl_jinja_push(c->run, &line, c->v[1]));
    return push_list(c->run, out, &line);
}

static sl_status filter_batch(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    sl_status status = batch_into(c, &all);
    return sl_jinja_stream_close(c->run, out, &all, status);
}

static sl_status slice_into(sl_jinja_call *c, sl_jinja_vec *out) {
    sl_jinja_vec all = {0};
    int64_t n;
    size_t at = 0;
    SL_TRY(sl_jinja_collect(c->run, &all, c->self));
    SL_TRY(sl_jinja_want_int(c->v[0], 0, &n));
    if (n == 0) return SL_FAIL(SL_BAD_INPUT, "slice: the number of slices must not be 0");
    for (int64_t i = 0; i < n; i++) {
        sl_jinja_vec part = {0};
        bool extra = i < (int64_t)all.n % n;
        for (size_t k = all.n / (uint64_t)n + extra; k > 0; k--) SL_TRY(sl_jinja_push(c->run, &part, all.items[at++]));
        if (given(c->v[1]) && !extra) SL_TRY(sl_jinja_push(c->run, &part, c->v[1]));
        SL_TRY(push_list(c->run, out, &part));
    }
    return SL_OK;
}

static sl_status filter_slice(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0};
    sl_status status = slice_into(c, &all);
    return sl_jinja_stream_close(c->run, out, &all, status);
}

static sl_status end_group(sl_jinja_call *c, sl_jinja_vec *groups, sl_jinja_value key, sl_jinja_vec *items) {
    sl_jinja_value group, list;
    if (!items->n) return SL_OK;
    if (!sl_jinja_truth(c->v[2])) SL_TRY(sl_jinja_follow(c->run, &key, items->items[0], c->v[0], c->v[1]));
    SL_TRY(sl_jinja_list_make(c->run, &list, SL_JINJA_LIST, &items->items, items->n));
    SL_TRY(sl_jinja_pair(c->run, &group, key, list));
    group.flags = SL_JINJA_GROUP;
    *items = (sl_jinja_vec){0};
    return sl_jinja_push(c->run, groups, group);
}

static sl_status filter_groupby(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_vec all = {0}, groups = {0}, items = {0};
    sl_jinja_value *keys, last = {0}, key;
    bool same, sensitive = sl_jinja_truth(c->v[2]);
    SL_TRY(sl_jinja_collect(c->run, &all, c->self));
    SL_TRY(sl_jinja_alloc(c->run, &keys, all.n, sizeof *keys));
    for (size_t i = 0; i < all.n; i++) SL_TRY(key_of(c->run, &keys[i], all.items[i], c->v[0], c->v[1], sensitive));
    SL_TRY(sl_jinja_sort(c->run, all.items, keys, all.n, false));
    for (size_t i = 0; i < all.n; i++) {
        SL_TRY(key_of(c->run, &key, all.items[i], c->v[0], c->v[1], sensitive));
        SL_TRY(sl_jinja_equal(c->run, &same, key, last));
        if (!same) SL_TRY(end_group(c, &groups, last, &items));
        if (!same) last = key;
        SL_TRY(sl_jinja_push(c->run, &items, all.items[i]));
    }
    SL_TRY(end_group(c, &groups, last, &items));
    return sl_jinja_list_make(c->run, out, SL_JINJA_LIST, &groups.items, groups.n);
}

static const sl_jinja_builtin entries[] = {
    {"sort", filter_sort, "reverse case_sensitive attribute", 0, 0},
    {"dictsort", filter_dictsort, "case_sensitive by reverse", 0, 0},
    {"unique", filter_unique, "case_sensitive attribute", 0, 0},
    {"reverse", filter_reverse, "", 0, 0},
    {"batch", filter_batch, "linecount fill_with", 1, 0},
    {"slice", filter_slice, "slices fill_with", 1, 0},
    {"groupby", filter_groupby, "attribute default case_sensitive", 1, 0},
};
const sl_jinja_table sl_jinja_filters_list = {entries, SL_COUNT(entries)};
