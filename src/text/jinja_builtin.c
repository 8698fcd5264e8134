// SPDX-License-Identifier: MIT
//
// Calling builtins: puts arguments into the places that the signature names. And the global
// functions.
#include "text/jinja_builtin.h"

#include "text/jinja_text.h"

// The next word of a signature; false at its end.
static bool next_word(const char **signature, sl_span *word) {
    while (**signature == ' ') ++*signature;
    const char *begin = *signature;
    while (**signature && **signature != ' ') ++*signature;
    *word = sl_span_make(begin, (size_t)(*signature - begin));
    return word->n_bytes > 0;
}

static sl_status wrong_arguments(const sl_jinja_builtin *builtin) {
    const char *signature = builtin->signature[0] == '/' ? builtin->signature + 1 : builtin->signature;
    return SL_FAIL(SL_BAD_INPUT, "%s got arguments that it does not take: it takes (%s)", builtin->name, signature);
}

sl_status sl_jinja_builtin_call(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_builtin *builtin,
                                sl_jinja_value self, const sl_jinja_args *args) {
    sl_jinja_call c = {.run = run, .self = self, .args = args};
    *out = sl_jinja_none();
    if (builtin->signature[0] == '*') return builtin->run(&c, out);
    const char *p = builtin->signature;
    bool keywords = *p != '/';
    size_t n = 0, n_used = 0;
    sl_span word;
    for (p += !keywords; next_word(&p, &word); n++) {
        const sl_jinja_value *v = keywords ? sl_jinja_dict_text(args->kw, word) : NULL;
        if (n < args->n_pos && v) return wrong_arguments(builtin);
        if (n < args->n_pos) c.v[n] = args->pos[n];
        else if (v) c.v[n] = *v;
        else if (n < builtin->n_required) return wrong_arguments(builtin);
        n_used += v != NULL;
    }
    if (args->n_pos > n || n_used != args->kw->n) return wrong_arguments(builtin);
    return builtin->run(&c, out);
}

const sl_jinja_builtin *sl_jinja_table_find(const sl_jinja_builtin *table, size_t n, sl_span name) {
    for (size_t i = 0; i < n; i++)
        if (sl_span_is(name, table[i].name)) return &table[i];
    return NULL;
}

sl_status sl_jinja_want_int(sl_jinja_value v, int64_t instead, int64_t *out) {
    *out = instead;
    if (v.type == SL_JINJA_MISSING) return SL_OK;
    if (!sl_jinja_is_int(v)) return SL_FAIL(SL_BAD_INPUT, "a whole number is wanted, not a %s", sl_jinja_type_name(v));
    *out = sl_jinja_as_int(v);
    return SL_OK;
}

sl_status sl_jinja_want_text(sl_jinja_value v, sl_span *out) {
    if (v.type != SL_JINJA_TEXT) return SL_FAIL(SL_BAD_INPUT, "a str is wanted, not a %s", sl_jinja_type_name(v));
    *out = sl_jinja_span(v);
    return SL_OK;
}

// ---- globals ----

static sl_status global_range(sl_jinja_call *c, sl_jinja_value *out) {
    enum { MAX_ITEMS = 100000 }; // jinja2's sandbox has the same bound
    int64_t start = 0, stop, step;
    sl_jinja_range *range;
    SL_TRY(sl_jinja_want_int(c->v[0], 0, &stop));
    if (c->v[1].type != SL_JINJA_MISSING) {
        start = stop;
        SL_TRY(sl_jinja_want_int(c->v[1], 0, &stop));
    }
    SL_TRY(sl_jinja_want_int(c->v[2], 1, &step));
    if (step == 0) return SL_FAIL(SL_BAD_INPUT, "range: the step must not be 0");
    bool empty = step > 0 ? start >= stop : start <= stop;
    uint64_t width = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
    uint64_t n = empty ? 0 : (width - 1) / stride + 1;
    if (n > MAX_ITEMS) return SL_FAIL(SL_BAD_INPUT, "range: more than %d numbers", MAX_ITEMS);
    SL_TRY(sl_jinja_alloc(c->run, &range, 1, sizeof *range));
    *range = (sl_jinja_range){start, stop, step, n};
    *out = (sl_jinja_value){.type = SL_JINJA_RANGE, .as.range = range};
    return SL_OK;
}

static sl_status global_dict(sl_jinja_call *c, sl_jinja_value *out) {
    SL_TRY(sl_jinja_dict_make(c->run, out));
    if (c->args->n_pos > 1) return SL_FAIL(SL_BAD_INPUT, "dict takes one value and keywords");
    if (c->args->n_pos) SL_TRY(sl_jinja_dict_update(c->run, out->as.dict, c->args->pos[0]));
    for (size_t i = 0; i < c->args->kw->n; i++)
        SL_TRY(sl_jinja_dict_set(c->run, out->as.dict, c->args->kw->entries[i].key, c->args->kw->entries[i].value));
    return SL_OK;
}

static sl_status global_namespace(sl_jinja_call *c, sl_jinja_value *out) {
    SL_TRY(global_dict(c, out));
    out->type = SL_JINJA_NAMESPACE;
    for (size_t i = 0; i < out->as.dict->n; i++) {
        sl_jinja_value key = out->as.dict->entries[i].key;
        if (key.type == SL_JINJA_TEXT && key.as.text->n_bytes && key.as.text->data[0] == '_')
            return SL_FAIL(SL_BAD_INPUT, "an attribute of a namespace must not start with an underscore");
    }
    return SL_OK;
}

static sl_status make_cycler(sl_jinja_call *c, sl_jinja_value *out, sl_jinja_type type, const sl_jinja_value *items,
                             size_t n) {
    sl_jinja_cycler *cycler;
    SL_TRY(sl_jinja_alloc(c->run, &cycler, 1, sizeof *cycler));
    *cycler = (sl_jinja_cycler){items, n, 0};
    *out = (sl_jinja_value){.type = (uint8_t)type, .as.cycler = cycler};
    return SL_OK;
}

static sl_status global_cycler(sl_jinja_call *c, sl_jinja_value *out) {
    if (!c->args->n_pos || c->args->kw->n) return SL_FAIL(SL_BAD_INPUT, "cycler takes one or more values");
    return make_cycler(c, out, SL_JINJA_CYCLER, c->args->pos, c->args->n_pos);
}

static sl_status global_joiner(sl_jinja_call *c, sl_jinja_value *out) {
    sl_jinja_value *items;
    SL_TRY(sl_jinja_alloc(c->run, &items, 1, sizeof *items));
    if (c->v[0].type != SL_JINJA_MISSING) items[0] = c->v[0];
    else SL_TRY(sl_jinja_text_share(c->run, &items[0], ", ", 2));
    return make_cycler(c, out, SL_JINJA_JOINER, items, 1);
}

static sl_status global_raise(sl_jinja_call *c, sl_jinja_value *out) {
    SL_TRY(sl_jinja_str(c->run, out, c->v[0]));
    c->run->raised = true;
    return SL_FAIL(SL_BAD_INPUT, "%.*s", (int)SL_MIN(out->as.text->n_bytes, 4096u), out->as.text->data);
}

static sl_status global_strftime(sl_jinja_call *c, sl_jinja_value *out) {
    sl_span format;
    SL_TRY(sl_jinja_want_text(c->v[0], &format));
    sl_buf buf = sl_jinja_scratch(c->run);
    sl_status status = sl_jinja_strftime(&buf, format, c->run->now_s);
    return sl_jinja_take(c->run, out, &buf, status);
}

static const sl_jinja_builtin globals[] = {
    {"range", global_range, "/start stop step", 1, 0},
    {"dict", global_dict, "*", 0, 0},
    {"namespace", global_namespace, "*", 0, 0},
    {"cycler", global_cycler, "*", 0, 0},
    {"joiner", global_joiner, "sep", 0, 0},
    {"raise_exception", global_raise, "message", 1, 0},
    {"strftime_now", global_strftime, "f", 1, 0},
};

const sl_jinja_builtin *sl_jinja_global_find(sl_span name) {
    return sl_jinja_table_find(globals, SL_COUNT(globals), name);
}
