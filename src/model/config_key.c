// SPDX-License-Identifier: MIT
//
// Typed, ranged reads of a model's own keys. Must not know what a key means.
#include "model/config_key.h"

#include <float.h>
#include <math.h>

static void key_of(const sl_keys *keys, char out[SL_KEY_MAX], const char *name) {
    snprintf(out, SL_KEY_MAX, "%s.%s", keys->arch, name);
}

const sl_gguf_kv *sl_keys_find(const sl_keys *keys, const char *name) {
    char key[SL_KEY_MAX];
    key_of(keys, key, name);
    return sl_gguf_find(keys->gguf, key);
}

static sl_status missing(const sl_keys *keys, const char *name) {
    return SL_FAIL(SL_BAD_FILE, "the key '%s.%s' is missing", keys->arch, name);
}

static sl_status scalar(const sl_keys *keys, const char *name, const sl_gguf_kv *kv) {
    if (kv->kind != SL_GGUF_ARRAY) return SL_OK;
    return SL_FAIL(SL_BAD_FILE, "the key '%s.%s' is an array where one value is needed", keys->arch, name);
}

sl_status sl_keys_int_required(const sl_keys *keys, const char *name, uint32_t *out, uint32_t min, uint32_t max) {
    *out = 0;
    const sl_gguf_kv *kv = sl_keys_find(keys, name);
    if (!kv) return missing(keys, name);
    SL_TRY(scalar(keys, name, kv));
    int64_t value;
    SL_TRY(sl_gguf_read_int(kv, 0, &value, min, max));
    *out = (uint32_t)value;
    return SL_OK;
}

sl_status sl_keys_int(const sl_keys *keys, const char *name, uint32_t *out, uint32_t absent, uint32_t min,
                      uint32_t max) {
    *out = absent;
    return sl_keys_find(keys, name) ? sl_keys_int_required(keys, name, out, min, max) : SL_OK;
}

sl_status sl_keys_float_required(const sl_keys *keys, const char *name, double *out, sl_bound bound) {
    static const char *const words[] = {"a number", "a number that is not negative", "a positive number",
                                        "a number above 1"};
    *out = 0;
    const sl_gguf_kv *kv = sl_keys_find(keys, name);
    if (!kv) return missing(keys, name);
    SL_TRY(scalar(keys, name, kv));
    double value;
    SL_TRY(sl_gguf_read_float(kv, 0, &value));
    bool ok = fabs(value) <= FLT_MAX; // false for NaN
    if (bound == SL_NOT_NEGATIVE) ok = ok && value >= 0;
    if (bound == SL_POSITIVE) ok = ok && value >= FLT_MIN;
    if (bound == SL_ABOVE_ONE) ok = ok && value > 1;
    if (ok) return *out = value, SL_OK;
    return SL_FAIL(SL_BAD_FILE, "the key '%s.%s' holds %g; %s is needed", keys->arch, name, value, words[bound]);
}

sl_status sl_keys_float(const sl_keys *keys, const char *name, double *out, double absent, sl_bound bound) {
    *out = absent;
    return sl_keys_find(keys, name) ? sl_keys_float_required(keys, name, out, bound) : SL_OK;
}

sl_status sl_keys_text(const sl_keys *keys, const char *name, sl_span *out, const char *absent) {
    *out = sl_span_of(absent);
    const sl_gguf_kv *kv = sl_keys_find(keys, name);
    return kv ? sl_gguf_read_text(kv, out) : SL_OK;
}

sl_status sl_keys_layers(const sl_keys *keys, const char *name, bool *found, uint32_t *out, uint32_t n_layer,
                         uint32_t min, uint32_t max) {
    const sl_gguf_kv *kv = sl_keys_find(keys, name);
    *found = kv != NULL;
    if (!kv) return SL_OK;
    bool array = kv->kind == SL_GGUF_ARRAY;
    if (array && kv->n != n_layer)
        return SL_FAIL(SL_BAD_FILE, "the key '%s.%s' has %llu elements for %u layers", keys->arch, name,
                       (unsigned long long)kv->n, n_layer);
    for (uint32_t i = 0; i < n_layer; i++) {
        int64_t value;
        if (kv->elem_kind == SL_GGUF_BOOL) {
            bool flag;
            SL_TRY(sl_gguf_read_bool(kv, array ? i : 0, &flag));
            value = flag;
        } else {
            SL_TRY(sl_gguf_read_int(kv, array ? i : 0, &value, min, max));
        }
        out[i] = (uint32_t)value;
    }
    return SL_OK;
}
