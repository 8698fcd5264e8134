// SPDX-License-Identifier: MIT
//
// Statements, and the token stream that both halves of the parser read. A statement body ends at
// one of a few names (elif, endif, ...), which the caller then looks at.
#include "text/jinja_parse.h"

// ---- tokens and nodes ----

sl_status sl_jinja_advance(sl_jinja_parser *p) {
    if (p->has_ahead) {
        p->cur = p->ahead;
        p->has_ahead = false;
        return SL_OK;
    }
    return sl_jinja_lex_next(&p->lexer, &p->cur);
}

sl_status sl_jinja_peek(sl_jinja_parser *p) {
    if (p->has_ahead) return SL_OK;
    SL_TRY(sl_jinja_lex_next(&p->lexer, &p->ahead));
    p->has_ahead = true;
    return SL_OK;
}

bool sl_jinja_at_name(const sl_jinja_parser *p, const char *name) {
    return p->cur.type == SL_TOK_NAME && sl_span_is(p->cur.text, name);
}

sl_status sl_jinja_skip_if(sl_jinja_parser *p, sl_jinja_token_type type, bool *skipped) {
    *skipped = p->cur.type == type;
    return *skipped ? sl_jinja_advance(p) : SL_OK;
}

sl_status sl_jinja_skip_name(sl_jinja_parser *p, const char *name, bool *skipped) {
    *skipped = sl_jinja_at_name(p, name);
    return *skipped ? sl_jinja_advance(p) : SL_OK;
}

sl_status sl_jinja_unexpected(const sl_jinja_parser *p, const char *wanted) {
    if (p->cur.type == SL_TOK_NAME)
        return SL_FAIL(SL_BAD_INPUT, "line %u: expected %s, not '%.*s'", p->cur.line, wanted,
                       (int)SL_MIN(p->cur.text.n_bytes, 100u), p->cur.text.data);
    return SL_FAIL(SL_BAD_INPUT, "line %u: expected %s, not %s", p->cur.line, wanted, sl_jinja_token_name(&p->cur));
}

sl_status sl_jinja_expect(sl_jinja_parser *p, sl_jinja_token_type type, const char *what) {
    return p->cur.type == type ? sl_jinja_advance(p) : sl_jinja_unexpected(p, what);
}

static sl_status expect_name(sl_jinja_parser *p, const char *name) {
    return sl_jinja_at_name(p, name) ? sl_jinja_advance(p) : sl_jinja_unexpected(p, name);
}

sl_status sl_jinja_node_new(sl_jinja_parser *p, sl_jinja_node **out, sl_jinja_kind kind, uint32_t line) {
    SL_TRY(sl_jinja_alloc(p->run, out, 1, sizeof **out));
    (*out)->kind = (uint8_t)kind;
    (*out)->line = line;
    (*out)->height = 1;
    return SL_OK;
}

sl_status sl_jinja_name_of(sl_jinja_parser *p, const sl_jinja_text **out) {
    sl_jinja_value v;
    *out = NULL;
    SL_TRY(sl_jinja_text_share(p->run, &v, p->cur.text.data, p->cur.text.n_bytes));
    *out = v.as.text;
    return SL_OK;
}

void sl_jinja_chain_add(sl_jinja_chain *chain, sl_jinja_node *node) {
    if (!chain->end) chain->end = &chain->first;
    *chain->end = node;
    chain->end = &node->next;
    chain->n++;
}

sl_status sl_jinja_node_done(sl_jinja_node *node) {
    unsigned height = 0;
    sl_jinja_node *const children[] = {node->a, node->b, node->c};
    for (int i = 0; i < 3; i++)
        if (children[i]) height = SL_MAX(height, children[i]->height);
    for (sl_jinja_node *n = node->list; n; n = n->next) height = SL_MAX(height, n->height);
    for (sl_jinja_node *n = node->kwargs; n; n = n->next) height = SL_MAX(height, n->height);
    node->height = (uint16_t)(height + 1);
    if (height < SL_JINJA_MAX_NESTING) return SL_OK;
    return SL_FAIL(SL_BAD_INPUT, "line %u: the expression nests more than %d deep", node->line, SL_JINJA_MAX_NESTING);
}

sl_status sl_jinja_binary_node(sl_jinja_parser *p, sl_jinja_node **left, sl_jinja_kind kind, int op,
                               sl_jinja_node *right) {
    sl_jinja_node *node;
    SL_TRY(sl_jinja_node_new(p, &node, kind, (*left)->line));
    node->op = (uint8_t)op;
    node->a = *left;
    node->b = right;
    *left = node;
    return sl_jinja_node_done(node);
}

sl_status sl_jinja_too_deep(const sl_jinja_parser *p) {
    return SL_FAIL(SL_BAD_INPUT, "line %u: the template nests more than %d deep", p->cur.line, SL_JINJA_MAX_NESTING);
}

// ---- bodies ----

static sl_status parse_statement(sl_jinja_parser *p, sl_jinja_node **out);

static bool at_one_of(const sl_jinja_parser *p, const char *const *ends) {
    for (; ends && *ends; ends++)
        if (sl_jinja_at_name(p, *ends)) return true;
    return false;
}

static sl_status parse_output(sl_jinja_parser *p, sl_jinja_chain *chain) {
    sl_jinja_node *node;
    SL_TRY(sl_jinja_node_new(p, &node, SL_NODE_OUTPUT, p->cur.line));
    if (p->cur.type == SL_TOK_DATA) {
        SL_TRY(sl_jinja_node_new(p, &node->a, SL_NODE_CONST, p->cur.line));
        SL_TRY(sl_jinja_text_share(p->run, &node->a->value, p->cur.text.data, p->cur.text.n_bytes));
        SL_TRY(sl_jinja_advance(p));
    } else {
        SL_TRY(sl_jinja_advance(p));
        SL_TRY(sl_jinja_parse_tuple(p, &node->a, 0, NULL));
        SL_TRY(sl_jinja_expect(p, SL_TOK_VARIABLE_END, "'}}'"));
    }
    sl_jinja_chain_add(chain, node);
    return SL_OK;
}

// Up to a tag with one of the names of `ends`, whose name is then the current token; NULL: up to
// the end.
static sl_status parse_body(sl_jinja_parser *p, sl_jinja_node **out, const char *const *ends) {
    sl_jinja_chain chain = {0};
    *out = NULL;
    while (p->cur.type != SL_TOK_EOF) {
        if (p->cur.type != SL_TOK_BLOCK_BEGIN) {
            SL_TRY(parse_output(p, &chain));
            continue;
        }
        SL_TRY(sl_jinja_advance(p));
        if (at_one_of(p, ends)) break;
        sl_jinja_node *node = NULL;
        if (p->depth >= SL_JINJA_MAX_NESTING) return sl_jinja_too_deep(p);
        p->depth++;
        sl_status status = parse_statement(p, &node);
        p->depth--;
        SL_TRY(status);
        if (node) sl_jinja_chain_add(&chain, node);
        SL_TRY(sl_jinja_expect(p, SL_TOK_BLOCK_END, "'%}'"));
    }
    if (ends && p->cur.type == SL_TOK_EOF)
        return SL_FAIL(SL_BAD_INPUT, "line %u: the template ends before %s", p->cur.line, ends[0]);
    *out = chain.first;
    return SL_OK;
}

static sl_status parse_statements(sl_jinja_parser *p, sl_jinja_node **out, const char *const *ends) {
    bool colon;
    SL_TRY(sl_jinja_skip_if(p, SL_TOK_COLON, &colon));
    SL_TRY(sl_jinja_expect(p, SL_TOK_BLOCK_END, "'%}'"));
    return parse_body(p, out, ends);
}

static sl_status parse_until(sl_jinja_parser *p, sl_jinja_node **out, const char *end) {
    const char *const ends[] = {end, NULL};
    SL_TRY(parse_statements(p, out, ends));
    return sl_jinja_advance(p);
}

// ---- targets ----

static sl_status check_target(sl_jinja_parser *p, const sl_jinja_node *target) {
    if (target->kind == SL_NODE_NSREF) return SL_OK;
    if (target->kind == SL_NODE_NAME) {
        if (p->for_depth && target->name->n_bytes == 4 && !memcmp(target->name->data, "loop", 4))
            return SL_FAIL(SL_BAD_INPUT, "line %u: loop cannot be assigned to inside a for", target->line);
        return SL_OK;
    }
    if (target->kind != SL_NODE_TUPLE)
        return SL_FAIL(SL_BAD_INPUT, "line %u: this cannot be assigned to", target->line);
    for (const sl_jinja_node *item = target->list; item; item = item->next) SL_TRY(check_target(p, item));
    return SL_OK;
}

static sl_status parse_target(sl_jinja_parser *p, sl_jinja_node **out, int flags, const char *end) {
    SL_TRY(sl_jinja_parse_tuple(p, out, SL_TUPLE_TARGET | flags, end));
    return check_target(p, *out);
}

static sl_status parse_name_target(sl_jinja_parser *p, const sl_jinja_text **out) {
    static const char *const words[] = {"true", "false", "none", "True", "False", "None", NULL};
    if (p->cur.type != SL_TOK_NAME || at_one_of(p, words)) return sl_jinja_unexpected(p, "a name");
    SL_TRY(sl_jinja_name_of(p, out));
    return sl_jinja_advance(p);
}

// ---- statements; the current token is the one after the statement's name ----

static sl_status parse_for(sl_jinja_parser *p, sl_jinja_node *node) {
    static const char *const ends[] = {"endfor", "else", NULL};
    bool more;
    p->for_depth++;
    SL_TRY(parse_target(p, &node->a, 0, "in"));
    SL_TRY(expect_name(p, "in"));
    SL_TRY(sl_jinja_parse_tuple(p, &node->b, SL_TUPLE_NO_COND, "recursive"));
    SL_TRY(sl_jinja_skip_name(p, "if", &more));
    if (more) SL_TRY(sl_jinja_parse_expression(p, &node->c, true));
    SL_TRY(sl_jinja_skip_name(p, "recursive", &node->flag));
    p->loop_depth++;
    SL_TRY(parse_statements(p, &node->body, ends));
    p->loop_depth--;
    bool has_else = sl_jinja_at_name(p, "else");
    SL_TRY(sl_jinja_advance(p));
    if (has_else) SL_TRY(parse_until(p, &node->otherwise, "endfor"));
    p->for_depth--;
    return SL_OK;
}

static sl_status parse_if(sl_jinja_parser *p, sl_jinja_node *node) {
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    sl_jinja_chain elifs = {0};
    for (sl_jinja_node *branch = node;;) {
        SL_TRY(sl_jinja_parse_tuple(p, &branch->a, SL_TUPLE_NO_COND, NULL));
        SL_TRY(parse_statements(p, &branch->body, ends));
        bool is_elif = sl_jinja_at_name(p, "elif"), is_else = sl_jinja_at_name(p, "else");
        SL_TRY(sl_jinja_advance(p));
        if (is_else) SL_TRY(parse_until(p, &node->otherwise, "endif"));
        if (!is_elif) break;
        SL_TRY(sl_jinja_node_new(p, &branch, SL_NODE_IF, p->cur.line));
        sl_jinja_chain_add(&elifs, branch);
    }
    node->list = elifs.first;
    return SL_OK;
}

static sl_status parse_set(sl_jinja_parser *p, sl_jinja_node *node) {
    bool assign;
    SL_TRY(parse_target(p, &node->a, SL_TUPLE_NAMESPACE, NULL));
    SL_TRY(sl_jinja_skip_if(p, SL_TOK_ASSIGN, &assign));
    if (assign) return sl_jinja_parse_tuple(p, &node->b, 0, NULL);
    node->kind = SL_NODE_SET_BLOCK;
    SL_TRY(sl_jinja_parse_filters(p, &node->b, false));
    return parse_until(p, &node->body, "endset");
}

static sl_status parse_signature(sl_jinja_parser *p, sl_jinja_node *node) {
    sl_jinja_chain chain = {0};
    bool assign, defaults = false;
    SL_TRY(sl_jinja_expect(p, SL_TOK_LPAREN, "'('"));
    while (p->cur.type != SL_TOK_RPAREN) {
        sl_jinja_node *param;
        if (chain.n) SL_TRY(sl_jinja_expect(p, SL_TOK_COMMA, "',' or ')'"));
        SL_TRY(sl_jinja_node_new(p, &param, SL_NODE_PARAM, p->cur.line));
        SL_TRY(parse_name_target(p, &param->name));
        for (sl_jinja_node *other = chain.first; other; other = other->next)
            if (other->name->n_bytes == param->name->n_bytes &&
                !memcmp(other->name->data, param->name->data, other->name->n_bytes))
                return SL_FAIL(SL_BAD_INPUT, "line %u: two parameters have the same name", param->line);
        SL_TRY(sl_jinja_skip_if(p, SL_TOK_ASSIGN, &assign));
        if (assign) SL_TRY(sl_jinja_parse_expression(p, &param->a, true));
        else if (defaults) return sl_jinja_unexpected(p, "a default, as the parameter before has one,");
        defaults |= assign;
        sl_jinja_chain_add(&chain, param);
    }
    node->list = chain.first;
    node->n_list = chain.n;
    return sl_jinja_advance(p);
}

static sl_status parse_function_body(sl_jinja_parser *p, sl_jinja_node *node, const char *end) {
    unsigned loops = p->loop_depth;
    p->loop_depth = 0; // break cannot leave a macro
    SL_TRY(parse_until(p, &node->body, end));
    p->loop_depth = loops;
    return SL_OK;
}

static sl_status parse_macro(sl_jinja_parser *p, sl_jinja_node *node) {
    SL_TRY(parse_name_target(p, &node->name));
    SL_TRY(parse_signature(p, node));
    return parse_function_body(p, node, "endmacro");
}

static sl_status parse_call_block(sl_jinja_parser *p, sl_jinja_node *node) {
    if (p->cur.type == SL_TOK_LPAREN) SL_TRY(parse_signature(p, node));
    SL_TRY(sl_jinja_parse_expression(p, &node->a, true));
    if (node->a->kind != SL_NODE_CALL) return SL_FAIL(SL_BAD_INPUT, "line %u: call needs a call", node->line);
    return parse_function_body(p, node, "endcall");
}

static sl_status parse_with(sl_jinja_parser *p, sl_jinja_node *node) {
    sl_jinja_chain chain = {0};
    while (p->cur.type != SL_TOK_BLOCK_END) {
        sl_jinja_node *part;
        if (chain.n) SL_TRY(sl_jinja_expect(p, SL_TOK_COMMA, "','"));
        SL_TRY(parse_target(p, &part, 0, NULL));
        sl_jinja_chain_add(&chain, part);
        SL_TRY(sl_jinja_expect(p, SL_TOK_ASSIGN, "'='"));
        SL_TRY(sl_jinja_parse_expression(p, &part, true));
        sl_jinja_chain_add(&chain, part);
    }
    node->list = chain.first;
    return parse_until(p, &node->body, "endwith");
}

static sl_status parse_block(sl_jinja_parser *p, sl_jinja_node *node) {
    bool named;
    if (p->cur.type != SL_TOK_NAME) return sl_jinja_unexpected(p, "a name");
    SL_TRY(sl_jinja_name_of(p, &node->name));
    SL_TRY(sl_jinja_advance(p));
    if (sl_jinja_at_name(p, "scoped") || sl_jinja_at_name(p, "required"))
        return SL_FAIL(SL_UNSUPPORTED, "line %u: scoped and required blocks are not supported", node->line);
    for (sl_jinja_node *other = p->ast->blocks; other; other = other->kwargs)
        if (sl_span_equal(sl_span_make(other->name->data, other->name->n_bytes),
                          sl_span_make(node->name->data, node->name->n_bytes)))
            return SL_FAIL(SL_BAD_INPUT, "line %u: two blocks have the same name", node->line);
    node->kwargs = p->ast->blocks; // the list of all blocks
    p->ast->blocks = node;
    SL_TRY(parse_function_body(p, node, "endblock"));
    SL_TRY(sl_jinja_skip_if(p, SL_TOK_NAME, &named));
    return SL_OK;
}

// {% print a, b %} prints them one by one.
static sl_status parse_print(sl_jinja_parser *p, sl_jinja_node *node) {
    sl_jinja_chain chain = {0};
    while (p->cur.type != SL_TOK_BLOCK_END) {
        sl_jinja_node *part;
        if (chain.n) SL_TRY(sl_jinja_expect(p, SL_TOK_COMMA, "','"));
        SL_TRY(sl_jinja_parse_expression(p, &part, true));
        sl_jinja_chain_add(&chain, part);
    }
    SL_TRY(sl_jinja_node_new(p, &node->a, SL_NODE_CONCAT, node->line));
    node->a->list = chain.first;
    node->a->n_list = chain.n;
    return sl_jinja_node_done(node->a);
}

static sl_status parse_autoescape(sl_jinja_parser *p, sl_jinja_node *node) {
    SL_TRY(sl_jinja_parse_expression(p, &node->a, true));
    if (node->a->kind != SL_NODE_CONST || sl_jinja_truth(node->a->value))
        return SL_FAIL(SL_UNSUPPORTED, "line %u: HTML escaping is not supported", node->line);
    return parse_until(p, &node->body, "endautoescape");
}

static sl_status parse_no_loader(sl_jinja_parser *p, sl_jinja_node *node) {
    (void)node; // whatever it says: there is nowhere to load from
    while (p->cur.type != SL_TOK_BLOCK_END && p->cur.type != SL_TOK_EOF) SL_TRY(sl_jinja_advance(p));
    return SL_OK;
}

static sl_status parse_generation(sl_jinja_parser *p, sl_jinja_node *node) {
    return parse_function_body(p, node, "endgeneration");
}

static sl_status parse_filter_block(sl_jinja_parser *p, sl_jinja_node *node) {
    SL_TRY(sl_jinja_parse_filters(p, &node->a, true));
    return parse_until(p, &node->body, "endfilter");
}

static sl_status parse_loop_control(sl_jinja_parser *p, sl_jinja_node *node) {
    if (p->loop_depth) return SL_OK;
    return SL_FAIL(SL_BAD_INPUT, "line %u: break and continue belong inside a for", node->line);
}

static sl_status parse_statement(sl_jinja_parser *p, sl_jinja_node **out) {
    static const struct {
        const char *name;
        sl_jinja_kind kind;
        sl_status (*parse)(sl_jinja_parser *p, sl_jinja_node *node);
    } statements[] = {
        {"for", SL_NODE_FOR, parse_for},
        {"if", SL_NODE_IF, parse_if},
        {"set", SL_NODE_SET, parse_set},
        {"macro", SL_NODE_MACRO, parse_macro},
        {"call", SL_NODE_CALL_BLOCK, parse_call_block},
        {"generation", SL_NODE_CALL_BLOCK, parse_generation},
        {"filter", SL_NODE_FILTER_BLOCK, parse_filter_block},
        {"with", SL_NODE_WITH, parse_with},
        {"autoescape", SL_NODE_SCOPE, parse_autoescape},
        {"block", SL_NODE_BLOCK, parse_block},
        {"print", SL_NODE_OUTPUT, parse_print},
        {"break", SL_NODE_BREAK, parse_loop_control},
        {"continue", SL_NODE_CONTINUE, parse_loop_control},
        {"extends", SL_NODE_NO_LOADER, parse_no_loader},
        {"include", SL_NODE_NO_LOADER, parse_no_loader},
        {"import", SL_NODE_NO_LOADER, parse_no_loader},
        {"from", SL_NODE_NO_LOADER, parse_no_loader},
    };
    if (p->cur.type != SL_TOK_NAME) return sl_jinja_unexpected(p, "the name of a statement");
    for (size_t i = 0; i < SL_COUNT(statements); i++) {
        if (!sl_jinja_at_name(p, statements[i].name)) continue;
        SL_TRY(sl_jinja_node_new(p, out, statements[i].kind, p->cur.line));
        SL_TRY(sl_jinja_advance(p));
        return statements[i].parse(p, *out);
    }
    return sl_jinja_unexpected(p, "a statement");
}

sl_status sl_jinja_parse(sl_jinja_ast *ast, sl_span source) {
    sl_jinja_parser p = {.ast = ast, .run = ast->memory};
    SL_TRY(sl_jinja_lex_init(&p.lexer, p.run, source));
    SL_TRY(sl_jinja_advance(&p));
    return parse_body(&p, &ast->body, NULL);
}
