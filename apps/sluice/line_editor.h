// SPDX-License-Identifier: MIT
//
// Lines from a terminal, by libedit: editing, history kept from one session to the next, several
// lines as one message.
#ifndef SLUICE_LINE_EDITOR_H
#define SLUICE_LINE_EDITOR_H

#include "files.h"

typedef struct line_editor line_editor;

typedef enum line_result { LINE_GIVEN, LINE_DISCARDED, LINE_END, LINE_FAILED } line_result;

int line_editor_open(line_editor **out);
void line_editor_close(line_editor *e); // NULL is fine

// One message without its last newline. A line that ends in a backslash goes on in the next; so
// does all between two lines """. LINE_DISCARDED after Ctrl-C, LINE_END after Ctrl-D.
line_result line_editor_read(line_editor *e, text *message);

#endif
