// SPDX-License-Identifier: MIT
//
// Sums of squares, in double, for each matrix of a layer. Embedding and output are left out, as llama-imatrix does by
// default: their mixes have bits enough.
#include "convert/collect.h"

typedef struct sums {
    char name[80];
    double *square; // (n_col) owned; NULL: nothing was seen
    uint32_t n_col;
    uint64_t n_row;
} sums;

struct sl_collector {
    sl_engine *engine; // owned
    sl_row *rows;      // (n_ctx) owned
    sums *sums;        // (n_tensors) owned; by the tensor's place in the file
    size_t n_tensors;
    uint32_t n_ctx, n_row_max, n_window;
    sl_status status; // of the visit
};

sl_status sl_collector_create(sl_collector **out, const sl_model *model, const sl_engine_options *options) {
    sl_engine_options o = *options;
    o.n_seq = 1, o.n_logit_max = 1, o.keep_inputs = true;
    o.n_row_max = SL_MIN(o.n_row_max, o.n_ctx);
    SL_TRY(sl_alloc(out, 1, sizeof **out, "collector"));
    sl_collector *c = *out;
    sl_status status;
    c->n_ctx = o.n_ctx, c->n_row_max = o.n_row_max;
    c->n_tensors = sl_gguf_n_tensors(model->gguf);
    SL_TRY_OUT(sl_alloc(&c->rows, o.n_ctx, sizeof *c->rows, "rows of a window"));
    SL_TRY_OUT(sl_alloc(&c->sums, c->n_tensors, sizeof *c->sums, "sums of inputs"));
    status = sl_engine_create(&c->engine, model, &o);
out:
    if (status != SL_OK) sl_collector_destroy(c), *out = NULL;
    return status;
}

void sl_collector_destroy(sl_collector *c) {
    if (!c) return;
    sl_engine_destroy(c->engine);
    for (size_t i = 0; c->sums && i < c->n_tensors; i++) sl_free(c->sums[i].square);
    sl_free(c->sums);
    sl_free(c->rows);
    sl_free(c);
}

static void add_row(void *user, const sl_plan_weight *weight, const float *row, uint32_t n_col) {
    sl_collector *c = user;
    if (strncmp(weight->name, "blk.", 4) != 0 || weight->source >= c->n_tensors || c->status != SL_OK) return;
    sums *s = &c->sums[weight->source];
    if (!s->square) {
        c->status = sl_alloc(&s->square, n_col, sizeof *s->square, "sums of inputs");
        if (c->status != SL_OK) return;
        snprintf(s->name, sizeof s->name, "%s", weight->name);
        s->n_col = n_col;
    }
    for (uint32_t i = 0; i < n_col; i++) s->square[i] += (double)row[i] * (double)row[i];
    s->n_row++;
}

sl_status sl_collector_add(sl_collector *c, const int32_t *ids, size_t n) {
    if (n < 1 || n > c->n_ctx) return SL_FAIL(SL_BAD_ARG, "a window has 1 .. %u ids, not %zu", c->n_ctx, n);
    SL_TRY(sl_engine_seq_truncate(c->engine, 0, 0));
    for (size_t at = 0; at < n; at += c->n_row_max) {
        size_t n_row = SL_MIN(n - at, (size_t)c->n_row_max);
        for (size_t i = 0; i < n_row; i++) c->rows[i] = (sl_row){ids[at + i], 0, (int32_t)(at + i), false};
        SL_TRY(sl_engine_step(c->engine, c->rows, n_row));
        SL_TRY(sl_engine_visit_inputs(c->engine, add_row, c));
        SL_TRY(c->status);
    }
    c->n_window++;
    return SL_OK;
}

// ---- the file -----------------------------------------------------------------------------------

// Tensors come in pairs: 2 k is the k-th matrix's sums, 2 k + 1 their count.
typedef struct writing {
    const sums **matrix; // (n) owned
    size_t n;
} writing;

static sl_status fill(void *user, size_t i, uint64_t off, void *out, size_t n_bytes) {
    const writing *w = user;
    const sums *s = w->matrix[i / 2];
    for (size_t k = 0; k < n_bytes / sizeof(float); k++) {
        double x = i % 2 ? (double)s->n_row : s->square[off / sizeof(float) + k];
        float f = (float)x;
        memcpy((char *)out + k * sizeof f, &f, sizeof f);
    }
    return SL_OK;
}

static sl_status declare(sl_gguf_writer *writer, const sums *s) {
    char name[96];
    uint64_t dim[2] = {s->n_col, 1}, one[2] = {1, 1};
    snprintf(name, sizeof name, "%s.in_sum2", s->name);
    SL_TRY(sl_gguf_writer_add_tensor(writer, name, SL_TYPE_F32, dim, 2));
    snprintf(name, sizeof name, "%s.counts", s->name);
    return sl_gguf_writer_add_tensor(writer, name, SL_TYPE_F32, one, 2);
}

sl_status sl_collector_write(const sl_collector *c, const char *path, const char *source) {
    writing w = {0};
    sl_gguf_writer *writer = NULL;
    sl_span text = sl_span_of(source);
    sl_status status;
    SL_TRY_OUT(sl_gguf_writer_create(&writer));
    SL_TRY_OUT(sl_alloc(&w.matrix, c->n_tensors, sizeof *w.matrix, "matrices to write"));
    SL_TRY_OUT(sl_gguf_writer_set_text(writer, "general.type", sl_span_of("imatrix")));
    SL_TRY_OUT(sl_gguf_writer_set_texts(writer, "imatrix.datasets", &text, 1));
    SL_TRY_OUT(sl_gguf_writer_set_u32(writer, "imatrix.chunk_count", c->n_window));
    SL_TRY_OUT(sl_gguf_writer_set_u32(writer, "imatrix.chunk_size", c->n_ctx));
    for (size_t i = 0; i < c->n_tensors; i++) {
        if (!c->sums[i].square) continue;
        w.matrix[w.n++] = &c->sums[i];
        SL_TRY_OUT(declare(writer, &c->sums[i]));
    }
    status = w.n ? sl_gguf_writer_write(writer, path, fill, &w)
                 : SL_FAIL(SL_BAD_ARG, "nothing was collected: the text has no whole window");
out:
    sl_free(w.matrix);
    sl_gguf_writer_destroy(writer);
    return status;
}
