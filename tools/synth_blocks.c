// SPDX-License-Identifier: MIT
//
// Random blocks of every type. A block is random bits, then its scale fields are set: quants are
// uniform over what the type can say, which exercises every code and is as good as a bell curve for
// timing. How large a type's values are with scale 1 is found by decoding some, not by a formula.
#include "synth.h"

#include <math.h>

#include "base/half.h"
#include "quant/blocks.h"
#include "quant/quant.h"

synth_random synth_random_seed(uint64_t seed, uint64_t stream) {
    return (synth_random){(seed * 0x9e3779b97f4a7c15u) ^ (stream * 0xd1342543de82ef95u)};
}

static uint64_t next(synth_random *r) { // SplitMix64 (Steele, Lea, Flood 2014)
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void fill_bytes(void *out, size_t n_bytes, synth_random *r) {
    uint8_t *p = out;
    for (; n_bytes >= 8; p += 8, n_bytes -= 8) {
        uint64_t bits = next(r);
        memcpy(p, &bits, 8);
    }
    uint64_t bits = next(r);
    memcpy(p, &bits, n_bytes);
}

static float between(synth_random *r, float from, float to) {
    return from + (to - from) * (float)(next(r) >> 40) * 0x1p-24f;
}

static uint16_t half(float value) { return sl_f16_from_f32(value); }

// 6-bit scales of q4_K and q5_K, 16 .. 63; the minimum of a sub-block has the same index, so that
// with a fitting dmin its mean is 0.
static void set_k_scales(uint8_t scales[12], synth_random *r) {
    uint64_t bits = next(r);
    for (int j = 0; j < 4; j++, bits >>= 16) {
        uint8_t low = (uint8_t)(16 + (bits & 255) % 48);
        uint8_t high = (uint8_t)(16 + (bits >> 8 & 255) % 48);
        scales[j] = scales[4 + j] = (uint8_t)(low | (high >> 4) << 6);
        scales[8 + j] = (uint8_t)((high & 15) | (high & 15) << 4);
    }
}

static void set_q2_k(sl_blk_q2_k *b, float d) {
    for (int j = 0; j < 16; j++) { // not 0, and the minimum as in set_k_scales
        uint8_t scale = (uint8_t)(4 + b->scales[j] % 12);
        b->scales[j] = (uint8_t)(scale | scale << 4);
    }
    b->d = half(d), b->dmin = half(1.5f * d);
}

static void set_q6_k(sl_blk_q6_k *b, float d) {
    for (int j = 0; j < 16; j++) { // of either sign: quants reach from -32 to 31
        uint8_t bits = (uint8_t)b->scales[j];
        int scale = 20 + (bits & 127) % 44;
        b->scales[j] = (int8_t)(bits & 128 ? -scale : scale);
    }
    b->d = half(d);
}

// A power of two, of two neighbours, so that the mean of its square is d squared.
static uint8_t mxfp4_exponent(float d, synth_random *r) {
    float low = floorf(log2f(d)), p = (d * d / exp2f(2 * low) - 1) / 3;
    return (uint8_t)(128 + low + (between(r, 0, 1) < p));
}

// One block with values of about `d` times what the type's values are at scale 1.
static void make_block(uint8_t *out, sl_type type, float d, synth_random *r) {
    uint16_t *field = (uint16_t *)out;
    bool flip = next(r) & 1; // quants that reach one further down than up get scales of either sign
    float s = flip ? -d : d;
    switch (type) {
    case SL_TYPE_Q4_0:
    case SL_TYPE_Q5_0:
    case SL_TYPE_IQ4_NL: field[0] = half(s); break;
    case SL_TYPE_Q4_1: field[0] = half(d), field[1] = half(-7.5f * d); break;
    case SL_TYPE_Q5_1: field[0] = half(d), field[1] = half(-15.5f * d); break;
    case SL_TYPE_Q8_0: // no encoder writes -128, and some kernels cannot negate it
        field[0] = half(d);
        for (int i = 2; i < 34; i++) out[i] = out[i] == 128 ? 0 : out[i];
        break;
    case SL_TYPE_Q2_K: set_q2_k((sl_blk_q2_k *)out, d); break;
    case SL_TYPE_Q3_K: ((sl_blk_q3_k *)out)->d = half(s); break;
    case SL_TYPE_Q4_K:
        field[0] = half(d), field[1] = half(7.5f * d);
        set_k_scales(((sl_blk_q4_k *)out)->scales, r);
        break;
    case SL_TYPE_Q5_K:
        field[0] = half(d), field[1] = half(15.5f * d);
        set_k_scales(((sl_blk_q5_k *)out)->scales, r);
        break;
    case SL_TYPE_Q6_K: set_q6_k((sl_blk_q6_k *)out, d); break;
    case SL_TYPE_IQ4_XS: field[0] = half(s); break;
    case SL_TYPE_MXFP4: out[0] = mxfp4_exponent(d, r); break;
    default: break;
    }
}

static void make_blocks(uint8_t *out, sl_type type, size_t n_blk, float d, synth_random *r) {
    const sl_type_info *info = sl_type_find(type);
    fill_bytes(out, n_blk * info->blk_bytes, r);
    for (size_t i = 0; i < n_blk; i++) make_block(out + i * info->blk_bytes, type, d * between(r, 0.7f, 1.3f), r);
}

// Root mean square of the values of blocks with scale 1.
static float unit_of(sl_type type) {
    enum { N_BLK = 256 };
    static float unit[SL_TYPE_ID_COUNT];
    _Alignas(8) uint8_t blk[N_BLK * sizeof(sl_blk_q6_k)];
    float value[SL_BLK_K_LEN];
    if (unit[type] > 0) return unit[type];
    const sl_type_info *info = sl_type_find(type);
    synth_random r = synth_random_seed(1, type);
    double sum = 0;
    make_blocks(blk, type, N_BLK, 1, &r);
    for (size_t i = 0; i < N_BLK; i++) {
        sl_quant_decode(type, value, blk + i * info->blk_bytes, info->blk_len);
        for (size_t k = 0; k < info->blk_len; k++) sum += (double)value[k] * value[k];
    }
    return unit[type] = (float)sqrt(sum / (N_BLK * (double)info->blk_len));
}

// The sum of four uniform numbers is near enough to a bell curve.
static float bell(synth_random *r) {
    uint64_t bits = next(r);
    float sum = 0;
    for (int i = 0; i < 4; i++, bits >>= 16) sum += (float)(bits & 65535);
    return (sum - 4 * 32767.5f) / 37837.2f; // 65536 * sqrt(4 / 12)
}

void synth_blocks(void *out, sl_type type, size_t n_blk, float scale, synth_random *r) {
    float *f32 = out;
    uint16_t *u16 = out;
    switch (type) {
    case SL_TYPE_F32:
        for (size_t i = 0; i < n_blk; i++) f32[i] = scale > 0 ? scale * bell(r) : 1;
        break;
    case SL_TYPE_F16:
        for (size_t i = 0; i < n_blk; i++) u16[i] = half(scale * bell(r));
        break;
    case SL_TYPE_BF16:
        for (size_t i = 0; i < n_blk; i++) u16[i] = sl_bf16_from_f32(scale * bell(r));
        break;
    default: make_blocks(out, type, n_blk, scale / unit_of(type), r);
    }
}
