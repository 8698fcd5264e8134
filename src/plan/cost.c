// SPDX-License-Identifier: MIT
//
// What an op moves and computes, for n_row rows of one sequence that holds n_past positions before
// the step. Only what must move: a matrix is read once for all rows, a cached position once for all
// heads and rows.
#include "plan/plan.h"
#include "quant/kv_codec.h"

static uint64_t rows_of(const sl_value *v, uint32_t n_row, uint32_t n_logit) { return v->logit_rows ? n_logit : n_row; }

static uint64_t value_bytes(const sl_plan *p, uint16_t id, uint32_t n_row, uint32_t n_logit) {
    if (id == SL_NO_VALUE) return 0;
    const sl_value *v = &p->value[id];
    uint64_t n = v->kind == SL_VALUE_ACT16 ? sl_act16_row_bytes(v->n_col) : (uint64_t)v->n_col * 4;
    return n * rows_of(v, n_row, n_logit);
}

static uint64_t matrix_bytes(const sl_plan *p, const sl_op *op) {
    uint64_t n = 0;
    for (int k = 0; k < 2; k++)
        if (op->weight[k] != SL_NO_WEIGHT) n += p->weight[op->weight[k]].n_bytes;
    return n;
}

// Bytes of one position in the cache of a layer.
static uint64_t position_bytes(const sl_plan_kv *kv) {
    return kv->n_head_kv *
           (sl_kv_head_bytes((sl_type)kv->type_k, false, kv->head_dim) +
            sl_kv_head_bytes((sl_type)kv->type_v, true, kv->v_dim)) /
           SL_KV_BLK_LEN;
}

// Positions that the rows see together, and the sum over the rows of what each sees.
static void count_visible(uint32_t window, uint32_t n_row, uint32_t n_past, uint64_t *n_union, uint64_t *n_sum) {
    uint64_t end = (uint64_t)n_past + n_row, n_grow = n_row; // rows whose window is not yet full
    *n_union = end;
    if (window > 0) {
        n_grow = window - 1 > n_past ? SL_MIN(window - 1 - n_past, n_row) : 0;
        *n_union = SL_MIN(end, (uint64_t)window + n_row - 1);
    }
    *n_sum = n_grow * (2 * (n_past + 1ull) + n_grow - 1) / 2 + (n_row - n_grow) * window;
}

static void add_attention(sl_cost *c, const sl_plan *p, const sl_op *op, uint32_t n_row, uint32_t n_past) {
    const sl_plan_kv *kv = &p->kv[op->attr.attend.kv_layer];
    uint64_t n_union, n_sum;
    count_visible(p->shape.moves && !kv->window ? p->shape.n_ctx : kv->window, n_row, n_past, &n_union, &n_sum);
    c->kv_read_bytes = n_union * position_bytes(kv);
    c->n_mac = n_sum * op->attr.attend.n_head * (kv->head_dim + kv->v_dim);
}

sl_cost sl_plan_op_cost(const sl_plan *plan, const sl_op *op, uint32_t n_row, uint32_t n_logit, uint32_t n_past) {
    sl_cost c = {0};
    const sl_plan_weight *w = op->weight[0] == SL_NO_WEIGHT ? NULL : &plan->weight[op->weight[0]];
    for (int k = 0; k < 2; k++) c.value_bytes += value_bytes(plan, op->in[k], n_row, n_logit);
    c.value_bytes += value_bytes(plan, op->out, n_row, n_logit);
    switch (op->code) {
    case SL_OP_EMBED: c.weight_bytes = w->n_bytes / w->n_row * n_row; break;
    case SL_OP_NORM:
    case SL_OP_NORM_QUANT: c.weight_bytes = w->n_bytes; break;
    case SL_OP_MATMUL:
    case SL_OP_MATMUL_ADD:
        c.weight_bytes = matrix_bytes(plan, op);
        c.n_mac = (uint64_t)w->n_row * w->n_col * rows_of(&plan->value[op->out], n_row, n_logit);
        if (rows_of(&plan->value[op->out], n_row, n_logit) == 0) c.weight_bytes = 0;
        break;
    case SL_OP_KV_WRITE: c.kv_write_bytes = n_row * position_bytes(&plan->kv[op->attr.kv.kv_layer]); break;
    case SL_OP_ATTEND:
    case SL_OP_ATTEND_SINKS: add_attention(&c, plan, op, n_row, n_past); break;
    default: break;
    }
    return c;
}

sl_cost sl_plan_cost(const sl_plan *plan, uint32_t n_row, uint32_t n_logit, uint32_t n_past) {
    sl_cost sum = {0};
    for (uint32_t i = 0; i < plan->n_op; i++) {
        sl_cost c = sl_plan_op_cost(plan, &plan->op[i], n_row, n_logit, n_past);
        sum.weight_bytes += c.weight_bytes;
        sum.kv_read_bytes += c.kv_read_bytes;
        sum.kv_write_bytes += c.kv_write_bytes;
        sum.value_bytes += c.value_bytes;
        sum.n_mac += c.n_mac;
    }
    return sum;
}
