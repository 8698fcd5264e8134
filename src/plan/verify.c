// SPDX-License-Identifier: MIT
//
// Is the plan what ir.h promises? Runs each time a plan is made, and shares no code with the passes
// that made it: an error there must not hide itself. This file: tables, ids, and that each value is
// written once, before it is read, and read. Shapes are in verify_shapes.c, memory and barriers in
// verify_memory.c.
#include <math.h>
#include <stdarg.h>

#include "plan/verify_part.h"

sl_status sl_verify_fail(const sl_plan *plan, uint32_t op, const char *fmt, ...) {
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    uint8_t code = plan->op[op].code;
    return SL_FAIL(SL_INTERNAL, "the plan is wrong at op %u (%s, layer %d): %s", op,
                   code < SL_OP_COUNT ? sl_op_infos[code].name : "unknown", plan->op[op].layer, text);
}

static sl_status check_weight(const sl_plan *p, uint32_t i) {
    const sl_plan_weight *w = &p->weight[i];
    const sl_type_info *info = sl_type_find(w->type);
    bool ok = info && info->computable && w->n_row > 0 && w->n_col > 0 && w->n_col % info->blk_len == 0 &&
              w->n_bytes == w->n_row * sl_type_row_bytes(info, w->n_col) && memchr(w->name, 0, sizeof w->name) &&
              w->name[0];
    if (ok) return SL_OK;
    return SL_FAIL(SL_INTERNAL, "the plan is wrong at weight %u (%.63s): type, shape or bytes", i, w->name);
}

static sl_status check_tables(const sl_plan *p) {
    if (p->n_op == 0 || p->n_value == 0 || p->n_value >= SL_NO_VALUE || p->n_weight >= SL_NO_WEIGHT ||
        p->n_kv >= UINT16_MAX)
        return SL_FAIL(SL_INTERNAL, "the plan has %u ops, %u values, %u weights", p->n_op, p->n_value, p->n_weight);
    for (uint32_t i = 0; i < p->n_weight; i++) SL_TRY(check_weight(p, i));
    for (uint32_t i = 0; i < p->n_rope; i++) {
        const sl_plan_rope *r = &p->rope[i];
        bool ok = r->n_rot > 0 && r->n_rot % 2 == 0 && r->inv_freq_at <= p->n_inv_freq &&
                  r->n_rot / 2 <= p->n_inv_freq - r->inv_freq_at && isfinite(r->mscale) && r->mscale > 0;
        for (uint32_t k = 0; ok && k < r->n_rot / 2; k++) ok = isfinite(p->inv_freq[r->inv_freq_at + k]);
        if (!ok) return SL_FAIL(SL_INTERNAL, "the plan is wrong at rotary set %u", i);
    }
    for (uint32_t i = 0; i < p->n_kv; i++)
        if (p->kv[i].n_head_kv == 0 || p->kv[i].head_dim == 0 || p->kv[i].v_dim == 0)
            return SL_FAIL(SL_INTERNAL, "the plan is wrong at kv layer %u", i);
    return SL_OK;
}

// As many inputs, weights and outputs as the op has, all in range.
static sl_status check_ids(const sl_plan *p, uint32_t i) {
    const sl_op *op = &p->op[i];
    if (op->code >= SL_OP_COUNT || op->barrier > 1 || op->layer < -1)
        return sl_verify_fail(p, i, "code %u, barrier %u", op->code, op->barrier);
    const sl_op_info *info = &sl_op_infos[op->code];
    for (int k = 0; k < 2; k++) {
        bool want = k < info->n_in;
        if (want ? op->in[k] >= p->n_value : op->in[k] != SL_NO_VALUE)
            return sl_verify_fail(p, i, "input %d is %u of %u values", k, op->in[k], p->n_value);
        bool absent = op->weight[k] == SL_NO_WEIGHT, may_be_absent = k == 1 || info->n_weight == 0;
        if (absent ? !may_be_absent : k >= info->n_weight || op->weight[k] >= p->n_weight)
            return sl_verify_fail(p, i, "weight %d is %u of %u", k, op->weight[k], p->n_weight);
    }
    if (op->code == SL_OP_KV_WRITE ? op->out != SL_NO_VALUE : op->out >= p->n_value)
        return sl_verify_fail(p, i, "output is %u of %u values", op->out, p->n_value);
    return SL_OK;
}

// `state` per value: 0 unwritten, 1 written, 2 read.
static sl_status check_order(const sl_plan *p, uint8_t *state) {
    for (uint32_t i = 0; i < p->n_op; i++) {
        const sl_op *op = &p->op[i];
        SL_TRY(check_ids(p, i));
        for (int k = 0; k < sl_op_infos[op->code].n_in; k++) {
            if (state[op->in[k]] == 0) return sl_verify_fail(p, i, "value %u is read before it is written", op->in[k]);
            state[op->in[k]] = 2;
        }
        if (op->out == SL_NO_VALUE) continue;
        if (state[op->out] != 0) return sl_verify_fail(p, i, "value %u is written a second time", op->out);
        state[op->out] = 1;
    }
    if (p->logits >= p->n_value || state[p->logits] == 0) return SL_FAIL(SL_INTERNAL, "the plan writes no logits");
    state[p->logits] = 2;
    if (p->best != SL_NO_VALUE) {
        if (p->best >= p->n_value || p->op[p->n_op - 1].code != SL_OP_BEST || p->op[p->n_op - 1].out != p->best)
            return SL_FAIL(SL_INTERNAL, "the plan does not end with its best tokens");
        state[p->best] = 2;
    }
    for (uint32_t v = 0; v < p->n_value; v++)
        if (state[v] != 2)
            return SL_FAIL(SL_INTERNAL, "the plan's value %u is never %s", v, state[v] ? "read" : "written");
    const sl_value *logits = &p->value[p->logits];
    if (logits->kind != SL_VALUE_F32 || logits->n_col != p->n_vocab || logits->logit_rows != 1)
        return SL_FAIL(SL_INTERNAL, "the plan's logits have the wrong shape");
    return SL_OK;
}

sl_status sl_plan_verify(const sl_plan *plan) {
    uint8_t *state;
    SL_TRY(check_tables(plan));
    SL_TRY(sl_alloc(&state, plan->n_value, 1, "plan check"));
    sl_status status = check_order(plan, state);
    sl_free(state);
    SL_TRY(status);
    SL_TRY(sl_verify_shapes(plan));
    return sl_verify_memory(plan);
}
