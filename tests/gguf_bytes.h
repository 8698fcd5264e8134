// SPDX-License-Identifier: MIT
//
// A little maker of GGUF bytes, honest and hostile, for tests of the reader; and a walk over all
// that a reader found.
#ifndef SL_TESTS_GGUF_BYTES_H
#define SL_TESTS_GGUF_BYTES_H

#include <stdlib.h>

#include "gguf/gguf.h"

enum { TYPE_I8 = 24 }; // of the format; not computable, so it has no name in sl_type

typedef struct bytes {
    uint8_t data[4096];
    size_t n;
} bytes;

static inline void put(bytes *b, const void *data, size_t n) {
    if (n > sizeof b->data - b->n) abort();
    if (n) memcpy(b->data + b->n, data, n);
    b->n += n;
}
static inline void put_u8(bytes *b, uint8_t v) { put(b, &v, sizeof v); }
static inline void put_u32(bytes *b, uint32_t v) { put(b, &v, sizeof v); }
static inline void put_u64(bytes *b, uint64_t v) { put(b, &v, sizeof v); }
static inline void put_text(bytes *b, const char *text) {
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}
static inline void put_zeros(bytes *b, size_t n) {
    while (n--) put_u8(b, 0);
}
static inline void put_head(bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_kv) {
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_kv);
}
static inline void put_kv(bytes *b, const char *key, uint32_t kind) {
    put_text(b, key);
    put_u32(b, kind);
}
static inline void put_kv_u32(bytes *b, const char *key, uint32_t value) {
    put_kv(b, key, SL_GGUF_U32);
    put_u32(b, value);
}
static inline void put_kv_array(bytes *b, const char *key, uint32_t kind, uint64_t n) {
    put_kv(b, key, SL_GGUF_ARRAY);
    put_u32(b, kind);
    put_u64(b, n);
}
// A tensor of up to four dims; n_dims is written as it is given.
static inline void put_tensor(bytes *b, const char *name, uint32_t n_dims, uint64_t d0, uint64_t d1, uint32_t type,
                              uint64_t off) {
    put_text(b, name);
    put_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims && i < 16; i++) put_u64(b, i == 0 ? d0 : i == 1 ? d1 : 1);
    put_u32(b, type);
    put_u64(b, off);
}
// The data section: padding to `alignment`, then n bytes.
static inline void put_data(bytes *b, size_t alignment, size_t n) {
    while (b->n % alignment) put_u8(b, 0);
    for (size_t i = 0; i < n; i++) put_u8(b, (uint8_t)(i + 1));
}

// A value of each kind, arrays, and three tensors out of order, with a gap.
static inline void make_valid(bytes *b, uint32_t version) {
    put_head(b, version, 3, 17);
    put_kv(b, "u8", SL_GGUF_U8), put_u8(b, 200);
    put_kv(b, "i8", SL_GGUF_I8), put_u8(b, 0x80);
    put_kv(b, "u16", SL_GGUF_U16), put(b, "\xff\xff", 2);
    put_kv(b, "i16", SL_GGUF_I16), put(b, "\xfe\xff", 2);
    put_kv_u32(b, "u32", 4000000000u);
    put_kv(b, "i32", SL_GGUF_I32), put_u32(b, (uint32_t)-5);
    put_kv(b, "f32", SL_GGUF_F32), put(b, &(float){1.5f}, 4);
    put_kv(b, "bool", SL_GGUF_BOOL), put_u8(b, 1);
    put_kv(b, "bad bool", SL_GGUF_BOOL), put_u8(b, 2);
    put_kv(b, "text", SL_GGUF_STRING), put_text(b, "hello");
    put_kv(b, "u64", SL_GGUF_U64), put_u64(b, UINT64_MAX);
    put_kv(b, "i64", SL_GGUF_I64), put_u64(b, (uint64_t)-7);
    put_kv(b, "f64", SL_GGUF_F64), put(b, &(double){-0.25}, 8);
    put_kv_array(b, "texts", SL_GGUF_STRING, 3), put_text(b, "a"), put_text(b, ""), put_text(b, "ccc");
    put_kv_array(b, "i32s", SL_GGUF_I32, 3), put_u32(b, 1), put_u32(b, (uint32_t)-2), put_u32(b, 3);
    put_kv_array(b, "empty", SL_GGUF_F32, 0);
    put_kv_u32(b, "general.alignment", 64);
    put_tensor(b, "late", 2, 32, 2, SL_TYPE_Q4_0, 192);
    put_tensor(b, "first", 1, 3, 0, SL_TYPE_F32, 0);
    put_tensor(b, "middle", 4, 4, 2, SL_TYPE_F16, 64);
    put_data(b, 64, 192 + 36);
}

// Reads everything that can be read; returns a sum so that no read is optimised away.
static inline uint64_t walk_kv(const sl_gguf_kv *kv) {
    uint64_t sum = kv->n + kv->n_bytes;
    for (uint64_t i = 0; i < kv->n && i < 1000; i++) {
        int64_t integer;
        double number;
        bool flag;
        sum += sl_gguf_read_int(kv, i, &integer, INT64_MIN, INT64_MAX) + (uint64_t)integer;
        sum += sl_gguf_read_float(kv, i, &number);
        sum += sl_gguf_read_bool(kv, i, &flag) + flag;
    }
    sl_span text;
    if (sl_gguf_read_text(kv, &text) == SL_OK) sum += sl_span_hash(text);
    if (kv->kind != SL_GGUF_ARRAY || kv->elem_kind != SL_GGUF_STRING) return sum;
    sl_span *texts = calloc(kv->n + 1, sizeof *texts);
    if (texts && sl_gguf_read_texts(kv, texts) == SL_OK)
        for (uint64_t i = 0; i < kv->n; i++) sum += sl_span_hash(texts[i]);
    free(texts);
    return sum;
}

static inline uint64_t walk_gguf(const sl_gguf *gguf) {
    uint64_t sum = sl_gguf_version(gguf) + sl_gguf_alignment(gguf) + sl_gguf_file_bytes(gguf);
    for (size_t i = 0; i < sl_gguf_n_kv(gguf); i++) sum += walk_kv(sl_gguf_kv_at(gguf, i));
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(gguf, i);
        sum += sl_span_hash(t->name) + (uint64_t)(sl_type_find(t->type_id)->blk_len);
        if (t->data) sum += t->data[0] + t->data[t->n_bytes - 1];
    }
    return sum;
}

#endif
