// SPDX-License-Identifier: MIT
//
// Typed reads of values. The parser has checked that each value lies inside the file; here kinds
// and ranges are checked against what the caller can use. Values are unaligned, so they are copied
// out.
#include "gguf/gguf_part.h"

#include "base/size.h"

static sl_status wrong_kind(const sl_gguf_kv *kv, const char *wanted) {
    return SL_FAIL(SL_BAD_FILE, "the key '%s' holds %s%s, not %s", sl_gguf_show(kv->key).text,
                   kv->kind == SL_GGUF_ARRAY ? "an array of " : "", sl_gguf_kind_name(kv->elem_kind), wanted);
}

// The bytes of element i of a fixed-size kind.
static sl_status element(const sl_gguf_kv *kv, uint64_t i, const uint8_t **out) {
    *out = NULL;
    if (!kv) return SL_FAIL(SL_BAD_ARG, "no key was given");
    if (i >= kv->n)
        return SL_FAIL(SL_BAD_FILE, "the key '%s' has %llu elements; element %llu is missing",
                       sl_gguf_show(kv->key).text, (unsigned long long)kv->n, (unsigned long long)i);
    *out = kv->data + i * sl_gguf_kind_bytes(kv->elem_kind);
    return SL_OK;
}

// Integers of every kind; false if the kind is none, or the value is beyond int64.
static bool load_int(int64_t *out, sl_gguf_kind kind, const uint8_t *p) {
    uint64_t u = 0;
    memcpy(&u, p, sl_gguf_kind_bytes(kind)); // little-endian: the low bytes
    switch (kind) {
    case SL_GGUF_U8:
    case SL_GGUF_U16:
    case SL_GGUF_U32: *out = (int64_t)u; return true;
    case SL_GGUF_U64: *out = (int64_t)u; return u <= INT64_MAX;
    case SL_GGUF_I8: *out = (int8_t)u; return true;
    case SL_GGUF_I16: *out = (int16_t)u; return true;
    case SL_GGUF_I32: *out = (int32_t)u; return true;
    case SL_GGUF_I64: *out = (int64_t)u; return true;
    default: *out = 0; return false;
    }
}

static bool is_int(sl_gguf_kind kind) { return kind <= SL_GGUF_I32 || kind == SL_GGUF_U64 || kind == SL_GGUF_I64; }

sl_status sl_gguf_read_int(const sl_gguf_kv *kv, uint64_t i, int64_t *out, int64_t min, int64_t max) {
    const uint8_t *p;
    int64_t value;
    *out = 0;
    SL_TRY(element(kv, i, &p));
    if (!is_int(kv->elem_kind)) return wrong_kind(kv, "an integer");
    bool fits = load_int(&value, kv->elem_kind, p);
    if (!fits)
        return SL_FAIL(SL_BAD_FILE, "the key '%s' holds %llu; %lld to %lld are allowed", sl_gguf_show(kv->key).text,
                       (unsigned long long)value, (long long)min, (long long)max);
    if (value < min || value > max)
        return SL_FAIL(SL_BAD_FILE, "the key '%s' holds %lld; %lld to %lld are allowed", sl_gguf_show(kv->key).text,
                       (long long)value, (long long)min, (long long)max);
    *out = value;
    return SL_OK;
}

sl_status sl_gguf_read_float(const sl_gguf_kv *kv, uint64_t i, double *out) {
    const uint8_t *p;
    int64_t value;
    float single;
    *out = 0;
    SL_TRY(element(kv, i, &p));
    if (kv->elem_kind == SL_GGUF_F64) return memcpy(out, p, sizeof *out), SL_OK;
    if (kv->elem_kind == SL_GGUF_F32) return memcpy(&single, p, sizeof single), *out = (double)single, SL_OK;
    if (!is_int(kv->elem_kind)) return wrong_kind(kv, "a number");
    *out = load_int(&value, kv->elem_kind, p) ? (double)value : (double)(uint64_t)value;
    return SL_OK;
}

sl_status sl_gguf_read_bool(const sl_gguf_kv *kv, uint64_t i, bool *out) {
    const uint8_t *p;
    *out = false;
    SL_TRY(element(kv, i, &p));
    if (kv->elem_kind != SL_GGUF_BOOL) return wrong_kind(kv, "a bool");
    if (*p > 1) return SL_FAIL(SL_BAD_FILE, "the key '%s' holds the bool %u", sl_gguf_show(kv->key).text, *p);
    *out = *p != 0;
    return SL_OK;
}

// One length-prefixed string; the parser has walked them all before.
static sl_span text_at(const uint8_t **p) {
    uint64_t n_bytes;
    memcpy(&n_bytes, *p, sizeof n_bytes);
    sl_span text = sl_span_make((const char *)*p + sizeof n_bytes, n_bytes);
    *p += sizeof n_bytes + n_bytes;
    return text;
}

sl_status sl_gguf_read_text(const sl_gguf_kv *kv, sl_span *out) {
    *out = (sl_span){0};
    if (!kv) return SL_FAIL(SL_BAD_ARG, "no key was given");
    if (kv->kind != SL_GGUF_STRING) return wrong_kind(kv, "a string");
    const uint8_t *p = kv->data;
    *out = text_at(&p);
    return SL_OK;
}

sl_status sl_gguf_read_texts(const sl_gguf_kv *kv, sl_span *out) {
    if (!kv) return SL_FAIL(SL_BAD_ARG, "no key was given");
    if (kv->kind != SL_GGUF_ARRAY || kv->elem_kind != SL_GGUF_STRING) return wrong_kind(kv, "an array of strings");
    const uint8_t *p = kv->data;
    for (uint64_t i = 0; i < kv->n; i++) out[i] = text_at(&p);
    return SL_OK;
}
