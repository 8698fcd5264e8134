// SPDX-License-Identifier: MIT
//
// The writer asks for bytes in order; they come from a slab of whole rows that all threads fill at once. Each thread
// has room for one piece of a row as floats, so memory does not grow with the model.
#include "convert/quantize.h"

#include <stdatomic.h>

#include "base/half.h"
#include "base/size.h"
#include "convert/importance.h"
#include "model/weights.h"
#include "os/os.h"
#include "quant/quant.h"

enum {
    SLAB_BYTES = 4 << 20, // of output; a row that is longer gets a longer slab
    PIECE = 4096,         // elements; a multiple of every block length
    TAKE = 16384,         // elements that a thread takes at once
    QUANT_VERSION = 2,    // general.quantization_version: of the block layouts
    NO_TENSOR = -1,
};

typedef struct matrix { // the tensor being converted
    const sl_gguf_tensor *t;
    sl_type from, to;
    uint64_t n_row, n_col, in_row_bytes, out_row_bytes;
    const float *importance; // (dim[2] * dim[3], n_col), or (n_col) for all; NULL
    bool shared_importance;
} matrix;

typedef struct worker {
    struct job *job;
    sl_thread *thread; // NULL on the calling thread
    float *x;          // (PIECE) owned
    uint64_t bad_at;   // first element that cannot be encoded, UINT64_MAX: none
    float bad;
} worker;

typedef struct job {
    const sl_gguf *gguf;
    const sl_quantize_options *options;
    sl_quantize_report *report;
    sl_importance *importance; // owned
    worker *workers;           // (n_thread) owned
    uint8_t *slab;             // owned
    uint64_t slab_cap, slab_off, slab_bytes;
    int64_t slab_tensor;
    matrix m;
    uint64_t row_end; // of the slab
    _Atomic uint64_t next_row;
    uint64_t n_read;
} job;

// ---- threads ------------------------------------------------------------------------------------

// The largest value that the type can say; only binary16 is narrower than float.
static float limit_of(sl_type type) {
    return type == SL_TYPE_F32 || type == SL_TYPE_BF16 || type == SL_TYPE_MXFP4 ? 0x1.fffffep127f : 65504;
}

// Looks at the sizes of n floats as integers, for then a NaN is large.
static bool all_fit(const float *x, size_t n, float limit) {
    int32_t most = 0, bits;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, &x[i], sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    return (uint32_t)most <= sl_f32_bits(limit);
}

static void note_bad(worker *w, uint64_t at, size_t n, float limit) {
    for (size_t i = 0; i < n; i++) {
        if (all_fit(&w->x[i], 1, limit)) continue;
        if (at + i < w->bad_at) w->bad_at = at + i, w->bad = w->x[i];
        return;
    }
}

static void convert_row(worker *w, uint64_t row) {
    const matrix *m = &w->job->m;
    const sl_type_info *from = sl_type_find(m->from), *to = sl_type_find(m->to);
    const uint8_t *in = m->t->data + row * m->in_row_bytes;
    uint8_t *out = w->job->slab + (row * m->out_row_bytes - w->job->slab_off);
    const float *importance = m->importance;
    float limit = limit_of(m->to);
    if (importance && !m->shared_importance) importance += row / m->t->dim[1] * m->n_col;
    for (uint64_t col = 0; col < m->n_col; col += PIECE) {
        size_t n = (size_t)SL_MIN(m->n_col - col, (uint64_t)PIECE);
        sl_quant_decode(m->from, w->x, in + sl_type_row_bytes(from, col), n);
        if (!all_fit(w->x, n, limit)) note_bad(w, row * m->n_col + col, n, limit);
        else sl_quant_fit(m->to, out + sl_type_row_bytes(to, col), w->x, importance ? importance + col : NULL, n);
    }
}

static void work(void *arg) {
    worker *w = arg;
    job *j = w->job;
    uint64_t n_take = SL_MAX(TAKE / j->m.n_col, (uint64_t)1);
    for (;;) {
        uint64_t row = atomic_fetch_add(&j->next_row, n_take);
        if (row >= j->row_end) return;
        for (uint64_t end = SL_MIN(row + n_take, j->row_end); row < end; row++) convert_row(w, row);
    }
}

static sl_status check_workers(const job *j) {
    const worker *first = &j->workers[0];
    for (int i = 1; i < j->options->n_thread; i++)
        if (j->workers[i].bad_at < first->bad_at) first = &j->workers[i];
    if (first->bad_at == UINT64_MAX) return SL_OK;
    const sl_span name = j->m.t->name;
    if (all_fit(&first->bad, 1, 0x1.fffffep127f))
        return SL_FAIL(
            SL_BAD_FILE, "the tensor '%.*s' holds %g at element %llu, more than the 16-bit numbers of %s can",
            (int)name.n_bytes, name.data, (double)first->bad, (unsigned long long)first->bad_at, sl_type_name(j->m.to));
    return SL_FAIL(SL_BAD_FILE, "the tensor '%.*s' holds a NaN or an infinity at element %llu", (int)name.n_bytes,
                   name.data, (unsigned long long)first->bad_at);
}

// Rows [row, row_end) into the slab. A thread that cannot be started leaves its work to the others.
static sl_status convert_rows(job *j, uint64_t row, uint64_t row_end) {
    atomic_store(&j->next_row, row);
    j->row_end = row_end;
    for (int i = 1; i < j->options->n_thread; i++)
        if (sl_thread_create(&j->workers[i].thread, work, &j->workers[i], "quantize") != SL_OK) break;
    work(&j->workers[0]);
    for (int i = 1; i < j->options->n_thread; i++) {
        sl_thread_join(j->workers[i].thread);
        j->workers[i].thread = NULL;
    }
    return check_workers(j);
}

// ---- the writer's questions ---------------------------------------------------------------------

static sl_status note_progress(job *j, uint64_t n_bytes) {
    const sl_quantize_options *o = j->options;
    j->n_read += n_bytes;
    if (!o->progress || !o->progress(o->user, j->n_read, j->report->n_in_bytes)) return SL_OK;
    return SL_FAIL(SL_CANCELLED, "quantising was stopped");
}

static bool is_quantised(sl_type type) { return sl_type_find(type)->blk_len > 1; }

static sl_status find_importance(const job *j, const sl_gguf_tensor *t, sl_type to, const float **out, bool *shared) {
    uint64_t n, n_mat = t->dim[2] * t->dim[3];
    *out = NULL;
    if (!j->importance || !is_quantised(to)) return SL_OK;
    const float *found = sl_importance_find(j->importance, t->name, &n);
    if (found && n != t->dim[0] * n_mat && n != t->dim[0])
        return SL_FAIL(SL_BAD_INPUT,
                       "the importance of '%.*s' has %llu columns and the tensor has %llu: it is of another model",
                       (int)t->name.n_bytes, t->name.data, (unsigned long long)n, (unsigned long long)t->dim[0]);
    *out = found, *shared = n == t->dim[0];
    return SL_OK;
}

static sl_status begin_tensor(job *j, size_t i) {
    const sl_gguf_tensor *t = sl_gguf_tensor_at(j->gguf, i);
    matrix *m = &j->m;
    *m = (matrix){.t = t, .from = (sl_type)t->type_id, .to = j->report->choice[i].type, .n_col = t->dim[0]};
    m->n_row = t->dim[1] * t->dim[2] * t->dim[3];
    m->in_row_bytes = sl_type_row_bytes(sl_type_find(m->from), m->n_col);
    m->out_row_bytes = sl_type_row_bytes(sl_type_find(m->to), m->n_col);
    j->slab_tensor = (int64_t)i, j->slab_off = j->slab_bytes = 0;
    if (m->from == m->to) return sl_weights_check_tensor(t);
    return find_importance(j, t, m->to, &m->importance, &m->shared_importance);
}

// Makes the slab begin with the row that holds byte `off`.
static sl_status fill_slab(job *j, uint64_t off) {
    const matrix *m = &j->m;
    uint64_t n = SL_MAX(SLAB_BYTES / m->out_row_bytes, (uint64_t)1), row = off / m->out_row_bytes;
    n = SL_MIN(n, m->n_row - row);
    if (n * m->out_row_bytes > j->slab_cap) {
        sl_free(j->slab);
        j->slab = NULL, j->slab_cap = 0;
        SL_TRY(sl_alloc(&j->slab, n * m->out_row_bytes, 1, "converted rows"));
        j->slab_cap = n * m->out_row_bytes;
    }
    j->slab_off = row * m->out_row_bytes, j->slab_bytes = n * m->out_row_bytes;
    SL_TRY(convert_rows(j, row, row + n));
    if (row + n == m->n_row) sl_gguf_tensor_release(j->gguf, m->t);
    return note_progress(j, n * m->in_row_bytes);
}

static sl_status fill(void *user, size_t i, uint64_t off, void *out, size_t n_bytes) {
    job *j = user;
    uint8_t *to = out;
    if (j->slab_tensor != (int64_t)i) SL_TRY(begin_tensor(j, i));
    if (j->m.from == j->m.to) {
        memcpy(to, j->m.t->data + off, n_bytes);
        return note_progress(j, n_bytes);
    }
    while (n_bytes > 0) {
        if (off < j->slab_off || off - j->slab_off >= j->slab_bytes) SL_TRY(fill_slab(j, off));
        size_t n = (size_t)SL_MIN((uint64_t)n_bytes, j->slab_off + j->slab_bytes - off);
        memcpy(to, j->slab + (off - j->slab_off), n);
        to += n, off += n, n_bytes -= n;
    }
    return SL_OK;
}

// ---- the whole file -----------------------------------------------------------------------------

static sl_status count_all(job *j) {
    sl_quantize_report *r = j->report;
    size_t n = sl_gguf_n_tensors(j->gguf);
    SL_TRY(sl_alloc(&r->out_bytes, n, sizeof *r->out_bytes, "sizes of tensors"));
    for (size_t i = 0; i < n; i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(j->gguf, i);
        const sl_mix_choice *c = &r->choice[i];
        const float *importance;
        bool shared;
        uint64_t n_row = t->dim[1] * t->dim[2] * t->dim[3], n_bytes;
        if (!sl_size_mul(&n_bytes, n_row, sl_type_row_bytes(sl_type_find(c->type), t->dim[0])) ||
            !sl_size_add(&r->n_out_bytes, r->n_out_bytes, n_bytes))
            return SL_FAIL(SL_BAD_FILE, "the tensors are larger than any file");
        r->out_bytes[i] = n_bytes;
        r->n_in_bytes += t->n_bytes;
        r->n_params += n_row * t->dim[0];
        if (c->type == (sl_type)t->type_id) continue;
        r->n_requantised += is_quantised((sl_type)t->type_id);
        SL_TRY(find_importance(j, t, c->type, &importance, &shared));
        // of these two no importance is ever collected
        bool never = sl_span_is(t->name, "token_embd.weight") || sl_span_is(t->name, "output.weight");
        r->n_without_importance += j->importance && !importance && !never && is_quantised(c->type);
    }
    return SL_OK;
}

static sl_status set_metadata(const job *j, sl_gguf_writer *writer) {
    for (size_t i = 0; i < sl_gguf_n_kv(j->gguf); i++)
        SL_TRY(sl_gguf_writer_copy_kv(writer, sl_gguf_kv_at(j->gguf, i)));
    SL_TRY(sl_gguf_writer_set_u32(writer, "general.quantization_version", QUANT_VERSION));
    SL_TRY(sl_gguf_writer_set_u32(writer, "general.file_type", j->options->request.mix->file_type));
    if (!j->importance) return SL_OK;
    SL_TRY(sl_gguf_writer_set_text(writer, "quantize.imatrix.file", sl_span_of(j->options->imatrix_path)));
    return sl_gguf_writer_set_u32(writer, "quantize.imatrix.entries_count", (uint32_t)sl_importance_n(j->importance));
}

static sl_status write_file(job *j, const char *out_path) {
    sl_gguf_writer *writer;
    char name[80];
    SL_TRY(sl_gguf_writer_create(&writer));
    sl_status status;
    SL_TRY_OUT(set_metadata(j, writer));
    for (size_t i = 0; i < sl_gguf_n_tensors(j->gguf); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(j->gguf, i);
        snprintf(name, sizeof name, "%.*s", (int)t->name.n_bytes, t->name.data);
        SL_TRY_OUT(sl_gguf_writer_add_tensor(writer, name, j->report->choice[i].type, t->dim, t->n_dims));
    }
    status = sl_gguf_writer_write(writer, out_path, fill, j);
out:
    sl_gguf_writer_destroy(writer);
    return status;
}

static sl_status take_workers(job *j) {
    SL_TRY(sl_alloc(&j->workers, (size_t)j->options->n_thread, sizeof *j->workers, "threads"));
    for (int i = 0; i < j->options->n_thread; i++) {
        j->workers[i].job = j, j->workers[i].bad_at = UINT64_MAX;
        SL_TRY(sl_alloc(&j->workers[i].x, PIECE, sizeof(float), "a piece of a row"));
    }
    return SL_OK;
}

static sl_status run(job *j, const char *out_path) {
    const sl_quantize_options *o = j->options;
    sl_mix_request request = o->request;
    if (o->imatrix_path) SL_TRY(sl_importance_open(&j->importance, o->imatrix_path));
    request.has_imatrix = j->importance != NULL;
    if (!j->importance && strcmp(request.mix->name, "Q2_K_S") == 0)
        return SL_FAIL(SL_BAD_ARG, "Q2_K_S without an importance matrix would be of no use; make one with imatrix");
    if (!o->dry_run && sl_gguf_reads(j->gguf, out_path))
        return SL_FAIL(SL_BAD_ARG, "%s is read; the result must go into another file", out_path);
    SL_TRY(sl_mix_choose(&j->report->choice, j->gguf, &request));
    SL_TRY(count_all(j));
    if (o->dry_run) return SL_OK;
    SL_TRY(take_workers(j));
    return write_file(j, out_path);
}

sl_status sl_quantize(sl_quantize_report *out, const sl_gguf *gguf, const char *out_path,
                      const sl_quantize_options *options) {
    job j = {.gguf = gguf, .options = options, .report = out, .slab_tensor = NO_TENSOR};
    uint64_t start = sl_clock_ns();
    *out = (sl_quantize_report){.mix = options->request.mix->name, .n_thread = options->n_thread};
    sl_status status = run(&j, out_path);
    out->seconds = (double)(sl_clock_ns() - start) * 1e-9;
    for (int i = 0; j.workers && i < options->n_thread; i++) sl_free(j.workers[i].x);
    sl_free(j.workers);
    sl_free(j.slab);
    sl_importance_close(j.importance);
    if (status != SL_OK) sl_quantize_report_deinit(out);
    return status;
}

void sl_quantize_report_deinit(sl_quantize_report *report) {
    sl_free(report->choice);
    sl_free(report->out_bytes);
    *report = (sl_quantize_report){0};
}
