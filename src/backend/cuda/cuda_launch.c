// SPDX-License-Identifier: MIT
//
// All launches of a program, in order. Ops beside each other that one kernel can do share a launch:
//
//   [NORM_QUANT or QUANT], up to three MATMUL of one input or a MATMUL_ADD, [GLU_QUANT of two of them]
//   ROPE, KV_WRITE, ROPE          (K rotated and written, Q rotated), for one row with the ATTEND behind them
//
// A launch reads its inputs later than the plan says, so it is checked that nothing that it writes lies there.
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/tile.h"

static sl_cuda_launch *const launchers[SL_OP_COUNT] = {
    [SL_OP_EMBED] = sl_cuda_embed,
    [SL_OP_ROPE_TABLE] = sl_cuda_rope_table,
    [SL_OP_NORM] = sl_cuda_norm,
    [SL_OP_MATMUL] = sl_cuda_matmul,
    [SL_OP_ROPE] = sl_cuda_rope,
    [SL_OP_KV_WRITE] = sl_cuda_kv_write,
    [SL_OP_ATTEND] = sl_cuda_attend,
    [SL_OP_GLU] = sl_cuda_glu,
    [SL_OP_ADD] = sl_cuda_add,
    [SL_OP_GATHER] = sl_cuda_gather,
    [SL_OP_SOFTCAP] = sl_cuda_softcap,
    [SL_OP_QUANT] = sl_cuda_quant,
    [SL_OP_NORM_QUANT] = sl_cuda_norm_quant,
    [SL_OP_GLU_QUANT] = sl_cuda_glu_quant,
    [SL_OP_MATMUL_ADD] = sl_cuda_matmul,
    [SL_OP_BEST] = sl_cuda_best,
};

bool sl_cuda_has_op(uint8_t code) { return code < SL_OP_COUNT && launchers[code]; }

// What is being launched, and how far.
typedef struct sequence {
    const sl_program *p;
    const sl_program_memory *memory;
    uint32_t at;        // the next op
    uint32_t n_product; // so far
    uint16_t moved;     // a value that lies elsewhere than the plan says, or SL_NO_VALUE
    const uint8_t *moved_to;
} sequence;

static const sl_op *op_at(const sequence *s, uint32_t i) {
    return s->at + i < s->p->plan->n_op ? &s->p->plan->op[s->at + i] : NULL;
}

static const uint8_t *address(const sequence *s, uint16_t value) {
    if (value == s->moved) return s->moved_to;
    return (const uint8_t *)s->memory->workspace->handle + s->p->plan->value[value].off;
}

static void bind(const sequence *s, sl_cuda_task *t, const sl_op *op) {
    sl_cuda_bind(t, s->p, op, s->memory);
    for (int i = 0; i < sl_op_infos[op->code].n_in; i++) t->in[i] = address(s, op->in[i]);
}

static bool is(const sl_op *op, uint8_t code) { return op && op->code == code; }

static uint32_t n_reader(const sl_plan *plan, uint16_t value) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_op; i++)
        for (int k = 0; k < sl_op_infos[plan->op[i].code].n_in; k++) n += plan->op[i].in[k] == value;
    return n + (plan->logits == value);
}

static bool overlap(const sl_plan *plan, uint16_t a, uint16_t b) {
    const sl_value *x = &plan->value[a], *y = &plan->value[b];
    uint64_t x_bytes = (x->logit_rows ? plan->shape.n_logit_max : plan->shape.n_row_max) * x->row_bytes;
    uint64_t y_bytes = (y->logit_rows ? plan->shape.n_logit_max : plan->shape.n_row_max) * y->row_bytes;
    return x->off < y->off + y_bytes && y->off < x->off + x_bytes;
}

static bool is_tiled(const sl_plan *plan, const sl_op *op) {
    return (is(op, SL_OP_MATMUL) || is(op, SL_OP_MATMUL_ADD)) && sl_cuda_weight_tiled(&plan->weight[op->weight[0]]);
}

// ---- products ------------------------------------------------------------------------------------

static void add_matrix(sl_cuda_product *to, const sl_cuda_task *t) {
    to->matrix[to->n_matrix++] = (sl_cuda_matrix){.weight = t->weight,
                                                  .bias = t->bias,
                                                  .add = t->in[1],
                                                  .out = t->out,
                                                  .add_stride = t->in_stride[1],
                                                  .out_stride = t->out_stride,
                                                  .n_row = t->n_col,
                                                  .type = t->weight_type};
}

static void begin_product(sl_cuda_product *to, const sl_cuda_task *t) {
    *to = (sl_cuda_product){.step = t->step,
                            .in = t->in[0],
                            .in_stride = t->in_stride[0],
                            .n_col = t->weight_n_col,
                            .inverse_n_col = 1 / (double)t->weight_n_col,
                            .n_row_max = t->n_row_max,
                            .n_sm = t->n_sm,
                            .shared_bytes = t->shared_bytes,
                            .logit_rows = t->logit_rows,
                            .early = t->early};
}

// The matrices from op `i` on that can be in one launch; the number of ops.
static uint32_t gather_matrices(const sequence *s, uint32_t i, sl_cuda_product *to) {
    const sl_plan *plan = s->p->plan;
    const sl_op *first = op_at(s, i);
    uint32_t n = 0;
    for (; n < 3; n++) {
        const sl_op *op = op_at(s, i + n);
        if (!is_tiled(plan, op) || op->in[0] != first->in[0] || (n > 0 && op->code != SL_OP_MATMUL)) break;
        if (n > 0 && first->code != SL_OP_MATMUL) break;
        uint8_t type = plan->weight[op->weight[0]].type;
        bool fits = n == 0 || sl_cuda_tiles_go_with(to->matrix[0].type, type);
        for (uint32_t k = 1; k < n && fits; k++)
            fits = type == to->matrix[0].type || type == to->matrix[k].type || to->matrix[k].type == to->matrix[0].type;
        if (!fits) break;
        sl_cuda_task t;
        bind(s, &t, op);
        if (n == 0) begin_product(to, &t);
        add_matrix(to, &t);
    }
    return n;
}

// GLU_QUANT behind gate and up: the product leaves act(gate) * up as floats in gate's place.
static bool takes_glu(const sequence *s, uint32_t i, const sl_cuda_product *product) {
    const sl_plan *plan = s->p->plan;
    const sl_op *gate = op_at(s, i), *up = op_at(s, i + 1), *glu = op_at(s, i + 2);
    return plan->shape.n_row_max <= SL_CUDA_NARROW && product->n_matrix == 2 && is(glu, SL_OP_GLU_QUANT) &&
           glu->in[0] == gate->out && glu->in[1] == up->out && product->matrix[0].n_row == product->matrix[1].n_row &&
           n_reader(plan, gate->out) == 1 && n_reader(plan, up->out) == 1;
}

// May the ops from `i` on, which read what `maker` makes, read floats of `from` and quantise them themselves? More than
// two rows only where a warp has one block of columns: others would do it again and again.
static bool takes_floats(const sequence *s, uint32_t i, uint32_t n, const sl_op *maker, uint16_t from) {
    const sl_plan *plan = s->p->plan;
    const uint32_t n_col = plan->value[from].n_col;
    const bool many_cols = n_col > SL_CUDA_QUANT_COLS && (plan->shape.n_row_max > 2 || is(maker, SL_OP_NORM_QUANT));
    if (plan->shape.n_row_max > 1 &&
        (plan->shape.n_row_max > SL_CUDA_NARROW || many_cols || s->p->device->shared_bytes < SL_CUDA_HOPPER_SHARED))
        return false;
    if (plan->shape.keep_inputs || n == 0 || n_reader(plan, maker->out) != n || n_col % SL_ACT_BLK_LEN != 0)
        return false;
    for (uint32_t k = 0; k < n; k++)
        if (op_at(s, i + k)->in[0] != maker->out || overlap(plan, op_at(s, i + k)->out, from)) return false;
    return true;
}

// A product and what belongs to it; `from` is what its activations are made of by `maker` (NULL: they are there).
static cudaError_t launch_product(sequence *s, const sl_op *maker, uint16_t from, cudaStream_t stream) {
    const sl_plan *plan = s->p->plan;
    sl_cuda_product product = {0};
    uint32_t skip = maker && s->at < plan->n_op && op_at(s, 0) == maker;
    uint32_t n = gather_matrices(s, skip, &product);
    sl_cuda_task t;
    if (maker && takes_floats(s, skip, n, maker, from)) {
        bind(s, &t, maker);
        product.source = maker->code == SL_OP_NORM_QUANT ? SL_CUDA_NORM_QUANT : SL_CUDA_QUANT;
        product.in = address(s, from);
        product.in_stride = plan->value[from].row_bytes;
        product.norm = (const float *)(const void *)(maker->code == SL_OP_NORM_QUANT ? t.weight : NULL);
        product.eps = maker->code == SL_OP_NORM_QUANT ? t.attr.norm.eps : 0;
    } else if (maker) { // by a kernel of its own
        bind(s, &t, maker);
        t.in[0] = address(s, from);
        sl_cuda_launch *launch = maker->code == SL_OP_NORM_QUANT ? sl_cuda_norm_quant : sl_cuda_quant;
        cudaError_t error = launch(&t, stream);
        if (error != cudaSuccess) return error;
    }
    s->at += skip;
    if (n == 0) return cudaSuccess;
    bool glu = takes_glu(s, 0, &product);
    const sl_op *gate = op_at(s, 0), *quant = op_at(s, 2);
    if (glu) product.glu = 1, product.act = quant->attr.glu.act;
    product.large = s->n_product++ % 2;
    cudaError_t error = sl_cuda_matmul_tiles(&product, stream);
    s->at += n + glu;
    if (error != cudaSuccess || !glu) return error;
    return launch_product(s, quant, gate->out, stream);
}

// ---- attention -----------------------------------------------------------------------------------

static bool is_rope_kv(const sequence *s) {
    const sl_plan *plan = s->p->plan;
    const sl_op *k = op_at(s, 0), *write = op_at(s, 1), *q = op_at(s, 2);
    return is(k, SL_OP_ROPE) && is(write, SL_OP_KV_WRITE) && is(q, SL_OP_ROPE) && write->in[0] == k->out &&
           !plan->shape.keep_inputs && n_reader(plan, k->out) == 1 && !overlap(plan, q->out, k->in[0]) &&
           !overlap(plan, q->out, write->in[1]) && write->in[1] != q->out;
}

// One row: is the ATTEND behind it one that can do all this?
static bool takes_rope_kv(const sequence *s, const sl_cuda_attend_row *f) {
    const sl_op *q = op_at(s, 2), *attend = op_at(s, 3);
    const sl_cuda_task *t = &f->attend;
    return s->p->plan->shape.n_row_max == 1 && is(attend, SL_OP_ATTEND) && sl_cuda_attend_has_mma(t) &&
           attend->in[0] == q->out && n_reader(s->p->plan, q->out) == 1 &&
           attend->attr.attend.kv_layer == op_at(s, 1)->attr.kv.kv_layer && q->in[1] == op_at(s, 0)->in[1] &&
           q->attr.rope.n_rot == t->head_dim && op_at(s, 0)->attr.rope.n_rot == t->head_dim &&
           q->attr.rope.interleaved == op_at(s, 0)->attr.rope.interleaved;
}

static cudaError_t launch_rope_kv(sequence *s, cudaStream_t stream) {
    sl_cuda_rope_kv f;
    bind(s, &f.rope_k, op_at(s, 0));
    bind(s, &f.write, op_at(s, 1));
    bind(s, &f.rope_q, op_at(s, 2));
    sl_cuda_attend_row all = {.write = f.write, .rope_k = f.rope_k, .rope_q = f.rope_q};
    if (is(op_at(s, 3), SL_OP_ATTEND)) bind(s, &all.attend, op_at(s, 3));
    if (!takes_rope_kv(s, &all)) {
        s->at += 3;
        return sl_cuda_rope_kv_write(&f, stream);
    }
    // In the plan the result may take the place of K and V, which are still read here; the scratch has room.
    all.attend.out = (uint8_t *)all.attend.partial;
    s->moved = op_at(s, 3)->out, s->moved_to = all.attend.out;
    s->at += 4;
    return sl_cuda_rope_attend(&all, stream);
}

static cudaError_t launch_attend(sequence *s, cudaStream_t stream) {
    sl_cuda_task t;
    bind(s, &t, op_at(s, 0));
    s->at++;
    return sl_cuda_attend_has_mma(&t) ? sl_cuda_attend_mma(&t, stream) : sl_cuda_attend(&t, stream);
}

// ---- all -----------------------------------------------------------------------------------------

static cudaError_t launch_next(sequence *s, cudaStream_t stream) {
    const sl_plan *plan = s->p->plan;
    const sl_op *op = op_at(s, 0), *next = op_at(s, 1);
    bool maker = is(op, SL_OP_QUANT) || is(op, SL_OP_NORM_QUANT);
    if (maker && is_tiled(plan, next) && next->in[0] == op->out) return launch_product(s, op, op->in[0], stream);
    if (is_tiled(plan, op)) return launch_product(s, NULL, SL_NO_VALUE, stream);
    if (is_rope_kv(s)) return launch_rope_kv(s, stream);
    if (is(op, SL_OP_ATTEND)) return launch_attend(s, stream);
    sl_cuda_task t;
    bind(s, &t, op);
    s->at++;
    return launchers[op->code](&t, stream);
}

cudaError_t sl_cuda_launch_all(const sl_program *p, const sl_program_memory *memory) {
    cudaStream_t stream = p->device->stream;
    sequence s = {.p = p, .memory = memory, .moved = SL_NO_VALUE};
    cudaError_t error = sl_cuda_fetch_step(p->device_step, p->host_step, p->shape, stream);
    while (s.at < p->plan->n_op && error == cudaSuccess) error = launch_next(&s, stream);
    return error;
}
