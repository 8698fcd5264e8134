// SPDX-License-Identifier: MIT
//
// The CPU backend's own types. compile turns each op into a task: pointers, strides, kernel
// function and kind of share resolved; run walks the tasks and adds only what varies by step. No
// plan is looked at while running.
#ifndef SL_BACKEND_CPU_CPU_H
#define SL_BACKEND_CPU_CPU_H

#include "backend/backend.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/pool.h"
#include "backend/cpu/repack.h"

struct sl_device {
    sl_pool *pool; // owned; as many threads as the larger count
    int n_thread, n_thread_prefill;
    bool repack, wire;
    sl_repack *packed; // owned; NULL before the first program that wants it
    sl_cpu_kernels kernels;
};

// How a task is split over threads.
typedef enum sl_task_kind {
    SL_TASK_ROWS,   // a range of rows each; a single row is done by thread 0
    SL_TASK_PANELS, // a range of panels of outputs each, for all rows
    SL_TASK_TILES,  // tiles of attention, dealt out in turn
} sl_task_kind;

typedef struct sl_task sl_task;

// Does units [begin, end): rows or outputs. scratch is this thread's. For SL_TASK_TILES the range
// is (i_thread, n_thread).
typedef void sl_task_fn(const sl_program *program, const sl_task *task, int32_t begin, int32_t end, void *scratch);

struct sl_task {
    sl_task_fn *run;
    uint8_t kind, barrier;
    uint8_t logit_rows;     // rows are those that want logits
    uint8_t weight_type;    // of EMBED
    uint64_t scratch_bytes; // of one thread
    const uint8_t *in[2];
    uint64_t in_stride[2]; // bytes
    uint8_t *out;
    uint64_t out_stride; // bytes
    uint32_t n_col;      // of out; of in for QUANT
    const void *weight;  // matrix, or norm weight
    uint64_t weight_row_bytes;
    const double *inv_freq; // ROPE_TABLE: (n_rot/2)
    float mscale;
    union {
        sl_attr_embed embed;
        sl_attr_norm norm;
        sl_attr_rope rope;
        sl_attr_glu glu;
        sl_attr_softcap softcap;
    } attr;
    sl_cpu_matmul_fn *matmul;
    sl_cpu_matmul mm; // all but n_row
    void (*attend_fn)(const sl_cpu_attend *a, uint32_t row_begin, uint32_t row_end, uint32_t head_begin,
                      uint32_t head_end, void *scratch);
    sl_cpu_attend attend; // all but pos, slot, blk_table
    void (*kv_write_fn)(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, int is_v);
    const sl_plan_kv *kv; // borrowed from the plan
    uint8_t *k, *v;       // the layer's pools
};

struct sl_program {
    sl_device *device;      // borrowed
    const sl_plan *plan;    // borrowed
    sl_cpu_kernels kernels; // a copy
    sl_task *task;          // (n_task) owned
    uint32_t n_task;
    int n_thread;
    uint8_t *scratch;    // borrowed
    const sl_step *step; // the step that runs now
};

// cpu_compile.c
sl_status sl_cpu_supports(void *device, const sl_plan *plan, const sl_op *op, sl_op_need *need);
sl_status sl_cpu_compile(sl_device *device, sl_program **out, const sl_plan *plan, const sl_program_memory *memory);
void sl_cpu_program_destroy(sl_program *program);

// cpu_run.c
sl_status sl_cpu_run(sl_program *program, const sl_step *step);

// cpu_tasks.c: the functions, by opcode.
sl_task_fn sl_task_embed, sl_task_rope_table, sl_task_norm, sl_task_rope, sl_task_kv_write, sl_task_glu, sl_task_add,
    sl_task_gather, sl_task_softcap, sl_task_quant, sl_task_norm_quant, sl_task_glu_quant, sl_task_matmul,
    sl_task_attend;

#endif
