// SPDX-License-Identifier: MIT
//
// What an engine would be, in words or JSON, without being one: it opens the device (for its
// scratch memory) and makes the plans.
#include "engine/engine_part.h"

static uint64_t weight_bytes(const sl_plan *plan) {
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < plan->n_weight; i++) n_bytes += plan->weight[i].n_bytes;
    return n_bytes;
}

static uint32_t n_barrier(const sl_plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_op; i++) n += plan->op[i].barrier;
    return n;
}

static double value_bits(uint8_t type) {
    const sl_type_info *info = sl_type_find(type);
    return 8.0 * info->blk_bytes / info->blk_len;
}

static void explain_text(const sl_engine_plans *p, const sl_device_info *device, sl_buf *out) {
    const double mib = 1024 * 1024;
    const sl_plan_shape *shape = &p->plan[p->n_width - 1]->shape;
    sl_buf_printf(out, "device      %s\n", device->name);
    sl_buf_printf(out, "weights     %10.1f MiB, mapped file\n", (double)weight_bytes(p->plan[0]) / mib);
    if (p->copy_bytes)
        sl_buf_printf(out, "repacked    %10.1f MiB, copies of weights in the order of the kernels\n",
                      (double)p->copy_bytes / mib);
    sl_buf_printf(out, "KV cache    %10.1f MiB, %u x %u positions, K %s, V %s", (double)p->kv_bytes / mib,
                  shape->n_slot, shape->n_ctx, sl_type_name((sl_type)shape->type_k),
                  sl_type_name((sl_type)shape->type_v));
    sl_buf_printf(out, "; with scales %.1f and %.1f bits a value\n", value_bits(shape->type_k),
                  value_bits(shape->type_v));
    sl_buf_printf(out, "workspace   %10.1f MiB\n\n", (double)p->workspace_bytes / mib);
    sl_buf_text(out, "rows of a step   ops  barriers   workspace bytes\n");
    for (int i = 0; i < p->n_width; i++)
        sl_buf_printf(out, "%7u .. %-4u %5u  %8u  %16llu\n", i ? p->plan[i - 1]->shape.n_row_max + 1 : 1,
                      p->plan[i]->shape.n_row_max, p->plan[i]->n_op, n_barrier(p->plan[i]),
                      (unsigned long long)p->plan[i]->workspace_bytes);
    sl_buf_printf(out, "\nThe program for steps of %u row%s; wider ones run the same ops at other offsets.\n\n",
                  p->plan[0]->shape.n_row_max, p->plan[0]->shape.n_row_max == 1 ? "" : "s");
    sl_plan_explain(p->plan[0], out);
}

static void explain_json(const sl_engine_plans *p, const sl_device_info *device, sl_buf *out) {
    sl_buf_text(out, "{\"device\": ");
    sl_buf_json(out, sl_span_of(device->name));
    sl_buf_printf(out,
                  ", \"memory\": {\"weight_bytes\": %llu, \"kv_bytes\": %llu, \"workspace_bytes\": "
                  "%llu, \"copy_bytes\": %llu}, \"programs\": [",
                  (unsigned long long)weight_bytes(p->plan[0]), (unsigned long long)p->kv_bytes,
                  (unsigned long long)p->workspace_bytes, (unsigned long long)p->copy_bytes);
    for (int i = 0; i < p->n_width; i++) {
        if (i) sl_buf_text(out, ", ");
        sl_plan_explain_json(p->plan[i], out);
    }
    sl_buf_text(out, "]}\n");
}

sl_status sl_engine_explain(const sl_model *model, const sl_engine_options *options, bool json, char **text) {
    *text = NULL;
    const sl_backend *backend = options->backend;
    sl_device *device = NULL;
    sl_engine_plans plans = {0};
    sl_buf out = {0};
    sl_status status;
    SL_TRY_OUT(sl_engine_plans_open(&plans, &device, model, options));
    sl_device_info info;
    backend->info(device, &info);
    if (json) explain_json(&plans, &info, &out);
    else explain_text(&plans, &info, &out);
    status = sl_buf_take(&out, text, NULL);
out:
    sl_engine_plans_deinit(&plans);
    backend->close(device);
    return status;
}
