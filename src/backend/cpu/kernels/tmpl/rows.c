// SPDX-License-Identifier: MIT
//
// Kernels over one row of floats: norm, gate, add, cap, rotation. No FMA here, and sums in sixteen fixed lanes: the same
// bits on every level.
#include <math.h>

#include "backend/cpu/kernels/tmpl/tmpl.h"
#include "backend/cpu/kernels/vec_math.h"

// Sixteen double sums; the square of a float is exact in double.
static double sum_of_squares(const float *in, uint32_t n) {
    double lane[SL_V16] = {0};
    uint32_t i = 0;
    for (; i + SL_V16 <= n; i += SL_V16) {
#pragma omp simd
        for (int j = 0; j < SL_V16; j++) lane[j] += (double)in[i + (uint32_t)j] * (double)in[i + (uint32_t)j];
    }
    for (int j = 0; i < n; i++, j++) lane[j] += (double)in[i] * (double)in[i];
    double sum = 0;
    for (int j = 0; j < SL_V16; j++) sum += lane[j];
    return sum;
}

void sl_cpu_norm(float *out, const float *in, const float *weight, uint32_t n_col, uint32_t group, float eps) {
    for (uint32_t first = 0; first < n_col; first += group, in += group, out += group) {
        float scale = (float)(1 / sqrt(sum_of_squares(in, group) / group + (double)eps));
        if (weight) {
#pragma omp simd
            for (uint32_t i = 0; i < group; i++) out[i] = in[i] * scale * weight[i];
        } else {
#pragma omp simd
            for (uint32_t i = 0; i < group; i++) out[i] = in[i] * scale;
        }
    }
}

SL_INLINE v16 gate(v16 x, uint8_t act) { return act == SL_ACT_SILU ? v16_silu(x) : v16_gelu_tanh(x); }

SL_INLINE void glu_of(float *out, const float *in, const float *up, uint32_t n, uint8_t act) {
    uint32_t i = 0;
    for (; i + SL_V16 <= n; i += SL_V16) v16_store(out + i, v16_mul(gate(v16_load(in + i), act), v16_load(up + i)));
    if (i == n) return;
    v16 x = v16_load_part(in + i, n - i), y = v16_load_part(up + i, n - i);
    v16_store_part(out + i, v16_mul(gate(x, act), y), n - i);
}

void sl_cpu_glu(float *out, const float *in, const float *up, uint32_t n_col, uint8_t act) {
    if (act == SL_ACT_SILU) glu_of(out, in, up, n_col, SL_ACT_SILU);
    else glu_of(out, in, up, n_col, SL_ACT_GELU_TANH);
}

void sl_cpu_add(float *out, const float *a, const float *b, uint32_t n_col) {
#pragma omp simd
    for (uint32_t i = 0; i < n_col; i++) out[i] = a[i] + b[i];
}

void sl_cpu_softcap(float *out, const float *in, uint32_t n_col, float cap) {
    v16 c = v16_all(cap);
    uint32_t i = 0;
    for (; i + SL_V16 <= n_col; i += SL_V16) v16_store(out + i, v16_mul(c, v16_tanh(v16_div(v16_load(in + i), c))));
    if (i == n_col) return;
    v16 x = v16_load_part(in + i, n_col - i);
    v16_store_part(out + i, v16_mul(c, v16_tanh(v16_div(x, c))), n_col - i);
}

// `table` holds cos and sin in turn. A pair is read before it is written, so out and in may be the same row.
void sl_cpu_rope(float *out, const float *in, const float *table, const sl_attr_rope *attr) {
    uint32_t half = attr->n_rot / 2;
    for (uint32_t head = 0; head < attr->n_head; head++, in += attr->head_dim, out += attr->head_dim) {
        if (attr->interleaved) {
#pragma omp simd
            for (uint32_t i = 0; i < half; i++) {
                float a = in[2 * i], b = in[2 * i + 1], c = table[2 * i], s = table[2 * i + 1];
                out[2 * i] = a * c - b * s;
                out[2 * i + 1] = a * s + b * c;
            }
        } else {
#pragma omp simd
            for (uint32_t i = 0; i < half; i++) {
                float a = in[i], b = in[half + i], c = table[2 * i], s = table[2 * i + 1];
                out[i] = a * c - b * s;
                out[half + i] = a * s + b * c;
            }
        }
        for (uint32_t i = attr->n_rot; i < attr->head_dim; i++) out[i] = in[i];
    }
}
