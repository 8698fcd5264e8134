// SPDX-License-Identifier: MIT
//
// From options to programs: the width classes, and the question whether what they need is there,
// asked before anything large is taken.
#include "engine/engine_part.h"

#include "base/size.h"
#include "os/os.h"
#include "quant/kv_codec.h"

// Drafts and a few users: widths 2..8 share a program; where the device has memory of its own, 2 and 3..4 have theirs.
enum { NARROW_ROWS = 8 };

static sl_status check_options(const sl_model *model, const sl_engine_options *o) {
    if (model->config.n_layer == 0)
        return SL_FAIL(SL_BAD_ARG, "the model was opened for its vocabulary alone; open it without vocab_only");
    if (o->n_ctx < 1 || o->n_seq < 1 || o->n_row_max < 1 || o->n_logit_max < 1)
        return SL_FAIL(SL_BAD_ARG, "an engine needs at least one position, sequence, row and row with logits");
    if (o->n_ctx > INT32_MAX || o->n_row_max > INT32_MAX || o->n_seq > INT32_MAX)
        return SL_FAIL(SL_BAD_ARG, "positions, sequences and rows are counted in 31 bits");
    if (o->ctx_window && !(o->backend->fusions & SL_MOVING_ROWS))
        return SL_FAIL(SL_UNSUPPORTED,
                       "backend %s cannot move on when the context is full (ctx_window); leave that out, or use cpu",
                       o->backend->name);
    return SL_OK;
}

// Window layers get blocks of a class of their own where that takes less than keeping all positions.
static void choose_windows(sl_plan_shape *shape, const sl_config *config, const sl_backend *backend) {
    uint32_t widest = 0;
    for (uint32_t i = 0; i < config->n_layer; i++) widest = SL_MAX(widest, config->layer[i].window);
    if (widest == 0 || widest >= shape->n_ctx || !(backend->fusions & SL_WINDOW_TABLES)) return;
    if (shape->moves && widest + 2ull * SL_KV_BLK_LEN > shape->n_ctx) return; // they would see the first block
    int64_t n_blk = sl_kv_window_blocks(SL_KV_BLK_LEN, (int32_t)widest, (int32_t)shape->n_row_max);
    if (n_blk * shape->n_slot < shape->n_kv_blk) shape->n_window_blk = (uint32_t)n_blk * shape->n_slot;
}

static sl_status choose_shape(sl_plan_shape *shape, const sl_engine_options *o) {
    const uint64_t blk_len = SL_KV_BLK_LEN, n_whole = SL_MAX((o->n_ctx + blk_len - 1) / blk_len, 2u) * blk_len;
    uint64_t n_ctx = o->ctx_window ? n_whole : o->n_ctx, n_pos = o->n_seq * n_ctx, n_blk = INT32_MAX;
    uint32_t n_row_max = (uint32_t)(o->ctx_window ? o->n_row_max : SL_MIN(o->n_row_max, n_pos)); // wider: never filled
    if (n_ctx < INT32_MAX)
        n_blk =
            o->n_seq * (uint64_t)sl_kv_table_blocks(SL_KV_BLK_LEN, (int32_t)n_ctx, (int32_t)n_row_max, o->ctx_window);
    if (n_blk >= INT32_MAX)
        return SL_FAIL(SL_NO_MEMORY,
                       "%u sequences of %u positions are more than any KV pool holds; lower n_ctx or n_seq", o->n_seq,
                       o->n_ctx);
    *shape = (sl_plan_shape){
        .n_row_max = n_row_max,
        .n_ctx = (uint32_t)n_ctx,
        .n_slot = o->n_seq,
        .n_kv_blk = (uint32_t)n_blk, // each sequence can be full at once: none can starve another
        .type_k = (uint8_t)o->type_k,
        .type_v = (uint8_t)o->type_v,
        .kv_rotate = o->kv_rotate,
        .moves = o->ctx_window,
        .keep_inputs = o->keep_inputs,
    };
    shape->n_logit_max = SL_MIN(o->n_logit_max, shape->n_row_max);
    return SL_OK;
}

static uint64_t need_bytes(const sl_engine_plans *p) {
    uint64_t need;
    bool ok = sl_size_add(&need, p->kv_bytes, p->workspace_bytes) && sl_size_add(&need, need, p->copy_bytes);
    return ok ? need : UINT64_MAX;
}

sl_status sl_engine_plans_fit(const sl_engine_plans *p, const sl_engine_options *o) {
    uint64_t free_bytes = p->free_bytes, need = need_bytes(p);
    if (free_bytes == 0 || need <= free_bytes) return SL_OK;
    const double mib = 1024 * 1024;
    return SL_FAIL(SL_NO_MEMORY,
                   "this engine needs %.0f MiB (KV cache %.0f for %u x %u positions, workspace "
                   "%.0f, %s weights %.0f), but %.0f MiB are free%s; "
                   "lower n_ctx (now %u), n_seq (%u) or n_row_max (%u)",
                   (double)need / mib, (double)p->kv_bytes / mib, o->n_seq, o->n_ctx, (double)p->workspace_bytes / mib,
                   p->own_memory ? "copied" : "repacked", (double)p->copy_bytes / mib, (double)free_bytes / mib,
                   p->own_memory ? " on the device" : "", o->n_ctx, o->n_seq, o->n_row_max);
}

static uint32_t widest_window(const sl_plan *plan) {
    uint32_t widest = 0;
    for (uint32_t i = 0; i < plan->n_kv; i++) widest = SL_MAX(widest, plan->kv[i].window);
    return widest;
}

sl_kv_shape sl_engine_kv_shape(const sl_engine_plans *p, const sl_engine_options *o) {
    const sl_plan_shape *shape = &p->plan[p->n_width - 1]->shape;
    return (sl_kv_shape){
        .blk_len = SL_KV_BLK_LEN,
        .n_seq = (int32_t)shape->n_slot,
        .n_ctx = (int32_t)shape->n_ctx,
        .n_blk = (int32_t)shape->n_kv_blk,
        .n_row_max = (int32_t)shape->n_row_max,
        .window = shape->n_window_blk ? (int32_t)widest_window(p->plan[0]) : 0,
        .n_window_blk = (int32_t)shape->n_window_blk,
        .caches = o->prefix_cache,
        .moves = shape->moves,
        .opens = sl_kv_code_bits((sl_type)shape->type_k) || sl_kv_code_bits((sl_type)shape->type_v),
    };
}

static sl_status build(sl_engine_plans *p, const sl_model *model, const sl_plan_options *wide) {
    const uint32_t widths[SL_N_WIDTH] = {1, 2, 4, NARROW_ROWS, wide->shape.n_row_max};
    for (int i = 0; i < SL_N_WIDTH; i++) {
        if (!p->own_memory && widths[i] > 1 && widths[i] < NARROW_ROWS && i < SL_N_WIDTH - 1) continue;
        bool last = widths[i] >= wide->shape.n_row_max;
        sl_plan_options options = *wide;
        options.shape.n_row_max = last ? wide->shape.n_row_max : widths[i];
        options.shape.n_logit_max = SL_MIN(wide->shape.n_logit_max, options.shape.n_row_max);
        sl_plan *plan;
        SL_TRY(sl_plan_create(&plan, model, &options));
        p->plan[p->n_width++] = plan;
        p->workspace_bytes = SL_MAX(p->workspace_bytes, plan->workspace_bytes);
        p->kv_bytes = SL_MAX(p->kv_bytes, plan->kv_bytes); // alike but for the open blocks of a step, at the end
        p->copy_bytes = p->plan[0]->copy_bytes;
        if (last) break;
    }
    return SL_OK;
}

static sl_status plans_init(sl_engine_plans *out, const sl_model *model, const sl_engine_options *options,
                            sl_device *device) {
    const sl_backend *backend = options->backend;
    uint32_t fusions = backend->fusions & ~(uint32_t)(SL_WINDOW_TABLES | SL_MOVING_ROWS);
    sl_plan_options wide = {.fusions = fusions, .supports = backend->supports, .user = device};
    sl_device_info info;
    backend->info(device, &info);
    out->own_memory = info.own_memory;
    out->free_bytes = info.own_memory ? info.free_bytes : sl_memory_free_bytes();
    SL_TRY(choose_shape(&wide.shape, options));
    choose_windows(&wide.shape, &model->config, backend);
    wide.shape.n_worker = (uint32_t)SL_MAX(info.n_thread, 1);
    return build(out, model, &wide);
}

// Copies may take what is free, less room for the page cache that the file is read through and for others.
static bool copies_fit(const sl_engine_plans *p) {
    const uint64_t room = 512 << 20;
    uint64_t free_bytes = p->free_bytes, need = need_bytes(p);
    return free_bytes == 0 || (need <= free_bytes && free_bytes - need >= room + p->copy_bytes / 4);
}

static bool cache_fits(const sl_engine_plans *p) {
    uint64_t free_bytes = p->free_bytes;
    return free_bytes == 0 || (p->kv_bytes <= free_bytes && p->workspace_bytes <= free_bytes - p->kv_bytes);
}

static void close_plans(sl_engine_plans *p, sl_device **device, const sl_backend *backend) {
    sl_engine_plans_deinit(p);
    backend->close(*device);
    *device = NULL;
}

static sl_status open_plans(sl_engine_plans *out, sl_device **device, const sl_model *model, const sl_engine_options *o,
                            bool repack) {
    sl_device_options device_options = {.n_thread = o->n_thread,
                                        .n_thread_prefill = o->n_thread_prefill,
                                        .known_thread = o->known_thread,
                                        .known_thread_prefill = o->known_thread_prefill,
                                        .repack = repack,
                                        .wire = o->wire,
                                        .level = o->cpu_level};
    SL_TRY(o->backend->open(device, &device_options));
    sl_status status = plans_init(out, model, o, *device);
    if (status != SL_OK) close_plans(out, device, o->backend);
    return status;
}

sl_status sl_engine_plans_open(sl_engine_plans *out, sl_device **device, const sl_model *model,
                               const sl_engine_options *o) {
    *out = (sl_engine_plans){0};
    *device = NULL;
    sl_engine_options chosen = *o;
    bool repack = o->repack != SL_REPACK_OFF;
    SL_TRY(check_options(model, o));
    SL_TRY(o->backend->probe());
    SL_TRY(open_plans(out, device, model, &chosen, repack));
    if (o->kv_auto && !cache_fits(out)) {
        close_plans(out, device, o->backend);
        chosen.type_k = chosen.type_v = SL_TYPE_Q8_0;
        if (open_plans(out, device, model, &chosen, repack) != SL_OK) { // not of this backend, or not for such heads
            chosen.type_k = o->type_k, chosen.type_v = o->type_v;
            SL_TRY(open_plans(out, device, model, &chosen, repack));
        }
    }
    bool must = out->own_memory || o->repack == SL_REPACK_ON; // with memory of its own it has nothing but copies
    if (out->copy_bytes == 0 || must || copies_fit(out)) return SL_OK;
    close_plans(out, device, o->backend);
    return open_plans(out, device, model, &chosen, false);
}

void sl_engine_plans_deinit(sl_engine_plans *plans) {
    for (int i = 0; i < SL_N_WIDTH; i++) sl_plan_destroy(plans->plan[i]);
    *plans = (sl_engine_plans){0};
}
