// SPDX-License-Identifier: MIT
//
// A session in a file: what sequence 0 has computed, the conversation that it is of, and where its random numbers
// stand.
#ifndef SLUICE_SAVED_SESSION_H
#define SLUICE_SAVED_SESSION_H

#include "conversation.h"

// Answer number n_turn of a chat draws by seed + n_turn; what penalties look back on are the tokens of its prompt.
typedef struct chat_draws {
    int64_t seed; // -1: not chosen yet
    int64_t n_turn;
} chat_draws;

// A file that is not there is a new session. A session that cannot be used is said to be so, kept as FILE.old and begun
// anew: it costs the time to compute the prompt. A file that is no session is refused. `c` gets the messages, and
// `draws` goes on; NULL: they are not wanted, and then a chat of several turns is refused, as it would be replaced.
int saved_session_load(session *s, conversation *c, chat_draws *draws, const char *path);
int saved_session_store(const session *s, const conversation *c, chat_draws draws, const char *path);

#endif
