// SPDX-License-Identifier: MIT
//
// Where values live and where barriers stand.
//
// Barriers come first, from the data alone: a phase ends where an op needs what its own phase has
// written. A value then lives from the phase that writes it to the last phase that reads it, whole
// phases both, so sharing memory never asks for another barrier. Memory is given out best fit, in
// program order; the result is the same on every run and machine.
#include "base/size.h"
#include "plan/plan.h"
#include "quant/kv_codec.h"

enum { NO_PHASE = 0xffffffff };

typedef struct life {
    uint32_t def, last; // phases
    uint32_t n_last;    // ops that read it in the last one
} life;

typedef struct taken_range { // of the workspace
    uint64_t off, end;
    uint16_t value;
} taken_range;

typedef struct layout {
    sl_plan *plan;
    uint32_t *phase;              // (n_op)
    life *life;                   // (n_value)
    uint32_t *kv_write, *kv_read; // (n_kv) last phase that did
    taken_range *taken;           // (n_value) rising, those still alive
    uint32_t n_taken;
} layout;

bool sl_op_may_alias(const sl_op *op, int i) {
    switch (op->code) {
    case SL_OP_ADD:
    case SL_OP_GLU: return true;
    case SL_OP_ROPE:
    case SL_OP_SOFTCAP: return i == 0;
    case SL_OP_MATMUL_ADD: return i == 1;
    default: return false; // the others read more than the element that they write
    }
}

// ---- phases -------------------------------------------------------------------------------------

// Does the worker that reads the value's columns have them from itself?
static bool stays_with_worker(const sl_op *op, const sl_value *in) {
    return in->each || (op->who == SL_WHO_OWN && in->unit > 0);
}

static bool needs_barrier(const layout *l, const sl_op *op, uint32_t phase) {
    for (int k = 0; k < sl_op_infos[op->code].n_in; k++)
        if (l->life[op->in[k]].def == phase && !stays_with_worker(op, &l->plan->value[op->in[k]])) return true;
    if (sl_op_is_attend(op)) return l->kv_write[op->attr.attend.kv_layer] == phase;
    if (op->code == SL_OP_KV_WRITE)
        return l->kv_write[op->attr.kv.kv_layer] == phase || l->kv_read[op->attr.kv.kv_layer] == phase;
    return false;
}

static void note_read(life *of, uint32_t phase) {
    of->n_last = of->last == phase ? of->n_last + 1 : 1;
    of->last = phase;
}

static void find_phases(layout *l) {
    sl_plan *p = l->plan;
    uint32_t phase = 0;
    for (uint32_t v = 0; v < p->n_value; v++) l->life[v] = (life){NO_PHASE, NO_PHASE, 0};
    for (uint32_t i = 0; i < p->n_kv; i++) l->kv_write[i] = l->kv_read[i] = NO_PHASE;
    for (uint32_t i = 0; i < p->n_op; i++) {
        sl_op *op = &p->op[i];
        op->barrier = needs_barrier(l, op, phase);
        phase += op->barrier;
        l->phase[i] = phase;
        for (int k = 0; k < sl_op_infos[op->code].n_in; k++)
            if (k == 0 || op->in[1] != op->in[0]) note_read(&l->life[op->in[k]], phase);
        if (sl_op_is_attend(op)) l->kv_read[op->attr.attend.kv_layer] = phase;
        if (op->code == SL_OP_KV_WRITE) l->kv_write[op->attr.kv.kv_layer] = phase;
        if (op->out != SL_NO_VALUE) l->life[op->out] = (life){phase, phase, 0};
    }
    l->life[p->logits].last = NO_PHASE - 1; // the caller reads it after the last op
    if (p->best != SL_NO_VALUE) l->life[p->best].last = NO_PHASE - 1;
    for (uint32_t i = 0; i < p->n_op && p->shape.keep_inputs; i++)
        if (p->op[i].code == SL_OP_MATMUL || p->op[i].code == SL_OP_MATMUL_ADD)
            l->life[p->op[i].in[0]].last = NO_PHASE - 1;
}

// ---- workspace ----------------------------------------------------------------------------------

static uint64_t row_bytes(const sl_value *v) {
    if (v->kind == SL_VALUE_ACT16) return sl_act16_row_bytes(v->n_col);
    return ((uint64_t)v->n_col * 4 + SL_WORKSPACE_ALIGN - 1) / SL_WORKSPACE_ALIGN * SL_WORKSPACE_ALIGN;
}

static uint64_t value_bytes(const sl_plan *p, const sl_value *v) {
    // at most 2^20 rows of less than 2^27 bytes, or one row of 2^16 workers
    return (v->logit_rows ? p->shape.n_logit_max : p->shape.n_row_max) * v->row_bytes * sl_value_n_copy(p, v);
}

static void release_before(layout *l, uint32_t phase) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_taken; i++)
        if (l->life[l->taken[i].value].last >= phase) l->taken[n++] = l->taken[i];
    l->n_taken = n;
}

// An input whose place the output may take: it dies in this phase and no other op of the phase
// reads it. Workers that do not wait for each other share no place.
static uint16_t find_alias(const layout *l, const sl_op *op, uint32_t phase) {
    const sl_value *value = l->plan->value, *out = &value[op->out];
    if (op->who != SL_WHO_ALL) return SL_NO_VALUE;
    for (int k = 0; k < sl_op_infos[op->code].n_in; k++) {
        const sl_value *in = &value[op->in[k]];
        const life *in_life = &l->life[op->in[k]];
        if (sl_op_may_alias(op, k) && in->kind == out->kind && in->n_col == out->n_col &&
            in->logit_rows == out->logit_rows && !in->each && in_life->last == phase && in_life->n_last == 1)
            return op->in[k];
    }
    return SL_NO_VALUE;
}

static void take_over(layout *l, uint16_t from, uint16_t to) {
    for (uint32_t i = 0; i < l->n_taken; i++)
        if (l->taken[i].value == from) l->taken[i].value = to;
    l->plan->value[to].off = l->plan->value[from].off;
}

// The smallest gap that holds it, or the end.
static void take_best(layout *l, uint16_t v) {
    uint64_t n_bytes = value_bytes(l->plan, &l->plan->value[v]), best = UINT64_MAX, begin = 0, off = 0;
    uint32_t at = l->n_taken;
    for (uint32_t i = 0; i < l->n_taken; i++) {
        uint64_t gap = l->taken[i].off - begin;
        if (gap >= n_bytes && gap < best) best = gap, off = begin, at = i;
        begin = l->taken[i].end;
    }
    if (best == UINT64_MAX) off = begin;
    memmove(&l->taken[at + 1], &l->taken[at], (l->n_taken - at) * sizeof *l->taken);
    l->taken[at] = (taken_range){off, off + n_bytes, v};
    l->n_taken++;
    l->plan->value[v].off = off;
    l->plan->value_bytes = SL_MAX(l->plan->value_bytes, off + n_bytes);
}

static void place_values(layout *l) {
    sl_plan *p = l->plan;
    p->value_bytes = 0;
    for (uint32_t v = 0; v < p->n_value; v++) p->value[v].row_bytes = row_bytes(&p->value[v]);
    for (uint32_t i = 0; i < p->n_op; i++) {
        const sl_op *op = &p->op[i];
        if (op->out == SL_NO_VALUE) continue;
        release_before(l, l->phase[i]);
        uint16_t from = find_alias(l, op, l->phase[i]);
        if (from != SL_NO_VALUE) take_over(l, from, op->out);
        else take_best(l, op->out);
    }
}

// ---- scratch and KV pool ------------------------------------------------------------------------

static sl_status place_needs(sl_plan *p, sl_plan_supports *supports, void *user) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < p->n_op; i++) {
        const sl_op *op = &p->op[i];
        sl_op_need need = {0};
        if (supports) SL_TRY(supports(user, p, op, &need));
        most = SL_MAX(most, need.scratch_bytes);
        for (int k = 0; k < 2; k++) {
            if (op->weight[k] == SL_NO_WEIGHT) continue;
            sl_plan_weight *w = &p->weight[op->weight[k]];
            if (need.copy_bytes[k]) w->copy_bytes = need.copy_bytes[k];
            else w->in_place = 1;
        }
    }
    p->copy_bytes = 0; // each at most a little more than its tensor, which is in the file
    for (uint32_t i = 0; i < p->n_weight; i++) p->copy_bytes += p->weight[i].copy_bytes;
    p->scratch_off = p->value_bytes; // a sum of rows, so aligned
    if (sl_size_align(&p->scratch_bytes, most, SL_WORKSPACE_ALIGN) &&
        sl_size_add(&p->workspace_bytes, p->scratch_off, p->scratch_bytes))
        return SL_OK;
    return SL_FAIL(SL_NO_MEMORY, "a workspace of 2^64 bytes or more");
}

// n blocks of n_bytes at *end, which moves behind them.
SL_MUST_CHECK static bool place(uint64_t *off, uint64_t *end, uint64_t n, uint64_t n_bytes) {
    *off = *end;
    return sl_size_mul(&n_bytes, n_bytes, n) && sl_size_add(end, *end, n_bytes);
}

static bool place_open(sl_plan_open *o, uint64_t *end, const sl_plan *p, uint8_t type, uint64_t n_col) {
    *o = (sl_plan_open){0};
    if (!sl_kv_code_bits((sl_type)type)) return true;
    o->blk_bytes = n_col * SL_KV_BLK_LEN * sizeof(uint16_t);
    o->n_own = p->shape.n_slot * SL_KV_OPEN_SLOTS;
    return place(&o->off, end, o->n_own, o->blk_bytes);
}

// The open blocks of a step, behind everything else: programs of other widths have more or fewer of them.
static bool place_step_open(sl_plan *p, uint64_t *end) {
    uint64_t most_k = 0, most_v = 0, k_off, v_off, n = sl_plan_n_step_open(p);
    for (uint32_t i = 0; i < p->n_kv; i++) {
        most_k = SL_MAX(most_k, p->kv[i].k_open.blk_bytes);
        most_v = SL_MAX(most_v, p->kv[i].v_open.blk_bytes);
    }
    if (!place(&k_off, end, n, most_k) || !place(&v_off, end, n, most_v)) return false;
    for (uint32_t i = 0; i < p->n_kv; i++) p->kv[i].k_open.step_off = k_off, p->kv[i].v_open.step_off = v_off;
    return true;
}

static sl_status place_kv(sl_plan *p) {
    uint64_t end = 0;
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->n_kv; i++) {
        sl_plan_kv *kv = &p->kv[i]; // far below 2^64: heads of at most 1024 columns
        kv->k_blk_bytes = kv->n_head_kv * sl_kv_head_bytes((sl_type)kv->type_k, false, kv->head_dim);
        kv->v_blk_bytes = kv->n_head_kv * sl_kv_head_bytes((sl_type)kv->type_v, true, kv->v_dim);
        ok = place(&kv->k_off, &end, sl_plan_n_blk(p, kv), kv->k_blk_bytes) &&
             place(&kv->v_off, &end, sl_plan_n_blk(p, kv), kv->v_blk_bytes) &&
             place_open(&kv->k_open, &end, p, kv->type_k, (uint64_t)kv->n_head_kv * kv->head_dim) &&
             place_open(&kv->v_open, &end, p, kv->type_v, (uint64_t)kv->n_head_kv * kv->v_dim);
    }
    ok = ok && place_step_open(p, &end);
    p->kv_bytes = end;
    return ok ? SL_OK : SL_FAIL(SL_NO_MEMORY, "a KV pool of 2^64 bytes or more");
}

sl_status sl_plan_layout(sl_plan *plan, sl_plan_supports *supports, void *user) {
    layout l = {.plan = plan};
    sl_status status;
    SL_TRY_OUT(sl_alloc(&l.phase, plan->n_op, sizeof *l.phase, "phases"));
    SL_TRY_OUT(sl_alloc(&l.life, plan->n_value, sizeof *l.life, "lives of values"));
    SL_TRY_OUT(sl_alloc(&l.kv_write, plan->n_kv, sizeof *l.kv_write, "kv phases"));
    SL_TRY_OUT(sl_alloc(&l.kv_read, plan->n_kv, sizeof *l.kv_read, "kv phases"));
    SL_TRY_OUT(sl_alloc(&l.taken, plan->n_value, sizeof *l.taken, "places"));
    find_phases(&l);
    place_values(&l);
    SL_TRY_OUT(place_needs(plan, supports, user));
    status = place_kv(plan);
out:
    sl_free(l.phase);
    sl_free(l.life);
    sl_free(l.kv_write);
    sl_free(l.kv_read);
    sl_free(l.taken);
    return status;
}
