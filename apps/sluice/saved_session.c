// SPDX-License-Identifier: MIT
//
// Sessions in files. The conversation is the program's own part of the library's file.
#include "saved_session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int saved_session_load(session *s, conversation *c, const char *path) {
    char *said;
    size_t n;
    if (access(path, F_OK) != 0) return APP_OK;
    if (sluice_session_load(s->engine, 0, path, &said, &n) != SLUICE_OK) {
        app_note("%s; the session starts anew", sluice_last_error());
        return APP_OK;
    }
    if (c && !conversation_take_json(c, said, n)) app_note("%s: holds no conversation", path);
    sluice_free(said);
    return APP_OK;
}

int saved_session_store(const session *s, const conversation *c, const char *path) {
    char *said = conversation_to_json(c);
    if (!said) return app_fail("out of memory");
    sluice_status status = sluice_session_save(s->engine, 0, path, said, strlen(said));
    free(said);
    return status == SLUICE_OK ? APP_OK : app_fail_library(status);
}
