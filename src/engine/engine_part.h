// SPDX-License-Identifier: MIT
//
// The inside of the engine, shared by the files of this folder only.
#ifndef SL_ENGINE_ENGINE_PART_H
#define SL_ENGINE_ENGINE_PART_H

#include "engine/engine.h"
#include "engine/session_file.h"

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
    int32_t *cell, *skip;        // (n_row_max) as in sl_step; NULL if sequences do not move
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

    struct sl_engine_store *store; // owned; NULL: prefixes are kept in the pool alone
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

// ---- blocks in files, engine_blocks.c -------------------------------------------------------------------------------

// Positions, and where in the pool the blocks are that a file has of them.
typedef struct sl_engine_blocks {
    const int32_t *ids; // (n_pos), less those of n_gone blocks
    uint32_t n_pos;
    uint32_t n_ctx, n_gone;            // as in sl_session_head
    uint64_t gone_hash;                // likewise
    uint32_t first[SL_KV_N_CLASS];     // the file begins with this block, of those that are not gone
    const int32_t *blk[SL_KV_N_CLASS]; // those from there on
    int32_t open;                      // the open block of the last, if that is not full
} sl_engine_blocks;

// What all files of an engine have in common, and by what they are recognised.
typedef struct sl_engine_form {
    sl_session_head head;
    sl_session_layer *layer; // (head.n_layer) owned
} sl_engine_form;

sl_status sl_engine_form_init(sl_engine_form *form, const sl_engine *engine);
void sl_engine_form_deinit(sl_engine_form *form); // also after a failure
// The head of the file, without its sums; its file_bytes is the size.
sl_status sl_engine_form_fill(sl_session_head *out, const sl_engine_form *form, const sl_engine_blocks *blocks,
                              size_t n_app_bytes);
// Can this engine use what the file holds? If not, the reason begins with a verb, for after the file's name.
sl_status sl_engine_form_check(const sl_engine_form *form, const sl_session_view *view);
sl_status sl_engine_blocks_write(const sl_engine *engine, FILE *file, const sl_engine_form *form,
                                 const sl_engine_blocks *blocks, const void *app, size_t n_app_bytes);
sl_status sl_engine_blocks_read(sl_engine *engine, const sl_engine_blocks *to, const sl_session_view *view);

// ---- prefixes in a folder, engine_store.c ---------------------------------------------------------------------------

typedef struct sl_engine_store sl_engine_store;
sl_status sl_engine_store_open(sl_engine *engine, const char *path, uint64_t budget_bytes);
void sl_engine_store_close(sl_engine_store *store);           // NULL is fine
uint64_t sl_engine_store_memory(uint32_t n_layer);            // what open takes
uint64_t sl_engine_store_bytes(const sl_engine_store *store); // in the folder; 0 of NULL
// The sequence holds the beginning of ids (n); the folder may know more of them. Returns how many positions came from
// there.
int32_t sl_engine_store_load(sl_engine *engine, int32_t seq, const int32_t *ids, int32_t n);

// Opens the device and makes the plans of the width classes, with copies of weights as options->repack has it. Both
// are the caller's; on failure both are zeroed.
sl_status sl_engine_plans_open(sl_engine_plans *out, sl_device **device, const sl_model *model,
                               const sl_engine_options *options);
// SL_NO_MEMORY says what is needed, what is free, and what to lower.
sl_status sl_engine_plans_fit(const sl_engine_plans *plans, const sl_engine_options *options);
void sl_engine_plans_deinit(sl_engine_plans *plans);

#endif
