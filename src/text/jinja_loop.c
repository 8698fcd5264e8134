// SPDX-License-Identifier: MIT
//
// The for statement and its `loop`. Items are drawn one at a time, as the test of `for ... if` may
// depend on what the body did; `loop.last` looks one ahead, `loop.length` draws all that is left.
#include "text/jinja_callable.h"

// The next item that passes the loop's test.
static sl_status draw(sl_jinja_run *run, sl_jinja_loop *loop, const sl_jinja_node *node, sl_jinja_value *out,
                      bool *done) {
    for (;;) {
        SL_TRY(sl_jinja_iter_next(run, &loop->iter, out, done));
        if (*done || !loop->test_scope) return SL_OK;
        sl_jinja_value pass;
        SL_TRY(sl_jinja_assign(run, node->a, *out, loop->test_scope));
        SL_TRY(sl_jinja_eval(run, &pass, node->c, loop->test_scope));
        if (sl_jinja_truth(pass)) return SL_OK;
    }
}

static sl_status next(sl_jinja_run *run, sl_jinja_loop *loop, const sl_jinja_node *node, bool *done) {
    sl_jinja_value item = loop->after;
    *done = false;
    if (loop->has_after) *done = item.type == SL_JINJA_MISSING;
    else SL_TRY(draw(run, loop, node, &item, done));
    loop->has_after = false;
    if (*done) return SL_OK;
    loop->index++;
    loop->before = loop->current;
    loop->current = item;
    return SL_OK;
}

// Loop->after is MISSING at the end.
static sl_status look_ahead(sl_jinja_run *run, sl_jinja_loop *loop) {
    bool done;
    if (loop->has_after) return SL_OK;
    SL_TRY(draw(run, loop, loop->node, &loop->after, &done));
    if (done) loop->after = (sl_jinja_value){0};
    loop->has_after = !done; // the end is looked for again, which costs nothing
    return SL_OK;
}

sl_status sl_jinja_loop_length(sl_jinja_run *run, size_t *out, sl_jinja_loop *loop) {
    if (!loop->has_length && !loop->test_scope && sl_jinja_sized(loop->iter.source)) {
        SL_TRY(sl_jinja_len(&loop->length, loop->iter.source));
    } else if (!loop->has_length) {
        sl_jinja_vec rest = {0};
        sl_jinja_value list;
        bool done;
        for (sl_jinja_value item;;) {
            SL_TRY(draw(run, loop, loop->node, &item, &done));
            if (done) break;
            SL_TRY(sl_jinja_push(run, &rest, item));
        }
        if (!rest.items) SL_TRY(sl_jinja_alloc(run, &rest.items, 1, sizeof *rest.items));
        loop->length = rest.n + loop->index + loop->has_after;
        SL_TRY(sl_jinja_list_make(run, &list, SL_JINJA_LIST, &rest.items, rest.n));
        SL_TRY(sl_jinja_iter_init(&loop->iter, list));
        loop->test_scope = NULL; // all of it has passed
    }
    loop->has_length = true;
    *out = loop->length;
    return SL_OK;
}

sl_status sl_jinja_loop_attr(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_loop *loop, sl_span name, bool *found) {
    size_t n;
    *found = true;
    if (sl_span_is(name, "index")) return *out = sl_jinja_int((int64_t)loop->index), SL_OK;
    if (sl_span_is(name, "index0")) return *out = sl_jinja_int((int64_t)loop->index - 1), SL_OK;
    if (sl_span_is(name, "first")) return *out = sl_jinja_bool(loop->index == 1), SL_OK;
    if (sl_span_is(name, "depth")) return *out = sl_jinja_int((int64_t)loop->depth0 + 1), SL_OK;
    if (sl_span_is(name, "depth0")) return *out = sl_jinja_int((int64_t)loop->depth0), SL_OK;
    if (sl_span_is(name, "last") || sl_span_is(name, "nextitem")) {
        SL_TRY(look_ahead(run, loop));
        *out = name.n_bytes == 4 ? sl_jinja_bool(loop->after.type == SL_JINJA_MISSING) : loop->after;
        return out->type ? SL_OK : sl_jinja_undefined_hint(run, out, "there is no next item");
    }
    if (sl_span_is(name, "previtem")) {
        *out = loop->before;
        return loop->index > 1 ? SL_OK : sl_jinja_undefined_hint(run, out, "there is no previous item");
    }
    bool length = sl_span_is(name, "length"), rev = sl_span_is(name, "revindex"), rev0 = sl_span_is(name, "revindex0");
    if (length || rev || rev0) {
        SL_TRY(sl_jinja_loop_length(run, &n, loop));
        *out = sl_jinja_int((int64_t)(length ? n : n - loop->index + rev));
        return SL_OK;
    }
    *found = false;
    return SL_OK;
}

static sl_status run_else(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_scope *outer) {
    sl_jinja_scope *scope;
    SL_TRY(sl_jinja_scope_new(run, &scope, outer, node->else_frame));
    SL_TRY(sl_jinja_scope_enter(run, scope));
    SL_TRY(sl_jinja_exec(run, node->otherwise, scope));
    sl_jinja_scope_leave(scope);
    return SL_OK;
}

sl_status sl_jinja_loop_run(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_value iterable,
                            sl_jinja_scope *outer, size_t depth0) {
    sl_jinja_scope *scope;
    sl_jinja_loop *loop;
    bool done, finished_one = false;
    SL_TRY(sl_jinja_scope_new(run, &scope, outer, node->frame));
    SL_TRY(sl_jinja_alloc(run, &loop, 1, sizeof *loop));
    loop->node = node;
    loop->outer = outer;
    loop->depth0 = depth0;
    SL_TRY(sl_jinja_iter_init(&loop->iter, iterable));
    if (node->c) {
        SL_TRY(sl_jinja_scope_new(run, &loop->test_scope, outer, node->test_frame));
        SL_TRY(sl_jinja_scope_enter(run, loop->test_scope));
    }
    sl_jinja_value *own = sl_jinja_scope_param(scope, "loop");
    for (;;) {
        SL_TRY(next(run, loop, node, &done));
        if (done) break;
        SL_TRY(sl_jinja_assign(run, node->a, loop->current, scope));
        if (own) *own = (sl_jinja_value){.type = SL_JINJA_LOOP, .as.loop = loop};
        SL_TRY(sl_jinja_scope_enter(run, scope));
        SL_TRY(sl_jinja_exec(run, node->body, scope));
        int flow = run->flow;
        run->flow = SL_FLOW_ON;
        finished_one |= flow == SL_FLOW_ON; // else also runs if every turn was cut short: so it is in jinja2
        if (flow == SL_FLOW_BREAK) break;
    }
    sl_jinja_scope_leave(scope);
    return node->otherwise && !finished_one ? run_else(run, node, outer) : SL_OK;
}
