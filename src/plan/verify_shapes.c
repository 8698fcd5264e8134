// SPDX-License-Identifier: MIT
//
// Each op against its line in ops.def: kinds, rows, columns, attributes. Ids are in range already.
#include <math.h>

#include "plan/verify_part.h"

typedef struct checker {
    const sl_plan *plan;
    uint32_t i; // the op
    const sl_op *op;
    const sl_value *in[2], *out;     // NULL if none
    const sl_plan_weight *weight[2]; // NULL if none
} checker;

#define WANT(cond)                                                              \
    do {                                                                        \
        if (!(cond)) return sl_verify_fail(c->plan, c->i, "not so: %s", #cond); \
    } while (0)

static bool is_f32(const sl_value *v) { return v->kind == SL_VALUE_F32; }

static bool same_shape(const sl_value *a, const sl_value *b) {
    return a->n_col == b->n_col && a->logit_rows == b->logit_rows;
}

static bool is_vector(const sl_plan_weight *w, uint32_t n) {
    return w->type == SL_TYPE_F32 && w->n_row == 1 && w->n_col == n;
}

static bool is_quantised(const sl_plan_weight *w) { return sl_type_find(w->type)->blk_len > 1; }

static sl_status check_embed(const checker *c) {
    WANT(is_f32(c->out) && c->out->logit_rows == 0);
    WANT(c->weight[0]->n_row == c->plan->n_vocab && c->weight[0]->n_col == c->out->n_col);
    WANT(isfinite(c->op->attr.embed.scale) && c->op->attr.embed.scale > 0);
    return SL_OK;
}

static sl_status check_rope_table(const checker *c) {
    WANT(c->op->attr.rope_table.rope < c->plan->n_rope);
    WANT(c->op->attr.rope_table.cells <= c->plan->shape.moves);
    WANT(is_f32(c->out) && c->out->logit_rows == 0);
    WANT(c->out->n_col == c->plan->rope[c->op->attr.rope_table.rope].n_rot);
    return SL_OK;
}

static sl_status check_norm(const checker *c) {
    uint32_t group = c->op->attr.norm.group;
    WANT(is_f32(c->in[0]) && same_shape(c->in[0], c->out));
    WANT(is_f32(c->out) == (c->op->code == SL_OP_NORM));
    WANT(group > 0 && c->out->n_col % group == 0 && is_vector(c->weight[0], group));
    WANT(isfinite(c->op->attr.norm.eps) && c->op->attr.norm.eps > 0);
    return SL_OK;
}

static sl_status check_matmul(const checker *c) {
    const sl_plan_weight *w = c->weight[0];
    WANT(c->in[0]->n_col == w->n_col && c->out->n_col == w->n_row);
    WANT(is_f32(c->out) && c->in[0]->logit_rows == c->out->logit_rows);
    WANT(is_f32(c->in[0]) || is_quantised(w));
    WANT(!c->weight[1] || is_vector(c->weight[1], w->n_row));
    if (c->op->code == SL_OP_MATMUL_ADD) WANT(is_f32(c->in[1]) && same_shape(c->in[1], c->out));
    return SL_OK;
}

// The op that writes a value.
static const sl_op *writer_of(const sl_plan *p, uint16_t value) {
    uint32_t i = 0;
    while (p->op[i].out != value) i++;
    return &p->op[i];
}

static sl_status check_rope(const checker *c) {
    const sl_attr_rope *a = &c->op->attr.rope;
    WANT(is_f32(c->in[0]) && is_f32(c->out) && same_shape(c->in[0], c->out) && c->out->logit_rows == 0);
    WANT(a->n_head > 0 && (uint64_t)a->n_head * a->head_dim == c->out->n_col);
    WANT(a->n_rot > 0 && a->n_rot % 2 == 0 && a->n_rot <= a->head_dim && a->interleaved <= 1);
    WANT(c->in[1]->n_col == a->n_rot && writer_of(c->plan, c->op->in[1])->code == SL_OP_ROPE_TABLE);
    return SL_OK;
}

static sl_status check_kv_write(const checker *c) {
    WANT(c->op->attr.kv.kv_layer < c->plan->n_kv);
    const sl_plan_kv *kv = &c->plan->kv[c->op->attr.kv.kv_layer];
    WANT(is_f32(c->in[0]) && is_f32(c->in[1]) && c->in[0]->logit_rows == 0 && c->in[1]->logit_rows == 0);
    WANT(c->in[0]->n_col == kv->n_head_kv * kv->head_dim && c->in[1]->n_col == kv->n_head_kv * kv->v_dim);
    for (uint32_t k = 0; k < c->i; k++)
        WANT(c->plan->op[k].code != SL_OP_KV_WRITE || c->plan->op[k].attr.kv.kv_layer != c->op->attr.kv.kv_layer);
    return SL_OK;
}

static sl_status check_attend(const checker *c) {
    const sl_attr_attend *a = &c->op->attr.attend;
    WANT(a->kv_layer < c->plan->n_kv);
    const sl_plan_kv *kv = &c->plan->kv[a->kv_layer];
    WANT(is_f32(c->in[0]) && is_f32(c->out) && c->in[0]->logit_rows == 0 && c->out->logit_rows == 0);
    WANT(a->n_head > 0 && a->n_head % kv->n_head_kv == 0 && a->window == kv->window);
    WANT(c->in[0]->n_col == a->n_head * kv->head_dim && c->out->n_col == a->n_head * kv->v_dim);
    if (c->op->code == SL_OP_ATTEND_SINKS) WANT(is_f32(c->in[1]) && same_shape(c->in[0], c->in[1]));
    WANT((c->op->code == SL_OP_ATTEND_SINKS) <= c->plan->shape.moves);
    WANT(isfinite(a->scale) && a->scale > 0 && isfinite(a->softcap) && a->softcap >= 0);
    uint32_t k = 0;
    while (k < c->i && (c->plan->op[k].code != SL_OP_KV_WRITE || c->plan->op[k].attr.kv.kv_layer != a->kv_layer)) k++;
    WANT(k < c->i); // its keys and values are written before
    return SL_OK;
}

static sl_status check_glu(const checker *c) {
    WANT(is_f32(c->in[0]) && is_f32(c->in[1]) && same_shape(c->in[0], c->out) && same_shape(c->in[1], c->out));
    WANT(is_f32(c->out) == (c->op->code == SL_OP_GLU));
    WANT(c->op->attr.glu.act <= SL_ACT_GELU_TANH);
    return SL_OK;
}

static sl_status check_add(const checker *c) {
    WANT(is_f32(c->in[0]) && is_f32(c->in[1]) && is_f32(c->out));
    WANT(same_shape(c->in[0], c->out) && same_shape(c->in[1], c->out));
    return SL_OK;
}

static sl_status check_gather(const checker *c) {
    WANT(is_f32(c->in[0]) && is_f32(c->out) && c->in[0]->n_col == c->out->n_col);
    WANT(c->in[0]->logit_rows == 0 && c->out->logit_rows == 1);
    return SL_OK;
}

static sl_status check_softcap(const checker *c) {
    WANT(is_f32(c->in[0]) && is_f32(c->out) && same_shape(c->in[0], c->out));
    WANT(isfinite(c->op->attr.softcap.cap) && c->op->attr.softcap.cap > 0);
    return SL_OK;
}

static sl_status check_quant(const checker *c) {
    WANT(is_f32(c->in[0]) && !is_f32(c->out) && same_shape(c->in[0], c->out));
    return SL_OK;
}

static sl_status check_best(const checker *c) {
    WANT(c->op->in[0] == c->plan->logits && c->plan->n_vocab <= 1 << 24); // whole numbers that floats have
    WANT(is_f32(c->out) && c->out->n_col == 2 && c->out->logit_rows == 1);
    return SL_OK;
}

static sl_status check_op(const checker *c) {
    switch (c->op->code) {
    case SL_OP_EMBED: return check_embed(c);
    case SL_OP_ROPE_TABLE: return check_rope_table(c);
    case SL_OP_NORM:
    case SL_OP_NORM_QUANT: return check_norm(c);
    case SL_OP_MATMUL:
    case SL_OP_MATMUL_ADD: return check_matmul(c);
    case SL_OP_ROPE: return check_rope(c);
    case SL_OP_KV_WRITE: return check_kv_write(c);
    case SL_OP_ATTEND:
    case SL_OP_ATTEND_SINKS: return check_attend(c);
    case SL_OP_GLU:
    case SL_OP_GLU_QUANT: return check_glu(c);
    case SL_OP_ADD: return check_add(c);
    case SL_OP_GATHER: return check_gather(c);
    case SL_OP_SOFTCAP: return check_softcap(c);
    case SL_OP_QUANT: return check_quant(c);
    case SL_OP_BEST: return check_best(c);
    }
    return sl_verify_fail(c->plan, c->i, "no check for this op");
}

// ---- workers ------------------------------------------------------------------------------------

// The columns of input k that an op can do alone; 0: it needs more than that.
static uint32_t own_unit(const checker *c, int k) {
    switch (c->op->code) {
    case SL_OP_NORM: return k == 0 ? c->op->attr.norm.group : 0;
    case SL_OP_ROPE: return k == 0 ? c->op->attr.rope.head_dim : 0;
    case SL_OP_KV_WRITE: {
        const sl_plan_kv *kv = &c->plan->kv[c->op->attr.kv.kv_layer];
        return k == 0 ? kv->head_dim : kv->v_dim;
    }
    default: return 0;
    }
}

static sl_status check_who(const checker *c) {
    const sl_op *op = c->op;
    bool product = op->code == SL_OP_MATMUL || op->code == SL_OP_MATMUL_ADD, own = op->who == SL_WHO_OWN;
    WANT(op->who <= SL_WHO_OWN);
    if (c->out) WANT(c->out->each == (op->who == SL_WHO_EACH));
    if (c->out && c->out->unit) WANT(c->out->n_col % c->out->unit == 0 && (own || op->code == SL_OP_MATMUL));
    if (op->who == SL_WHO_EACH)
        WANT(!product && !sl_op_is_attend(op) && op->code != SL_OP_KV_WRITE && op->out != c->plan->logits);
    for (int k = 0; own && k < 2; k++) {
        uint32_t unit = own_unit(c, k);
        if (k == 0 || op->code == SL_OP_KV_WRITE) WANT(unit > 0 && c->in[k]->unit == unit && !c->in[k]->each);
        if (k == 0 && c->out) WANT(c->out->unit == unit);
    }
    return SL_OK;
}

sl_status sl_verify_shapes(const sl_plan *plan) {
    if (plan->shape.n_worker == 0) return SL_FAIL(SL_INTERNAL, "the plan is for no worker");
    for (uint32_t v = 0; v < plan->n_value; v++) {
        const sl_value *value = &plan->value[v];
        if (value->kind > SL_VALUE_ACT16 || value->logit_rows > 1 || value->each > 1 || value->n_col == 0)
            return SL_FAIL(SL_INTERNAL, "the plan is wrong at value %u: kind %u, %u columns", v, value->kind,
                           value->n_col);
    }
    for (uint32_t i = 0; i < plan->n_op; i++) {
        const sl_op *op = &plan->op[i];
        checker c = {.plan = plan, .i = i, .op = op};
        for (int k = 0; k < 2; k++) {
            if (op->in[k] != SL_NO_VALUE) c.in[k] = &plan->value[op->in[k]];
            if (op->weight[k] != SL_NO_WEIGHT) c.weight[k] = &plan->weight[op->weight[k]];
        }
        if (op->out != SL_NO_VALUE) c.out = &plan->value[op->out];
        SL_TRY(check_op(&c));
        SL_TRY(check_who(&c));
    }
    return SL_OK;
}
