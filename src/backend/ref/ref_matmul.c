// SPDX-License-Identifier: MIT
//
// MATMUL of ref: a weight row is decoded by its scalar codec and multiplied with every row of the
// step. A unit is one output. The dot product is a sum of eight interleaved double sums, then of
// those in order; a product of two floats is exact in double.
#include "backend/host.h"
#include "backend/ref/ref.h"
#include "quant/quant.h"

enum { N_SUM = 8 };

static double dot(const float *a, const double *b, uint32_t n) {
    double sum[N_SUM] = {0};
    uint32_t i = 0;
    for (; i + N_SUM <= n; i += N_SUM) {
        SL_UNROLL
        for (uint32_t j = 0; j < N_SUM; j++) sum[j] += (double)a[i + j] * b[i + j];
    }
    for (; i < n; i++) sum[i % N_SUM] += (double)a[i] * b[i];
    double total = 0;
    for (uint32_t j = 0; j < N_SUM; j++) total += sum[j];
    return total;
}

// Eight at a time, which a compiler turns into vectors.
static void widen(double *restrict out, const float *restrict in, uint32_t n) {
    uint32_t i = 0;
    for (; i + N_SUM <= n; i += N_SUM)
        for (uint32_t j = 0; j < N_SUM; j++) out[i + j] = (double)in[i + j];
    for (; i < n; i++) out[i] = (double)in[i];
}

void sl_ref_matmul(const sl_program *program, const sl_op *op, int64_t begin, int64_t end, void *scratch) {
    const sl_plan_weight *w = &program->plan->weight[op->weight[0]];
    const float *bias = sl_ref_vector(program, op, 1);
    const uint8_t *data = program->weight[op->weight[0]];
    uint64_t row_bytes = sl_type_row_bytes(sl_type_find(w->type), w->n_col);
    int32_t n_row = sl_host_n_row(program->plan, op, program->step);
    double *weight = scratch;                              // (n_col)
    float *decoded = (float *)(void *)(weight + w->n_col); // (n_col)
    for (int64_t i = begin; i < end; i++) {
        sl_quant_decode((sl_type)w->type, decoded, data + (uint64_t)i * row_bytes, w->n_col);
        widen(weight, decoded, w->n_col);
        for (int32_t row = 0; row < n_row; row++) {
            double sum = dot(sl_ref_row(program, op->in[0], row), weight, w->n_col);
            sl_ref_row(program, op->out, row)[i] = (float)(bias ? sum + (double)bias[i] : sum);
        }
    }
}

uint64_t sl_ref_matmul_scratch_bytes(const sl_plan *plan, const sl_op *op) {
    return (uint64_t)plan->weight[op->weight[0]].n_col * (sizeof(double) + sizeof(float));
}

sl_status sl_ref_matmul_check(const sl_plan *plan, const sl_op *op) {
    const sl_plan_weight *w = &plan->weight[op->weight[0]];
    if (!sl_quant_find((sl_type)w->type))
        return SL_FAIL(SL_UNSUPPORTED, "%s: %s has type %s, which backend ref cannot decode", sl_host_op_text(op),
                       w->name, sl_type_name((sl_type)w->type));
    return sl_host_check_vector(plan, op, 1);
}
