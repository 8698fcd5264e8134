// SPDX-License-Identifier: MIT
//
// Private to quant/: the scales that fit a run of floats best, by weighted least squares.
//
// A run x (n) is to become small integer codes q: x ~ scale * q, or x ~ scale * q + min. For given codes the best scale
// (and min) has a closed form; for a given scale the best codes are the nearest. The search tries a number of scales
// around the one that just spans the run, solves for each, and polishes the best by going to and fro. The error of a
// solution is sum(w x^2) minus its `gain`, so gains are compared and no error is ever summed up.
//
// Sums are taken in SL_FIT_LANES fixed lanes, so that a compiler may use vectors and the result is the same everywhere.
// x must be finite; all-zero weights or values give scale 0.
#ifndef SL_QUANT_FIT_H
#define SL_QUANT_FIT_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/half.h"

enum { SL_FIT_LANES = 8 }; // n is a multiple

typedef struct sl_fit {
    float scale, min;
    float curve; // sum(w q^2): how much the error grows with the square of the scale's own error
} sl_fit;

typedef struct sl_fit_sums { // of a run with given codes
    float q, qq, qx;         // sum(w q), sum(w q^2), sum(w q x)
} sl_fit_sums;

// q in 0 .. max_code; min <= 0, or of any sign if free_min.
sl_fit sl_fit_affine(const float *x, const float *w, int n, int max_code, bool free_min);
// q in lo .. hi; the value largest in size is near the end that reaches further.
sl_fit sl_fit_scale(const float *x, const float *w, int n, int lo, int hi);

// The code nearest to t; a NaN gives lo. Adding 1.5 * 2^23 leaves no room for a fraction: rounds to even.
static inline float sl_fit_code(float t, float lo, float hi) {
    t = t > lo ? t : lo;
    t = t < hi ? t : hi;
    return (t + 0x1.8p23f) - 0x1.8p23f;
}

// 0 for a scale that is 0, or too small for its inverse.
static inline float sl_fit_inverse(float scale) { return scale > 0x1p-120f || scale < -0x1p-120f ? 1 / scale : 0; }

// To binary16 and back; what is too large becomes its largest.
static inline float sl_fit_half(float x) {
    return sl_f16_to_f32(sl_f16_from_f32(SL_MIN(SL_MAX(x, -65504.0f), 65504.0f)));
}

// Sums for the codes nearest to (x - min) * inverse.
sl_fit_sums sl_fit_sum_codes(const float *x, const float *w, int n, float inverse, float min, float lo, float hi);
// sum(w (x - scale q - min)^2) for the nearest codes.
float sl_fit_error(const float *x, const float *w, int n, float scale, float min, float lo, float hi);
// Takes the best scale for codes with these sums if it gains more than *best.
bool sl_fit_improve(sl_fit *fit, float *best, sl_fit_sums sums);
float sl_fit_sum(const float *w, int n);
float sl_fit_dot(const float *w, const float *x, int n);

// The low four bits of 32 codes, as halves (blocks.h).
static inline void sl_fit_pack_halves(uint8_t qs[16], const uint8_t code[32]) {
    for (int i = 0; i < 16; i++) qs[i] = (uint8_t)((code[i] & 15) | (code[i + 16] & 15) << 4);
}

// What an element's error counts: its importance (1 if NULL), more for a value that is large among the n of its block,
// for such values carry more of a product: w = importance * sqrt(mean(x^2) + x^2).
void sl_fit_weigh(float *w, const float *x, const float *importance, int n);

#endif
