// SPDX-License-Identifier: MIT
//
// Who does what in a narrow step, where a barrier costs more than most ops:
//  - In a step of one row, each worker norms, quantises, gates and so on the whole row for itself. That takes as long
//    as if one did it while the others wait, and needs no barrier behind it.
//  - In steps of up to OWN_ROWS rows, the heads of K and V go from their product through norm and rotation into the
//    cache by the worker that has made them. So do those of Q where rows are several (in one row, see above).
// Wide steps have work enough in each op and stay as they are. Must not know how a worker's share is chosen.
#include "plan/plan.h"

enum { OWN_ROWS = 8 };

static uint32_t count_readers(const sl_plan *p, uint16_t v) {
    uint32_t n = p->logits == v;
    for (uint32_t i = 0; i < p->n_op; i++)
        for (int k = 0; k < sl_op_infos[p->op[i].code].n_in; k++) n += p->op[i].in[k] == v;
    return n;
}

static sl_op *find_writer(sl_plan *p, uint16_t v) {
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].out == v) return &p->op[i];
    return NULL;
}

// Is `v` made from a product unit by unit, and for one reader? Then, if asked to, marks what makes it.
static bool follow(sl_plan *p, uint16_t v, uint32_t unit, bool mark) {
    sl_op *op = find_writer(p, v);
    bool by_unit = (op->code == SL_OP_ROPE && op->attr.rope.head_dim == unit) ||
                   (op->code == SL_OP_NORM && op->attr.norm.group == unit);
    if (p->value[v].n_col % unit != 0 || count_readers(p, v) != 1) return false;
    if (op->code != SL_OP_MATMUL && !(by_unit && follow(p, op->in[0], unit, mark))) return false;
    if (mark) p->value[v].unit = unit, op->who = by_unit ? SL_WHO_OWN : SL_WHO_ALL;
    return true;
}

static void assign_heads(sl_plan *p, sl_op *op) {
    if (op->code == SL_OP_KV_WRITE) {
        const sl_plan_kv *kv = &p->kv[op->attr.kv.kv_layer];
        if (!follow(p, op->in[0], kv->head_dim, false) || !follow(p, op->in[1], kv->v_dim, false)) return;
        follow(p, op->in[0], kv->head_dim, true);
        follow(p, op->in[1], kv->v_dim, true);
        op->who = SL_WHO_OWN;
    } else if (sl_op_is_attend(op) && p->shape.n_row_max > 1) {
        uint32_t head_dim = p->kv[op->attr.attend.kv_layer].head_dim;
        if (follow(p, op->in[0], head_dim, false)) follow(p, op->in[0], head_dim, true);
    }
}

static bool is_by_rows(const sl_op *op) {
    return op->code != SL_OP_MATMUL && op->code != SL_OP_MATMUL_ADD && !sl_op_is_attend(op) &&
           op->code != SL_OP_KV_WRITE;
}

void sl_plan_assign_workers(sl_plan *p) {
    if (p->shape.n_row_max > OWN_ROWS) return;
    for (uint32_t i = 0; i < p->n_op; i++) assign_heads(p, &p->op[i]);
    for (uint32_t i = 0; i < p->n_op; i++) {
        sl_op *op = &p->op[i];
        bool is_logits = op->out == p->logits; // read by the caller, from one place
        if (p->shape.n_row_max > 1 || op->who != SL_WHO_ALL || !is_by_rows(op) || is_logits) continue;
        op->who = SL_WHO_EACH;
        p->value[op->out].each = 1;
    }
}
