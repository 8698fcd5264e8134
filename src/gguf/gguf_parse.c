// SPDX-License-Identifier: MIT
//
// One GGUF file's bytes -> sl_gguf_part. Each read is checked against the bytes that are left, and
// arrays grow as records are really found, so neither time nor memory can exceed a small multiple
// of the file. Pure: it must not know files, mappings or split sets.
#include "gguf/gguf_part.h"

#include "base/size.h"

enum {
    MIN_KV_BYTES = 8 + 1 + 4 + 1,             // key, kind, the smallest value
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8, // name, n_dims, one dim, type, offset
    MAX_RECORDS = 1 << 20,                    // keys, and tensors, of a file; real ones have some thousands
    MAX_ITEM = 1 << 30,                       // bytes of a string, elements of an array: far from the end of an int32
};
// Of a tensor in its file. A sum of such sizes over the 65535 files of a set cannot overflow.
static const uint64_t max_end = 1ull << 48;

typedef struct cursor {
    const uint8_t *data; // borrowed
    uint64_t n_bytes, off;
} cursor;

static uint64_t left(const cursor *c) { return c->n_bytes - c->off; }

static sl_status take(cursor *c, void *out, uint64_t n_bytes, const char *what) {
    const uint8_t **p = out;
    *p = NULL;
    if (n_bytes > left(c))
        return SL_FAIL(SL_BAD_FILE, "the file is cut off: %s at byte %llu needs %llu bytes, but only %llu are left",
                       what, (unsigned long long)c->off, (unsigned long long)n_bytes, (unsigned long long)left(c));
    *p = c->data + c->off;
    c->off += n_bytes;
    return SL_OK;
}

static sl_status take_u32(cursor *c, uint32_t *out, const char *what) {
    const uint8_t *p;
    *out = 0;
    SL_TRY(take(c, &p, sizeof *out, what));
    memcpy(out, p, sizeof *out);
    return SL_OK;
}

static sl_status take_u64(cursor *c, uint64_t *out, const char *what) {
    const uint8_t *p;
    *out = 0;
    SL_TRY(take(c, &p, sizeof *out, what));
    memcpy(out, p, sizeof *out);
    return SL_OK;
}

static sl_status take_text(cursor *c, sl_span *out, uint64_t max_bytes, const char *what) {
    uint64_t n_bytes;
    const char *p;
    *out = (sl_span){0};
    SL_TRY(take_u64(c, &n_bytes, what));
    if (n_bytes > max_bytes)
        return SL_FAIL(SL_BAD_FILE, "%s at byte %llu is %llu bytes long; at most %llu are allowed", what,
                       (unsigned long long)c->off, (unsigned long long)n_bytes, (unsigned long long)max_bytes);
    SL_TRY(take(c, &p, n_bytes, what));
    *out = sl_span_make(p, n_bytes);
    return SL_OK;
}

// Keys and tensor names: not empty, and no NUL inside, for they are looked up as C strings.
static sl_status take_name(cursor *c, sl_span *out, uint64_t max_bytes, const char *what) {
    SL_TRY(take_text(c, out, max_bytes, what));
    if (out->n_bytes == 0)
        return SL_FAIL(SL_BAD_FILE, "%s before byte %llu is empty", what, (unsigned long long)c->off);
    if (memchr(out->data, 0, out->n_bytes))
        return SL_FAIL(SL_BAD_FILE, "%s '%s' has a zero byte inside", what, sl_gguf_show(*out).text);
    return SL_OK;
}

// ---- values -------------------------------------------------------------------------------------

static sl_status skip_elements(cursor *c, sl_gguf_kind kind, uint64_t n) {
    const uint8_t *p;
    uint64_t n_bytes;
    if (kind == SL_GGUF_STRING) {
        sl_span text;
        for (uint64_t i = 0; i < n; i++) SL_TRY(take_text(c, &text, MAX_ITEM, "a string"));
        return SL_OK;
    }
    if (!sl_size_mul(&n_bytes, n, sl_gguf_kind_bytes(kind))) n_bytes = UINT64_MAX;
    return take(c, &p, n_bytes, "a value");
}

static sl_status take_kind(cursor *c, sl_gguf_kind *out) {
    uint32_t kind;
    SL_TRY(take_u32(c, &kind, "the kind of a value"));
    if (kind >= SL_GGUF_KIND_COUNT) return SL_FAIL(SL_BAD_FILE, "the value has the unknown kind %u", kind);
    *out = (sl_gguf_kind)kind;
    return SL_OK;
}

static sl_status parse_value(cursor *c, sl_gguf_kv *kv) {
    SL_TRY(take_kind(c, &kv->kind));
    kv->elem_kind = kv->kind;
    kv->n = 1;
    if (kv->kind == SL_GGUF_ARRAY) {
        SL_TRY(take_kind(c, &kv->elem_kind));
        SL_TRY(take_u64(c, &kv->n, "the length of an array"));
        if (kv->elem_kind == SL_GGUF_ARRAY) return SL_FAIL(SL_UNSUPPORTED, "arrays of arrays are not supported");
        if (kv->n > MAX_ITEM)
            return SL_FAIL(SL_BAD_FILE, "the array claims %llu elements; at most %d are allowed",
                           (unsigned long long)kv->n, MAX_ITEM);
    }
    uint64_t start = c->off;
    SL_TRY(skip_elements(c, kv->elem_kind, kv->n));
    kv->data = c->data + start;
    kv->n_bytes = c->off - start;
    return SL_OK;
}

static sl_status parse_kv(cursor *c, sl_gguf_kv *kv) {
    SL_TRY(take_name(c, &kv->key, SL_GGUF_MAX_KEY_BYTES, "a key"));
    sl_status status = parse_value(c, kv);
    return status == SL_OK ? SL_OK : sl_fail_prefix(status, "key '%s'", sl_gguf_show(kv->key).text);
}

// ---- tensors ------------------------------------------------------------------------------------

static sl_status parse_tensor_body(cursor *c, sl_gguf_tensor *t) {
    SL_TRY(take_u32(c, &t->n_dims, "the number of dimensions"));
    if (t->n_dims < 1 || t->n_dims > SL_GGUF_MAX_DIMS)
        return SL_FAIL(SL_BAD_FILE, "it has %u dimensions; 1 to 4 are allowed", t->n_dims);
    for (uint32_t i = 0; i < SL_GGUF_MAX_DIMS; i++) t->dim[i] = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) SL_TRY(take_u64(c, &t->dim[i], "a dimension"));
    SL_TRY(take_u32(c, &t->type_id, "a type"));
    SL_TRY(take_u64(c, &t->file_off, "an offset")); // still relative to the data section
    return sl_gguf_shape_bytes(&t->n_bytes, t->type_id, t->dim, t->n_dims);
}

static sl_status parse_tensor(cursor *c, sl_gguf_tensor *t) {
    SL_TRY(take_name(c, &t->name, SL_GGUF_MAX_NAME_BYTES, "a tensor name"));
    sl_status status = parse_tensor_body(c, t);
    return status == SL_OK ? SL_OK : sl_fail_prefix(status, "tensor '%s'", sl_gguf_show(t->name).text);
}

// Makes the offset absolute and finds the data.
static sl_status place_tensor(const cursor *c, sl_gguf_tensor *t, uint64_t data_off, uint64_t alignment,
                              bool allow_no_data) {
    uint64_t end;
    if (t->file_off % alignment != 0)
        return SL_FAIL(SL_BAD_FILE, "its offset %llu is no multiple of the alignment %llu",
                       (unsigned long long)t->file_off, (unsigned long long)alignment);
    if (!sl_size_add(&t->file_off, t->file_off, data_off) || !sl_size_add(&end, t->file_off, t->n_bytes) ||
        end > max_end)
        return SL_FAIL(SL_BAD_FILE, "it would end beyond any file");
    if (end <= c->n_bytes) t->data = c->data + t->file_off;
    else if (!allow_no_data)
        return SL_FAIL(SL_BAD_FILE, "the file is cut off: its data ends at byte %llu, the file at %llu",
                       (unsigned long long)end, (unsigned long long)c->n_bytes);
    return SL_OK;
}

static int compare_off(const void *a, const void *b) {
    const sl_gguf_tensor *x = *(sl_gguf_tensor *const *)a, *y = *(sl_gguf_tensor *const *)b;
    return (x->file_off > y->file_off) - (x->file_off < y->file_off);
}

static sl_status check_overlaps(const sl_gguf_part *part) {
    const sl_gguf_tensor **by_off;
    sl_status status = SL_OK;
    SL_TRY(sl_alloc(&by_off, part->n_tensors, sizeof *by_off, "list of tensors"));
    for (size_t i = 0; i < part->n_tensors; i++) by_off[i] = &part->tensors[i];
    if (part->n_tensors) qsort(by_off, part->n_tensors, sizeof *by_off, compare_off);
    for (size_t i = 1; i < part->n_tensors && status == SL_OK; i++)
        if (by_off[i - 1]->file_off + by_off[i - 1]->n_bytes > by_off[i]->file_off)
            status = SL_FAIL(SL_BAD_FILE, "the tensors '%s' and '%s' overlap", sl_gguf_show(by_off[i - 1]->name).text,
                             sl_gguf_show(by_off[i]->name).text);
    sl_free(by_off);
    return status;
}

// ---- the file -----------------------------------------------------------------------------------

static sl_status check_version(uint32_t version) {
    if (version && (version & 0xffff) == 0)
        return SL_FAIL(SL_UNSUPPORTED, "this is a big-endian GGUF file; convert it to little-endian");
    if (version == 1)
        return SL_FAIL(SL_UNSUPPORTED, "this is GGUF version 1, which is no longer in use; convert the model anew");
    if (version != 2 && version != 3)
        return SL_FAIL(SL_UNSUPPORTED, "this is GGUF version %u; versions 2 and 3 are supported", version);
    return SL_OK;
}

static sl_status parse_header(cursor *c, uint32_t *version, uint64_t *n_tensors, uint64_t *n_kv) {
    const uint8_t *magic;
    if (c->n_bytes == 0) return SL_FAIL(SL_BAD_FILE, "the file is empty");
    if (c->n_bytes < 4 || memcmp(c->data, "GGUF", 4) != 0)
        return SL_FAIL(SL_BAD_FILE, "this is no GGUF file (it does not begin with 'GGUF')");
    SL_TRY(take(c, &magic, 4, "the magic"));
    SL_TRY(take_u32(c, version, "the version"));
    SL_TRY(check_version(*version));
    SL_TRY(take_u64(c, n_tensors, "the number of tensors"));
    SL_TRY(take_u64(c, n_kv, "the number of keys"));
    if (*n_kv > left(c) / MIN_KV_BYTES || *n_tensors > left(c) / MIN_TENSOR_BYTES)
        return SL_FAIL(SL_BAD_FILE, "the header claims %llu keys and %llu tensors, more than fit into the file",
                       (unsigned long long)*n_kv, (unsigned long long)*n_tensors);
    if (*n_kv > MAX_RECORDS || *n_tensors > MAX_RECORDS)
        return SL_FAIL(SL_BAD_FILE, "the file has %llu keys and %llu tensors; at most %d are allowed",
                       (unsigned long long)*n_kv, (unsigned long long)*n_tensors, MAX_RECORDS);
    return SL_OK;
}

// One more element of an array that grows by doubling, up to `n_max`, the number that the header
// claims.
static sl_status grow(void *array, size_t n, size_t *cap, uint64_t n_max, size_t elem_bytes, const char *what) {
    if (n < *cap) return SL_OK;
    size_t cap_new = (size_t)SL_MIN(n_max, (uint64_t)*cap * 2 + 64);
    SL_TRY(sl_realloc(array, *cap, cap_new, elem_bytes, what));
    *cap = cap_new;
    return SL_OK;
}

static sl_status parse_kvs(sl_gguf_part *part, cursor *c, uint64_t n_kv) {
    size_t cap = 0;
    for (; part->n_kv < n_kv; part->n_kv++) {
        SL_TRY(grow(&part->kvs, part->n_kv, &cap, n_kv, sizeof *part->kvs, "keys of the file"));
        SL_TRY(parse_kv(c, &part->kvs[part->n_kv]));
    }
    SL_TRY(sl_name_index_init(&part->kv_index, part->n_kv));
    for (size_t i = 0; i < part->n_kv; i++) sl_name_index_put(&part->kv_index, i, part->kvs[i].key);
    sl_name_index_sort(&part->kv_index);
    const sl_name *twice = sl_name_index_duplicate(&part->kv_index);
    if (twice) return SL_FAIL(SL_BAD_FILE, "the key '%s' appears twice", sl_gguf_show(twice->text).text);
    return SL_OK;
}

static sl_status read_alignment(sl_gguf_part *part) {
    const sl_gguf_kv *kv = sl_gguf_part_find(part, "general.alignment");
    part->alignment = SL_GGUF_DEFAULT_ALIGNMENT;
    if (!kv) return SL_OK;
    if (kv->kind != SL_GGUF_U32)
        return SL_FAIL(SL_BAD_FILE, "general.alignment is of kind %s, not u32", sl_gguf_kind_name(kv->kind));
    uint32_t alignment;
    memcpy(&alignment, kv->data, sizeof alignment);
    SL_TRY(sl_gguf_check_alignment(alignment));
    part->alignment = alignment;
    return SL_OK;
}

static sl_status parse_tensors(sl_gguf_part *part, cursor *c, uint64_t n_tensors, bool allow_no_data) {
    size_t cap = 0;
    uint64_t data_off;
    for (; part->n_tensors < n_tensors; part->n_tensors++) {
        SL_TRY(grow(&part->tensors, part->n_tensors, &cap, n_tensors, sizeof *part->tensors, "tensors of the file"));
        SL_TRY(parse_tensor(c, &part->tensors[part->n_tensors]));
    }
    if (!sl_size_align(&data_off, c->off, part->alignment)) return SL_FAIL(SL_BAD_FILE, "the header is too large");
    for (size_t i = 0; i < part->n_tensors; i++) {
        sl_gguf_tensor *t = &part->tensors[i];
        sl_status status = place_tensor(c, t, data_off, part->alignment, allow_no_data);
        if (status != SL_OK) return sl_fail_prefix(status, "tensor '%s'", sl_gguf_show(t->name).text);
    }
    SL_TRY(sl_gguf_part_index_tensors(part));
    return check_overlaps(part);
}

static sl_status parse_all(sl_gguf_part *part, cursor *c, bool allow_no_data) {
    uint64_t n_tensors, n_kv;
    SL_TRY(parse_header(c, &part->version, &n_tensors, &n_kv));
    SL_TRY(parse_kvs(part, c, n_kv));
    SL_TRY(read_alignment(part));
    return parse_tensors(part, c, n_tensors, allow_no_data);
}

sl_status sl_gguf_part_parse(sl_gguf_part *out, const uint8_t *data, size_t n_bytes, bool allow_no_data) {
    *out = (sl_gguf_part){0};
    cursor c = {data, n_bytes, 0};
    sl_status status = parse_all(out, &c, allow_no_data);
    if (status != SL_OK) sl_gguf_part_deinit(out);
    return status;
}
