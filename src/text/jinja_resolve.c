// SPDX-License-Identifier: MIT
//
// Decides where each name lives, by jinja2's own rules: a for, macro, with, block or captured body
// has names of its own; an if has not. A name stored in such a frame starts as a copy of the outer
// one of the same name. A name that no frame stores is looked up in the context by the innermost
// frame that reads it. Two passes a frame: collect its names (without going into inner frames),
// then bind every use and go inside.
#include "text/jinja_callable.h"

typedef struct resolver {
    sl_jinja_run *run;
} resolver;

static bool same_name(const sl_jinja_text *a, const sl_jinja_text *b) {
    return a->n_bytes == b->n_bytes && memcmp(a->data, b->data, a->n_bytes) == 0;
}

static bool name_is(const sl_jinja_text *a, const char *b) { return sl_span_is(sl_span_make(a->data, a->n_bytes), b); }

// ---- slots ----

static sl_jinja_slot *find_slot(const sl_jinja_frame *frame, const sl_jinja_text *name, uint32_t *slot) {
    *slot = 0;
    for (sl_jinja_slot *s = frame->first; s; s = s->next, ++*slot)
        if (same_name(s->name, name)) return s;
    return NULL;
}

static bool find_ref(const sl_jinja_frame *frame, const sl_jinja_text *name, uint32_t *hops, uint32_t *slot) {
    for (*hops = 0; frame; frame = frame->parent, ++*hops)
        if (find_slot(frame, name, slot)) return true;
    return false;
}

static sl_status define(resolver *r, sl_jinja_frame *frame, const sl_jinja_text *name, sl_jinja_load load) {
    sl_jinja_slot *slot;
    uint32_t at;
    if ((slot = find_slot(frame, name, &at)) != NULL) return slot->load = (uint8_t)load, SL_OK;
    SL_TRY(sl_jinja_alloc(r->run, &slot, 1, sizeof *slot));
    slot->name = name;
    slot->load = (uint8_t)load;
    if (frame->last) frame->last->next = slot;
    else frame->first = slot;
    frame->last = slot;
    frame->n_slots++;
    return SL_OK;
}

static sl_status declare_load(resolver *r, sl_jinja_frame *frame, const sl_jinja_text *name) {
    uint32_t hops, slot;
    return find_ref(frame, name, &hops, &slot) ? SL_OK : define(r, frame, name, SL_LOAD_RESOLVE);
}

// A name stored only on a branch may still be read from the context when the branch was not taken.
static sl_status declare_store(resolver *r, sl_jinja_frame *frame, const sl_jinja_text *name, bool on_branch) {
    uint32_t hops, at;
    if (find_slot(frame, name, &at)) return SL_OK;
    if (frame->parent && find_ref(frame->parent, name, &hops, &at)) {
        SL_TRY(define(r, frame, name, SL_LOAD_ALIAS));
        frame->last->hops = hops + 1;
        frame->last->slot = at;
        return SL_OK;
    }
    return define(r, frame, name, on_branch ? SL_LOAD_RESOLVE : SL_LOAD_MISSING);
}

static sl_status new_frame(resolver *r, sl_jinja_frame **out, const sl_jinja_frame *parent) {
    SL_TRY(sl_jinja_alloc(r->run, out, 1, sizeof **out));
    (*out)->parent = parent;
    return SL_OK;
}

// ---- first pass: the names of a frame ----

static sl_status collect_expr(resolver *r, sl_jinja_frame *frame, const sl_jinja_node *node) {
    if (!node) return SL_OK;
    if (node->kind == SL_NODE_NAME) return declare_load(r, frame, node->name);
    SL_TRY(collect_expr(r, frame, node->a));
    SL_TRY(collect_expr(r, frame, node->b));
    SL_TRY(collect_expr(r, frame, node->c));
    for (const sl_jinja_node *n = node->list; n; n = n->next) SL_TRY(collect_expr(r, frame, n));
    for (const sl_jinja_node *n = node->kwargs; n; n = n->next) SL_TRY(collect_expr(r, frame, n));
    return SL_OK;
}

static sl_status collect_target(resolver *r, sl_jinja_frame *frame, const sl_jinja_node *node, bool param,
                                bool on_branch) {
    if (node->kind == SL_NODE_NSREF) return declare_load(r, frame, node->name);
    if (node->kind == SL_NODE_NAME)
        return param ? define(r, frame, node->name, SL_LOAD_PARAM) : declare_store(r, frame, node->name, on_branch);
    for (const sl_jinja_node *n = node->list; n; n = n->next) SL_TRY(collect_target(r, frame, n, param, on_branch));
    return SL_OK;
}

static sl_status collect_body(resolver *r, sl_jinja_frame *frame, const sl_jinja_node *body, bool on_branch);

static sl_status collect(resolver *r, sl_jinja_frame *frame, const sl_jinja_node *node, bool on_branch) {
    switch (node->kind) {
    case SL_NODE_OUTPUT: return collect_expr(r, frame, node->a);
    case SL_NODE_FOR: return collect_expr(r, frame, node->b);
    case SL_NODE_IF:
        SL_TRY(collect_expr(r, frame, node->a));
        SL_TRY(collect_body(r, frame, node->body, true));
        SL_TRY(collect_body(r, frame, node->list, true));
        return collect_body(r, frame, node->otherwise, true);
    case SL_NODE_SET:
        SL_TRY(collect_expr(r, frame, node->b));
        return collect_target(r, frame, node->a, false, on_branch);
    case SL_NODE_SET_BLOCK: return collect_target(r, frame, node->a, false, on_branch);
    case SL_NODE_MACRO: return declare_store(r, frame, node->name, on_branch);
    case SL_NODE_CALL_BLOCK:
    case SL_NODE_FILTER_BLOCK: return collect_expr(r, frame, node->a);
    case SL_NODE_WITH:
        for (const sl_jinja_node *n = node->list; n; n = n->next->next) SL_TRY(collect_expr(r, frame, n->next));
        return SL_OK;
    default: return SL_OK;
    }
}

static sl_status collect_body(resolver *r, sl_jinja_frame *frame, const sl_jinja_node *body, bool on_branch) {
    for (const sl_jinja_node *n = body; n; n = n->next) SL_TRY(collect(r, frame, n, on_branch));
    return SL_OK;
}

// ---- does a body read a name before it stores it? (jinja2's find_undeclared; goes into inner
// frames) ----

static bool stores(const sl_jinja_node *target, const char *name) {
    if (target->kind == SL_NODE_NAME || target->kind == SL_NODE_PARAM) return name_is(target->name, name);
    for (const sl_jinja_node *n = target->list; n && target->kind == SL_NODE_TUPLE; n = n->next)
        if (stores(n, name)) return true;
    return false;
}

static bool reads(const sl_jinja_node *body, const char *name, bool *gone);

static bool reads_one(const sl_jinja_node *node, const char *name, bool *gone) {
    if (!node || *gone || node->kind == SL_NODE_BLOCK) return false;
    if (node->kind == SL_NODE_NAME) return name_is(node->name, name);
    bool first_is_target = node->kind == SL_NODE_FOR || node->kind == SL_NODE_SET || node->kind == SL_NODE_SET_BLOCK;
    if (!first_is_target && reads_one(node->a, name, gone)) return true;
    if (first_is_target) *gone |= stores(node->a, name);
    if (node->kind == SL_NODE_MACRO || node->kind == SL_NODE_CALL_BLOCK)
        for (const sl_jinja_node *p = node->list; p; p = p->next) *gone |= stores(p, name);
    if (node->kind == SL_NODE_WITH)
        for (const sl_jinja_node *p = node->list; p; p = p->next->next) *gone |= stores(p, name);
    if (node->kind != SL_NODE_FOR && reads_one(node->c, name, gone)) return true;
    return reads_one(node->b, name, gone) || reads(node->list, name, gone) || reads(node->kwargs, name, gone) ||
           reads(node->body, name, gone) || reads(node->otherwise, name, gone) ||
           (node->kind == SL_NODE_FOR && reads_one(node->c, name, gone));
}

static bool reads(const sl_jinja_node *body, const char *name, bool *gone) {
    for (; body; body = body->next)
        if (reads_one(body, name, gone)) return true;
    return false;
}

static bool body_reads(const sl_jinja_node *body, const char *name) {
    bool gone = false;
    return reads(body, name, &gone);
}

// ---- second pass: binding ----

static sl_status bind_body(resolver *r, sl_jinja_frame *frame, sl_jinja_node *body, bool soft);

static sl_status bind_name(sl_jinja_frame *frame, sl_jinja_node *node) {
    if (find_ref(frame, node->name, &node->hops, &node->slot)) return SL_OK;
    return SL_FAIL(SL_BAD_INPUT, "line %u: '%.*s' is not known here", node->line,
                   (int)SL_MIN(node->name->n_bytes, 100u), node->name->data);
}

// An unknown filter or test fails at once, unless it stands on a branch that may never be taken.
static sl_status bind_builtin(sl_jinja_node *node, bool soft) {
    bool filter = node->kind == SL_NODE_FILTER;
    sl_span name = sl_span_make(node->name->data, node->name->n_bytes);
    node->builtin = filter ? sl_jinja_filter_find(name) : sl_jinja_test_find(name);
    if (node->builtin || soft) return SL_OK;
    return SL_FAIL(sl_jinja_name_unsupported(name, filter) ? SL_UNSUPPORTED : SL_BAD_INPUT,
                   "line %u: there is no %s '%.*s'", node->line, filter ? "filter" : "test",
                   (int)SL_MIN(name.n_bytes, 100u), name.data);
}

static sl_status bind_expr(resolver *r, sl_jinja_frame *frame, sl_jinja_node *node, bool soft) {
    if (!node) return SL_OK;
    if (node->kind == SL_NODE_NAME || node->kind == SL_NODE_NSREF) return bind_name(frame, node);
    if (node->kind == SL_NODE_FILTER || node->kind == SL_NODE_TEST) SL_TRY(bind_builtin(node, soft));
    soft |= node->kind == SL_NODE_COND;
    SL_TRY(bind_expr(r, frame, node->a, soft));
    SL_TRY(bind_expr(r, frame, node->b, soft));
    SL_TRY(bind_expr(r, frame, node->c, soft));
    for (sl_jinja_node *n = node->list; n; n = n->next) SL_TRY(bind_expr(r, frame, n, soft));
    for (sl_jinja_node *n = node->kwargs; n; n = n->next) SL_TRY(bind_expr(r, frame, n, soft));
    return SL_OK;
}

static sl_status declare_text(resolver *r, sl_jinja_frame *frame, const char *name) {
    sl_jinja_value v;
    SL_TRY(sl_jinja_text_share(r->run, &v, name, strlen(name)));
    return define(r, frame, v.as.text, SL_LOAD_PARAM);
}

static sl_status bind_for(resolver *r, sl_jinja_frame *frame, sl_jinja_node *node, bool soft) {
    SL_TRY(bind_expr(r, frame, node->b, soft));
    SL_TRY(new_frame(r, &node->frame, frame));
    SL_TRY(collect_target(r, node->frame, node->a, true,
                          false)); // first, so that its slots are those of the test's frame
    if (node->flag || body_reads(node->body, "loop")) SL_TRY(declare_text(r, node->frame, "loop"));
    SL_TRY(collect_body(r, node->frame, node->body, false));
    if (node->c) {
        SL_TRY(new_frame(r, &node->test_frame, frame));
        SL_TRY(collect_target(r, node->test_frame, node->a, true, false));
        SL_TRY(collect_expr(r, node->test_frame, node->c));
        SL_TRY(bind_expr(r, node->test_frame, node->c, false));
    }
    SL_TRY(bind_expr(r, node->frame, node->a, false));
    SL_TRY(bind_body(r, node->frame, node->body, false));
    if (!node->otherwise) return SL_OK;
    SL_TRY(new_frame(r, &node->else_frame, frame));
    SL_TRY(collect_body(r, node->else_frame, node->otherwise, false));
    return bind_body(r, node->else_frame, node->otherwise, false);
}

// caller, kwargs and varargs are parameters of a macro that reads them and does not declare them.
static sl_status bind_special(resolver *r, sl_jinja_node *node, bool *wants, const char *name) {
    const sl_jinja_node *own = node->list;
    while (own && !name_is(own->name, name)) own = own->next;
    if (!body_reads(node->body, name)) return SL_OK;
    if (own && !own->a && strcmp(name, "caller") == 0)
        return SL_FAIL(SL_BAD_INPUT, "line %u: the parameter caller needs a default", node->line);
    if (own) return SL_OK;
    *wants = true;
    return declare_text(r, node->frame, name);
}

static sl_status bind_macro(resolver *r, sl_jinja_frame *frame, sl_jinja_node *node) {
    SL_TRY(new_frame(r, &node->frame, frame));
    for (sl_jinja_node *p = node->list; p; p = p->next) SL_TRY(define(r, node->frame, p->name, SL_LOAD_PARAM));
    for (sl_jinja_node *p = node->list; p; p = p->next) SL_TRY(collect_expr(r, node->frame, p->a));
    SL_TRY(collect_body(r, node->frame, node->body, false));
    SL_TRY(bind_special(r, node, &node->wants_caller, "caller"));
    SL_TRY(bind_special(r, node, &node->wants_kwargs, "kwargs"));
    SL_TRY(bind_special(r, node, &node->wants_varargs, "varargs"));
    for (sl_jinja_node *p = node->list; p; p = p->next) {
        SL_TRY(bind_name(node->frame, p));
        SL_TRY(bind_expr(r, node->frame, p->a, false));
    }
    return bind_body(r, node->frame, node->body, false);
}

// A body with its own frame.
static sl_status bind_inner(resolver *r, sl_jinja_frame *frame, sl_jinja_node *node) {
    SL_TRY(new_frame(r, &node->frame, frame));
    SL_TRY(collect_body(r, node->frame, node->body, false));
    if (node->kind == SL_NODE_FILTER_BLOCK) {
        SL_TRY(collect_expr(r, node->frame, node->a));
        SL_TRY(bind_expr(r, node->frame, node->a, false));
    }
    if (node->kind == SL_NODE_SET_BLOCK) SL_TRY(bind_expr(r, node->frame, node->b, false));
    return bind_body(r, node->frame, node->body, false);
}

static sl_status bind_with(resolver *r, sl_jinja_frame *frame, sl_jinja_node *node, bool soft) {
    SL_TRY(new_frame(r, &node->frame, frame));
    for (sl_jinja_node *n = node->list; n; n = n->next->next) {
        SL_TRY(bind_expr(r, frame, n->next, soft));
        SL_TRY(collect_target(r, node->frame, n, true, false));
    }
    SL_TRY(collect_body(r, node->frame, node->body, false));
    for (sl_jinja_node *n = node->list; n; n = n->next->next) SL_TRY(bind_expr(r, node->frame, n, false));
    return bind_body(r, node->frame, node->body, false);
}

static sl_status bind(resolver *r, sl_jinja_frame *frame, sl_jinja_node *node, bool soft) {
    switch (node->kind) {
    case SL_NODE_OUTPUT: return bind_expr(r, frame, node->a, soft);
    case SL_NODE_FOR: return bind_for(r, frame, node, soft);
    case SL_NODE_IF:
        SL_TRY(bind_expr(r, frame, node->a, true));
        SL_TRY(bind_body(r, frame, node->body, true));
        SL_TRY(bind_body(r, frame, node->list, true));
        return bind_body(r, frame, node->otherwise, true);
    case SL_NODE_SET: SL_TRY(bind_expr(r, frame, node->b, soft)); return bind_expr(r, frame, node->a, soft);
    case SL_NODE_SET_BLOCK: SL_TRY(bind_expr(r, frame, node->a, soft)); return bind_inner(r, frame, node);
    case SL_NODE_MACRO: SL_TRY(bind_name(frame, node)); return bind_macro(r, frame, node);
    case SL_NODE_CALL_BLOCK: SL_TRY(bind_expr(r, frame, node->a, soft)); return bind_macro(r, frame, node);
    case SL_NODE_WITH: return bind_with(r, frame, node, soft);
    case SL_NODE_FILTER_BLOCK:
    case SL_NODE_SCOPE: return bind_inner(r, frame, node);
    case SL_NODE_BLOCK: return bind_inner(r, NULL, node); // sees the context only
    default: return SL_OK;
    }
}

static sl_status bind_body(resolver *r, sl_jinja_frame *frame, sl_jinja_node *body, bool soft) {
    for (sl_jinja_node *n = body; n; n = n->next) SL_TRY(bind(r, frame, n, soft));
    return SL_OK;
}

sl_status sl_jinja_resolve(sl_jinja_ast *ast) {
    resolver r = {ast->memory};
    SL_TRY(new_frame(&r, &ast->frame, NULL));
    SL_TRY(collect_body(&r, ast->frame, ast->body, false));
    return bind_body(&r, ast->frame, ast->body, false);
}
