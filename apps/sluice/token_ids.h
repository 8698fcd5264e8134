// SPDX-License-Identifier: MIT
//
// Token ids in JSON: [1, 2, 3], or an object with such an array as "ids".
#ifndef SLUICE_TOKEN_IDS_H
#define SLUICE_TOKEN_IDS_H

#include "files.h"

// Each is in 0 .. n_vocab-1. `name` is for the reason of a failure. *ids is the caller's to free().
int token_ids_parse(int32_t **ids, size_t *n, const text *json, const char *name, int32_t n_vocab);
// The same of a file, which must hold one id at least; *ids is to be freed also after a failure.
int token_ids_read(int32_t **ids, size_t *n, const char *path, int32_t n_vocab);

#endif
