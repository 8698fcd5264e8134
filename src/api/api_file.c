// SPDX-License-Identifier: MIT
//
// Files: what is in a GGUF file, of whatever architecture, as text for people or as JSON for
// programs. The JSON is valid for any file: text is escaped, broken UTF-8 replaced, numbers that
// JSON lacks become null.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/api_part.h"
#include "base/buf.h"

enum { SHOWN_TEXT_BYTES = 100, NAME_WIDTH = 44 }; // in the text for people

sluice_status sluice_file_open(sluice_file **out, const char *path) {
    API_NEED(out);
    *out = NULL;
    API_NEED(path);
    sluice_file *f;
    sl_status status = sl_alloc(&f, 1, sizeof *f, "file");
    if (status != SL_OK) return api_fail(status);
    status = sl_gguf_open(&f->gguf, path, &(sl_gguf_options){.allow_no_data = true});
    if (status != SL_OK) sluice_file_close(&f);
    *out = f;
    return api_fail(status);
}

void sluice_file_close(sluice_file **file) {
    if (!file || !*file) return;
    sl_gguf_close((*file)->gguf);
    sl_free(*file);
    *file = NULL;
}

// ---- values -------------------------------------------------------------------------------------

static void print_float(sl_buf *out, double x, bool is_double) {
    if (!isfinite(x)) sl_buf_text(out, "null");
    else sl_buf_printf(out, is_double ? "%.17g" : "%.9g",
                       x); // enough digits to read back the same number
}

// Names are plain words in all files but hostile ones; only those are quoted.
static void print_name(sl_buf *out, sl_span name) {
    size_t start = out->n_bytes;
    bool plain = name.n_bytes > 0;
    for (size_t i = 0; i < name.n_bytes; i++) plain = plain && name.data[i] > ' ' && name.data[i] < 0x7f;
    sl_buf_text(out, "  ");
    if (plain) sl_buf_append(out, name.data, name.n_bytes);
    else sl_buf_json(out, name);
    size_t width = out->n_bytes - start;
    sl_buf_printf(out, "%*s", width < NAME_WIDTH ? (int)(NAME_WIDTH - width) : 1, "");
}

// Element i of a value that holds no text.
static sl_status print_number(sl_buf *out, const sl_gguf_kv *kv, uint64_t i) {
    bool truth;
    double x;
    int64_t n;
    uint64_t u;
    switch (kv->elem_kind) {
    case SL_GGUF_BOOL:
        SL_TRY(sl_gguf_read_bool(kv, i, &truth));
        sl_buf_text(out, truth ? "true" : "false");
        return SL_OK;
    case SL_GGUF_F32:
    case SL_GGUF_F64:
        SL_TRY(sl_gguf_read_float(kv, i, &x));
        print_float(out, x, kv->elem_kind == SL_GGUF_F64);
        return SL_OK;
    case SL_GGUF_U64: // may be beyond what read_int gives
        memcpy(&u, kv->data + i * sizeof u, sizeof u);
        sl_buf_printf(out, "%" PRIu64, u);
        return SL_OK;
    default:
        SL_TRY(sl_gguf_read_int(kv, i, &n, INT64_MIN, INT64_MAX));
        sl_buf_printf(out, "%" PRId64, n);
        return SL_OK;
    }
}

// For people, a long text is cut, not inside a character.
static void print_text(sl_buf *out, sl_span text, bool json) {
    size_t n = text.n_bytes;
    if (!json && n > SHOWN_TEXT_BYTES) {
        n = SHOWN_TEXT_BYTES;
        while (n > 0 && ((unsigned char)text.data[n] & 0xc0) == 0x80) n--;
    }
    sl_buf_json(out, sl_span_make(text.data, n));
    if (n < text.n_bytes) sl_buf_printf(out, "... (%zu bytes)", text.n_bytes);
}

static sl_status print_texts(sl_buf *out, const sl_gguf_kv *kv, uint64_t n_shown, bool json) {
    sl_span *texts;
    SL_TRY(sl_alloc(&texts, kv->n, sizeof *texts, "texts of an array"));
    sl_status status = sl_gguf_read_texts(kv, texts);
    for (uint64_t i = 0; status == SL_OK && i < n_shown; i++) {
        if (i) sl_buf_text(out, ", ");
        print_text(out, texts[i], json);
    }
    sl_free(texts);
    return status;
}

static sl_status print_value(sl_buf *out, const sl_gguf_kv *kv, uint64_t max_array, bool json) {
    if (kv->kind == SL_GGUF_STRING) {
        sl_span text;
        SL_TRY(sl_gguf_read_text(kv, &text));
        print_text(out, text, json);
        return SL_OK;
    }
    if (kv->kind != SL_GGUF_ARRAY) return print_number(out, kv, 0);
    uint64_t n_shown = max_array ? SL_MIN(kv->n, max_array) : kv->n;
    if (kv->elem_kind == SL_GGUF_ARRAY) n_shown = 0; // arrays of arrays have no known use; their count is shown
    sl_buf_text(out, "[");
    if (kv->elem_kind == SL_GGUF_STRING) SL_TRY(print_texts(out, kv, n_shown, json));
    else
        for (uint64_t i = 0; i < n_shown; i++) {
            if (i) sl_buf_text(out, ", ");
            SL_TRY(print_number(out, kv, i));
        }
    if (!json && n_shown < kv->n) sl_buf_text(out, n_shown ? ", ..." : "...");
    sl_buf_text(out, "]");
    return SL_OK;
}

// ---- the whole file -----------------------------------------------------------------------------

static sl_status describe_json(const sl_gguf *g, sl_buf *out, size_t max_array) {
    sl_buf_text(out, "{\"path\": ");
    sl_buf_json(out, sl_span_of(sl_gguf_path(g)));
    sl_buf_printf(out, ", \"version\": %u, \"n_files\": %u, \"file_bytes\": %" PRIu64 ", \"alignment\": %" PRIu64,
                  sl_gguf_version(g), sl_gguf_n_files(g), sl_gguf_file_bytes(g), sl_gguf_alignment(g));
    sl_buf_text(out, ",\n\"metadata\": {");
    for (size_t i = 0; i < sl_gguf_n_kv(g); i++) {
        const sl_gguf_kv *kv = sl_gguf_kv_at(g, i);
        sl_buf_text(out, i ? ",\n" : "\n");
        sl_buf_json(out, kv->key);
        sl_buf_printf(out, ": {\"type\": \"%s\", ", sl_gguf_kind_name(kv->kind));
        if (kv->kind == SL_GGUF_ARRAY)
            sl_buf_printf(out, "\"of\": \"%s\", \"n\": %" PRIu64 ", ", sl_gguf_kind_name(kv->elem_kind), kv->n);
        sl_buf_text(out, "\"value\": ");
        SL_TRY(print_value(out, kv, max_array, true));
        sl_buf_text(out, "}");
    }
    sl_buf_text(out, "},\n\"tensors\": [");
    for (size_t i = 0; i < sl_gguf_n_tensors(g); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(g, i);
        sl_buf_text(out, i ? ",\n{\"name\": " : "\n{\"name\": ");
        sl_buf_json(out, t->name);
        sl_buf_printf(out, ", \"type\": \"%s\", \"shape\": [", sl_type_name((sl_type)t->type_id));
        for (uint32_t d = 0; d < t->n_dims; d++) sl_buf_printf(out, d ? ", %" PRIu64 : "%" PRIu64, t->dim[d]);
        sl_buf_printf(out, "], \"n_bytes\": %" PRIu64 ", \"file\": %u, \"file_off\": %" PRIu64 "}", t->n_bytes, t->file,
                      t->file_off);
    }
    sl_buf_text(out, "]}\n");
    return SL_OK;
}

static sl_status describe_text(const sl_gguf *g, sl_buf *out, size_t max_array) {
    sl_buf_text(out, "file ");
    sl_buf_json(out, sl_span_of(sl_gguf_path(g)));
    sl_buf_printf(out, ": GGUF version %u, %" PRIu64 " bytes in %u file%s, alignment %" PRIu64 "\n\nmetadata (%zu)\n",
                  sl_gguf_version(g), sl_gguf_file_bytes(g), sl_gguf_n_files(g), sl_gguf_n_files(g) == 1 ? "" : "s",
                  sl_gguf_alignment(g), sl_gguf_n_kv(g));
    for (size_t i = 0; i < sl_gguf_n_kv(g); i++) {
        const sl_gguf_kv *kv = sl_gguf_kv_at(g, i);
        print_name(out, kv->key);
        sl_buf_text(out, sl_gguf_kind_name(kv->elem_kind));
        if (kv->kind == SL_GGUF_ARRAY) sl_buf_printf(out, " x %" PRIu64, kv->n);
        sl_buf_text(out, "  ");
        SL_TRY(print_value(out, kv, max_array, false));
        sl_buf_text(out, "\n");
    }
    sl_buf_printf(out, "\ntensors (%zu)\n", sl_gguf_n_tensors(g));
    for (size_t i = 0; i < sl_gguf_n_tensors(g); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(g, i);
        print_name(out, t->name);
        sl_buf_printf(out, "%-8s %13" PRIu64 " bytes  ", sl_type_name((sl_type)t->type_id), t->n_bytes);
        for (uint32_t d = 0; d < t->n_dims; d++) sl_buf_printf(out, d ? " x %" PRIu64 : "%" PRIu64, t->dim[d]);
        sl_buf_text(out, "\n");
    }
    return SL_OK;
}

sluice_status sluice_file_describe(const sluice_file *file, bool json, size_t max_array, char **text) {
    API_NEED(text);
    *text = NULL;
    API_NEED(file);
    sl_buf out = {0};
    sl_status status = json ? describe_json(file->gguf, &out, max_array) : describe_text(file->gguf, &out, max_array);
    if (status == SL_OK) status = sl_buf_take(&out, text, NULL);
    sl_buf_deinit(&out);
    return api_fail(status);
}
