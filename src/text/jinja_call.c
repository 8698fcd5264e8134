// SPDX-License-Identifier: MIT
//
// Calls: arguments, macros with their defaults and their three special parameters, and what else
// can be called.
#include "text/jinja_callable.h"

// ---- arguments ----

static sl_status add_keywords(sl_jinja_run *run, sl_jinja_dict *kw, sl_jinja_value from) {
    if (from.type != SL_JINJA_DICT)
        return SL_FAIL(SL_BAD_INPUT, "after ** there must be a dict, not a %s", sl_jinja_type_name(from));
    for (size_t i = 0; i < from.as.dict->n; i++) {
        const sl_jinja_entry *e = &from.as.dict->entries[i];
        if (e->key.type != SL_JINJA_TEXT) return SL_FAIL(SL_BAD_INPUT, "keywords must be texts");
        if (sl_jinja_dict_text(kw, sl_jinja_span(e->key))) return SL_FAIL(SL_BAD_INPUT, "an argument is given twice");
        SL_TRY(sl_jinja_dict_set(run, kw, e->key, e->value));
    }
    return SL_OK;
}

sl_status sl_jinja_eval_args(sl_jinja_run *run, sl_jinja_args *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_vec pos = {0};
    sl_jinja_value v, kw;
    *out = (sl_jinja_args){.kw = &sl_jinja_no_kw};
    if (!node->n_list && !node->kwargs && !node->b && !node->c) return SL_OK;
    for (const sl_jinja_node *n = node->list; n; n = n->next) {
        SL_TRY(sl_jinja_eval(run, &v, n, scope));
        SL_TRY(sl_jinja_push(run, &pos, v));
    }
    if (node->kwargs || node->c) {
        SL_TRY(sl_jinja_dict_make(run, &kw));
        out->kw = kw.as.dict;
    }
    for (const sl_jinja_node *n = node->kwargs; n; n = n->next) {
        SL_TRY(sl_jinja_eval(run, &v, n->a, scope));
        SL_TRY(sl_jinja_dict_set(run, kw.as.dict, sl_jinja_of_text(n->name), v));
    }
    if (node->b) {
        SL_TRY(sl_jinja_eval(run, &v, node->b, scope));
        SL_TRY(sl_jinja_collect(run, &pos, v));
    }
    if (node->c) {
        SL_TRY(sl_jinja_eval(run, &v, node->c, scope));
        SL_TRY(add_keywords(run, kw.as.dict, v));
    }
    out->pos = pos.items;
    out->n_pos = pos.n;
    return SL_OK;
}

sl_status sl_jinja_eval_call(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope,
                             const sl_jinja_value *caller) {
    sl_jinja_value callee, kw, name;
    sl_jinja_args args;
    SL_TRY(sl_jinja_eval(run, &callee, node->a, scope));
    SL_TRY(sl_jinja_eval_args(run, &args, node, scope));
    if (caller) {
        if (sl_jinja_dict_text(args.kw, sl_span_of("caller"))) return SL_FAIL(SL_BAD_INPUT, "caller is given twice");
        SL_TRY(sl_jinja_dict_make(run, &kw));
        for (size_t i = 0; i < args.kw->n; i++)
            SL_TRY(sl_jinja_dict_set(run, kw.as.dict, args.kw->entries[i].key, args.kw->entries[i].value));
        SL_TRY(sl_jinja_text_share(run, &name, "caller", 6));
        SL_TRY(sl_jinja_dict_set(run, kw.as.dict, name, *caller));
        args.kw = kw.as.dict;
    }
    run->line = node->line;
    return sl_jinja_call_value(run, out, callee, &args);
}

// ---- macros ----

sl_status sl_jinja_macro_make(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node,
                              sl_jinja_scope *scope) {
    sl_jinja_macro *macro;
    SL_TRY(sl_jinja_alloc(run, &macro, 1, sizeof *macro));
    *macro = (sl_jinja_macro){node, scope, node->kind == SL_NODE_MACRO ? node->name : NULL};
    *out = (sl_jinja_value){.type = SL_JINJA_MACRO, .as.macro = macro};
    return SL_OK;
}

// The keywords that no parameter took; `taken` has a mark for each keyword.
static sl_status rest_of_keywords(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_dict *kw, const bool *taken) {
    SL_TRY(sl_jinja_dict_make(run, out));
    for (size_t i = 0; i < kw->n; i++)
        if (!taken[i]) SL_TRY(sl_jinja_dict_set(run, out->as.dict, kw->entries[i].key, kw->entries[i].value));
    return SL_OK;
}

static bool take_keyword(sl_jinja_value *out, const sl_jinja_dict *kw, bool *taken, sl_span name) {
    const sl_jinja_value *v = sl_jinja_dict_text(kw, name);
    if (!v) return false;
    for (size_t i = 0; i < kw->n; i++)
        if (&kw->entries[i].value == v) taken[i] = true;
    *out = *v;
    return true;
}

static sl_status bind_special(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *scope,
                              const sl_jinja_args *args, bool *taken, size_t n_given) {
    sl_jinja_value rest, *v;
    if (node->wants_caller) {
        v = sl_jinja_scope_param(scope, "caller");
        if (!take_keyword(v, args->kw, taken, sl_span_of("caller")) || v->type == SL_JINJA_NONE)
            SL_TRY(sl_jinja_undefined_hint(run, v, "No caller defined"));
    }
    SL_TRY(rest_of_keywords(run, &rest, args->kw, taken));
    if (node->wants_kwargs) *sl_jinja_scope_param(scope, "kwargs") = rest;
    else if (rest.as.dict->n)
        return SL_FAIL(SL_BAD_INPUT, "the macro takes no keyword argument '%.*s'",
                       (int)SL_MIN(rest.as.dict->entries[0].key.as.text->n_bytes, 100u),
                       rest.as.dict->entries[0].key.as.text->data);
    size_t n_more = args->n_pos - n_given;
    if (node->wants_varargs) {
        sl_jinja_value *items = NULL;
        SL_TRY(sl_jinja_list_make(run, sl_jinja_scope_param(scope, "varargs"), SL_JINJA_TUPLE, &items, n_more));
        if (n_more) memcpy(items, args->pos + n_given, n_more * sizeof *items);
    } else if (n_more) {
        return SL_FAIL(SL_BAD_INPUT, "the macro takes not more than %u arguments", node->n_list);
    }
    return SL_OK;
}

static sl_status bind_macro(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *scope,
                            const sl_jinja_args *args) {
    bool *taken;
    size_t i = 0;
    SL_TRY(sl_jinja_alloc(run, &taken, args->kw->n + 1, sizeof *taken));
    for (const sl_jinja_node *p = node->list; p; p = p->next, i++) {
        if (i < args->n_pos) scope->values[p->slot] = args->pos[i];
        else take_keyword(&scope->values[p->slot], args->kw, taken, sl_span_make(p->name->data, p->name->n_bytes));
    }
    SL_TRY(bind_special(run, node, scope, args, taken, SL_MIN(i, args->n_pos)));
    SL_TRY(sl_jinja_scope_enter(run, scope));
    for (const sl_jinja_node *p = node->list; p; p = p->next) {
        sl_jinja_value *v = &scope->values[p->slot], made;
        if (v->type != SL_JINJA_MISSING) continue;
        if (p->a) SL_TRY(sl_jinja_eval(run, &made, p->a, scope));
        else made = sl_jinja_undefined(p->name, SL_JINJA_OF_CONTEXT);
        *v = made;
    }
    return SL_OK;
}

static sl_status call_macro(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_macro *macro,
                            const sl_jinja_args *args) {
    sl_jinja_scope *scope;
    if (run->macro_depth >= SL_JINJA_MAX_MACROS)
        return SL_FAIL(SL_FULL, "macros call one another more than %d deep", SL_JINJA_MAX_MACROS);
    run->macro_depth++;
    SL_TRY(sl_jinja_scope_new(run, &scope, macro->scope, macro->node->frame));
    SL_TRY(bind_macro(run, macro->node, scope, args));
    SL_TRY(sl_jinja_capture(run, out, macro->node->body, scope));
    run->macro_depth--;
    return SL_OK;
}

// ---- everything else ----

static sl_status call_loop(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_loop *loop, const sl_jinja_args *args) {
    size_t begin = run->out.n_bytes;
    if (!loop->node->flag) return SL_FAIL(SL_BAD_INPUT, "only a loop marked recursive can be called");
    if (args->n_pos != 1 || args->kw->n) return SL_FAIL(SL_BAD_INPUT, "loop(...) takes one argument");
    sl_buf_append(&run->out, "", 0);
    SL_TRY(sl_jinja_loop_run(run, loop->node, args->pos[0], loop->outer, loop->depth0 + 1));
    SL_TRY(run->out.status);
    SL_TRY(sl_jinja_text_copy(run, out, run->out.data + begin, run->out.n_bytes - begin));
    run->out.n_bytes = begin;
    return SL_OK;
}

static sl_status call_joiner(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_cycler *joiner,
                             const sl_jinja_args *args) {
    if (args->n_pos || args->kw->n) return SL_FAIL(SL_BAD_INPUT, "a joiner takes no arguments");
    if (joiner->pos++ == 0) return sl_jinja_text_share(run, out, "", 0);
    *out = joiner->items[0];
    return SL_OK;
}

sl_status sl_jinja_call_value(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value callee,
                              const sl_jinja_args *args) {
    switch (callee.type) {
    case SL_JINJA_MACRO: return call_macro(run, out, callee.as.macro, args);
    case SL_JINJA_LOOP: return call_loop(run, out, callee.as.loop, args);
    case SL_JINJA_JOINER: return call_joiner(run, out, callee.as.cycler, args);
    case SL_JINJA_FUNCTION: return sl_jinja_builtin_call(run, out, callee.as.builtin, sl_jinja_none(), args);
    case SL_JINJA_METHOD:
        return sl_jinja_builtin_call(run, out, callee.as.method->builtin, callee.as.method->self, args);
    case SL_JINJA_UNDEFINED: return sl_jinja_fail_undefined(callee);
    default: return SL_FAIL(SL_BAD_INPUT, "a %s cannot be called", sl_jinja_type_name(callee));
    }
}
