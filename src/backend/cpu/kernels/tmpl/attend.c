// SPDX-License-Identifier: MIT
//
// Attention of a tile: up to SL_CPU_TILE_QUERIES query vectors (consecutive rows of one slot, times query heads of one
// KV head) go through each K and V block together. K and V may be of different types.
//
// The order of operations, which fixes the bits of a row whatever tile it is in: its cells are cut into chunks of CHUNK
// at absolute multiples. In a chunk: scores (attend_float.h, attend_codes.h), their maximum, exp, the sum in sixteen
// lanes, and the weighted sum of V. Chunks are merged in rising order. A row meets only the chunks and positions that
// it sees; scores of others are computed along in a block but thrown away, and V of others has no part, for there may
// be old NaN there.
#include <math.h>

#include "backend/cpu/kernels/tmpl/attend_codes.h"
#include "backend/cpu/kernels/tmpl/attend_float.h"
#include "base/status.h"

static uint64_t padded(uint32_t v_dim) { return ((uint64_t)v_dim + SL_V16 - 1) / SL_V16 * SL_V16; }

static uint64_t wide_floats(uint32_t head_dim, uint32_t v_dim) { return (uint64_t)BLK * SL_MAX(head_dim, v_dim); }

uint64_t sl_cpu_attend_scratch_bytes(uint32_t n_query, uint32_t head_dim, uint32_t v_dim) {
    uint64_t n_group = ((uint64_t)head_dim + SL_KV_GROUP - 1) / SL_KV_GROUP;
    return n_query * (n_group * sizeof(query_group) + (CHUNK + 2 * padded(v_dim)) * sizeof(float)) +
           (3 * n_group * SL_KV_GROUP + wide_floats(head_dim, v_dim)) * sizeof(float);
}

// One function for each type, as all in one take compilers minutes.
#define SCORE(name, type)                                                                                    \
    static SL_NOINLINE void name(const tile *t, int32_t chunk, int32_t at, const uint8_t *k, uint32_t first, \
                                 uint32_t end) {                                                             \
        score_blk_floats(t, queries(t, chunk, at), at, k, first, end, type);                                 \
    }
SCORE(score_f32, SL_TYPE_F32)
SCORE(score_f16, SL_TYPE_F16)
SCORE(score_bf16, SL_TYPE_BF16)
#undef SCORE
#define SCORE(name, bits)                                                                    \
    static SL_NOINLINE void name(const tile *t, int32_t chunk, int32_t at, uint32_t first) { \
        score_blk_codes(t, chunk, at, first, bits);                                          \
    }
SCORE(score_q8, 8)
SCORE(score_q5, 5)
SCORE(score_q4, 4)
#undef SCORE

static void score_chunk_floats(const tile *t, int32_t chunk, int32_t begin, int32_t end) {
    for (int32_t at = begin; at < end; at += BLK) {
        const uint8_t *k = k_bytes(t, chunk, at);
        fetch(v_bytes(t, chunk, at), t->a->v_head_bytes);
        if (chunk + CHUNK + at < t->cell + (int32_t)t->n_row) fetch(k_bytes(t, chunk + CHUNK, at), t->a->k_head_bytes);
        sl_type type = (sl_type)t->a->type_k;
        if (widens(t, type)) {
            k = type == SL_TYPE_F16 ? widen(t, k, t->a->head_dim, SL_TYPE_F16)
                                    : widen(t, k, t->a->head_dim, SL_TYPE_BF16);
            type = SL_TYPE_F32;
        }
        switch (type) {
        case SL_TYPE_F32: score_f32(t, chunk, at, k, 0, t->n); break;
        case SL_TYPE_F16: score_f16(t, chunk, at, k, 0, t->n); break;
        default: score_bf16(t, chunk, at, k, 0, t->n); break;
        }
    }
}

// In each block first the rows whose own it is, then those after it.
static void score_chunk_codes(const tile *t, int32_t chunk, int32_t begin, int32_t end) {
    for (int32_t at = begin; at < end; at += BLK) {
        uint32_t own = row_at(t, chunk + at), after = row_at(t, chunk + at + BLK);
        if (own < after) score_f16(t, chunk, at, open_k(t, own), own * t->n_head, after * t->n_head);
        if (after == t->n_row) continue;
        switch (t->a->type_k) {
        case SL_TYPE_Q8_0: score_q8(t, chunk, at, after * t->n_head); break;
        case SL_TYPE_Q5_0: score_q5(t, chunk, at, after * t->n_head); break;
        default: score_q4(t, chunk, at, after * t->n_head); break;
        }
    }
}

static void score_chunk(const tile *t, int32_t chunk) {
    int32_t begin = seen(t, chunk, 0).begin / BLK * BLK, end = seen(t, chunk, t->n_row - 1).end;
    if (sl_kv_code_bits((sl_type)t->a->type_k)) score_chunk_codes(t, chunk, begin, end);
    else score_chunk_floats(t, chunk, begin, end);
}

// Scores -> exp(score - maximum), with the maximum and the sum, of one query. Weights of what it does not see are 0 as
// far as its blocks go.
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
    for (int32_t j = r.begin / BLK * BLK; j < begin; j++) score[j] = 0;
    for (int32_t j = end; j % BLK; j++) score[j] = 0;
}

#define WEIGH(name, how, type) \
    static SL_NOINLINE void name(const tile *t, int32_t chunk) { how(t, chunk, type); }
WEIGH(weigh_f32, weigh_chunk_floats, SL_TYPE_F32)
WEIGH(weigh_f16, weigh_chunk_floats, SL_TYPE_F16)
WEIGH(weigh_bf16, weigh_chunk_floats, SL_TYPE_BF16)
WEIGH(weigh_q8, weigh_chunk_codes, 8)
WEIGH(weigh_q5, weigh_chunk_codes, 5)
WEIGH(weigh_q4, weigh_chunk_codes, 4)
#undef WEIGH

static void weigh_chunk(const tile *t, int32_t chunk) {
    memset(t->part, 0, (uint64_t)t->n * t->v_pad * sizeof *t->part);
    switch (t->a->type_v) {
    case SL_TYPE_F32: weigh_f32(t, chunk); break;
    case SL_TYPE_F16: weigh_f16(t, chunk); break;
    case SL_TYPE_BF16: weigh_bf16(t, chunk); break;
    case SL_TYPE_Q8_0: weigh_q8(t, chunk); break;
    case SL_TYPE_Q5_0: weigh_q5(t, chunk); break;
    default: weigh_q4(t, chunk); break;
    }
}

// ---- the chunks together ------------------------------------------------------------------------

static float exp_one(float x) {
    float f[SL_V16];
    v16_store(f, v16_exp(v16_all(x)));
    return f[0];
}

// Adds the sums of a chunk, with their maximum and the sum of the weights, to those of the chunks so far.
static void merge(tile *t, uint32_t i, const float *part, float part_max, float part_sum) {
    float *total = t->total + (uint64_t)i * t->v_pad;
    if (!t->begun[i]) {
        memcpy(total, part, t->v_pad * sizeof *total);
        t->max[i] = part_max, t->sum[i] = part_sum, t->begun[i] = true;
        return;
    }
    float max = part_max > t->max[i] ? part_max : t->max[i];
    float old = exp_one(t->max[i] - max), new = exp_one(part_max - max);
    for (uint32_t d = 0; d < t->v_pad; d += SL_V16)
        v16_store(total + d,
                  v16_add(v16_mul(v16_load(total + d), v16_all(old)), v16_mul(v16_load(part + d), v16_all(new))));
    t->sum[i] = t->sum[i] * old + part_sum * new;
    t->max[i] = max;
}

static void finish(const tile *t, uint32_t i, float *out) {
    const sl_cpu_attend *a = t->a;
    float *total = t->total + (uint64_t)i * t->v_pad;
    v16 sum = v16_all(t->sum[i]);
    for (uint32_t d = 0; d < t->v_pad; d += SL_V16) v16_store(total + d, v16_div(v16_load(total + d), sum));
    sl_cpu_kv_rotate(total, a->v_dim, a->v_rot);
    memcpy(out, total, a->v_dim * sizeof *out);
}

static void begin(tile *t, const sl_cpu_attend *a, const sl_cpu_tile *of, void *scratch) {
    uint32_t n_group = sl_kv_code_bits((sl_type)a->type_k) ? a->head_dim / SL_KV_GROUP : 0;
    *t = (tile){.a = a, .n_row = of->row_end - of->row_begin, .n_head = of->head_end - of->head_begin};
    t->n = t->n_row * t->n_head;
    SL_CHECK(t->n >= 1 && t->n <= N_MAX);
    t->v_pad = (uint32_t)padded(a->v_dim);
    t->cell = a->cell[of->row_begin], t->skip = a->skip ? a->skip[of->row_begin] : 0;
    t->blk_table = a->blk_table + (int64_t)a->slot[of->row_begin] * a->blk_stride;
    t->head_kv = of->head_begin / (a->n_head / a->n_head_kv);
    t->open = a->open ? a->open + of->row_begin : NULL;
    t->group = scratch;
    t->grid = (float *)(void *)(t->group + (uint64_t)t->n * n_group);
    t->wide = t->grid + 3ull * n_group * SL_KV_GROUP;
    t->score = t->wide + wide_floats(a->head_dim, a->v_dim);
    t->part = t->score + (uint64_t)t->n * CHUNK;
    t->total = t->part + (uint64_t)t->n * t->v_pad;
    for (uint32_t i = 0; i < t->n; i++) {
        const uint64_t row_off = (of->row_begin + i / t->n_head) * a->q_stride;
        const uint64_t at = (uint64_t)(of->head_begin + i % t->n_head) * a->head_dim;
        t->q[i] = (const float *)(const void *)((const char *)a->q + row_off) + at;
        t->q_first[i] = a->q_first ? (const float *)(const void *)((const char *)a->q_first + row_off) + at : t->q[i];
    }
}

static bool sees(const tile *t, uint32_t i, int32_t chunk) {
    range r = seen(t, chunk, i / t->n_head);
    return r.begin < r.end;
}

// Into part, part_max and part_sum.
static void do_chunk(tile *t, int32_t chunk) {
    score_chunk(t, chunk);
    for (uint32_t i = 0; i < t->n; i++)
        if (sees(t, i, chunk)) soften(t, i, seen(t, chunk, i / t->n_head));
    weigh_chunk(t, chunk);
}

static void finish_all(const tile *t, const sl_cpu_tile *of) {
    for (uint32_t i = 0; i < t->n; i++) {
        char *out = (char *)t->a->out + (of->row_begin + i / t->n_head) * t->a->out_stride;
        finish(t, i, (float *)(void *)out + (uint64_t)(of->head_begin + i % t->n_head) * t->a->v_dim);
    }
}

static int32_t first_chunk(const tile *t) { return seen(t, 0, 0).begin / CHUNK * CHUNK; }

static int32_t end_chunk(const tile *t) { return t->cell + (int32_t)t->n_row; }

void sl_cpu_attend_tile(const sl_cpu_attend *a, const sl_cpu_tile *of, void *scratch) {
    tile t;
    begin(&t, a, of, scratch);
    for (int32_t chunk = first_chunk(&t); chunk < end_chunk(&t); chunk += CHUNK) {
        do_chunk(&t, chunk);
        for (uint32_t i = 0; i < t.n; i++)
            if (sees(&t, i, chunk)) merge(&t, i, t.part + (uint64_t)i * t.v_pad, t.part_max[i], t.part_sum[i]);
    }
    finish_all(&t, of);
}

// ---- the same in spans --------------------------------------------------------------------------

// The sums of query i in the k-th chunk that the tile sees, and then their maximum and the sum of weights.
static float *kept_part(const tile *t, float *parts, int32_t k, uint32_t i) {
    return parts + ((uint64_t)k * t->n + i) * (t->v_pad + SL_V16);
}

uint64_t sl_cpu_attend_part_bytes(uint32_t n_query, uint32_t v_dim) {
    return n_query * (padded(v_dim) + SL_V16) * sizeof(float);
}

void sl_cpu_attend_span(const sl_cpu_attend *a, const sl_cpu_tile *of, int32_t begin_k, int32_t end_k, float *parts,
                        void *scratch) {
    tile t;
    begin(&t, a, of, scratch);
    for (int32_t k = begin_k; k < end_k; k++) {
        do_chunk(&t, first_chunk(&t) + k * CHUNK);
        for (uint32_t i = 0; i < t.n; i++) {
            float *kept = kept_part(&t, parts, k, i);
            memcpy(kept, t.part + (uint64_t)i * t.v_pad, t.v_pad * sizeof *kept);
            kept[t.v_pad] = t.part_max[i], kept[t.v_pad + 1] = t.part_sum[i];
        }
    }
}

void sl_cpu_attend_merge(const sl_cpu_attend *a, const sl_cpu_tile *of, float *parts, void *scratch) {
    tile t;
    begin(&t, a, of, scratch);
    for (int32_t k = 0, chunk = first_chunk(&t); chunk < end_chunk(&t); k++, chunk += CHUNK)
        for (uint32_t i = 0; i < t.n; i++) {
            const float *kept = kept_part(&t, parts, k, i);
            if (sees(&t, i, chunk)) merge(&t, i, kept, kept[t.v_pad], kept[t.v_pad + 1]);
        }
    finish_all(&t, of);
}
