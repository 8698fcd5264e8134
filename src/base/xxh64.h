// SPDX-License-Identifier: MIT
//
// XXH64, the 64-bit hash of Yann Collet's xxHash specification: finds accidents in files, and is no defence against
// forgery.
#ifndef SL_BASE_XXH64_H
#define SL_BASE_XXH64_H

#include <stddef.h>
#include <stdint.h>

// Several pieces are hashed one after the other by giving each the hash so far as its seed.
uint64_t sl_xxh64(const void *data, size_t n_bytes, uint64_t seed);

#endif
