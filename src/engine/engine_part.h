// SPDX-License-Identifier: MIT
//
// The inside of the engine, shared by the files of this folder only.
#ifndef SL_ENGINE_ENGINE_PART_H
#define SL_ENGINE_ENGINE_PART_H

#include "engine/engine.h"

// The programs of an engine before there is one: what both create and explain begin with.
typedef struct sl_engine_plans {
    sl_plan *plan[SL_N_WIDTH]; // owned; narrowest first
    int n_width;
    uint64_t workspace_bytes; // of the largest
    uint64_t kv_bytes;        // of the largest
    uint64_t copy_bytes;      // the same for all: the programs share the copies
    bool own_memory;          // of the device: all of these lie there, and the logits need a copy here
    uint64_t free_bytes;      // where they lie, when the plans were made; 0 = the system does not say
} sl_engine_plans;

struct sl_engine {
    const sl_backend *backend;
    sl_device *device; // owned
    sl_engine_plans plans;
    const void **weight[SL_N_WIDTH]; // owned; (n_weight) addresses in the mapped file
    sl_program *program[SL_N_WIDTH]; // owned
    sl_device_buf workspace, kv_buf; // owned
    sl_kv kv;                        // owned
    const sl_gguf *gguf;             // borrowed; what sessions are recognised by
    uint32_t n_vocab, n_row_max, n_logit_max;

    // Arguments of the step that is being made; all owned.
    sl_row *rows;                // (n_row_max) of a prefill
    int32_t *token, *pos, *slot; // (n_row_max)
    int32_t *open;               // (n_row_max) open blocks
    int32_t *logit_row;          // (n_logit_max)
    int32_t n_logit_wanted;
    int32_t *n_more, *n_before; // (n_seq) positions that the step adds; those there were
    int32_t *first_open,
        *step_open; // (n_seq) open block of a step's first block; of the one after it if it is of the step

    // The result of the last step.
    const char *logits; // rows of logits_stride bytes; in the workspace or in logits_copy; NULL: nobody asked yet
    size_t logits_stride;
    int32_t n_logit;
    int width;        // its program
    int32_t n_row;    // and rows
    const char *best; // the same of SL_OP_BEST; NULL where the plan has none
    size_t best_stride;
    char *logits_copy;        // owned; NULL if the CPU sees the workspace
    char *best_copy;          // behind it
    sl_device_buf logits_buf; // owned; the device's view of both

    sl_engine_memory memory;
    sl_engine_stats stats; // faults: their count when creation ended
};

// The tables and the tree for these programs.
sl_kv_shape sl_engine_kv_shape(const sl_engine_plans *plans, const sl_engine_options *options);

// Of logits_copy, with best_copy behind the logits.
uint64_t sl_engine_logit_bytes(const sl_engine_plans *plans);

sl_status sl_engine_check_seq(const sl_engine *engine, int32_t seq);
// The bytes of one KV block, in all layers of its class.
sl_status sl_engine_copy_block(sl_engine *engine, int32_t cls, int32_t dst, int32_t src);

// The bytes of an open block, in all layers.
sl_status sl_engine_copy_open(sl_engine *engine, int32_t dst, int32_t src);

// Opens the device and makes the plans of the width classes, with copies of weights as options->repack has it. Both
// are the caller's; on failure both are zeroed.
sl_status sl_engine_plans_open(sl_engine_plans *out, sl_device **device, const sl_model *model,
                               const sl_engine_options *options);
// SL_NO_MEMORY says what is needed, what is free, and what to lower.
sl_status sl_engine_plans_fit(const sl_engine_plans *plans, const sl_engine_options *options);
void sl_engine_plans_deinit(sl_engine_plans *plans);

#endif
