// SPDX-License-Identifier: MIT
//
// Texts as Python sees them: sequences of code points, with Python's ideas of space, case and
// printable characters.
#ifndef SL_TEXT_JINJA_TEXT_H
#define SL_TEXT_JINJA_TEXT_H

#include "text/jinja_value.h"

// Byte offset of the first `needle` in `hay`, SIZE_MAX if there is none; in linear time. The last one
// for rfind, which may take longer and is charged for it.
size_t sl_jinja_find(sl_span hay, sl_span needle);
sl_status sl_jinja_rfind(sl_jinja_run *run, size_t *out, sl_span hay, sl_span needle);

// Byte offset of character `at`, which is at most the length.
size_t sl_jinja_offset(const sl_jinja_text *text, size_t at);
uint32_t sl_jinja_char(sl_span s, size_t *at); // the one at byte *at, which moves on

bool sl_jinja_is_space(uint32_t cp);
bool sl_jinja_is_line_end(uint32_t cp); // for splitlines
bool sl_jinja_is_printable(uint32_t cp);
bool sl_jinja_is_word(uint32_t cp); // \w
bool sl_jinja_is_upper(uint32_t cp);
bool sl_jinja_is_lower(uint32_t cp);
bool sl_jinja_is_cased(uint32_t cp);
bool sl_jinja_is_alpha(uint32_t cp);
bool sl_jinja_is_decimal(uint32_t cp); // isdecimal
bool sl_jinja_is_digit(uint32_t cp);   // isdigit: decimal, or superscript and the like
bool sl_jinja_is_numeric(uint32_t cp);

// Strips characters of `set` (NULL: space) off the sides; `sides` has 1 for left, 2 for right.
sl_span sl_jinja_strip(sl_span s, const sl_span *set, int sides);

typedef enum sl_jinja_case {
    SL_JINJA_UPPER,
    SL_JINJA_LOWER,
    SL_JINJA_TITLE,
    SL_JINJA_SWAP,
    SL_JINJA_FOLD
} sl_jinja_case;
// Appends s[at..] of one character mapped; *at moves on. Needs the whole text for the final sigma.
void sl_jinja_map_char(sl_buf *buf, sl_span s, size_t *at, sl_jinja_case to);
void sl_jinja_map_case(sl_buf *buf, sl_span s, sl_jinja_case to);

// The same bytes with &, <, >, ' and " as entities.
void sl_jinja_escape(sl_buf *buf, sl_span s);

// Every `old` replaced, at most `count` (negative: all). Bounded by the run.
sl_status sl_jinja_replace(sl_jinja_run *run, sl_jinja_value *out, sl_span s, sl_span old, sl_span new_text,
                           int64_t count);

#endif
