// SPDX-License-Identifier: MIT
//
// Who is at which position: sequences, steps, and the memory that they use. The engine owns a
// device, one program for each width class (1, 2..8, the prefill chunk), the workspace, the KV pool
// and its tables. After creation it is sealed: a step makes no allocation, no call of the kernel's
// but to wake its threads, and no choice but that of the width class.
#ifndef SL_ENGINE_ENGINE_H
#define SL_ENGINE_ENGINE_H

#include "backend/backend.h"
#include "kv/kv.h"
#include "model/model.h"
#include "plan/plan.h"

enum { SL_N_WIDTH = 5 }; // width classes, at most

// May the backend keep own copies of weights in a faster order? AUTO: if they fit beside everything else.
typedef enum sl_repack_choice { SL_REPACK_AUTO, SL_REPACK_ON, SL_REPACK_OFF } sl_repack_choice;

typedef struct sl_engine_options {
    const sl_backend *backend;
    const char *cpu_level; // or NULL
    // All > 0; the last two are lowered to what can be used.
    uint32_t n_ctx, n_seq, n_row_max, n_logit_max;
    int n_thread, n_thread_prefill;         // 0: the backend's choice
    int known_thread, known_thread_prefill; // what it chose before; 0: it measures
    sl_type type_k, type_v;
    bool kv_auto;   // types were not asked for: Q8_0 where the cache does not fit otherwise
    bool kv_rotate; // quantised V is rotated
    sl_repack_choice repack;
    bool prefix_cache; // what sequences let go of stays for others to begin with, while its memory is not needed
    // With a prefix_cache: a folder where prefixes are kept beyond it; NULL: none.
    const char *prefix_path;
    uint64_t prefix_bytes; // that the folder may have
    bool ctx_window; // a sequence whose context is full goes on, see kv/kv_move.c; n_ctx is rounded up to whole blocks
    bool wire;
    bool keep_inputs; // sl_engine_visit_inputs will be asked; costs memory
    int (*progress)(void *user, uint64_t n, uint64_t total);
    void *user;
} sl_engine_options;

typedef struct sl_row {
    int32_t token, seq, pos;
    bool wants_logits;
} sl_row;

typedef struct sl_engine_memory {
    uint64_t copy_bytes; // the backend's own copies of weights
    uint64_t weight_bytes, kv_bytes, workspace_bytes, other_bytes, wired_bytes;
} sl_engine_memory;

// Since the end of create. Allocations are counted within steps, page faults over the whole process
// and all of the time, because asking for them costs a call of the kernel's: the faults of a loop
// are the difference of two readings.
typedef struct sl_engine_stats {
    uint64_t n_step, n_row, n_alloc, n_minor_fault, n_major_fault;
    // Positions of prompts: all, those that were there already, and those that came from the folder of prefixes.
    uint64_t n_prompt, n_reused, n_disk;
    uint64_t n_blk, n_blk_held, n_blk_cached, n_evicted; // KV blocks now; cached ones given up so far
    uint64_t n_pos_held;                                 // positions in the blocks that are held
    uint64_t disk_bytes;                                 // in the folder of prefixes
} sl_engine_stats;

typedef struct sl_engine sl_engine;

sl_status sl_engine_create(sl_engine **out, const sl_model *model, const sl_engine_options *options);
void sl_engine_destroy(sl_engine *engine); // NULL is fine
// Nothing changes if it fails, but the logits of the step before may be gone.
sl_status sl_engine_step(sl_engine *engine, const sl_row *rows, size_t n_row);
// Appends ids (n) to a sequence in chunks of n_row_max; logits of the last. An empty sequence begins with what is
// cached of ids. What cannot succeed changes nothing; a device's failure and a cancel leave whole chunks.
sl_status sl_engine_prefill(sl_engine *engine, int32_t seq, const int32_t *ids, size_t n,
                            int (*progress)(void *user, uint64_t n, uint64_t total), void *user);
const float *sl_engine_logits(sl_engine *engine, size_t i); // (n_vocab), or NULL
// The largest of them, if the device has found it; -1: it has not, or none is above -inf.
int32_t sl_engine_best(const sl_engine *engine, size_t i);
int32_t sl_engine_seq_length(const sl_engine *engine, int32_t seq);
// Positions after the first block that it has let go; 0 without ctx_window.
int32_t sl_engine_seq_gone(const sl_engine *engine, int32_t seq);
// The ids that it holds, (length - gone); NULL if there is no such sequence.
const int32_t *sl_engine_seq_ids(const sl_engine *engine, int32_t seq);
// Makes the sequence hold the longest beginning of ids (n) that it has already or that is cached, and at most n - 1 of
// them, so that there is something to compute logits from; *n_held is its length.
sl_status sl_engine_seq_reuse(sl_engine *engine, int32_t seq, const int32_t *ids, size_t n, size_t *n_held);
sl_status sl_engine_seq_truncate(sl_engine *engine, int32_t seq, int32_t n);
sl_status sl_engine_seq_fork(sl_engine *engine, int32_t dst, int32_t src, int32_t n);
// Makes a sequence of whole blocks, at least one, n positions long: the new ones are copies of its first block, ids and
// all. For measurements at a depth that would take long to compute. A device's failure leaves it empty.
sl_status sl_engine_seq_fill(sl_engine *engine, int32_t seq, int32_t n);
// The inputs of the last step's matrix products, for an engine that keeps them: one call for each product and row.
typedef void sl_engine_visit(void *user, const sl_plan_weight *weight, const float *row, uint32_t n_col);
sl_status sl_engine_visit_inputs(sl_engine *engine, sl_engine_visit *visit, void *user);
// Writes what is cached, and the folder of prefixes does not have, to the folder, if there is one. For between answers:
// it takes as long as the writing takes.
sl_status sl_engine_prefix_save(sl_engine *engine);
// What a sequence holds, to a file and back, with bytes of the caller's own. The file is replaced whole or not at all.
// load: a file that is torn, damaged, or of another model, backend or type is refused in one sentence, and the sequence
// is as it was. *app (n_app_bytes and a NUL) is the caller's, for sl_free.
sl_status sl_engine_session_save(const sl_engine *engine, int32_t seq, const char *path, const void *app,
                                 size_t n_app_bytes);
sl_status sl_engine_session_load(sl_engine *engine, int32_t seq, const char *path, char **app, size_t *n_app_bytes);
void sl_engine_get_memory(const sl_engine *engine, sl_engine_memory *out);
void sl_engine_get_stats(const sl_engine *engine, sl_engine_stats *out);
void sl_engine_get_device(const sl_engine *engine, sl_device_info *out);
// Of a width class, 0 .. SL_N_WIDTH-1, narrowest first; NULL if the engine needs no such class.
const sl_plan *sl_engine_plan(const sl_engine *engine, int width);

// The program with the memory that an engine of these options would take; nothing of an engine is
// allocated. As text: the width classes in a table and the program of the narrowest (the others run
// the same ops at other offsets); as JSON all.
sl_status sl_engine_explain(const sl_model *model, const sl_engine_options *options, bool json, char **text);

// What an engine of these options would take, to the byte, without any of it being taken.
typedef struct sl_engine_estimate {
    sl_engine_memory memory;
    uint64_t file_bytes; // of the weights that are read from the file, not from copies
    uint32_t n_barrier;  // of the program for one row
} sl_engine_estimate;
sl_status sl_engine_estimate_make(sl_engine_estimate *out, const sl_model *model, const sl_engine_options *options);

#endif
