// SPDX-License-Identifier: MIT
//
// Birth, death and questions. Creation goes from cheap to dear: device, plans, the check that they
// fit, memory, programs, weights; whatever fails undoes the rest. There is no warm-up step: all
// memory is touched here, and the first step of each program takes no fault
// (tests/model/test_sealed.c counts it too), so that the first token need not wait for one.
#include "engine/engine_part.h"

#include <string.h>

#include "os/os.h"

// Every array that the engine itself holds goes through here, so that their sum is known.
static sl_status take(sl_engine *e, void *out, size_t n, size_t elem_bytes) {
    SL_TRY(sl_alloc(out, n, elem_bytes, "engine"));
    memset(*(void **)out, 0, n * elem_bytes); // touched
    e->memory.other_bytes += n * elem_bytes;
    return SL_OK;
}

static sl_status take_memory(sl_engine *e, const sl_plan_shape *shape, const sl_engine_options *o) {
    e->n_row_max = shape->n_row_max, e->n_logit_max = shape->n_logit_max;
    size_t n_row = shape->n_row_max, n_seq = shape->n_slot;
    const sl_plan *widest = e->plans.plan[e->plans.n_width - 1];
    SL_TRY(e->backend->buf_create(e->device, &e->kv_buf, NULL, e->plans.kv_bytes, "the KV cache"));
    SL_TRY(e->backend->buf_create(e->device, &e->workspace, NULL, e->plans.workspace_bytes, "the workspace"));
    sl_kv_shape kv_shape = sl_engine_kv_shape(&e->plans, o);
    SL_TRY(sl_kv_init(&e->kv, &kv_shape));
    e->memory.kv_bytes = e->kv_buf.n_bytes;
    e->memory.workspace_bytes = e->workspace.n_bytes;
    e->memory.other_bytes += sl_kv_shape_bytes(&kv_shape);
    SL_TRY(take(e, &e->rows, n_row, sizeof *e->rows));
    SL_TRY(take(e, &e->token, n_row, sizeof *e->token));
    SL_TRY(take(e, &e->pos, n_row, sizeof *e->pos));
    SL_TRY(take(e, &e->slot, n_row, sizeof *e->slot));
    SL_TRY(take(e, &e->open, n_row, sizeof *e->open));
    if (shape->moves) SL_TRY(take(e, &e->cell, n_row, sizeof *e->cell));
    if (shape->moves) SL_TRY(take(e, &e->skip, n_row, sizeof *e->skip));
    SL_TRY(take(e, &e->logit_row, shape->n_logit_max, sizeof *e->logit_row));
    SL_TRY(take(e, &e->n_more, n_seq, sizeof *e->n_more));
    SL_TRY(take(e, &e->n_before, n_seq, sizeof *e->n_before));
    SL_TRY(take(e, &e->first_open, n_seq, sizeof *e->first_open));
    SL_TRY(take(e, &e->step_open, n_seq, sizeof *e->step_open));
    if (!e->plans.own_memory) return SL_OK;
    size_t logit_bytes = sl_engine_logit_bytes(&e->plans);
    SL_TRY(take(e, &e->logits_copy, 1, logit_bytes));
    e->best_copy = e->logits_copy + shape->n_logit_max * widest->value[widest->logits].row_bytes;
    return e->backend->buf_create(e->device, &e->logits_buf, e->logits_copy, logit_bytes, "the logits");
}

// Addresses by plan weight id.
static sl_status bind_weights(sl_engine *e, const sl_plan *plan, const sl_gguf *gguf, const void ***out) {
    SL_TRY(take(e, out, plan->n_weight, sizeof **out));
    for (uint32_t i = 0; i < plan->n_weight; i++) {
        const sl_plan_weight *w = &plan->weight[i];
        const sl_gguf_tensor *tensor = w->source < sl_gguf_n_tensors(gguf) ? sl_gguf_tensor_at(gguf, w->source) : NULL;
        if (!tensor || tensor->n_bytes != w->n_bytes)
            return SL_FAIL(SL_INTERNAL, "the plan's weight %s is not in the file", w->name);
        if (!tensor->data)
            return SL_FAIL(SL_BAD_ARG, "%s has no data: the model was opened for its header alone", w->name);
        (*out)[i] = tensor->data;
    }
    return SL_OK;
}

static sl_status compile(sl_engine *e, const sl_gguf *gguf, const sl_engine_options *o) {
    for (int i = 0; i < e->plans.n_width; i++) {
        SL_TRY(bind_weights(e, e->plans.plan[i], gguf, &e->weight[i]));
        sl_program_memory memory = {.weight = e->weight[i],
                                    .workspace = &e->workspace,
                                    .kv = &e->kv_buf,
                                    .progress = o->progress,
                                    .user = o->user};
        SL_TRY(e->backend->compile(e->device, &e->program[i], e->plans.plan[i], &memory));
    }
    return SL_OK;
}

// Of the file only what is read from it stays in memory: not the weights that the backend has copied.
static sl_status settle_file(const sl_engine *e, const sl_gguf *gguf, const sl_engine_options *o) {
    const sl_plan *plan = e->plans.plan[0];
    uint64_t n_done = 0, total = 0;
    for (uint32_t i = 0; i < plan->n_weight; i++)
        if (plan->weight[i].in_place) total += plan->weight[i].n_bytes;
    sl_gguf_header_prefault(gguf);
    for (uint32_t i = 0; i < plan->n_weight; i++) {
        const sl_plan_weight *w = &plan->weight[i];
        const sl_gguf_tensor *tensor = sl_gguf_tensor_at(gguf, w->source);
        if (!w->in_place) {
            sl_gguf_tensor_release(gguf, tensor);
            continue;
        }
        sl_gguf_tensor_prefault(gguf, tensor);
        n_done += w->n_bytes;
        if (o->progress && o->progress(o->user, n_done, total)) return SL_FAIL(SL_CANCELLED, "loading was stopped");
    }
    return SL_OK;
}

// As far as the system allows; what it did is in memory.wired_bytes.
static void wire(sl_engine *e) {
    const sl_plan *plan = e->plans.plan[0];
    sl_device_info info;
    e->backend->info(e->device, &info);
    uint64_t n_bytes = info.wired_bytes;
    for (uint32_t i = 0; i < plan->n_weight; i++)
        if (plan->weight[i].in_place) n_bytes += sl_pages_lock(e->weight[0][i], plan->weight[i].n_bytes);
    if (e->kv_buf.host) n_bytes += sl_pages_lock(e->kv_buf.host, e->kv_buf.n_bytes);
    if (e->workspace.host) n_bytes += sl_pages_lock(e->workspace.host, e->workspace.n_bytes);
    e->memory.wired_bytes = n_bytes;
}

static sl_status create(sl_engine *e, const sl_model *model, const sl_engine_options *o) {
    e->backend = o->backend, e->gguf = model->gguf;
    SL_TRY(sl_engine_plans_open(&e->plans, &e->device, model, o));
    SL_TRY(sl_engine_plans_fit(&e->plans, o));
    const sl_plan *widest = e->plans.plan[e->plans.n_width - 1];
    e->n_vocab = widest->n_vocab;
    for (uint32_t i = 0; i < widest->n_weight; i++) e->memory.weight_bytes += widest->weight[i].n_bytes;
    e->memory.copy_bytes = e->plans.copy_bytes;
    if (o->prefix_path) SL_TRY(sl_engine_store_open(e, o->prefix_path, o->prefix_bytes));
    SL_TRY(take_memory(e, &widest->shape, o));
    SL_TRY(compile(e, model->gguf, o));
    SL_TRY(settle_file(e, model->gguf, o));
    if (o->wire) wire(e);
    return SL_OK;
}

sl_status sl_engine_create(sl_engine **out, const sl_model *model, const sl_engine_options *options) {
    *out = NULL;
    sl_engine *e;
    SL_TRY(sl_alloc(&e, 1, sizeof *e, "engine"));
    e->memory.other_bytes = sizeof *e;
    sl_status status = create(e, model, options);
    if (status != SL_OK) {
        sl_engine_destroy(e);
        return status;
    }
    sl_code_prefault();
    sl_faults faults = sl_faults_now();
    e->stats = (sl_engine_stats){.n_minor_fault = faults.n_minor, .n_major_fault = faults.n_major};
    *out = e;
    return SL_OK;
}

void sl_engine_destroy(sl_engine *e) {
    if (!e) return;
    for (int i = 0; i < SL_N_WIDTH; i++) {
        e->backend->program_destroy(e->program[i]);
        sl_free(e->weight[i]);
    }
    e->backend->buf_destroy(e->device, &e->logits_buf);
    e->backend->buf_destroy(e->device, &e->workspace);
    e->backend->buf_destroy(e->device, &e->kv_buf);
    e->backend->close(e->device);
    sl_engine_store_close(e->store);
    sl_engine_plans_deinit(&e->plans);
    sl_kv_deinit(&e->kv);
    sl_free(e->rows);
    sl_free(e->token);
    sl_free(e->pos);
    sl_free(e->slot);
    sl_free(e->open);
    sl_free(e->cell);
    sl_free(e->skip);
    sl_free(e->logit_row);
    sl_free(e->n_more);
    sl_free(e->n_before);
    sl_free(e->first_open);
    sl_free(e->step_open);
    sl_free(e->logits_copy);
    sl_free(e);
}

// ---- questions ----------------------------------------------------------------------------------

int32_t sl_engine_seq_gone(const sl_engine *e, int32_t seq) {
    return seq >= 0 && seq < e->kv.shape.n_seq ? sl_kv_gone(&e->kv, seq) : 0;
}

int32_t sl_engine_seq_length(const sl_engine *e, int32_t seq) {
    return seq >= 0 && seq < e->kv.shape.n_seq ? e->kv.length[seq] : 0;
}

void sl_engine_get_memory(const sl_engine *e, sl_engine_memory *out) { *out = e->memory; }

void sl_engine_get_stats(const sl_engine *e, sl_engine_stats *out) {
    sl_faults now = sl_faults_now();
    *out = e->stats;
    const sl_kv_class *blocks = &e->kv.cls[0];
    out->n_evicted = e->kv.n_evicted;
    out->n_blk = (uint64_t)blocks->n_blk;
    out->n_blk_cached = (uint64_t)blocks->n_idle;
    out->n_blk_held = (uint64_t)(blocks->n_blk - blocks->n_free - blocks->n_idle);
    out->n_pos_held = out->n_blk_held * SL_KV_BLK_LEN - (uint64_t)sl_kv_count_unused(&e->kv);
    out->disk_bytes = sl_engine_store_bytes(e->store);
    out->n_minor_fault = now.n_minor - e->stats.n_minor_fault;
    out->n_major_fault = now.n_major - e->stats.n_major_fault;
}

void sl_engine_get_device(const sl_engine *e, sl_device_info *out) { e->backend->info(e->device, out); }

const sl_plan *sl_engine_plan(const sl_engine *e, int width) {
    return width >= 0 && width < e->plans.n_width ? e->plans.plan[width] : NULL;
}
