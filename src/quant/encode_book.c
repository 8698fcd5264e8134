// SPDX-License-Identifier: MIT
//
// Floats to IQ4_NL, IQ4_XS and MXFP4: codes name values of a book that are not evenly spaced. Nearest values come from
// a table over twice the value, rounded down: every midpoint of two book values is a multiple of a half, so no cell of
// the table has two nearest values.
#include <math.h>
#include <string.h>

#include "quant/blocks.h"
#include "quant/codecs.h"
#include "quant/fit.h"

enum { N_CELL = 512, N_SUB = 8, N_STEP = 8, N_POLISH = 3, N_ROUND = 3 };
static const float step = 1.5f; // candidates map the largest value near to -127: N_STEP steps to each side

static const int8_t iq4_values[16] = SL_IQ4_VALUES, mxfp4_values[16] = SL_MXFP4_VALUES;

// Codes for t, -128 .. 127.5, at cell 2 t + 256. Of two equally near values the first of the book.
static void make_cells(uint8_t cell[N_CELL], const int8_t values[16]) {
    for (int i = 0; i < N_CELL; i++) {
        int best = 0;
        for (int q = 1; q < 16; q++) { // the middle of the cell is (i - 255.5) / 2
            int near = 2 * i - 511 - 4 * values[q], far = 2 * i - 511 - 4 * values[best];
            if (near * near < far * far) best = q;
        }
        cell[i] = (uint8_t)best;
    }
}

typedef struct book {
    const int8_t *values;
    uint8_t cell[N_CELL];
} book;

static uint8_t find_code(const book *bk, float t) {
    float at = 2 * t + 256;
    at = at > 0 ? at : 0;
    at = at < N_CELL - 1 ? at : N_CELL - 1;
    return bk->cell[(int)at];
}

// ---- 32 elements --------------------------------------------------------------------------------

// sum(w v^2) and sum(w v x) over the nearest values v to x * inverse; codes on demand.
static sl_fit_sums sum_values(const book *bk, const float *x, const float *w, float inverse, uint8_t *code) {
    float vv[SL_FIT_LANES] = {0}, vx[SL_FIT_LANES] = {0};
    sl_fit_sums s = {0};
    for (int i = 0; i < SL_BLK_LEN; i++) {
        uint8_t q = find_code(bk, x[i] * inverse);
        float v = bk->values[q], wv = w[i] * v;
        vv[i % SL_FIT_LANES] += wv * v, vx[i % SL_FIT_LANES] += wv * x[i];
        if (code) code[i] = q;
    }
    for (int l = 0; l < SL_FIT_LANES; l++) s.qq += vv[l], s.qx += vx[l];
    return s;
}

static sl_fit fit_values(const book *bk, const float *x, const float *w) {
    sl_fit fit = {0};
    float most = 0, best = 0;
    for (int i = 0; i < SL_BLK_LEN; i++) most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
    if (fabsf(most) < 1e-15f) return fit;
    for (int side = -1; side <= 1; side += 2) // the book is not symmetric: -127 and 113 are its ends
        for (int k = -N_STEP; k <= N_STEP; k++) {
            float end = side < 0 ? -127 - step * (float)k : 113 + step * (float)k;
            sl_fit_improve(&fit, &best, sum_values(bk, x, w, end / most, NULL));
        }
    for (int i = 0; i < N_POLISH; i++)
        if (!sl_fit_improve(&fit, &best, sum_values(bk, x, w, sl_fit_inverse(fit.scale), NULL))) break;
    return fit;
}

void sl_fit_iq4_nl(void *blocks, const float *in, const float *importance, size_t n_blk) {
    sl_blk_iq4_nl *b = blocks;
    book bk = {.values = iq4_values};
    make_cells(bk.cell, bk.values);
    for (size_t i = 0; i < n_blk; i++, b++, in += SL_BLK_LEN) {
        float w[SL_BLK_LEN];
        uint8_t code[SL_BLK_LEN];
        sl_fit_weigh(w, in, importance ? importance + i * SL_BLK_LEN : NULL, SL_BLK_LEN);
        float d = sl_fit_half(fit_values(&bk, in, w).scale);
        sum_values(&bk, in, w, sl_fit_inverse(d), code);
        b->d = sl_f16_from_f32(d);
        sl_fit_pack_halves(b->qs, code);
    }
}

// ---- IQ4_XS -------------------------------------------------------------------------------------

typedef struct super {
    float d; // exact in binary16
    int scale[N_SUB];
    float gain;
} super;

// Sub-block j with integer scale `scale`: what it gains at p->d.
static float try_scale(const book *bk, const float *x, const float *w, float d) {
    sl_fit_sums s = sum_values(bk, x, w, sl_fit_inverse(d), NULL);
    return d * (2 * s.qx - d * s.qq);
}

// Each sub-block takes the best of its integer scale and the neighbours.
static void settle(super *p, const book *bk, const float *x, const float *w) {
    p->gain = 0;
    for (int j = 0; j < N_SUB; j++) {
        const float *xj = x + j * SL_BLK_LEN, *wj = w + j * SL_BLK_LEN;
        float best = -INFINITY;
        for (int was = p->scale[j], scale = SL_MAX(was - 1, -32); scale <= SL_MIN(was + 1, 31); scale++) {
            float gain = try_scale(bk, xj, wj, p->d * (float)scale);
            if (gain > best) best = gain, p->scale[j] = scale;
        }
        p->gain += best;
    }
}

// The best d for the codes and integers that there are.
static void solve(super *p, const book *bk, const float *x, const float *w) {
    float aa = 0, ax = 0;
    for (int j = 0; j < N_SUB; j++) {
        float a = (float)p->scale[j];
        sl_fit_sums s = sum_values(bk, x + j * SL_BLK_LEN, w + j * SL_BLK_LEN, sl_fit_inverse(p->d * a), NULL);
        aa += a * a * s.qq, ax += a * s.qx;
    }
    if (aa > 0) p->d = sl_fit_half(ax / aa);
}

static void fit_super(super *best, const book *bk, const float *x, const float *w) {
    float scale[N_SUB], curve[N_SUB];
    super p;
    for (int j = 0; j < N_SUB; j++) {
        sl_fit fit = fit_values(bk, x + j * SL_BLK_LEN, w + j * SL_BLK_LEN);
        scale[j] = fit.scale, curve[j] = fit.curve;
    }
    p.d = sl_fit_half(sl_fit_scale(scale, curve, N_SUB, -32, 31).scale);
    for (int j = 0; j < N_SUB; j++) p.scale[j] = (int)sl_fit_code(scale[j] * sl_fit_inverse(p.d), -32, 31);
    for (int round = 0; round < N_ROUND; round++) {
        settle(&p, bk, x, w);
        if (round > 0 && !(p.gain > best->gain)) break;
        *best = p;
        solve(&p, bk, x, w);
    }
}

void sl_fit_iq4_xs(void *blocks, const float *in, const float *importance, size_t n_blk) {
    sl_blk_iq4_xs *b = blocks;
    book bk = {.values = iq4_values};
    make_cells(bk.cell, bk.values);
    for (size_t i = 0; i < n_blk; i++, b++, in += SL_BLK_K_LEN) {
        float w[SL_BLK_K_LEN];
        uint8_t code[SL_BLK_LEN];
        super p;
        sl_fit_weigh(w, in, importance ? importance + i * SL_BLK_K_LEN : NULL, SL_BLK_K_LEN);
        fit_super(&p, &bk, in, w);
        memset(b, 0, sizeof *b);
        b->d = sl_f16_from_f32(p.d);
        for (int j = 0; j < N_SUB; j++) {
            int at = j * SL_BLK_LEN, bits = p.scale[j] + 32;
            sum_values(&bk, in + at, w + at, sl_fit_inverse(p.d * (float)p.scale[j]), code);
            sl_fit_pack_halves(b->qs + j * 16, code);
            b->scales_l[j / 2] |= (uint8_t)((bits & 15) << j % 2 * 4);
            b->scales_h |= (uint16_t)(bits >> 4 << j * 2);
        }
    }
}

// ---- MXFP4 --------------------------------------------------------------------------------------

// A power of two leaves few to try: that at which the largest value is 4 .. 8 (12 is the book's end, in halves), as the
// OCP's standard has it, and its neighbours.
void sl_fit_mxfp4(void *blocks, const float *in, const float *importance, size_t n_blk) {
    sl_blk_mxfp4 *b = blocks;
    book bk = {.values = mxfp4_values};
    make_cells(bk.cell, bk.values);
    for (size_t i = 0; i < n_blk; i++, b++, in += SL_BLK_LEN) {
        float w[SL_BLK_LEN], most = 0, best = -INFINITY;
        uint8_t code[SL_BLK_LEN];
        int exponent = 0;
        for (int k = 0; k < SL_BLK_LEN; k++) most = SL_MAX(most, fabsf(in[k]));
        sl_fit_weigh(w, in, importance ? importance + i * SL_BLK_LEN : NULL, SL_BLK_LEN);
        if (most > 0) frexpf(most, &exponent); // most is 0.5 .. 1 times 2^exponent
        memset(b, 0, sizeof *b);
        for (int e = exponent + 123; most > 0 && e <= exponent + 125; e++) {
            if (e < 0 || e > 254) continue;
            float d = ldexpf(1, e - 128);
            float gain = try_scale(&bk, in, w, d);
            if (gain > best) best = gain, b->e = (uint8_t)e;
        }
        if (best > -INFINITY) sum_values(&bk, in, w, ldexpf(1, 128 - b->e), code), sl_fit_pack_halves(b->qs, code);
    }
}
