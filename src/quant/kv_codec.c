// SPDX-License-Identifier: MIT
//
// The definition of kv_codec.h, one element at a time. Every step is a float operation of defined rounding, in an
// order that vectors of sixteen lanes can keep; backend/cpu/kernels/tmpl/kv_write.c does, and must give the same bits.
#include "quant/kv_codec.h"

#include <math.h>

#include "base/half.h"

enum { N_LANE = 16 };

void sl_kv_rotate(float *x, uint32_t n, uint32_t n_rot) {
    if (n_rot <= 1) return;
    const float share = (float)(1 / sqrt((double)n_rot));
    for (uint32_t span = 1; span < n_rot; span *= 2)
        for (uint32_t i = 0; i < n; i++) {
            if (i & span) continue;
            float a = x[i], b = x[i + span];
            x[i] = a + b;
            x[i + span] = a - b;
        }
    for (uint32_t i = 0; i < n; i++) x[i] *= share;
}

// To the nearest, ties to even; |x| < 2^22.
static float nearest(float x) { return x + 0x1.8p23f - 0x1.8p23f; }

static float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

static uint8_t code_q8(float x) { return (uint8_t)(128 + (int)nearest(clamp(x, -127, 127))); }

static uint8_t code_q5(float x) { return (uint8_t)(int)nearest(clamp(x * 0.5f + 15.5f, 0, 31)); }

static uint8_t code_q4(float x) {
    static const float edge[SL_KV_LEVELS - 1] = SL_KV_EDGE;
    int n = 0;
    for (int i = 0; i < SL_KV_LEVELS - 1; i++) n += fabsf(x) > edge[i];
    return (uint8_t)(x < 0 ? 7 - n : 8 + n);
}

int sl_kv_level(sl_type type, uint8_t code) {
    static const int level[SL_KV_LEVELS] = SL_KV_LEVEL;
    if (type == SL_TYPE_Q8_0) return code - 128;
    if (type == SL_TYPE_Q5_0) return 2 * code - 31;
    return code < 8 ? -level[7 - code] : level[code - 8];
}

// The squared error of a group with a scale: each of sixteen lanes adds two, and the lanes are added by halves.
static float measure(sl_type type, uint8_t code[SL_KV_GROUP], const float *in, float d) {
    float sum[N_LANE] = {0}, inverse = 1 / d;
    for (int i = 0; i < SL_KV_GROUP; i++) {
        code[i] = type == SL_TYPE_Q8_0   ? code_q8(in[i] * inverse)
                  : type == SL_TYPE_Q5_0 ? code_q5(in[i] * inverse)
                                         : code_q4(in[i] * inverse);
        float error = in[i] - d * (float)sl_kv_level(type, code[i]);
        sum[i % N_LANE] += error * error;
    }
    for (int n = N_LANE / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) sum[i] += sum[i + n];
    return sum[0];
}

uint16_t sl_kv_encode(sl_type type, uint8_t code[SL_KV_GROUP], const float in[SL_KV_GROUP]) {
    static const float share_q4[SL_KV_TRIES] = SL_KV_TRY_Q4, share_q5[SL_KV_TRIES] = SL_KV_TRY_Q5;
    const float *share = type == SL_TYPE_Q4_0 ? share_q4 : share_q5; // Q8_0: the first, which is 1
    const float outermost = type == SL_TYPE_Q5_0 ? 31 : 127;
    const int n_try = type == SL_TYPE_Q8_0 ? 1 : SL_KV_TRIES;
    uint32_t top = 0; // largest magnitude by bits: infinities and NaN are above all numbers
    for (int i = 0; i < SL_KV_GROUP; i++) {
        uint32_t bits = sl_f32_bits(in[i]) & 0x7fffffffu;
        top = bits > top ? bits : top;
        code[i] = 0;
    }
    uint16_t best_d = 0;
    float best = INFINITY, unit = sl_f32_from_bits(top) / outermost;
    if (top >= 0x7f800000u) return 0x7e00;
    for (int k = 0; k < n_try; k++) {
        uint8_t tried[SL_KV_GROUP];
        uint16_t half = sl_f16_from_f32(unit * share[k]);
        float d = sl_f16_to_f32(half);
        if (half == 0 || half >= 0x7c00) continue;
        float error = measure(type, tried, in, d);
        if (!(error < best)) continue;
        best = error, best_d = half;
        for (int i = 0; i < SL_KV_GROUP; i++) code[i] = tried[i];
    }
    return best_d == 0 && unit > 1 ? 0x7e00 : best_d; // too large for a scale: as an infinity
}

// ---- channels of K ----------------------------------------------------------------------------------------------

// The smallest byte whose number is not below x >= 0, which is far below the largest.
static uint32_t scale_above(float x) {
    const float smallest = 0x1p-17f;
    if (x >= 0x1p-14f) return ((sl_f32_bits(x) + 0xfffff) >> 20) - ((127 - 15) << 3);
    uint32_t n = (uint32_t)(x / smallest);
    return n + ((float)n * smallest < x);
}

static float scale_of(uint32_t byte) { return sl_f16_to_f32((uint16_t)((byte & 0xff) << 7)); }

sl_kv_grid sl_kv_grid_make(sl_type type, float min, float max) {
    const float most = (float)((1 << sl_kv_code_bits(type)) - 1), range = (max - min) / most;
    sl_kv_grid g = {.from = 0};
    if (!(fabsf(min) <= 65504 && fabsf(max) <= 65504)) {
        g.kept = type == SL_TYPE_Q8_0 ? 0x7e007e00 : 0xfc;
        g.d = g.least = NAN;
        return g;
    }
    if (type == SL_TYPE_Q8_0) {
        uint16_t half = sl_f16_from_f32(range);
        g.d = sl_f16_to_f32(half), g.least = g.from = min + 0.0f; // no -0
        g.kept = half | (uint32_t)sl_f16_from_f32(g.least) << 16;
    } else {
        uint32_t byte = scale_above(fmaxf(range, fabsf(min) / 127));
        g.d = scale_of(byte);
        g.z = g.d > 0 ? clamp(nearest(min / g.d), -127, 127) : 0;
        g.least = g.z * g.d;
        g.kept = byte | (uint32_t)(uint8_t)(int8_t)g.z << 8;
    }
    g.inverse = g.d > 0 ? 1 / g.d : 0;
    return g;
}

void sl_kv_grid_read(sl_type type, uint32_t kept, float *d, float *least) {
    *d = type == SL_TYPE_Q8_0 ? sl_f16_to_f32((uint16_t)(kept & 0xffff)) : scale_of(kept);
    *least = type == SL_TYPE_Q8_0 ? sl_f16_to_f32((uint16_t)(kept >> 16)) : (float)(int8_t)(kept >> 8 & 0xff) * *d;
}

uint32_t sl_kv_encode_channel(sl_type type, uint8_t code[SL_KV_GROUP], const float in[SL_KV_GROUP]) {
    const float most = (float)((1 << sl_kv_code_bits(type)) - 1);
    float min = in[0], max = in[0];
    for (int i = 0; i < SL_KV_GROUP; i++) {
        min = in[i] < min ? in[i] : min, max = in[i] > max ? in[i] : max;
        if (!(fabsf(in[i]) <= 65504)) {
            min = max = NAN;
            break;
        }
    }
    sl_kv_grid g = sl_kv_grid_make(type, min, max);
    for (int i = 0; i < SL_KV_GROUP; i++) {
        float x = isnan(g.d) ? 0 : nearest((in[i] - g.from) * g.inverse) - g.z;
        code[i] = (uint8_t)(int)clamp(x, 0, most);
    }
    return g.kept;
}
