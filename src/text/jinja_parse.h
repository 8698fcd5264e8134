// SPDX-License-Identifier: MIT
//
// What the two halves of the parser share.
#ifndef SL_TEXT_JINJA_PARSE_H
#define SL_TEXT_JINJA_PARSE_H

#include "text/jinja_ast.h"
#include "text/jinja_lex.h"

typedef struct sl_jinja_parser {
    sl_jinja_ast *ast;
    sl_jinja_run *run;
    sl_jinja_lexer lexer;
    sl_jinja_token cur, ahead;
    bool has_ahead;
    unsigned depth;      // of the parser's own calls
    unsigned loop_depth; // loops that break and continue may mean
    unsigned for_depth;  // loops around, also across macros
} sl_jinja_parser;

typedef struct sl_jinja_chain { // of nodes, linked by next
    sl_jinja_node *first, **end;
    uint32_t n;
} sl_jinja_chain;

sl_status sl_jinja_advance(sl_jinja_parser *p);
sl_status sl_jinja_peek(sl_jinja_parser *p); // fills p->ahead
bool sl_jinja_at_name(const sl_jinja_parser *p, const char *name);
sl_status sl_jinja_skip_if(sl_jinja_parser *p, sl_jinja_token_type type, bool *skipped);
sl_status sl_jinja_skip_name(sl_jinja_parser *p, const char *name, bool *skipped);
sl_status sl_jinja_expect(sl_jinja_parser *p, sl_jinja_token_type type, const char *what);
sl_status sl_jinja_unexpected(const sl_jinja_parser *p, const char *wanted);

sl_status sl_jinja_node_new(sl_jinja_parser *p, sl_jinja_node **out, sl_jinja_kind kind, uint32_t line);
sl_status sl_jinja_name_of(sl_jinja_parser *p, const sl_jinja_text **out); // of the current token
void sl_jinja_chain_add(sl_jinja_chain *chain, sl_jinja_node *node);
// Sets the height from the children of an expression, and fails if it is too high.
sl_status sl_jinja_node_done(sl_jinja_node *node);

sl_status sl_jinja_binary_node(sl_jinja_parser *p, sl_jinja_node **left, sl_jinja_kind kind, int op,
                               sl_jinja_node *right);
sl_status sl_jinja_too_deep(const sl_jinja_parser *p);

// A tuple without brackets, or one expression. `end` is a name that ends it, or NULL.
enum { SL_TUPLE_NO_COND = 1, SL_TUPLE_PARENS = 2, SL_TUPLE_TARGET = 4, SL_TUPLE_NAMESPACE = 8 };
sl_status sl_jinja_parse_tuple(sl_jinja_parser *p, sl_jinja_node **out, int flags, const char *end);
sl_status sl_jinja_parse_expression(sl_jinja_parser *p, sl_jinja_node **out, bool with_cond);
// A sign or an operand with all that follows it; without filters where a sign stood before.
sl_status sl_jinja_parse_unary(sl_jinja_parser *p, sl_jinja_node **out, bool with_filter);
// `node` may be NULL; with `inline_start` the current token is already the filter's name.
sl_status sl_jinja_parse_filters(sl_jinja_parser *p, sl_jinja_node **node, bool inline_start);

#endif
