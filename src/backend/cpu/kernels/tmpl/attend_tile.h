// SPDX-License-Identifier: MIT
//
// What a tile of attention holds while it goes through the cache; see attend.c. Private to attend*.
#ifndef SL_BACKEND_CPU_ATTEND_TILE_H
#define SL_BACKEND_CPU_ATTEND_TILE_H

#include "backend/cpu/kernels/kv_dot.h"
#include "backend/cpu/kernels/tmpl/tmpl.h"

enum {
    BLK = SL_KV_BLK_LEN,
    CHUNK = SL_CPU_ATTEND_CHUNK,
    N_MAX = SL_CPU_TILE_QUERIES,
};
// Query vectors and output vectors that are multiplied in one go; as many as there are registers for.
#if defined(__AVX512F__)
enum { N_Q = 4, N_V = 4 };
#else
enum { N_Q = 2, N_V = 2 };
#endif

typedef struct range {
    int32_t begin, end; // cells within the chunk
} range;

// A query vector times the scales of a K block, as integers, for each group of dims.
typedef struct query_group {
    kv_ints x;
    float unit; // what one is worth
} query_group;

typedef struct tile {
    const sl_cpu_attend *a;
    uint32_t n_row, n_head, n; // n = n_row * n_head queries, those of a row together
    uint32_t v_pad;            // v_dim in whole vectors
    int32_t cell;              // of the first row
    const int32_t *blk_table;  // of the slot
    int32_t skip;              // its entries after the first that the rows do not see
    const int32_t *open;       // (n_row) of the rows; NULL if there are none
    uint64_t head_kv;
    const float *q[N_MAX], *q_first[N_MAX]; // q_first: for the first block
    query_group *group;                     // (n, head_dim / SL_KV_GROUP) if K is codes
    float *grid;                            // (3, head_dim) likewise: scales, least values, scratch
    float *wide;                            // (BLK, head_dim or v_dim) of a block of halves: as floats
    float *score;                           // (n, CHUNK)
    float *part;                            // (n, v_pad) of this chunk
    float *total;                           // (n, v_pad) of the chunks so far
    float part_max[N_MAX], part_sum[N_MAX], max[N_MAX], sum[N_MAX];
    bool begun[N_MAX];
} tile;

// What row `row` of the tile sees of the chunk.
static inline range seen(const tile *t, int32_t chunk, uint32_t row) {
    int64_t cell = (int64_t)t->cell + row, window = t->a->window;
    int64_t first = window == 0 || cell + 1 <= window ? 0 : cell + 1 - window;
    return (range){(int32_t)(SL_MAX(first, chunk) - chunk),
                   (int32_t)(SL_MIN(cell + 1, (int64_t)chunk + CHUNK) - chunk)};
}

// The pool block that holds cell `at` of the chunk.
static inline uint64_t blk_at(const tile *t, int32_t chunk, int32_t at) {
    int32_t i = (chunk + at) / BLK;
    return (uint64_t)t->blk_table[i ? i + t->skip : 0];
}

// The bytes of this tile's KV head there.
static inline const uint8_t *k_bytes(const tile *t, int32_t chunk, int32_t at) {
    const sl_cpu_attend *a = t->a;
    return a->k + blk_at(t, chunk, at) * a->k_blk_bytes + t->head_kv * a->k_head_bytes;
}

static inline const uint8_t *v_bytes(const tile *t, int32_t chunk, int32_t at) {
    const sl_cpu_attend *a = t->a;
    return a->v + blk_at(t, chunk, at) * a->v_blk_bytes + t->head_kv * a->v_head_bytes;
}

// The first row whose cell is `cell` or a later one.
static inline uint32_t row_at(const tile *t, int32_t cell) {
    return (uint32_t)SL_MIN(SL_MAX(cell - t->cell, 0), (int32_t)t->n_row);
}

// The queries for the block at cell `at` of the chunk.
static inline const float *const *queries(const tile *t, int32_t chunk, int32_t at) {
    return chunk + at < BLK ? t->q_first : t->q;
}

// The bytes of this tile's KV head in the open block of a row.
static inline const uint8_t *open_k(const tile *t, uint32_t row) {
    const sl_cpu_attend *a = t->a;
    return a->pool + sl_plan_open_off(&a->k_open, t->open[row]) + t->head_kv * sl_open_head_bytes(a->head_dim);
}

static inline const uint8_t *open_v(const tile *t, uint32_t row) {
    const sl_cpu_attend *a = t->a;
    return a->pool + sl_plan_open_off(&a->v_open, t->open[row]) + t->head_kv * sl_open_head_bytes(a->v_dim);
}

// Asks for bytes that are wanted soon: V while scores are made, K of the next chunk before its turn. Heads are short
// pieces of blocks that lie anywhere, so the processor does not see them coming.
static inline void fetch(const uint8_t *p, uint64_t n_bytes) {
    for (uint64_t i = 0; i < n_bytes; i += 64) SL_PREFETCH(p + i);
}

#endif
