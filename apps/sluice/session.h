// SPDX-License-Identifier: MIT
//
// A model and an engine as the command line asks for them: the options that several commands share,
// and opening by them.
#ifndef SLUICE_SESSION_H
#define SLUICE_SESSION_H

#include "options.h"

typedef struct session_options {
    const char *pre, *backend, *kv, *kv_k, *kv_v, *repack;
    int32_t n_ctx, n_thread, n_thread_prefill, n_chunk;
    bool check, wire, kv_plain, ctx_window;
    bool prefix_cache; // not an option: what a command wants
    const char *prefix_path;
    float prefix_gib; // 0: the library's choice
} session_options;

extern const option session_model_options[2]; // groups for a command's table; fields of session_options
extern const option session_engine_options[12];
extern const option session_prefix_options[2];

typedef struct session {
    sluice_model *model;
    sluice_engine *engine; // NULL until session_open_engine
    sluice_model_info model_info;
    sluice_engine_info engine_info;
    bool ctx_window; // what does not fit into the context may go on in it
    double load_ms;
    bool prefix_failed; // to be kept, which was said
} session;

typedef enum session_need { SESSION_VOCAB, SESSION_HEADER, SESSION_WEIGHTS } session_need;

// All return APP_OK or have printed what is wrong.
int session_open_model(session *s, const char *path, const session_options *options, session_need need);
int session_open_engine(session *s, const session_options *options, int32_t n_logit_max);
void session_keep_prefixes(session *s); // between answers; a failure is said once and harms nothing
void session_close(session *s);

// Can a sequence have n positions?
static inline bool session_fits(const session *s, size_t n) {
    return s->ctx_window || n <= (size_t)s->engine_info.n_ctx;
}

sluice_engine_options session_get_engine_options(const session_options *options);

// Token ids of any text; *ids is the caller's to free().
int session_encode(const session *s, int32_t **ids, size_t *n, const char *bytes, size_t n_bytes, unsigned flags);

#endif
