// SPDX-License-Identifier: MIT
//
// Plans of small models for tests, and a run of a plan without numbers: memory holds labels, and
// between two barriers each worker goes on as fast as it likes.
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
                                     .type_v = SL_TYPE_F32,
                                     .n_worker = 3};

static inline sl_plan *plan_for(const model_recipe *r, uint32_t fusions, uint32_t n_row) {
    sl_model *m = make_model(r);
    sl_plan *p;
    sl_plan_options options = {.shape = shape8, .fusions = fusions};
    options.shape.n_row_max = n_row, options.shape.n_logit_max = SL_MIN(n_row, shape8.n_logit_max);
    REQUIRE_OK(sl_plan_create(&p, m, &options), sl_error_text());
    sl_model_close(m); // a plan borrows nothing
    return p;
}

static inline sl_plan *plan_of(const model_recipe *r, uint32_t fusions) { return plan_for(r, fusions, 8); }

static inline uint32_t n_rows(const sl_plan *p, const sl_value *v) {
    return v->logit_rows ? p->shape.n_logit_max : p->shape.n_row_max;
}

// ---- running a plan without numbers -------------------------------------------------------------

// Memory as labels: each 64 bytes hold the id of the value last written there.
typedef struct tags {
    const sl_plan *plan;
    uint16_t cell[1 << 16];
    uint32_t kv_written[64]; // a bit for each worker
    uint32_t turn[1024];     // by op: how its parts are dealt out where it is shared
    bool ok;
} tags;

typedef struct cells {
    uint64_t begin, end;
} cells;

static inline cells cells_of(const sl_plan *p, const sl_value *v, uint32_t worker) {
    uint64_t n = n_rows(p, v) * v->row_bytes / 64, begin = v->off / 64 + (v->each ? worker * n : 0);
    return (cells){begin, begin + n};
}

static inline cells part_of(const sl_plan *p, const sl_value *v, uint32_t worker) {
    cells c = cells_of(p, v, worker);
    uint64_t n = c.end - c.begin, n_worker = p->shape.n_worker;
    return (cells){c.begin + n * worker / n_worker, c.begin + n * (worker + 1) / n_worker};
}

static inline void run_op(tags *t, uint32_t i, uint32_t worker) {
    const sl_plan *p = t->plan;
    const sl_op *op = &p->op[i];
    uint32_t all = (1u << p->shape.n_worker) - 1, share = worker;
    bool heads = op->who == SL_WHO_OWN || (op->out != SL_NO_VALUE && p->value[op->out].unit > 0);
    if (!heads) share = (worker + t->turn[i]) % p->shape.n_worker;
    for (int k = 0; k < sl_op_infos[op->code].n_in; k++) {
        const sl_value *v = &p->value[op->in[k]];
        bool part = op->who == SL_WHO_OWN ? v->unit > 0 : op->who == SL_WHO_ALL && sl_op_may_alias(op, k);
        cells c = part ? part_of(p, v, share) : cells_of(p, v, worker);
        for (; c.begin < c.end; c.begin++) t->ok &= t->cell[c.begin] == op->in[k];
    }
    if (op->code == SL_OP_KV_WRITE) t->kv_written[op->attr.kv.kv_layer] |= 1u << worker;
    if (sl_op_is_attend(op)) t->ok &= t->kv_written[op->attr.attend.kv_layer] == all;
    if (op->out == SL_NO_VALUE) return;
    const sl_value *v = &p->value[op->out];
    cells c = op->who == SL_WHO_EACH ? cells_of(p, v, worker) : part_of(p, v, share);
    for (; c.begin < c.end; c.begin++) t->cell[c.begin] = op->out;
}

// All phases; in each, the workers do their shares in the order of the ops, and now this one goes on, now that. Do all
// ops read what they should?
static inline bool runs_in_any_order(const sl_plan *p) {
    static tags t;
    uint32_t n_worker = p->shape.n_worker;
    REQUIRE(p->value_bytes / 64 <= SL_COUNT(t.cell) && p->n_op <= SL_COUNT(t.turn) && n_worker <= 8);
    t = (tags){.plan = p, .ok = true};
    for (uint32_t i = 0; i < p->n_op; i++) t.turn[i] = test_below(n_worker);
    for (uint32_t first = 0, end; first < p->n_op; first = end) {
        uint32_t next[8], n_left = n_worker;
        for (end = first + 1; end < p->n_op && !p->op[end].barrier;) end++;
        for (uint32_t w = 0; w < n_worker; w++) next[w] = first;
        while (n_left > 0) {
            uint32_t w = test_below(n_worker);
            if (next[w] == end) continue;
            run_op(&t, next[w]++, w);
            n_left -= next[w] == end;
        }
    }
    cells c = cells_of(p, &p->value[p->logits], 0);
    for (; c.begin < c.end; c.begin++) t.ok &= t.cell[c.begin] == p->logits;
    return t.ok;
}

#endif
