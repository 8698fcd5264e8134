// SPDX-License-Identifier: MIT
//
// Plan -> tasks. Everything that can be decided before a step is decided here: what an op needs and
// whether we have it (supports), and all addresses, strides and kernels (compile).
#include "backend/cpu/cpu.h"
#include "backend/host.h"
#include "base/alloc.h"
#include "quant/kv_codec.h"
#include "quant/quant.h"

typedef struct op_kind {
    sl_task_fn *run;
    uint8_t kind;
} op_kind;

static const op_kind op_kinds[SL_OP_COUNT] = {
    [SL_OP_EMBED] = {sl_task_embed, SL_TASK_ROWS},
    [SL_OP_ROPE_TABLE] = {sl_task_rope_table, SL_TASK_ROWS},
    [SL_OP_NORM] = {sl_task_norm, SL_TASK_ROWS},
    [SL_OP_MATMUL] = {sl_task_matmul, SL_TASK_PANELS},
    [SL_OP_ROPE] = {sl_task_rope, SL_TASK_ROWS},
    [SL_OP_KV_WRITE] = {sl_task_kv_write, SL_TASK_TILES},
    [SL_OP_ATTEND] = {sl_task_attend, SL_TASK_TILES},
    [SL_OP_ATTEND_SINKS] = {sl_task_attend, SL_TASK_TILES},
    [SL_OP_GLU] = {sl_task_glu, SL_TASK_ROWS},
    [SL_OP_ADD] = {sl_task_add, SL_TASK_ROWS},
    [SL_OP_GATHER] = {sl_task_gather, SL_TASK_ROWS},
    [SL_OP_SOFTCAP] = {sl_task_softcap, SL_TASK_COLS},
    [SL_OP_QUANT] = {sl_task_quant, SL_TASK_ROWS},
    [SL_OP_NORM_QUANT] = {sl_task_norm_quant, SL_TASK_ROWS},
    [SL_OP_GLU_QUANT] = {sl_task_glu_quant, SL_TASK_ROWS},
    [SL_OP_MATMUL_ADD] = {sl_task_matmul, SL_TASK_PANELS},
};

// ---- supports -----------------------------------------------------------------------------------

static sl_status check_embed(const sl_plan *plan, const sl_op *op) {
    const sl_plan_weight *w = &plan->weight[op->weight[0]];
    if (sl_quant_find((sl_type)w->type)) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED, "%s: %s has type %s, which backend cpu cannot decode", sl_host_op_text(op), w->name,
                   sl_type_name((sl_type)w->type));
}

static sl_status check_matmul(const sl_cpu_kernels *k, const sl_plan *plan, const sl_op *op) {
    const sl_plan_weight *w = &plan->weight[op->weight[0]];
    const sl_type_info *info = sl_type_find(w->type);
    if (!info || w->type >= SL_TYPE_ID_COUNT || !k->matmul[w->type])
        return SL_FAIL(SL_UNSUPPORTED, "%s: %s has type %s, which backend cpu (%s) cannot multiply",
                       sl_host_op_text(op), w->name, sl_type_name((sl_type)w->type), k->level);
    uint8_t wanted = info->blk_len > 1 ? SL_VALUE_ACT16 : SL_VALUE_F32;
    if (plan->value[op->in[0]].kind != wanted)
        return SL_FAIL(SL_UNSUPPORTED, "%s: with %s weights (%s) backend cpu reads %s activations", sl_host_op_text(op),
                       info->name, w->name, wanted == SL_VALUE_ACT16 ? "16-bit" : "f32");
    return sl_host_check_vector(plan, op, 1);
}

static sl_status check_kv(const sl_cpu_kernels *k, const sl_plan *plan, const sl_op *op) {
    const sl_plan_kv *kv = &plan->kv[op->code == SL_OP_KV_WRITE ? op->attr.kv.kv_layer : op->attr.attend.kv_layer];
    const uint8_t types[2] = {kv->type_k, kv->type_v};
    for (int i = 0; i < 2; i++)
        if (types[i] >= SL_TYPE_ID_COUNT || !k->kv_write[types[i]])
            return SL_FAIL(SL_UNSUPPORTED, "%s: a KV cache of type %s is not in backend cpu; use f16",
                           sl_host_op_text(op), sl_type_name((sl_type)types[i]));
    return SL_OK;
}

static sl_status check_op(const sl_cpu_kernels *k, const sl_plan *plan, const sl_op *op) {
    if (op->code >= SL_OP_COUNT || !op_kinds[op->code].run)
        return SL_FAIL(SL_UNSUPPORTED, "%s is not in backend cpu", sl_host_op_text(op));
    switch (op->code) {
    case SL_OP_EMBED: return check_embed(plan, op);
    case SL_OP_NORM:
    case SL_OP_NORM_QUANT: return sl_host_check_vector(plan, op, 0);
    case SL_OP_MATMUL:
    case SL_OP_MATMUL_ADD: return check_matmul(k, plan, op);
    case SL_OP_KV_WRITE:
    case SL_OP_ATTEND:
    case SL_OP_ATTEND_SINKS: return check_kv(k, plan, op);
    default: return SL_OK;
    }
}

static uint64_t aligned(uint64_t n_bytes) {
    return (n_bytes + SL_WORKSPACE_ALIGN - 1) / SL_WORKSPACE_ALIGN * SL_WORKSPACE_ALIGN;
}

// What a tile of attention works in, and where parts of a cut one lie behind it: of narrow steps only.
static uint64_t attend_bytes(const sl_cpu_kernels *k, const sl_plan *plan, const sl_op *op) {
    const sl_plan_kv *kv = &plan->kv[op->attr.attend.kv_layer];
    return aligned(k->attend_scratch_bytes(SL_CPU_TILE_QUERIES, kv->head_dim, kv->v_dim));
}

static uint64_t parts_bytes(const sl_cpu_kernels *k, const sl_plan *plan, const sl_op *op) {
    const sl_plan_kv *kv = &plan->kv[op->attr.attend.kv_layer];
    uint32_t n_query = plan->shape.n_row_max * (op->attr.attend.n_head / kv->n_head_kv);
    if (plan->shape.n_row_max > SL_CPU_NARROW_ROWS) return 0;
    return (plan->shape.n_ctx / SL_CPU_ATTEND_CHUNK + 2ull) *
           k->attend_part_bytes(SL_MIN(n_query, (uint32_t)SL_CPU_TILE_QUERIES), kv->v_dim);
}

// Of one thread; a multiple of a cache line, so that no two threads share one.
static uint64_t thread_scratch_bytes(const sl_cpu_kernels *k, const sl_plan *plan, const sl_op *op) {
    uint64_t n_bytes = 0;
    switch (op->code) {
    case SL_OP_NORM_QUANT:
    case SL_OP_GLU_QUANT: n_bytes = (uint64_t)plan->value[op->out].n_col * sizeof(float); break;
    case SL_OP_MATMUL:
    case SL_OP_MATMUL_ADD: {
        const sl_plan_weight *w = &plan->weight[op->weight[0]];
        n_bytes = k->matmul_scratch_bytes((sl_type)w->type, w->n_col, plan->shape.n_row_max);
        break;
    }
    case SL_OP_ATTEND:
    case SL_OP_ATTEND_SINKS: n_bytes = attend_bytes(k, plan, op) + parts_bytes(k, plan, op); break;
    default: break;
    }
    return aligned(n_bytes);
}

static int count_threads(const sl_device *device, const sl_plan *plan) { return device->n_max[sl_cpu_is_wide(plan)]; }

sl_status sl_cpu_supports(void *device, const sl_plan *plan, const sl_op *op, sl_op_need *need) {
    const sl_device *cpu = device;
    *need = (sl_op_need){0};
    SL_TRY(check_op(&cpu->kernels, plan, op));
    need->scratch_bytes = thread_scratch_bytes(&cpu->kernels, plan, op) * (uint64_t)count_threads(cpu, plan);
    if (cpu->repack && (op->code == SL_OP_MATMUL || op->code == SL_OP_MATMUL_ADD))
        need->copy_bytes[0] = sl_repack_bytes(&plan->weight[op->weight[0]]);
    return SL_OK;
}

// ---- compile ------------------------------------------------------------------------------------

static void bind_attr(sl_task *t, const sl_plan *plan, const sl_op *op) {
    switch (op->code) {
    case SL_OP_EMBED: t->attr.embed = op->attr.embed; break;
    case SL_OP_NORM:
    case SL_OP_NORM_QUANT: t->attr.norm = op->attr.norm; break;
    case SL_OP_ROPE: t->attr.rope = op->attr.rope; break;
    case SL_OP_GLU:
    case SL_OP_GLU_QUANT: t->attr.glu = op->attr.glu; break;
    case SL_OP_SOFTCAP: t->attr.softcap = op->attr.softcap; break;
    case SL_OP_ROPE_TABLE:
        t->inv_freq = plan->inv_freq + plan->rope[op->attr.rope_table.rope].inv_freq_at;
        t->mscale = plan->rope[op->attr.rope_table.rope].mscale;
        t->attr.rope_table = op->attr.rope_table;
        break;
    default: break;
    }
}

static void bind_matmul(sl_task *t, const sl_program *p, const sl_op *op, const void *const *weight) {
    const sl_plan_weight *w = &p->plan->weight[op->weight[0]];
    const uint8_t *packed = sl_repack_find(p->device->packed, t->weight);
    t->matmul = p->kernels.matmul[w->type];
    t->mm = (sl_cpu_matmul){
        .weight = packed ? packed : t->weight,
        .packed = packed != NULL,
        .w_row_bytes = t->weight_row_bytes,
        .act = t->in[0],
        .act_stride = t->in_stride[0],
        .out = (float *)(void *)t->out,
        .out_stride = t->out_stride,
        .bias = op->weight[1] == SL_NO_WEIGHT ? NULL : weight[op->weight[1]],
        .add = (const float *)(const void *)t->in[1],
        .add_stride = t->in_stride[1],
        .n_col = w->n_col,
        .n_out = w->n_row,
    };
}

static void bind_kv(sl_task *t, const sl_program *p, const sl_op *op, uint8_t *pool) {
    const sl_plan_kv *kv = &p->plan->kv[op->code == SL_OP_KV_WRITE ? op->attr.kv.kv_layer : op->attr.attend.kv_layer];
    t->kv = kv;
    t->k = pool + kv->k_off;
    t->v = pool + kv->v_off;
    t->kv_pool = pool;
    t->k_head_bytes = sl_kv_head_bytes((sl_type)kv->type_k, false, kv->head_dim);
    t->v_head_bytes = sl_kv_head_bytes((sl_type)kv->type_v, true, kv->v_dim);
    if (op->code == SL_OP_KV_WRITE) t->n_col = kv->n_head_kv * kv->head_dim, t->n_col_v = kv->n_head_kv * kv->v_dim;
    t->write_k = p->kernels.kv_write[kv->k_open.blk_bytes ? SL_TYPE_F16 : kv->type_k];
    t->write_open = p->kernels.kv_write[SL_TYPE_F16];
    t->close_k = p->kernels.kv_close[kv->type_k];
    t->write_v = p->kernels.kv_write[kv->type_v];
    if (!sl_op_is_attend(op)) return;
    const sl_attr_attend *a = &op->attr.attend;
    t->attend_fn = p->kernels.attend;
    if (parts_bytes(&p->kernels, p->plan, op)) t->parts_off = attend_bytes(&p->kernels, p->plan, op);
    t->attend = (sl_cpu_attend){
        .q = (const float *)(const void *)t->in[0],
        .q_first = op->code == SL_OP_ATTEND_SINKS ? (const float *)(const void *)t->in[1] : NULL,
        .q_stride = t->in_stride[0],
        .out = (float *)(void *)t->out,
        .out_stride = t->out_stride,
        .k = t->k,
        .v = t->v,
        .k_blk_bytes = kv->k_blk_bytes,
        .v_blk_bytes = kv->v_blk_bytes,
        .k_head_bytes = t->k_head_bytes,
        .v_head_bytes = t->v_head_bytes,
        .pool = pool,
        .k_open = kv->k_open,
        .v_open = kv->v_open,
        .n_head = a->n_head,
        .n_head_kv = kv->n_head_kv,
        .head_dim = kv->head_dim,
        .v_dim = kv->v_dim,
        .v_rot = kv->v_rot,
        .type_k = kv->type_k,
        .type_v = kv->type_v,
        .window = a->window,
        .scale = a->scale,
        .softcap = a->softcap,
    };
}

// From one worker's copy of a value to the next.
static uint64_t copy_bytes(const sl_plan *plan, const sl_value *v) {
    if (!v->each) return 0;
    return (v->logit_rows ? plan->shape.n_logit_max : plan->shape.n_row_max) * v->row_bytes;
}

static sl_task *find_product(const sl_program *p, uint16_t value) {
    for (uint32_t i = 0; i < p->n_task; i++)
        if (p->plan->op[i].out == value) return &p->task[i];
    return NULL;
}

// A product gets room for the ranges of its threads. What follows it on the same thread takes its ranges from there,
// or from what it follows itself.
static void bind_ranges(sl_task *t, sl_program *p, const sl_op *op, sl_range **room) {
    if (t->kind == SL_TASK_PANELS) {
        t->unit = p->plan->value[op->out].unit;
        t->range = *room;
        *room += p->n_thread;
    } else if (op->who == SL_WHO_OWN) {
        t->range = find_product(p, op->in[0])->range;
        if (op->code == SL_OP_KV_WRITE) t->range1 = find_product(p, op->in[1])->range;
    }
}

static uint32_t count_products(const sl_plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_op; i++) n += op_kinds[plan->op[i].code].kind == SL_TASK_PANELS;
    return n;
}

static void bind_task(sl_task *t, const sl_program *p, const sl_op *op, const sl_program_memory *memory) {
    const sl_plan *plan = p->plan;
    uint8_t *workspace = memory->workspace->host;
    t->run = op_kinds[op->code].run;
    t->kind = op_kinds[op->code].kind;
    t->barrier = op->barrier;
    t->who = op->who;
    for (int i = 0; i < 2; i++) {
        if (op->in[i] == SL_NO_VALUE) continue;
        const sl_value *in = &plan->value[op->in[i]];
        t->in[i] = workspace + in->off;
        t->in_stride[i] = in->row_bytes;
        t->in_copy[i] = copy_bytes(plan, in);
    }
    if (op->out != SL_NO_VALUE) {
        const sl_value *out = &plan->value[op->out];
        t->out = workspace + out->off;
        t->out_stride = out->row_bytes;
        t->out_copy = copy_bytes(plan, out);
        t->n_col = out->n_col;
        t->logit_rows = out->logit_rows;
    }
    if (op->weight[0] != SL_NO_WEIGHT) {
        const sl_plan_weight *w = &plan->weight[op->weight[0]];
        t->weight = memory->weight[op->weight[0]];
        t->weight_type = w->type;
        t->weight_row_bytes = sl_type_row_bytes(sl_type_find(w->type), w->n_col);
    }
    bind_attr(t, plan, op);
    if (op->code == SL_OP_MATMUL || op->code == SL_OP_MATMUL_ADD) bind_matmul(t, p, op, memory->weight);
    if (op->code == SL_OP_KV_WRITE || sl_op_is_attend(op)) bind_kv(t, p, op, memory->kv->host);
}

void sl_cpu_program_destroy(sl_program *program) {
    if (!program) return;
    sl_free(program->task);
    sl_free(program->range);
    sl_free(program->n_chunk_done);
    sl_free(program);
}

sl_status sl_cpu_compile(sl_device *device, sl_program **out, const sl_plan *plan, const sl_program_memory *memory) {
    sl_status status = SL_OK;
    *out = NULL;
    SL_TRY(sl_host_check_memory(plan, memory));
    for (uint32_t i = 0; i < plan->n_op; i++) {
        sl_op_need need;
        SL_TRY(sl_cpu_supports(device, plan, &plan->op[i], &need));
        if (need.scratch_bytes > plan->scratch_bytes)
            return SL_FAIL(SL_BAD_ARG, "%s: the plan was laid out for another device", sl_host_op_text(&plan->op[i]));
    }
    // The programs of the other widths have the same weights and find the copies of the first.
    if (plan->copy_bytes && !device->packed)
        SL_TRY(sl_repack_create(&device->packed, plan, memory, device->pool, device->wire));
    sl_program *program;
    SL_TRY(sl_alloc(&program, 1, sizeof *program, "the program"));
    program->device = device;
    program->plan = plan;
    program->kernels = device->kernels;
    program->n_thread = count_threads(device, plan);
    program->scratch = (uint8_t *)memory->workspace->host + plan->scratch_off;
    program->scratch_bytes = plan->scratch_bytes / (uint64_t)program->n_thread;
    SL_TRY_OUT(sl_alloc(&program->task, plan->n_op, sizeof *program->task, "the program's tasks"));
    SL_TRY_OUT(sl_alloc(&program->range, (size_t)count_products(plan) * (size_t)program->n_thread,
                        sizeof *program->range, "the threads' shares"));
    SL_TRY_OUT(sl_alloc(&program->n_chunk_done, (size_t)program->n_thread, sizeof *program->n_chunk_done,
                        "the threads' counts"));
    sl_range *room = program->range;
    for (; program->n_task < plan->n_op; program->n_task++) {
        sl_task *task = &program->task[program->n_task];
        bind_task(task, program, &plan->op[program->n_task], memory);
        bind_ranges(task, program, &plan->op[program->n_task], &room);
    }
    if (device->is_open[sl_cpu_is_wide(plan)]) sl_cpu_choose_threads(program);
    sl_cpu_share_products(program, device->n_thread[sl_cpu_is_wide(plan)]);
    *out = program;
    return SL_OK;
out:
    sl_cpu_program_destroy(program);
    return status;
}
