// SPDX-License-Identifier: MIT
//
// A small plan made by hand, and a run of it on any backend: values, weights and ops are added one
// by one, every value gets memory of its own, and rows are fed in steps of a chosen width. For
// tests of ops; the plan code is not involved.
#ifndef SL_TESTS_OP_RIG_H
#define SL_TESTS_OP_RIG_H

#include "harness.h"

#include "backend/backend.h"
#include "base/half.h"
#include "quant/kv_codec.h"
#include "quant/quant.h"

enum { RIG_MAX = 8, RIG_BLK_STRIDE = 64, RIG_MAX_SLOTS = 4, RIG_STEP_OPEN = 4, RIG_MAX_ROWS = 32 * RIG_STEP_OPEN };

// The rows of a text, in the order in which they are fed.
typedef struct rig_rows {
    int32_t n_row;
    const int32_t *token, *pos, *slot;
    const uint8_t *wants_logits;
    const int32_t *blk_table;   // (n_slot, RIG_BLK_STRIDE)
    const int32_t *cell, *skip; // NULL: no row has moved
} rig_rows;

typedef struct rig {
    sl_plan plan;
    sl_op op[RIG_MAX];
    sl_value value[RIG_MAX];
    sl_plan_weight weight[RIG_MAX];
    sl_plan_rope rope[1];
    sl_plan_kv kv[1];
    const void *weight_data[RIG_MAX];
    const float *input[RIG_MAX]; // (n_row, n_col) of the whole text, for values that no op writes
    const sl_backend *backend;
    sl_device *device;
    sl_device_buf workspace, kv_pool;
    uint8_t *bytes;     // the workspace as the test sees it: itself, or a copy if the CPU does not see it
    sl_device_buf view; // of the copy
    sl_program *program;
    int32_t open_at[RIG_MAX_SLOTS]; // which open block of a slot holds its newest block
} rig;

static inline void rig_init(rig *r, uint32_t n_vocab, uint32_t n_slot, uint32_t n_kv_blk) {
    memset(r, 0, sizeof *r);
    r->plan = (sl_plan){
        .n_vocab = n_vocab, .op = r->op, .value = r->value, .weight = r->weight, .rope = r->rope, .kv = r->kv};
    r->plan.shape = (sl_plan_shape){.n_ctx = RIG_BLK_STRIDE * SL_KV_BLK_LEN, .n_slot = n_slot, .n_kv_blk = n_kv_blk};
}

static inline uint16_t rig_value(rig *r, sl_value_kind kind, uint32_t n_col, const float *input) {
    uint16_t id = (uint16_t)r->plan.n_value++;
    uint64_t n_bytes = kind == SL_VALUE_ACT16 ? sl_act16_row_bytes(n_col) : (n_col * sizeof(float) + 63) / 64 * 64;
    r->value[id] = (sl_value){.kind = (uint8_t)kind, .n_col = n_col, .row_bytes = n_bytes};
    r->input[id] = input;
    return id;
}

static inline uint16_t rig_weight(rig *r, const char *name, sl_type type, uint32_t n_row, uint32_t n_col,
                                  const void *data) {
    uint16_t id = (uint16_t)r->plan.n_weight++;
    sl_plan_weight *w = &r->weight[id];
    *w = (sl_plan_weight){.type = (uint8_t)type, .n_row = n_row, .n_col = n_col};
    snprintf(w->name, sizeof w->name, "%s", name);
    w->n_bytes = n_row * sl_type_row_bytes(sl_type_find((uint32_t)type), n_col);
    r->weight_data[id] = data;
    return id;
}

// An op without weights and inputs, to be filled in by the caller. Every op waits for the one
// before.
static inline sl_op *rig_op(rig *r, sl_opcode code, uint16_t in0, uint16_t in1, uint16_t out) {
    sl_op *op = &r->op[r->plan.n_op++];
    *op = (sl_op){.code = (uint8_t)code,
                  .barrier = 1,
                  .layer = 5,
                  .in = {in0, in1},
                  .out = out,
                  .weight = {SL_NO_WEIGHT, SL_NO_WEIGHT}};
    return op;
}

static inline void rig_open_blocks(rig *r, sl_plan_open *o, sl_type type, uint32_t n_col) {
    if (!sl_kv_code_bits(type)) return;
    o->blk_bytes = n_col * SL_KV_BLK_LEN * 2ull + 64;
    o->n_own = r->plan.shape.n_slot * SL_KV_OPEN_SLOTS;
    o->off = r->plan.kv_bytes;
    o->step_off = o->off + o->n_own * o->blk_bytes;
    r->plan.kv_bytes = o->step_off + RIG_STEP_OPEN * o->blk_bytes;
}

static inline void rig_kv(rig *r, uint32_t n_head_kv, uint32_t head_dim, uint32_t v_dim, sl_type type_k,
                          sl_type type_v) {
    uint64_t pad = 64; // blocks lie apart, as a layout may put them
    sl_plan_kv *kv = &r->kv[0];
    *kv = (sl_plan_kv){.n_head_kv = n_head_kv,
                       .head_dim = head_dim,
                       .v_dim = v_dim,
                       .type_k = (uint8_t)type_k,
                       .type_v = (uint8_t)type_v};
    bool known = sl_kv_type_possible(type_k) && sl_kv_type_possible(type_v);
    kv->k_blk_bytes = n_head_kv * (known ? sl_kv_head_bytes(type_k, false, head_dim) : 0) + pad;
    kv->v_blk_bytes = n_head_kv * (known ? sl_kv_head_bytes(type_v, true, v_dim) : 0) + pad;
    kv->v_off = r->plan.shape.n_kv_blk * kv->k_blk_bytes;
    r->plan.kv_bytes = kv->v_off + r->plan.shape.n_kv_blk * kv->v_blk_bytes;
    rig_open_blocks(r, &kv->k_open, type_k, n_head_kv * head_dim);
    rig_open_blocks(r, &kv->v_open, type_v, n_head_kv * v_dim);
    r->plan.n_kv = 1;
}

// Between the workspace and the test's copy of it, if it has one.
static inline void rig_send(rig *r) {
    if (!r->workspace.host)
        REQUIRE_OK(r->backend->buf_copy(r->device, &r->workspace, 0, &r->view, 0, r->workspace.n_bytes),
                   sl_error_text());
}
static inline void rig_fetch(rig *r) {
    if (!r->workspace.host)
        REQUIRE_OK(r->backend->buf_read(r->device, r->bytes, &r->workspace, 0, r->workspace.n_bytes), sl_error_text());
}

// Fills a buffer with NaN. `bytes` are the host's, as many as the buffer has.
static inline sl_status rig_spoil(rig *r, sl_device_buf *buf, uint8_t *bytes) {
    memset(buf->host ? buf->host : bytes, 0xff, buf->n_bytes);
    if (buf->host) return SL_OK;
    sl_device_buf view;
    SL_TRY(r->backend->buf_create(r->device, &view, bytes, buf->n_bytes, "test"));
    sl_status status = r->backend->buf_copy(r->device, buf, 0, &view, 0, buf->n_bytes);
    r->backend->buf_destroy(r->device, &view);
    return status;
}

static inline sl_status rig_spoil_all(rig *r) {
    uint8_t *bytes = malloc(r->kv_pool.n_bytes);
    sl_status status = rig_spoil(r, &r->kv_pool, bytes);
    free(bytes);
    SL_TRY(status);
    r->bytes = r->workspace.host ? r->workspace.host : malloc(r->workspace.n_bytes);
    SL_TRY(rig_spoil(r, &r->workspace, r->bytes));
    if (r->workspace.host) return SL_OK;
    return r->backend->buf_create(r->device, &r->view, r->bytes, r->workspace.n_bytes, "test");
}

// Lays out for steps of n_row_max rows and compiles. Memory is filled with NaN: nothing may rest on
// what is not written.
static inline sl_status rig_open(rig *r, const sl_backend *backend, const char *level, int n_thread,
                                 int32_t n_row_max) {
    sl_plan *plan = &r->plan;
    r->backend = backend;
    plan->shape.n_row_max = plan->shape.n_logit_max = (uint32_t)n_row_max;
    SL_TRY(backend->open(&r->device,
                         &(sl_device_options){.n_thread = n_thread, .n_thread_prefill = n_thread, .level = level}));
    plan->value_bytes = plan->scratch_bytes = 0;
    for (uint32_t i = 0; i < plan->n_value; i++) {
        plan->value[i].off = plan->value_bytes;
        plan->value_bytes += (uint64_t)n_row_max * plan->value[i].row_bytes;
    }
    for (uint32_t i = 0; i < plan->n_op; i++) {
        sl_op_need need;
        SL_TRY(backend->supports(r->device, plan, &plan->op[i], &need));
        if (need.scratch_bytes > plan->scratch_bytes) plan->scratch_bytes = need.scratch_bytes;
    }
    plan->scratch_off = plan->value_bytes;
    plan->workspace_bytes = plan->value_bytes + plan->scratch_bytes;
    SL_TRY(backend->buf_create(r->device, &r->workspace, NULL, plan->workspace_bytes, "test"));
    SL_TRY(backend->buf_create(r->device, &r->kv_pool, NULL, plan->kv_bytes + 1, "test"));
    SL_TRY(rig_spoil_all(r));
    sl_program_memory memory = {.weight = r->weight_data, .workspace = &r->workspace, .kv = &r->kv_pool};
    return backend->compile(r->device, &r->program, plan, &memory);
}

static inline void rig_close(rig *r) {
    r->backend->program_destroy(r->program);
    r->backend->buf_destroy(r->device, &r->view);
    if (r->bytes != r->workspace.host) free(r->bytes);
    r->backend->buf_destroy(r->device, &r->workspace);
    r->backend->buf_destroy(r->device, &r->kv_pool);
    r->backend->close(r->device);
    r->program = NULL;
    r->device = NULL;
}

static inline void *rig_row(const rig *r, uint16_t value, int32_t row) {
    return r->bytes + r->value[value].off + (uint64_t)row * r->value[value].row_bytes;
}

// The open block of each row, as an engine chooses them.
static inline void rig_choose_open(rig *r, const rig_rows *rows, int32_t first, int32_t n, int32_t *open) {
    int32_t begin[RIG_MAX_SLOTS], end[RIG_MAX_SLOTS], n_step = (int32_t)r->plan.shape.n_slot * SL_KV_OPEN_SLOTS;
    for (int32_t s = 0; s < RIG_MAX_SLOTS; s++) begin[s] = end[s] = -1;
    for (int32_t i = first; i < first + n; i++) {
        int32_t s = rows->slot[i], blk = rows->pos[i] / SL_KV_BLK_LEN;
        begin[s] = begin[s] < 0 ? blk : begin[s], end[s] = blk;
    }
    for (int32_t s = 0; s < RIG_MAX_SLOTS; s++) {
        for (int32_t i = first; i < first + n; i++) {
            int32_t blk = rows->pos[i] / SL_KV_BLK_LEN, other = blk != begin[s];
            if (rows->slot[i] != s) continue;
            open[i - first] = SL_KV_OPEN_SLOTS * s + (r->open_at[s] ^ other);
            if (blk != begin[s] && blk != end[s]) open[i - first] = n_step + blk - begin[s] - 1;
        }
        if (begin[s] != end[s]) n_step += end[s] - begin[s] - 1, r->open_at[s] ^= 1;
    }
}

// Feeds rows [first, first + n) as one step. Returns the number of rows of `value`, copied to out
// (rows, n_col) if F32, or as they are (rows, row_bytes) if ACT16.
static inline int32_t rig_step(rig *r, const rig_rows *rows, int32_t first, int32_t n, uint16_t value, void *out) {
    int32_t logit_row[RIG_MAX_ROWS], open[RIG_MAX_ROWS], n_logit = 0;
    rig_choose_open(r, rows, first, n, open);
    for (int32_t i = 0; i < n; i++)
        if (rows->wants_logits[first + i]) logit_row[n_logit++] = i;
    for (uint16_t v = 0; v < r->plan.n_value; v++)
        for (int32_t i = 0; i < n && r->input[v]; i++) {
            uint32_t n_col = r->value[v].n_col;
            memcpy(rig_row(r, v, i), r->input[v] + (size_t)(first + i) * n_col, n_col * sizeof(float));
        }
    sl_step step = {.n_row = n,
                    .n_logit = n_logit,
                    .token = rows->token + first,
                    .pos = rows->pos + first,
                    .slot = rows->slot + first,
                    .logit_row = logit_row,
                    .blk_table = rows->blk_table,
                    .blk_stride = RIG_BLK_STRIDE,
                    .open = open,
                    .cell = rows->cell ? rows->cell + first : NULL,
                    .skip = rows->skip ? rows->skip + first : NULL};
    rig_send(r);
    REQUIRE_OK(r->backend->run(r->program, &step), sl_error_text());
    rig_fetch(r);
    const sl_value *v = &r->value[value];
    size_t n_bytes = v->kind == SL_VALUE_ACT16 ? v->row_bytes : v->n_col * sizeof(float);
    int32_t n_out = v->logit_rows ? n_logit : n;
    for (int32_t i = 0; i < n_out; i++) memcpy((char *)out + (size_t)i * n_bytes, rig_row(r, value, i), n_bytes);
    return n_out;
}

// The whole text in steps of `width` rows; results one after another in out.
static inline int32_t rig_run(rig *r, const sl_backend *backend, const char *level, int n_thread, int32_t width,
                              const rig_rows *rows, uint16_t value, void *out) {
    REQUIRE_OK(rig_open(r, backend, level, n_thread, width), sl_error_text());
    const sl_value *v = &r->value[value];
    size_t n_bytes = v->kind == SL_VALUE_ACT16 ? v->row_bytes : v->n_col * sizeof(float);
    int32_t n_out = 0;
    for (int32_t first = 0; first < rows->n_row; first += width) {
        int32_t n = rows->n_row - first < width ? rows->n_row - first : width;
        n_out += rig_step(r, rows, first, n, value, (char *)out + (size_t)n_out * n_bytes);
    }
    rig_close(r);
    return n_out;
}

#endif
