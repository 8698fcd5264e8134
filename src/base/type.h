// SPDX-License-Identifier: MIT
//
// The element types of GGUF: id, name, block length and bytes (facts of the format). Here, at the ground, because the
// file reader, the codecs and every backend need the same table.
#ifndef SL_BASE_TYPE_H
#define SL_BASE_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

typedef enum sl_type {
    SL_TYPE_F32 = 0,
    SL_TYPE_F16 = 1,
    SL_TYPE_Q4_0 = 2,
    SL_TYPE_Q4_1 = 3,
    SL_TYPE_Q5_0 = 6,
    SL_TYPE_Q5_1 = 7,
    SL_TYPE_Q8_0 = 8,
    SL_TYPE_Q2_K = 10,
    SL_TYPE_Q3_K = 11,
    SL_TYPE_Q4_K = 12,
    SL_TYPE_Q5_K = 13,
    SL_TYPE_Q6_K = 14,
    SL_TYPE_IQ4_NL = 20,
    SL_TYPE_IQ4_XS = 23,
    SL_TYPE_BF16 = 30,
    SL_TYPE_MXFP4 = 39,
    SL_TYPE_ID_COUNT = 64 // ids in files are below this; most of them are unused
} sl_type;

typedef struct sl_type_info {
    const char *name;   // NULL: no such type, or one that was removed from the format
    uint16_t blk_len;   // elements of a block
    uint16_t blk_bytes; // bytes of a block
    bool computable;    // we can decode it; the others can only be shown by `inspect`
} sl_type_info;

// NULL if the format has no type of this id.
const sl_type_info *sl_type_find(uint32_t id);
const char *sl_type_name(sl_type type);

// Bytes of a row of n_col elements; n_col must be a multiple of the block length.
static inline uint64_t sl_type_row_bytes(const sl_type_info *info, uint64_t n_col) {
    return n_col / info->blk_len * info->blk_bytes;
}

// By name, case-insensitive ("q4_k"); false if unknown.
bool sl_type_parse(sl_type *out, const char *name);

#endif
