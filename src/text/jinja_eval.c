// SPDX-License-Identifier: MIT
//
// Expressions. Each call costs a step and counts its depth; the tree's height is bounded by the
// parser.
#include "text/jinja_callable.h"

static sl_status eval_list(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value *items = NULL;
    size_t i = 0;
    SL_TRY(sl_jinja_list_make(run, out, node->kind == SL_NODE_LIST ? SL_JINJA_LIST : SL_JINJA_TUPLE, &items,
                              node->n_list));
    for (const sl_jinja_node *n = node->list; n; n = n->next) SL_TRY(sl_jinja_eval(run, &items[i++], n, scope));
    return SL_OK;
}

static sl_status eval_dict(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value key, value;
    SL_TRY(sl_jinja_dict_make(run, out));
    for (const sl_jinja_node *n = node->list; n; n = n->next->next) {
        SL_TRY(sl_jinja_eval(run, &key, n, scope));
        SL_TRY(sl_jinja_eval(run, &value, n->next, scope));
        SL_TRY(sl_jinja_dict_set(run, out->as.dict, key, value));
    }
    return SL_OK;
}

static sl_status eval_item(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value of, key, part[3] = {sl_jinja_none(), sl_jinja_none(), sl_jinja_none()};
    SL_TRY(sl_jinja_eval(run, &of, node->a, scope));
    if (node->b->kind != SL_NODE_SLICE) {
        SL_TRY(sl_jinja_eval(run, &key, node->b, scope));
        run->line = node->line;
        return sl_jinja_getitem(run, out, of, key);
    }
    const sl_jinja_node *const parts[3] = {node->b->a, node->b->b, node->b->c};
    for (int i = 0; i < 3; i++)
        if (parts[i]) SL_TRY(sl_jinja_eval(run, &part[i], parts[i], scope));
    run->line = node->line;
    return sl_jinja_slice(run, out, of, part);
}

static sl_status eval_filter(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value self = run->block_text;
    sl_jinja_args args;
    if (node->a) SL_TRY(sl_jinja_eval(run, &self, node->a, scope));
    SL_TRY(sl_jinja_eval_args(run, &args, node, scope));
    run->line = node->line;
    if (node->builtin) return sl_jinja_builtin_call(run, out, node->builtin, self, &args);
    return SL_FAIL(SL_BAD_INPUT, "there is no %s '%.*s'", node->kind == SL_NODE_FILTER ? "filter" : "test",
                   (int)SL_MIN(node->name->n_bytes, 100u), node->name->data);
}

static sl_status eval_concat(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value part;
    SL_TRY(sl_jinja_text_share(run, out, "", 0));
    bool first = true;
    for (const sl_jinja_node *n = node->list; n; n = n->next, first = false) {
        SL_TRY(sl_jinja_eval(run, &part, n, scope));
        SL_TRY(sl_jinja_str(run, &part, part));
        if (first) *out = part;
        else SL_TRY(sl_jinja_text_join(run, out, *out->as.text, *part.as.text));
    }
    return SL_OK;
}

// a < b < c: each pair in turn, until one does not hold
static sl_status eval_compare(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node,
                              sl_jinja_scope *scope) {
    sl_jinja_value left, right;
    bool holds = true;
    SL_TRY(sl_jinja_eval(run, &left, node->a, scope));
    for (const sl_jinja_node *n = node->list; n && holds; n = n->next) {
        SL_TRY(sl_jinja_eval(run, &right, n->a, scope));
        run->line = n->line;
        SL_TRY(sl_jinja_relation(run, &holds, (sl_jinja_op)n->op, left, right));
        left = right;
    }
    *out = sl_jinja_bool(holds);
    return SL_OK;
}

static sl_status eval_cond(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    SL_TRY(sl_jinja_eval(run, out, node->a, scope));
    if (sl_jinja_truth(*out)) return sl_jinja_eval(run, out, node->b, scope);
    if (node->c) return sl_jinja_eval(run, out, node->c, scope);
    return sl_jinja_undefined_hint(run, out, "an inline if was false and had no else");
}

static sl_status eval_binary(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value a, b;
    SL_TRY(sl_jinja_eval(run, &a, node->a, scope));
    SL_TRY(sl_jinja_eval(run, &b, node->b, scope));
    run->line = node->line;
    return sl_jinja_binary(run, out, (sl_jinja_op)node->op, a, b);
}

static sl_status eval_short_circuit(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node,
                                    sl_jinja_scope *scope) {
    SL_TRY(sl_jinja_eval(run, out, node->a, scope));
    if (sl_jinja_truth(*out) == (node->kind == SL_NODE_OR)) return SL_OK;
    return sl_jinja_eval(run, out, node->b, scope);
}

static sl_status eval_one(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value v;
    switch (node->kind) {
    case SL_NODE_TUPLE:
    case SL_NODE_LIST: return eval_list(run, out, node, scope);
    case SL_NODE_DICT: return eval_dict(run, out, node, scope);
    case SL_NODE_ATTR:
        SL_TRY(sl_jinja_eval(run, &v, node->a, scope));
        run->line = node->line;
        return sl_jinja_getattr(run, out, v, node->name);
    case SL_NODE_ITEM: return eval_item(run, out, node, scope);
    case SL_NODE_CALL: return sl_jinja_eval_call(run, out, node, scope, NULL);
    case SL_NODE_FILTER:
    case SL_NODE_TEST: return eval_filter(run, out, node, scope);
    case SL_NODE_NOT:
        SL_TRY(sl_jinja_eval(run, &v, node->a, scope));
        return *out = sl_jinja_bool(!sl_jinja_truth(v)), SL_OK;
    case SL_NODE_NEG:
    case SL_NODE_POS:
        SL_TRY(sl_jinja_eval(run, &v, node->a, scope));
        return sl_jinja_unary(out, v, node->kind == SL_NODE_NEG);
    case SL_NODE_BINARY: return eval_binary(run, out, node, scope);
    case SL_NODE_AND:
    case SL_NODE_OR: return eval_short_circuit(run, out, node, scope);
    case SL_NODE_CONCAT: return eval_concat(run, out, node, scope);
    case SL_NODE_COMPARE: return eval_compare(run, out, node, scope);
    case SL_NODE_COND: return eval_cond(run, out, node, scope);
    default: return SL_FAIL(SL_INTERNAL, "a node of kind %d is no expression", node->kind);
    }
}

sl_status sl_jinja_eval(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope) {
    *out = sl_jinja_none();
    SL_TRY(sl_jinja_step(run, 1));
    if (node->kind == SL_NODE_CONST) return *out = node->value, SL_OK;
    if (node->kind == SL_NODE_NAME) return *out = sl_jinja_name_load(scope, node), SL_OK;
    SL_TRY(sl_jinja_deeper(run));
    sl_status status = eval_one(run, out, node, scope);
    run->depth--;
    return status;
}
