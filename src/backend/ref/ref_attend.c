// SPDX-License-Identifier: MIT
//
// KV_WRITE and ATTEND of ref. A unit of KV_WRITE is a row, a unit of ATTEND one query head of a
// row: scores, the softmax with its maximum taken off, and the weighted sum of V, all in double,
// positions in rising order.
#include <math.h>

#include "backend/host.h"
#include "backend/ref/ref.h"
#include "base/half.h"

sl_status sl_ref_kv_check(const sl_plan *plan, const sl_op *op) {
    uint16_t layer = op->code == SL_OP_KV_WRITE ? op->attr.kv.kv_layer : op->attr.attend.kv_layer;
    const sl_plan_kv *kv = &plan->kv[layer];
    const uint8_t types[2] = {kv->type_k, kv->type_v};
    for (int i = 0; i < 2; i++)
        if (types[i] != SL_TYPE_F32 && types[i] != SL_TYPE_F16)
            return SL_FAIL(SL_UNSUPPORTED, "%s: a KV cache of type %s is not in backend ref; use f16 or f32",
                           sl_host_op_text(op), sl_type_name((sl_type)types[i]));
    return SL_OK;
}

// The pool block that holds `pos` of a row's sequence.
static int32_t find_blk(const sl_step *step, int32_t row, int32_t pos) {
    return step->blk_table[(int64_t)step->slot[row] * step->blk_stride + pos / SL_KV_BLK_LEN];
}

// The element at (pos, head, 0) of a pool block.
static uint64_t element(const sl_plan_kv *kv, int32_t pos, uint32_t head, uint32_t dim) {
    return ((uint64_t)(pos % SL_KV_BLK_LEN) * kv->n_head_kv + head) * dim;
}

static void store(uint8_t *blk, sl_type type, uint64_t first, const float *in, uint32_t n) {
    if (type == SL_TYPE_F32) {
        memcpy(blk + first * sizeof(float), in, n * sizeof(float));
        return;
    }
    uint16_t *half = (uint16_t *)(void *)blk + first;
    for (uint32_t i = 0; i < n; i++) half[i] = sl_f16_from_f32(in[i]);
}

static double load(const uint8_t *blk, sl_type type, uint64_t i) {
    if (type == SL_TYPE_F32) return ((const float *)(const void *)blk)[i];
    return sl_f16_to_f32(((const uint16_t *)(const void *)blk)[i]);
}

void sl_ref_kv_write(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const sl_plan_kv *kv = &program->plan->kv[op->attr.kv.kv_layer];
    const sl_step *step = program->step;
    for (int32_t row = (int32_t)begin; row < end; row++) {
        int32_t pos = step->pos[row];
        uint64_t blk = (uint64_t)find_blk(step, row, pos);
        uint8_t *k = program->kv + kv->k_off + blk * kv->k_blk_bytes;
        uint8_t *v = program->kv + kv->v_off + blk * kv->v_blk_bytes;
        store(k, (sl_type)kv->type_k, element(kv, pos, 0, kv->head_dim), sl_ref_row(program, op->in[0], row),
              kv->n_head_kv * kv->head_dim);
        store(v, (sl_type)kv->type_v, element(kv, pos, 0, kv->v_dim), sl_ref_row(program, op->in[1], row),
              kv->n_head_kv * kv->v_dim);
    }
}

// Turns scores into weights that add up to one.
static void softmax(double *score, int32_t n) {
    double max = -INFINITY, sum = 0;
    for (int32_t i = 0; i < n; i++) max = score[i] > max ? score[i] : max;
    for (int32_t i = 0; i < n; i++) sum += score[i] = exp(score[i] - max);
    for (int32_t i = 0; i < n; i++) score[i] /= sum;
}

static void attend_head(const sl_program *program, const sl_op *op, int32_t row, uint32_t head, double *scratch) {
    const sl_attr_attend *attr = &op->attr.attend;
    const sl_plan_kv *kv = &program->plan->kv[attr->kv_layer];
    uint32_t head_kv = head / (attr->n_head / kv->n_head_kv);
    int32_t last = program->step->pos[row], first = sl_host_first_seen(last, attr->window);
    const float *q = sl_ref_row(program, op->in[0], row) + (size_t)head * kv->head_dim;
    float *out = sl_ref_row(program, op->out, row) + (size_t)head * kv->v_dim;
    double *weight = scratch, *sum = scratch + program->plan->shape.n_ctx; // (n_ctx), (v_dim)
    for (int32_t pos = first; pos <= last; pos++) {
        const uint8_t *k = program->kv + kv->k_off + (uint64_t)find_blk(program->step, row, pos) * kv->k_blk_bytes;
        uint64_t at = element(kv, pos, head_kv, kv->head_dim);
        double score = 0;
        for (uint32_t d = 0; d < kv->head_dim; d++) score += (double)q[d] * load(k, (sl_type)kv->type_k, at + d);
        score *= (double)attr->scale;
        if (attr->softcap > 0) score = (double)attr->softcap * tanh(score / (double)attr->softcap);
        weight[pos - first] = score;
    }
    softmax(weight, last - first + 1);
    for (uint32_t d = 0; d < kv->v_dim; d++) sum[d] = 0;
    for (int32_t pos = first; pos <= last; pos++) {
        const uint8_t *v = program->kv + kv->v_off + (uint64_t)find_blk(program->step, row, pos) * kv->v_blk_bytes;
        uint64_t at = element(kv, pos, head_kv, kv->v_dim);
        for (uint32_t d = 0; d < kv->v_dim; d++) sum[d] += weight[pos - first] * load(v, (sl_type)kv->type_v, at + d);
    }
    for (uint32_t d = 0; d < kv->v_dim; d++) out[d] = (float)sum[d];
}

void sl_ref_attend(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    int64_t n_head = op->attr.attend.n_head;
    for (int64_t i = begin; i < end; i++)
        attend_head(program, op, (int32_t)(i / n_head), (uint32_t)(i % n_head), scratch);
}

uint64_t sl_ref_attend_scratch_bytes(const sl_plan *plan, const sl_op *op) {
    return ((uint64_t)plan->shape.n_ctx + plan->kv[op->attr.attend.kv_layer].v_dim) * sizeof(double);
}
