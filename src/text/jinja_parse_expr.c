// SPDX-License-Identifier: MIT
//
// Operators, by recursive descent in jinja2's order of precedence: if-else, or, and, not,
// comparisons, + -, ~, * / // %, **. Depth is counted on the way down (brackets, not) and by the
// height of what comes back (long chains).
#include "text/jinja_parse.h"

// The operators of one level, -1 for other tokens.
static int token_op(int type, int lowest, int highest) {
    static const int8_t ops[] = {
        [SL_TOK_ADD] = SL_OP_ADD,
        [SL_TOK_SUB] = SL_OP_SUB,
        [SL_TOK_MUL] = SL_OP_MUL,
        [SL_TOK_DIV] = SL_OP_DIV,
        [SL_TOK_FLOORDIV] = SL_OP_FLOORDIV,
        [SL_TOK_MOD] = SL_OP_MOD,
        [SL_TOK_POW] = SL_OP_POW,
        [SL_TOK_EQ] = SL_OP_EQ,
        [SL_TOK_NE] = SL_OP_NE,
        [SL_TOK_LT] = SL_OP_LT,
        [SL_TOK_LE] = SL_OP_LE,
        [SL_TOK_GT] = SL_OP_GT,
        [SL_TOK_GE] = SL_OP_GE,
    };
    if (type < SL_TOK_ADD || type >= (int)SL_COUNT(ops) || (ops[type] == 0 && type != SL_TOK_ADD)) return -1;
    return ops[type] >= lowest && ops[type] <= highest ? ops[type] : -1;
}

static sl_status parse_pow(sl_jinja_parser *p, sl_jinja_node **out) {
    SL_TRY(sl_jinja_parse_unary(p, out, true));
    while (p->cur.type == SL_TOK_POW) { // from the left, unlike in Python
        sl_jinja_node *right;
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(sl_jinja_parse_unary(p, &right, true));
        SL_TRY(sl_jinja_binary_node(p, out, SL_NODE_BINARY, SL_OP_POW, right));
    }
    return SL_OK;
}

static sl_status parse_product(sl_jinja_parser *p, sl_jinja_node **out) {
    SL_TRY(parse_pow(p, out));
    for (int op; (op = token_op(p->cur.type, SL_OP_MUL, SL_OP_MOD)) >= 0;) {
        sl_jinja_node *right;
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(parse_pow(p, &right));
        SL_TRY(sl_jinja_binary_node(p, out, SL_NODE_BINARY, op, right));
    }
    return SL_OK;
}

static sl_status parse_concat(sl_jinja_parser *p, sl_jinja_node **out) {
    sl_jinja_chain chain = {0};
    uint32_t line = p->cur.line;
    SL_TRY(parse_product(p, out));
    if (p->cur.type != SL_TOK_TILDE) return SL_OK;
    sl_jinja_chain_add(&chain, *out);
    while (p->cur.type == SL_TOK_TILDE) {
        sl_jinja_node *next;
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(parse_product(p, &next));
        sl_jinja_chain_add(&chain, next);
    }
    SL_TRY(sl_jinja_node_new(p, out, SL_NODE_CONCAT, line));
    (*out)->list = chain.first;
    (*out)->n_list = chain.n;
    return sl_jinja_node_done(*out);
}

static sl_status parse_sum(sl_jinja_parser *p, sl_jinja_node **out) {
    SL_TRY(parse_concat(p, out));
    for (int op; (op = token_op(p->cur.type, SL_OP_ADD, SL_OP_SUB)) >= 0;) {
        sl_jinja_node *right;
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(parse_concat(p, &right));
        SL_TRY(sl_jinja_binary_node(p, out, SL_NODE_BINARY, op, right));
    }
    return SL_OK;
}

// The comparison at the current token, taken off; -1 if there is none.
static sl_status take_comparison(sl_jinja_parser *p, int *op) {
    *op = token_op(p->cur.type, SL_OP_EQ, SL_OP_GE);
    if (*op >= 0) return sl_jinja_advance(p);
    if (sl_jinja_at_name(p, "in")) return *op = SL_OP_IN, sl_jinja_advance(p);
    if (!sl_jinja_at_name(p, "not")) return SL_OK;
    SL_TRY(sl_jinja_peek(p));
    if (p->ahead.type != SL_TOK_NAME || !sl_span_is(p->ahead.text, "in")) return SL_OK;
    *op = SL_OP_NOT_IN;
    SL_TRY(sl_jinja_advance(p));
    return sl_jinja_advance(p);
}

static sl_status parse_compare(sl_jinja_parser *p, sl_jinja_node **out) {
    sl_jinja_chain chain = {0};
    int op;
    SL_TRY(parse_sum(p, out));
    for (;;) {
        sl_jinja_node *operand;
        uint32_t line = p->cur.line;
        SL_TRY(take_comparison(p, &op));
        if (op < 0) break;
        SL_TRY(sl_jinja_node_new(p, &operand, SL_NODE_OPERAND, line));
        operand->op = (uint8_t)op;
        SL_TRY(parse_sum(p, &operand->a));
        SL_TRY(sl_jinja_node_done(operand));
        sl_jinja_chain_add(&chain, operand);
    }
    if (!chain.n) return SL_OK;
    sl_jinja_node *node;
    SL_TRY(sl_jinja_node_new(p, &node, SL_NODE_COMPARE, (*out)->line));
    node->a = *out;
    node->list = chain.first;
    *out = node;
    return sl_jinja_node_done(node);
}

static sl_status parse_not(sl_jinja_parser *p, sl_jinja_node **out) {
    if (!sl_jinja_at_name(p, "not")) return parse_compare(p, out);
    if (p->depth >= SL_JINJA_MAX_NESTING) return sl_jinja_too_deep(p);
    SL_TRY(sl_jinja_node_new(p, out, SL_NODE_NOT, p->cur.line));
    SL_TRY(sl_jinja_advance(p));
    p->depth++;
    sl_status status = parse_not(p, &(*out)->a);
    p->depth--;
    return status == SL_OK ? sl_jinja_node_done(*out) : status;
}

static sl_status parse_and(sl_jinja_parser *p, sl_jinja_node **out) {
    SL_TRY(parse_not(p, out));
    while (sl_jinja_at_name(p, "and")) {
        sl_jinja_node *right;
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(parse_not(p, &right));
        SL_TRY(sl_jinja_binary_node(p, out, SL_NODE_AND, 0, right));
    }
    return SL_OK;
}

static sl_status parse_or(sl_jinja_parser *p, sl_jinja_node **out) {
    SL_TRY(parse_and(p, out));
    while (sl_jinja_at_name(p, "or")) {
        sl_jinja_node *right;
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(parse_and(p, &right));
        SL_TRY(sl_jinja_binary_node(p, out, SL_NODE_OR, 0, right));
    }
    return SL_OK;
}

static sl_status parse_cond(sl_jinja_parser *p, sl_jinja_node **out) {
    bool more;
    SL_TRY(parse_or(p, out));
    while (sl_jinja_at_name(p, "if")) {
        sl_jinja_node *node;
        SL_TRY(sl_jinja_node_new(p, &node, SL_NODE_COND, (*out)->line));
        SL_TRY(sl_jinja_advance(p));
        node->b = *out;
        *out = node;
        SL_TRY(parse_or(p, &node->a));
        SL_TRY(sl_jinja_skip_name(p, "else", &more));
        if (more) SL_TRY(sl_jinja_parse_expression(p, &node->c, true));
        SL_TRY(sl_jinja_node_done(node));
    }
    return SL_OK;
}

sl_status sl_jinja_parse_expression(sl_jinja_parser *p, sl_jinja_node **out, bool with_cond) {
    *out = NULL;
    if (p->depth >= SL_JINJA_MAX_NESTING) return sl_jinja_too_deep(p);
    p->depth++;
    sl_status status = with_cond ? parse_cond(p, out) : parse_or(p, out);
    p->depth--;
    return status;
}
