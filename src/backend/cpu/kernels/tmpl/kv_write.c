// SPDX-License-Identifier: MIT
//
// Puts the K or V of one position into its block, or the K of a full block, in the order that attend.c reads:
//   floats  K block: [kv head][dim][SL_KV_BLK_LEN positions]   lanes are positions: a score needs no sum across lanes
//           V block: [kv head][SL_KV_BLK_LEN positions][dim]   lanes are dims
//   codes   tiles, see kv_tile.h; the codes and scales themselves are those of quant/kv_codec.h, to the bit
#include "base/status.h"
#include "backend/cpu/kernels/kv_tile.h"
#include "backend/cpu/kernels/tmpl/tmpl.h"
#include "backend/cpu/kernels/vec.h"
#include "backend/cpu/kernels/vec_math.h"

// ---- floats -------------------------------------------------------------------------------------

void sl_cpu_kv_write_f32(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, bool is_v,
                         uint32_t n_rot) {
    float *out = (float *)(void *)blk;
    (void)n_rot;
    if (is_v) {
        for (uint32_t head = 0; head < n_head_kv; head++)
            memcpy(out + ((uint64_t)head * SL_KV_BLK_LEN + at) * dim, in + (uint64_t)head * dim, dim * sizeof *out);
    } else {
        for (uint32_t i = 0; i < n_head_kv * dim; i++) out[(uint64_t)i * SL_KV_BLK_LEN + at] = in[i];
    }
}

// Converts the n <= 16 values at `in`.
SL_INLINE void convert(uint16_t half[SL_V16], const float *in, uint32_t n, bool brain) {
    if (brain)
        for (uint32_t i = 0; i < n; i++) half[i] = sl_bf16_from_f32(in[i]);
    else v16_store_f16(half, n == SL_V16 ? v16_load(in) : v16_load_part(in, n));
}

SL_INLINE void write_halves(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, bool is_v,
                            bool brain) {
    uint16_t *out = (uint16_t *)(void *)blk, half[SL_V16];
    for (uint32_t head = 0; head < n_head_kv; head++, in += dim, out += (uint64_t)SL_KV_BLK_LEN * dim) {
        for (uint32_t first = 0; first < dim; first += SL_V16) {
            uint32_t n = SL_MIN(dim - first, (uint32_t)SL_V16);
            convert(half, in + first, n, brain);
            if (is_v) memcpy(out + (uint64_t)at * dim + first, half, n * sizeof *half);
            else
                for (uint32_t i = 0; i < n; i++) out[(uint64_t)(first + i) * SL_KV_BLK_LEN + at] = half[i];
        }
    }
}

void sl_cpu_kv_write_bf16(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, bool is_v,
                          uint32_t n_rot) {
    (void)n_rot;
    write_halves(blk, in, n_head_kv, dim, at, is_v, true);
}

// ---- the rotation -------------------------------------------------------------------------------

// Pairs within a vector: the first of a pair gets x + other, the second other - x.
SL_INLINE v16 pair_sums(v16 x, int span) {
    float sign[SL_V16];
    SL_UNROLL
    for (int i = 0; i < SL_V16; i++) sign[i] = i & span ? -1.0f : 1.0f;
    return v16_add(v16_swap(x, span), v16_mul(x, v16_load(sign)));
}

// n_rot is 0 or a multiple of 32.
void sl_cpu_kv_rotate(float *x, uint32_t n, uint32_t n_rot) {
    if (n_rot == 0) return;
    v16 share = v16_all((float)(1 / sqrt((double)n_rot)));
    for (uint32_t i = 0; i < n; i += SL_V16)
        v16_store(x + i, pair_sums(pair_sums(pair_sums(pair_sums(v16_load(x + i), 1), 2), 4), 8));
    for (uint32_t span = SL_V16; span < n_rot; span *= 2)
        for (uint32_t i = 0; i < n; i += SL_V16) {
            if (i & span) continue;
            v16 a = v16_load(x + i), b = v16_load(x + i + span);
            v16_store(x + i, v16_add(a, b));
            v16_store(x + i + span, v16_sub(a, b));
        }
    for (uint32_t i = 0; i < n; i += SL_V16) v16_store(x + i, v16_mul(v16_load(x + i), share));
}

void sl_cpu_kv_write_f16(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, bool is_v,
                         uint32_t n_rot) {
    _Alignas(64) float x[SL_KV_MAX_DIM];
    if (n_rot == 0) {
        write_halves(blk, in, n_head_kv, dim, at, is_v, false);
        return;
    }
    for (uint32_t head = 0; head < n_head_kv; head++, in += dim, blk += sl_open_head_bytes(dim)) {
        memcpy(x, in, dim * sizeof *x);
        sl_cpu_kv_rotate(x, dim, n_rot);
        write_halves(blk, x, 1, dim, at, is_v, false);
    }
}

// ---- codes of V -----------------------------------------------------------------------------------

SL_INLINE v16 nearest(v16 x) { return v16_sub(v16_add(x, v16_all(SL_ROUND_BIAS)), v16_all(SL_ROUND_BIAS)); }

SL_INLINE v16 clamped(v16 x, float low, float high) { return v16_min(v16_max(x, v16_all(low)), v16_all(high)); }

static const float level[SL_KV_LEVELS] = SL_KV_LEVEL, edge[SL_KV_LEVELS - 1] = SL_KV_EDGE;

// What x, in units of the scale, is rounded to. Of Q4_0 the magnitude.
SL_INLINE v16 rounded(v16 x, int bits) {
    if (bits == 8) return nearest(clamped(x, -127, 127));
    if (bits == 5) {
        v16 code = nearest(clamped(v16_add(v16_mul(x, v16_all(0.5f)), v16_all(15.5f)), 0, 31));
        return v16_sub(v16_add(code, code), v16_all(31));
    }
    v16 magnitude = v16_abs(x), y = v16_all(level[0]);
    for (int i = 0; i < SL_KV_LEVELS - 1; i++) y = v16_pick_less(v16_all(edge[i]), magnitude, v16_all(level[i + 1]), y);
    return y;
}

SL_INLINE v16 squared_error(v16 x, v16 inverse, v16 d, int bits) {
    v16 y = v16_mul(d, rounded(v16_mul(x, inverse), bits)), e = v16_sub(bits == 4 ? v16_abs(x) : x, y);
    return v16_mul(e, e);
}

SL_INLINE void put_codes(uint8_t *code, v16 x, int bits) {
    float f[SL_V16], y[SL_V16];
    v16_store(f, x);
    v16_store(y, rounded(x, bits));
    for (int i = 0; i < SL_V16; i++) {
        if (bits == 8) code[i] = (uint8_t)(128 + (int)y[i]);
        else if (bits == 5) code[i] = (uint8_t)(((int)y[i] + 31) / 2);
        else {
            int n = 0;
            for (int k = 0; k < SL_KV_LEVELS - 1; k++) n += y[i] > level[k];
            code[i] = (uint8_t)(f[i] < 0 ? 7 - n : 8 + n);
        }
    }
}

// sl_kv_encode of quant/kv_codec.h.
SL_INLINE uint16_t encode(uint8_t code[SL_KV_GROUP], const float *in, int bits) {
    static const float share_q4[SL_KV_TRIES] = SL_KV_TRY_Q4, share_q5[SL_KV_TRIES] = SL_KV_TRY_Q5;
    const float *share = bits == 4 ? share_q4 : share_q5, outermost = bits == 5 ? 31 : 127;
    v16 a = v16_load(in), b = v16_load(in + SL_V16);
    uint32_t top = v16_top_bits(a, b);
    uint16_t best_d = 0;
    float best = INFINITY, unit = sl_f32_from_bits(top) / outermost;
    memset(code, 0, SL_KV_GROUP);
    if (top >= 0x7f800000u) return 0x7e00;
    for (int k = 0; k < (bits == 8 ? 1 : SL_KV_TRIES); k++) {
        uint16_t half = sl_f16_from_f32(unit * share[k]);
        if (half == 0 || half >= 0x7c00) continue;
        float d = sl_f16_to_f32(half);
        v16 inverse = v16_all(1 / d), scale = v16_all(d);
        float error =
            bits == 8
                ? 0
                : v16_sum(v16_add(squared_error(a, inverse, scale, bits), squared_error(b, inverse, scale, bits)));
        if (error < best) best = error, best_d = half;
    }
    if (best_d == 0) return unit > 1 ? 0x7e00 : 0;
    v16 inverse = v16_all(1 / sl_f16_to_f32(best_d));
    put_codes(code, v16_mul(a, inverse), bits);
    put_codes(code + SL_V16, v16_mul(b, inverse), bits);
    return best_d;
}

SL_INLINE void put_in_v(uint8_t *tile, const uint8_t code[SL_KV_GROUP], uint32_t at, int bits) {
    uint32_t j = at / 4, i = at % 4;
    for (uint32_t d = 0; d < SL_KV_GROUP; d++) {
        if (bits == 8) tile[128 * j + 4 * d + i] = code[d] ^ 0x80;
        else if (d < 16) tile[64 * j + 4 * d + i] = (uint8_t)((code[d] & 15) | code[d + 16] << 4);
    }
    if (bits != 5) return;
    uint8_t *fifth = tile + KV_TILE_NIBBLES + 16 * j + i;
    for (uint32_t d = 0; d < 4; d++) fifth[4 * d] = 0;
    for (uint32_t d = 0; d < SL_KV_GROUP; d++) fifth[4 * (d % 4)] |= (uint8_t)(code[d] >> 4 << d / 4);
}

SL_INLINE void write_codes(uint8_t *tile, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at,
                           uint32_t n_rot, int bits) {
    _Alignas(64) float x[SL_KV_MAX_DIM];
    uint8_t code[SL_KV_GROUP];
    for (uint32_t head = 0; head < n_head_kv; head++, in += dim) {
        memcpy(x, in, dim * sizeof *x);
        sl_cpu_kv_rotate(x, dim, n_rot);
        for (uint32_t first = 0; first < dim; first += SL_KV_GROUP, tile += kv_tile_bytes(bits, true)) {
            uint16_t *scale = (uint16_t *)(void *)(tile + kv_tile_code_bytes(bits));
            scale[at] = encode(code, x + first, bits);
            put_in_v(tile, code, at, bits);
        }
    }
}

// ---- codes of K -----------------------------------------------------------------------------------------------------

// sl_kv_encode_channel of quant/kv_codec.h.
SL_INLINE uint32_t encode_channel(uint8_t code[SL_KV_GROUP], const uint16_t *in, int bits) {
    v16 part[2] = {v16_load_f16(in), v16_load_f16(in + SL_V16)};
    float min = -v16_largest(v16_sub(v16_all(0), v16_min(part[0], part[1])));
    float max = v16_largest(v16_max(part[0], part[1])), y[SL_KV_GROUP];
    bool is_bad = v16_top_bits(part[0], part[1]) >= 0x7f800000u;
    sl_kv_grid g = sl_kv_grid_make(bits == 8   ? SL_TYPE_Q8_0
                                   : bits == 5 ? SL_TYPE_Q5_0
                                               : SL_TYPE_Q4_0,
                                   is_bad ? NAN : min, max);
    memset(code, 0, SL_KV_GROUP);
    if (is_bad) return g.kept;
    for (int i = 0; i < 2; i++) {
        v16 x = nearest(v16_mul(v16_sub(part[i], v16_all(g.from)), v16_all(g.inverse)));
        v16_store(y + i * SL_V16, clamped(v16_sub(x, v16_all(g.z)), 0, (float)((1 << bits) - 1)));
    }
    for (int i = 0; i < SL_KV_GROUP; i++) code[i] = (uint8_t)(int)y[i];
    return g.kept;
}

// The codes of dim d of a tile, and what is kept of its grid. The bytes of codes are 0 before the first dim.
SL_INLINE void put_in_k(uint8_t *tile, const uint8_t code[SL_KV_GROUP], uint32_t kept, uint32_t d, int bits) {
    uint8_t *grid = tile + kv_tile_code_bytes(bits), *fifth = tile + KV_TILE_NIBBLES;
    for (uint32_t pos = 0; pos < SL_KV_BLK_LEN; pos++) {
        if (bits == 8) {
            tile[128 * (d / 4) + 4 * pos + d % 4] = code[pos];
            continue;
        }
        tile[128 * (d / 4 % 4) + 4 * pos + d % 4] |= (uint8_t)((code[pos] & 15) << (d < 16 ? 0 : 4));
        if (bits == 5) fifth[4 * pos + d % 4] |= (uint8_t)(code[pos] >> 4 << d / 4);
    }
    if (bits == 8) {
        uint16_t half[2] = {(uint16_t)(kept & 0xffff), (uint16_t)(kept >> 16)};
        memcpy(grid + 2 * d, &half[0], 2);
        memcpy(grid + 2 * (SL_KV_GROUP + d), &half[1], 2);
    } else {
        grid[d] = (uint8_t)(kept & 0xff);
        grid[SL_KV_GROUP + d] = (uint8_t)(kept >> 8);
    }
}

SL_INLINE void close_k(uint8_t *tile, const uint16_t *open, uint32_t n_head_kv, uint32_t dim, int bits) {
    uint8_t code[SL_KV_GROUP];
    for (uint32_t i = 0; i < n_head_kv * dim; i++, open += SL_KV_BLK_LEN) {
        uint32_t d = i % SL_KV_GROUP;
        if (d == 0) memset(tile, 0, kv_tile_code_bytes(bits));
        uint32_t kept = encode_channel(code, open, bits);
        put_in_k(tile, code, kept, d, bits);
        if (d == SL_KV_GROUP - 1) tile += kv_tile_bytes(bits, false);
    }
}

void sl_cpu_kv_write_q8_0(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, bool is_v,
                          uint32_t n_rot) {
    SL_CHECK(is_v);
    write_codes(blk, in, n_head_kv, dim, at, n_rot, 8);
}

void sl_cpu_kv_close_q8_0(uint8_t *blk, const uint16_t *open, uint32_t n_head_kv, uint32_t dim) {
    close_k(blk, open, n_head_kv, dim, 8);
}

void sl_cpu_kv_write_q5_0(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, bool is_v,
                          uint32_t n_rot) {
    SL_CHECK(is_v);
    write_codes(blk, in, n_head_kv, dim, at, n_rot, 5);
}

void sl_cpu_kv_close_q5_0(uint8_t *blk, const uint16_t *open, uint32_t n_head_kv, uint32_t dim) {
    close_k(blk, open, n_head_kv, dim, 5);
}

void sl_cpu_kv_write_q4_0(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, bool is_v,
                          uint32_t n_rot) {
    SL_CHECK(is_v);
    write_codes(blk, in, n_head_kv, dim, at, n_rot, 4);
}

void sl_cpu_kv_close_q4_0(uint8_t *blk, const uint16_t *open, uint32_t n_head_kv, uint32_t dim) {
    close_k(blk, open, n_head_kv, dim, 4);
}
