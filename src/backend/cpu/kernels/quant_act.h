// SPDX-License-Identifier: MIT
//
// Floats -> one row of ACT16 (plan/ir.h). Plain C that each level compiles into its own vectors
// (quant_act_<level>.c); every step is one float or integer operation of defined rounding, so all levels write the
// same bits.
//
// d = max |x| / 32639 over the 256 columns; q = rint(x * (1 / d)); hi and lo are its bytes, the lower one signed
// (32639 = 127 * 256 + 127). Blocks with max |x| below about 4e-34 become zeros, as d or its inverse would leave the
// normal range.
#ifndef SL_BACKEND_CPU_QUANT_ACT_H
#define SL_BACKEND_CPU_QUANT_ACT_H

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/half.h"
#include "plan/ir.h"

enum { ACT_MAX = 127 * SL_ACT_BASE + 127, N_SUM = SL_ACT_BLK_LEN / SL_ACT_SUM_LEN };

// Rounds |x| < 2^22 to the nearest integer, ties to even.
SL_INLINE float nearest(float x) { return x + 0x1.8p23f - 0x1.8p23f; }

SL_INLINE void quant_blk(int8_t *hi, int8_t *lo, float *d, int32_t *sum, const float *in) {
    uint32_t top = 0; // max |x| by bits: infinities and NaN are above all numbers
#pragma omp simd reduction(max : top)
    for (uint32_t i = 0; i < SL_ACT_BLK_LEN; i++) top = SL_MAX(top, sl_f32_bits(in[i]) & 0x7fffffffu);
    if (top < sl_f32_bits(ACT_MAX * 0x1p-126f) || top >= 0x7f800000u) {
        *d = top >= 0x7f800000u ? NAN : 0;
        memset(hi, 0, SL_ACT_BLK_LEN);
        memset(lo, 0, SL_ACT_BLK_LEN);
        memset(sum, 0, N_SUM * sizeof *sum);
        return;
    }
    *d = sl_f32_from_bits(top) / ACT_MAX;
    const float inverse = 1 / *d;
    int32_t q[SL_ACT_BLK_LEN];
#pragma omp simd
    for (uint32_t i = 0; i < SL_ACT_BLK_LEN; i++) {
        q[i] = (int32_t)nearest(in[i] * inverse);
        hi[i] = (int8_t)((q[i] + SL_ACT_BASE / 2) >> 8);
        lo[i] = (int8_t)q[i];
    }
    for (uint32_t j = 0; j < N_SUM; j++) {
        int32_t s = 0;
#pragma omp simd reduction(+ : s)
        for (uint32_t i = 0; i < SL_ACT_SUM_LEN; i++) s += q[j * SL_ACT_SUM_LEN + i];
        sum[j] = s;
    }
}

SL_INLINE void quant_row(void *out, const float *in, uint32_t n_col) {
    uint32_t n_blk = (n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN, n_pad = n_blk * SL_ACT_BLK_LEN;
    int8_t *hi = out, *lo = hi + n_pad;
    float *d = (float *)(void *)(lo + n_pad);
    int32_t *sum = (int32_t *)(void *)(d + n_blk);
    for (uint32_t b = 0; b < n_blk; b++) {
        float tail[SL_ACT_BLK_LEN];
        const float *x = in + b * SL_ACT_BLK_LEN;
        uint32_t n = n_col - b * SL_ACT_BLK_LEN;
        if (n < SL_ACT_BLK_LEN) {
            memcpy(tail, x, n * sizeof *x);
            memset(tail + n, 0, (SL_ACT_BLK_LEN - n) * sizeof *x);
            x = tail;
        }
        quant_blk(hi + b * SL_ACT_BLK_LEN, lo + b * SL_ACT_BLK_LEN, d + b, sum + b * N_SUM, x);
    }
}

#endif
