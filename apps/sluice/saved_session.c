// SPDX-License-Identifier: MIT
//
// Sessions in files. The conversation is the program's own part of the library's file, with "seed" and "turn" beside
// the messages.
#include "saved_session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A seed that was asked for now is not replaced.
static void take_draws(chat_draws *draws, const char *said, size_t n) {
    json_t *root = json_loadb(said, n, 0, NULL);
    json_int_t seed = json_integer_value(json_object_get(root, "seed"));
    json_int_t n_turn = json_integer_value(json_object_get(root, "turn"));
    if (n_turn > 0 && n_turn < INT32_MAX && seed >= 0) { // before there were any, files had none
        if (draws->seed < 0) draws->seed = seed;
        draws->n_turn = n_turn;
    }
    json_decref(root);
}

int saved_session_load(session *s, conversation *c, chat_draws *draws, const char *path) {
    char *said;
    size_t n;
    if (access(path, F_OK) != 0) return APP_OK;
    if (sluice_session_load(s->engine, 0, path, &said, &n) != SLUICE_OK) {
        app_note("%s; the session starts anew", sluice_last_error());
        return APP_OK;
    }
    if (c && !conversation_take_json(c, said, n)) app_note("%s: holds no conversation", path);
    if (draws) take_draws(draws, said, n);
    sluice_free(said);
    return APP_OK;
}

int saved_session_store(const session *s, const conversation *c, chat_draws draws, const char *path) {
    json_t *root = json_pack("{s:O, s:I, s:I}", "messages", c->messages, "seed", (json_int_t)draws.seed, "turn",
                             (json_int_t)draws.n_turn);
    char *said = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (!said) return app_fail("out of memory");
    sluice_status status = sluice_session_save(s->engine, 0, path, said, strlen(said));
    free(said);
    return status == SLUICE_OK ? APP_OK : app_fail_library(status);
}
