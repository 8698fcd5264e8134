// SPDX-License-Identifier: MIT
//
// A step: check the rows, take their positions, run the program of the width class. The order makes
// failure harmless: all that can be refused is refused before anything is written, and positions
// that were taken are given back if the run fails.
#include <string.h>

#include "engine/engine_part.h"

// ---- rows ---------------------------------------------------------------------------------------

// Fills the step's arguments; rows of different sequences may be mixed, those of one sequence rise.
static sl_status check_row(sl_engine *e, const sl_row *row, int32_t i) {
    if (row->token < 0 || (uint32_t)row->token >= e->n_vocab)
        return SL_FAIL(SL_BAD_ARG, "row %d: token %d is not in 0 .. %u", i, row->token, e->n_vocab - 1);
    if (row->seq < 0 || row->seq >= e->kv.shape.n_seq)
        return SL_FAIL(SL_BAD_ARG, "row %d: sequence %d is not in 0 .. %d", i, row->seq, e->kv.shape.n_seq - 1);
    int32_t next = e->kv.length[row->seq] + e->n_more[row->seq];
    if (row->pos != next)
        return SL_FAIL(SL_BAD_ARG, "row %d: position %d, but the next of sequence %d is %d", i, row->pos, row->seq,
                       next);
    if (row->wants_logits) {
        if ((uint32_t)e->n_logit_wanted == e->n_logit_max)
            return SL_FAIL(SL_BAD_ARG, "more than %u rows want logits; raise n_logit_max", e->n_logit_max);
        e->logit_row[e->n_logit_wanted++] = i;
    }
    e->n_more[row->seq]++;
    e->token[i] = row->token, e->pos[i] = row->pos, e->slot[i] = row->seq;
    return SL_OK;
}

static sl_status check_rows(sl_engine *e, const sl_row *rows, size_t n_row) {
    if (n_row < 1 || n_row > e->n_row_max)
        return SL_FAIL(SL_BAD_ARG, "a step has 1 .. %u rows, not %zu", e->n_row_max, n_row);
    memset(e->n_more, 0, (size_t)e->kv.shape.n_seq * sizeof *e->n_more);
    e->n_logit_wanted = 0;
    for (size_t i = 0; i < n_row; i++) SL_TRY(check_row(e, &rows[i], (int32_t)i));
    return sl_kv_can_extend(&e->kv, e->n_more);
}

// ---- positions ----------------------------------------------------------------------------------

sl_status sl_engine_copy_block(sl_engine *e, int32_t cls, int32_t dst, int32_t src) {
    const sl_plan *plan = e->plans.plan[0];
    uint64_t to = (uint64_t)dst, from = (uint64_t)src;
    for (uint32_t i = 0; i < plan->n_kv; i++) {
        const sl_plan_kv *kv = &plan->kv[i];
        if (kv->cls != cls) continue;
        SL_TRY(e->backend->buf_copy(e->device, &e->kv_buf, kv->k_off + to * kv->k_blk_bytes, &e->kv_buf,
                                    kv->k_off + from * kv->k_blk_bytes, kv->k_blk_bytes));
        SL_TRY(e->backend->buf_copy(e->device, &e->kv_buf, kv->v_off + to * kv->v_blk_bytes, &e->kv_buf,
                                    kv->v_off + from * kv->v_blk_bytes, kv->v_blk_bytes));
    }
    return SL_OK;
}

static sl_status copy_open(sl_engine *e, const sl_plan_open *o, int32_t dst, int32_t src) {
    if (o->blk_bytes == 0) return SL_OK;
    return e->backend->buf_copy(e->device, &e->kv_buf, sl_plan_open_off(o, dst), &e->kv_buf, sl_plan_open_off(o, src),
                                o->blk_bytes);
}

sl_status sl_engine_copy_open(sl_engine *e, int32_t dst, int32_t src) {
    const sl_plan *plan = e->plans.plan[0];
    for (uint32_t i = 0; i < plan->n_kv; i++) {
        SL_TRY(copy_open(e, &plan->kv[i].k_open, dst, src));
        SL_TRY(copy_open(e, &plan->kv[i].v_open, dst, src));
    }
    return SL_OK;
}

static sl_status extend_seq(sl_engine *e, int32_t seq) {
    sl_kv_copies copies;
    SL_TRY(sl_kv_open(&e->kv, seq, &copies));
    sl_status status = SL_OK;
    for (int32_t c = 0; c < SL_KV_N_CLASS && status == SL_OK; c++)
        if (copies.cls[c].dst >= 0) status = sl_engine_copy_block(e, c, copies.cls[c].dst, copies.cls[c].src);
    sl_kv_opened(&e->kv, seq, copies, status == SL_OK);
    return status == SL_OK ? sl_kv_extend(&e->kv, seq, e->n_more[seq]) : status;
}

// Gives back what sequences 0 .. n_seq-1 have taken.
static void retract(sl_engine *e, int32_t n_seq) {
    for (int32_t seq = n_seq; seq-- > 0;)
        if (e->n_more[seq]) sl_kv_retract(&e->kv, seq, e->n_before[seq]);
}

// Open blocks for what the step adds to a sequence: its own for the first block and the last, and n_step and on of the
// step's for those between.
static void open_seq(sl_engine *e, int32_t seq, int32_t *n_step) {
    const int32_t blk_len = e->kv.shape.blk_len, n = e->kv.length[seq];
    int32_t n_between = (n + e->n_more[seq] - 1) / blk_len - n / blk_len - 1;
    e->first_open[seq] = sl_kv_begin_open(&e->kv, seq, e->n_more[seq]);
    e->step_open[seq] = e->kv.shape.n_seq * SL_KV_OPEN_SLOTS + *n_step;
    *n_step += SL_MAX(n_between, 0);
}

static int32_t open_of(const sl_engine *e, int32_t seq, int32_t pos) {
    const int32_t blk_len = e->kv.shape.blk_len, blk = pos / blk_len, n = e->n_before[seq];
    const int32_t first = n / blk_len, last = (n + e->n_more[seq] - 1) / blk_len;
    if (blk > first && blk < last) return e->step_open[seq] + blk - first - 1;
    return SL_KV_OPEN_SLOTS * seq + (blk == first ? e->first_open[seq] : !e->first_open[seq]);
}

// Where in its sequence, which has been extended, a row is.
static void place_row(sl_engine *e, size_t i) {
    int32_t seq = e->slot[i], pos = e->pos[i], gone = sl_kv_gone(&e->kv, seq);
    sl_kv_tokens(&e->kv, seq)[pos - gone] = e->token[i]; // nobody who has let go of something writes the first block
    if (e->kv.shape.opens) e->open[i] = open_of(e, seq, pos);
    if (!e->cell) return;
    int32_t hidden = sl_kv_hidden(&e->kv, pos);
    e->cell[i] = pos - hidden, e->skip[i] = (hidden - gone) / e->kv.shape.blk_len;
}

static sl_status extend(sl_engine *e, size_t n_row) {
    int32_t n_step = 0;
    for (int32_t seq = 0; seq < e->kv.shape.n_seq; seq++) {
        if (e->n_more[seq] == 0) continue;
        e->n_before[seq] = e->kv.length[seq];
        if (e->kv.shape.opens) open_seq(e, seq, &n_step);
        sl_status status = extend_seq(e, seq);
        if (status != SL_OK) return retract(e, seq), status;
    }
    for (size_t i = 0; i < n_row; i++) place_row(e, i);
    return SL_OK;
}

static void commit(sl_engine *e) {
    for (int32_t seq = 0; seq < e->kv.shape.n_seq; seq++)
        if (e->n_more[seq]) sl_kv_commit(&e->kv, seq);
}

// ---- the step -----------------------------------------------------------------------------------

// A NaN or an infinity among n logits? By bits, so that the loop is a few vector instructions and costs less than a
// thousandth of the product that made them.
static bool all_finite(const char *logits, uint32_t n) {
    const uint32_t exponent = 0x7f800000;
    uint32_t n_bad = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, logits + i * sizeof bits, sizeof bits);
        n_bad += (bits & exponent) == exponent;
    }
    return n_bad == 0;
}

// Broken weights must not end in a silent stream of tokens.
static sl_status check_logits(sl_engine *e, int32_t n_logit) {
    bool finite = true;
    for (int32_t i = 0; i < n_logit && finite; i++) {
        float n_bad = 0;
        if (e->best) memcpy(&n_bad, e->best + (size_t)i * e->best_stride + sizeof n_bad, sizeof n_bad);
        finite = e->best ? n_bad == 0 : all_finite(e->logits + (size_t)i * e->logits_stride, e->n_vocab);
    }
    if (finite) return SL_OK;
    return SL_FAIL(SL_BAD_FILE, "the model computes NaN or infinite logits, so its weights are broken; load it with "
                                "--check to see which tensor");
}

// Rows of a value that the caller reads: where they lie, if the CPU sees that, or a copy.
static sl_status read_rows(sl_engine *e, const char **out, const sl_value *v, char *copy, int32_t n_row) {
    *out = copy;
    if (e->workspace.host) return *out = (const char *)e->workspace.host + v->off, SL_OK;
    return e->backend->buf_read(e->device, copy, &e->workspace, v->off, (size_t)n_row * v->row_bytes);
}

static sl_status run(sl_engine *e, int width, size_t n_row) {
    sl_step step = {
        .n_row = (int32_t)n_row,
        .n_logit = e->n_logit_wanted,
        .token = e->token,
        .pos = e->pos,
        .slot = e->slot,
        .logit_row = e->logit_row,
        .blk_table = e->kv.cls[0].table,
        .blk_stride = e->kv.n_blk_seq,
        .window_table = e->kv.cls[1].table,
        .open = e->open,
        .cell = e->cell,
        .skip = e->skip,
    };
    const sl_plan *plan = e->plans.plan[width];
    e->n_logit = 0; // those of the last step are overwritten now
    e->width = width, e->n_row = step.n_row;
    SL_TRY(e->backend->run(e->program[width], &step));
    e->logits = e->best = NULL;
    e->logits_stride = plan->value[plan->logits].row_bytes;
    if (plan->best == SL_NO_VALUE) {
        SL_TRY(read_rows(e, &e->logits, &plan->value[plan->logits], e->logits_copy, step.n_logit));
    } else {
        e->best_stride = plan->value[plan->best].row_bytes;
        SL_TRY(read_rows(e, &e->best, &plan->value[plan->best], e->best_copy, step.n_logit));
    }
    SL_TRY(check_logits(e, step.n_logit));
    e->n_logit = step.n_logit;
    return SL_OK;
}

const float *sl_engine_logits(sl_engine *e, size_t i) {
    if (i >= (size_t)e->n_logit) return NULL;
    const sl_plan *plan = e->plans.plan[e->width];
    if (!e->logits && read_rows(e, &e->logits, &plan->value[plan->logits], e->logits_copy, e->n_logit) != SL_OK)
        return e->logits = NULL, NULL;
    return (const float *)(const void *)(e->logits + i * e->logits_stride);
}

int32_t sl_engine_best(const sl_engine *e, size_t i) {
    float best;
    if (i >= (size_t)e->n_logit || !e->best) return -1;
    memcpy(&best, e->best + i * e->best_stride, sizeof best);
    return (int32_t)best;
}

static sl_status extend_and_run(sl_engine *e, size_t n_row) {
    int width = 0;
    while (n_row > e->plans.plan[width]->shape.n_row_max) width++;
    SL_TRY(extend(e, n_row));
    sl_status status = run(e, width, n_row);
    if (status != SL_OK) retract(e, e->kv.shape.n_seq);
    else commit(e);
    return status;
}

sl_status sl_engine_step(sl_engine *e, const sl_row *rows, size_t n_row) {
    SL_TRY(check_rows(e, rows, n_row));
    uint64_t n_alloc = sl_alloc_count();
    sl_alloc_seal(1);
    sl_status status = extend_and_run(e, n_row);
    sl_alloc_seal(0);
    e->stats.n_alloc += sl_alloc_count() - n_alloc;
    if (status != SL_OK) return status;
    e->stats.n_step++;
    e->stats.n_row += n_row;
    return SL_OK;
}
