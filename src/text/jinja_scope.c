// SPDX-License-Identifier: MIT
//
// Scopes at run time: the values of the names of a frame. A scope is entered anew for each turn of
// a loop: names it stores start as the outer value, names it only reads come from the context.
#include "text/jinja_callable.h"

sl_status sl_jinja_scope_new(sl_jinja_run *run, sl_jinja_scope **out, sl_jinja_scope *parent,
                             const sl_jinja_frame *frame) {
    SL_TRY(sl_jinja_alloc(run, out, 1, sizeof **out));
    (*out)->parent = parent;
    (*out)->frame = frame;
    return sl_jinja_alloc(run, &(*out)->values, frame->n_slots, sizeof *(*out)->values);
}

static sl_jinja_value *value_at(const sl_jinja_scope *scope, uint32_t hops, uint32_t slot) {
    for (; hops > 0; hops--) scope = scope->parent;
    return &scope->values[slot];
}

// From what the template set at its top level (which blocks see only this way), the caller's
// values, the globals.
static sl_jinja_value resolve(const sl_jinja_run *run, const sl_jinja_scope *scope, const sl_jinja_text *name) {
    sl_span text = sl_span_make(name->data, name->n_bytes);
    while (scope->parent) scope = scope->parent;
    const sl_jinja_slot *s = run->root && scope != run->root ? run->root->frame->first : NULL;
    for (uint32_t i = 0; s; s = s->next, i++)
        if (sl_span_equal(text, sl_span_make(s->name->data, s->name->n_bytes)) && run->root->values[i].type)
            return run->root->values[i];
    const sl_jinja_value *given = sl_jinja_dict_text(&run->context, text);
    if (given) return *given;
    const sl_jinja_builtin *global = sl_jinja_global_find(text);
    return global ? (sl_jinja_value){.type = SL_JINJA_FUNCTION, .as.builtin = global} : (sl_jinja_value){0};
}

sl_status sl_jinja_scope_enter(sl_jinja_run *run, sl_jinja_scope *scope) {
    uint32_t i = 0;
    SL_TRY(sl_jinja_step(run, scope->frame->n_slots));
    for (const sl_jinja_slot *s = scope->frame->first; s; s = s->next, i++) {
        switch (s->load) {
        case SL_LOAD_RESOLVE: scope->values[i] = resolve(run, scope, s->name); break;
        case SL_LOAD_ALIAS: scope->values[i] = *value_at(scope, s->hops, s->slot); break;
        case SL_LOAD_MISSING: scope->values[i] = (sl_jinja_value){0}; break;
        default: break;
        }
    }
    return SL_OK;
}

void sl_jinja_scope_leave(sl_jinja_scope *scope) { // for the macros that were defined in it
    memset(scope->values, 0, scope->frame->n_slots * sizeof *scope->values);
}

sl_jinja_value *sl_jinja_scope_param(sl_jinja_scope *scope, const char *name) {
    uint32_t i = 0;
    for (const sl_jinja_slot *s = scope->frame->first; s; s = s->next, i++)
        if (s->load == SL_LOAD_PARAM && sl_span_is(sl_span_make(s->name->data, s->name->n_bytes), name))
            return &scope->values[i];
    return NULL;
}

sl_jinja_value sl_jinja_name_load(const sl_jinja_scope *scope, const sl_jinja_node *node) {
    sl_jinja_value v = *value_at(scope, node->hops, node->slot);
    return v.type == SL_JINJA_MISSING ? sl_jinja_undefined(node->name, SL_JINJA_OF_CONTEXT) : v;
}

static sl_status assign_attr(sl_jinja_run *run, const sl_jinja_node *target, sl_jinja_value v,
                             const sl_jinja_scope *scope) {
    sl_jinja_value ns = sl_jinja_name_load(scope, target);
    if (ns.type != SL_JINJA_NAMESPACE)
        return SL_FAIL(SL_BAD_INPUT, "only attributes of a namespace can be set, not those of a %s",
                       sl_jinja_type_name(ns));
    if (target->value.as.text->data[0] == '_')
        return SL_FAIL(SL_BAD_INPUT, "an attribute of a namespace must not start with an underscore");
    return sl_jinja_dict_set(run, ns.as.dict, target->value, v);
}

sl_status sl_jinja_assign(sl_jinja_run *run, const sl_jinja_node *target, sl_jinja_value v, sl_jinja_scope *scope) {
    if (target->kind == SL_NODE_NSREF) return assign_attr(run, target, v, scope);
    if (target->kind == SL_NODE_NAME) return *value_at(scope, target->hops, target->slot) = v, SL_OK;
    sl_jinja_vec parts = {0};
    SL_TRY(sl_jinja_collect(run, &parts, v));
    if (parts.n != target->n_list)
        return SL_FAIL(SL_BAD_INPUT, "%u names cannot take %zu values", target->n_list, parts.n);
    size_t i = 0;
    for (const sl_jinja_node *t = target->list; t; t = t->next)
        SL_TRY(sl_jinja_assign(run, t, parts.items[i++], scope));
    return SL_OK;
}
