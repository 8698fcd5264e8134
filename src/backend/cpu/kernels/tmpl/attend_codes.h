// SPDX-License-Identifier: MIT
//
// Scores and weighted sums of a cache of codes, read as it is. Both factors of a product are integers: the codes, and
// Q times the scales of the channels, with a unit for each block of K, or the weights times the scales of the
// positions, with a unit for each group of 32 of V. Both are rounded to 16 bits; what that adds to the error is far
// below what the codes have. Sums inside a tile of 32 x 32 are exact. A score begins with the product of Q and the
// least values, which all positions of a block share, and is one chain over groups of dims; a sum of V is one chain
// over blocks of 32 positions. A row's own block is not codes but floats, the open block's. Private to attend.c.
#ifndef SL_BACKEND_CPU_ATTEND_CODES_H
#define SL_BACKEND_CPU_ATTEND_CODES_H

#include "backend/cpu/kernels/tmpl/attend_float.h"

// The grids of a K block (head_dim): scales, then least values.
SL_INLINE void read_grids(float *grid, const uint8_t *k, uint32_t head_dim, int bits) {
    for (uint32_t at = 0; at < head_dim; at += SL_KV_GROUP, k += kv_tile_bytes(bits, false)) {
        const uint8_t *kept = k + kv_tile_code_bytes(bits);
        const uint16_t *half = (const uint16_t *)(const void *)kept;
        SL_UNROLL
        for (int i = 0; i < SL_KV_GROUP; i += SL_V16) {
            v16 d = bits == 8 ? v16_load_f16(half + i) : v16_load_e5m3(kept + i);
            v16_store(grid + at + i, d);
            v16_store(grid + head_dim + at + i, bits == 8 ? v16_load_f16(half + SL_KV_GROUP + i)
                                                          : v16_mul(d, v16_load_i8(kept + SL_KV_GROUP + i)));
        }
    }
}

// One query for one K block: its integers, and what all scores begin with. One unit for all groups: 16 bits are plenty.
// A NaN, of Q or of a bad channel, is in what the scores begin with. `product`: (head_dim) scratch.
SL_INLINE float prepare_query(query_group *out, const float *q, const float *grid, uint32_t head_dim, float *product) {
    const float *least = grid + head_dim;
    v16 sum[2] = {v16_all(0), v16_all(0)}, top = v16_all(0), bias = v16_all(SL_ROUND_BIAS);
    float inverse, unit;
    for (uint32_t d = 0; d < head_dim; d += SL_KV_GROUP) {
        SL_UNROLL
        for (int i = 0; i < 2; i++) {
            uint32_t at = d + (uint32_t)i * SL_V16;
            v16 x = v16_load(q + at), scaled = v16_mul(x, v16_load(grid + at));
            sum[i] = v16_fma(x, v16_load(least + at), sum[i]);
            top = v16_max(v16_abs(scaled), top);
            v16_store(product + at, scaled);
        }
    }
    unit = kv_unit(sl_f32_bits(v16_largest(top)), KV_QUERY_MOST, &inverse);
    v16 by = v16_all(inverse);
    for (uint32_t d = 0; d < head_dim; d += SL_KV_GROUP, out++) {
        kv_ints_put(&out->x, 0, v16_add(v16_mul(v16_load(product + d), by), bias), true);
        kv_ints_put(&out->x, 1, v16_add(v16_mul(v16_load(product + d + SL_V16), by), bias), true);
        out->unit = unit;
    }
    return v16_sum(v16_add(sum[0], sum[1]));
}

// n_q queries against one K tile of each group.
SL_INLINE void score_codes(float *score, const query_group *query, const float *begin, const uint8_t *k,
                           uint32_t n_group, int n_q, int bits) {
    v16 low[N_Q], high[N_Q], dot_low[N_Q], dot_high[N_Q];
    SL_UNROLL
    for (int i = 0; i < n_q; i++) low[i] = high[i] = v16_all(begin[i]);
    for (uint32_t g = 0; g < n_group; g++, k += kv_tile_bytes(bits, false)) {
        const kv_ints *x[N_Q];
        SL_UNROLL
        for (int i = 0; i < n_q; i++) x[i] = &query[(uint32_t)i * n_group + g].x;
        kv_dot(dot_low, dot_high, k, x, n_q, bits, false);
        SL_UNROLL
        for (int i = 0; i < n_q; i++) {
            v16 unit = v16_all(query[(uint32_t)i * n_group + g].unit);
            low[i] = v16_fma(dot_low[i], unit, low[i]);
            high[i] = v16_fma(dot_high[i], unit, high[i]);
        }
    }
    SL_UNROLL
    for (int i = 0; i < n_q; i++) {
        v16_store(score + (uint64_t)i * CHUNK, low[i]);
        v16_store(score + (uint64_t)i * CHUNK + SL_V16, high[i]);
    }
}

// Queries [i, t->n) against the K block at cell `at` of the chunk.
SL_INLINE void score_blk_codes(const tile *t, int32_t chunk, int32_t at, uint32_t i, int bits) {
    const uint8_t *k = k_bytes(t, chunk, at);
    uint32_t n_group = t->a->head_dim / SL_KV_GROUP;
    float *score = t->score + at, begin[N_MAX];
    query_group *q = t->group;
    const float *const *from = queries(t, chunk, at);
    fetch(v_bytes(t, chunk, at), t->a->v_head_bytes);
    read_grids(t->grid, k, t->a->head_dim, bits);
    for (uint32_t j = i; j < t->n; j++)
        begin[j] = prepare_query(q + j * n_group, from[j], t->grid, t->a->head_dim, t->grid + 2 * t->a->head_dim);
    for (; i + N_Q <= t->n; i += N_Q)
        score_codes(score + (uint64_t)i * CHUNK, q + i * n_group, begin + i, k, n_group, N_Q, bits);
    float *rest = score + (uint64_t)i * CHUNK;
    switch (t->n - i) {
    case 3: score_codes(rest, q + i * n_group, begin + i, k, n_group, SL_MIN(3, N_Q), bits); break;
    case 2: score_codes(rest, q + i * n_group, begin + i, k, n_group, 2, bits); break;
    case 1: score_codes(rest, q + i * n_group, begin + i, k, n_group, 1, bits); break;
    }
}

// ---- the weighted sum of V ----------------------------------------------------------------------

// Weights times scales, as integers. A position that is not seen has weight 0, and its scale may be any old bits.
SL_INLINE float weights_as_ints(kv_ints *out, const float *weight, v16 d_low, v16 d_high) {
    v16 zero = v16_all(0), low = v16_load(weight), high = v16_load(weight + SL_V16), biased[2];
    low = v16_pick_less(zero, low, v16_mul(low, d_low), zero);
    high = v16_pick_less(zero, high, v16_mul(high, d_high), zero);
    return kv_ints_make(out, low, high, KV_WEIGHT_MOST, false, biased);
}

// part (n_q queries from `first`, 32 dims from d) += the sum over one block of 32 positions.
SL_INLINE void weigh_codes(const tile *t, uint32_t first, int32_t at, const uint8_t *v, uint32_t d, int n_q, int bits) {
    const uint16_t *scale = (const uint16_t *)(const void *)(v + kv_tile_code_bytes(bits));
    v16 d_low = v16_load_f16(scale), d_high = v16_load_f16(scale + SL_V16), low[N_Q], high[N_Q];
    float unit[N_Q];
    kv_ints ints[N_Q];
    const kv_ints *x[N_Q];
    SL_UNROLL
    for (int i = 0; i < n_q; i++) {
        const float *weight = t->score + (uint64_t)(first + (uint32_t)i) * CHUNK + at;
        unit[i] = weights_as_ints(&ints[i], weight, d_low, d_high);
        x[i] = &ints[i];
    }
    kv_dot(low, high, v, x, n_q, bits, true);
    SL_UNROLL
    for (int i = 0; i < n_q; i++) {
        float *part = t->part + (uint64_t)(first + (uint32_t)i) * t->v_pad + d;
        v16_store(part, v16_fma(low[i], v16_all(unit[i]), v16_load(part)));
        v16_store(part + SL_V16, v16_fma(high[i], v16_all(unit[i]), v16_load(part + SL_V16)));
    }
}

SL_INLINE void weigh_blk_codes(const tile *t, uint32_t first, uint32_t end, int32_t chunk, int32_t at, int bits) {
    const uint8_t *v = v_bytes(t, chunk, at);
    for (uint32_t d = 0; d < t->a->v_dim; d += SL_KV_GROUP, v += kv_tile_bytes(bits, true)) {
        uint32_t i = first;
        for (; i + N_Q <= end; i += N_Q) weigh_codes(t, i, at, v, d, N_Q, bits);
        switch (end - i) {
        case 3: weigh_codes(t, i, at, v, d, SL_MIN(3, N_Q), bits); break; // 3 is left only where N_Q is 4
        case 2: weigh_codes(t, i, at, v, d, 2, bits); break;
        case 1: weigh_codes(t, i, at, v, d, 1, bits); break;
        }
    }
}

// Block by block; in each, the rows that see some of it, which follow each other: first those whose own it is.
SL_INLINE void weigh_chunk_codes(const tile *t, int32_t chunk, int bits) {
    int32_t begin = seen(t, chunk, 0).begin / BLK * BLK, end = seen(t, chunk, t->n_row - 1).end;
    for (int32_t at = begin; at < end; at += BLK) {
        uint32_t last = t->n_row, row = row_at(t, chunk + at), own_end = row_at(t, chunk + at + BLK);
        if (chunk + CHUNK + at < t->cell + (int32_t)t->n_row) fetch(k_bytes(t, chunk + CHUNK, at), t->a->k_head_bytes);
        for (; row < own_end; row++) {
            range r = seen(t, chunk, row);
            r.begin = SL_MAX(r.begin, at);
            weigh_floats(t, row * t->n_head, (row + 1) * t->n_head, chunk, r, open_v(t, row), SL_TYPE_F16);
        }
        while (last > row && seen(t, chunk, last - 1).begin >= at + BLK) last--;
        if (row < last) weigh_blk_codes(t, row * t->n_head, last * t->n_head, chunk, at, bits);
    }
}

#endif
