// SPDX-License-Identifier: MIT
//
// Statements. What they print goes to the end of run->out; a captured body is cut off there again,
// so that captures nest without buffers of their own. After break or continue (run->flow) the rest
// of a body is skipped.
#include "text/jinja_callable.h"

static sl_status take_captured(sl_jinja_run *run, sl_jinja_value *out, size_t begin) {
    SL_TRY(run->out.status);
    SL_TRY(sl_jinja_text_copy(run, out, run->out.data + begin, run->out.n_bytes - begin));
    run->out.n_bytes = begin;
    return SL_OK;
}

sl_status sl_jinja_capture(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *body, sl_jinja_scope *scope) {
    size_t begin = run->out.n_bytes;
    sl_buf_append(&run->out, "", 0); // makes sure there is a buffer
    SL_TRY(sl_jinja_exec(run, body, scope));
    return take_captured(run, out, begin);
}

static sl_status exec_output(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value v;
    SL_TRY(sl_jinja_eval(run, &v, node->a, scope));
    return sl_jinja_str_to(run, &run->out, v);
}

static sl_status exec_if(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value v;
    SL_TRY(sl_jinja_eval(run, &v, node->a, scope));
    if (sl_jinja_truth(v)) return sl_jinja_exec(run, node->body, scope);
    for (const sl_jinja_node *branch = node->list; branch; branch = branch->next) {
        SL_TRY(sl_jinja_eval(run, &v, branch->a, scope));
        if (sl_jinja_truth(v)) return sl_jinja_exec(run, branch->body, scope);
    }
    return sl_jinja_exec(run, node->otherwise, scope);
}

// A body with names of its own, captured.
static sl_status capture_inner(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node,
                               const sl_jinja_node *filter, sl_jinja_scope *outer) {
    sl_jinja_scope *scope;
    SL_TRY(sl_jinja_scope_new(run, &scope, outer, node->frame));
    SL_TRY(sl_jinja_scope_enter(run, scope));
    SL_TRY(sl_jinja_capture(run, out, node->body, scope));
    if (run->flow == SL_FLOW_ON && filter) {
        run->block_text = *out;
        SL_TRY(sl_jinja_eval(run, out, filter, scope));
    }
    sl_jinja_scope_leave(scope);
    return SL_OK;
}

static sl_status exec_set(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value v;
    if (node->kind == SL_NODE_SET) SL_TRY(sl_jinja_eval(run, &v, node->b, scope));
    else SL_TRY(capture_inner(run, &v, node, node->b, scope));
    return run->flow == SL_FLOW_ON ? sl_jinja_assign(run, node->a, v, scope) : SL_OK;
}

static sl_status exec_filter_block(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value v;
    SL_TRY(capture_inner(run, &v, node, node->a, scope));
    return run->flow == SL_FLOW_ON ? sl_jinja_str_to(run, &run->out, v) : SL_OK;
}

static sl_status exec_with(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *outer) {
    sl_jinja_scope *scope;
    sl_jinja_value v;
    SL_TRY(sl_jinja_scope_new(run, &scope, outer, node->frame));
    SL_TRY(sl_jinja_scope_enter(run, scope));
    for (const sl_jinja_node *n = node->list; n; n = n->next->next) {
        SL_TRY(sl_jinja_eval(run, &v, n->next, outer));
        SL_TRY(sl_jinja_assign(run, n, v, scope));
    }
    SL_TRY(sl_jinja_exec(run, node->body, scope));
    sl_jinja_scope_leave(scope);
    return SL_OK;
}

// A generation block, a block, a scope: printed where they stand.
static sl_status exec_inner(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *outer) {
    sl_jinja_scope *scope;
    SL_TRY(sl_jinja_scope_new(run, &scope, outer, node->frame));
    SL_TRY(sl_jinja_scope_enter(run, scope));
    SL_TRY(sl_jinja_exec(run, node->body, scope));
    sl_jinja_scope_leave(scope);
    return SL_OK;
}

static sl_status exec_macro(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value macro;
    SL_TRY(sl_jinja_macro_make(run, &macro, node, scope));
    sl_jinja_scope *at = scope;
    for (uint32_t i = 0; i < node->hops; i++) at = at->parent;
    at->values[node->slot] = macro;
    return SL_OK;
}

static sl_status exec_call_block(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value caller, v;
    SL_TRY(sl_jinja_macro_make(run, &caller, node, scope));
    if (node->a) SL_TRY(sl_jinja_eval_call(run, &v, node->a, scope, &caller));
    else SL_TRY(sl_jinja_call_value(run, &v, caller, &(sl_jinja_args){.kw = &sl_jinja_no_kw}));
    return sl_jinja_str_to(run, &run->out, v);
}

static sl_status exec_one(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *scope) {
    sl_jinja_value v;
    run->line = node->line;
    switch (node->kind) {
    case SL_NODE_OUTPUT: return exec_output(run, node, scope);
    case SL_NODE_IF: return exec_if(run, node, scope);
    case SL_NODE_FOR: SL_TRY(sl_jinja_eval(run, &v, node->b, scope)); return sl_jinja_loop_run(run, node, v, scope, 0);
    case SL_NODE_SET:
    case SL_NODE_SET_BLOCK: return exec_set(run, node, scope);
    case SL_NODE_MACRO: return exec_macro(run, node, scope);
    case SL_NODE_CALL_BLOCK: return exec_call_block(run, node, scope);
    case SL_NODE_FILTER_BLOCK: return exec_filter_block(run, node, scope);
    case SL_NODE_WITH: return exec_with(run, node, scope);
    case SL_NODE_SCOPE: return exec_inner(run, node, scope);
    case SL_NODE_BLOCK: return exec_inner(run, node, NULL);
    case SL_NODE_BREAK: run->flow = SL_FLOW_BREAK; return SL_OK;
    case SL_NODE_CONTINUE: run->flow = SL_FLOW_CONTINUE; return SL_OK;
    default: return SL_FAIL(SL_BAD_INPUT, "a chat template has no other templates to load");
    }
}

sl_status sl_jinja_exec(sl_jinja_run *run, const sl_jinja_node *body, sl_jinja_scope *scope) {
    sl_status status = SL_OK;
    if (!body) return SL_OK;
    SL_TRY(sl_jinja_deeper(run));
    for (; body && status == SL_OK && run->flow == SL_FLOW_ON; body = body->next) {
        status = sl_jinja_step(run, 1);
        if (status == SL_OK) status = exec_one(run, body, scope);
    }
    run->depth--;
    return status;
}

sl_status sl_jinja_render(sl_jinja_run *run, const sl_jinja_ast *ast) {
    sl_jinja_scope *scope;
    SL_TRY(sl_jinja_scope_new(run, &scope, NULL, ast->frame));
    run->root = scope;
    SL_TRY(sl_jinja_scope_enter(run, scope));
    SL_TRY(sl_jinja_exec(run, ast->body, scope));
    return run->out.status;
}
