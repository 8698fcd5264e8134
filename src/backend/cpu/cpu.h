// SPDX-License-Identifier: MIT
//
// The CPU backend's own types. compile turns each op into a task: pointers, strides, kernel
// function and kind of share resolved; run walks the tasks and adds only what varies by step. No
// plan is looked at while running.
#ifndef SL_BACKEND_CPU_CPU_H
#define SL_BACKEND_CPU_CPU_H

#include <stdatomic.h>

#include "backend/backend.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/pool.h"
#include "backend/cpu/repack.h"

enum { SL_CPU_NARROW_ROWS = 8 }; // rows of a step up to which it is decoding: bound by memory, not by arithmetic

struct sl_device {
    sl_pool *pool;                // owned; as many threads as the larger count
    int n_max[2];                 // threads that there is memory for: decode, prefill
    int n_thread[2];              // that run; fewer if that was measured to be faster
    bool is_open[2], is_known[2]; // still to be measured; measured, and not disturbed
    bool repack, wire;
    sl_repack *packed; // owned; NULL before the first program that wants it
    sl_cpu_kernels kernels;
};

// How a task is split over threads, where it is not for each (SL_WHO_EACH) or for the maker (SL_WHO_OWN).
typedef enum sl_task_kind {
    SL_TASK_ROWS,   // a range of rows each
    SL_TASK_COLS,   // a range of columns each, for all rows
    SL_TASK_PANELS, // a range of panels of outputs each, for all rows: sl_task.range
    SL_TASK_TILES,  // tiles of attention, or rows of KV_WRITE by their block, dealt out in turn
} sl_task_kind;

typedef struct sl_task sl_task;

typedef struct sl_range {
    uint32_t begin, end;
} sl_range;

// What a thread has to do of a task.
typedef struct sl_share {
    int i_thread, n_thread;
    int32_t row_begin, row_end;
    sl_range col[2]; // of out; KV_WRITE: of K and of V
    void *scratch;   // this thread's
} sl_share;

typedef void sl_task_fn(const sl_program *program, const sl_task *task, const sl_share *share);

struct sl_task {
    sl_task_fn *run;
    uint8_t kind, barrier, who;
    uint8_t logit_rows;  // rows are those that want logits
    uint8_t weight_type; // of EMBED
    const uint8_t *in[2];
    uint64_t in_stride[2], in_copy[2]; // bytes from row to row, and from thread to thread (0: one for all)
    uint8_t *out;
    uint64_t out_stride, out_copy; // bytes
    uint32_t n_col, n_col_v;       // of out; KV_WRITE: of K and of V
    uint32_t unit;                 // of PANELS: outputs that must not be torn apart
    sl_range *range;        // of PANELS: (n_thread) outputs of each thread; of OWN: those of the product of in[0]
    const sl_range *range1; // of KV_WRITE: those of the product of V
    const void *weight;     // matrix, or norm weight
    uint64_t weight_row_bytes;
    const double *inv_freq; // ROPE_TABLE: (n_rot/2)
    float mscale;
    union {
        sl_attr_embed embed;
        sl_attr_rope_table rope_table;
        sl_attr_norm norm;
        sl_attr_rope rope;
        sl_attr_glu glu;
        sl_attr_softcap softcap;
    } attr;
    sl_cpu_matmul_fn *matmul;
    sl_cpu_matmul mm; // all but n_row
    sl_cpu_attend_fn *attend_fn;
    sl_cpu_attend attend; // all but what varies by step
    uint64_t parts_off;   // of ATTEND in narrow steps: where parts of cut tiles begin in a thread's scratch
    sl_cpu_kv_write_fn *write_k, *write_v, *write_open; // write_k: into the open block, if K is codes
    sl_cpu_kv_close_fn *close_k;                        // NULL: K is not
    const sl_plan_kv *kv;                               // borrowed from the plan
    uint8_t *kv_pool, *k, *v;                           // all; the layer's pools
    uint64_t k_head_bytes, v_head_bytes;                // of a KV head in a block
};

struct sl_program {
    sl_device *device;              // borrowed
    const sl_plan *plan;            // borrowed
    sl_cpu_kernels kernels;         // a copy
    sl_range *range;                // (products, largest n_thread) owned
    _Atomic uint32_t *n_chunk_done; // (n_thread) owned; of cut tiles of attention; 0 between layers
    sl_task *task;                  // (n_task) owned
    uint32_t n_task;
    int n_thread;
    uint8_t *scratch;       // borrowed
    uint64_t scratch_bytes; // of one thread: the most that any task wants, for tasks of a phase overlap in time
    const sl_step *step;    // the step that runs now
};

// cpu_compile.c
sl_status sl_cpu_supports(void *device, const sl_plan *plan, const sl_op *op, sl_op_need *need);
sl_status sl_cpu_compile(sl_device *device, sl_program **out, const sl_plan *plan, const sl_program_memory *memory);
void sl_cpu_program_destroy(sl_program *program);
// cpu_share.c: the ranges of all products for n_thread threads.
void sl_cpu_share_products(sl_program *program, int n_thread);

// cpu_choose.c: sets device->n_thread of the program's width to the count that runs its products fastest.
void sl_cpu_choose_threads(sl_program *program);

static inline bool sl_cpu_is_wide(const sl_plan *plan) { return plan->shape.n_row_max > SL_CPU_NARROW_ROWS; }

// cpu_run.c
sl_status sl_cpu_run(sl_program *program, const sl_step *step);

// cpu_tasks.c, cpu_attend.c: the functions, by opcode.
sl_task_fn sl_task_embed, sl_task_rope_table, sl_task_norm, sl_task_rope, sl_task_kv_write, sl_task_glu, sl_task_add,
    sl_task_gather, sl_task_softcap, sl_task_quant, sl_task_norm_quant, sl_task_glu_quant, sl_task_matmul,
    sl_task_attend;

#endif
