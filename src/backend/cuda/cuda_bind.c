// SPDX-License-Identifier: MIT
//
// Ops with all that they touch: addresses, strides, attributes (sl_cuda_task).
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/tile.h"
#include "quant/quant.h"

const sl_plan_kv *sl_cuda_kv_of(const sl_plan *plan, const sl_op *op) {
    return &plan->kv[op->code == SL_OP_KV_WRITE ? op->attr.kv.kv_layer : op->attr.attend.kv_layer];
}

static void bind_attr(sl_cuda_task *t, const sl_program *p, const sl_op *op) {
    const sl_plan *plan = p->plan;
    switch (op->code) {
    case SL_OP_EMBED: t->attr.embed = op->attr.embed; break;
    case SL_OP_NORM:
    case SL_OP_NORM_QUANT: t->attr.norm = op->attr.norm; break;
    case SL_OP_ROPE: t->attr.rope = op->attr.rope; break;
    case SL_OP_ATTEND: t->attr.attend = op->attr.attend; break;
    case SL_OP_GLU:
    case SL_OP_GLU_QUANT: t->attr.glu = op->attr.glu; break;
    case SL_OP_SOFTCAP: t->attr.softcap = op->attr.softcap; break;
    case SL_OP_BEST: t->n_col = plan->value[op->in[0]].n_col; break;
    case SL_OP_ROPE_TABLE:
        t->inv_freq = p->inv_freq + plan->rope[op->attr.rope_table.rope].inv_freq_at;
        t->mscale = plan->rope[op->attr.rope_table.rope].mscale;
        break;
    default: break;
    }
}

static void bind_weights(sl_cuda_task *t, const sl_program *p, const sl_op *op, const void *const *weight) {
    if (op->weight[0] == SL_NO_WEIGHT) return;
    const sl_plan_weight *w = &p->plan->weight[op->weight[0]];
    t->weight = sl_cuda_weights_find(p->device->weights, weight[op->weight[0]]);
    t->weight_type = w->type;
    t->tile_bytes = sl_cuda_weight_tiled(w) ? sl_tile_bytes(w->type) : 0;
    t->weight_n_col = w->n_col;
    t->weight_row_bytes = sl_type_row_bytes(sl_type_find(w->type), w->n_col);
    if (op->weight[1] != SL_NO_WEIGHT)
        t->bias = (const float *)(const void *)sl_cuda_weights_find(p->device->weights, weight[op->weight[1]]);
}

static void bind_kv(sl_cuda_task *t, const sl_program *p, const sl_op *op, const sl_program_memory *memory) {
    const sl_plan_kv *kv = sl_cuda_kv_of(p->plan, op);
    t->k = (uint8_t *)memory->kv->handle + kv->k_off;
    t->v = (uint8_t *)memory->kv->handle + kv->v_off;
    t->k_blk_bytes = kv->k_blk_bytes, t->v_blk_bytes = kv->v_blk_bytes;
    t->n_head_kv = kv->n_head_kv, t->head_dim = kv->head_dim, t->v_dim = kv->v_dim;
    t->type_k = kv->type_k, t->type_v = kv->type_v;
    t->n_part = sl_cuda_n_part(p->device->n_sm, kv->n_head_kv, p->device->most_parts);
    t->partial = (float *)(void *)((uint8_t *)memory->workspace->handle + p->plan->scratch_off);
}

void sl_cuda_bind(sl_cuda_task *t, const sl_program *p, const sl_op *op, const sl_program_memory *memory) {
    const sl_plan *plan = p->plan;
    uint8_t *workspace = memory->workspace->handle;
    const sl_cuda_step_shape s = p->shape;
    const int32_t *step = p->device_step;
    *t = (sl_cuda_task){.step = {.n_row = step,
                                 .n_logit = step + 1,
                                 .token = step + 4,
                                 .pos = step + 4 + s.n_row_max,
                                 .slot = step + 4 + 2 * s.n_row_max,
                                 .logit_row = step + 4 + 3 * s.n_row_max,
                                 .blk_table = step + sl_cuda_step_table(s),
                                 .blk_stride = (int32_t)s.blk_stride},
                        .n_row_max = s.n_row_max,
                        .n_sm = p->device->n_sm,
                        .shared_bytes = p->device->shared_bytes,
                        .early = p->device->early};
    for (int i = 0; i < sl_op_infos[op->code].n_in; i++) {
        t->in[i] = workspace + plan->value[op->in[i]].off;
        t->in_stride[i] = plan->value[op->in[i]].row_bytes;
    }
    if (op->out != SL_NO_VALUE) {
        const sl_value *out = &plan->value[op->out];
        t->out = workspace + out->off;
        t->out_stride = out->row_bytes;
        t->n_col = out->n_col;
        t->logit_rows = out->logit_rows;
        if (out->logit_rows) t->n_row_max = s.n_logit_max;
    }
    bind_attr(t, p, op);
    bind_weights(t, p, op, memory->weight);
    if (op->code == SL_OP_KV_WRITE || op->code == SL_OP_ATTEND) bind_kv(t, p, op, memory);
}
