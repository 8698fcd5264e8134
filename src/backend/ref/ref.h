// SPDX-License-Identifier: MIT
//
// The reference backend: one naive function per op, the executable definition that every other
// backend is tested against. Inside an op everything is double; between ops values are float, in
// the plan's workspace.
//
// Each op is cut into units (a row, an output, a row's head) that are computed alone and in a fixed
// order, so the bits do not depend on the number of threads. All threads meet after every op: ref
// does not trust op.barrier.
//
// KV layout: block = [position][kv head][dim], in the plan's type. Fused ops do not exist here:
// their meaning is the composition of the plain ones.
#ifndef SL_BACKEND_REF_REF_H
#define SL_BACKEND_REF_REF_H

#include "backend/backend.h"
#include "backend/cpu/pool.h"

struct sl_device {
    sl_pool *pool; // owned
};

struct sl_program {
    sl_device *device;       // borrowed
    const sl_plan *plan;     // borrowed
    const void **weight;     // (n_weight) owned array of borrowed addresses
    uint8_t *workspace, *kv; // borrowed
    const sl_step *step;     // the step that runs now
};

// Computes units [begin, end) of the op. scratch: this thread's, sl_ref_scratch_bytes().
typedef void sl_ref_fn(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch);

typedef struct sl_ref_op {
    sl_ref_fn *run;                                                  // NULL: not an op of ref
    int64_t (*n_unit)(const sl_program *program, const sl_op *op);   // of the step that runs now
    sl_status (*check)(const sl_plan *plan, const sl_op *op);        // NULL: every plan's is fine
    uint64_t (*scratch_bytes)(const sl_plan *plan, const sl_op *op); // of one thread; NULL: none
} sl_ref_op;

extern const sl_ref_op sl_ref_ops[SL_OP_COUNT];

// ---- the ops that have a file of their own ------------------------------------------------------
sl_ref_fn sl_ref_matmul, sl_ref_kv_write, sl_ref_attend;
sl_status sl_ref_matmul_check(const sl_plan *plan, const sl_op *op);
int64_t sl_ref_kv_n_unit(const sl_program *program, const sl_op *op);
sl_status sl_ref_kv_check(const sl_plan *plan, const sl_op *op);
uint64_t sl_ref_matmul_scratch_bytes(const sl_plan *plan, const sl_op *op);
uint64_t sl_ref_attend_scratch_bytes(const sl_plan *plan, const sl_op *op);

// Row `row` of a value.
static inline float *sl_ref_row(const sl_program *program, uint16_t value, int64_t row) {
    const sl_value *v = &program->plan->value[value];
    return (float *)(void *)(program->workspace + v->off + (uint64_t)row * v->row_bytes);
}

// Weight i of the op as floats, or NULL if it has none.
static inline const float *sl_ref_vector(const sl_program *program, const sl_op *op, int i) {
    return op->weight[i] == SL_NO_WEIGHT ? NULL : program->weight[op->weight[i]];
}

#endif
