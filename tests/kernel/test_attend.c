// SPDX-License-Identifier: MIT
// sl_test: MODULES backend
//
// The attention kernels of every level against a reference in double: long texts over several
// chunks, windows, soft caps, odd sizes, shuffled blocks. Everything that a row must not see is
// NaN: positions after it, blocks that are not its own, positions that left the window. Scratch and
// output end at a guard page. Bits: a row alone, in a tile, with part of the heads, and on every
// level. Caches of codes are compared with what their codes stand for, which is defined elsewhere
// (quant/kv_codec.h) and compared to the bit.
#include "harness.h"

#include "backend/cpu/kernels/kv_tile.h"
#include "backend/cpu/kernels/select.h"
#include "base/half.h"
#include "os/os.h"

enum { MAX_BLK = 64, MAX_POS = MAX_BLK * SL_KV_BLK_LEN };

enum { MAX_LEVELS = 8 };

static const char *names[MAX_LEVELS];
static sl_cpu_kernels levels[MAX_LEVELS];
static int n_level;

static void find_levels(void) {
    for (n_level = 0; n_level < MAX_LEVELS && (names[n_level] = sl_cpu_level_name(n_level)) != NULL; n_level++)
        if (sl_cpu_kernels_select(&levels[n_level], sl_cpu_features(), names[n_level]) != SL_OK) break;
}

typedef struct shape {
    uint32_t n_head, n_head_kv, head_dim, v_dim, window;
    float softcap;
} shape;

typedef struct cache {
    sl_type k, v;
    bool rotate;
} cache;

static const cache caches[] = {
    {SL_TYPE_F32, SL_TYPE_F32, false},  {SL_TYPE_F16, SL_TYPE_F16, false},  {SL_TYPE_BF16, SL_TYPE_F16, false},
    {SL_TYPE_F16, SL_TYPE_BF16, false}, {SL_TYPE_Q8_0, SL_TYPE_Q8_0, true}, {SL_TYPE_Q5_0, SL_TYPE_Q5_0, true},
    {SL_TYPE_Q4_0, SL_TYPE_Q4_0, true}, {SL_TYPE_Q8_0, SL_TYPE_Q4_0, true}, {SL_TYPE_Q4_0, SL_TYPE_F16, false},
    {SL_TYPE_F16, SL_TYPE_Q5_0, false},
};

// A sequence of n_pos positions, and its rows of q at the last n_row of them.
typedef struct scene {
    shape s;
    cache type;
    int32_t n_pos, n_row;
    float *k, *v, *q;        // (n_pos, n_head_kv * dim), what is given to the cache
    double *k_held, *v_held; // and what it then holds, rotated back
    double *k_own, *v_own;   // and what rows of the same block see
    uint8_t *k_pool, *v_pool, *open_pool;
    int32_t open[MAX_POS];
    int32_t blk_table[2 * MAX_BLK]; // slot 0 is another sequence, slot 1 ours
    int32_t pos[MAX_POS], slot[MAX_POS];
    sl_cpu_attend a;
} scene;

static float *random_floats(size_t n) {
    float *f = malloc(n * sizeof *f);
    for (size_t i = 0; i < n; i++) f[i] = (float)test_normal();
    return f;
}

static uint32_t rotation(sl_type type, bool rotate, uint32_t dim) {
    return rotate && sl_kv_code_bits(type) ? sl_kv_rotation(dim) : 0;
}

static void rotate_back(double *x, uint32_t n, uint32_t n_rot) {
    for (uint32_t first = 0; n_rot && first < n; first += n_rot) {
        double y[SL_KV_MAX_DIM] = {0};
        for (uint32_t i = 0; i < n_rot; i++)
            for (uint32_t k = 0; k < n_rot; k++) y[i] += __builtin_parity(i & k) ? -x[first + k] : x[first + k];
        for (uint32_t i = 0; i < n_rot; i++) x[first + i] = y[i] / sqrt(n_rot);
    }
}

// What a cache holds of a vector.
static void hold(double *out, const float *in, uint32_t dim, sl_type type, uint32_t n_rot) {
    float x[SL_KV_MAX_DIM];
    memcpy(x, in, dim * sizeof *x);
    sl_kv_rotate(x, dim, n_rot);
    for (uint32_t i = 0; i < dim; i++) {
        static uint8_t code[SL_KV_GROUP];
        static float d;
        if (sl_kv_code_bits(type) && i % SL_KV_GROUP == 0) d = sl_f16_to_f32(sl_kv_encode(type, code, x + i));
        out[i] = type == SL_TYPE_F32    ? (double)x[i]
                 : type == SL_TYPE_F16  ? (double)sl_f16_to_f32(sl_f16_from_f32(x[i]))
                 : type == SL_TYPE_BF16 ? (double)sl_bf16_to_f32(sl_bf16_from_f32(x[i]))
                                        : (double)d * sl_kv_level(type, code[i % SL_KV_GROUP]);
    }
    rotate_back(out, dim, n_rot);
}

static double *hold_all(const float *in, size_t n, uint32_t dim, sl_type type, uint32_t n_rot) {
    double *out = malloc(n * dim * sizeof *out);
    for (size_t i = 0; i < n; i++) hold(out + i * dim, in + i * dim, dim, type, n_rot);
    return out;
}

// What a block of K holds, channel by channel; of one that is not full nothing, as nobody may look.
static double *hold_channels(const float *in, int32_t n_pos, uint32_t n_col, sl_type type) {
    double *out = malloc((size_t)n_pos * n_col * sizeof *out);
    for (size_t i = 0; i < (size_t)n_pos * n_col; i++) out[i] = NAN;
    for (int32_t first = 0; first + SL_KV_BLK_LEN <= n_pos; first += SL_KV_BLK_LEN)
        for (uint32_t col = 0; col < n_col; col++) {
            float x[SL_KV_GROUP], d, least;
            uint8_t code[SL_KV_GROUP];
            for (int32_t i = 0; i < SL_KV_GROUP; i++)
                x[i] = sl_f16_to_f32(sl_f16_from_f32(in[(size_t)(first + i) * n_col + col]));
            sl_kv_grid_read(type, sl_kv_encode_channel(type, code, x), &d, &least);
            for (int32_t i = 0; i < SL_KV_GROUP; i++)
                out[(size_t)(first + i) * n_col + col] = (double)least + (double)d * code[i];
        }
    return out;
}

// One position of K and V, with the kernels of two levels.
static void write_position(scene *c, int32_t pos, const sl_cpu_kernels *of_k, const sl_cpu_kernels *of_v) {
    const shape *s = &c->s;
    uint32_t k_dim = s->n_head_kv * s->head_dim, v_dim = s->n_head_kv * s->v_dim;
    uint32_t at = (uint32_t)(pos % SL_KV_BLK_LEN);
    uint64_t blk = (uint64_t)c->blk_table[MAX_BLK + pos / SL_KV_BLK_LEN];
    uint8_t *k = c->k_pool + blk * c->a.k_blk_bytes, *v = c->v_pool + blk * c->a.v_blk_bytes;
    const float *in_k = c->k + (size_t)pos * k_dim, *in_v = c->v + (size_t)pos * v_dim;
    int32_t open = pos / SL_KV_BLK_LEN;
    if (sl_kv_code_bits(c->type.k)) {
        uint8_t *open_k = c->open_pool + sl_plan_open_off(&c->a.k_open, open);
        of_k->kv_write[SL_TYPE_F16](open_k, in_k, s->n_head_kv, s->head_dim, at, false, 0);
        if (at == SL_KV_BLK_LEN - 1)
            of_k->kv_close[c->type.k](k, (const uint16_t *)(const void *)open_k, s->n_head_kv, s->head_dim);
    } else {
        of_k->kv_write[c->type.k](k, in_k, s->n_head_kv, s->head_dim, at, false, 0);
    }
    of_v->kv_write[c->type.v](v, in_v, s->n_head_kv, s->v_dim, at, true, c->a.v_rot);
    if (sl_kv_code_bits(c->type.v))
        of_v->kv_write[SL_TYPE_F16](c->open_pool + sl_plan_open_off(&c->a.v_open, open), in_v, s->n_head_kv, s->v_dim,
                                    at, true, c->a.v_rot);
}

static void open_pools(scene *c) {
    const shape *s = &c->s;
    bool k = sl_kv_code_bits(c->type.k), v = sl_kv_code_bits(c->type.v);
    uint64_t k_bytes = s->n_head_kv * sl_open_head_bytes(s->head_dim),
             v_bytes = s->n_head_kv * sl_open_head_bytes(s->v_dim);
    if (k) c->a.k_open = (sl_plan_open){.blk_bytes = k_bytes, .step_off = 0};
    if (v) c->a.v_open = (sl_plan_open){.blk_bytes = v_bytes, .step_off = k ? MAX_BLK * k_bytes : 0};
    size_t n_bytes = MAX_BLK * ((k ? k_bytes : 0) + (v ? v_bytes : 0));
    if (n_bytes) memset(c->open_pool = test_guarded(n_bytes), 0xff, n_bytes);
    c->a.pool = c->open_pool;
}

static void fill_pools(scene *c) {
    const shape *s = &c->s;
    c->k_pool = test_guarded(MAX_BLK * c->a.k_blk_bytes);
    c->v_pool = test_guarded(MAX_BLK * c->a.v_blk_bytes);
    memset(c->k_pool, 0xff, MAX_BLK * c->a.k_blk_bytes);
    memset(c->v_pool, 0xff, MAX_BLK * c->a.v_blk_bytes);
    for (int32_t i = 0; i < MAX_BLK; i++) c->blk_table[MAX_BLK + i] = i;
    for (int32_t i = MAX_BLK - 1; i > 0; i--) {
        int32_t j = (int32_t)test_below((uint32_t)i + 1), *t = c->blk_table + MAX_BLK, x = t[i];
        t[i] = t[j], t[j] = x;
    }
    for (int32_t i = 0; i < MAX_BLK; i++) c->blk_table[i] = -1; // the kernel must not look at the other slot
    int32_t first_seen =
        s->window && c->n_pos - c->n_row + 1 > (int32_t)s->window ? c->n_pos - c->n_row + 1 - (int32_t)s->window : 0;
    // What is before stays NaN; but channels are whole blocks.
    if (sl_kv_code_bits(c->type.k)) first_seen -= first_seen % SL_KV_BLK_LEN;
    open_pools(c);
    for (int32_t i = first_seen; i < c->n_pos; i++) write_position(c, i, &levels[n_level - 1], &levels[0]);
}

static scene *make_scene(const shape *s, cache type, int32_t n_pos, int32_t n_row) {
    scene *c = calloc(1, sizeof *c);
    c->s = *s, c->type = type, c->n_pos = n_pos, c->n_row = n_row;
    uint64_t k_head_bytes = sl_kv_head_bytes(type.k, false, s->head_dim);
    uint64_t v_head_bytes = sl_kv_head_bytes(type.v, true, s->v_dim);
    uint32_t v_rot = rotation(type.v, type.rotate, s->v_dim);
    bool k_codes = sl_kv_code_bits(type.k), v_codes = sl_kv_code_bits(type.v);
    size_t n_kv = (size_t)n_pos * s->n_head_kv;
    c->q = random_floats((size_t)n_row * s->n_head * s->head_dim);
    c->k = random_floats(n_kv * s->head_dim);
    c->v = random_floats(n_kv * s->v_dim);
    c->k_own = hold_all(c->k, n_kv, s->head_dim, k_codes ? SL_TYPE_F16 : type.k, 0);
    c->v_own = hold_all(c->v, n_kv, s->v_dim, v_codes ? SL_TYPE_F16 : type.v, v_rot);
    c->k_held = k_codes ? hold_channels(c->k, n_pos, s->n_head_kv * s->head_dim, type.k)
                        : hold_all(c->k, n_kv, s->head_dim, type.k, 0);
    c->v_held = hold_all(c->v, n_kv, s->v_dim, type.v, v_rot);
    for (int32_t i = 0; i < n_row; i++)
        c->pos[i] = n_pos - n_row + i, c->slot[i] = 1, c->open[i] = c->pos[i] / SL_KV_BLK_LEN;
    c->a = (sl_cpu_attend){.q = c->q,
                           .q_stride = s->n_head * s->head_dim * sizeof(float),
                           .out_stride = s->n_head * s->v_dim * sizeof(float),
                           .k_blk_bytes = k_head_bytes * s->n_head_kv,
                           .v_blk_bytes = v_head_bytes * s->n_head_kv,
                           .k_head_bytes = k_head_bytes,
                           .v_head_bytes = v_head_bytes,
                           .v_rot = v_rot,
                           .type_k = (uint8_t)type.k,
                           .type_v = (uint8_t)type.v,
                           .cell = c->pos,
                           .slot = c->slot,
                           .open = c->open,
                           .blk_table = c->blk_table,
                           .blk_stride = MAX_BLK,
                           .n_head = s->n_head,
                           .n_head_kv = s->n_head_kv,
                           .head_dim = s->head_dim,
                           .v_dim = s->v_dim,
                           .window = s->window,
                           .scale = 1 / sqrtf((float)s->head_dim),
                           .softcap = s->softcap};
    fill_pools(c);
    c->a.k = c->k_pool, c->a.v = c->v_pool;
    return c;
}

static void free_scene(scene *c) {
    free(c->q), free(c->k), free(c->v), free(c->k_held), free(c->v_held), free(c->k_own), free(c->v_own), free(c);
}

// One query head of one row, in double.
static void reference(double *out, const scene *c, int32_t row, uint32_t head) {
    static double weight[MAX_POS];
    const shape *s = &c->s;
    uint32_t head_kv = head / (s->n_head / s->n_head_kv);
    int32_t last = c->pos[row], first = s->window && last + 1 > (int32_t)s->window ? last + 1 - (int32_t)s->window : 0;
    const float *q = c->q + ((size_t)row * s->n_head + head) * s->head_dim;
    double max = -INFINITY, sum = 0;
    for (int32_t p = first; p <= last; p++) {
        const double *k = (p / SL_KV_BLK_LEN == last / SL_KV_BLK_LEN ? c->k_own : c->k_held) +
                          ((size_t)p * s->n_head_kv + head_kv) * s->head_dim;
        double score = 0;
        for (uint32_t d = 0; d < s->head_dim; d++) score += (double)q[d] * k[d];
        score *= (double)c->a.scale;
        if (s->softcap > 0) score = (double)s->softcap * tanh(score / (double)s->softcap);
        weight[p] = score;
        max = fmax(max, score);
    }
    for (uint32_t d = 0; d < s->v_dim; d++) out[d] = 0;
    for (int32_t p = first; p <= last; p++) {
        const double *v = (p / SL_KV_BLK_LEN == last / SL_KV_BLK_LEN ? c->v_own : c->v_held) +
                          ((size_t)p * s->n_head_kv + head_kv) * s->v_dim;
        double w = exp(weight[p] - max);
        sum += w;
        for (uint32_t d = 0; d < s->v_dim; d++) out[d] += w * v[d];
    }
    for (uint32_t d = 0; d < s->v_dim; d++) out[d] /= sum;
}

static void *scratch_of(size_t n_bytes) {
    static uint8_t *scratch;
    static size_t scratch_bytes;
    n_bytes = (n_bytes + 63) / 64 * 64; // keeps it aligned
    if (n_bytes != scratch_bytes) scratch = test_guarded(scratch_bytes = n_bytes);
    memset(scratch, 0xff, n_bytes);
    return scratch;
}

// One tile, whole or cut into spans of n_span chunks.
static void run_tile(const sl_cpu_kernels *k, const sl_cpu_attend *a, const sl_cpu_tile *tile, int32_t n_span) {
    uint32_t n_query = (tile->row_end - tile->row_begin) * (tile->head_end - tile->head_begin);
    void *scratch = scratch_of(k->attend_scratch_bytes(n_query, a->head_dim, a->v_dim));
    if (n_span == 0) {
        k->attend(a, tile, scratch);
        return;
    }
    int32_t first = a->cell[tile->row_begin], last = a->cell[tile->row_end - 1], window = (int32_t)a->window;
    first = window && first + 1 > window ? first + 1 - window : 0;
    int32_t n = last / SL_CPU_ATTEND_CHUNK - first / SL_CPU_ATTEND_CHUNK + 1;
    float *parts = test_guarded((size_t)n * k->attend_part_bytes(n_query, a->v_dim));
    for (int32_t begin = (n - 1) / n_span * n_span; begin >= 0; begin -= n_span)
        k->attend_span(a, tile, begin, begin + n_span < n ? begin + n_span : n, parts, scratch);
    k->attend_merge(a, tile, parts, scratch);
}

// All rows in tiles of n_row rows and n_head query heads.
static float *run_in(const sl_cpu_kernels *k, const scene *c, int32_t n_row, uint32_t n_head, int32_t n_span) {
    sl_cpu_attend a = c->a;
    a.out = test_guarded((size_t)c->n_row * a.out_stride);
    uint32_t group = a.n_head / a.n_head_kv;
    for (int32_t row = 0; row < c->n_row; row += n_row)
        for (uint32_t head_kv = 0; head_kv < a.n_head_kv; head_kv++)
            for (uint32_t h = 0; h < group; h += n_head) {
                int32_t row_end = row + n_row < c->n_row ? row + n_row : c->n_row;
                uint32_t end = h + n_head < group ? h + n_head : group;
                sl_cpu_tile tile = {(uint32_t)row, (uint32_t)row_end, head_kv * group + h, head_kv * group + end};
                run_tile(k, &a, &tile, n_span);
            }
    return a.out;
}

static float *run(const sl_cpu_kernels *k, const scene *c, int32_t n_row, uint32_t n_head) {
    return run_in(k, c, n_row, n_head, 0);
}

// Scores are sums of head_dim products of size 1, over sqrt(head_dim): off by a few 1e-7; the sums
// of V likewise. Against codes Q and the weights have 16 bits: Q is off by up to 1/65024 of the largest of its group,
// which makes a score off by 3e-5, and of thousands the worst by five times that; so is its weight, and V is up to 3.
// Eight bits of K or V are off by two hundred times that, halves by about as much.
static const double BOUND = 4e-6, BOUND_CODES = 4e-4;

static const char *cache_name(const cache *c) {
    static char name[64];
    snprintf(name, sizeof name, "%s/%s%s", sl_type_name(c->k), sl_type_name(c->v), c->rotate ? " rotated" : "");
    return name;
}

static void check_values(const scene *c, const float *out, const char *level) {
    static double want[512];
    double bound = sl_kv_code_bits(c->type.k) || sl_kv_code_bits(c->type.v) ? BOUND_CODES : BOUND;
    for (int32_t row = 0; row < c->n_row; row++)
        for (uint32_t head = 0; head < c->s.n_head; head++) {
            reference(want, c, row, head);
            for (uint32_t d = 0; d < c->s.v_dim; d++) {
                float got = out[((size_t)row * c->s.n_head + head) * c->s.v_dim + d];
                if (!(fabs((double)got - want[d]) <= bound))
                    test_failed(__FILE__, __LINE__, "%s %s: position %d head %u dim %u is %.8g, not %.8g", level,
                                cache_name(&c->type), c->pos[row], head, d, (double)got, want[d]);
            }
        }
}

static void check(shape s, int32_t n_pos, int32_t n_row) {
    find_levels();
    for (size_t t = 0; t < SL_COUNT(caches); t++) {
        if (sl_kv_code_bits(caches[t].k) && s.head_dim % SL_KV_GROUP != 0) continue;
        if (sl_kv_code_bits(caches[t].v) && s.v_dim % SL_KV_GROUP != 0) continue;
        scene *c = make_scene(&s, caches[t], n_pos, n_row);
        uint32_t group = s.n_head / s.n_head_kv, most = group < SL_CPU_TILE_QUERIES ? group : SL_CPU_TILE_QUERIES;
        size_t n_bytes = (size_t)n_row * c->a.out_stride;
        float *base = run(&levels[0], c, 1, 1);
        check_values(c, base, names[0]);
        for (int l = 0; l < n_level; l++) {
            if (l > 0 && levels[l].attend == levels[l - 1].attend) continue; // the lower level's
            const struct {
                int32_t n_row;
                uint32_t n_head;
                int32_t n_span;
            } tiles[] = {{1, 1, 0},
                         {1, most, 1},
                         {2, most / 2 ? most / 2 : 1, 0},
                         {SL_CPU_TILE_QUERIES / (int32_t)most, most, 0},
                         {5, 1, 2},
                         {32, 1, 0}};
            for (size_t i = 0; i < SL_COUNT(tiles); i++) {
                if ((uint32_t)tiles[i].n_row * tiles[i].n_head > SL_CPU_TILE_QUERIES) continue;
                float *out = run_in(&levels[l], c, tiles[i].n_row, tiles[i].n_head, tiles[i].n_span);
                if (memcmp(out, base, n_bytes) != 0)
                    test_failed(__FILE__, __LINE__, "%s %s: other bits in tiles of %d rows, %u heads, spans of %d",
                                names[l], cache_name(&c->type), tiles[i].n_row, tiles[i].n_head, tiles[i].n_span);
            }
        }
        free_scene(c);
    }
}

TEST(short_texts) {
    for (int32_t n = 1; n <= 70; n += 23) check((shape){4, 2, 64, 64, 0, 0}, n, n);
}
TEST(grouped_heads_over_chunks) { check((shape){14, 2, 64, 64, 0, 0}, 530, test_quick() ? 3 : 9); }
TEST(tile_across_a_chunk) { check((shape){3, 1, 32, 32, 0, 0}, 270, 30); }
TEST(a_full_chunk_and_one_more) { check((shape){2, 2, 16, 16, 0, 0}, 514, 5); }
TEST(large_heads) { check((shape){4, 1, 256, 256, 0, 0}, 300, test_quick() ? 4 : 9); }
TEST(odd_sizes) {
    check((shape){2, 1, 7, 5, 0, 0}, 100, 20);
    check((shape){3, 3, 80, 40, 0, 0}, 300, 3);
    check((shape){1, 1, 1, 1, 0, 0}, 40, 33);
    check((shape){2, 2, 96, 112, 0, 0}, 40, 3);
}
TEST(more_heads_than_a_tile) { check((shape){66, 2, 16, 33, 0, 0}, 290, 2); }
TEST(windows) {
    int32_t n_row = test_quick() ? 6 : 40;
    check((shape){4, 2, 32, 32, 1, 0}, 300, n_row / 2);
    check((shape){4, 2, 32, 32, 31, 0}, 300, n_row);
    check((shape){4, 2, 32, 48, 32, 0}, 290, n_row);
    check((shape){4, 4, 32, 32, 33, 0}, 290, n_row);
    check((shape){4, 1, 32, 32, 256, 0}, test_quick() ? 540 : 1000, n_row / 2);
    check((shape){4, 1, 32, 32, 300, 0}, 530, n_row);
    check((shape){4, 1, 32, 32, 5000, 0}, 270, n_row / 2);
}
TEST(soft_caps) {
    check((shape){4, 2, 64, 64, 0, 50}, 300, 10);
    check((shape){4, 2, 64, 64, 17, 0.5f}, 300, 10);
}

// Scores far apart: all weight on one position, the others underflow.
TEST(extreme_scores) {
    find_levels();
    scene *c = make_scene(&(shape){1, 1, 32, 32, 0, 0}, caches[0], 700, 3);
    c->a.scale = 1000;
    for (int l = 0; l < n_level; l++) check_values(c, run(&levels[l], c, 3, 1), names[l]);
    c->a.scale = 0; // all alike: the mean
    for (size_t i = 0; i < SL_COUNT(caches); i++) {
        free_scene(c);
        c = make_scene(&(shape){1, 1, 32, 32, 0, 0}, caches[i], 700, 3);
        c->a.scale = 0;
        for (int l = 0; l < n_level; l++) check_values(c, run(&levels[l], c, 3, 1), names[l]);
    }
    free_scene(c);
}

// A NaN or an infinity in V reaches the rows that see it and no other, in tiles too; of codes, all dims of its group.
TEST(bad_values_reach_only_those_who_see_them) {
    find_levels();
    for (int l = 0; l < n_level; l++)
        for (size_t t = 0; t < SL_COUNT(caches); t++) {
            scene *c = make_scene(&(shape){2, 1, 32, 32, 0, 0}, caches[t], 290, 16);
            float *v = random_floats(32);
            bool codes = sl_kv_code_bits(c->type.v) > 0, turned = c->a.v_rot > 0;
            v[3] = INFINITY, v[4] = NAN;
            memcpy(c->v + (size_t)280 * 32, v, 32 * sizeof *v);
            write_position(c, 280, &levels[l], &levels[l]);
            float *out = run(&levels[l], c, 16, 2);
            for (int32_t row = 0; row < 16; row++)
                for (int d = 0; d < 32; d++) {
                    float x = out[row * 64 + d];
                    bool own = c->pos[row] / SL_KV_BLK_LEN == 280 / SL_KV_BLK_LEN;
                    bool bad = c->pos[row] >= 280 && ((codes && (turned || !own)) || d == 3 || d == 4);
                    if (bad == (bool)isfinite(x))
                        test_failed(__FILE__, __LINE__, "%s %s: position %d dim %d is %g", names[l],
                                    cache_name(&c->type), c->pos[row], d, (double)x);
                }
            free(v);
            free_scene(c);
        }
}

TEST(halves_are_stored_as_defined) {
    find_levels();
    for (int l = 0; l < n_level; l++) {
        uint16_t *blk = test_guarded(2 * 32 * 48);
        for (uint32_t first = 0; first < 1u << 20; first += 48) {
            float in[48];
            for (uint32_t i = 0; i < 48; i++) {
                uint32_t bits =
                    first + i < 1u << 16 ? sl_f32_bits(sl_f16_to_f32((uint16_t)(first + i))) : (uint32_t)test_random();
                in[i] = sl_f32_from_bits(bits);
            }
            for (int brain = 0; brain < 2; brain++) {
                levels[l].kv_write[brain ? SL_TYPE_BF16 : SL_TYPE_F16]((uint8_t *)blk, in, 1, 48, 7, true, 0);
                for (uint32_t i = 0; i < 48; i++) {
                    uint16_t got = blk[7 * 48 + i], want = brain ? sl_bf16_from_f32(in[i]) : sl_f16_from_f32(in[i]);
                    float back = brain ? sl_bf16_to_f32(got) : sl_f16_to_f32(got);
                    if (isnan(in[i]) ? !isnan(back) : got != want)
                        test_failed(__FILE__, __LINE__, "%s: %g is stored as %04x, not %04x", names[l], (double)in[i],
                                    got, want);
                }
            }
        }
    }
}

// The code of (position, dim) in a tile, by the words of kv_tile.h.
static uint8_t code_at(const uint8_t *tile, uint32_t pos, uint32_t dim, int bits, bool is_v) {
    if (bits == 8)
        return is_v ? tile[128 * (pos / 4) + 4 * dim + pos % 4] ^ 0x80 : tile[128 * (dim / 4) + 4 * pos + dim % 4];
    uint8_t b = is_v ? tile[64 * (pos / 4) + 4 * (dim % 16) + pos % 4] : tile[128 * (dim / 4 % 4) + 4 * pos + dim % 4];
    uint8_t low = dim < 16 ? b & 15 : b >> 4;
    if (bits == 4) return low;
    const uint8_t *fifth = tile + 512;
    uint8_t f = is_v ? fifth[16 * (pos / 4) + 4 * (dim % 4) + pos % 4] : fifth[4 * pos + dim % 4];
    return (uint8_t)(low | (f >> dim / 4 & 1) << 4);
}

static void check_v(int l, sl_type type, const float *in, uint32_t dim, uint32_t pos) {
    static float x[SL_KV_MAX_DIM];
    int bits = sl_kv_code_bits(type);
    uint32_t n_group = dim / SL_KV_GROUP, n_rot = test_below(4) ? sl_kv_rotation(dim) : 0;
    size_t n_bytes = SL_KV_BLK_LEN * sl_type_row_bytes(sl_type_find(type), dim);
    uint8_t *blk = test_guarded(n_bytes);
    memset(blk, 0xa5, n_bytes);
    levels[l].kv_write[type](blk, in, 1, dim, pos, true, n_rot);
    memcpy(x, in, dim * sizeof *x);
    sl_kv_rotate(x, dim, n_rot);
    for (uint32_t g = 0; g < n_group; g++) {
        const uint8_t *tile = blk + g * n_bytes / n_group;
        uint8_t want[SL_KV_GROUP];
        uint16_t want_d = sl_kv_encode(type, want, x + g * SL_KV_GROUP), d;
        memcpy(&d, tile + n_bytes / n_group - 64 + 2 * pos, sizeof d);
        if (d != want_d)
            test_failed(__FILE__, __LINE__, "%s %s: scale %04x, not %04x", names[l], sl_type_name(type), d, want_d);
        for (uint32_t i = 0; i < SL_KV_GROUP; i++) {
            uint8_t got = code_at(tile, pos, i, bits, true);
            if (got != want[i])
                test_failed(__FILE__, __LINE__, "%s %s V: code %u of group %u is %u, not %u", names[l],
                            sl_type_name(type), i, g, got, want[i]);
        }
    }
}

// A full block of K, one head.
static void check_k(int l, sl_type type, const uint16_t *open, uint32_t dim) {
    int bits = sl_kv_code_bits(type);
    size_t n_bytes = sl_kv_head_bytes(type, false, dim), tile_bytes = n_bytes / (dim / SL_KV_GROUP);
    uint8_t *blk = test_guarded(n_bytes), want[SL_KV_GROUP];
    memset(blk, 0xa5, n_bytes);
    levels[l].kv_close[type](blk, open, 1, dim);
    for (uint32_t d = 0; d < dim; d++) {
        const uint8_t *tile = blk + d / SL_KV_GROUP * tile_bytes, *kept = tile + SL_KV_GROUP * SL_KV_GROUP / 8 * bits;
        uint32_t i = d % SL_KV_GROUP, size = bits == 8 ? 2 : 1, got = 0, second = 0;
        float x[SL_KV_GROUP];
        for (uint32_t p = 0; p < SL_KV_GROUP; p++) x[p] = sl_f16_to_f32(open[d * SL_KV_GROUP + p]);
        uint32_t want_kept = sl_kv_encode_channel(type, want, x);
        memcpy(&got, kept + size * i, size), memcpy(&second, kept + size * (SL_KV_GROUP + i), size);
        got |= second << 8 * size;
        if (got != want_kept)
            test_failed(__FILE__, __LINE__, "%s %s: grid %08x, not %08x", names[l], sl_type_name(type), got, want_kept);
        for (uint32_t p = 0; p < SL_KV_GROUP; p++)
            if (code_at(tile, p, i, bits, false) != want[p])
                test_failed(__FILE__, __LINE__, "%s %s K: code of position %u, dim %u is %u, not %u", names[l],
                            sl_type_name(type), p, d, code_at(tile, p, i, bits, false), want[p]);
    }
}

// No value is off by more than half a step, the ends of the channel included; a Q8_0 of less than 256 smallest steps of
// binary16 is a constant.
static void check_grid(sl_type type, const uint16_t *open) {
    uint8_t code[SL_KV_GROUP];
    float x[SL_KV_GROUP], d, least;
    const double constant = type == SL_TYPE_Q8_0 ? 255 * 0x1p-25 : 1e-9;
    for (int i = 0; i < SL_KV_GROUP; i++) x[i] = sl_f16_to_f32(open[i]);
    sl_kv_grid_read(type, sl_kv_encode_channel(type, code, x), &d, &least);
    for (int i = 0; i < SL_KV_GROUP; i++)
        if (isfinite(d) && !(fabs((double)x[i] - ((double)least + (double)d * code[i])) <= 0.57 * (double)d + constant))
            test_failed(__FILE__, __LINE__, "%s: %g is off by more than half of %g", sl_type_name(type), (double)x[i],
                        (double)d);
}

// To the bit on every level, whatever is written, and next to old bytes.
TEST(codes_are_stored_as_defined) {
    static const sl_type types[] = {SL_TYPE_Q8_0, SL_TYPE_Q5_0, SL_TYPE_Q4_0};
    static const uint32_t dims[] = {32, 64, 96, 256};
    find_levels();
    for (int i = 0; i < (test_quick() ? 200 : 2000); i++) {
        uint32_t dim = dims[i % 4], pos = test_below(SL_KV_BLK_LEN);
        float *in = random_floats(dim), scale = powf(10, (float)test_below(12) - 6);
        for (uint32_t k = 0; k < dim; k++) in[k] *= i % 7 == 6 ? 0 : k % 9 == 0 ? 30 * scale : scale;
        if (i % 50 == 49) in[test_below(dim)] = i % 100 == 99 ? NAN : -INFINITY;
        if (i % 50 == 48) in[test_below(dim)] = 3e38f;
        for (int l = 0; l < n_level; l++)
            for (size_t t = 0; t < SL_COUNT(types); t++) check_v(l, types[t], in, dim, pos);
        free(in);
    }
}

TEST(channels_are_stored_as_defined) {
    static const sl_type types[] = {SL_TYPE_Q8_0, SL_TYPE_Q5_0, SL_TYPE_Q4_0};
    find_levels();
    for (int i = 0; i < (test_quick() ? 100 : 1000); i++) {
        uint32_t dim = i % 2 ? 32 : 96;
        uint16_t open[96 * SL_KV_BLK_LEN];
        for (uint32_t d = 0; d < dim; d++) {
            double scale = pow(10, (double)test_below(13) - 8), bias = test_below(3) ? test_normal() * scale * 20 : 0;
            for (uint32_t p = 0; p < SL_KV_BLK_LEN; p++)
                open[d * SL_KV_BLK_LEN + p] =
                    sl_f16_from_f32((float)(d % 7 == 6 ? bias : test_normal() * scale + bias));
            if (test_below(40) == 0) open[d * SL_KV_BLK_LEN + 5] = test_below(2) ? 0x7e00 : 0xfc00;
            for (size_t t = 0; t < SL_COUNT(types); t++) check_grid(types[t], open + d * SL_KV_BLK_LEN);
        }
        for (int l = 0; l < n_level; l++)
            for (size_t t = 0; t < SL_COUNT(types); t++) check_k(l, types[t], open, dim);
    }
}

// No code is worse than its type promises: half a step for normal values, rotated or not.
TEST(codes_are_close) {
    static const sl_type types[] = {SL_TYPE_Q8_0, SL_TYPE_Q5_0, SL_TYPE_Q4_0};
    static const double most[] = {0.00004, 0.0019, 0.0068}; // of the mean square; GGUF's formulas: 0.0074 with 4 bits
    for (size_t t = 0; t < SL_COUNT(types); t++) {
        double sum = 0, error = 0;
        for (int i = 0; i < 2000; i++) {
            float *in = random_floats(128);
            double out[128];
            hold(out, in, 128, types[t], i % 2 ? 128 : 0);
            for (int k = 0; k < 128; k++)
                sum += (double)in[k] * (double)in[k], error += ((double)in[k] - out[k]) * ((double)in[k] - out[k]);
            free(in);
        }
        if (!(error / sum < most[t]))
            test_failed(__FILE__, __LINE__, "%s: mean squared error %g", sl_type_name(types[t]), error / sum);
    }
}

TEST(times) {
    if (!test_bench()) return;
    find_levels();
    static const struct { int32_t n_pos, n_row; } runs[] = {{2000, 1}, {2000, 8}, {2000, 512}};
    static const size_t which[] = {1, 4, 5, 6};
    for (int l = 1; l < n_level; l++)
        for (size_t i = 0; i < SL_COUNT(runs) * SL_COUNT(which); i++) {
            size_t r = i / SL_COUNT(which);
            scene *c = make_scene(&(shape){14, 2, 64, 64, 0, 0}, caches[which[i % SL_COUNT(which)]], runs[r].n_pos,
                                  runs[r].n_row);
            int n = runs[r].n_row > 8 ? 2 : 20;
            uint64_t start = sl_clock_ns();
            for (int j = 0; j < n; j++) run(&levels[l], c, runs[r].n_row == 1 ? 1 : 4, 7);
            double ns = (double)(sl_clock_ns() - start) / n;
            double n_mac = 14.0 * 128 * runs[r].n_row * (runs[r].n_pos - runs[r].n_row / 2.0);
            printf("    %s %s: %d rows at %d positions: %.1f us, %.1f GMAC/s\n", names[l], cache_name(&c->type),
                   runs[r].n_row, runs[r].n_pos, ns * 1e-3, n_mac / ns);
            free_scene(c);
        }
}
