// SPDX-License-Identifier: MIT
//
// What operators combine: literals, names, brackets, signs, and what follows them (attributes,
// items, calls, filters, tests).
#include "text/jinja_parse.h"

static sl_status parse_primary(sl_jinja_parser *p, sl_jinja_node **out, bool with_namespace);

// ---- postfixes ----

// Between brackets: an index or a slice.
static sl_status parse_subscribed(sl_jinja_parser *p, sl_jinja_node **out) {
    uint32_t line = p->cur.line;
    sl_jinja_node *parts[3] = {NULL};
    *out = NULL;
    if (p->cur.type != SL_TOK_COLON) {
        SL_TRY(sl_jinja_parse_expression(p, &parts[0], true));
        if (p->cur.type != SL_TOK_COLON) return *out = parts[0], SL_OK;
    }
    for (int i = 1; i < 3 && p->cur.type == SL_TOK_COLON; i++) {
        SL_TRY(sl_jinja_advance(p));
        if (p->cur.type != SL_TOK_COLON && p->cur.type != SL_TOK_RBRACKET && p->cur.type != SL_TOK_COMMA)
            SL_TRY(sl_jinja_parse_expression(p, &parts[i], true));
    }
    SL_TRY(sl_jinja_node_new(p, out, SL_NODE_SLICE, line));
    (*out)->a = parts[0];
    (*out)->b = parts[1];
    (*out)->c = parts[2];
    return sl_jinja_node_done(*out);
}

static sl_status parse_brackets(sl_jinja_parser *p, sl_jinja_node **node) {
    sl_jinja_chain chain = {0};
    sl_jinja_node *item;
    uint32_t line = p->cur.line;
    SL_TRY(sl_jinja_advance(p));
    while (p->cur.type != SL_TOK_RBRACKET) {
        if (chain.n) SL_TRY(sl_jinja_expect(p, SL_TOK_COMMA, "',' or ']'"));
        SL_TRY(parse_subscribed(p, &item));
        sl_jinja_chain_add(&chain, item);
    }
    SL_TRY(sl_jinja_advance(p));
    for (item = chain.first; chain.n > 1 && item; item = item->next)
        if (item->kind == SL_NODE_SLICE)
            return SL_FAIL(SL_BAD_INPUT, "line %u: a slice stands alone in its brackets", line);
    item = chain.first;
    if (chain.n != 1) {
        SL_TRY(sl_jinja_node_new(p, &item, SL_NODE_TUPLE, line));
        item->list = chain.first;
        item->n_list = chain.n;
        SL_TRY(sl_jinja_node_done(item));
    }
    return sl_jinja_binary_node(p, node, SL_NODE_ITEM, 0, item);
}

static sl_status parse_dot(sl_jinja_parser *p, sl_jinja_node **node) {
    sl_jinja_node *attr;
    SL_TRY(sl_jinja_advance(p));
    if (p->cur.type == SL_TOK_NUMBER && p->cur.value.type == SL_JINJA_INT) {
        SL_TRY(sl_jinja_node_new(p, &attr, SL_NODE_CONST, p->cur.line));
        attr->value = p->cur.value;
        SL_TRY(sl_jinja_advance(p));
        return sl_jinja_binary_node(p, node, SL_NODE_ITEM, 0, attr);
    }
    if (p->cur.type != SL_TOK_NAME) return sl_jinja_unexpected(p, "a name or a number");
    SL_TRY(sl_jinja_node_new(p, &attr, SL_NODE_ATTR, p->cur.line));
    SL_TRY(sl_jinja_name_of(p, &attr->name));
    attr->a = *node;
    *node = attr;
    SL_TRY(sl_jinja_advance(p));
    return sl_jinja_node_done(attr);
}

// One argument of a call, put where it belongs.
static sl_status parse_argument(sl_jinja_parser *p, sl_jinja_node *call, sl_jinja_chain *pos, sl_jinja_chain *kw) {
    sl_jinja_node *arg;
    bool order = !call->c;
    if (p->cur.type == SL_TOK_MUL || p->cur.type == SL_TOK_POW) {
        bool stars = p->cur.type == SL_TOK_POW;
        if (!order || (!stars && call->b)) return sl_jinja_unexpected(p, "no argument after **");
        SL_TRY(sl_jinja_advance(p));
        return sl_jinja_parse_expression(p, stars ? &call->c : &call->b, true);
    }
    if (p->cur.type == SL_TOK_NAME) SL_TRY(sl_jinja_peek(p));
    if (p->cur.type == SL_TOK_NAME && p->ahead.type == SL_TOK_ASSIGN) {
        if (!order) return sl_jinja_unexpected(p, "no argument after **");
        SL_TRY(sl_jinja_node_new(p, &arg, SL_NODE_KEYWORD, p->cur.line));
        SL_TRY(sl_jinja_name_of(p, &arg->name));
        for (sl_jinja_node *k = kw->first; k; k = k->next)
            if (k->name->n_bytes == arg->name->n_bytes && !memcmp(k->name->data, arg->name->data, k->name->n_bytes))
                return SL_FAIL(SL_BAD_INPUT, "line %u: an argument is given twice", arg->line);
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(sl_jinja_parse_expression(p, &arg->a, true));
        SL_TRY(sl_jinja_node_done(arg));
        return sl_jinja_chain_add(kw, arg), SL_OK;
    }
    if (!order || call->b || kw->n) return sl_jinja_unexpected(p, "a keyword argument");
    SL_TRY(sl_jinja_parse_expression(p, &arg, true));
    return sl_jinja_chain_add(pos, arg), SL_OK;
}

static sl_status parse_arguments(sl_jinja_parser *p, sl_jinja_node *call) {
    sl_jinja_chain pos = {0}, kw = {0};
    SL_TRY(sl_jinja_expect(p, SL_TOK_LPAREN, "'('"));
    for (bool comma = false; p->cur.type != SL_TOK_RPAREN; comma = true) {
        if (comma) SL_TRY(sl_jinja_expect(p, SL_TOK_COMMA, "',' or ')'"));
        if (comma && p->cur.type == SL_TOK_RPAREN) break;
        SL_TRY(parse_argument(p, call, &pos, &kw));
    }
    SL_TRY(sl_jinja_advance(p));
    call->list = pos.first;
    call->n_list = pos.n;
    call->kwargs = kw.first;
    return SL_OK;
}

static sl_status parse_call(sl_jinja_parser *p, sl_jinja_node **node) {
    sl_jinja_node *call;
    SL_TRY(sl_jinja_node_new(p, &call, SL_NODE_CALL, p->cur.line));
    SL_TRY(parse_arguments(p, call));
    call->a = *node;
    *node = call;
    return sl_jinja_node_done(call);
}

static sl_status parse_postfix(sl_jinja_parser *p, sl_jinja_node **node) {
    for (;;) {
        if (p->cur.type == SL_TOK_DOT) SL_TRY(parse_dot(p, node));
        else if (p->cur.type == SL_TOK_LBRACKET) SL_TRY(parse_brackets(p, node));
        else if (p->cur.type == SL_TOK_LPAREN) SL_TRY(parse_call(p, node));
        else return SL_OK;
    }
}

// a.b.c as one name
static sl_status parse_dotted(sl_jinja_parser *p, const sl_jinja_text **out) {
    const char *begin = p->cur.text.data;
    if (p->cur.type != SL_TOK_NAME) return sl_jinja_unexpected(p, "a name");
    SL_TRY(sl_jinja_name_of(p, out));
    SL_TRY(sl_jinja_advance(p));
    while (p->cur.type == SL_TOK_DOT) {
        sl_jinja_value v;
        SL_TRY(sl_jinja_advance(p));
        if (p->cur.type != SL_TOK_NAME) return sl_jinja_unexpected(p, "a name");
        SL_TRY(sl_jinja_text_share(p->run, &v, begin, (size_t)(p->cur.text.data - begin) + p->cur.text.n_bytes));
        *out = v.as.text;
        SL_TRY(sl_jinja_advance(p));
    }
    return SL_OK;
}

sl_status sl_jinja_parse_filters(sl_jinja_parser *p, sl_jinja_node **node, bool inline_start) {
    while (p->cur.type == SL_TOK_PIPE || inline_start) {
        sl_jinja_node *filter;
        if (!inline_start) SL_TRY(sl_jinja_advance(p));
        SL_TRY(sl_jinja_node_new(p, &filter, SL_NODE_FILTER, p->cur.line));
        SL_TRY(parse_dotted(p, &filter->name));
        if (p->cur.type == SL_TOK_LPAREN) SL_TRY(parse_arguments(p, filter));
        filter->a = *node;
        *node = filter;
        SL_TRY(sl_jinja_node_done(filter));
        inline_start = false;
    }
    return SL_OK;
}

static bool starts_test_argument(const sl_jinja_parser *p) {
    if (p->cur.type == SL_TOK_NAME)
        return !sl_jinja_at_name(p, "else") && !sl_jinja_at_name(p, "or") && !sl_jinja_at_name(p, "and");
    return p->cur.type == SL_TOK_TEXT || p->cur.type == SL_TOK_NUMBER || p->cur.type == SL_TOK_LBRACKET ||
           p->cur.type == SL_TOK_LBRACE;
}

static sl_status parse_test(sl_jinja_parser *p, sl_jinja_node **node) {
    sl_jinja_node *test, *not_node;
    bool negated;
    SL_TRY(sl_jinja_node_new(p, &test, SL_NODE_TEST, p->cur.line));
    SL_TRY(sl_jinja_advance(p));
    SL_TRY(sl_jinja_skip_name(p, "not", &negated));
    SL_TRY(parse_dotted(p, &test->name));
    if (p->cur.type == SL_TOK_LPAREN) {
        SL_TRY(parse_arguments(p, test));
    } else if (starts_test_argument(p)) {
        if (sl_jinja_at_name(p, "is")) return sl_jinja_unexpected(p, "only one test after 'is'");
        SL_TRY(parse_primary(p, &test->list, false));
        SL_TRY(parse_postfix(p, &test->list));
        test->n_list = 1;
    }
    test->a = *node;
    *node = test;
    SL_TRY(sl_jinja_node_done(test));
    if (!negated) return SL_OK;
    SL_TRY(sl_jinja_node_new(p, &not_node, SL_NODE_NOT, test->line));
    not_node->a = test;
    *node = not_node;
    return sl_jinja_node_done(not_node);
}

sl_status sl_jinja_parse_unary(sl_jinja_parser *p, sl_jinja_node **out, bool with_filter) {
    if (p->cur.type == SL_TOK_SUB || p->cur.type == SL_TOK_ADD) {
        if (p->depth >= SL_JINJA_MAX_NESTING) return sl_jinja_too_deep(p);
        SL_TRY(sl_jinja_node_new(p, out, p->cur.type == SL_TOK_SUB ? SL_NODE_NEG : SL_NODE_POS, p->cur.line));
        SL_TRY(sl_jinja_advance(p));
        p->depth++;
        sl_status status = sl_jinja_parse_unary(p, &(*out)->a, false);
        p->depth--;
        if (status == SL_OK) status = sl_jinja_node_done(*out);
        SL_TRY(status);
    } else {
        SL_TRY(parse_primary(p, out, false));
    }
    SL_TRY(parse_postfix(p, out));
    while (with_filter) {
        if (p->cur.type == SL_TOK_PIPE) SL_TRY(sl_jinja_parse_filters(p, out, false));
        else if (sl_jinja_at_name(p, "is")) SL_TRY(parse_test(p, out));
        else if (p->cur.type == SL_TOK_LPAREN) SL_TRY(parse_call(p, out));
        else break;
    }
    return SL_OK;
}

// ---- literals and names ----

static sl_status parse_name(sl_jinja_parser *p, sl_jinja_node **out, bool with_namespace) {
    sl_span name = p->cur.text;
    SL_TRY(sl_jinja_node_new(p, out, SL_NODE_NAME, p->cur.line));
    SL_TRY(sl_jinja_name_of(p, &(*out)->name));
    SL_TRY(sl_jinja_advance(p));
    bool yes = sl_span_is(name, "true") || sl_span_is(name, "True");
    if (yes || sl_span_is(name, "false") || sl_span_is(name, "False")) {
        (*out)->kind = SL_NODE_CONST;
        (*out)->value = sl_jinja_bool(yes);
    } else if (sl_span_is(name, "none") || sl_span_is(name, "None")) {
        (*out)->kind = SL_NODE_CONST;
        (*out)->value = sl_jinja_none();
    } else if (with_namespace && p->cur.type == SL_TOK_DOT) {
        const sl_jinja_text *attr;
        SL_TRY(sl_jinja_advance(p));
        if (p->cur.type != SL_TOK_NAME) return sl_jinja_unexpected(p, "a name");
        SL_TRY(sl_jinja_name_of(p, &attr));
        (*out)->kind = SL_NODE_NSREF;
        (*out)->value = sl_jinja_of_text(attr);
        SL_TRY(sl_jinja_advance(p));
    }
    return SL_OK;
}

// Adjacent strings are one.
static sl_status parse_const(sl_jinja_parser *p, sl_jinja_node **out) {
    bool text = p->cur.type == SL_TOK_TEXT;
    SL_TRY(sl_jinja_node_new(p, out, SL_NODE_CONST, p->cur.line));
    (*out)->value = p->cur.value;
    SL_TRY(sl_jinja_advance(p));
    while (text && p->cur.type == SL_TOK_TEXT) {
        SL_TRY(sl_jinja_text_join(p->run, &(*out)->value, *(*out)->value.as.text, *p->cur.value.as.text));
        SL_TRY(sl_jinja_advance(p));
    }
    return SL_OK;
}

static sl_status parse_list_or_dict(sl_jinja_parser *p, sl_jinja_node **out) {
    bool dict = p->cur.type == SL_TOK_LBRACE;
    sl_jinja_token_type end = dict ? SL_TOK_RBRACE : SL_TOK_RBRACKET;
    sl_jinja_chain chain = {0};
    sl_jinja_node *item;
    SL_TRY(sl_jinja_node_new(p, out, dict ? SL_NODE_DICT : SL_NODE_LIST, p->cur.line));
    SL_TRY(sl_jinja_advance(p));
    while (p->cur.type != end) {
        if (chain.n) SL_TRY(sl_jinja_expect(p, SL_TOK_COMMA, dict ? "',' or '}'" : "',' or ']'"));
        if (p->cur.type == end) break;
        SL_TRY(sl_jinja_parse_expression(p, &item, true));
        sl_jinja_chain_add(&chain, item);
        if (!dict) continue;
        SL_TRY(sl_jinja_expect(p, SL_TOK_COLON, "':'"));
        SL_TRY(sl_jinja_parse_expression(p, &item, true));
        sl_jinja_chain_add(&chain, item);
    }
    SL_TRY(sl_jinja_advance(p));
    (*out)->list = chain.first;
    (*out)->n_list = chain.n;
    return sl_jinja_node_done(*out);
}

static sl_status parse_primary(sl_jinja_parser *p, sl_jinja_node **out, bool with_namespace) {
    switch (p->cur.type) {
    case SL_TOK_NAME: return parse_name(p, out, with_namespace);
    case SL_TOK_TEXT:
    case SL_TOK_NUMBER: return parse_const(p, out);
    case SL_TOK_LPAREN:
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(sl_jinja_parse_tuple(p, out, SL_TUPLE_PARENS, NULL));
        return sl_jinja_expect(p, SL_TOK_RPAREN, "')'");
    case SL_TOK_LBRACKET:
    case SL_TOK_LBRACE: return parse_list_or_dict(p, out);
    default: return sl_jinja_unexpected(p, "an expression");
    }
}

sl_status sl_jinja_parse_tuple(sl_jinja_parser *p, sl_jinja_node **out, int flags, const char *end) {
    sl_jinja_chain chain = {0};
    bool is_tuple = false;
    uint32_t line = p->cur.line;
    *out = NULL;
    for (;;) {
        if (chain.n) SL_TRY(sl_jinja_expect(p, SL_TOK_COMMA, "','"));
        if (p->cur.type == SL_TOK_VARIABLE_END || p->cur.type == SL_TOK_BLOCK_END || p->cur.type == SL_TOK_RPAREN ||
            (end && sl_jinja_at_name(p, end)))
            break;
        sl_jinja_node *item;
        if (p->depth >= SL_JINJA_MAX_NESTING) return sl_jinja_too_deep(p);
        p->depth++; // targets do not pass parse_expression
        sl_status status = flags & SL_TUPLE_TARGET ? parse_primary(p, &item, flags & SL_TUPLE_NAMESPACE)
                                                   : sl_jinja_parse_expression(p, &item, !(flags & SL_TUPLE_NO_COND));
        p->depth--;
        SL_TRY(status);
        sl_jinja_chain_add(&chain, item);
        if (p->cur.type != SL_TOK_COMMA) break;
        is_tuple = true;
    }
    if (!is_tuple && chain.n) return *out = chain.first, SL_OK;
    if (!is_tuple && !(flags & SL_TUPLE_PARENS)) return sl_jinja_unexpected(p, "an expression");
    SL_TRY(sl_jinja_node_new(p, out, SL_NODE_TUPLE, line));
    (*out)->list = chain.first;
    (*out)->n_list = chain.n;
    return sl_jinja_node_done(*out);
}
