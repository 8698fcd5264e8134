// SPDX-License-Identifier: MIT
//
// Making plans: build (by family) -> rewrite (what the backend asks for) -> layout -> verify.
#ifndef SL_PLAN_PLAN_H
#define SL_PLAN_PLAN_H

#include "base/buf.h"
#include "model/model.h"
#include "plan/ir.h"

// What an op needs of a backend: the largest scratch is added to the workspace by layout, copies are summed up. Fails
// with SL_UNSUPPORTED naming the op.
typedef sl_status sl_plan_supports(void *user, const sl_plan *plan, const sl_op *op, sl_op_need *need);

typedef struct sl_plan_options {
    sl_plan_shape shape;
    uint32_t fusions;
    sl_plan_supports *supports; // NULL: every op, no scratch
    void *user;
} sl_plan_options;

// The whole way: a laid out, verified plan. Owned by the caller.
sl_status sl_plan_create(sl_plan **out, const sl_model *model, const sl_plan_options *options);
void sl_plan_destroy(sl_plan *plan); // NULL is fine

// The passes, for tests. `build` leaves off, barrier and bytes unset.
sl_status sl_plan_build(sl_plan **out, const sl_model *model, const sl_plan_shape *shape);
sl_status sl_plan_rewrite(sl_plan *plan, uint32_t fusions);
void sl_plan_assign_workers(sl_plan *plan); // a part of rewrite: SL_FUSE_WORKERS
sl_status sl_plan_layout(sl_plan *plan, sl_plan_supports *supports, void *user);
sl_status sl_plan_verify(const sl_plan *plan); // SL_INTERNAL with what is wrong and where

// May the output take the place of input i (when that input dies there)?
bool sl_op_may_alias(const sl_op *op, int i);

// How often a value is there: once, or once for each worker.
static inline uint32_t sl_value_n_copy(const sl_plan *plan, const sl_value *value) {
    return value->each ? plan->shape.n_worker : 1;
}

// Cost of an op for n_row rows at positions up to n_past (per sequence): the source of every roofline figure.
typedef struct sl_cost {
    uint64_t weight_bytes, kv_read_bytes, kv_write_bytes, value_bytes;
    uint64_t n_mac; // multiply-accumulates
} sl_cost;
sl_cost sl_plan_op_cost(const sl_plan *plan, const sl_op *op, uint32_t n_row, uint32_t n_logit, uint32_t n_past);
sl_cost sl_plan_cost(const sl_plan *plan, uint32_t n_row, uint32_t n_logit, uint32_t n_past); // the sum

// Prints the program: shapes, types, offsets, bytes, barriers, totals. As text for people or JSON for programs.
void sl_plan_explain(const sl_plan *plan, sl_buf *out);
void sl_plan_explain_json(const sl_plan *plan, sl_buf *out);

#endif
