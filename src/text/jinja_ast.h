// SPDX-License-Identifier: MIT
//
// A parsed template: its nodes, and the frames that say where each name lives. Immutable once made;
// owned by the template's arena.
#ifndef SL_TEXT_JINJA_AST_H
#define SL_TEXT_JINJA_AST_H

#include "text/jinja_value.h"

typedef enum sl_jinja_kind {
    // expressions
    SL_NODE_CONST, // value
    SL_NODE_NAME,
    SL_NODE_NSREF,   // target only: name of the namespace, value is the attribute
    SL_NODE_TUPLE,   // list
    SL_NODE_LIST,    // list
    SL_NODE_DICT,    // list: key, value, key, value ...
    SL_NODE_ATTR,    // a . name
    SL_NODE_ITEM,    // a [b]
    SL_NODE_SLICE,   // a : b : c, each may be NULL; only as b of an ITEM
    SL_NODE_CALL,    // a (list, kwargs, *b, **c)
    SL_NODE_FILTER,  // a | name (...); a is NULL at the start of a filter block
    SL_NODE_TEST,    // a is name (...)
    SL_NODE_KEYWORD, // name = a
    SL_NODE_NOT,
    SL_NODE_NEG,
    SL_NODE_POS,
    SL_NODE_BINARY, // a op b
    SL_NODE_AND,
    SL_NODE_OR,
    SL_NODE_CONCAT,  // list
    SL_NODE_COMPARE, // a, then list of OPERANDs
    SL_NODE_OPERAND, // op a
    SL_NODE_COND,    // b if a else c
    // statements
    SL_NODE_OUTPUT,       // a
    SL_NODE_FOR,          // for a in b if c: body, otherwise; flag: recursive
    SL_NODE_IF,           // if a: body; list of IFs for elif; otherwise
    SL_NODE_SET,          // a = b
    SL_NODE_SET_BLOCK,    // a = body, through filter b if there is one
    SL_NODE_MACRO,        // name, list of PARAMs, body
    SL_NODE_PARAM,        // name, a is the default or NULL
    SL_NODE_CALL_BLOCK,   // a is the call (NULL: a generation block), list of PARAMs, body
    SL_NODE_FILTER_BLOCK, // a, body
    SL_NODE_WITH,         // list: target, value, target, value ...; body
    SL_NODE_SCOPE,        // body with its own names
    SL_NODE_BLOCK,        // name, body
    SL_NODE_BREAK,
    SL_NODE_CONTINUE,
    SL_NODE_NO_LOADER, // include and the like: fails if it is reached
} sl_jinja_kind;

typedef enum sl_jinja_op {
    SL_OP_ADD,
    SL_OP_SUB,
    SL_OP_MUL,
    SL_OP_DIV,
    SL_OP_FLOORDIV,
    SL_OP_MOD,
    SL_OP_POW,
    SL_OP_EQ,
    SL_OP_NE,
    SL_OP_LT,
    SL_OP_LE,
    SL_OP_GT,
    SL_OP_GE,
    SL_OP_IN,
    SL_OP_NOT_IN,
} sl_jinja_op;

typedef struct sl_jinja_node {
    uint8_t kind, op;
    bool flag;
    uint16_t height; // of the expression below: bounded, so that whoever walks it may recurse
    uint32_t line;
    uint32_t n_list;
    uint32_t hops, slot; // NAME, NSREF, MACRO: how many scopes up, and where there
    const sl_jinja_text *name;
    sl_jinja_value value;
    struct sl_jinja_node *a, *b, *c;
    struct sl_jinja_node *list, *kwargs; // chained by next
    struct sl_jinja_node *body, *otherwise;
    struct sl_jinja_node *next;
    struct sl_jinja_frame *frame;                   // of the body
    struct sl_jinja_frame *else_frame, *test_frame; // FOR
    const struct sl_jinja_builtin *builtin;         // FILTER, TEST; NULL: unknown, fails if it is reached
    bool wants_caller, wants_kwargs, wants_varargs; // MACRO, CALL_BLOCK
} sl_jinja_node;

// How a name gets its value when its scope is entered.
typedef enum sl_jinja_load { SL_LOAD_PARAM, SL_LOAD_RESOLVE, SL_LOAD_ALIAS, SL_LOAD_MISSING } sl_jinja_load;

typedef struct sl_jinja_slot {
    const sl_jinja_text *name;
    uint8_t load;
    uint32_t hops, slot; // ALIAS: where from
    struct sl_jinja_slot *next;
} sl_jinja_slot;

typedef struct sl_jinja_frame {
    const struct sl_jinja_frame *parent;
    sl_jinja_slot *first, *last; // owned by the arena, slot numbers in order
    uint32_t n_slots;
} sl_jinja_frame;

typedef struct sl_jinja_ast {
    sl_jinja_run *memory; // of the literals; only its arena is used after parsing
    sl_jinja_node *body, *blocks;
    sl_jinja_frame *frame;
} sl_jinja_ast;

sl_status sl_jinja_parse(sl_jinja_ast *ast, sl_span source);
sl_status sl_jinja_resolve(sl_jinja_ast *ast); // frames, slots, filters and tests

#endif
