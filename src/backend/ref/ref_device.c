// SPDX-License-Identifier: MIT
//
// The reference backend as an sl_backend: threads, compile (which only takes addresses), run.
#include "backend/host.h"
#include "backend/ref/ref.h"
#include "base/alloc.h"
#include "os/os.h"

static sl_status probe(void) { return SL_OK; }

static void device_close(sl_device *device) {
    if (!device) return;
    sl_pool_destroy(device->pool);
    sl_free(device);
}

static sl_status device_open(sl_device **out, const sl_device_options *options) {
    SL_TRY(sl_alloc(out, 1, sizeof **out, "the device"));
    int n = SL_MAX(options->n_thread, options->n_thread_prefill);
    sl_status status = sl_pool_create(&(*out)->pool, n > 0 ? n : SL_MIN(sl_cpu_count(), SL_POOL_MAX_THREADS));
    if (status == SL_OK) return SL_OK;
    device_close(*out);
    *out = NULL;
    return status;
}

static void device_info(const sl_device *device, sl_device_info *out) {
    *out = (sl_device_info){.n_thread = sl_pool_size(device->pool), .n_thread_prefill = sl_pool_size(device->pool)};
    snprintf(out->name, sizeof out->name, "%.60s, reference in double", sl_cpu_name());
}

// Scratch of one thread, rounded so that no two threads share a cache line.
static uint64_t thread_scratch_bytes(const sl_plan *plan, const sl_op *op) {
    const sl_ref_op *ref = &sl_ref_ops[op->code];
    uint64_t n_bytes = ref->scratch_bytes ? ref->scratch_bytes(plan, op) : 0;
    return (n_bytes + SL_WORKSPACE_ALIGN - 1) / SL_WORKSPACE_ALIGN * SL_WORKSPACE_ALIGN;
}

static sl_status supports(void *device, const sl_plan *plan, const sl_op *op, sl_op_need *need) {
    *need = (sl_op_need){0};
    if (op->code >= SL_OP_COUNT || !sl_ref_ops[op->code].run)
        return SL_FAIL(SL_UNSUPPORTED, "%s is not in backend ref", sl_host_op_text(op));
    if (sl_ref_ops[op->code].check) SL_TRY(sl_ref_ops[op->code].check(plan, op));
    need->scratch_bytes = thread_scratch_bytes(plan, op) * (uint64_t)sl_pool_size(((sl_device *)device)->pool);
    return SL_OK;
}

static void program_destroy(sl_program *program) {
    if (!program) return;
    sl_free(program->weight);
    sl_free(program);
}

static sl_status compile(sl_device *device, sl_program **out, const sl_plan *plan, const sl_program_memory *memory) {
    sl_status status = SL_OK;
    *out = NULL;
    SL_TRY(sl_host_check_memory(plan, memory));
    for (uint32_t i = 0; i < plan->n_op; i++) {
        sl_op_need need;
        SL_TRY(supports(device, plan, &plan->op[i], &need));
        if (need.scratch_bytes > plan->scratch_bytes)
            return SL_FAIL(SL_BAD_ARG, "%s: the plan was laid out for another device", sl_host_op_text(&plan->op[i]));
    }
    sl_program *program;
    SL_TRY(sl_alloc(&program, 1, sizeof *program, "the program"));
    program->device = device;
    program->plan = plan;
    program->workspace = memory->workspace->host;
    program->kv = memory->kv ? memory->kv->host : NULL;
    SL_TRY_OUT(sl_alloc(&program->weight, plan->n_weight, sizeof *program->weight, "the program's weights"));
    for (uint32_t i = 0; i < plan->n_weight; i++) program->weight[i] = memory->weight[i];
    *out = program;
    return SL_OK;
out:
    program_destroy(program);
    return status;
}

static void run_ops(void *arg, int i_thread, int n_thread) {
    const sl_program *program = arg;
    const sl_plan *plan = program->plan;
    for (uint32_t i = 0; i < plan->n_op; i++) {
        const sl_op *op = &plan->op[i];
        const sl_ref_op *ref = &sl_ref_ops[op->code];
        int64_t begin, end;
        sl_pool_share(&begin, &end, ref->n_unit(program, op), i_thread, n_thread);
        ref->run(program, op, begin, end,
                 program->workspace + plan->scratch_off + (uint64_t)i_thread * thread_scratch_bytes(plan, op));
        sl_pool_barrier(program->device->pool);
    }
}

static sl_status run(sl_program *program, const sl_step *step) {
    SL_TRY(sl_host_check_step(program->plan, step));
    program->step = step;
    sl_pool_run(program->device->pool, sl_pool_size(program->device->pool), run_ops, program);
    program->step = NULL;
    return SL_OK;
}

const sl_backend sl_backend_ref = {
    .name = "ref",
    .fusions = SL_WINDOW_TABLES | SL_MOVING_ROWS,
    .probe = probe,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .buf_create = sl_host_buf_create,
    .buf_destroy = sl_host_buf_destroy,
    .buf_copy = sl_host_buf_copy,
    .buf_read = sl_host_buf_read,
    .supports = supports,
    .compile = compile,
    .program_destroy = program_destroy,
    .run = run,
};
