// SPDX-License-Identifier: MIT
//
// Offsets, overlaps and barriers. The program is played through twice: once with the set of values
// that are still wanted, to see that none is written over; once with the ranges touched since the
// last barrier, to see that a barrier stands just where one is needed: where a worker touches what
// another has written.
#include "plan/verify_part.h"
#include "quant/kv_codec.h"

static uint64_t expected_row_bytes(const sl_value *v) {
    uint64_t n = (uint64_t)v->n_col * sizeof(float);
    return v->kind == SL_VALUE_ACT16 ? sl_act16_row_bytes(v->n_col)
                                     : n + (SL_WORKSPACE_ALIGN - n % SL_WORKSPACE_ALIGN) % SL_WORKSPACE_ALIGN;
}

static uint64_t end_of(const sl_plan *p, const sl_value *v) {
    return v->off + v->row_bytes * (v->logit_rows ? p->shape.n_logit_max : p->shape.n_row_max) * sl_value_n_copy(p, v);
}

static bool overlap(const sl_plan *p, const sl_value *a, const sl_value *b) {
    return a->off < end_of(p, b) && b->off < end_of(p, a);
}

static sl_status check_places(const sl_plan *p) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < p->n_value; i++) {
        const sl_value *v = &p->value[i];
        if (v->row_bytes != expected_row_bytes(v) || v->off % SL_WORKSPACE_ALIGN != 0 || v->off >= UINT64_MAX / 2)
            return SL_FAIL(SL_INTERNAL, "the plan's value %u lies at %llu with rows of %llu in a workspace of %llu", i,
                           (unsigned long long)v->off, (unsigned long long)v->row_bytes,
                           (unsigned long long)p->value_bytes);
        end = SL_MAX(end, end_of(p, v));
    }
    if (end != p->value_bytes) return SL_FAIL(SL_INTERNAL, "the plan's values do not end where they should");
    if (p->scratch_off < end || p->scratch_off % SL_WORKSPACE_ALIGN != 0 ||
        p->workspace_bytes != p->scratch_off + p->scratch_bytes || p->workspace_bytes < p->scratch_bytes)
        return SL_FAIL(SL_INTERNAL, "the plan's scratch lies at %llu of %llu", (unsigned long long)p->scratch_off,
                       (unsigned long long)p->workspace_bytes);
    return SL_OK;
}

static uint64_t kv_block_bytes(const sl_plan_kv *kv, bool is_v) {
    return kv->n_head_kv *
           sl_kv_head_bytes((sl_type)(is_v ? kv->type_v : kv->type_k), is_v, is_v ? kv->v_dim : kv->head_dim);
}

// Codes are in whole groups, and only they are rotated: by a power of two that divides the head.
static bool is_cache(uint8_t type, uint32_t dim, uint32_t n_rot) {
    if (!sl_kv_type_possible((sl_type)type)) return false;
    if (!sl_kv_code_bits((sl_type)type)) return n_rot == 0;
    bool rotation = n_rot == 0 || (n_rot % SL_KV_GROUP == 0 && (n_rot & (n_rot - 1)) == 0 && dim % n_rot == 0);
    return rotation && dim % SL_KV_GROUP == 0 && dim <= SL_KV_MAX_DIM;
}

static bool is_open(const sl_plan *p, const sl_plan_open *o, uint8_t type, uint64_t n_col, uint64_t *end) {
    if (!sl_kv_code_bits((sl_type)type)) return o->blk_bytes == 0;
    bool ok = o->blk_bytes == n_col * SL_KV_BLK_LEN * sizeof(uint16_t) && o->off == *end &&
              o->n_own == p->shape.n_slot * SL_KV_OPEN_SLOTS;
    *end += o->n_own * o->blk_bytes;
    return ok;
}

// K and V of the layers and their open blocks stand one behind the other, without overlap; then come the open blocks of
// a step, and the pool ends there.
static sl_status check_kv(const sl_plan *p) {
    uint64_t end = 0, most_k = 0, most_v = 0, n_step = sl_plan_n_step_open(p);
    for (uint32_t i = 0; i < p->n_kv; i++) {
        const sl_plan_kv *kv = &p->kv[i];
        bool ok = is_cache(kv->type_k, kv->head_dim, 0) && is_cache(kv->type_v, kv->v_dim, kv->v_rot) &&
                  kv->k_blk_bytes == kv_block_bytes(kv, false) && kv->v_blk_bytes == kv_block_bytes(kv, true) &&
                  kv->k_off == end && kv->v_off == kv->k_off + kv->k_blk_bytes * sl_plan_n_blk(p, kv) &&
                  kv->cls == (kv->window && p->shape.n_window_blk);
        end = kv->v_off + kv->v_blk_bytes * sl_plan_n_blk(p, kv);
        ok = ok && is_open(p, &kv->k_open, kv->type_k, (uint64_t)kv->n_head_kv * kv->head_dim, &end) &&
             is_open(p, &kv->v_open, kv->type_v, (uint64_t)kv->n_head_kv * kv->v_dim, &end);
        if (!ok) return SL_FAIL(SL_INTERNAL, "the plan is wrong at kv layer %u: types, bytes or offsets", i);
        most_k = SL_MAX(most_k, kv->k_open.blk_bytes), most_v = SL_MAX(most_v, kv->v_open.blk_bytes);
    }
    for (uint32_t i = 0; i < p->n_kv; i++)
        if (p->kv[i].k_open.step_off != end || p->kv[i].v_open.step_off != end + n_step * most_k)
            return SL_FAIL(SL_INTERNAL, "the plan's open blocks of a step are not where they should be");
    if (end + n_step * (most_k + most_v) != p->kv_bytes)
        return SL_FAIL(SL_INTERNAL, "the plan's KV pool has the wrong size");
    return SL_OK;
}

// ---- overlaps -----------------------------------------------------------------------------------

// May the output of op i lie on the value `v`, which is written and still wanted, if only by op i
// itself?
static bool may_cover(const sl_plan *p, uint32_t i, uint16_t v, const uint32_t *last_reader) {
    const sl_op *op = &p->op[i];
    const sl_value *in = &p->value[v], *out = &p->value[op->out];
    if (op->who != SL_WHO_ALL || in->each || last_reader[v] != i || in->off != out->off ||
        in->row_bytes != out->row_bytes || in->kind != out->kind || in->logit_rows != out->logit_rows)
        return false;
    for (int k = 0; k < sl_op_infos[op->code].n_in; k++)
        if (op->in[k] == v && !sl_op_may_alias(op, k)) return false;
    return true;
}

static sl_status play_values(const sl_plan *p, uint32_t *last_reader, uint16_t *live) {
    uint32_t n_live = 0;
    for (uint32_t i = 0; i < p->n_op; i++)
        for (int k = 0; k < sl_op_infos[p->op[i].code].n_in; k++) last_reader[p->op[i].in[k]] = i;
    last_reader[p->logits] = p->n_op; // the caller
    if (p->best != SL_NO_VALUE) last_reader[p->best] = p->n_op;
    for (uint32_t i = 0; i < p->n_op; i++) {
        const sl_op *op = &p->op[i];
        uint32_t n = 0;
        for (uint32_t k = 0; k < n_live; k++) { // those that op i or a later one reads
            if (last_reader[live[k]] < i) continue;
            live[n++] = live[k];
            if (op->out != SL_NO_VALUE && overlap(p, &p->value[live[k]], &p->value[op->out]) &&
                !may_cover(p, i, live[k], last_reader))
                return sl_verify_fail(p, i, "value %u is written over value %u, which is still wanted", op->out,
                                      live[k]);
        }
        n_live = n;
        if (op->out != SL_NO_VALUE) live[n_live++] = op->out;
    }
    return SL_OK;
}

// ---- barriers -----------------------------------------------------------------------------------

static int kv_layer_of(const sl_op *op) {
    if (op->code == SL_OP_KV_WRITE) return op->attr.kv.kv_layer;
    return sl_op_is_attend(op) ? op->attr.attend.kv_layer : -1;
}

// What `later` reads of the value has been written by the same worker, before.
static bool own_work(const sl_op *later, const sl_value *v) {
    return v->each == 1 || (later->who == SL_WHO_OWN && v->unit > 0);
}

// Must `later` wait for `earlier`? True if either writes what the other touches.
static bool conflict(const sl_plan *p, const sl_op *earlier, const sl_op *later) {
    const sl_value *v = p->value;
    if (kv_layer_of(earlier) >= 0 && kv_layer_of(earlier) == kv_layer_of(later) &&
        (earlier->code == SL_OP_KV_WRITE || later->code == SL_OP_KV_WRITE))
        return true;
    if (earlier->out != SL_NO_VALUE) {
        for (int k = 0; k < sl_op_infos[later->code].n_in; k++)
            if (overlap(p, &v[earlier->out], &v[later->in[k]]) &&
                !(earlier->out == later->in[k] && own_work(later, &v[later->in[k]])))
                return true;
        if (later->out != SL_NO_VALUE && overlap(p, &v[earlier->out], &v[later->out])) return true;
    }
    for (int k = 0; later->out != SL_NO_VALUE && k < sl_op_infos[earlier->code].n_in; k++)
        if (overlap(p, &v[earlier->in[k]], &v[later->out])) return true;
    return false;
}

static sl_status play_barriers(const sl_plan *p) {
    uint32_t first = 0; // op of the phase
    for (uint32_t i = 0; i < p->n_op; i++) {
        bool needed = false;
        for (uint32_t k = first; k < i && !needed; k++) needed = conflict(p, &p->op[k], &p->op[i]);
        if (needed != p->op[i].barrier)
            return sl_verify_fail(p, i, needed ? "a barrier is missing" : "a barrier is of no use");
        if (needed) first = i;
    }
    return SL_OK;
}

sl_status sl_verify_memory(const sl_plan *plan) {
    uint32_t *last_reader = NULL;
    uint16_t *live = NULL;
    sl_status status;
    SL_TRY_OUT(check_places(plan));
    SL_TRY_OUT(check_kv(plan));
    SL_TRY_OUT(sl_alloc(&last_reader, plan->n_value, sizeof *last_reader, "plan check"));
    SL_TRY_OUT(sl_alloc(&live, plan->n_value, sizeof *live, "plan check"));
    SL_TRY_OUT(play_values(plan, last_reader, live));
    status = play_barriers(plan);
out:
    sl_free(last_reader);
    sl_free(live);
    return status;
}
