// SPDX-License-Identifier: MIT
//
// Private to gguf/: what one file holds, and the few facts that reader and writer share.
#ifndef SL_GGUF_GGUF_PART_H
#define SL_GGUF_GGUF_PART_H

#include "gguf/gguf.h"
#include "gguf/name_index.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "values are read in place; a big-endian processor would need a swap at each read"
#endif

enum {
    SL_GGUF_DEFAULT_ALIGNMENT = 32,
    SL_GGUF_MIN_ALIGNMENT = 8,     // of the specification
    SL_GGUF_MAX_ALIGNMENT = 65536, // ours: more is an attack or an accident
    SL_GGUF_MAX_NAME_BYTES = 64,   // of a tensor, from the specification
    SL_GGUF_MAX_KEY_BYTES = 65535,
};

// The content of one file; of a split set, once merged, that of all.
typedef struct sl_gguf_part {
    uint32_t version;
    uint64_t alignment;
    sl_gguf_kv *kvs; // owned
    size_t n_kv;
    sl_gguf_tensor *tensors; // owned, in file order
    size_t n_tensors;
    sl_name_index kv_index, tensor_index;
} sl_gguf_part; // zero-initialised is empty

sl_status sl_gguf_part_parse(sl_gguf_part *out, const uint8_t *data, size_t n_bytes, bool allow_no_data);
void sl_gguf_part_deinit(sl_gguf_part *part);
const sl_gguf_kv *sl_gguf_part_find(const sl_gguf_part *part, const char *key);
// Builds tensor_index anew; duplicates are refused.
sl_status sl_gguf_part_index_tensors(sl_gguf_part *part);

// Bytes of a value of this kind; 0 for strings and arrays.
size_t sl_gguf_kind_bytes(sl_gguf_kind kind);

// Checks type and shape (1..4 dims, none 0, whole blocks, no overflow) and gives the tensor's size.
sl_status sl_gguf_shape_bytes(uint64_t *out, uint32_t type_id, const uint64_t *dim, uint32_t n_dims);
sl_status sl_gguf_check_alignment(uint64_t alignment);

// A name from a file, fit to be shown: cut, and with `?` for what is not printable ASCII.
typedef struct sl_gguf_shown {
    char text[68];
} sl_gguf_shown;
sl_gguf_shown sl_gguf_show(sl_span name);

#endif
