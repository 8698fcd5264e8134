// SPDX-License-Identifier: MIT
//
// The writer: collects values and declarations, then writes header, values, directory and data in
// one pass, version 3. A written file is one whole file: split.* keys are dropped,
// general.alignment is kept and obeyed.
#include "gguf/gguf_part.h"

#include <errno.h>

#include "base/arena.h"
#include "base/size.h"
#include "os/os.h"

enum { VERSION = 3, COPY_BYTES = 1 << 20 };

struct sl_gguf_writer {
    sl_arena arena;  // keys, values and names
    sl_gguf_kv *kvs; // owned; a later one replaces an earlier of the same key
    size_t n_kv, cap_kv;
    sl_gguf_tensor *tensors; // owned
    size_t n_tensors, cap_tensors;
};

sl_status sl_gguf_writer_create(sl_gguf_writer **out) { return sl_alloc(out, 1, sizeof **out, "gguf writer"); }

void sl_gguf_writer_destroy(sl_gguf_writer *writer) {
    if (!writer) return;
    sl_arena_deinit(&writer->arena);
    sl_free(writer->kvs);
    sl_free(writer->tensors);
    sl_free(writer);
}

// ---- values -------------------------------------------------------------------------------------

static sl_status check_name(sl_span name, size_t max_bytes, const char *what) {
    if (name.n_bytes == 0 || name.n_bytes > max_bytes || memchr(name.data, 0, name.n_bytes))
        return SL_FAIL(SL_BAD_ARG, "the %s '%s' is empty, too long or has a zero byte", what, sl_gguf_show(name).text);
    return SL_OK;
}

// Adds the value with room for its n_bytes, which the caller fills through *out.
static sl_status add_kv(sl_gguf_writer *writer, const sl_gguf_kv *like, size_t n_bytes, uint8_t **out) {
    char *key;
    *out = NULL;
    SL_TRY(check_name(like->key, SL_GGUF_MAX_KEY_BYTES, "key"));
    if (writer->n_kv == writer->cap_kv) {
        size_t cap = writer->cap_kv * 2 + 32;
        SL_TRY(sl_realloc(&writer->kvs, writer->cap_kv, cap, sizeof *writer->kvs, "keys to write"));
        writer->cap_kv = cap;
    }
    SL_TRY(sl_arena_text(&writer->arena, &key, like->key));
    SL_TRY(sl_arena_alloc(&writer->arena, out, n_bytes, 1, "value to write"));
    sl_gguf_kv *kv = &writer->kvs[writer->n_kv++];
    *kv = *like;
    kv->key = sl_span_make(key, like->key.n_bytes);
    kv->data = *out;
    kv->n_bytes = n_bytes;
    return SL_OK;
}

static sl_status set_plain(sl_gguf_writer *writer, const char *key, sl_gguf_kind kind, sl_gguf_kind elem_kind,
                           const void *values, uint64_t n) {
    sl_gguf_kv kv = {.key = sl_span_of(key), .kind = kind, .elem_kind = elem_kind, .n = n};
    uint64_t n_bytes;
    uint8_t *data;
    if (!sl_size_mul(&n_bytes, n, sl_gguf_kind_bytes(elem_kind))) return SL_FAIL(SL_BAD_ARG, "the array is too long");
    SL_TRY(add_kv(writer, &kv, n_bytes, &data));
    if (n_bytes) memcpy(data, values, n_bytes);
    return SL_OK;
}

static sl_status set_strings(sl_gguf_writer *writer, const char *key, sl_gguf_kind kind, const sl_span *values,
                             size_t n) {
    sl_gguf_kv kv = {.key = sl_span_of(key), .kind = kind, .elem_kind = SL_GGUF_STRING, .n = n};
    uint64_t n_bytes = 0;
    uint8_t *p;
    for (size_t i = 0; i < n; i++)
        if (!sl_size_add(&n_bytes, n_bytes, sizeof(uint64_t)) || !sl_size_add(&n_bytes, n_bytes, values[i].n_bytes))
            return SL_FAIL(SL_BAD_ARG, "the strings are too long");
    SL_TRY(add_kv(writer, &kv, n_bytes, &p));
    for (size_t i = 0; i < n; i++) {
        uint64_t length = values[i].n_bytes;
        memcpy(p, &length, sizeof length);
        if (length) memcpy(p + sizeof length, values[i].data, length);
        p += sizeof length + length;
    }
    return SL_OK;
}

sl_status sl_gguf_writer_copy_kv(sl_gguf_writer *writer, const sl_gguf_kv *kv) {
    uint8_t *data;
    if (kv->key.n_bytes >= 6 && memcmp(kv->key.data, "split.", 6) == 0) return SL_OK;
    SL_TRY(add_kv(writer, kv, kv->n_bytes, &data));
    if (kv->n_bytes) memcpy(data, kv->data, kv->n_bytes);
    return SL_OK;
}

sl_status sl_gguf_writer_set_u32(sl_gguf_writer *writer, const char *key, uint32_t value) {
    return set_plain(writer, key, SL_GGUF_U32, SL_GGUF_U32, &value, 1);
}

sl_status sl_gguf_writer_set_f32(sl_gguf_writer *writer, const char *key, float value) {
    return set_plain(writer, key, SL_GGUF_F32, SL_GGUF_F32, &value, 1);
}

sl_status sl_gguf_writer_set_bool(sl_gguf_writer *writer, const char *key, bool value) {
    uint8_t byte = value;
    return set_plain(writer, key, SL_GGUF_BOOL, SL_GGUF_BOOL, &byte, 1);
}

sl_status sl_gguf_writer_set_text(sl_gguf_writer *writer, const char *key, sl_span value) {
    return set_strings(writer, key, SL_GGUF_STRING, &value, 1);
}

sl_status sl_gguf_writer_set_texts(sl_gguf_writer *writer, const char *key, const sl_span *values, size_t n) {
    return set_strings(writer, key, SL_GGUF_ARRAY, values, n);
}

sl_status sl_gguf_writer_set_i32s(sl_gguf_writer *writer, const char *key, const int32_t *values, size_t n) {
    return set_plain(writer, key, SL_GGUF_ARRAY, SL_GGUF_I32, values, n);
}

sl_status sl_gguf_writer_set_f32s(sl_gguf_writer *writer, const char *key, const float *values, size_t n) {
    return set_plain(writer, key, SL_GGUF_ARRAY, SL_GGUF_F32, values, n);
}

// ---- tensors ------------------------------------------------------------------------------------

sl_status sl_gguf_writer_add_tensor(sl_gguf_writer *writer, const char *name, sl_type type, const uint64_t *dim,
                                    uint32_t n_dims) {
    uint64_t n_bytes;
    char *copy;
    SL_TRY(check_name(sl_span_of(name), SL_GGUF_MAX_NAME_BYTES, "tensor name"));
    sl_status status = sl_gguf_shape_bytes(&n_bytes, type, dim, n_dims);
    if (status != SL_OK) return sl_fail_prefix(status, "tensor '%s'", name);
    if (writer->n_tensors == writer->cap_tensors) {
        size_t cap = writer->cap_tensors * 2 + 64;
        SL_TRY(sl_realloc(&writer->tensors, writer->cap_tensors, cap, sizeof *writer->tensors, "tensors to write"));
        writer->cap_tensors = cap;
    }
    SL_TRY(sl_arena_text(&writer->arena, &copy, sl_span_of(name)));
    sl_gguf_tensor *t = &writer->tensors[writer->n_tensors++];
    *t = (sl_gguf_tensor){
        .name = sl_span_make(copy, strlen(copy)), .type_id = type, .n_dims = n_dims, .n_bytes = n_bytes};
    for (uint32_t i = 0; i < SL_GGUF_MAX_DIMS; i++) t->dim[i] = i < n_dims ? dim[i] : 1;
    return SL_OK;
}

// ---- writing ------------------------------------------------------------------------------------

// Drops values that a later one replaces; the rest keep their order.
static sl_status drop_replaced(sl_gguf_writer *writer) {
    sl_name_index index;
    bool *dead;
    SL_TRY(sl_alloc(&dead, writer->n_kv, sizeof *dead, "keys to write"));
    sl_status status = sl_name_index_init(&index, writer->n_kv);
    if (status != SL_OK) return sl_free(dead), status;
    for (size_t i = 0; i < writer->n_kv; i++) sl_name_index_put(&index, i, writer->kvs[i].key);
    sl_name_index_sort(&index);
    for (size_t i = 1; i < index.n; i++) // neighbours of the same name stand in the order of their positions
        if (sl_span_equal(index.names[i - 1].text, index.names[i].text)) dead[index.names[i - 1].i] = true;
    size_t n = 0;
    for (size_t i = 0; i < writer->n_kv; i++)
        if (!dead[i]) writer->kvs[n++] = writer->kvs[i];
    writer->n_kv = n;
    sl_name_index_deinit(&index);
    sl_free(dead);
    return SL_OK;
}

static sl_status check_tensor_names(const sl_gguf_writer *writer) {
    sl_gguf_part part = {.tensors = writer->tensors, .n_tensors = writer->n_tensors};
    sl_status status = sl_gguf_part_index_tensors(&part);
    sl_name_index_deinit(&part.tensor_index);
    return status;
}

static sl_status find_alignment(const sl_gguf_writer *writer, uint64_t *out) {
    *out = SL_GGUF_DEFAULT_ALIGNMENT;
    for (size_t i = 0; i < writer->n_kv; i++) {
        if (!sl_span_is(writer->kvs[i].key, "general.alignment")) continue;
        if (writer->kvs[i].kind != SL_GGUF_U32) return SL_FAIL(SL_BAD_ARG, "general.alignment must be a u32");
        uint32_t alignment;
        memcpy(&alignment, writer->kvs[i].data, sizeof alignment);
        SL_TRY(sl_gguf_check_alignment(alignment));
        *out = alignment;
    }
    return SL_OK;
}

// fwrite remembers its failure in the stream; commit reports it.
static void put(FILE *file, const void *data, size_t n_bytes) {
    if (n_bytes) fwrite(data, 1, n_bytes, file);
}
static void put_u32(FILE *file, uint32_t value) { put(file, &value, sizeof value); }
static void put_u64(FILE *file, uint64_t value) { put(file, &value, sizeof value); }
static void put_text(FILE *file, sl_span text) { put_u64(file, text.n_bytes), put(file, text.data, text.n_bytes); }

static void put_padding(FILE *file, uint64_t n_written, uint64_t alignment) {
    for (uint64_t n = n_written; n % alignment != 0; n++) putc(0, file);
}

// Everything before the data section, padding included.
static void put_header(const sl_gguf_writer *writer, FILE *file, uint64_t alignment) {
    uint64_t n_bytes = 24, off = 0;
    put(file, "GGUF", 4);
    put_u32(file, VERSION);
    put_u64(file, writer->n_tensors);
    put_u64(file, writer->n_kv);
    for (size_t i = 0; i < writer->n_kv; i++) {
        const sl_gguf_kv *kv = &writer->kvs[i];
        put_text(file, kv->key);
        put_u32(file, kv->kind);
        if (kv->kind == SL_GGUF_ARRAY) put_u32(file, kv->elem_kind), put_u64(file, kv->n);
        put(file, kv->data, kv->n_bytes);
        n_bytes += 8 + kv->key.n_bytes + 4 + (kv->kind == SL_GGUF_ARRAY ? 12 : 0) + kv->n_bytes;
    }
    for (size_t i = 0; i < writer->n_tensors; i++) {
        const sl_gguf_tensor *t = &writer->tensors[i];
        put_text(file, t->name);
        put_u32(file, t->n_dims);
        for (uint32_t k = 0; k < t->n_dims; k++) put_u64(file, t->dim[k]);
        put_u32(file, t->type_id);
        put_u64(file, off);
        off += sl_round_up(t->n_bytes, alignment);
        n_bytes += 8 + t->name.n_bytes + 4 + 8 * t->n_dims + 4 + 8;
    }
    put_padding(file, n_bytes, alignment);
}

static sl_status put_data(const sl_gguf_writer *writer, FILE *file, uint64_t alignment, sl_gguf_fill *fill,
                          void *user) {
    uint8_t *copy;
    sl_status status = SL_OK;
    SL_TRY(sl_alloc(&copy, COPY_BYTES, 1, "copy buffer"));
    for (size_t i = 0; i < writer->n_tensors; i++) {
        uint64_t n_bytes = writer->tensors[i].n_bytes;
        for (uint64_t off = 0; off < n_bytes; off += COPY_BYTES) {
            size_t n = (size_t)SL_MIN(n_bytes - off, (uint64_t)COPY_BYTES);
            SL_TRY_OUT(fill(user, i, off, copy, n));
            put(file, copy, n);
            if (ferror(file)) {
                status = SL_FAIL(SL_IO, "cannot write the file: %s", strerror(errno));
                goto out;
            }
        }
        put_padding(file, n_bytes, alignment);
    }
out:
    sl_free(copy);
    return status;
}

sl_status sl_gguf_writer_write(sl_gguf_writer *writer, const char *path, sl_gguf_fill *fill, void *user) {
    sl_atomic_file file;
    uint64_t alignment, n_total = 0;
    SL_TRY(drop_replaced(writer));
    SL_TRY(check_tensor_names(writer));
    SL_TRY(find_alignment(writer, &alignment));
    for (size_t i = 0; i < writer->n_tensors; i++)
        if (!sl_size_add(&n_total, n_total, writer->tensors[i].n_bytes) || n_total > INT64_MAX / 2)
            return SL_FAIL(SL_BAD_ARG, "the tensors are larger than any file");
    SL_TRY(sl_atomic_file_open(&file, path, false));
    put_header(writer, file.file, alignment);
    sl_status status = put_data(writer, file.file, alignment, fill, user);
    if (status == SL_OK) return sl_atomic_file_commit(&file);
    sl_atomic_file_cancel(&file);
    return status;
}
