// SPDX-License-Identifier: MIT
//
// Kernels over one row of floats: norm, gate, add, cap, rotation. No FMA here, and sums in sixteen
// fixed lanes: the same bits on every level.
#include <math.h>
#include <stdbool.h>

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

// Every second of 2n floats, n <= 16.
SL_INLINE v16 load_second(const float *p, uint32_t n) {
    float f[SL_V16] = {0};
    for (uint32_t i = 0; i < n; i++) f[i] = p[2 * i];
    return v16_load(f);
}

SL_INLINE void store_second(float *p, v16 x, uint32_t n) {
    float f[SL_V16];
    v16_store(f, x);
    for (uint32_t i = 0; i < n; i++) p[2 * i] = f[i];
}

// Rotates the pairs [first, first + n) of one head, n <= 16. Written with v16 and not as a plain
// loop because gcc 12 makes fused operations of (a c - b s, a s + b c), in spite of
// -ffp-contract=off.
SL_INLINE void rotate(float *out, const float *in, v16 c, v16 s, uint32_t first, uint32_t n, uint32_t half,
                      bool interleaved) {
    const float *at = interleaved ? in + 2 * first : in + first;
    v16 a = interleaved ? load_second(at, n) : v16_load_part(at, n);
    v16 b = interleaved ? load_second(at + 1, n) : v16_load_part(at + half, n);
    v16 x = v16_sub(v16_mul(a, c), v16_mul(b, s)), y = v16_add(v16_mul(a, s), v16_mul(b, c));
    float *to = out + (at - in);
    if (interleaved) store_second(to, x, n), store_second(to + 1, y, n);
    else v16_store_part(to, x, n), v16_store_part(to + half, y, n);
}

SL_INLINE void rope_of(float *out, const float *in, const float *table, const sl_attr_rope *attr, bool interleaved) {
    uint32_t half = attr->n_rot / 2, dim = attr->head_dim;
    for (uint32_t first = 0; first < half; first += SL_V16) {
        uint32_t n = SL_MIN(half - first, (uint32_t)SL_V16);
        v16 c = load_second(table + 2 * first, n), s = load_second(table + 2 * first + 1, n);
        for (uint32_t head = 0; head < attr->n_head; head++) {
            if (n == SL_V16) rotate(out + head * dim, in + head * dim, c, s, first, SL_V16, half, interleaved);
            else rotate(out + head * dim, in + head * dim, c, s, first, n, half, interleaved);
        }
    }
    for (uint32_t head = 0; head < attr->n_head; head++)
        for (uint32_t i = attr->n_rot; i < dim; i++) out[head * dim + i] = in[head * dim + i];
}

// `table` holds cos and sin in turn. A pair is read before it is written, so out and in may be the
// same row.
void sl_cpu_rope(float *out, const float *in, const float *table, const sl_attr_rope *attr) {
    if (attr->interleaved) rope_of(out, in, table, attr, true);
    else rope_of(out, in, table, attr, false);
}
