// SPDX-License-Identifier: MIT
// sl_test: MODULES backend
//
// The attention kernels of every level against a reference in double: long texts over several
// chunks, windows, soft caps, odd sizes, shuffled blocks. Everything that a row must not see is
// NaN: positions after it, blocks that are not its own, positions that left the window. Scratch and
// output end at a guard page. Bits: a row alone, in a tile, with part of the heads, and on every
// level.
#include "harness.h"

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

// A sequence of n_pos positions, and its rows of q at the last n_row of them.
typedef struct scene {
    shape s;
    sl_type type;
    int32_t n_pos, n_row;
    float *k, *v, *q; // (n_pos, n_head_kv * dim), k and v rounded as the cache stores them
    uint8_t *k_pool, *v_pool;
    int32_t blk_table[2 * MAX_BLK]; // slot 0 is another sequence, slot 1 ours
    int32_t pos[MAX_POS], slot[MAX_POS];
    sl_cpu_attend a;
} scene;

static float *random_floats(size_t n, sl_type rounded_to) {
    float *f = malloc(n * sizeof *f);
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)test_normal();
        if (rounded_to == SL_TYPE_F16) f[i] = sl_f16_to_f32(sl_f16_from_f32(f[i]));
    }
    return f;
}

static void fill_pools(scene *c) {
    const shape *s = &c->s;
    uint32_t k_dim = s->n_head_kv * s->head_dim, v_dim = s->n_head_kv * s->v_dim;
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
    for (int32_t i = 0; i < c->n_pos; i++) {
        if (i < first_seen) continue; // stays NaN
        int32_t blk = c->blk_table[MAX_BLK + i / SL_KV_BLK_LEN];
        uint32_t at = (uint32_t)(i % SL_KV_BLK_LEN);
        levels[n_level - 1].kv_write[c->type](c->k_pool + (uint64_t)blk * c->a.k_blk_bytes, c->k + (size_t)i * k_dim,
                                              s->n_head_kv, s->head_dim, at, 0);
        levels[0].kv_write[c->type](c->v_pool + (uint64_t)blk * c->a.v_blk_bytes, c->v + (size_t)i * v_dim,
                                    s->n_head_kv, s->v_dim, at, 1);
    }
}

static scene *make_scene(const shape *s, sl_type type, int32_t n_pos, int32_t n_row) {
    scene *c = calloc(1, sizeof *c);
    c->s = *s, c->type = type, c->n_pos = n_pos, c->n_row = n_row;
    uint64_t elem = type == SL_TYPE_F16 ? 2 : 4;
    c->q = random_floats((size_t)n_row * s->n_head * s->head_dim, SL_TYPE_F32);
    c->k = random_floats((size_t)n_pos * s->n_head_kv * s->head_dim, type);
    c->v = random_floats((size_t)n_pos * s->n_head_kv * s->v_dim, type);
    for (int32_t i = 0; i < n_row; i++) c->pos[i] = n_pos - n_row + i, c->slot[i] = 1;
    c->a = (sl_cpu_attend){.q = c->q,
                           .q_stride = s->n_head * s->head_dim * sizeof(float),
                           .out_stride = s->n_head * s->v_dim * sizeof(float),
                           .k_blk_bytes = SL_KV_BLK_LEN * elem * s->n_head_kv * s->head_dim,
                           .v_blk_bytes = SL_KV_BLK_LEN * elem * s->n_head_kv * s->v_dim,
                           .pos = c->pos,
                           .slot = c->slot,
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

static void free_scene(scene *c) { free(c->q), free(c->k), free(c->v), free(c); }

// One query head of one row, in double.
static void reference(double *out, const scene *c, int32_t row, uint32_t head) {
    static double weight[MAX_POS];
    const shape *s = &c->s;
    uint32_t head_kv = head / (s->n_head / s->n_head_kv);
    int32_t last = c->pos[row], first = s->window && last + 1 > (int32_t)s->window ? last + 1 - (int32_t)s->window : 0;
    const float *q = c->q + ((size_t)row * s->n_head + head) * s->head_dim;
    double max = -INFINITY, sum = 0;
    for (int32_t p = first; p <= last; p++) {
        const float *k = c->k + ((size_t)p * s->n_head_kv + head_kv) * s->head_dim;
        double score = 0;
        for (uint32_t d = 0; d < s->head_dim; d++) score += (double)q[d] * (double)k[d];
        score *= (double)c->a.scale;
        if (s->softcap > 0) score = (double)s->softcap * tanh(score / (double)s->softcap);
        weight[p] = score;
        max = fmax(max, score);
    }
    for (uint32_t d = 0; d < s->v_dim; d++) out[d] = 0;
    for (int32_t p = first; p <= last; p++) {
        const float *v = c->v + ((size_t)p * s->n_head_kv + head_kv) * s->v_dim;
        double w = exp(weight[p] - max);
        sum += w;
        for (uint32_t d = 0; d < s->v_dim; d++) out[d] += w * (double)v[d];
    }
    for (uint32_t d = 0; d < s->v_dim; d++) out[d] /= sum;
}

// All rows in tiles of n_row rows and n_head query heads.
static float *run(const sl_cpu_kernels *k, const scene *c, int32_t n_row, uint32_t n_head) {
    sl_cpu_attend a = c->a;
    a.out = test_guarded((size_t)c->n_row * a.out_stride);
    uint32_t group = a.n_head / a.n_head_kv;
    for (int32_t row = 0; row < c->n_row; row += n_row)
        for (uint32_t head_kv = 0; head_kv < a.n_head_kv; head_kv++)
            for (uint32_t h = 0; h < group; h += n_head) {
                int32_t row_end = row + n_row < c->n_row ? row + n_row : c->n_row;
                uint32_t end = h + n_head < group ? h + n_head : group, n_query = (uint32_t)(row_end - row) * (end - h);
                size_t n_bytes = (k->attend_scratch_bytes(n_query, a.v_dim) + 63) / 64 * 64; // keeps it aligned
                static uint8_t *scratch;
                static size_t scratch_bytes;
                if (n_bytes != scratch_bytes) scratch = test_guarded(scratch_bytes = n_bytes);
                memset(scratch, 0xff, n_bytes);
                k->attend[c->type](&a, (uint32_t)row, (uint32_t)row_end, head_kv * group + h, head_kv * group + end,
                                   scratch);
            }
    return a.out;
}

// Scores are sums of head_dim products of size 1, over sqrt(head_dim): off by a few 1e-7; the sums
// of V likewise.
static const double BOUND = 4e-6;

static void check_values(const scene *c, const float *out, const char *level) {
    static double want[512];
    for (int32_t row = 0; row < c->n_row; row++)
        for (uint32_t head = 0; head < c->s.n_head; head++) {
            reference(want, c, row, head);
            for (uint32_t d = 0; d < c->s.v_dim; d++) {
                float got = out[((size_t)row * c->s.n_head + head) * c->s.v_dim + d];
                if (!(fabs((double)got - want[d]) <= BOUND))
                    test_failed(__FILE__, __LINE__, "%s %s: position %d head %u dim %u is %.8g, not %.8g", level,
                                sl_type_name(c->type), c->pos[row], head, d, (double)got, want[d]);
            }
        }
}

static void check(shape s, int32_t n_pos, int32_t n_row) {
    find_levels();
    for (int t = 0; t < 2; t++) {
        scene *c = make_scene(&s, t ? SL_TYPE_F16 : SL_TYPE_F32, n_pos, n_row);
        uint32_t group = s.n_head / s.n_head_kv, most = group < SL_CPU_TILE_QUERIES ? group : SL_CPU_TILE_QUERIES;
        size_t n_bytes = (size_t)n_row * c->a.out_stride;
        float *base = run(&levels[0], c, 1, 1);
        check_values(c, base, names[0]);
        for (int l = 0; l < n_level; l++) {
            if (l > 0 && levels[l].attend[c->type] == levels[l - 1].attend[c->type]) continue; // the lower level's
            const struct {
                int32_t n_row;
                uint32_t n_head;
            } tiles[] = {{1, 1}, {1, most}, {2, most / 2 ? most / 2 : 1}, {SL_CPU_TILE_QUERIES / (int32_t)most, most},
                         {5, 1}, {32, 1}};
            for (size_t i = 0; i < SL_COUNT(tiles); i++) {
                if ((uint32_t)tiles[i].n_row * tiles[i].n_head > SL_CPU_TILE_QUERIES) continue;
                float *out = run(&levels[l], c, tiles[i].n_row, tiles[i].n_head);
                if (memcmp(out, base, n_bytes) != 0)
                    test_failed(__FILE__, __LINE__, "%s %s: other bits in tiles of %d rows, %u heads", names[l],
                                sl_type_name(c->type), tiles[i].n_row, tiles[i].n_head);
            }
        }
        free_scene(c);
    }
}

TEST(short_texts) {
    for (int32_t n = 1; n <= 70; n += 23) check((shape){4, 2, 64, 64, 0, 0}, n, n);
}
TEST(grouped_heads_over_chunks) { check((shape){14, 2, 64, 64, 0, 0}, 600, test_quick() ? 7 : 40); }
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
    check((shape){4, 2, 32, 32, 1, 0}, 300, 20);
    check((shape){4, 2, 32, 32, 31, 0}, 300, 40);
    check((shape){4, 2, 32, 48, 32, 0}, 290, 40);
    check((shape){4, 4, 32, 32, 33, 0}, 290, 40);
    check((shape){4, 1, 32, 32, 256, 0}, 1000, 20);
    check((shape){4, 1, 32, 32, 300, 0}, 530, 40);
    check((shape){4, 1, 32, 32, 5000, 0}, 270, 20);
}
TEST(soft_caps) {
    check((shape){4, 2, 64, 64, 0, 50}, 300, 10);
    check((shape){4, 2, 64, 64, 17, 0.5f}, 300, 10);
}

// Scores far apart: all weight on one position, the others underflow.
TEST(extreme_scores) {
    find_levels();
    scene *c = make_scene(&(shape){1, 1, 16, 16, 0, 0}, SL_TYPE_F32, 700, 3);
    c->a.scale = 1000;
    for (int l = 0; l < n_level; l++) check_values(c, run(&levels[l], c, 3, 1), names[l]);
    c->a.scale = 0; // all alike: the mean
    for (int l = 0; l < n_level; l++) check_values(c, run(&levels[l], c, 3, 1), names[l]);
    free_scene(c);
}

// A NaN or an infinity in V reaches the rows that see it and no other, in tiles too.
TEST(bad_values_reach_only_those_who_see_them) {
    find_levels();
    for (int l = 0; l < n_level; l++) {
        scene *c = make_scene(&(shape){2, 1, 16, 16, 0, 0}, SL_TYPE_F16, 290, 16);
        float *v = random_floats(16, SL_TYPE_F16);
        v[3] = INFINITY, v[4] = NAN;
        int32_t blk = c->blk_table[MAX_BLK + 280 / SL_KV_BLK_LEN];
        levels[0].kv_write[SL_TYPE_F16](c->v_pool + (uint64_t)blk * c->a.v_blk_bytes, v, 1, 16, 280 % SL_KV_BLK_LEN, 1);
        float *out = run(&levels[l], c, 16, 2);
        for (int32_t row = 0; row < 16; row++)
            for (int d = 0; d < 16; d++) {
                float x = out[row * 32 + d];
                bool bad = c->pos[row] >= 280 && (d == 3 || d == 4);
                if (bad == (bool)isfinite(x))
                    test_failed(__FILE__, __LINE__, "%s: position %d dim %d is %g", names[l], c->pos[row], d,
                                (double)x);
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
            levels[l].kv_write[SL_TYPE_F16]((uint8_t *)blk, in, 1, 48, 7, 1);
            for (uint32_t i = 0; i < 48; i++) {
                uint16_t got = blk[7 * 48 + i], want = sl_f16_from_f32(in[i]);
                if (isnan(in[i]) ? !isnan(sl_f16_to_f32(got)) : got != want)
                    test_failed(__FILE__, __LINE__, "%s: %g is stored as %04x, not %04x", names[l], (double)in[i], got,
                                want);
            }
        }
    }
}

TEST(times) {
    if (!test_bench()) return;
    find_levels();
    static const struct { int32_t n_pos, n_row; } runs[] = {{256, 1}, {2000, 1}, {2000, 8}, {2000, 512}};
    for (int l = 0; l < n_level; l++)
        for (size_t i = 0; i < SL_COUNT(runs); i++) {
            scene *c = make_scene(&(shape){14, 2, 64, 64, 0, 0}, SL_TYPE_F16, runs[i].n_pos, runs[i].n_row);
            int n = runs[i].n_row > 8 ? 2 : 20;
            uint64_t start = sl_clock_ns();
            for (int j = 0; j < n; j++) run(&levels[l], c, runs[i].n_row == 1 ? 1 : 4, 7);
            double ns = (double)(sl_clock_ns() - start) / n;
            double n_mac = 14.0 * 128 * runs[i].n_row * (runs[i].n_pos - runs[i].n_row / 2.0);
            printf("    %s: %d rows at %d positions: %.1f us, %.1f GMAC/s\n", names[l], runs[i].n_row, runs[i].n_pos,
                   ns * 1e-3, n_mac / ns);
            free_scene(c);
        }
}
