// SPDX-License-Identifier: MIT
//
// Weighted least squares over candidate scales; see fit.h.
#include "quant/fit.h"

#include <math.h>

#include "base/compiler.h"

enum { N_STEP = 5, N_POLISH = 3 };
static const float step = 0.2f; // candidates span the run with `step * k` codes more or less, |k| <= N_STEP

// Below this a run is zero: no binary16 scale holds it.
static const float tiny = 1e-15f;

static float add_lanes(const float lane[SL_FIT_LANES]) {
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

sl_fit_sums sl_fit_sum_codes(const float *x, const float *w, int n, float inverse, float min, float lo, float hi) {
    float sq[SL_FIT_LANES] = {0}, sqq[SL_FIT_LANES] = {0}, sqx[SL_FIT_LANES] = {0};
    for (int i = 0; i < n; i += SL_FIT_LANES, x += SL_FIT_LANES, w += SL_FIT_LANES) {
#pragma omp simd
        for (int l = 0; l < SL_FIT_LANES; l++) {
            float q = sl_fit_code((x[l] - min) * inverse, lo, hi), wq = w[l] * q;
            sq[l] += wq;
            sqq[l] += wq * q;
            sqx[l] += wq * x[l];
        }
    }
    return (sl_fit_sums){add_lanes(sq), add_lanes(sqq), add_lanes(sqx)};
}

float sl_fit_error(const float *x, const float *w, int n, float scale, float min, float lo, float hi) {
    float sum[SL_FIT_LANES] = {0}, inverse = sl_fit_inverse(scale);
    for (int i = 0; i < n; i += SL_FIT_LANES, x += SL_FIT_LANES, w += SL_FIT_LANES) {
#pragma omp simd
        for (int l = 0; l < SL_FIT_LANES; l++) {
            float y = x[l] - min, e = y - scale * sl_fit_code(y * inverse, lo, hi);
            sum[l] += w[l] * e * e;
        }
    }
    return add_lanes(sum);
}

float sl_fit_dot(const float *w, const float *x, int n) {
    float sum[SL_FIT_LANES] = {0};
    for (int i = 0; i < n; i += SL_FIT_LANES, x += SL_FIT_LANES, w += SL_FIT_LANES) {
#pragma omp simd
        for (int l = 0; l < SL_FIT_LANES; l++) sum[l] += w[l] * x[l];
    }
    return add_lanes(sum);
}

float sl_fit_sum(const float *w, int n) {
    float sum[SL_FIT_LANES] = {0};
    for (int i = 0; i < n; i += SL_FIT_LANES, w += SL_FIT_LANES) {
#pragma omp simd
        for (int l = 0; l < SL_FIT_LANES; l++) sum[l] += w[l];
    }
    return add_lanes(sum);
}

void sl_fit_weigh(float *w, const float *x, const float *importance, int n) {
    float mean = sl_fit_dot(x, x, n) / (float)n;
#pragma omp simd
    for (int i = 0; i < n; i++) w[i] = sqrtf(mean + x[i] * x[i]);
    for (int i = 0; importance && i < n; i++) w[i] *= importance[i];
}

// ---- x ~ scale * q ------------------------------------------------------------------------------

bool sl_fit_improve(sl_fit *fit, float *best, sl_fit_sums s) {
    if (!(s.qq > 0) || !(s.qx * s.qx > *best * s.qq)) return false;
    *best = s.qx * s.qx / s.qq;
    *fit = (sl_fit){s.qx / s.qq, 0, s.qq};
    return true;
}

sl_fit sl_fit_scale(const float *x, const float *w, int n, int lo, int hi) {
    sl_fit fit = {0};
    float most = 0, best = 0;
    for (int i = 0; i < n; i++) most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
    if (fabsf(most) < tiny) return fit;
    float end = -lo > hi ? (float)lo : (float)hi, sign = end < 0 ? -1 : 1;
    for (int k = -N_STEP; k <= N_STEP; k++) {
        float inverse = (end + sign * step * (float)k) / most;
        sl_fit_improve(&fit, &best, sl_fit_sum_codes(x, w, n, inverse, 0, (float)lo, (float)hi));
    }
    for (int i = 0; i < N_POLISH; i++) {
        float inverse = sl_fit_inverse(fit.scale);
        if (!sl_fit_improve(&fit, &best, sl_fit_sum_codes(x, w, n, inverse, 0, (float)lo, (float)hi))) break;
    }
    return fit;
}

// ---- x ~ scale * q + min ------------------------------------------------------------------------

typedef struct run {
    const float *x, *w;
    int n, max_code;
    bool free_min;
    float sum_w, sum_x; // sum(w), sum(w x)
} run;

// For the codes nearest to (x - min) * inverse; takes the solution if it gains more.
static bool improve_affine(sl_fit *fit, float *best, const run *r, float inverse, float min) {
    sl_fit_sums s = sl_fit_sum_codes(r->x, r->w, r->n, inverse, min, 0, (float)r->max_code);
    float det = r->sum_w * s.qq - s.q * s.q;
    bool unlike = det > 1e-6f * r->sum_w * s.qq; // if all codes are the same, scale and min are one unknown
    sl_fit f = {0, 0, s.qq};
    if (!(s.qq > 0) || (r->free_min && !unlike)) return false;
    if (unlike) {
        f.scale = (r->sum_w * s.qx - r->sum_x * s.q) / det;
        f.min = (s.qq * r->sum_x - s.q * s.qx) / det;
    }
    if (!unlike || (f.min > 0 && !r->free_min)) f.scale = s.qx / s.qq, f.min = 0;
    float gain = f.scale * s.qx + f.min * r->sum_x;
    if (!(f.scale > 0) || !(gain > *best)) return false;
    *best = gain;
    *fit = f;
    return true;
}

sl_fit sl_fit_affine(const float *x, const float *w, int n, int max_code, bool free_min) {
    run r = {x, w, n, max_code, free_min, sl_fit_sum(w, n), sl_fit_dot(w, x, n)};
    float low = x[0], high = x[0], best = 0;
    for (int i = 1; i < n; i++) low = x[i] < low ? x[i] : low, high = x[i] > high ? x[i] : high;
    if (low > 0 && !free_min) low = 0;
    sl_fit fit = {0, low, 0};
    if (high - low < tiny || !(r.sum_w > 0)) return fit;
    fit.scale = (high - low) / (float)max_code;
    for (int k = -N_STEP; k <= N_STEP; k++)
        improve_affine(&fit, &best, &r, ((float)max_code + step * (float)k) / (high - low), low);
    for (int i = 0; i < N_POLISH; i++)
        if (!improve_affine(&fit, &best, &r, sl_fit_inverse(fit.scale), fit.min)) break;
    return fit;
}
