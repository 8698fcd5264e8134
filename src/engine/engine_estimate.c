// SPDX-License-Identifier: MIT
//
// What an engine would take, counted without taking it. It follows engine.c step by step;
// tests/unit/test_engine_estimate.c holds the two together to the byte.
#include "engine/engine_part.h"

uint64_t sl_engine_logit_bytes(const sl_engine_plans *p) {
    const sl_plan *widest = p->plan[p->n_width - 1];
    uint64_t row_bytes = widest->value[widest->logits].row_bytes;
    if (widest->best != SL_NO_VALUE) row_bytes += widest->value[widest->best].row_bytes;
    return widest->shape.n_logit_max * row_bytes;
}

// The engine's own arrays: those of a step, of the block tables, addresses of weights, and the logits of a device
// with memory of its own.
static uint64_t other_bytes(const sl_engine_plans *p, const sl_engine_options *o) {
    const sl_plan *widest = p->plan[p->n_width - 1];
    const sl_plan_shape *shape = &widest->shape;
    const sl_engine *e = NULL; // for sizes of its members only
    uint64_t n_row = shape->n_row_max, n_seq = shape->n_slot;
    sl_kv_shape kv_shape = sl_engine_kv_shape(p, o);
    uint64_t n_bytes = sizeof *e + sl_kv_shape_bytes(&kv_shape);
    n_bytes += n_row * (sizeof *e->rows + sizeof *e->token + sizeof *e->pos + sizeof *e->slot + sizeof *e->open);
    if (shape->moves) n_bytes += n_row * (sizeof *e->cell + sizeof *e->skip);
    n_bytes += shape->n_logit_max * sizeof *e->logit_row;
    n_bytes += n_seq * (sizeof *e->n_more + sizeof *e->n_before + sizeof *e->first_open + sizeof *e->step_open);
    for (int i = 0; i < p->n_width; i++) n_bytes += p->plan[i]->n_weight * sizeof *e->weight[0];
    if (o->prefix_path) n_bytes += sl_engine_store_memory(p->plan[0]->n_kv);
    if (p->own_memory) n_bytes += sl_engine_logit_bytes(p);
    return n_bytes;
}

static void count(sl_engine_estimate *out, const sl_engine_plans *p, const sl_engine_options *o) {
    const sl_plan *narrow = p->plan[0];
    *out = (sl_engine_estimate){
        .memory = {.kv_bytes = p->kv_bytes,
                   .copy_bytes = p->copy_bytes,
                   .workspace_bytes = p->workspace_bytes,
                   .other_bytes = other_bytes(p, o)},
    };
    for (uint32_t i = 0; i < narrow->n_weight; i++) {
        const sl_plan_weight *w = &narrow->weight[i];
        out->memory.weight_bytes += w->n_bytes;
        if (w->in_place) out->file_bytes += w->n_bytes;
    }
    for (uint32_t i = 0; i < narrow->n_op; i++) out->n_barrier += narrow->op[i].barrier;
}

sl_status sl_engine_estimate_make(sl_engine_estimate *out, const sl_model *model, const sl_engine_options *options) {
    *out = (sl_engine_estimate){0};
    const sl_backend *backend = options->backend;
    sl_device *device = NULL;
    sl_engine_plans plans = {0};
    sl_status status;
    SL_TRY_OUT(sl_engine_plans_open(&plans, &device, model, options));
    count(out, &plans, options);
out:
    sl_engine_plans_deinit(&plans);
    backend->close(device);
    return status;
}
