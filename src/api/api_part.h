// SPDX-License-Identifier: MIT
//
// What the public handles hold, and the checks that all public functions share. This folder checks
// arguments and forwards; whatever needs thought lives in a lower layer.
#ifndef SL_API_API_PART_H
#define SL_API_API_PART_H

#include "base/status.h"
#include "engine/engine.h"
#include "gguf/gguf.h"
#include "model/model.h"
#include "sample/sample.h"
#include "sluice.h"
#include "text/tokenizer.h"

struct sluice_file {
    sl_gguf *gguf; // owned
};

struct sluice_model {
    sl_model *model;         // owned
    sl_tokenizer *tokenizer; // owned; NULL if the file has no vocabulary
    char arch[64];
};

struct sluice_engine {
    sl_engine *engine; // owned
};

struct sluice_sampler {
    sl_sampler *sampler; // owned
};

// Refuses NULL, by the parameter's name.
#define API_NEED(arg)                                                                       \
    do {                                                                                    \
        if (!(arg)) return api_fail(SL_FAIL(SL_BAD_ARG, "%s: %s is NULL", __func__, #arg)); \
    } while (0)

static inline sluice_status api_fail(sl_status status) { return (sluice_status)status; }

// Copies an options struct over its defaults. A caller that was built against an older header hands
// in a shorter one.
sl_status sl_api_options(void *out, const void *given, size_t n_bytes, const char *name);

// Options by name -> options by kind, with defaults filled in. Reads SLUICE_CPU.
sl_status sl_api_engine_options(sl_engine_options *out, const sluice_model *model, const sluice_engine_options *given);

#endif
