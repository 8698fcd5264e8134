// SPDX-License-Identifier: MIT
//
// What the files with builtins share: arguments by type, and the tables that make up the sets of
// names.
#ifndef SL_TEXT_JINJA_BUILTIN_H
#define SL_TEXT_JINJA_BUILTIN_H

#include "text/jinja_callable.h"

typedef struct sl_jinja_table {
    const sl_jinja_builtin *entries;
    size_t n;
} sl_jinja_table;

const sl_jinja_builtin *sl_jinja_table_find(const sl_jinja_builtin *table, size_t n, sl_span name);

// Arguments. MISSING gives `instead`; another type fails.
sl_status sl_jinja_want_int(sl_jinja_value v, int64_t instead, int64_t *out);
sl_status sl_jinja_want_text(sl_jinja_value v, sl_span *out);

extern const sl_jinja_table sl_jinja_filters_text, sl_jinja_filters_list, sl_jinja_filters_pick, sl_jinja_filters_value;
extern const sl_jinja_table sl_jinja_methods_text, sl_jinja_methods_split, sl_jinja_methods_other;

#endif
