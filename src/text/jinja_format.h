// SPDX-License-Identifier: MIT
//
// How one value is laid out in a field.
#ifndef SL_TEXT_JINJA_FORMAT_H
#define SL_TEXT_JINJA_FORMAT_H

#include "text/jinja_value.h"

typedef struct sl_jinja_field {
    sl_span fill; // one character
    char align;   // < > ^ =, 0 where the type decides
    char sign;    // - + or space, 0 for -
    char group;   // , or _ between thousands, 0 for nothing
    char type;    // 0 where the value decides
    bool alternate;
    int width, precision; // -1: not given
} sl_jinja_field;

// str(v), repr(v) or ascii(v), by 's', 'r', 'a'.
sl_status sl_jinja_convert(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value v, char how);

// v as a % field wants it.
sl_status sl_jinja_percent_value(sl_jinja_run *run, sl_buf *buf, sl_jinja_value v, const sl_jinja_field *f,
                                 bool markup);

#endif
