// SPDX-License-Identifier: MIT
//
// The lexer. Outside of tags it looks for the next tag and trims the text before it; inside it
// reads tokens until the end of the tag, which counts only when all brackets are closed.
#include "text/jinja_lex.h"

#include "base/utf8.h"
#include "text/jinja_literal.h"
#include "text/jinja_text.h"

enum { MAX_SOURCE_BYTES = 16 << 20 };

sl_status sl_jinja_lex_init(sl_jinja_lexer *lx, sl_jinja_run *run, sl_span source) {
    char *copy;
    size_t n = 0;
    *lx = (sl_jinja_lexer){.run = run, .line = 1, .line_starting = true};
    if (source.n_bytes > MAX_SOURCE_BYTES)
        return SL_FAIL(SL_BAD_INPUT, "the template is longer than %d bytes", MAX_SOURCE_BYTES);
    SL_TRY(sl_jinja_alloc(run, &copy, source.n_bytes + 1, 1));
    for (size_t i = 0; i < source.n_bytes;) {
        uint32_t cp;
        size_t len = sl_utf8_decode(&cp, source.data + i, source.n_bytes - i);
        if (len == 0) return SL_FAIL(SL_BAD_INPUT, "the template is not UTF-8 at byte %zu", i);
        if (cp == '\r') {
            i += i + 1 < source.n_bytes && source.data[i + 1] == '\n';
            copy[n++] = '\n';
        } else {
            memcpy(copy + n, source.data + i, len);
            n += len;
        }
        i += len;
    }
    if (n > 0 && copy[n - 1] == '\n') n--;
    lx->source = sl_span_make(copy, n);
    return SL_OK;
}

// ---- small steps ----

static int peek(const sl_jinja_lexer *lx, size_t ahead) { // -1 past the end
    size_t at = lx->pos + ahead;
    return at < lx->source.n_bytes ? (unsigned char)lx->source.data[at] : -1;
}

static bool at_text(const sl_jinja_lexer *lx, size_t at, const char *text) {
    size_t n = strlen(text);
    return lx->source.n_bytes - at >= n && memcmp(lx->source.data + at, text, n) == 0;
}

static size_t skip_space(const sl_jinja_lexer *lx, size_t at) {
    while (at < lx->source.n_bytes) {
        size_t next = at;
        if (!sl_jinja_is_space(sl_jinja_char(lx->source, &next))) break;
        at = next;
    }
    return at;
}

// Counts lines, remembers whether the last byte was a newline.
static void advance(sl_jinja_lexer *lx, size_t to) {
    for (size_t i = lx->pos; i < to; i++) lx->line += lx->source.data[i] == '\n';
    if (to > lx->pos) lx->line_starting = lx->source.data[to - 1] == '\n';
    lx->pos = to;
}

// The end of a tag at `at` ("%}", "}}", "#}" with its sign and the space that goes with it), or 0.
static size_t tag_end(const sl_jinja_lexer *lx, size_t at, const char *end, bool variable) {
    size_t n = lx->source.n_bytes;
    if (at < n && lx->source.data[at] == '-' && at_text(lx, at + 1, end)) return skip_space(lx, at + 3);
    if (!variable && at < n && lx->source.data[at] == '+' && at_text(lx, at + 1, end)) return at + 3;
    if (!at_text(lx, at, end)) return 0;
    at += 2;
    return !variable && at < n && lx->source.data[at] == '\n' ? at + 1 : at;
}

// The text before a tag, trimmed as its sign asks for.
static sl_span trim_data(const sl_jinja_lexer *lx, size_t end, int sign, bool variable) {
    sl_span text = sl_span_make(lx->source.data + lx->pos, end - lx->pos);
    if (sign == '-') return sl_jinja_strip(text, NULL, 2);
    if (sign == '+' || variable) return text;
    size_t begin = text.n_bytes;
    while (begin > 0 && text.data[begin - 1] != '\n') begin--;
    if (begin == 0 && !lx->line_starting) return text;
    sl_span last = sl_span_make(text.data + begin, text.n_bytes - begin);
    if (sl_jinja_strip(last, NULL, 1).n_bytes == 0) text.n_bytes = begin;
    return text;
}

// ---- outside of tags ----

// {% raw %} at the "{%" at `at`: the position after it, or 0.
static size_t raw_begin(const sl_jinja_lexer *lx, size_t at, const char *word, bool ends) {
    at += 2;
    if (at < lx->source.n_bytes && (lx->source.data[at] == '-' || lx->source.data[at] == '+')) at++;
    at = skip_space(lx, at);
    if (!at_text(lx, at, word)) return 0;
    at = skip_space(lx, at + strlen(word));
    if (ends) return tag_end(lx, at, "%}", false);
    if (at_text(lx, at, "-%}")) return skip_space(lx, at + 3);
    return at_text(lx, at, "%}") ? at + 2 : 0;
}

static int sign_at(const sl_jinja_lexer *lx, size_t at) {
    int c = at < lx->source.n_bytes ? (unsigned char)lx->source.data[at] : 0;
    return c == '-' || c == '+' ? c : 0;
}

static size_t find_from(const sl_jinja_lexer *lx, size_t at, const char *text) {
    size_t i = sl_jinja_find(sl_span_make(lx->source.data + at, lx->source.n_bytes - at), sl_span_of(text));
    return i == SIZE_MAX ? SIZE_MAX : at + i;
}

static sl_status lex_raw(sl_jinja_lexer *lx, size_t body, sl_jinja_token *out) {
    advance(lx, body);
    for (size_t at = body; (at = find_from(lx, at, "{%")) != SIZE_MAX; at++) {
        size_t end = raw_begin(lx, at, "endraw", true);
        if (!end) continue;
        out->text = trim_data(lx, at, sign_at(lx, at + 2), false);
        out->type = SL_TOK_DATA;
        advance(lx, end);
        return SL_OK;
    }
    if (body == lx->source.n_bytes) return SL_OK; // jinja2 lets that pass
    return SL_FAIL(SL_BAD_INPUT, "line %u: raw has no endraw", lx->line);
}

static sl_status skip_comment(sl_jinja_lexer *lx) {
    for (size_t at = lx->pos; (at = find_from(lx, at, "#}")) != SIZE_MAX;) {
        bool sign = at > lx->pos && (lx->source.data[at - 1] == '-' || lx->source.data[at - 1] == '+');
        advance(lx, tag_end(lx, at - sign, "#}", false));
        return SL_OK;
    }
    if (lx->pos == lx->source.n_bytes) return SL_OK; // jinja2 lets that pass
    return SL_FAIL(SL_BAD_INPUT, "line %u: the comment does not end", lx->line);
}

// Text up to the next tag; if there is none of it, what the tag opens. *again: nothing to hand out
// yet.
static sl_status lex_data(sl_jinja_lexer *lx, sl_jinja_token *out, bool *again) {
    size_t n = lx->source.n_bytes, at = lx->pos;
    while (at + 1 < n &&
           !(lx->source.data[at] == '{' && strchr("{%#", lx->source.data[at + 1]) && lx->source.data[at + 1]))
        at++;
    out->type = SL_TOK_DATA;
    if (at + 1 >= n) {
        out->text = sl_span_make(lx->source.data + lx->pos, n - lx->pos);
        if (lx->pos == n) out->type = SL_TOK_EOF;
        advance(lx, n);
        return SL_OK;
    }
    int kind = lx->source.data[at + 1], sign = sign_at(lx, at + 2);
    out->text = trim_data(lx, at, sign, kind == '{');
    size_t raw = kind == '%' ? raw_begin(lx, at, "raw", false) : 0;
    if (out->text.n_bytes) { // the tag itself comes with the next call, when nothing is left to trim
        advance(lx, at);
        lx->line_starting = false;
        return SL_OK;
    }
    advance(lx, at);
    if (raw) {
        SL_TRY(lex_raw(lx, raw, out));
        *again = out->text.n_bytes == 0;
        return SL_OK;
    }
    advance(lx, at + 2 + (sign != 0));
    if (kind == '#') return *again = true, skip_comment(lx);
    out->line = lx->line;
    out->type = kind == '%' ? SL_TOK_BLOCK_BEGIN : SL_TOK_VARIABLE_BEGIN;
    lx->in_block = kind == '%';
    lx->in_variable = kind == '{';
    return SL_OK;
}

// ---- inside of tags ----

static const struct {
    char text[3];
    uint8_t type;
} operators[] = {
    // longest first
    {"//", SL_TOK_FLOORDIV}, {"**", SL_TOK_POW},   {"==", SL_TOK_EQ},      {"!=", SL_TOK_NE},      {">=", SL_TOK_GE},
    {"<=", SL_TOK_LE},       {"+", SL_TOK_ADD},    {"-", SL_TOK_SUB},      {"/", SL_TOK_DIV},      {"*", SL_TOK_MUL},
    {"%", SL_TOK_MOD},       {"~", SL_TOK_TILDE},  {"[", SL_TOK_LBRACKET}, {"]", SL_TOK_RBRACKET}, {"(", SL_TOK_LPAREN},
    {")", SL_TOK_RPAREN},    {"{", SL_TOK_LBRACE}, {"}", SL_TOK_RBRACE},   {">", SL_TOK_GT},       {"<", SL_TOK_LT},
    {"=", SL_TOK_ASSIGN},    {".", SL_TOK_DOT},    {":", SL_TOK_COLON},    {"|", SL_TOK_PIPE},     {",", SL_TOK_COMMA},
    {";", SL_TOK_SEMICOLON},
};

const char *sl_jinja_token_name(const sl_jinja_token *token) {
    static const char *const names[] = {
        "the end of the template", "text", "{%", "%}", "{{", "}}", "a name", "a string", "a number"};
    if (token->type < SL_COUNT(names)) return names[token->type];
    for (size_t i = 0; i < SL_COUNT(operators); i++)
        if (operators[i].type == token->type) return operators[i].text;
    return "?";
}

static sl_status balance(sl_jinja_lexer *lx, char c) {
    if (c == '(' || c == '[' || c == '{') {
        if (lx->n_brackets == lx->cap_brackets) {
            char *more;
            size_t cap = lx->cap_brackets ? lx->cap_brackets * 2 : 64;
            SL_TRY(sl_jinja_alloc(lx->run, &more, cap, 1));
            if (lx->n_brackets) memcpy(more, lx->brackets, lx->n_brackets);
            lx->brackets = more;
            lx->cap_brackets = cap;
        }
        lx->brackets[lx->n_brackets++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        if (lx->n_brackets == 0) return SL_FAIL(SL_BAD_INPUT, "line %u: unexpected '%c'", lx->line, c);
        char want = lx->brackets[--lx->n_brackets];
        if (want != c) return SL_FAIL(SL_BAD_INPUT, "line %u: unexpected '%c', expected '%c'", lx->line, c, want);
    }
    return SL_OK;
}

static sl_status lex_operator(sl_jinja_lexer *lx, sl_jinja_token *out) {
    for (size_t i = 0; i < SL_COUNT(operators); i++) {
        if (!at_text(lx, lx->pos, operators[i].text)) continue;
        out->type = operators[i].type;
        SL_TRY(balance(lx, operators[i].text[0]));
        advance(lx, lx->pos + strlen(operators[i].text));
        return SL_OK;
    }
    int c = peek(lx, 0);
    if (c == '"' || c == '\'') return SL_FAIL(SL_BAD_INPUT, "line %u: the string does not end", lx->line);
    return SL_FAIL(SL_BAD_INPUT, "line %u: unexpected character 0x%02x", lx->line, (unsigned)c);
}

static sl_status lex_name(sl_jinja_lexer *lx, sl_jinja_token *out) {
    size_t at = lx->pos;
    while (at < lx->source.n_bytes) {
        size_t next = at;
        if (!sl_jinja_is_name_char(sl_jinja_char(lx->source, &next), at == lx->pos)) break;
        at = next;
    }
    if (at == lx->pos) return lex_operator(lx, out);
    out->type = SL_TOK_NAME;
    out->text = sl_span_make(lx->source.data + lx->pos, at - lx->pos);
    advance(lx, at);
    return SL_OK;
}

static sl_status lex_text(sl_jinja_lexer *lx, sl_jinja_token *out) {
    size_t at = lx->pos + 1;
    while (at < lx->source.n_bytes && lx->source.data[at] != lx->source.data[lx->pos])
        at += lx->source.data[at] == '\\' ? 2 : 1;
    if (at >= lx->source.n_bytes) return lex_operator(lx, out);
    out->type = SL_TOK_TEXT;
    out->text = sl_span_make(lx->source.data + lx->pos + 1, at - lx->pos - 1);
    if (sl_jinja_unescape(lx->run, &out->value, out->text) != SL_OK)
        return sl_fail_prefix(SL_BAD_INPUT, "line %u", lx->line);
    advance(lx, at + 1);
    return SL_OK;
}

static sl_status lex_number(sl_jinja_lexer *lx, sl_jinja_token *out) {
    sl_span rest = sl_span_make(lx->source.data + lx->pos, lx->source.n_bytes - lx->pos);
    bool after_dot = lx->pos > 0 && lx->source.data[lx->pos - 1] == '.';
    size_t n;
    out->type = SL_TOK_NUMBER;
    if (sl_jinja_number(&out->value, &n, rest, !after_dot) != SL_OK)
        return sl_fail_prefix(SL_UNSUPPORTED, "line %u", lx->line);
    out->text = sl_span_make(rest.data, n);
    advance(lx, lx->pos + n);
    return SL_OK;
}

static sl_status lex_tag(sl_jinja_lexer *lx, sl_jinja_token *out) {
    size_t end = lx->n_brackets ? 0 : tag_end(lx, lx->pos, lx->in_block ? "%}" : "}}", lx->in_variable);
    if (end) {
        out->type = lx->in_block ? SL_TOK_BLOCK_END : SL_TOK_VARIABLE_END;
        lx->in_block = lx->in_variable = false;
        advance(lx, end);
        return SL_OK;
    }
    size_t next = skip_space(lx, lx->pos);
    if (next > lx->pos) {
        advance(lx, next);
        out->line = lx->line;
        return lex_tag(lx, out); // once: what follows is no space
    }
    int c = peek(lx, 0);
    if (c < 0) return out->type = SL_TOK_EOF, SL_OK;
    if (c >= '0' && c <= '9') return lex_number(lx, out);
    if (c == '"' || c == '\'') return lex_text(lx, out);
    return lex_name(lx, out);
}

sl_status sl_jinja_lex_next(sl_jinja_lexer *lx, sl_jinja_token *out) {
    for (bool again = true; again;) {
        again = false;
        *out = (sl_jinja_token){.line = lx->line};
        if (lx->in_block || lx->in_variable) return lex_tag(lx, out);
        SL_TRY(lex_data(lx, out, &again));
    }
    return SL_OK;
}
