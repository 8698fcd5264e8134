// SPDX-License-Identifier: MIT
//
// Scores and weighted sums of a cache of floats: F32, F16 or BF16. Scores: one chain over dims each. Sums: one chain
// over positions for each dim. Private to attend.c.
#ifndef SL_BACKEND_CPU_ATTEND_FLOAT_H
#define SL_BACKEND_CPU_ATTEND_FLOAT_H

#include "backend/cpu/kernels/tmpl/attend_tile.h"

SL_INLINE v16 load(const uint8_t *p, uint64_t i, sl_type type) {
    if (type == SL_TYPE_F32) return v16_load((const float *)(const void *)p + i);
    const uint16_t *half = (const uint16_t *)(const void *)p + i;
    return type == SL_TYPE_F16 ? v16_load_f16(half) : v16_load_bf16(half);
}

SL_INLINE v16 load_part(const uint8_t *p, uint64_t i, uint32_t n, sl_type type) {
    if (type == SL_TYPE_F32) return v16_load_part((const float *)(const void *)p + i, n);
    const uint16_t *half = (const uint16_t *)(const void *)p + i;
    return type == SL_TYPE_F16 ? v16_load_f16_part(half, n) : v16_load_bf16_part(half, n);
}

// Many queries take a block of halves as floats, which are made of it once; a few make them on the way.
enum { MANY_Q = 4 * N_Q };

static inline bool widens(const tile *t, sl_type type) { return t->n >= MANY_Q && type != SL_TYPE_F32; }

SL_INLINE const uint8_t *widen(const tile *t, const uint8_t *blk, uint32_t dim, sl_type type) {
    for (uint64_t i = 0; i < (uint64_t)BLK * dim; i += SL_V16) v16_store(t->wide + i, load(blk, i, type));
    return (const uint8_t *)t->wide;
}

// ---- scores -------------------------------------------------------------------------------------

// n_q queries against one K block (head_dim, BLK).
SL_INLINE void score_floats(float *score, const float *const *q, const uint8_t *k, uint32_t head_dim, int n_q,
                            sl_type type) {
    v16 low[N_Q], high[N_Q];
    SL_UNROLL
    for (int i = 0; i < n_q; i++) low[i] = high[i] = v16_all(0);
    for (uint32_t d = 0; d < head_dim; d++) {
        v16 k_low = load(k, (uint64_t)d * BLK, type), k_high = load(k, (uint64_t)d * BLK + SL_V16, type);
        SL_UNROLL
        for (int i = 0; i < n_q; i++) {
            v16 x = v16_all(q[i][d]);
            low[i] = v16_fma(x, k_low, low[i]);
            high[i] = v16_fma(x, k_high, high[i]);
        }
    }
    SL_UNROLL
    for (int i = 0; i < n_q; i++) {
        v16_store(score + (uint64_t)i * CHUNK, low[i]);
        v16_store(score + (uint64_t)i * CHUNK + SL_V16, high[i]);
    }
}

// Queries [i, end) of q against a K block, which is at cell `at` of the chunk.
SL_INLINE void score_blk_floats(const tile *t, const float *const *q, int32_t at, const uint8_t *k, uint32_t i,
                                uint32_t end, sl_type type) {
    uint32_t head_dim = t->a->head_dim;
    float *score = t->score + at;
    for (; i + N_Q <= end; i += N_Q) score_floats(score + (uint64_t)i * CHUNK, q + i, k, head_dim, N_Q, type);
    for (; i + 2 <= end; i += 2) score_floats(score + (uint64_t)i * CHUNK, q + i, k, head_dim, 2, type);
    if (i < end) score_floats(score + (uint64_t)i * CHUNK, q + i, k, head_dim, 1, type);
}

// ---- the weighted sum of V ----------------------------------------------------------------------

// part (n_q queries, n_v vectors of dims from d) += sum over positions of r. n_dim < 16 only for one vector at the end.
// open: the block that they are in; NULL: those of the table.
SL_INLINE void weigh(const tile *t, uint32_t first, int32_t chunk, range r, const uint8_t *open, uint32_t d,
                     uint32_t n_dim, int n_q, int n_v, sl_type type) {
    const sl_cpu_attend *a = t->a;
    const float *weight = t->score + (uint64_t)first * CHUNK;
    float *part = t->part + (uint64_t)first * t->v_pad + d;
    v16 sum[N_Q][N_V], v[N_V];
    SL_UNROLL
    for (int i = 0; i < n_q; i++) {
        SL_UNROLL
        for (int c = 0; c < n_v; c++) sum[i][c] = v16_load(part + (uint64_t)i * t->v_pad + c * SL_V16);
    }
    for (int32_t j = r.begin; j < r.end;) {
        const uint8_t *rows = open ? open : v_bytes(t, chunk, j);
        uint64_t at = (uint64_t)(j % BLK) * a->v_dim + d;
        int32_t end = SL_MIN(r.end, (j / BLK + 1) * BLK);
        for (; j < end; j++, at += a->v_dim) {
            SL_UNROLL
            for (int c = 0; c < n_v; c++)
                v[c] = n_dim < SL_V16 ? load_part(rows, at, n_dim, type) : load(rows, at + (uint64_t)c * SL_V16, type);
            SL_UNROLL
            for (int i = 0; i < n_q; i++) {
                v16 w = v16_all(weight[(uint64_t)i * CHUNK + (uint64_t)j]);
                SL_UNROLL
                for (int c = 0; c < n_v; c++) sum[i][c] = v16_fma(w, v[c], sum[i][c]);
            }
        }
    }
    SL_UNROLL
    for (int i = 0; i < n_q; i++) {
        SL_UNROLL
        for (int c = 0; c < n_v; c++) v16_store(part + (uint64_t)i * t->v_pad + c * SL_V16, sum[i][c]);
    }
}

SL_INLINE void weigh_dims(const tile *t, uint32_t first, int32_t chunk, range r, const uint8_t *open, int n_q,
                          sl_type type) {
    uint32_t d = 0, v_dim = t->a->v_dim;
    for (; d + N_V * SL_V16 <= v_dim; d += N_V * SL_V16) weigh(t, first, chunk, r, open, d, SL_V16, n_q, N_V, type);
    for (; d + SL_V16 <= v_dim; d += SL_V16) weigh(t, first, chunk, r, open, d, SL_V16, n_q, 1, type);
    if (d < v_dim) weigh(t, first, chunk, r, open, d, v_dim - d, n_q, 1, type);
}

// Queries [first, end), which all see the range r.
SL_INLINE void weigh_floats(const tile *t, uint32_t first, uint32_t end, int32_t chunk, range r, const uint8_t *open,
                            sl_type type) {
    if (r.begin >= r.end) return;
    for (; first + N_Q <= end; first += N_Q) weigh_dims(t, first, chunk, r, open, N_Q, type);
    for (; first + 2 <= end; first += 2) weigh_dims(t, first, chunk, r, open, 2, type);
    if (first < end) weigh_dims(t, first, chunk, r, open, 1, type);
}

// All queries, which see the range r of the block that v is, as floats.
static SL_NOINLINE void weigh_widened(const tile *t, int32_t chunk, range r, const uint8_t *v) {
    weigh_floats(t, 0, t->n, chunk, r, v, SL_TYPE_F32);
}

SL_INLINE void weigh_by_all(const tile *t, int32_t chunk, range all, sl_type type) {
    if (!widens(t, type)) {
        weigh_floats(t, 0, t->n, chunk, all, NULL, type);
        return;
    }
    for (int32_t at = all.begin, end; at < all.end; at = end) {
        end = SL_MIN(all.end, (at / BLK + 1) * BLK);
        weigh_widened(t, chunk, (range){at, end}, widen(t, v_bytes(t, chunk, at), t->a->v_dim, type));
    }
}

SL_INLINE void weigh_chunk_floats(const tile *t, int32_t chunk, sl_type type) {
    // Later rows see further on both sides, so all rows see what the last begins with and the first ends with.
    range all = {seen(t, chunk, t->n_row - 1).begin, seen(t, chunk, 0).end};
    bool together = all.begin < all.end && t->n_row > 1;
    for (uint32_t row = 0; row < t->n_row; row++) {
        range r = seen(t, chunk, row);
        if (together) r.end = SL_MIN(r.end, all.begin);
        weigh_floats(t, row * t->n_head, (row + 1) * t->n_head, chunk, r, NULL, type);
    }
    if (!together) return;
    weigh_by_all(t, chunk, all, type);
    for (uint32_t row = 0; row < t->n_row; row++) {
        range r = {all.end, seen(t, chunk, row).end};
        weigh_floats(t, row * t->n_head, (row + 1) * t->n_head, chunk, r, NULL, type);
    }
}

#endif
