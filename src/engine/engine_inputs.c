// SPDX-License-Identifier: MIT
//
// Looking at what the matrix products of a step have read. Nothing is hooked into the step: an engine that is asked to
// keeps those values in its workspace (plan/layout.c), on whatever backend, and they are read when it is over.
#include "engine/engine_part.h"

typedef struct reader {
    sl_engine *e;
    uint8_t *copy; // a row out of a workspace that the CPU cannot see
    float *row;    // decoded
} reader;

// hi, lo, scales: see SL_VALUE_ACT16 in plan/ir.h.
static void decode_act16(float *out, const uint8_t *row, uint32_t n_col) {
    uint32_t n_pad = (n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN * SL_ACT_BLK_LEN;
    const int8_t *hi = (const int8_t *)row, *lo = hi + n_pad;
    const float *d = (const float *)(const void *)(lo + n_pad);
    for (uint32_t i = 0; i < n_col; i++) out[i] = d[i / SL_ACT_BLK_LEN] * (float)(SL_ACT_BASE * hi[i] + lo[i]);
}

static sl_status read_row(const reader *r, const sl_value *v, uint32_t i, const float **out) {
    uint64_t off = v->off + i * v->row_bytes;
    const uint8_t *bytes = r->copy;
    if (r->e->workspace.host) bytes = (const uint8_t *)r->e->workspace.host + off;
    else SL_TRY(r->e->backend->buf_read(r->e->device, r->copy, &r->e->workspace, off, v->row_bytes));
    *out = (const float *)(const void *)bytes;
    if (v->kind == SL_VALUE_ACT16) decode_act16(r->row, bytes, v->n_col), *out = r->row;
    return SL_OK;
}

static sl_status visit_op(const reader *r, const sl_plan *plan, const sl_op *op, sl_engine_visit *visit, void *user) {
    const sl_value *v = &plan->value[op->in[0]];
    int32_t n_row = v->logit_rows ? r->e->n_logit : r->e->n_row;
    for (int32_t i = 0; i < n_row; i++) {
        const float *row;
        SL_TRY(read_row(r, v, (uint32_t)i, &row));
        visit(user, &plan->weight[op->weight[0]], row, v->n_col);
    }
    return SL_OK;
}

sl_status sl_engine_visit_inputs(sl_engine *e, sl_engine_visit *visit, void *user) {
    const sl_plan *plan = e->plans.plan[e->width];
    reader r = {.e = e};
    uint64_t row_bytes = 1;
    uint32_t n_col = 1;
    sl_status status;
    if (!plan->shape.keep_inputs || e->n_row == 0)
        return SL_FAIL(SL_BAD_ARG, "the engine was not made to keep inputs, or has made no step");
    for (uint32_t i = 0; i < plan->n_value; i++) {
        row_bytes = SL_MAX(row_bytes, plan->value[i].row_bytes);
        n_col = SL_MAX(n_col, plan->value[i].n_col);
    }
    SL_TRY_OUT(sl_alloc(&r.copy, row_bytes, 1, "a row of the workspace"));
    SL_TRY_OUT(sl_alloc(&r.row, n_col, sizeof *r.row, "a row of inputs"));
    for (uint32_t i = 0; i < plan->n_op && status == SL_OK; i++)
        if (plan->op[i].code == SL_OP_MATMUL || plan->op[i].code == SL_OP_MATMUL_ADD)
            status = visit_op(&r, plan, &plan->op[i], visit, user);
out:
    sl_free(r.copy);
    sl_free(r.row);
    return status;
}
