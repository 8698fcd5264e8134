// SPDX-License-Identifier: MIT
//
// Going through values: what Python's iter(), list(), `in` and sorted() do. A list that is gone
// through never changes under the iterator; a stream remembers where it was, so it can be used up
// only once.
#include "base/utf8.h"
#include "text/jinja_text.h"

bool sl_jinja_iterable(sl_jinja_value v) { return sl_jinja_sized(v) || v.type == SL_JINJA_ITERATOR; }

sl_status sl_jinja_iter_init(sl_jinja_iter *it, sl_jinja_value v) {
    *it = (sl_jinja_iter){v, 0};
    if (sl_jinja_iterable(v)) return SL_OK;
    return SL_FAIL(SL_BAD_INPUT, "a %s has no items to go through", sl_jinja_type_name(v));
}

static sl_status next_view(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_entry *e, unsigned view) {
    if (view == SL_JINJA_ITEMS) return sl_jinja_pair(run, out, e->key, e->value);
    *out = view == SL_JINJA_KEYS ? e->key : e->value;
    return SL_OK;
}

static sl_status next_char(sl_jinja_run *run, sl_jinja_iter *it, sl_jinja_value *out) {
    const sl_jinja_text *text = it->source.as.text;
    uint32_t cp;
    const char *at = text->data + it->pos;
    size_t n = sl_utf8_decode(&cp, at, text->n_bytes - it->pos);
    it->pos += n;
    return sl_jinja_text_share(run, out, at, n);
}

static sl_status next_stream(sl_jinja_stream *s, sl_jinja_value *out, bool *done) {
    if (s->pos < s->n) return *out = s->items[s->pos++], SL_OK;
    *done = true;
    sl_status status = s->status;
    s->status = SL_OK;
    return status == SL_OK ? SL_OK : SL_FAIL(status, "%s", s->reason);
}

sl_status sl_jinja_iter_next(sl_jinja_run *run, sl_jinja_iter *it, sl_jinja_value *out, bool *done) {
    sl_jinja_value v = it->source;
    *done = false;
    *out = sl_jinja_none();
    SL_TRY(sl_jinja_step(run, 1));
    switch (v.type) {
    case SL_JINJA_LIST:
    case SL_JINJA_TUPLE:
        if ((*done = it->pos == v.as.list->n)) return SL_OK;
        *out = v.as.list->items[it->pos++];
        return SL_OK;
    case SL_JINJA_DICT:
        if ((*done = it->pos == v.as.dict->n)) return SL_OK;
        *out = v.as.dict->entries[it->pos++].key;
        return SL_OK;
    case SL_JINJA_VIEW:
        if ((*done = it->pos == v.as.dict->n)) return SL_OK;
        return next_view(run, out, &v.as.dict->entries[it->pos++], v.aux);
    case SL_JINJA_RANGE:
        if ((*done = it->pos == v.as.range->n)) return SL_OK;
        *out = sl_jinja_int(v.as.range->start + (int64_t)it->pos++ * v.as.range->step);
        return SL_OK;
    case SL_JINJA_TEXT:
        if ((*done = it->pos == v.as.text->n_bytes)) return SL_OK;
        return next_char(run, it, out);
    case SL_JINJA_ITERATOR: return next_stream(v.as.stream, out, done);
    default: *done = true; return SL_OK;
    }
}

sl_status sl_jinja_collect(sl_jinja_run *run, sl_jinja_vec *out, sl_jinja_value v) {
    sl_jinja_iter it;
    bool done;
    SL_TRY(sl_jinja_iter_init(&it, v));
    for (sl_jinja_value item;;) {
        SL_TRY(sl_jinja_iter_next(run, &it, &item, &done));
        if (done) return SL_OK;
        SL_TRY(sl_jinja_push(run, out, item));
    }
}

static sl_status text_contains(sl_jinja_run *run, bool *out, sl_jinja_value in, sl_jinja_value item) {
    if (item.type != SL_JINJA_TEXT)
        return SL_FAIL(SL_BAD_INPUT, "only a str can be in a str, not a %s", sl_jinja_type_name(item));
    sl_span hay = sl_jinja_span(in), needle = sl_jinja_span(item);
    *out = needle.n_bytes == 0;
    if (*out || hay.n_bytes < needle.n_bytes) return SL_OK;
    SL_TRY(sl_jinja_step(run, hay.n_bytes / 64));
    *out = sl_jinja_find(hay, needle) != SIZE_MAX;
    return SL_OK;
}

sl_status sl_jinja_contains(sl_jinja_run *run, bool *out, sl_jinja_value in, sl_jinja_value item) {
    const sl_jinja_value *found;
    sl_jinja_iter it;
    bool done;
    *out = false;
    if (in.type == SL_JINJA_TEXT) return text_contains(run, out, in, item);
    if (in.type == SL_JINJA_DICT || (in.type == SL_JINJA_VIEW && in.aux == SL_JINJA_KEYS)) {
        SL_TRY(sl_jinja_dict_find(run, &found, in.as.dict, item));
        return *out = found != NULL, SL_OK;
    }
    SL_TRY(sl_jinja_iter_init(&it, in));
    for (sl_jinja_value v; !*out;) {
        SL_TRY(sl_jinja_iter_next(run, &it, &v, &done));
        if (done) return SL_OK;
        *out = v.type == item.type && v.type > SL_JINJA_FLOAT && sl_jinja_same(v, item);
        if (!*out) SL_TRY(sl_jinja_equal(run, out, v, item));
    }
    return SL_OK;
}

typedef struct sort_item {
    sl_jinja_value item, key;
} sort_item;

// Merges the sorted halves of a[0..n) by way of b. Equal keys keep their order.
static sl_status merge_sort(sl_jinja_run *run, sort_item *a, sort_item *b, size_t n, bool reverse) {
    if (n < 2) return SL_OK;
    size_t half = n / 2;
    SL_TRY(merge_sort(run, a, b, half, reverse));
    SL_TRY(merge_sort(run, a + half, b, n - half, reverse));
    size_t i = 0, j = half;
    for (size_t k = 0; k < n; k++) {
        bool right = i == half;
        if (!right && j < n) {
            int c;
            SL_TRY(sl_jinja_compare(run, &c, a[j].key, a[i].key));
            right = reverse ? c == 1 : c == -1;
        }
        b[k] = right ? a[j++] : a[i++];
    }
    memcpy(a, b, n * sizeof *a);
    return SL_OK;
}

sl_status sl_jinja_sort(sl_jinja_run *run, sl_jinja_value *items, const sl_jinja_value *keys, size_t n, bool reverse) {
    sort_item *a, *b;
    SL_TRY(sl_jinja_alloc(run, &a, n, sizeof *a));
    SL_TRY(sl_jinja_alloc(run, &b, n, sizeof *b));
    for (size_t i = 0; i < n; i++) a[i] = (sort_item){items[i], keys[i]};
    SL_TRY(merge_sort(run, a, b, n, reverse));
    for (size_t i = 0; i < n; i++) items[i] = a[i].item;
    return SL_OK;
}
