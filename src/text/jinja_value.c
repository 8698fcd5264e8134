// SPDX-License-Identifier: MIT
//
// Making and comparing template values. Every allocation of a rendering passes sl_jinja_alloc,
// which is where the bounds on memory and, for large texts, on time are kept. Knows nothing of
// templates.
#include "text/jinja_value.h"

#include <math.h>

#include "base/size.h"

const sl_jinja_dict sl_jinja_no_kw = {0};

sl_status sl_jinja_step(sl_jinja_run *run, uint64_t n) {
    if (n > run->max_steps - run->n_steps)
        return SL_FAIL(SL_FULL, "the template needs more than %llu steps", (unsigned long long)run->max_steps);
    run->n_steps += n;
    return SL_OK;
}

sl_status sl_jinja_alloc(sl_jinja_run *run, void *out, size_t n, size_t elem_bytes) {
    uint64_t n_bytes;
    *(void **)out = NULL;
    if (!sl_size_mul(&n_bytes, n, elem_bytes) || n_bytes > run->max_arena_bytes - run->arena.n_bytes)
        return SL_FAIL(SL_FULL, "the template needs more than %zu bytes", run->max_arena_bytes);
    SL_TRY(sl_jinja_step(run, n_bytes / 64)); // what it costs to fill
    return sl_arena_alloc(&run->arena, out, n, elem_bytes, "template values");
}

sl_status sl_jinja_deeper(sl_jinja_run *run) {
    if (run->depth >= SL_JINJA_MAX_DEPTH)
        return SL_FAIL(SL_FULL, "the template nests its calls more than %d deep", SL_JINJA_MAX_DEPTH);
    run->depth++;
    return SL_OK;
}

// ---- texts ----

size_t sl_jinja_count_chars(const char *data, size_t n) {
    size_t n_chars = 0;
    for (size_t i = 0; i < n; i++) n_chars += ((unsigned char)data[i] & 0xc0) != 0x80;
    return n_chars;
}

sl_jinja_text sl_jinja_text_of(sl_span s) {
    return (sl_jinja_text){s.data, s.n_bytes, sl_jinja_count_chars(s.data, s.n_bytes)};
}

static sl_status make_text(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_text text) {
    sl_jinja_text *made;
    SL_TRY(sl_jinja_alloc(run, &made, 1, sizeof *made));
    *made = text;
    *out = sl_jinja_of_text(made);
    return SL_OK;
}

sl_status sl_jinja_text_share(sl_jinja_run *run, sl_jinja_value *out, const char *data, size_t n) {
    SL_TRY(sl_jinja_step(run, n / 256));
    return make_text(run, out, sl_jinja_text_of(sl_span_make(data, n)));
}

sl_status sl_jinja_text_copy(sl_jinja_run *run, sl_jinja_value *out, const char *data, size_t n) {
    char *copy;
    SL_TRY(sl_jinja_alloc(run, &copy, n, 1));
    if (n) memcpy(copy, data, n);
    return sl_jinja_text_share(run, out, copy, n);
}

// A text that was built last is grown in place: it is a prefix of the longer one and stays as it
// was.
sl_status sl_jinja_text_join(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_text a, sl_jinja_text b) {
    if (b.n_bytes == 0) return make_text(run, out, a);
    bool at_tail = run->tail && a.data + a.n_bytes == run->tail + run->tail_used;
    if (!at_tail || b.n_bytes > run->tail_cap - run->tail_used) {
        size_t n = a.n_bytes + b.n_bytes,
               cap = n < 64 ? n : n + n / 2; // both lie in memory: no overflow
        SL_TRY(sl_jinja_alloc(run, &run->tail, cap, 1));
        run->tail_cap = cap;
        if (a.n_bytes) memcpy(run->tail, a.data, a.n_bytes);
        run->tail_used = a.n_bytes;
        a.data = run->tail;
    }
    memcpy(run->tail + run->tail_used, b.data, b.n_bytes);
    run->tail_used += b.n_bytes;
    return make_text(run, out, (sl_jinja_text){a.data, a.n_bytes + b.n_bytes, a.n_chars + b.n_chars});
}

// ---- containers ----

sl_status sl_jinja_list_make(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_type type, sl_jinja_value **items,
                             size_t n) {
    sl_jinja_list *list;
    SL_TRY(sl_jinja_alloc(run, &list, 1, sizeof *list));
    list->n = n;
    if (*items) list->items = *items;
    else SL_TRY(sl_jinja_alloc(run, &list->items, n, sizeof **items));
    *items = list->items;
    *out = (sl_jinja_value){.type = (uint8_t)type, .as.list = list};
    return SL_OK;
}

sl_status sl_jinja_pair(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value a, sl_jinja_value b) {
    sl_jinja_value *items = NULL;
    SL_TRY(sl_jinja_list_make(run, out, SL_JINJA_TUPLE, &items, 2));
    items[0] = a;
    items[1] = b;
    return SL_OK;
}

sl_status sl_jinja_dict_make(sl_jinja_run *run, sl_jinja_value *out) {
    sl_jinja_dict *dict;
    SL_TRY(sl_jinja_alloc(run, &dict, 1, sizeof *dict));
    *out = (sl_jinja_value){.type = SL_JINJA_DICT, .as.dict = dict};
    return SL_OK;
}

sl_status sl_jinja_stream_make(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value *items, size_t n) {
    sl_jinja_stream *stream;
    SL_TRY(sl_jinja_alloc(run, &stream, 1, sizeof *stream));
    *stream = (sl_jinja_stream){.items = items, .n = n};
    *out = (sl_jinja_value){.type = SL_JINJA_ITERATOR, .as.stream = stream};
    return SL_OK;
}

sl_status sl_jinja_push(sl_jinja_run *run, sl_jinja_vec *vec, sl_jinja_value v) {
    if (vec->n == vec->cap) {
        sl_jinja_value *items;
        size_t cap = vec->cap ? vec->cap * 2 : 8;
        SL_TRY(sl_jinja_alloc(run, &items, cap, sizeof *items));
        if (vec->n) memcpy(items, vec->items, vec->n * sizeof *items);
        vec->items = items;
        vec->cap = cap;
    }
    vec->items[vec->n++] = v;
    return sl_jinja_step(run, 1);
}

// ---- undefined ----

sl_jinja_value sl_jinja_undefined(const sl_jinja_text *name, unsigned of) {
    return (sl_jinja_value){.type = SL_JINJA_UNDEFINED, .aux = of, .as.text = name};
}

sl_status sl_jinja_undefined_hint(sl_jinja_run *run, sl_jinja_value *out, const char *hint) {
    SL_TRY(sl_jinja_text_share(run, out, hint, strlen(hint)));
    *out = sl_jinja_undefined(out->as.text, SL_JINJA_OF_HINT);
    return SL_OK;
}

static const char *const type_names[SL_JINJA_TYPE_COUNT] = {
    "missing", "Undefined",  "NoneType",  "bool",      "int",   "float",       "str",    "list",   "tuple",    "dict",
    "range",   "dict_items", "generator", "Namespace", "Macro", "LoopContext", "Cycler", "Joiner", "function", "method",
};

const char *sl_jinja_type_name(sl_jinja_value v) { return type_names[v.type]; }

sl_status sl_jinja_fail_undefined(sl_jinja_value v) {
    int n = (int)SL_MIN(v.as.text->n_bytes, (size_t)200);
    const char *name = v.as.text->data;
    if (v.aux == SL_JINJA_OF_HINT) return SL_FAIL(SL_BAD_INPUT, "%.*s", n, name);
    if (v.aux == SL_JINJA_OF_CONTEXT) return SL_FAIL(SL_BAD_INPUT, "'%.*s' is undefined", n, name);
    return SL_FAIL(SL_BAD_INPUT, "a %s has no '%.*s'", type_names[v.aux - 1], n, name);
}

// ---- truth, identity, length ----

bool sl_jinja_sized(sl_jinja_value v) {
    return v.type == SL_JINJA_TEXT || v.type == SL_JINJA_LIST || v.type == SL_JINJA_TUPLE || v.type == SL_JINJA_DICT ||
           v.type == SL_JINJA_RANGE || v.type == SL_JINJA_VIEW || v.type == SL_JINJA_UNDEFINED;
}

sl_status sl_jinja_len(size_t *out, sl_jinja_value v) {
    *out = 0;
    switch (v.type) {
    case SL_JINJA_UNDEFINED: return SL_OK;
    case SL_JINJA_TEXT: *out = v.as.text->n_chars; return SL_OK;
    case SL_JINJA_LIST:
    case SL_JINJA_TUPLE: *out = v.as.list->n; return SL_OK;
    case SL_JINJA_DICT:
    case SL_JINJA_VIEW: *out = v.as.dict->n; return SL_OK;
    case SL_JINJA_RANGE: *out = v.as.range->n; return SL_OK;
    default: return SL_FAIL(SL_BAD_INPUT, "a %s has no length", sl_jinja_type_name(v));
    }
}

bool sl_jinja_truth(sl_jinja_value v) {
    size_t n;
    switch (v.type) {
    case SL_JINJA_NONE:
    case SL_JINJA_MISSING: return false;
    case SL_JINJA_BOOL: return v.as.b;
    case SL_JINJA_INT: return v.as.i != 0;
    case SL_JINJA_FLOAT: return v.as.f != 0;
    default: return !sl_jinja_sized(v) || (sl_jinja_len(&n, v) == SL_OK && n > 0);
    }
}

bool sl_jinja_same(sl_jinja_value a, sl_jinja_value b) {
    if (a.type != b.type || a.flags != b.flags) return false;
    switch (a.type) {
    case SL_JINJA_NONE: return true;
    case SL_JINJA_BOOL: return a.as.b == b.as.b;
    case SL_JINJA_INT: return a.as.i == b.as.i;
    case SL_JINJA_FLOAT: return a.as.f == b.as.f;
    case SL_JINJA_TEXT: return sl_span_equal(sl_jinja_span(a), sl_jinja_span(b));
    default: return a.as.text == b.as.text;
    }
}

// ---- equality and order ----

// -1, 0, 1, or 2 if one is NaN; exact also where an int has no double.
static int compare_numbers(sl_jinja_value a, sl_jinja_value b) {
    if (sl_jinja_is_int(a) && sl_jinja_is_int(b)) {
        int64_t x = sl_jinja_as_int(a), y = sl_jinja_as_int(b);
        return (x > y) - (x < y);
    }
    double x = sl_jinja_as_float(a), y = sl_jinja_as_float(b);
    if (isnan(x) || isnan(y)) return 2;
    if (x != y || a.type == b.type || fabs(x) >= 0x1p63) return (x > y) - (x < y);
    int64_t i = sl_jinja_is_int(a) ? sl_jinja_as_int(a) : (int64_t)x;
    int64_t j = sl_jinja_is_int(b) ? sl_jinja_as_int(b) : (int64_t)y;
    return (i > j) - (i < j);
}

static sl_status equal_dicts(sl_jinja_run *run, bool *out, const sl_jinja_dict *a, const sl_jinja_dict *b) {
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        const sl_jinja_value *v;
        SL_TRY(sl_jinja_dict_find(run, &v, b, a->entries[i].key));
        if (!v) *out = false;
        else SL_TRY(sl_jinja_equal(run, out, a->entries[i].value, *v));
    }
    return SL_OK;
}

// The first place where two lists differ, or the length of the shorter one.
static sl_status mismatch(sl_jinja_run *run, size_t *at, const sl_jinja_list *a, const sl_jinja_list *b) {
    for (*at = 0; *at < a->n && *at < b->n; ++*at) {
        bool same = sl_jinja_same(a->items[*at], b->items[*at]) && a->items[*at].type != SL_JINJA_FLOAT;
        if (!same) SL_TRY(sl_jinja_equal(run, &same, a->items[*at], b->items[*at]));
        if (!same) break;
    }
    return SL_OK;
}

static sl_status equal_containers(sl_jinja_run *run, bool *out, sl_jinja_value a, sl_jinja_value b) {
    size_t at;
    if (a.type == SL_JINJA_DICT) return equal_dicts(run, out, a.as.dict, b.as.dict);
    if (a.type != SL_JINJA_VIEW) {
        SL_TRY(mismatch(run, &at, a.as.list, b.as.list));
        *out = a.as.list->n == b.as.list->n && at == a.as.list->n;
        return SL_OK;
    }
    if (a.aux == SL_JINJA_VALUES || b.aux == SL_JINJA_VALUES) return *out = a.as.dict == b.as.dict && 0, SL_OK;
    sl_jinja_iter it;
    bool done;
    *out = a.as.dict->n == b.as.dict->n;
    SL_TRY(sl_jinja_iter_init(&it, a));
    for (sl_jinja_value v; *out;) {
        SL_TRY(sl_jinja_iter_next(run, &it, &v, &done));
        if (done) break;
        SL_TRY(sl_jinja_contains(run, out, b, v));
    }
    return SL_OK;
}

sl_status sl_jinja_equal(sl_jinja_run *run, bool *out, sl_jinja_value a, sl_jinja_value b) {
    *out = false;
    SL_TRY(sl_jinja_step(run, 1));
    if (sl_jinja_is_number(a) && sl_jinja_is_number(b)) return *out = compare_numbers(a, b) == 0, SL_OK;
    if (a.type != b.type) return SL_OK;
    switch (a.type) {
    case SL_JINJA_TEXT:
        *out = sl_span_equal(sl_jinja_span(a), sl_jinja_span(b));
        return *out ? sl_jinja_step(run, a.as.text->n_bytes / 64) : SL_OK;
    case SL_JINJA_UNDEFINED:
    case SL_JINJA_NONE: *out = true; return SL_OK;
    case SL_JINJA_RANGE: {
        const sl_jinja_range *x = a.as.range, *y = b.as.range;
        *out = x->n == y->n && (!x->n || (x->start == y->start && (x->n == 1 || x->step == y->step)));
        return SL_OK;
    }
    case SL_JINJA_DICT:
    case SL_JINJA_VIEW:
    case SL_JINJA_LIST:
    case SL_JINJA_TUPLE: {
        SL_TRY(sl_jinja_deeper(run));
        sl_status status = equal_containers(run, out, a, b);
        run->depth--;
        return status;
    }
    default: *out = a.as.text == b.as.text; return SL_OK;
    }
}

// Bytes of UTF-8 sort as code points do.
static int compare_texts(sl_jinja_value a, sl_jinja_value b) {
    sl_span x = sl_jinja_span(a), y = sl_jinja_span(b);
    size_t n = SL_MIN(x.n_bytes, y.n_bytes);
    int c = n ? memcmp(x.data, y.data, n) : 0;
    return c ? (c > 0) - (c < 0) : (x.n_bytes > y.n_bytes) - (x.n_bytes < y.n_bytes);
}

sl_status sl_jinja_compare(sl_jinja_run *run, int *out, sl_jinja_value a, sl_jinja_value b) {
    *out = 0;
    SL_TRY(sl_jinja_step(run, 1));
    if (sl_jinja_is_number(a) && sl_jinja_is_number(b)) return *out = compare_numbers(a, b), SL_OK;
    if (a.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(a);
    if (b.type == SL_JINJA_UNDEFINED) return sl_jinja_fail_undefined(b);
    if (a.type == SL_JINJA_TEXT && b.type == SL_JINJA_TEXT) {
        SL_TRY(sl_jinja_step(run, SL_MIN(a.as.text->n_bytes, b.as.text->n_bytes) / 64));
        return *out = compare_texts(a, b), SL_OK;
    }
    if (a.type != b.type || (a.type != SL_JINJA_LIST && a.type != SL_JINJA_TUPLE))
        return SL_FAIL(SL_BAD_INPUT, "a %s and a %s have no order", sl_jinja_type_name(a), sl_jinja_type_name(b));
    const sl_jinja_list *x = a.as.list, *y = b.as.list;
    size_t at;
    SL_TRY(sl_jinja_deeper(run));
    sl_status status = mismatch(run, &at, x, y);
    if (status == SL_OK) {
        if (at < x->n && at < y->n) status = sl_jinja_compare(run, out, x->items[at], y->items[at]);
        else *out = (x->n > y->n) - (x->n < y->n);
    }
    run->depth--;
    return status;
}

// ---- hashing: equal values have equal hashes ----

static uint64_t mix(uint64_t h) { return (h ^ h >> 29) * 0xbf58476d1ce4e5b9u; }

sl_status sl_jinja_hash(sl_jinja_run *run, uint64_t *out, sl_jinja_value v) {
    *out = mix(v.type + 1u);
    switch (v.type) {
    case SL_JINJA_LIST:
    case SL_JINJA_DICT:
    case SL_JINJA_VIEW: return SL_FAIL(SL_BAD_INPUT, "a %s cannot be a key", sl_jinja_type_name(v));
    case SL_JINJA_NONE:
    case SL_JINJA_UNDEFINED: return SL_OK;
    case SL_JINJA_BOOL:
    case SL_JINJA_INT: *out = mix((uint64_t)sl_jinja_as_int(v)); return SL_OK;
    case SL_JINJA_FLOAT:
        if (v.as.f == floor(v.as.f) && fabs(v.as.f) < 0x1p63) *out = mix((uint64_t)(int64_t)v.as.f);
        return SL_OK;
    case SL_JINJA_TEXT: *out = sl_span_hash(sl_jinja_span(v)); return SL_OK;
    case SL_JINJA_TUPLE: {
        SL_TRY(sl_jinja_deeper(run));
        sl_status status = SL_OK;
        for (size_t i = 0; i < v.as.list->n && status == SL_OK; i++) {
            uint64_t h;
            status = sl_jinja_hash(run, &h, v.as.list->items[i]);
            *out = mix(*out * 31 + h);
        }
        run->depth--;
        return status;
    }
    default: return SL_OK; // by identity; few, so one bucket does
    }
}
