// SPDX-License-Identifier: MIT
//
// Tokens of a template, made one at a time, with the whitespace rules of trim_blocks and
// lstrip_blocks already applied.
#ifndef SL_TEXT_JINJA_LEX_H
#define SL_TEXT_JINJA_LEX_H

#include "text/jinja_value.h"

typedef enum sl_jinja_token_type {
    SL_TOK_EOF,
    SL_TOK_DATA,
    SL_TOK_BLOCK_BEGIN,
    SL_TOK_BLOCK_END,
    SL_TOK_VARIABLE_BEGIN,
    SL_TOK_VARIABLE_END,
    SL_TOK_NAME,
    SL_TOK_TEXT,   // value
    SL_TOK_NUMBER, // value
    SL_TOK_ADD,
    SL_TOK_SUB,
    SL_TOK_MUL,
    SL_TOK_DIV,
    SL_TOK_FLOORDIV,
    SL_TOK_MOD,
    SL_TOK_POW,
    SL_TOK_TILDE,
    SL_TOK_LPAREN,
    SL_TOK_RPAREN,
    SL_TOK_LBRACKET,
    SL_TOK_RBRACKET,
    SL_TOK_LBRACE,
    SL_TOK_RBRACE,
    SL_TOK_EQ,
    SL_TOK_NE,
    SL_TOK_LT,
    SL_TOK_LE,
    SL_TOK_GT,
    SL_TOK_GE,
    SL_TOK_ASSIGN,
    SL_TOK_DOT,
    SL_TOK_COLON,
    SL_TOK_PIPE,
    SL_TOK_COMMA,
    SL_TOK_SEMICOLON,
} sl_jinja_token_type;

typedef struct sl_jinja_token {
    uint8_t type;
    uint32_t line;
    sl_span text; // borrowed from the source
    sl_jinja_value value;
} sl_jinja_token;

typedef struct sl_jinja_lexer {
    sl_jinja_run *run; // whose arena holds the literals
    sl_span source;    // newlines are \n
    size_t pos;
    uint32_t line;
    bool in_block, in_variable, line_starting;
    char *brackets; // closing ones that are still to come
    size_t n_brackets, cap_brackets;
} sl_jinja_lexer;

// Copies the source (\r\n and \r become \n, one \n at the end goes) and checks that it is UTF-8.
sl_status sl_jinja_lex_init(sl_jinja_lexer *lexer, sl_jinja_run *run, sl_span source);
sl_status sl_jinja_lex_next(sl_jinja_lexer *lexer, sl_jinja_token *out);
// What a token is called in a message.
const char *sl_jinja_token_name(const sl_jinja_token *token);

#endif
