// SPDX-License-Identifier: MIT
//
// Sessions in files. The conversation is the program's own part of the library's file, with "seed" and "turn" beside
// the messages.
#include "saved_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_int_t turns_of(const json_t *root) { return json_integer_value(json_object_get(root, "turn")); }

// A seed from the command line is not replaced.
static void take_draws(chat_draws *draws, const json_t *root) {
    json_int_t seed = json_integer_value(json_object_get(root, "seed")), n_turn = turns_of(root);
    if (n_turn > 0 && n_turn < INT32_MAX && seed >= 0) { // before there were any, files had none
        if (draws->seed < 0) draws->seed = seed;
        draws->n_turn = n_turn;
    }
}

// What is there must not be lost when the session is saved: a file that is none is refused, one that cannot be gone on
// from is renamed. An empty file has nothing to lose.
static int set_aside(const char *path) {
    static const char magic[] = {'s', 'l', 'u', 'i', 'c', 'e', 'K', 'V'};
    const char *reason = sluice_last_error();
    char begin[sizeof magic], kept[4096];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(begin, 1, sizeof begin, f) : 0;
    bool empty = f && n == 0 && feof(f);
    if (f) fclose(f);
    if (empty) {
        app_note("%s; the session starts anew", reason);
        return APP_OK;
    }
    if (n < sizeof magic || memcmp(begin, magic, n) != 0)
        return app_fail("%s, and --session replaces nothing else: name another file", reason);
    int i = 1;
    do snprintf(kept, sizeof kept, i > 1 ? "%s.old%d" : "%s.old", path, i);
    while (access(kept, F_OK) == 0 && ++i < 1000);
    if (i == 1000 || strlen(kept) + 1 >= sizeof kept || rename(path, kept) != 0)
        return app_fail("%s, and it cannot be renamed to %s", reason, kept);
    app_note("%s; kept as %s; the session starts anew", reason, kept);
    return APP_OK;
}

int saved_session_load(session *s, conversation *c, chat_draws *draws, const char *path) {
    char *said;
    size_t n;
    if (access(path, F_OK) != 0) return APP_OK;
    if (sluice_session_load(s->engine, 0, path, &said, &n) != SLUICE_OK) return set_aside(path);
    json_t *root = json_loadb(said, n, 0, NULL);
    int result = APP_OK;
    if (c && !conversation_take_json(c, said, n)) app_note("%s: holds no conversation", path);
    if (draws) take_draws(draws, root);
    if (!c && turns_of(root) > 1)
        result = app_fail("%s holds a chat of %d turns, which -p would replace: leave -p out, or name another file",
                          path, (int)turns_of(root));
    json_decref(root);
    sluice_free(said);
    return result;
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
