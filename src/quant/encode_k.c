// SPDX-License-Identifier: MIT
//
// Floats to Q2_K .. Q6_K: a search in three steps for each super-block. First every sub-block is fitted alone (fit.h).
// Then a common scale is fitted to the sub-blocks' scales, each weighed by what an error of it costs. Then come rounds
// in which each sub-block tries the neighbours of its integer scale (and min), and the common scales are solved for
// anew with all codes fixed; the best round counts.
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "quant/blocks.h"
#include "quant/codecs.h"
#include "quant/fit.h"

enum { MAX_SUB = 16, N_ROUND = 3 };

typedef struct shape { // of a type's super-block
    bool affine;       // there are mins; then codes and scales are not negative
    int n_sub;
    int lo, hi;             // codes
    int scale_lo, scale_hi; // integer scales, and mins
} shape;

typedef struct super {
    float d, dmin;                    // exact in binary16
    int scale[MAX_SUB], min[MAX_SUB]; // x ~ d * scale * q - dmin * min
    float error;
} super;

static int clamp(float t, const shape *s) { return (int)sl_fit_code(t, (float)s->scale_lo, (float)s->scale_hi); }

// Codes of the whole super-block, less their lowest.
static void make_codes(uint8_t code[SL_BLK_K_LEN], const float *x, const super *p, const shape *s) {
    int len = SL_BLK_K_LEN / s->n_sub;
    for (int j = 0; j < s->n_sub; j++) {
        float inverse = sl_fit_inverse(p->d * (float)p->scale[j]), min = p->dmin * (float)p->min[j];
        for (int i = j * len; i < (j + 1) * len; i++)
            code[i] = (uint8_t)((int)sl_fit_code((x[i] + min) * inverse, (float)s->lo, (float)s->hi) - s->lo);
    }
}

// ---- one sub-block ------------------------------------------------------------------------------

typedef struct trial {
    const float *x, *w; // of the sub-block
    int len;
    float *error; // of the best so far
} trial;

static void try_scales(super *p, int j, const shape *s, const trial *t, int scale, int min) {
    if (scale < s->scale_lo || scale > s->scale_hi || min < 0 || min > s->scale_hi) return;
    float error =
        sl_fit_error(t->x, t->w, t->len, p->d * (float)scale, -p->dmin * (float)min, (float)s->lo, (float)s->hi);
    if (!(error < *t->error)) return;
    *t->error = error;
    p->scale[j] = scale, p->min[j] = min;
}

// From the integers that p holds, or the better of their neighbours.
static void settle(super *p, int j, const shape *s, const float *x, const float *w) {
    float error = INFINITY;
    trial t = {x, w, SL_BLK_K_LEN / s->n_sub, &error};
    int scale = p->scale[j], min = p->min[j];
    for (int k = -1; k <= 1; k++) try_scales(p, j, s, &t, scale + k, min);
    for (int k = -1; k <= 1 && p->dmin > 0; k += 2) try_scales(p, j, s, &t, p->scale[j], min + k);
    p->error += error;
}

// ---- the super-block ----------------------------------------------------------------------------

// Solves for d and dmin with all integers fixed: x ~ d * (scale q) - dmin * min.
static void solve(super *p, const shape *s, const float *x, const float *w) {
    int len = SL_BLK_K_LEN / s->n_sub;
    float aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (int j = 0; j < s->n_sub; j++) {
        float a = (float)p->scale[j], b = (float)p->min[j];
        const float *xj = x + j * len, *wj = w + j * len;
        sl_fit_sums c =
            sl_fit_sum_codes(xj, wj, len, sl_fit_inverse(p->d * a), -p->dmin * b, (float)s->lo, (float)s->hi);
        aa += a * a * c.qq, ax += a * c.qx;
        if (b > 0) ab += a * b * c.q, bb += b * b * sl_fit_sum(wj, len), bx += b * sl_fit_dot(wj, xj, len);
    }
    float det = aa * bb - ab * ab, d = p->d, dmin = p->dmin;
    if (bb > 0 && det > 1e-6f * aa * bb) d = (ax * bb - ab * bx) / det, dmin = (ab * ax - aa * bx) / det;
    else if (aa > 0) d = (ax + dmin * ab) / aa;
    p->d = sl_fit_half(d), p->dmin = sl_fit_half(SL_MAX(dmin, 0.0f));
}

// First values: sub-blocks alone, then the scales of scales.
static void start(super *p, const shape *s, const float *x, const float *w) {
    int len = SL_BLK_K_LEN / s->n_sub;
    float scale[MAX_SUB], min[MAX_SUB], scale_w[MAX_SUB], min_w[MAX_SUB];
    for (int j = 0; j < s->n_sub; j++) {
        const float *xj = x + j * len, *wj = w + j * len;
        sl_fit f = s->affine ? sl_fit_affine(xj, wj, len, s->hi, false) : sl_fit_scale(xj, wj, len, s->lo, s->hi);
        scale[j] = f.scale, scale_w[j] = f.curve;
        min[j] = -f.min, min_w[j] = sl_fit_sum(wj, len);
    }
    p->d = sl_fit_half(sl_fit_scale(scale, scale_w, s->n_sub, s->scale_lo, s->scale_hi).scale);
    p->dmin = s->affine ? sl_fit_half(sl_fit_scale(min, min_w, s->n_sub, 0, s->scale_hi).scale) : 0;
    float d_inverse = sl_fit_inverse(p->d), min_inverse = sl_fit_inverse(p->dmin);
    for (int j = 0; j < s->n_sub; j++) {
        p->scale[j] = clamp(scale[j] * d_inverse, s);
        p->min[j] = s->affine ? clamp(min[j] * min_inverse, s) : 0;
    }
}

static void fit_super(super *best, uint8_t code[SL_BLK_K_LEN], const shape *s, const float *x,
                      const float *importance) {
    float w[SL_BLK_K_LEN];
    super p;
    sl_fit_weigh(w, x, importance, SL_BLK_K_LEN);
    start(&p, s, x, w);
    best->error = INFINITY;
    for (int round = 0; round < N_ROUND; round++) {
        int len = SL_BLK_K_LEN / s->n_sub;
        p.error = 0;
        for (int j = 0; j < s->n_sub; j++) settle(&p, j, s, x + j * len, w + j * len);
        if (!(p.error < best->error) && round > 0) break;
        *best = p;
        solve(&p, s, x, w);
    }
    make_codes(code, x, best, s);
}

// ---- packing; the layouts are in blocks.h -------------------------------------------------------

// Bits 0..1 of codes, as q2_K, q3_K and the upper bits of q6_K have them.
static void pack_two_bits(uint8_t out[64], const uint8_t code[SL_BLK_K_LEN], int shift) {
    for (int i = 0; i < 64; i++) {
        const uint8_t *c = code + i / 32 * 128 + i % 32;
        out[i] = (uint8_t)((c[0] >> shift & 3) | (c[32] >> shift & 3) << 2 | (c[64] >> shift & 3) << 4 |
                           (c[96] >> shift & 3) << 6);
    }
}

// Bits 0..3: each run of n bytes holds 2 n elements, as halves.
static void pack_nibbles(uint8_t out[128], const uint8_t code[SL_BLK_K_LEN], int n) {
    for (int i = 0; i < 128; i++) {
        const uint8_t *c = code + i / n * 2 * n + i % n;
        out[i] = (uint8_t)((c[0] & 15) | (c[n] & 15) << 4);
    }
}

// Bit `bit`: bit k of byte l is of element 32 k + l.
static void pack_bit(uint8_t out[32], const uint8_t code[SL_BLK_K_LEN], int bit) {
    memset(out, 0, 32);
    for (int i = 0; i < SL_BLK_K_LEN; i++) out[i % 32] |= (uint8_t)((code[i] >> bit & 1) << i / 32);
}

static void pack_scales_q3(uint8_t out[12], const int scale[16]) {
    memset(out, 0, 12);
    for (int j = 0; j < 16; j++) {
        int bits = scale[j] + 32;
        out[j % 8] |= (uint8_t)((bits & 15) << j / 8 * 4);
        out[8 + j % 4] |= (uint8_t)(bits >> 4 << j / 4 * 2);
    }
}

static void pack_scales_q4(uint8_t out[12], const int scale[8], const int min[8]) {
    for (int j = 0; j < 4; j++) {
        out[j] = (uint8_t)(scale[j] | scale[j + 4] >> 4 << 6);
        out[4 + j] = (uint8_t)(min[j] | min[j + 4] >> 4 << 6);
        out[8 + j] = (uint8_t)((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
    }
}

// ---- the types ----------------------------------------------------------------------------------

typedef void pack_fn(void *blk, const super *p, const uint8_t code[SL_BLK_K_LEN]);

static void encode(void *blocks, size_t blk_bytes, const float *in, const float *importance, size_t n_blk,
                   const shape *s, pack_fn *pack) {
    for (size_t i = 0; i < n_blk; i++) {
        super p;
        uint8_t code[SL_BLK_K_LEN];
        fit_super(&p, code, s, in + i * SL_BLK_K_LEN, importance ? importance + i * SL_BLK_K_LEN : NULL);
        pack((uint8_t *)blocks + i * blk_bytes, &p, code);
    }
}

static void pack_q2_k(void *blk, const super *p, const uint8_t code[SL_BLK_K_LEN]) {
    sl_blk_q2_k *b = blk;
    b->d = sl_f16_from_f32(p->d), b->dmin = sl_f16_from_f32(p->dmin);
    for (int j = 0; j < 16; j++) b->scales[j] = (uint8_t)(p->scale[j] | p->min[j] << 4);
    pack_two_bits(b->qs, code, 0);
}

void sl_fit_q2_k(void *blocks, const float *in, const float *importance, size_t n_blk) {
    static const shape s = {true, 16, 0, 3, 0, 15};
    encode(blocks, sizeof(sl_blk_q2_k), in, importance, n_blk, &s, pack_q2_k);
}

static void pack_q3_k(void *blk, const super *p, const uint8_t code[SL_BLK_K_LEN]) {
    sl_blk_q3_k *b = blk;
    b->d = sl_f16_from_f32(p->d);
    pack_scales_q3(b->scales, p->scale);
    pack_two_bits(b->qs, code, 0);
    pack_bit(b->hmask, code, 2);
}

void sl_fit_q3_k(void *blocks, const float *in, const float *importance, size_t n_blk) {
    static const shape s = {false, 16, -4, 3, -32, 31};
    encode(blocks, sizeof(sl_blk_q3_k), in, importance, n_blk, &s, pack_q3_k);
}

static void pack_q4_k(void *blk, const super *p, const uint8_t code[SL_BLK_K_LEN]) {
    sl_blk_q4_k *b = blk;
    b->d = sl_f16_from_f32(p->d), b->dmin = sl_f16_from_f32(p->dmin);
    pack_scales_q4(b->scales, p->scale, p->min);
    pack_nibbles(b->qs, code, 32);
}

void sl_fit_q4_k(void *blocks, const float *in, const float *importance, size_t n_blk) {
    static const shape s = {true, 8, 0, 15, 0, 63};
    encode(blocks, sizeof(sl_blk_q4_k), in, importance, n_blk, &s, pack_q4_k);
}

static void pack_q5_k(void *blk, const super *p, const uint8_t code[SL_BLK_K_LEN]) {
    sl_blk_q5_k *b = blk;
    b->d = sl_f16_from_f32(p->d), b->dmin = sl_f16_from_f32(p->dmin);
    pack_scales_q4(b->scales, p->scale, p->min);
    pack_nibbles(b->qs, code, 32);
    pack_bit(b->qh, code, 4);
}

void sl_fit_q5_k(void *blocks, const float *in, const float *importance, size_t n_blk) {
    static const shape s = {true, 8, 0, 31, 0, 63};
    encode(blocks, sizeof(sl_blk_q5_k), in, importance, n_blk, &s, pack_q5_k);
}

static void pack_q6_k(void *blk, const super *p, const uint8_t code[SL_BLK_K_LEN]) {
    sl_blk_q6_k *b = blk;
    b->d = sl_f16_from_f32(p->d);
    for (int j = 0; j < 16; j++) b->scales[j] = (int8_t)p->scale[j];
    pack_nibbles(b->ql, code, 64);
    pack_two_bits(b->qh, code, 4);
}

void sl_fit_q6_k(void *blocks, const float *in, const float *importance, size_t n_blk) {
    static const shape s = {false, 16, -32, 31, -128, 127};
    encode(blocks, sizeof(sl_blk_q6_k), in, importance, n_blk, &s, pack_q6_k);
}
