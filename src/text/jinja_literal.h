// SPDX-License-Identifier: MIT
//
// Literals of the template language: numbers, strings with their escapes, and the characters of
// names.
#ifndef SL_TEXT_JINJA_LITERAL_H
#define SL_TEXT_JINJA_LITERAL_H

#include "text/jinja_value.h"

bool sl_jinja_is_name_char(uint32_t cp, bool first);

// The number at the start of `s` (which begins with a digit); *n is its length.
sl_status sl_jinja_number(sl_jinja_value *out, size_t *n, sl_span s, bool may_be_float);

// The text between the quotes with Python's escapes undone.
sl_status sl_jinja_unescape(sl_jinja_run *run, sl_jinja_value *out, sl_span s);

// int(s, base) and float(s) of Python; *ok is false if `s` is no number. A base of 0 goes by the
// prefix.
sl_status sl_jinja_parse_int(sl_jinja_value *out, bool *ok, sl_span s, int base);
sl_status sl_jinja_to_float(double *out, bool *ok, sl_span s);

#endif
