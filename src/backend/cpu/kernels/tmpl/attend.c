// SPDX-License-Identifier: MIT
//
// Attention of a tile: up to SL_CPU_TILE_QUERIES query vectors (consecutive rows of one slot, times
// query heads of one KV head) go through each K and V block together.
//
// The order of operations, which fixes the bits of a row whatever tile it is in: positions are cut
// into chunks of CHUNK at absolute multiples. In a chunk: scores (one chain over dims each), their
// maximum, exp, the sum in sixteen lanes, and one chain over positions for each output. Chunks are
// merged in rising order. A row meets only the chunks and positions that it sees; scores of others
// are computed along in a block but thrown away, and V of others is never touched, for there may be
// old NaN there.
#include <math.h>

#include "backend/cpu/kernels/tmpl/tmpl.h"
#include "backend/cpu/kernels/vec_math.h"
#include "base/status.h"

enum {
    BLK = SL_KV_BLK_LEN,
    CHUNK = 256,
    N_BLK = CHUNK / BLK,
    N_MAX = SL_CPU_TILE_QUERIES,
};
// Query vectors and output vectors that are multiplied in one go; as many as there are registers
// for.
#if defined(__AVX512F__)
enum { N_Q = 4, N_V = 4 };
#else
enum { N_Q = 2, N_V = 2 };
#endif

typedef struct range {
    int32_t begin, end; // positions within the chunk
} range;

typedef struct tile {
    const sl_cpu_attend *a;
    bool f16;
    uint32_t n_row, n_head, n; // n = n_row * n_head queries, those of a row together
    uint32_t v_pad;            // v_dim in whole vectors
    int32_t pos;               // of the first row
    const int32_t *blk_table;  // of the slot
    uint64_t head_kv;
    const float *q[N_MAX];
    float *score; // (n, CHUNK)
    float *part;  // (n, v_pad) of this chunk
    float *total; // (n, v_pad) of the chunks so far
    float part_max[N_MAX], part_sum[N_MAX], max[N_MAX], sum[N_MAX];
    bool begun[N_MAX];
} tile;

uint64_t sl_cpu_attend_scratch_bytes(uint32_t n_query, uint32_t v_dim) {
    uint64_t v_pad = ((uint64_t)v_dim + SL_V16 - 1) / SL_V16 * SL_V16;
    return n_query * (CHUNK + 2 * v_pad) * sizeof(float);
}

// What row `row` of the tile sees of the chunk.
static range seen(const tile *t, int32_t chunk, uint32_t row) {
    int64_t pos = (int64_t)t->pos + row, window = t->a->window;
    int64_t first = window == 0 || pos + 1 <= window ? 0 : pos + 1 - window;
    return (range){(int32_t)(SL_MAX(first, chunk) - chunk), (int32_t)(SL_MIN(pos + 1, (int64_t)chunk + CHUNK) - chunk)};
}

SL_INLINE uint64_t elem_bytes(bool f16) { return f16 ? sizeof(uint16_t) : sizeof(float); }

SL_INLINE v16 load(const uint8_t *p, uint64_t i, bool f16) {
    return f16 ? v16_load_f16((const uint16_t *)(const void *)p + i) : v16_load((const float *)(const void *)p + i);
}

SL_INLINE v16 load_part(const uint8_t *p, uint64_t i, uint32_t n, bool f16) {
    return f16 ? v16_load_f16_part((const uint16_t *)(const void *)p + i, n)
               : v16_load_part((const float *)(const void *)p + i, n);
}

// ---- scores -------------------------------------------------------------------------------------

// n_q queries against one K block (head_dim, BLK).
SL_INLINE void score_blk(float *score, const float *const *q, const uint8_t *k, uint32_t head_dim, int n_q, bool f16) {
    v16 low[N_Q], high[N_Q];
    SL_UNROLL
    for (int i = 0; i < n_q; i++) low[i] = high[i] = v16_all(0);
    for (uint32_t d = 0; d < head_dim; d++) {
        v16 k_low = load(k, (uint64_t)d * BLK, f16), k_high = load(k, (uint64_t)d * BLK + SL_V16, f16);
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

// All queries against one K block.
SL_INLINE void score_queries(float *score, const float *const *q, uint32_t n, const uint8_t *k, uint32_t head_dim,
                             bool f16) {
    for (; n >= N_Q; n -= N_Q, q += N_Q, score += N_Q * CHUNK) score_blk(score, q, k, head_dim, N_Q, f16);
    for (; n >= 2; n -= 2, q += 2, score += 2 * CHUNK) score_blk(score, q, k, head_dim, 2, f16);
    if (n) score_blk(score, q, k, head_dim, 1, f16);
}

static void score_chunk(const tile *t, int32_t chunk) {
    const sl_cpu_attend *a = t->a;
    int32_t begin = seen(t, chunk, 0).begin, end = seen(t, chunk, t->n_row - 1).end;
    for (int32_t b = begin / BLK; b * BLK < end; b++) {
        const uint8_t *k = a->k + (uint64_t)t->blk_table[chunk / BLK + b] * a->k_blk_bytes +
                           t->head_kv * a->head_dim * BLK * elem_bytes(t->f16);
        if (t->f16) score_queries(t->score + b * BLK, t->q, t->n, k, a->head_dim, true);
        else score_queries(t->score + b * BLK, t->q, t->n, k, a->head_dim, false);
    }
}

// Scores -> exp(score - maximum), with the maximum and the sum, of one query.
static void soften(tile *t, uint32_t i, range r) {
    float *score = t->score + (uint64_t)i * CHUNK;
    int32_t begin = r.begin / SL_V16 * SL_V16, end = (r.end + SL_V16 - 1) / SL_V16 * SL_V16;
    v16 scale = v16_all(t->a->scale), cap = v16_all(t->a->softcap), max = v16_all(-INFINITY), sum = v16_all(0);
    for (int32_t j = begin; j < end; j += SL_V16) {
        v16 s = v16_mul(v16_load(score + j), scale);
        if (t->a->softcap > 0) s = v16_mul(cap, v16_tanh(v16_div(s, cap)));
        v16_store(score + j, s);
    }
    for (int32_t j = begin; j < r.begin; j++) score[j] = -INFINITY;
    for (int32_t j = r.end; j < end; j++) score[j] = -INFINITY;
    for (int32_t j = begin; j < end; j += SL_V16) max = v16_max(v16_load(score + j), max);
    t->part_max[i] = v16_largest(max);
    max = v16_all(t->part_max[i]);
    for (int32_t j = begin; j < end; j += SL_V16) {
        v16 e = v16_exp(v16_sub(v16_load(score + j), max));
        v16_store(score + j, e);
        sum = v16_add(sum, e);
    }
    t->part_sum[i] = v16_sum(sum);
}

// ---- the weighted sum of V ----------------------------------------------------------------------

// part (n_q queries, n_v vectors of dims from d) += sum over positions of r. n_dim < 16 only for
// one vector at the end.
SL_INLINE void weigh(const tile *t, uint32_t first, int32_t chunk, range r, uint32_t d, uint32_t n_dim, int n_q,
                     int n_v, bool f16) {
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
        const uint8_t *rows = a->v + (uint64_t)t->blk_table[(chunk + j) / BLK] * a->v_blk_bytes;
        uint64_t at = (t->head_kv * BLK + (uint64_t)(j % BLK)) * a->v_dim + d;
        int32_t end = SL_MIN(r.end, (j / BLK + 1) * BLK);
        for (; j < end; j++, at += a->v_dim) {
            SL_UNROLL
            for (int c = 0; c < n_v; c++)
                v[c] = n_dim < SL_V16 ? load_part(rows, at, n_dim, f16) : load(rows, at + (uint64_t)c * SL_V16, f16);
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

SL_INLINE void weigh_dims(const tile *t, uint32_t first, int32_t chunk, range r, int n_q, bool f16) {
    uint32_t d = 0, v_dim = t->a->v_dim;
    for (; d + N_V * SL_V16 <= v_dim; d += N_V * SL_V16) weigh(t, first, chunk, r, d, SL_V16, n_q, N_V, f16);
    for (; d + SL_V16 <= v_dim; d += SL_V16) weigh(t, first, chunk, r, d, SL_V16, n_q, 1, f16);
    if (d < v_dim) weigh(t, first, chunk, r, d, v_dim - d, n_q, 1, f16);
}

SL_INLINE void weigh_all(const tile *t, uint32_t first, uint32_t end, int32_t chunk, range r, bool f16) {
    for (; first + N_Q <= end; first += N_Q) weigh_dims(t, first, chunk, r, N_Q, f16);
    for (; first + 2 <= end; first += 2) weigh_dims(t, first, chunk, r, 2, f16);
    if (first < end) weigh_dims(t, first, chunk, r, 1, f16);
}

// Queries [first, end), which all see the range r.
static void weigh_queries(const tile *t, uint32_t first, uint32_t end, int32_t chunk, range r) {
    if (r.begin >= r.end) return;
    if (t->f16) weigh_all(t, first, end, chunk, r, true);
    else weigh_all(t, first, end, chunk, r, false);
}

static void weigh_chunk(const tile *t, int32_t chunk) {
    memset(t->part, 0, (uint64_t)t->n * t->v_pad * sizeof *t->part);
    // Later rows see further on both sides, so all rows see what the last begins with and the first
    // ends with.
    range all = {seen(t, chunk, t->n_row - 1).begin, seen(t, chunk, 0).end};
    bool together = all.begin < all.end && t->n_row > 1;
    for (uint32_t row = 0; row < t->n_row; row++) {
        range r = seen(t, chunk, row);
        if (together) r.end = SL_MIN(r.end, all.begin);
        weigh_queries(t, row * t->n_head, (row + 1) * t->n_head, chunk, r);
    }
    if (!together) return;
    weigh_queries(t, 0, t->n, chunk, all);
    for (uint32_t row = 0; row < t->n_row; row++) {
        range r = {all.end, seen(t, chunk, row).end};
        weigh_queries(t, row * t->n_head, (row + 1) * t->n_head, chunk, r);
    }
}

// ---- the chunks together ------------------------------------------------------------------------

static float exp_one(float x) {
    float f[SL_V16];
    v16_store(f, v16_exp(v16_all(x)));
    return f[0];
}

static void merge(tile *t, uint32_t i) {
    float *total = t->total + (uint64_t)i * t->v_pad;
    const float *part = t->part + (uint64_t)i * t->v_pad;
    if (!t->begun[i]) {
        memcpy(total, part, t->v_pad * sizeof *total);
        t->max[i] = t->part_max[i], t->sum[i] = t->part_sum[i], t->begun[i] = true;
        return;
    }
    float max = t->part_max[i] > t->max[i] ? t->part_max[i] : t->max[i];
    float old = exp_one(t->max[i] - max), new = exp_one(t->part_max[i] - max);
    for (uint32_t d = 0; d < t->v_pad; d += SL_V16)
        v16_store(total + d,
                  v16_add(v16_mul(v16_load(total + d), v16_all(old)), v16_mul(v16_load(part + d), v16_all(new))));
    t->sum[i] = t->sum[i] * old + t->part_sum[i] * new;
    t->max[i] = max;
}

static void finish(const tile *t, uint32_t i, float *out) {
    float *total = t->total + (uint64_t)i * t->v_pad;
    v16 sum = v16_all(t->sum[i]);
    for (uint32_t d = 0; d < t->v_pad; d += SL_V16) {
        v16 x = v16_div(v16_load(total + d), sum);
        if (d + SL_V16 <= t->a->v_dim) v16_store(out + d, x);
        else v16_store_part(out + d, x, t->a->v_dim - d);
    }
}

static void begin(tile *t, const sl_cpu_attend *a, uint32_t row, uint32_t head, void *scratch) {
    t->a = a;
    t->n = t->n_row * t->n_head;
    SL_CHECK(t->n >= 1 && t->n <= N_MAX);
    t->v_pad = (a->v_dim + SL_V16 - 1) / SL_V16 * SL_V16;
    t->pos = a->pos[row];
    t->blk_table = a->blk_table + (int64_t)a->slot[row] * a->blk_stride;
    t->head_kv = head / (a->n_head / a->n_head_kv);
    t->score = scratch;
    t->part = t->score + (uint64_t)t->n * CHUNK;
    t->total = t->part + (uint64_t)t->n * t->v_pad;
    for (uint32_t i = 0; i < t->n; i++) {
        const char *q = (const char *)a->q + (row + i / t->n_head) * a->q_stride;
        t->q[i] = (const float *)(const void *)q + (uint64_t)(head + i % t->n_head) * a->head_dim;
        t->begun[i] = false;
    }
}

static void attend(const sl_cpu_attend *a, uint32_t row_begin, uint32_t row_end, uint32_t head_begin, uint32_t head_end,
                   void *scratch, bool f16) {
    tile t = {.n_row = row_end - row_begin, .n_head = head_end - head_begin, .f16 = f16};
    begin(&t, a, row_begin, head_begin, scratch);
    int32_t last = t.pos + (int32_t)t.n_row - 1, chunk = seen(&t, 0, 0).begin / CHUNK * CHUNK;
    for (; chunk <= last; chunk += CHUNK) {
        score_chunk(&t, chunk);
        for (uint32_t i = 0; i < t.n; i++) {
            range r = seen(&t, chunk, i / t.n_head);
            if (r.begin < r.end) soften(&t, i, r);
        }
        weigh_chunk(&t, chunk);
        for (uint32_t i = 0; i < t.n; i++) {
            range r = seen(&t, chunk, i / t.n_head);
            if (r.begin < r.end) merge(&t, i);
        }
    }
    for (uint32_t i = 0; i < t.n; i++) {
        char *out = (char *)a->out + (row_begin + i / t.n_head) * a->out_stride;
        finish(&t, i, (float *)(void *)out + (uint64_t)(head_begin + i % t.n_head) * a->v_dim);
    }
}

void sl_cpu_attend_f32(const sl_cpu_attend *a, uint32_t row_begin, uint32_t row_end, uint32_t head_begin,
                       uint32_t head_end, void *scratch) {
    attend(a, row_begin, row_end, head_begin, head_end, scratch, false);
}

void sl_cpu_attend_f16(const sl_cpu_attend *a, uint32_t row_begin, uint32_t row_end, uint32_t head_begin,
                       uint32_t head_end, void *scratch) {
    attend(a, row_begin, row_end, head_begin, head_end, scratch, true);
}
