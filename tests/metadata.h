// SPDX-License-Identifier: MIT
//
// GGUF files in memory that hold metadata and names of tensors but no data, for tests of what reads
// headers alone.
#ifndef SL_TESTS_METADATA_H
#define SL_TESTS_METADATA_H

#include "gguf_bytes.h"
#include "harness.h"

typedef struct metadata {
    bytes kvs, tensors, file;
    const char *arch;
    uint64_t n_kv, n_tensors, off;
    sl_gguf *gguf;
} metadata;

static inline void meta_key(metadata *m, const char *name, uint32_t kind) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", m->arch, name);
    put_kv(&m->kvs, key, kind);
    m->n_kv++;
}

static inline void meta_int(metadata *m, const char *name, uint32_t value) {
    meta_key(m, name, SL_GGUF_U32);
    put_u32(&m->kvs, value);
}

// n values given by a function of their index.
static inline void meta_ints(metadata *m, const char *name, uint32_t n, uint32_t (*of)(uint32_t i)) {
    meta_key(m, name, SL_GGUF_ARRAY);
    put_u32(&m->kvs, SL_GGUF_U32);
    put_u64(&m->kvs, n);
    for (uint32_t i = 0; i < n; i++) put_u32(&m->kvs, of(i));
}

static inline void meta_tensor(metadata *m, const char *name, uint64_t d0, uint64_t d1, uint64_t d2, sl_type type) {
    const sl_type_info *info = sl_type_find(type);
    put_text(&m->tensors, name);
    put_u32(&m->tensors, d2 > 1 ? 3 : d1 > 1 ? 2 : 1);
    put_u64(&m->tensors, d0);
    if (d1 > 1 || d2 > 1) put_u64(&m->tensors, d1);
    if (d2 > 1) put_u64(&m->tensors, d2);
    put_u32(&m->tensors, type);
    put_u64(&m->tensors, m->off);
    m->off += (sl_type_row_bytes(info, d0) * d1 * d2 + 31) / 32 * 32;
    m->n_tensors++;
}

static inline void meta_begin(metadata *m, const char *arch, uint32_t n_layer, uint32_t n_embd) {
    memset(m, 0, sizeof *m);
    m->arch = arch;
    put_kv(&m->kvs, "general.architecture", SL_GGUF_STRING), put_text(&m->kvs, arch);
    m->n_kv = 1;
    meta_int(m, "block_count", n_layer);
    meta_int(m, "embedding_length", n_embd);
    meta_int(m, "context_length", 262144);
}

static inline void meta_heads(metadata *m, uint32_t n_head, uint32_t n_head_kv, uint32_t k_dim, uint32_t v_dim) {
    meta_int(m, "attention.head_count", n_head);
    meta_int(m, "attention.head_count_kv", n_head_kv);
    meta_int(m, "attention.key_length", k_dim);
    meta_int(m, "attention.value_length", v_dim);
}

// The whole file, in m->file.
static inline void meta_assemble(metadata *m) {
    put_head(&m->file, 3, m->n_tensors, m->n_kv);
    put(&m->file, m->kvs.data, m->kvs.n);
    put(&m->file, m->tensors.data, m->tensors.n);
    while (m->file.n % 32) put_u8(&m->file, 0);
}

static inline const sl_gguf *meta_parse(metadata *m) {
    meta_assemble(m);
    sl_gguf_options options = {.allow_no_data = true};
    REQUIRE_OK(sl_gguf_parse(&m->gguf, m->file.data, m->file.n, &options), sl_error_text());
    return m->gguf;
}

#endif
