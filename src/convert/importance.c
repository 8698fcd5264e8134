// SPDX-License-Identifier: MIT
//
// Importance matrices as files have them. Each form is read into the same entries: raw sums, then scaled.
#include "convert/importance.h"

#include <math.h>

#include "base/arena.h"
#include "base/size.h"
#include "gguf/gguf.h"
#include "gguf/name_index.h"
#include "os/os.h"

typedef struct entry {
    sl_span name;  // in the arena
    float *values; // (n) in the arena
    uint64_t n;
} entry;

struct sl_importance {
    sl_arena arena;
    entry *entries; // owned
    size_t n, cap;
    sl_name_index index;
};

static int shown_bytes(sl_span name) { return (int)SL_MIN(name.n_bytes, (size_t)64); }

// ---- entries ------------------------------------------------------------------------------------

// Each of n_mat rows gets mean 1 and nothing below a millionth: a column that the text never used still counts a
// little, for another text will use it. A row without any use counts evenly.
static sl_status scale_rows(float *values, uint64_t n, uint64_t n_mat, sl_span name) {
    uint64_t n_col = n / n_mat;
    for (uint64_t m = 0; m < n_mat; m++, values += n_col) {
        double sum = 0;
        for (uint64_t i = 0; i < n_col; i++) {
            if (!(values[i] >= 0) || isinf(values[i]))
                return SL_FAIL(SL_BAD_FILE, "the importance of '%.*s' holds a negative or infinite number, or a NaN",
                               shown_bytes(name), name.data);
            sum += (double)values[i];
        }
        double scale = sum > 0 ? (double)n_col / sum : 0;
        for (uint64_t i = 0; i < n_col; i++) values[i] = sum > 0 ? (float)fmax((double)values[i] * scale, 1e-6) : 1;
    }
    return SL_OK;
}

// data: n floats, not aligned.
static sl_status add_entry(sl_importance *im, sl_span name, const uint8_t *data, uint64_t n, uint64_t n_mat) {
    char *text;
    float *values;
    if (n == 0 || n_mat == 0 || n % n_mat != 0)
        return SL_FAIL(SL_BAD_FILE, "the importance of '%.*s' has %llu values for %llu matrices", shown_bytes(name),
                       name.data, (unsigned long long)n, (unsigned long long)n_mat);
    if (im->n == im->cap) {
        size_t cap = im->cap * 2 + 64;
        SL_TRY(sl_realloc(&im->entries, im->cap, cap, sizeof *im->entries, "entries of an importance matrix"));
        im->cap = cap;
    }
    SL_TRY(sl_arena_text(&im->arena, &text, name));
    SL_TRY(sl_arena_alloc(&im->arena, &values, n, sizeof *values, "an importance matrix"));
    memcpy(values, data, n * sizeof *values);
    SL_TRY(scale_rows(values, n, n_mat, name));
    im->entries[im->n++] = (entry){sl_span_make(text, name.n_bytes), values, n};
    return SL_OK;
}

static sl_status index_entries(sl_importance *im) {
    if (im->n == 0) return SL_FAIL(SL_BAD_FILE, "the file holds no importance matrix");
    SL_TRY(sl_name_index_init(&im->index, im->n));
    for (size_t i = 0; i < im->n; i++) sl_name_index_put(&im->index, i, im->entries[i].name);
    sl_name_index_sort(&im->index);
    const sl_name *twice = sl_name_index_duplicate(&im->index);
    if (!twice) return SL_OK;
    return SL_FAIL(SL_BAD_FILE, "'%.*s' has two importance matrices", shown_bytes(twice->text), twice->text.data);
}

// ---- GGUF ---------------------------------------------------------------------------------------

static bool strip_suffix(sl_span *name, const char *suffix) {
    size_t n = strlen(suffix);
    if (name->n_bytes <= n || memcmp(name->data + name->n_bytes - n, suffix, n) != 0) return false;
    name->n_bytes -= n;
    return true;
}

static uint64_t n_elem(const sl_gguf_tensor *t) { return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]; }

static sl_status read_gguf(sl_importance *im, const sl_gguf *gguf) {
    sl_span type;
    const sl_gguf_kv *kv = sl_gguf_find(gguf, "general.type");
    if (!kv || sl_gguf_read_text(kv, &type) != SL_OK || !sl_span_is(type, "imatrix"))
        return SL_FAIL(SL_BAD_FILE, "this GGUF file is no importance matrix: its general.type is not \"imatrix\"");
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
        const sl_gguf_tensor *sums = sl_gguf_tensor_at(gguf, i), *counts;
        sl_span name = sums->name;
        char counts_name[80];
        if (!strip_suffix(&name, ".in_sum2")) continue;
        snprintf(counts_name, sizeof counts_name, "%.*s.counts", shown_bytes(name), name.data);
        counts = sl_gguf_tensor_find(gguf, counts_name);
        if (!counts || counts->type_id != SL_TYPE_F32 || sums->type_id != SL_TYPE_F32)
            return SL_FAIL(SL_BAD_FILE, "the importance of '%.*s' needs %s, and both as F32", shown_bytes(name),
                           name.data, counts_name);
        SL_TRY(add_entry(im, name, sums->data, n_elem(sums), n_elem(counts)));
    }
    return SL_OK;
}

// ---- .dat ---------------------------------------------------------------------------------------
//
// int32 entries; of each: int32 length, name, int32 calls, int32 values, floats. What follows is of no use here. All
// rows of an entry have one scale, which does not matter.

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

static bool read_i32(cursor *c, int32_t *out) {
    if ((size_t)(c->end - c->at) < sizeof *out) return false;
    memcpy(out, c->at, sizeof *out);
    c->at += sizeof *out;
    return true;
}

static bool read_bytes(cursor *c, int32_t n, size_t unit, const uint8_t **out) {
    if (n <= 0 || (size_t)(c->end - c->at) / unit < (size_t)n) return false;
    *out = c->at;
    c->at += (size_t)n * unit;
    return true;
}

static sl_status read_dat(sl_importance *im, const uint8_t *data, size_t n_bytes) {
    cursor c = {data, data + n_bytes};
    int32_t n_entry = 0;
    bool ok = read_i32(&c, &n_entry);
    for (int32_t i = 0; ok && i < n_entry; i++) {
        int32_t n_name, n_call, n_value;
        const uint8_t *name, *values;
        ok = read_i32(&c, &n_name) && read_bytes(&c, n_name, 1, &name) && read_i32(&c, &n_call) &&
             read_i32(&c, &n_value) && read_bytes(&c, n_value, sizeof(float), &values);
        if (ok) SL_TRY(add_entry(im, sl_span_make((const char *)name, (size_t)n_name), values, (uint64_t)n_value, 1));
    }
    if (ok && n_entry > 0) return SL_OK;
    return SL_FAIL(SL_BAD_FILE, "this is no importance matrix, neither GGUF nor the older .dat, or it is cut off");
}

// ---- files --------------------------------------------------------------------------------------

static sl_status parse(sl_importance *im, const uint8_t *data, size_t n_bytes) {
    if (n_bytes < 4 || memcmp(data, "GGUF", 4) != 0) SL_TRY(read_dat(im, data, n_bytes));
    else {
        sl_gguf *gguf;
        SL_TRY(sl_gguf_parse(&gguf, data, n_bytes, NULL));
        sl_status status = read_gguf(im, gguf);
        sl_gguf_close(gguf);
        SL_TRY(status);
    }
    return index_entries(im);
}

sl_status sl_importance_parse(sl_importance **out, const uint8_t *data, size_t n_bytes) {
    SL_TRY(sl_alloc(out, 1, sizeof **out, "importance matrix"));
    sl_status status = parse(*out, data, n_bytes);
    if (status == SL_OK) return SL_OK;
    sl_importance_close(*out);
    *out = NULL;
    return status;
}

sl_status sl_importance_open(sl_importance **out, const char *path) {
    sl_map map;
    *out = NULL;
    SL_TRY(sl_map_open(&map, path));
    sl_status status = sl_importance_parse(out, map.data, map.n_bytes);
    sl_map_close(&map);
    return status == SL_OK ? SL_OK : sl_fail_prefix(status, "%s", path);
}

void sl_importance_close(sl_importance *im) {
    if (!im) return;
    sl_name_index_deinit(&im->index);
    sl_arena_deinit(&im->arena);
    sl_free(im->entries);
    sl_free(im);
}

size_t sl_importance_n(const sl_importance *im) { return im->n; }

const float *sl_importance_find(const sl_importance *im, sl_span name, uint64_t *n) {
    const sl_name *found = sl_name_index_find(&im->index, name);
    *n = found ? im->entries[found->i].n : 0;
    return found ? im->entries[found->i].values : NULL;
}
