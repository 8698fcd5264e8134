// SPDX-License-Identifier: MIT
//
// A session in a file: what sequence 0 has computed, and the conversation that it is of.
#ifndef SLUICE_SAVED_SESSION_H
#define SLUICE_SAVED_SESSION_H

#include "conversation.h"

// A file that is not there is a new session. One that cannot be used is said to be so, and is a new session too: it
// costs the time to compute the prompt. `c` gets the messages; NULL: they are not wanted.
int saved_session_load(session *s, conversation *c, const char *path);
int saved_session_store(const session *s, const conversation *c, const char *path);

#endif
