// SPDX-License-Identifier: MIT
//
// The values of the template language: those of Python, as far as a template can meet them, and the
// state of one rendering (`sl_jinja_run`) that owns their memory.
//
// Invariants: a value is 16 bytes and is copied freely; what it points to lives in the run's arena
// (or, for literals, in the template's) and never changes, apart from namespaces, cyclers, joiners,
// loops and one-shot iterators. So a text may share the bytes of another one. Texts are valid UTF-8
// without surrogates. Every allocation is charged against the run's memory and step bounds before
// it is made.
#ifndef SL_TEXT_JINJA_VALUE_H
#define SL_TEXT_JINJA_VALUE_H

#include "base/arena.h"
#include "base/buf.h"

enum {
    SL_JINJA_MAX_NESTING = 200, // of expressions, statements, JSON and printed values; Python stops at 200 too
    SL_JINJA_MAX_DEPTH = 1200,  // of the evaluator's own calls, over all macros
    SL_JINJA_MAX_MACROS = 200,  // macros in progress
};

typedef enum sl_jinja_type {
    SL_JINJA_MISSING = 0, // no value at all: an argument not given, a name not set. Never seen by a template
    SL_JINJA_UNDEFINED,   // as.text is the name, aux says of what (SL_JINJA_OF_*)
    SL_JINJA_NONE,
    SL_JINJA_BOOL,
    SL_JINJA_INT,
    SL_JINJA_FLOAT,
    SL_JINJA_TEXT, // flag SL_JINJA_MARKUP
    SL_JINJA_LIST,
    SL_JINJA_TUPLE, // flag SL_JINJA_GROUP: has .grouper and .list
    SL_JINJA_DICT,
    SL_JINJA_RANGE,
    SL_JINJA_VIEW,     // as.dict; aux is an sl_jinja_view
    SL_JINJA_ITERATOR, // one-shot, as generators are
    SL_JINJA_NAMESPACE,
    SL_JINJA_MACRO,
    SL_JINJA_LOOP,
    SL_JINJA_CYCLER,
    SL_JINJA_JOINER,
    SL_JINJA_FUNCTION, // as.builtin
    SL_JINJA_METHOD,   // as.method: a builtin bound to a value
    SL_JINJA_TYPE_COUNT
} sl_jinja_type;

enum { SL_JINJA_MARKUP = 1, SL_JINJA_GROUP = 2 };
enum { SL_JINJA_OF_CONTEXT = 0, SL_JINJA_OF_HINT = 255 }; // else 1 + the type of the owner
typedef enum sl_jinja_view { SL_JINJA_KEYS, SL_JINJA_VALUES, SL_JINJA_ITEMS } sl_jinja_view;

typedef struct sl_jinja_text {
    const char *data; // borrowed from an arena; not NUL-terminated
    size_t n_bytes, n_chars;
} sl_jinja_text;

typedef struct sl_jinja_value {
    uint8_t type, flags;
    uint32_t aux;
    union {
        bool b;
        int64_t i;
        double f;
        const sl_jinja_text *text;
        const struct sl_jinja_list *list; // LIST and TUPLE
        struct sl_jinja_dict *dict;       // DICT, VIEW, NAMESPACE
        const struct sl_jinja_range *range;
        struct sl_jinja_stream *stream; // ITERATOR
        const struct sl_jinja_macro *macro;
        struct sl_jinja_loop *loop;
        struct sl_jinja_cycler *cycler; // CYCLER, JOINER
        const struct sl_jinja_builtin *builtin;
        const struct sl_jinja_method *method;
    } as;
} sl_jinja_value;

typedef struct sl_jinja_list {
    sl_jinja_value *items;
    size_t n;
} sl_jinja_list;

typedef struct sl_jinja_entry {
    sl_jinja_value key, value;
    uint64_t hash;
} sl_jinja_entry;

typedef struct sl_jinja_dict { // in order of insertion
    sl_jinja_entry *entries;
    uint32_t *index; // open addressing over entry numbers + 1; NULL while small
    size_t n, cap, n_index;
} sl_jinja_dict;

typedef struct sl_jinja_range {
    int64_t start, stop, step;
    size_t n;
} sl_jinja_range;

typedef struct sl_jinja_stream { // values made beforehand, handed out once, then perhaps the
                                 // failure that ended them
    sl_jinja_value *items;
    size_t n, pos;
    sl_status status;
    const char *reason;
} sl_jinja_stream;

typedef struct sl_jinja_cycler {
    const sl_jinja_value *items; // JOINER: one, the separator
    size_t n, pos;
} sl_jinja_cycler;

typedef struct sl_jinja_args {
    const sl_jinja_value *pos;
    size_t n_pos;
    const sl_jinja_dict *kw; // never NULL
} sl_jinja_args;

typedef struct sl_jinja_run {
    sl_arena arena; // owned
    sl_buf out;     // owned; a capture is its tail
    sl_jinja_dict context;
    const struct sl_jinja_scope *root; // names set at the top level, for blocks
    uint64_t n_steps, max_steps;
    size_t max_arena_bytes;
    unsigned depth, macro_depth;
    uint32_t line;             // of the last node that was looked at
    int flow;                  // sl_jinja_flow
    bool raised;               // raise_exception was called: its message stands alone
    int64_t now_s;             // local time
    sl_jinja_value block_text; // what the filter of a filter block is applied to
    char *tail;                // the text built last, and the room after it: appending to it copies nothing
    size_t tail_used, tail_cap;
} sl_jinja_run;

// ---- memory and bounds (jinja_value.c) ----
sl_status sl_jinja_alloc(sl_jinja_run *run, void *out, size_t n, size_t elem_bytes);
sl_status sl_jinja_step(sl_jinja_run *run, uint64_t n); // charges n steps
sl_status sl_jinja_deeper(sl_jinja_run *run);           // run->depth + 1, or a failure; the caller takes it back

// ---- making values ----
static inline sl_jinja_value sl_jinja_none(void) { return (sl_jinja_value){.type = SL_JINJA_NONE}; }
static inline sl_jinja_value sl_jinja_bool(bool b) { return (sl_jinja_value){.type = SL_JINJA_BOOL, .as.b = b}; }
static inline sl_jinja_value sl_jinja_int(int64_t i) { return (sl_jinja_value){.type = SL_JINJA_INT, .as.i = i}; }
static inline sl_jinja_value sl_jinja_float(double f) { return (sl_jinja_value){.type = SL_JINJA_FLOAT, .as.f = f}; }
static inline sl_jinja_value sl_jinja_of_text(const sl_jinja_text *text) {
    return (sl_jinja_value){.type = SL_JINJA_TEXT, .as.text = text};
}
static inline bool sl_jinja_is_text(sl_jinja_value v) { return v.type == SL_JINJA_TEXT; }
static inline bool sl_jinja_is_int(sl_jinja_value v) { // a bool is an int
    return v.type == SL_JINJA_INT || v.type == SL_JINJA_BOOL;
}
static inline int64_t sl_jinja_as_int(sl_jinja_value v) { return v.type == SL_JINJA_BOOL ? v.as.b : v.as.i; }
static inline bool sl_jinja_is_number(sl_jinja_value v) { return sl_jinja_is_int(v) || v.type == SL_JINJA_FLOAT; }
static inline double sl_jinja_as_float(sl_jinja_value v) {
    return v.type == SL_JINJA_FLOAT ? v.as.f : (double)sl_jinja_as_int(v);
}
static inline sl_span sl_jinja_span(sl_jinja_value v) { return sl_span_make(v.as.text->data, v.as.text->n_bytes); }

extern const sl_jinja_dict sl_jinja_no_kw;

// A text over bytes that live long enough (shared), and one over a copy of them.
sl_status sl_jinja_text_share(sl_jinja_run *run, sl_jinja_value *out, const char *data, size_t n);
sl_status sl_jinja_text_copy(sl_jinja_run *run, sl_jinja_value *out, const char *data, size_t n);
sl_status sl_jinja_text_join(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_text a,
                             sl_jinja_text b); // a + b
sl_jinja_text sl_jinja_text_of(sl_span s);
size_t sl_jinja_count_chars(const char *data, size_t n);

sl_status sl_jinja_list_make(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_type type, sl_jinja_value **items,
                             size_t n); // items are to be filled in
sl_status sl_jinja_pair(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value a, sl_jinja_value b);
sl_status sl_jinja_dict_make(sl_jinja_run *run, sl_jinja_value *out);
sl_status sl_jinja_stream_make(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value *items, size_t n);
sl_jinja_value sl_jinja_undefined(const sl_jinja_text *name, unsigned of);
sl_status sl_jinja_undefined_hint(sl_jinja_run *run, sl_jinja_value *out, const char *hint);
sl_status sl_jinja_fail_undefined(sl_jinja_value v); // fails with what an undefined value has to say

// A list that grows; items move when it does.
typedef struct sl_jinja_vec {
    sl_jinja_value *items;
    size_t n, cap;
} sl_jinja_vec;
sl_status sl_jinja_push(sl_jinja_run *run, sl_jinja_vec *vec, sl_jinja_value v);
static inline sl_jinja_value *sl_jinja_list_of(sl_jinja_vec *vec) { return vec->items; }

// ---- asking values ----
const char *sl_jinja_type_name(sl_jinja_value v); // Python's word for it
bool sl_jinja_truth(sl_jinja_value v);
bool sl_jinja_same(sl_jinja_value a, sl_jinja_value b); // Python's `is`
sl_status sl_jinja_equal(sl_jinja_run *run, bool *out, sl_jinja_value a, sl_jinja_value b);
sl_status sl_jinja_compare(sl_jinja_run *run, int *out, sl_jinja_value a,
                           sl_jinja_value b);                                // 2: NaN
sl_status sl_jinja_hash(sl_jinja_run *run, uint64_t *out, sl_jinja_value v); // fails if unhashable
sl_status sl_jinja_len(size_t *out, sl_jinja_value v);                       // fails if it has none
bool sl_jinja_sized(sl_jinja_value v);

// ---- dictionaries (jinja_dict.c) ----
sl_status sl_jinja_dict_set(sl_jinja_run *run, sl_jinja_dict *dict, sl_jinja_value key, sl_jinja_value v);
// *out points to the value, or is NULL.
sl_status sl_jinja_dict_find(sl_jinja_run *run, const sl_jinja_value **out, const sl_jinja_dict *dict,
                             sl_jinja_value key);
const sl_jinja_value *sl_jinja_dict_text(const sl_jinja_dict *dict, sl_span key); // or NULL
sl_status sl_jinja_dict_update(sl_jinja_run *run, sl_jinja_dict *dict,
                               sl_jinja_value from); // dict(...)

// ---- going through values (jinja_iter.c) ----
typedef struct sl_jinja_iter {
    sl_jinja_value source;
    size_t pos;
} sl_jinja_iter;
bool sl_jinja_iterable(sl_jinja_value v);
sl_status sl_jinja_iter_init(sl_jinja_iter *it, sl_jinja_value v);
sl_status sl_jinja_iter_next(sl_jinja_run *run, sl_jinja_iter *it, sl_jinja_value *out, bool *done);
sl_status sl_jinja_collect(sl_jinja_run *run, sl_jinja_vec *out, sl_jinja_value v); // list(v)
sl_status sl_jinja_contains(sl_jinja_run *run, bool *out, sl_jinja_value in, sl_jinja_value item);
sl_status sl_jinja_sort(sl_jinja_run *run, sl_jinja_value *items, const sl_jinja_value *keys, size_t n,
                        bool reverse); // stable; by keys (parallel to items)

// ---- printing (jinja_print.c) ----
sl_status sl_jinja_str(sl_jinja_run *run, sl_jinja_value *out,
                       sl_jinja_value v); // str(v): never markup
sl_status sl_jinja_repr_to(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v, unsigned depth);
sl_status sl_jinja_str_to(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v);
void sl_jinja_float_repr(char out[40], double f);
sl_status sl_jinja_parse_float(double *out, const char *data, size_t n,
                               bool *ok); // plain decimal, no spaces
// A scratch buffer bounded by the run's memory; `take` makes a text of it and frees it whatever
// happened.
sl_buf sl_jinja_scratch(const sl_jinja_run *run);
sl_status sl_jinja_take(sl_jinja_run *run, sl_jinja_value *out, sl_buf *buf, sl_status status);

// ---- JSON (jinja_json.c) ----
sl_status sl_jinja_json_parse(sl_jinja_run *run, sl_jinja_value *out, sl_span json);
sl_status sl_jinja_json_dump(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value v, const sl_jinja_value opt[4]);

#endif
