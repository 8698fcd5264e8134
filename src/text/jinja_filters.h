// SPDX-License-Identifier: MIT
//
// What the files with filters share.
#ifndef SL_TEXT_JINJA_FILTERS_H
#define SL_TEXT_JINJA_FILTERS_H

#include "text/jinja_callable.h"

// A one-shot sequence of what was made before `status`; if that is a failure, it comes after the
// last item.
sl_status sl_jinja_stream_close(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_vec *vec, sl_status status);

#endif
