// SPDX-License-Identifier: MIT
//
// KV_WRITE and ATTEND of ref. A unit of KV_WRITE is a KV head, a unit of ATTEND one query head of a row: scores, the
// softmax with its maximum taken off, and the weighted sum of V, all in double, positions in rising order. What a cache
// of codes keeps of a vector is defined to the bit by quant/kv_codec.h; the order of the bytes is ref's own.
#include <math.h>

#include "backend/host.h"
#include "backend/ref/ref.h"
#include "base/half.h"
#include "quant/kv_codec.h"

sl_status sl_ref_kv_check(const sl_plan *plan, const sl_op *op) {
    uint16_t layer = op->code == SL_OP_KV_WRITE ? op->attr.kv.kv_layer : op->attr.attend.kv_layer;
    const sl_plan_kv *kv = &plan->kv[layer];
    const uint8_t types[2] = {kv->type_k, kv->type_v};
    for (int i = 0; i < 2; i++)
        if (!sl_kv_type_possible((sl_type)types[i]))
            return SL_FAIL(SL_UNSUPPORTED, "%s: a KV cache of type %s is not in backend ref; use f16 or f32",
                           sl_host_op_text(op), sl_type_name((sl_type)types[i]));
    return SL_OK;
}

// The pool block that holds a cell of a row.
static int32_t find_blk(const sl_step *step, const sl_plan_kv *kv, int32_t row, int32_t cell) {
    return sl_step_table(step, kv, step->slot[row])[sl_step_entry(step, row, cell / SL_KV_BLK_LEN)];
}

// The vector of (cell, head) in a pool block.
static uint8_t *vector_at(uint8_t *blk, const sl_plan_kv *kv, sl_type type, int32_t cell, uint32_t head, uint32_t dim) {
    uint64_t i = (uint64_t)(cell % SL_KV_BLK_LEN) * kv->n_head_kv + head;
    return blk + i * sl_type_row_bytes(sl_type_find(type), dim);
}

// ---- what is stored -----------------------------------------------------------------------------

static void put_bits(uint8_t *out, const uint8_t code[SL_KV_GROUP], int bits) {
    memset(out, 0, (size_t)(SL_KV_GROUP * bits / 8));
    for (int i = 0; i < SL_KV_GROUP * bits; i++) out[i / 8] |= (uint8_t)((code[i / bits] >> i % bits & 1) << i % 8);
}

static uint8_t get_bits(const uint8_t *in, int i, int bits) {
    int code = 0;
    for (int k = i * bits; k < (i + 1) * bits; k++) code |= (in[k / 8] >> k % 8 & 1) << (k - i * bits);
    return (uint8_t)code;
}

// A group of V: the scale, then the codes, the low bit of the first first.
static void store_group(uint8_t *out, sl_type type, const float *in) {
    uint8_t code[SL_KV_GROUP];
    uint16_t d = sl_kv_encode(type, code, in);
    memcpy(out, &d, sizeof d);
    put_bits(out + sizeof d, code, sl_kv_code_bits(type));
}

static void load_group(double *out, sl_type type, const uint8_t *in) {
    uint16_t d;
    memcpy(&d, in, sizeof d);
    for (int i = 0; i < SL_KV_GROUP; i++)
        out[i] = (double)sl_f16_to_f32(d) * sl_kv_level(type, get_bits(in + sizeof d, i, sl_kv_code_bits(type)));
}

// A vector as floats, or a V as codes.
static void store(uint8_t *out, sl_type type, const float *in, uint32_t dim) {
    uint16_t *half = (uint16_t *)(void *)out;
    switch (type) {
    case SL_TYPE_F32: memcpy(out, in, dim * sizeof *in); return;
    case SL_TYPE_F16:
        for (uint32_t i = 0; i < dim; i++) half[i] = sl_f16_from_f32(in[i]);
        return;
    case SL_TYPE_BF16:
        for (uint32_t i = 0; i < dim; i++) half[i] = sl_bf16_from_f32(in[i]);
        return;
    default:
        for (uint32_t i = 0; i < dim; i += SL_KV_GROUP)
            store_group(out + sl_type_row_bytes(sl_type_find(type), i), type, in + i);
    }
}

static void load(double *out, sl_type type, const uint8_t *in, uint32_t dim) {
    for (uint32_t i = 0; i < dim; i++) {
        if (type == SL_TYPE_F32) out[i] = (double)((const float *)(const void *)in)[i];
        else if (type == SL_TYPE_F16) out[i] = (double)sl_f16_to_f32(((const uint16_t *)(const void *)in)[i]);
        else if (type == SL_TYPE_BF16) out[i] = (double)sl_bf16_to_f32(((const uint16_t *)(const void *)in)[i]);
        else if (i % SL_KV_GROUP == 0) load_group(out + i, type, in + sl_type_row_bytes(sl_type_find(type), i));
    }
}

// The channel (head, d) of a K block of codes: what is kept of the grid, then the codes of its positions.
static uint8_t *channel_at(uint8_t *blk, const sl_plan_kv *kv, uint32_t head, uint32_t d) {
    return blk + (head * kv->head_dim + d) * sl_kv_head_bytes((sl_type)kv->type_k, false, 1);
}

static size_t kept_bytes(sl_type type) { return type == SL_TYPE_Q8_0 ? 4 : 2; } // little-endian

static void load_channels(double *out, uint8_t *blk, const sl_plan_kv *kv, int32_t cell, uint32_t head) {
    sl_type type = (sl_type)kv->type_k;
    for (uint32_t dim = 0; dim < kv->head_dim; dim++) {
        const uint8_t *channel = channel_at(blk, kv, head, dim);
        uint32_t kept = 0;
        float d, least;
        memcpy(&kept, channel, kept_bytes(type));
        sl_kv_grid_read(type, kept, &d, &least);
        uint8_t code = get_bits(channel + kept_bytes(type), cell % SL_KV_BLK_LEN, sl_kv_code_bits(type));
        out[dim] = (double)least + (double)d * code;
    }
}

// A block that is full, from its open block.
static void store_channels(uint8_t *blk, uint8_t *open, const sl_plan_kv *kv, uint32_t head) {
    sl_type type = (sl_type)kv->type_k;
    for (uint32_t dim = 0; dim < kv->head_dim; dim++) {
        float x[SL_KV_GROUP];
        uint8_t code[SL_KV_GROUP], *channel = channel_at(blk, kv, head, dim);
        for (int32_t pos = 0; pos < SL_KV_GROUP; pos++)
            x[pos] =
                sl_f16_to_f32(((uint16_t *)(void *)vector_at(open, kv, SL_TYPE_F16, pos, head, kv->head_dim))[dim]);
        uint32_t kept = sl_kv_encode_channel(type, code, x);
        memcpy(channel, &kept, kept_bytes(type));
        put_bits(channel + kept_bytes(type), code, sl_kv_code_bits(type));
    }
}

// The rotation in double: of the result back.
static void rotate(double *x, uint32_t n, uint32_t n_rot) {
    for (uint32_t span = 1; span < n_rot; span *= 2)
        for (uint32_t i = 0; i < n; i++) {
            if (i & span) continue;
            double a = x[i], b = x[i + span];
            x[i] = a + b, x[i + span] = a - b;
        }
    for (uint32_t i = 0; n_rot && i < n; i++) x[i] /= sqrt((double)n_rot);
}

static uint8_t *open_blk(const sl_program *program, const sl_plan_open *o, int32_t row) {
    return program->kv + sl_plan_open_off(o, program->step->open[row]);
}

static void write_k(const sl_program *program, const sl_plan_kv *kv, const float *in, int32_t row, uint32_t head) {
    sl_type type = (sl_type)kv->type_k;
    int32_t cell = sl_step_cell(program->step, row);
    uint8_t *blk = program->kv + kv->k_off + (uint64_t)find_blk(program->step, kv, row, cell) * kv->k_blk_bytes;
    if (!sl_kv_code_bits(type)) {
        store(vector_at(blk, kv, type, cell, head, kv->head_dim), type, in, kv->head_dim);
        return;
    }
    uint8_t *open = open_blk(program, &kv->k_open, row);
    store(vector_at(open, kv, SL_TYPE_F16, cell, head, kv->head_dim), SL_TYPE_F16, in, kv->head_dim);
    if (cell % SL_KV_BLK_LEN == SL_KV_BLK_LEN - 1) store_channels(blk, open, kv, head);
}

static void write_v(const sl_program *program, const sl_plan_kv *kv, const float *in, int32_t row, uint32_t head) {
    sl_type type = (sl_type)kv->type_v;
    int32_t cell = sl_step_cell(program->step, row);
    uint8_t *blk = program->kv + kv->v_off + (uint64_t)find_blk(program->step, kv, row, cell) * kv->v_blk_bytes;
    float x[SL_KV_MAX_DIM];
    if (sl_kv_code_bits(type)) {
        memcpy(x, in, kv->v_dim * sizeof *x);
        sl_kv_rotate(x, kv->v_dim, kv->v_rot);
        store(vector_at(open_blk(program, &kv->v_open, row), kv, SL_TYPE_F16, cell, head, kv->v_dim), SL_TYPE_F16, x,
              kv->v_dim);
        in = x;
    }
    store(vector_at(blk, kv, type, cell, head, kv->v_dim), type, in, kv->v_dim);
}

int64_t sl_ref_kv_n_unit(const sl_program *program, const sl_op *op) {
    return program->plan->kv[op->attr.kv.kv_layer].n_head_kv;
}

// A unit is a KV head, as a row that fills a block looks at those before it.
void sl_ref_kv_write(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const sl_plan_kv *kv = &program->plan->kv[op->attr.kv.kv_layer];
    for (int32_t row = 0; row < program->step->n_row; row++) {
        const float *in_k = sl_ref_row(program, op->in[0], row), *in_v = sl_ref_row(program, op->in[1], row);
        for (uint32_t head = (uint32_t)begin; head < end; head++) {
            write_k(program, kv, in_k + (size_t)head * kv->head_dim, row, head);
            write_v(program, kv, in_v + (size_t)head * kv->v_dim, row, head);
        }
    }
}

// ---- attention ----------------------------------------------------------------------------------

// Turns scores into weights that add up to one.
static void softmax(double *score, int32_t n) {
    double max = -INFINITY, sum = 0;
    for (int32_t i = 0; i < n; i++) max = score[i] > max ? score[i] : max;
    for (int32_t i = 0; i < n; i++) sum += score[i] = exp(score[i] - max);
    for (int32_t i = 0; i < n; i++) score[i] /= sum;
}

// What a row's head works on, in scratch.
typedef struct head_work {
    double *weight, *sum, *vector; // (n_ctx), (v_dim), (the larger of v_dim and head_dim)
} head_work;

// Is a cell in the row's own block?
static bool is_own(const sl_step *step, int32_t row, int32_t cell) {
    return cell / SL_KV_BLK_LEN == sl_step_cell(step, row) / SL_KV_BLK_LEN;
}

// K and V of a cell as the row sees them.
static void load_k(double *out, const sl_program *program, const sl_plan_kv *kv, int32_t row, int32_t cell,
                   uint32_t head) {
    sl_type type = (sl_type)kv->type_k;
    bool is_code = sl_kv_code_bits(type), own = is_own(program->step, row, cell);
    uint8_t *blk = program->kv + kv->k_off + (uint64_t)find_blk(program->step, kv, row, cell) * kv->k_blk_bytes;
    if (is_code && own) blk = open_blk(program, &kv->k_open, row), type = SL_TYPE_F16;
    if (is_code && !own) load_channels(out, blk, kv, cell, head);
    else load(out, type, vector_at(blk, kv, type, cell, head, kv->head_dim), kv->head_dim);
}

static void load_v(double *out, const sl_program *program, const sl_plan_kv *kv, int32_t row, int32_t cell,
                   uint32_t head) {
    sl_type type = (sl_type)kv->type_v;
    uint8_t *blk = program->kv + kv->v_off + (uint64_t)find_blk(program->step, kv, row, cell) * kv->v_blk_bytes;
    if (sl_kv_code_bits(type) && is_own(program->step, row, cell))
        blk = open_blk(program, &kv->v_open, row), type = SL_TYPE_F16;
    load(out, type, vector_at(blk, kv, type, cell, head, kv->v_dim), kv->v_dim);
}

static void attend_head(const sl_program *program, const sl_op *op, int32_t row, uint32_t head, head_work w) {
    const sl_attr_attend *attr = &op->attr.attend;
    const sl_plan_kv *kv = &program->plan->kv[attr->kv_layer];
    uint32_t head_kv = head / (attr->n_head / kv->n_head_kv);
    int32_t last = sl_step_cell(program->step, row), first = sl_host_first_seen(last, attr->window);
    const float *q = sl_ref_row(program, op->in[0], row) + (size_t)head * kv->head_dim, *q_first = q;
    float *out = sl_ref_row(program, op->out, row) + (size_t)head * kv->v_dim;
    if (op->code == SL_OP_ATTEND_SINKS) q_first = sl_ref_row(program, op->in[1], row) + (size_t)head * kv->head_dim;
    for (int32_t cell = first; cell <= last; cell++) {
        load_k(w.vector, program, kv, row, cell, head_kv);
        const float *from = cell < SL_KV_BLK_LEN ? q_first : q;
        double score = 0;
        for (uint32_t d = 0; d < kv->head_dim; d++) score += (double)from[d] * w.vector[d];
        score *= (double)attr->scale;
        if (attr->softcap > 0) score = (double)attr->softcap * tanh(score / (double)attr->softcap);
        w.weight[cell - first] = score;
    }
    softmax(w.weight, last - first + 1);
    for (uint32_t d = 0; d < kv->v_dim; d++) w.sum[d] = 0;
    for (int32_t cell = first; cell <= last; cell++) {
        load_v(w.vector, program, kv, row, cell, head_kv);
        for (uint32_t d = 0; d < kv->v_dim; d++) w.sum[d] += w.weight[cell - first] * w.vector[d];
    }
    rotate(w.sum, kv->v_dim, kv->v_rot);
    for (uint32_t d = 0; d < kv->v_dim; d++) out[d] = (float)w.sum[d];
}

void sl_ref_attend(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    const sl_plan_kv *kv = &program->plan->kv[op->attr.attend.kv_layer];
    int64_t n_head = op->attr.attend.n_head;
    head_work w = {.weight = scratch};
    w.sum = w.weight + program->plan->shape.n_ctx;
    w.vector = w.sum + kv->v_dim;
    for (int64_t i = begin; i < end; i++) attend_head(program, op, (int32_t)(i / n_head), (uint32_t)(i % n_head), w);
}

uint64_t sl_ref_attend_scratch_bytes(const sl_plan *plan, const sl_op *op) {
    const sl_plan_kv *kv = &plan->kv[op->attr.attend.kv_layer];
    uint64_t n = (uint64_t)plan->shape.n_ctx + kv->v_dim + SL_MAX(kv->head_dim, kv->v_dim);
    return n * sizeof(double);
}
