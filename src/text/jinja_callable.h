// SPDX-License-Identifier: MIT
//
// What templates call, and the evaluator's doors to the rest: macros, loops, builtins (filters,
// tests, methods and global functions share one shape), attribute look-up, operators.
#ifndef SL_TEXT_JINJA_CALLABLE_H
#define SL_TEXT_JINJA_CALLABLE_H

#include "text/jinja_ast.h"
#include "text/jinja_value.h"

enum { SL_JINJA_MAX_ARGS = 6 };

typedef struct sl_jinja_scope { // the values of a frame's slots
    struct sl_jinja_scope *parent;
    const sl_jinja_frame *frame;
    sl_jinja_value *values;
} sl_jinja_scope;

typedef struct sl_jinja_macro {
    const sl_jinja_node *node; // MACRO or CALL_BLOCK
    sl_jinja_scope *scope;     // where it was defined
    const sl_jinja_text *name; // NULL for a call block
} sl_jinja_macro;

typedef struct sl_jinja_loop {
    const sl_jinja_node *node;  // of a recursive loop, else NULL
    sl_jinja_scope *outer;      // where its body's scope belongs
    sl_jinja_scope *test_scope; // of `for ... if`, else NULL
    sl_jinja_iter iter;
    size_t index, depth0; // index counts from 1
    size_t length;
    bool has_length, has_after;
    sl_jinja_value before, current, after, last_changed; // MISSING where there is none
} sl_jinja_loop;

// One call of a builtin: `self` is the filtered or tested value or the method's object; `v` are the
// arguments by their place in the signature, MISSING where not given. Where the signature is "*",
// `v` is empty and `args` has all.
typedef struct sl_jinja_call {
    sl_jinja_run *run;
    sl_jinja_value self;
    sl_jinja_value v[SL_JINJA_MAX_ARGS];
    const sl_jinja_args *args;
} sl_jinja_call;
typedef sl_status sl_jinja_function(sl_jinja_call *c, sl_jinja_value *out);

// `signature`: names with spaces between; the first `n_required` must be given; a leading '/'
// forbids keywords.
typedef struct sl_jinja_builtin {
    const char *name;
    sl_jinja_function *run;
    const char *signature;
    uint8_t n_required;
    uint8_t of; // methods: the type they belong to
} sl_jinja_builtin;

typedef struct sl_jinja_method {
    const sl_jinja_builtin *builtin;
    sl_jinja_value self;
} sl_jinja_method;

// ---- builtins (jinja_builtin.c and the files of each table) ----
const sl_jinja_builtin *sl_jinja_filter_find(sl_span name);
const sl_jinja_builtin *sl_jinja_test_find(sl_span name);
const sl_jinja_builtin *sl_jinja_global_find(sl_span name);
const sl_jinja_builtin *sl_jinja_method_find(sl_jinja_value of, sl_span name);
bool sl_jinja_name_unsupported(sl_span name, bool filter); // jinja2 has it, we do not
sl_status sl_jinja_builtin_call(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_builtin *builtin,
                                sl_jinja_value self, const sl_jinja_args *args);

// ---- the evaluator (jinja_eval.c, jinja_exec.c) ----
sl_status sl_jinja_eval(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope);
sl_status sl_jinja_exec(sl_jinja_run *run, const sl_jinja_node *body, sl_jinja_scope *scope);
sl_status sl_jinja_render(sl_jinja_run *run, const sl_jinja_ast *ast);
typedef enum sl_jinja_flow { SL_FLOW_ON, SL_FLOW_BREAK, SL_FLOW_CONTINUE } sl_jinja_flow;

// ---- scopes (jinja_scope_run.c) ----
sl_status sl_jinja_scope_new(sl_jinja_run *run, sl_jinja_scope **out, sl_jinja_scope *parent,
                             const sl_jinja_frame *frame);
sl_status sl_jinja_scope_enter(sl_jinja_run *run,
                               sl_jinja_scope *scope); // gives all but parameters their first values
void sl_jinja_scope_leave(sl_jinja_scope *scope);
sl_jinja_value *sl_jinja_scope_param(sl_jinja_scope *scope, const char *name); // or NULL
sl_jinja_value sl_jinja_name_load(const sl_jinja_scope *scope, const sl_jinja_node *node);
sl_status sl_jinja_assign(sl_jinja_run *run, const sl_jinja_node *target, sl_jinja_value v, sl_jinja_scope *scope);

// ---- calls (jinja_call.c) ----
sl_status sl_jinja_call_value(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value callee, const sl_jinja_args *args);
sl_status sl_jinja_eval_args(sl_jinja_run *run, sl_jinja_args *out, const sl_jinja_node *node, sl_jinja_scope *scope);
sl_status sl_jinja_eval_call(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope,
                             const sl_jinja_value *caller);
sl_status sl_jinja_macro_make(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *node, sl_jinja_scope *scope);
// Runs `body` and takes what it prints as a text.
sl_status sl_jinja_capture(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_node *body, sl_jinja_scope *scope);

// ---- loops (jinja_loop.c) ----
sl_status sl_jinja_loop_run(sl_jinja_run *run, const sl_jinja_node *node, sl_jinja_value iterable,
                            sl_jinja_scope *outer, size_t depth0);
sl_status sl_jinja_loop_length(sl_jinja_run *run, size_t *out, sl_jinja_loop *loop);
sl_status sl_jinja_loop_attr(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_loop *loop, sl_span name, bool *found);

// ---- look-up (jinja_access.c) ----
sl_status sl_jinja_getattr(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, const sl_jinja_text *name);
sl_status sl_jinja_getitem(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, sl_jinja_value key);
sl_status sl_jinja_slice(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, const sl_jinja_value part[3]);
// The attribute alone, without falling back to an item; *found says whether there is one.
sl_status sl_jinja_own_attr(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, const sl_jinja_text *name,
                            bool *found);
// Follows "a.b.0", a number or none at all, as map(attribute=...) and the like do; MISSING default:
// none.
sl_status sl_jinja_follow(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value of, sl_jinja_value path,
                          sl_jinja_value instead);

// ---- operators (jinja_op.c) ----
sl_status sl_jinja_binary(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_op op, sl_jinja_value a, sl_jinja_value b);
sl_status sl_jinja_unary(sl_jinja_value *out, sl_jinja_value v, bool minus);
sl_status sl_jinja_relation(sl_jinja_run *run, bool *out, sl_jinja_op op, sl_jinja_value a, sl_jinja_value b);
sl_status sl_jinja_escaped(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value v); // markup of v
sl_status sl_jinja_repeat(sl_jinja_run *run, sl_jinja_value *out, sl_span s, int64_t count);

// ---- formatting (jinja_format.c, jinja_format_spec.c) ----
sl_status sl_jinja_percent(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value format, sl_jinja_value args);
sl_status sl_jinja_str_format(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value format, const sl_jinja_args *args);
sl_status sl_jinja_format_value(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v, sl_span spec);
sl_status sl_jinja_strftime(sl_buf *buf, sl_span format, int64_t local_s);

#endif
