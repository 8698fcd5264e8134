// SPDX-License-Identifier: MIT
//
// Plans of small models for tests, and a run of a plan without numbers: memory holds labels, and
// the ops between two barriers run in any order.
#ifndef SL_TESTS_PLAN_RUN_H
#define SL_TESTS_PLAN_RUN_H

#include "model_file.h"
#include "plan/plan.h"

static inline model_recipe quantised(const char *arch, sl_type type) {
    model_recipe r = recipe(arch);
    r.type = type;
    return r;
}

static const sl_plan_shape shape8 = {.n_row_max = 8,
                                     .n_logit_max = 3,
                                     .n_ctx = 64,
                                     .n_slot = 2,
                                     .n_kv_blk = 5,
                                     .type_k = SL_TYPE_F16,
                                     .type_v = SL_TYPE_F32};

static inline sl_plan *plan_of(const model_recipe *r, uint32_t fusions) {
    sl_model *m = make_model(r);
    sl_plan *p;
    sl_plan_options options = {.shape = shape8, .fusions = fusions};
    REQUIRE_OK(sl_plan_create(&p, m, &options), sl_error_text());
    sl_model_close(m); // a plan borrows nothing
    return p;
}

static inline uint32_t n_rows(const sl_plan *p, const sl_value *v) {
    return v->logit_rows ? p->shape.n_logit_max : p->shape.n_row_max;
}

// ---- running a plan without numbers -------------------------------------------------------------

// Memory as labels: each 64 bytes hold the id of the value last written there.
typedef struct tags {
    const sl_plan *plan;
    uint16_t cell[1 << 16];
    bool kv_written[64];
    bool ok;
} tags;

static inline void run_op(tags *t, const sl_op *op) {
    const sl_plan *p = t->plan;
    for (int k = 0; k < sl_op_infos[op->code].n_in; k++) {
        const sl_value *v = &p->value[op->in[k]];
        for (uint64_t c = v->off / 64; c < (v->off + n_rows(p, v) * v->row_bytes) / 64; c++)
            t->ok &= t->cell[c] == op->in[k];
    }
    if (op->code == SL_OP_KV_WRITE) t->kv_written[op->attr.kv.kv_layer] = true;
    if (op->code == SL_OP_ATTEND) t->ok &= t->kv_written[op->attr.attend.kv_layer];
    if (op->out == SL_NO_VALUE) return;
    const sl_value *v = &p->value[op->out];
    for (uint64_t c = v->off / 64; c < (v->off + n_rows(p, v) * v->row_bytes) / 64; c++) t->cell[c] = op->out;
}

// All phases, the ops of each in an order of their own. Do all ops read what they should?
static inline bool runs_in_any_order(const sl_plan *p) {
    static tags t;
    REQUIRE(p->value_bytes / 64 <= SL_COUNT(t.cell));
    t = (tags){.plan = p, .ok = true};
    for (uint32_t first = 0, end; first < p->n_op; first = end) {
        uint32_t order[64], n = 0;
        for (end = first; end < p->n_op && (end == first || !p->op[end].barrier); end++) order[n++] = end;
        for (uint32_t i = n; i > 1; i--) {
            uint32_t k = test_below(i), swap = order[k];
            order[k] = order[i - 1], order[i - 1] = swap;
        }
        for (uint32_t i = 0; i < n; i++) run_op(&t, &p->op[order[i]]);
    }
    const sl_value *v = &p->value[p->logits];
    for (uint64_t c = v->off / 64; c < (v->off + n_rows(p, v) * v->row_bytes) / 64; c++) t.ok &= t.cell[c] == p->logits;
    return t.ok;
}

#endif
