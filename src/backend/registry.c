// SPDX-License-Identifier: MIT
//
// The backends that are built in, the fastest first.
#include <string.h>

#include "backend/backend.h"

static const sl_backend *const backends[] = {
#ifdef SL_CUDA
    &sl_backend_cuda,
#endif
    &sl_backend_cpu,
    &sl_backend_ref,
};

const sl_backend *sl_backend_at(size_t i) { return i < SL_COUNT(backends) ? backends[i] : NULL; }

const sl_backend *sl_backend_find(const char *name) {
    for (size_t i = 0; i < SL_COUNT(backends); i++)
        if (strcmp(backends[i]->name, name) == 0) return backends[i];
    return NULL;
}
