// SPDX-License-Identifier: MIT
//
// GGUF files (v2, v3, little-endian): bytes -> metadata and tensor directory, in place.
//
// The reader trusts nothing: each size goes through checked arithmetic, each range lies inside the
// file, and memory taken is proportional to what the file really holds. It is tolerant where the
// format is: order and gaps of tensors, unknown keys of every type. It must not know what a key
// means, except general.alignment and split.*.
#ifndef SL_GGUF_GGUF_H
#define SL_GGUF_GGUF_H

#include "base/span.h"
#include "base/status.h"
#include "base/type.h"

// clang-format off
typedef enum sl_gguf_kind {
    SL_GGUF_U8 = 0, SL_GGUF_I8, SL_GGUF_U16, SL_GGUF_I16, SL_GGUF_U32, SL_GGUF_I32, SL_GGUF_F32,
    SL_GGUF_BOOL, SL_GGUF_STRING, SL_GGUF_ARRAY, SL_GGUF_U64, SL_GGUF_I64, SL_GGUF_F64,
    SL_GGUF_KIND_COUNT
} sl_gguf_kind;
// clang-format on
const char *sl_gguf_kind_name(sl_gguf_kind kind); // "u8", "string", ...; "unknown" for other values

typedef struct sl_gguf_kv {
    sl_span key;
    sl_gguf_kind kind;      // SL_GGUF_ARRAY: see elem_kind
    sl_gguf_kind elem_kind; // of an array; else equal to kind
    uint64_t n;             // elements of an array; else 1
    const uint8_t *data;    // borrowed: its little-endian bytes; a string begins with its length
    size_t n_bytes;         // of data
} sl_gguf_kv;

enum { SL_GGUF_MAX_DIMS = 4 };

typedef struct sl_gguf_tensor {
    sl_span name;
    uint32_t type_id; // sl_type_find(type_id) is never NULL
    uint32_t n_dims;  // 1..4
    // fastest first (dim[0] = row length); unused ones are 1; none is 0
    uint64_t dim[SL_GGUF_MAX_DIMS];
    const uint8_t *data; // borrowed, in the mapping; NULL in a header-only file (see allow_no_data)
    uint64_t n_bytes;
    uint64_t file_off; // absolute, in its file
    uint32_t file;     // index of the split file
} sl_gguf_tensor;

typedef struct sl_gguf sl_gguf;

typedef struct sl_gguf_options {
    // accept a file whose tensor data is missing or cut off (plan, inspect, vocabularies)
    bool allow_no_data;
} sl_gguf_options;

// Maps the file; if it is the first of a split set, all of its files. Closed by sl_gguf_close.
// Errors name the path.
sl_status sl_gguf_open(sl_gguf **out, const char *path, const sl_gguf_options *options);
// Parses bytes that the caller keeps alive (tests, fuzzing). Split files are refused here.
sl_status sl_gguf_parse(sl_gguf **out, const uint8_t *data, size_t n_bytes, const sl_gguf_options *options);
void sl_gguf_close(sl_gguf *gguf); // NULL is fine

uint32_t sl_gguf_version(const sl_gguf *gguf);
uint32_t sl_gguf_n_files(const sl_gguf *gguf);
uint64_t sl_gguf_file_bytes(const sl_gguf *gguf); // of all files
uint64_t sl_gguf_alignment(const sl_gguf *gguf);  // of the first file
const char *sl_gguf_path(const sl_gguf *gguf);    // "" for parsed bytes
// Is the file at `path`, under whatever name, one of those that are mapped here?
bool sl_gguf_reads(const sl_gguf *gguf, const char *path);

size_t sl_gguf_n_kv(const sl_gguf *gguf);
const sl_gguf_kv *sl_gguf_kv_at(const sl_gguf *gguf, size_t i);
const sl_gguf_kv *sl_gguf_find(const sl_gguf *gguf, const char *key); // NULL if absent; by hash

size_t sl_gguf_n_tensors(const sl_gguf *gguf);
const sl_gguf_tensor *sl_gguf_tensor_at(const sl_gguf *gguf, size_t i);           // in file order
const sl_gguf_tensor *sl_gguf_tensor_find(const sl_gguf *gguf, const char *name); // by hash

// Typed reads of a value. They convert between integer kinds (checked: SL_BAD_FILE names the key,
// what it holds and what is allowed), and between f32 and f64. `i` is the element (0 for a scalar).
sl_status sl_gguf_read_int(const sl_gguf_kv *kv, uint64_t i, int64_t *out, int64_t min, int64_t max);
// From any float or integer kind.
sl_status sl_gguf_read_float(const sl_gguf_kv *kv, uint64_t i, double *out);
sl_status sl_gguf_read_bool(const sl_gguf_kv *kv, uint64_t i, bool *out);
sl_status sl_gguf_read_text(const sl_gguf_kv *kv, sl_span *out); // a string scalar

// All strings of a string array, in one pass (element i of `out`); out has kv->n elements.
sl_status sl_gguf_read_texts(const sl_gguf_kv *kv, sl_span *out);

// Tells the OS that the data will be read soon, and touches it; progress may be NULL (n of total
// bytes; non-zero stops).
sl_status sl_gguf_prefault(const sl_gguf *gguf, int (*progress)(void *user, uint64_t n, uint64_t total), void *user);

// The same for one tensor, and for all that is before the tensors' data; and the opposite, for a tensor of which
// somebody has a copy. Nothing for parsed bytes.
void sl_gguf_tensor_prefault(const sl_gguf *gguf, const sl_gguf_tensor *tensor);
void sl_gguf_tensor_release(const sl_gguf *gguf, const sl_gguf_tensor *tensor);
void sl_gguf_header_prefault(const sl_gguf *gguf);

// ---- writer -------------------------------------------------------------------------------------
//
// Add values and tensors, then write once. The file appears whole or not at all. Of values with the
// same key the last one counts. general.alignment is obeyed if set; split.* is not copied, for the
// file is whole.
typedef struct sl_gguf_writer sl_gguf_writer;
sl_status sl_gguf_writer_create(sl_gguf_writer **out);
void sl_gguf_writer_destroy(sl_gguf_writer *writer);
sl_status sl_gguf_writer_copy_kv(sl_gguf_writer *writer, const sl_gguf_kv *kv);
sl_status sl_gguf_writer_set_u32(sl_gguf_writer *writer, const char *key, uint32_t value);
sl_status sl_gguf_writer_set_f32(sl_gguf_writer *writer, const char *key, float value);
sl_status sl_gguf_writer_set_bool(sl_gguf_writer *writer, const char *key, bool value);
sl_status sl_gguf_writer_set_text(sl_gguf_writer *writer, const char *key, sl_span value);
sl_status sl_gguf_writer_set_texts(sl_gguf_writer *writer, const char *key, const sl_span *values, size_t n);
sl_status sl_gguf_writer_set_i32s(sl_gguf_writer *writer, const char *key, const int32_t *values, size_t n);
sl_status sl_gguf_writer_set_f32s(sl_gguf_writer *writer, const char *key, const float *values, size_t n);
// Declares a tensor; its bytes are asked for while writing, in the order of the declarations.
sl_status sl_gguf_writer_add_tensor(sl_gguf_writer *writer, const char *name, sl_type type, const uint64_t *dim,
                                    uint32_t n_dims);
// Gives bytes [off, off + n_bytes) of tensor i.
typedef sl_status sl_gguf_fill(void *user, size_t i, uint64_t off, void *out, size_t n_bytes);
sl_status sl_gguf_writer_write(sl_gguf_writer *writer, const char *path, sl_gguf_fill *fill, void *user);

#endif
