// SPDX-License-Identifier: MIT
//
// Shared by the backends that compute in host memory; see host.h.
#include "backend/host.h"

#include <string.h>

#include "os/os.h"

// ---- buffers: handle is not NULL if the memory is ours ------------------------------------------

sl_status sl_host_buf_create(sl_device *device, sl_device_buf *out, void *host, size_t n_bytes, const char *what) {
    (void)device;
    *out = (sl_device_buf){0};
    if (!host) {
        SL_TRY(sl_pages_alloc(&host, n_bytes, true, what));
        out->handle = host;
    }
    out->host = host;
    out->n_bytes = n_bytes;
    return SL_OK;
}

void sl_host_buf_destroy(sl_device *device, sl_device_buf *buf) {
    (void)device;
    if (buf->handle) sl_pages_free(buf->handle, buf->n_bytes);
    *buf = (sl_device_buf){0};
}

static bool inside(const sl_device_buf *buf, size_t off, size_t n_bytes) {
    return off <= buf->n_bytes && n_bytes <= buf->n_bytes - off;
}

sl_status sl_host_buf_copy(sl_device *device, sl_device_buf *dst, size_t dst_off, const sl_device_buf *src,
                           size_t src_off, size_t n_bytes) {
    (void)device;
    if (!inside(dst, dst_off, n_bytes) || !inside(src, src_off, n_bytes))
        return SL_FAIL(SL_BAD_ARG, "a copy of %zu bytes does not fit into its buffers", n_bytes);
    memmove((char *)dst->host + dst_off, (const char *)src->host + src_off, n_bytes);
    return SL_OK;
}

sl_status sl_host_buf_read(sl_device *device, void *out, const sl_device_buf *src, size_t src_off, size_t n_bytes) {
    (void)device;
    if (!inside(src, src_off, n_bytes))
        return SL_FAIL(SL_BAD_ARG, "a read of %zu bytes at %zu is past the end of a buffer", n_bytes, src_off);
    memcpy(out, (const char *)src->host + src_off, n_bytes);
    return SL_OK;
}

// ---- checks -------------------------------------------------------------------------------------

sl_status sl_host_check_memory(const sl_plan *plan, const sl_program_memory *memory) {
    const sl_device_buf *work = memory->workspace, *kv = memory->kv;
    if (!work || !work->host || work->n_bytes < plan->workspace_bytes)
        return SL_FAIL(SL_BAD_ARG, "the workspace is smaller than the plan's %llu bytes",
                       (unsigned long long)plan->workspace_bytes);
    if ((uintptr_t)work->host % SL_WORKSPACE_ALIGN != 0)
        return SL_FAIL(SL_BAD_ARG, "the workspace is not aligned to %d bytes", SL_WORKSPACE_ALIGN);
    if (plan->kv_bytes && (!kv || !kv->host || kv->n_bytes < plan->kv_bytes))
        return SL_FAIL(SL_BAD_ARG, "the KV pool is smaller than the plan's %llu bytes",
                       (unsigned long long)plan->kv_bytes);
    for (uint32_t i = 0; i < plan->n_weight; i++)
        if (!memory->weight[i]) return SL_FAIL(SL_BAD_ARG, "the weight %s has no data", plan->weight[i].name);
    return SL_OK;
}

// What the layers of a class look at.
typedef struct class_view {
    const int32_t *table;   // NULL: there is no such class
    uint32_t n_blk, window; // the widest; 0: some layer sees everything
} class_view;

static class_view view_class(const sl_plan *plan, const sl_step *step, uint8_t cls) {
    class_view v = {.n_blk = plan->shape.n_kv_blk, .table = step->blk_table};
    if (cls) v = (class_view){.n_blk = plan->shape.n_window_blk, .table = step->window_table};
    bool sees_all = false;
    for (uint32_t i = 0; i < plan->n_kv; i++) {
        const sl_plan_kv *kv = &plan->kv[i];
        if (kv->cls != cls) continue;
        v.window = SL_MAX(v.window, kv->window);
        sees_all |= kv->window == 0;
    }
    if (sees_all) v.window = 0;
    return v;
}

static sl_status check_blocks(const class_view *v, const sl_step *step, int32_t row) {
    int32_t cell = sl_step_cell(step, row), slot = step->slot[row];
    int32_t blk = sl_host_first_seen(cell, v->window) / SL_KV_BLK_LEN;
    if (!v->table) return SL_OK;
    const int32_t *table = v->table + (size_t)slot * (size_t)step->blk_stride;
    // The row before has already looked at all but the last block.
    if (row > 0 && step->slot[row - 1] == slot && sl_step_cell(step, row - 1) + 1 == cell) blk = cell / SL_KV_BLK_LEN;
    for (; blk <= cell / SL_KV_BLK_LEN; blk++) {
        int32_t of_pool = table[sl_step_entry(step, row, blk)];
        if (of_pool < 0 || (uint32_t)of_pool >= v->n_blk)
            return SL_FAIL(SL_BAD_ARG, "block %d of slot %d is %d, but the pool has %u", blk, slot, of_pool, v->n_blk);
    }
    return SL_OK;
}

static sl_status check_cell(const sl_plan *plan, const sl_step *step, int32_t row) {
    int32_t pos = step->pos[row], cell = sl_step_cell(step, row), skip = step->skip ? step->skip[row] : 0;
    if (pos < 0 || cell < 0 || (uint32_t)cell >= plan->shape.n_ctx || cell / SL_KV_BLK_LEN >= step->blk_stride)
        return SL_FAIL(SL_BAD_ARG, "row %d is at position %d, past the context of %u", row, cell, plan->shape.n_ctx);
    if (cell > pos || (pos - cell) % SL_KV_BLK_LEN != 0 || skip < 0 ||
        skip >= step->blk_stride - cell / SL_KV_BLK_LEN || (cell < SL_KV_BLK_LEN && (cell < pos || skip > 0)))
        return SL_FAIL(SL_BAD_ARG, "row %d is at position %d, which is not cell %d of a sequence that skips %d blocks",
                       row, pos, cell, skip);
    return SL_OK;
}

static sl_status check_row(const sl_plan *plan, const sl_step *step, int32_t row, const class_view view[2]) {
    const sl_plan_shape *shape = &plan->shape;
    int32_t token = step->token[row], slot = step->slot[row];
    if (token < 0 || (uint32_t)token >= plan->n_vocab)
        return SL_FAIL(SL_BAD_ARG, "row %d has token %d, but the vocabulary has %u", row, token, plan->n_vocab);
    if (slot < 0 || (uint32_t)slot >= shape->n_slot)
        return SL_FAIL(SL_BAD_ARG, "row %d is of slot %d, but there are %u", row, slot, shape->n_slot);
    SL_TRY(check_cell(plan, step, row));
    uint32_t n_open = shape->n_slot * SL_KV_OPEN_SLOTS + sl_plan_n_step_open(plan);
    if (step->open && (step->open[row] < 0 || (uint32_t)step->open[row] >= n_open))
        return SL_FAIL(SL_BAD_ARG, "row %d has open block %d, but there are %u", row, step->open[row], n_open);
    SL_TRY(check_blocks(&view[0], step, row));
    return check_blocks(&view[1], step, row);
}

sl_status sl_host_check_step(const sl_plan *plan, const sl_step *step) {
    const sl_plan_shape *shape = &plan->shape;
    if (step->n_row < 1 || (uint32_t)step->n_row > shape->n_row_max)
        return SL_FAIL(SL_BAD_ARG, "a step of %d rows, but the plan is for 1 to %u", step->n_row, shape->n_row_max);
    if (step->n_logit < 0 || (uint32_t)step->n_logit > shape->n_logit_max)
        return SL_FAIL(SL_BAD_ARG, "%d rows want logits, but the plan is for %u", step->n_logit, shape->n_logit_max);
    const class_view view[2] = {view_class(plan, step, 0), view_class(plan, step, 1)};
    if (plan->shape.n_window_blk && !step->window_table)
        return SL_FAIL(SL_BAD_ARG, "the step has no block table for windows");
    for (uint32_t i = 0; i < plan->n_kv; i++)
        if (!step->open && (plan->kv[i].k_open.blk_bytes || plan->kv[i].v_open.blk_bytes))
            return SL_FAIL(SL_BAD_ARG, "the step does not say which open blocks its rows are in");
    for (int32_t row = 0; row < step->n_row; row++) SL_TRY(check_row(plan, step, row, view));
    for (int32_t i = 0; i < step->n_logit; i++) {
        int32_t row = step->logit_row[i], before = i ? step->logit_row[i - 1] : -1;
        if (row <= before || row >= step->n_row)
            return SL_FAIL(SL_BAD_ARG, "the rows that want logits do not rise within the step");
    }
    return SL_OK;
}

const char *sl_host_op_text(const sl_op *op) {
    static SL_THREAD_LOCAL char text[64];
    const char *name = op->code < SL_OP_COUNT ? sl_op_infos[op->code].name : "unknown";
    if (op->layer < 0) snprintf(text, sizeof text, "op %s", name);
    else snprintf(text, sizeof text, "op %s of layer %d", name, op->layer);
    return text;
}

sl_status sl_host_check_vector(const sl_plan *plan, const sl_op *op, int i) {
    if (op->weight[i] == SL_NO_WEIGHT) return SL_OK;
    const sl_plan_weight *w = &plan->weight[op->weight[i]];
    if (w->type == SL_TYPE_F32) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED, "%s: %s is %s, but a vector must be f32", sl_host_op_text(op), w->name,
                   sl_type_name((sl_type)w->type));
}
