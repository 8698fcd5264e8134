// SPDX-License-Identifier: MIT
//
// Sessions: forwarded.
#include "api/api_part.h"

sluice_status sluice_session_save(const sluice_engine *engine, int32_t seq, const char *path, const void *app,
                                  size_t n_app_bytes) {
    API_NEED(engine);
    API_NEED(path);
    if (n_app_bytes) API_NEED(app);
    return api_fail(sl_engine_session_save(engine->engine, seq, path, app, n_app_bytes));
}

sluice_status sluice_session_load(sluice_engine *engine, int32_t seq, const char *path, char **app,
                                  size_t *n_app_bytes) {
    API_NEED(app);
    API_NEED(n_app_bytes);
    *app = NULL, *n_app_bytes = 0;
    API_NEED(engine);
    API_NEED(path);
    return api_fail(sl_engine_session_load(engine->engine, seq, path, app, n_app_bytes));
}
