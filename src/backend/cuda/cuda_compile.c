// SPDX-License-Identifier: MIT
//
// Plan -> graph. Everything that can be decided before a step is decided here: what an op needs and whether we have it
// (supports), all addresses and kernels (compile).
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/tile.h"
#include "backend/host.h"
#include "base/alloc.h"
#include "quant/quant.h"

// ---- supports -----------------------------------------------------------------------------------

static sl_status check_weight(const sl_plan *plan, const sl_op *op) {
    const sl_plan_weight *w = &plan->weight[op->weight[0]];
    if (w->type < SL_TYPE_ID_COUNT && sl_quant_find((sl_type)w->type)) return SL_OK; // kernels/unpack.cuh has them all
    return SL_FAIL(SL_UNSUPPORTED, "%s: %s has type %s, which backend cuda cannot decode", sl_host_op_text(op), w->name,
                   sl_type_name((sl_type)w->type));
}

static sl_status check_matmul(const sl_plan *plan, const sl_op *op) {
    SL_TRY(check_weight(plan, op));
    const sl_plan_weight *w = &plan->weight[op->weight[0]];
    const sl_type_info *info = sl_type_find(w->type);
    uint8_t wanted = info->blk_len > 1 ? SL_VALUE_ACT16 : SL_VALUE_F32;
    if (plan->value[op->in[0]].kind != wanted)
        return SL_FAIL(SL_UNSUPPORTED, "%s: with %s weights (%s) backend cuda reads %s activations",
                       sl_host_op_text(op), info->name, w->name, wanted == SL_VALUE_ACT16 ? "16-bit" : "f32");
    return sl_host_check_vector(plan, op, 1);
}

static sl_status check_kv(const sl_plan *plan, const sl_op *op) {
    const sl_plan_kv *kv = sl_cuda_kv_of(plan, op);
    const uint8_t types[2] = {kv->type_k, kv->type_v};
    for (int i = 0; i < 2; i++)
        if (types[i] != SL_TYPE_F32 && types[i] != SL_TYPE_F16)
            return SL_FAIL(SL_UNSUPPORTED, "%s: a KV cache of type %s is not in backend cuda; use f16 or f32",
                           sl_host_op_text(op), sl_type_name((sl_type)types[i]));
    if (kv->head_dim > SL_CUDA_HEAD_DIM_MAX || kv->v_dim > SL_CUDA_V_DIM_MAX)
        return SL_FAIL(SL_UNSUPPORTED, "%s: heads of %u and %u columns are more than the %d and %d of backend cuda",
                       sl_host_op_text(op), kv->head_dim, kv->v_dim, SL_CUDA_HEAD_DIM_MAX, SL_CUDA_V_DIM_MAX);
    return SL_OK;
}

static sl_status check_op(const sl_plan *plan, const sl_op *op) {
    if (!sl_cuda_has_op(op->code)) return SL_FAIL(SL_UNSUPPORTED, "%s is not in backend cuda", sl_host_op_text(op));
    switch (op->code) {
    case SL_OP_EMBED: return check_weight(plan, op);
    case SL_OP_NORM_QUANT:
        if (op->attr.norm.group != plan->value[op->out].n_col)
            return SL_FAIL(SL_UNSUPPORTED, "%s: norms of parts of a row are not quantised by backend cuda",
                           sl_host_op_text(op));
        return sl_host_check_vector(plan, op, 0);
    case SL_OP_NORM: return sl_host_check_vector(plan, op, 0);
    case SL_OP_MATMUL:
    case SL_OP_MATMUL_ADD: return check_matmul(plan, op);
    case SL_OP_KV_WRITE:
    case SL_OP_ATTEND: return check_kv(plan, op);
    default: return SL_OK;
    }
}

sl_status sl_cuda_supports(void *device, const sl_plan *plan, const sl_op *op, sl_op_need *need) {
    *need = (sl_op_need){0};
    SL_TRY(check_op(plan, op));
    for (int i = 0; i < 2; i++)
        if (op->weight[i] != SL_NO_WEIGHT) need->copy_bytes[i] = sl_cuda_weight_bytes(&plan->weight[op->weight[i]]);
    if (op->code == SL_OP_ATTEND && plan->shape.n_row_max <= SL_CUDA_NARROW) {
        const sl_device *d = device;
        const sl_plan_kv *kv = sl_cuda_kv_of(plan, op);
        uint32_t n_part = sl_cuda_n_part(d->n_sm, kv->n_head_kv, d->most_parts);
        need->scratch_bytes =
            sl_cuda_partial_floats(plan->shape.n_row_max, op->attr.attend.n_head, n_part, kv->v_dim) * sizeof(float);
    }
    return SL_OK;
}

// ---- compile ------------------------------------------------------------------------------------

static sl_status capture(sl_program *p, const sl_program_memory *memory) {
    cudaGraph_t graph = NULL;
    SL_CUDA_TRY(cudaStreamBeginCapture(p->device->stream, cudaStreamCaptureModeThreadLocal), "recording the program");
    cudaError_t error = sl_cuda_launch_all(p, memory), end = cudaStreamEndCapture(p->device->stream, &graph);
    if (error == cudaSuccess) error = end;
    if (error == cudaSuccess) error = cudaGraphInstantiate(&p->graph, graph, 0);
    if (error == cudaSuccess) error = cudaGraphUpload(p->graph, p->device->stream);
    if (graph) (void)cudaGraphDestroy(graph);
    SL_CUDA_TRY(error, "recording the program");
    return SL_OK;
}

// Memory of the step's arguments, on both sides.
static sl_status take_memory(sl_program *p) {
    const sl_plan *plan = p->plan;
    const sl_plan_shape *shape = &plan->shape;
    p->shape = (sl_cuda_step_shape){.n_row_max = shape->n_row_max,
                                    .n_logit_max = shape->n_logit_max,
                                    .n_slot = shape->n_slot,
                                    .blk_stride = (shape->n_ctx - 1) / SL_KV_BLK_LEN + 1};
    size_t n_bytes = sl_cuda_step_ints(p->shape) * sizeof(int32_t);
    SL_CUDA_TRY(cudaMallocHost((void **)&p->host_step, n_bytes), "the step's arguments");
    for (uint64_t i = 0; i < sl_cuda_step_ints(p->shape); i++) p->host_step[i] = -1; // no block: nothing is up to date
    SL_TRY(sl_cuda_alloc(&p->device_step, n_bytes, "the step's arguments"));
    SL_TRY(sl_alloc(&p->range_of, shape->n_slot, sizeof *p->range_of, "the step's arguments"));
    SL_TRY(sl_cuda_alloc(&p->inv_freq, plan->n_inv_freq * sizeof *p->inv_freq, "the rotation's frequencies"));
    SL_CUDA_TRY(cudaMemcpy(p->inv_freq, plan->inv_freq, plan->n_inv_freq * sizeof *p->inv_freq, cudaMemcpyHostToDevice),
                "the rotation's frequencies");
    return SL_OK;
}

static sl_status check_memory(const sl_plan *plan, const sl_program_memory *memory) {
    const sl_device_buf *work = memory->workspace, *kv = memory->kv;
    if (!work || !work->handle || work->n_bytes < plan->workspace_bytes)
        return SL_FAIL(SL_BAD_ARG, "the workspace is smaller than the plan's %llu bytes",
                       (unsigned long long)plan->workspace_bytes);
    if (plan->kv_bytes && (!kv || !kv->handle || kv->n_bytes < plan->kv_bytes))
        return SL_FAIL(SL_BAD_ARG, "the KV pool is smaller than the plan's %llu bytes",
                       (unsigned long long)plan->kv_bytes);
    for (uint32_t i = 0; i < plan->n_weight; i++)
        if (!memory->weight[i]) return SL_FAIL(SL_BAD_ARG, "the weight %s has no data", plan->weight[i].name);
    return SL_OK;
}

void sl_cuda_program_destroy(sl_program *p) {
    if (!p) return;
    (void)cudaStreamSynchronize(p->device->stream);
    if (p->graph) (void)cudaGraphExecDestroy(p->graph);
    if (p->host_step) (void)cudaFreeHost(p->host_step);
    if (p->device_step) (void)cudaFree(p->device_step);
    if (p->inv_freq) (void)cudaFree(p->inv_freq);
    sl_free(p->range_of);
    sl_free(p);
}

static sl_status compile(sl_program *p, const sl_program_memory *memory) {
    SL_TRY(take_memory(p));
    SL_TRY(capture(p, memory));
    SL_CUDA_TRY(cudaStreamSynchronize(p->device->stream), "recording the program");
    return SL_OK;
}

sl_status sl_cuda_compile(sl_device *device, sl_program **out, const sl_plan *plan, const sl_program_memory *memory) {
    *out = NULL;
    SL_TRY(check_memory(plan, memory));
    for (uint32_t i = 0; i < plan->n_op; i++) {
        sl_op_need need;
        SL_TRY(sl_cuda_supports(device, plan, &plan->op[i], &need));
        if (need.scratch_bytes > plan->scratch_bytes)
            return SL_FAIL(SL_BAD_ARG, "%s: the plan was laid out for another device", sl_host_op_text(&plan->op[i]));
    }
    // The programs of the other widths have the same weights and find the copies of the first.
    if (!device->weights) {
        SL_TRY(sl_cuda_weights_create(&device->weights, plan, memory, device->stream));
        SL_TRY(sl_cuda_weights_time(device->weights, &device->read_gb_s, device->stream));
    }
    SL_TRY(sl_alloc(out, 1, sizeof **out, "the program"));
    (*out)->device = device;
    (*out)->plan = plan;
    sl_status status = compile(*out, memory);
    if (status == SL_OK) return SL_OK;
    sl_cuda_program_destroy(*out);
    *out = NULL;
    return status;
}
