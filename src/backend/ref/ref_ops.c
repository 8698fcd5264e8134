// SPDX-License-Identifier: MIT
//
// The small ops of ref, each as its formula in double, and the table of all ops. A unit is a row.
#include <math.h>
#include <string.h>

#include "backend/host.h"
#include "backend/ref/ref.h"
#include "quant/quant.h"

static void embed(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const sl_plan_weight *w = &program->plan->weight[op->weight[0]];
    const uint8_t *data = program->weight[op->weight[0]];
    uint64_t row_bytes = sl_type_row_bytes(sl_type_find(w->type), w->n_col);
    for (int64_t row = begin; row < end; row++) {
        float *out = sl_ref_row(program, op->out, row);
        sl_quant_decode((sl_type)w->type, out, data + (uint64_t)program->step->token[row] * row_bytes, w->n_col);
        for (uint32_t i = 0; i < w->n_col; i++) out[i] *= op->attr.embed.scale;
    }
}

static void rope_table(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const sl_plan_rope *rope = &program->plan->rope[op->attr.rope_table.rope];
    const double *inv_freq = program->plan->inv_freq + rope->inv_freq_at;
    for (int64_t row = begin; row < end; row++) {
        float *out = sl_ref_row(program, op->out, row);
        const sl_step *step = program->step;
        double pos = op->attr.rope_table.cells ? sl_step_cell(step, (int32_t)row) : step->pos[row];
        for (uint32_t i = 0; i < rope->n_rot / 2; i++) {
            double angle = pos * inv_freq[i];
            out[2 * i] = (float)(cos(angle) * (double)rope->mscale);
            out[2 * i + 1] = (float)(sin(angle) * (double)rope->mscale);
        }
    }
}

static void norm(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    uint32_t n = program->plan->value[op->out].n_col, group = op->attr.norm.group;
    const float *weight = sl_ref_vector(program, op, 0);
    for (int64_t row = begin; row < end; row++) {
        const float *in = sl_ref_row(program, op->in[0], row);
        float *out = sl_ref_row(program, op->out, row);
        for (uint32_t first = 0; first < n; first += group) {
            double sum = 0;
            for (uint32_t i = 0; i < group; i++) sum += (double)in[first + i] * (double)in[first + i];
            double scale = 1 / sqrt(sum / group + (double)op->attr.norm.eps);
            for (uint32_t i = 0; i < group; i++)
                out[first + i] = (float)((double)in[first + i] * scale * (weight ? (double)weight[i] : 1));
        }
    }
}

static void rope(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    const sl_attr_rope *attr = &op->attr.rope;
    uint32_t half = attr->n_rot / 2, step = attr->interleaved ? 1 : half;
    for (int64_t row = begin; row < end; row++) {
        const float *in = sl_ref_row(program, op->in[0], row), *table = sl_ref_row(program, op->in[1], row);
        float *out = sl_ref_row(program, op->out, row);
        for (uint32_t head = 0; head < attr->n_head; head++, in += attr->head_dim, out += attr->head_dim) {
            for (uint32_t i = 0; i < half; i++) {
                uint32_t at = attr->interleaved ? 2 * i : i;
                double a = in[at], b = in[at + step], c = table[2 * i], s = table[2 * i + 1];
                out[at] = (float)(a * c - b * s);
                out[at + step] = (float)(a * s + b * c);
            }
            for (uint32_t i = attr->n_rot; i < attr->head_dim; i++) out[i] = in[i];
        }
    }
}

// 0.5 x (1 + tanh u) is x / (1 + e^-2u), which does not lose its digits where tanh is near -1.
static double act(double x, uint8_t which) {
    if (which == SL_ACT_SILU) return x / (1 + exp(-x));
    double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x); // sqrt(2/pi)
    return x / (1 + exp(-2 * u));
}

static void glu(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    uint32_t n = program->plan->value[op->out].n_col;
    for (int64_t row = begin; row < end; row++) {
        const float *gate = sl_ref_row(program, op->in[0], row), *up = sl_ref_row(program, op->in[1], row);
        float *out = sl_ref_row(program, op->out, row);
        for (uint32_t i = 0; i < n; i++) out[i] = (float)(act((double)gate[i], op->attr.glu.act) * (double)up[i]);
    }
}

static void add(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    uint32_t n = program->plan->value[op->out].n_col;
    for (int64_t row = begin; row < end; row++) {
        const float *a = sl_ref_row(program, op->in[0], row), *b = sl_ref_row(program, op->in[1], row);
        float *out = sl_ref_row(program, op->out, row);
        for (uint32_t i = 0; i < n; i++) out[i] = (float)((double)a[i] + (double)b[i]);
    }
}

static void gather(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    size_t n_bytes = program->plan->value[op->out].n_col * sizeof(float);
    for (int64_t i = begin; i < end; i++)
        memcpy(sl_ref_row(program, op->out, i), sl_ref_row(program, op->in[0], program->step->logit_row[i]), n_bytes);
}

static void softcap(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    uint32_t n = program->plan->value[op->out].n_col;
    double cap = op->attr.softcap.cap;
    for (int64_t row = begin; row < end; row++) {
        const float *in = sl_ref_row(program, op->in[0], row);
        float *out = sl_ref_row(program, op->out, row);
        for (uint32_t i = 0; i < n; i++) out[i] = (float)(cap * tanh((double)in[i] / cap));
    }
}

static void best(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    uint32_t n = program->plan->value[op->in[0]].n_col;
    for (int64_t row = begin; row < end; row++) {
        const float *in = sl_ref_row(program, op->in[0], row);
        float *out = sl_ref_row(program, op->out, row), max = -INFINITY;
        out[0] = -1, out[1] = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (in[i] > max) max = in[i], out[0] = (float)i;
            out[1] += !isfinite(in[i]);
        }
    }
}

// ---- the table ----------------------------------------------------------------------------------

static int64_t n_row(const sl_program *program, const sl_op *op) {
    return sl_host_n_row(program->plan, op, program->step);
}

static int64_t n_output(const sl_program *program, const sl_op *op) {
    return n_row(program, op) ? program->plan->weight[op->weight[0]].n_row : 0;
}

static int64_t n_row_head(const sl_program *program, const sl_op *op) {
    return n_row(program, op) * op->attr.attend.n_head;
}

static sl_status check_norm(const sl_plan *plan, const sl_op *op) { return sl_host_check_vector(plan, op, 0); }

static sl_status check_embed(const sl_plan *plan, const sl_op *op) {
    const sl_plan_weight *w = &plan->weight[op->weight[0]];
    if (sl_quant_find((sl_type)w->type)) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED, "%s: %s has type %s, which backend ref cannot decode", sl_host_op_text(op), w->name,
                   sl_type_name((sl_type)w->type));
}

const sl_ref_op sl_ref_ops[SL_OP_COUNT] = {
    [SL_OP_EMBED] = {embed, n_row, check_embed, NULL},
    [SL_OP_ROPE_TABLE] = {rope_table, n_row, NULL, NULL},
    [SL_OP_NORM] = {norm, n_row, check_norm, NULL},
    [SL_OP_MATMUL] = {sl_ref_matmul, n_output, sl_ref_matmul_check, sl_ref_matmul_scratch_bytes},
    [SL_OP_ROPE] = {rope, n_row, NULL, NULL},
    [SL_OP_KV_WRITE] = {sl_ref_kv_write, sl_ref_kv_n_unit, sl_ref_kv_check, NULL},
    [SL_OP_ATTEND] = {sl_ref_attend, n_row_head, sl_ref_kv_check, sl_ref_attend_scratch_bytes},
    [SL_OP_ATTEND_SINKS] = {sl_ref_attend, n_row_head, sl_ref_kv_check, sl_ref_attend_scratch_bytes},
    [SL_OP_GLU] = {glu, n_row, NULL, NULL},
    [SL_OP_ADD] = {add, n_row, NULL, NULL},
    [SL_OP_GATHER] = {gather, n_row, NULL, NULL},
    [SL_OP_SOFTCAP] = {softcap, n_row, NULL, NULL},
    [SL_OP_BEST] = {best, n_row, NULL, NULL},
};
