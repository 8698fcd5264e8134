// SPDX-License-Identifier: MIT
//
// The CUDA backend's own types. compile turns each op into a task (kernels/kernels.h), lets the launchers put all tasks
// of the plan on a stream that is being captured, and keeps the graph; run writes the step's arguments into pinned
// memory and launches the graph, once. Work of a device is in one stream, so programs and copies follow one another.
#ifndef SL_BACKEND_CUDA_CUDA_H
#define SL_BACKEND_CUDA_CUDA_H

#include "backend/backend.h"
#include "backend/cuda/cuda_weights.h"
#include "backend/cuda/kernels/kernels.h"

struct sl_device {
    cudaStream_t stream;         // owned
    sl_cuda_weights *weights;    // owned; NULL before the first program
    uint32_t n_sm, shared_bytes; // see sl_cuda_task
    uint32_t most_parts;         // see sl_cuda_n_part
    bool early;
    double read_gb_s; // of its memory; 0 before the first program
    char name[96];
};

struct sl_program {
    sl_device *device;     // borrowed
    const sl_plan *plan;   // borrowed
    cudaGraphExec_t graph; // owned
    sl_cuda_step_shape shape;
    int32_t *host_step;   // owned, pinned: layout in kernels.h
    int32_t *device_step; // owned
    double *inv_freq;     // owned; (n_inv_freq) on the device
    int32_t *range_of;    // owned; (n_slot) index + 1 of a slot's range in the step that is being made; 0: none
};

// The reason of a CUDA error as a status: SL_NO_MEMORY if there was too little, otherwise SL_DEVICE.
sl_status sl_cuda_fail(cudaError_t error, const char *what);

// `what` says in a few words what was being done.
#define SL_CUDA_TRY(expr, what)                                                                      \
    do {                                                                                             \
        cudaError_t sl_cuda_error_ = (expr);                                                         \
        if (SL_UNLIKELY(sl_cuda_error_ != cudaSuccess)) return sl_cuda_fail(sl_cuda_error_, (what)); \
    } while (0)

// Device memory, zeroed; SL_NO_MEMORY says how much is free.
sl_status sl_cuda_alloc(void *out, size_t n_bytes, const char *what);

// cuda_compile.c
sl_status sl_cuda_supports(void *device, const sl_plan *plan, const sl_op *op, sl_op_need *need);
sl_status sl_cuda_compile(sl_device *device, sl_program **out, const sl_plan *plan, const sl_program_memory *memory);
void sl_cuda_program_destroy(sl_program *program);

// cuda_bind.c
const sl_plan_kv *sl_cuda_kv_of(const sl_plan *plan, const sl_op *op); // of KV_WRITE and ATTEND
void sl_cuda_bind(sl_cuda_task *t, const sl_program *p, const sl_op *op, const sl_program_memory *memory);

// cuda_launch.c
bool sl_cuda_has_op(uint8_t code);
cudaError_t sl_cuda_launch_all(const sl_program *p, const sl_program_memory *memory); // on the device's stream

// cuda_run.c
sl_status sl_cuda_run(sl_program *program, const sl_step *step);

#endif
