// SPDX-License-Identifier: MIT
//
// F32, F16 and BF16 weights times F32 activations. Written once over 16 lanes of columns and compiled for each level,
// which defines first (matmul_float_<level>.c):
//   TILE_OUTS, TILE_ROWS             outputs and rows whose sums are held in registers
//   lanes                            16 floats
//   l_zero(), l_f32(p), l_f16(p), l_bf16(p), l_fma(a, b, c)
//   l_sum(v)                         v[l] += v[l + 8], l < 8; likewise 4, 2, 1; then v[0]
//
// The order of float operations of one output and one row; the same on every level and at every width:
//   sum[l] = 0, l < 16; for each column k, rising: sum[k % 16] = fma(weight[k], act[k], sum[k % 16])
//   with zeros past n_col up to a multiple of 16; then l_sum; out = that [+ bias] [+ add]
#ifndef SL_BACKEND_CPU_MATMUL_FLOAT_H
#define SL_BACKEND_CPU_MATMUL_FLOAT_H

#include <string.h>

#include "backend/cpu/kernels/matmul_level.h"
#include "base/compiler.h"

enum {
    N_LANES = 16,
    CACHED_BYTES = 512 * 1024, // of activations that are multiplied with all weights of a range before the next ones
};

typedef lanes load_fn(const uint8_t *p);

SL_INLINE lanes load_f32(const uint8_t *p) { return l_f32(p); }
SL_INLINE lanes load_f16(const uint8_t *p) { return l_f16(p); }
SL_INLINE lanes load_bf16(const uint8_t *p) { return l_bf16(p); }

// The last n columns, followed by zeros.
SL_INLINE lanes load_tail(const uint8_t *p, uint32_t n, load_fn *load, uint32_t elem_bytes) {
    uint8_t buf[N_LANES * 4] = {0};
    memcpy(buf, p, n * elem_bytes);
    return load(buf);
}

SL_INLINE void finish(const sl_cpu_matmul *m, uint32_t row, uint32_t out, float sum) {
    if (m->bias) sum += m->bias[out];
    if (m->add) sum += ((const float *)(const void *)((const uint8_t *)m->add + row * m->add_stride))[out];
    ((float *)(void *)((uint8_t *)m->out + row * m->out_stride))[out] = sum;
}

// n_out outputs times n_row rows: all loops over them unroll.
SL_INLINE void tile(const sl_cpu_matmul *m, uint32_t out, uint32_t row, const uint32_t n_out, const uint32_t n_row,
                    load_fn *load, const uint32_t elem_bytes) {
    const uint8_t *weight = m->weight + out * m->w_row_bytes, *act = m->act + row * m->act_stride;
    lanes sum[TILE_OUTS][TILE_ROWS];
    SL_UNROLL
    for (uint32_t o = 0; o < n_out; o++) SL_UNROLL
    for (uint32_t r = 0; r < n_row; r++) sum[o][r] = l_zero();
    uint32_t k = 0;
    for (; k + N_LANES <= m->n_col; k += N_LANES) {
        lanes w[TILE_OUTS];
        SL_UNROLL
        for (uint32_t o = 0; o < n_out; o++) w[o] = load(weight + o * m->w_row_bytes + k * elem_bytes);
        SL_UNROLL
        for (uint32_t r = 0; r < n_row; r++) {
            lanes a = l_f32(act + r * m->act_stride + k * sizeof(float));
            SL_UNROLL
            for (uint32_t o = 0; o < n_out; o++) sum[o][r] = l_fma(w[o], a, sum[o][r]);
        }
    }
    if (k < m->n_col) SL_UNROLL
    for (uint32_t o = 0; o < n_out; o++) {
        lanes w = load_tail(weight + o * m->w_row_bytes + k * elem_bytes, m->n_col - k, load, elem_bytes);
        SL_UNROLL
        for (uint32_t r = 0; r < n_row; r++) {
            lanes a = load_tail(act + r * m->act_stride + k * sizeof(float), m->n_col - k, load_f32, sizeof(float));
            sum[o][r] = l_fma(w, a, sum[o][r]);
        }
    }
    SL_UNROLL
    for (uint32_t o = 0; o < n_out; o++) SL_UNROLL
    for (uint32_t r = 0; r < n_row; r++) finish(m, row + r, out + o, l_sum(sum[o][r]));
}

// TILE_OUTS outputs (or one, at the end of a range) times rows [begin, end).
SL_INLINE void stripe(const sl_cpu_matmul *m, uint32_t out, const uint32_t n_out, uint32_t begin, uint32_t end,
                      load_fn *load, const uint32_t elem_bytes) {
    uint32_t row = begin;
    for (; row + TILE_ROWS <= end; row += TILE_ROWS) tile(m, out, row, n_out, TILE_ROWS, load, elem_bytes);
    for (; row + 2 <= end; row += 2) tile(m, out, row, n_out, 2, load, elem_bytes);
    if (row < end) tile(m, out, row, n_out, 1, load, elem_bytes);
}

SL_INLINE void matmul_float(const sl_cpu_matmul *m, uint32_t out_begin, uint32_t out_end, load_fn *load,
                            const uint32_t elem_bytes) {
    uint64_t fit = CACHED_BYTES / m->act_stride / TILE_ROWS * TILE_ROWS;
    uint32_t step = (uint32_t)SL_MIN(SL_MAX(fit, (uint64_t)TILE_ROWS), (uint64_t)UINT32_MAX / 2);
    for (uint32_t row = 0; row < m->n_row; row += step) {
        uint32_t end = SL_MIN(m->n_row, row + step), out = out_begin;
        for (; out + TILE_OUTS <= out_end; out += TILE_OUTS) stripe(m, out, TILE_OUTS, row, end, load, elem_bytes);
        for (; out < out_end; out++) stripe(m, out, 1, row, end, load, elem_bytes);
    }
}

#define MATMUL_FLOAT(name, elem_bytes)                                                                       \
    static void matmul_##name(const sl_cpu_matmul *m, uint32_t out_begin, uint32_t out_end, void *scratch) { \
        (void)scratch;                                                                                       \
        matmul_float(m, out_begin, out_end, load_##name, elem_bytes);                                        \
    }
MATMUL_FLOAT(f32, 4)
MATMUL_FLOAT(f16, 2)
MATMUL_FLOAT(bf16, 2)

SL_INLINE void set_matmul_float(sl_cpu_kernels *k) {
    k->matmul[SL_TYPE_F32] = matmul_f32;
    k->matmul[SL_TYPE_F16] = matmul_f16;
    k->matmul[SL_TYPE_BF16] = matmul_bf16;
}

#endif
