// SPDX-License-Identifier: MIT
// sl_test: MODULES backend quant os
//
// Weights in panel order (backend/cpu/repack.h) against the same weights in the order of the file: the same bits from
// every level, type and width, with a number of rows that fills no panel and columns that fill no block of
// activations. Bytes are random but finite: every block's scales come from real numbers.
#include "harness.h"

#include "backend/cpu/kernels/select.h"
#include "backend/cpu/repack.h"
#include "base/size.h"
#include "os/os.h"

enum { N_ROW = 37, N_MATRIX = 3, MAX_WIDTH = 9 };

static const sl_type types[] = {SL_TYPE_Q4_0,   SL_TYPE_Q4_1,   SL_TYPE_Q5_0, SL_TYPE_Q5_1, SL_TYPE_Q8_0,
                                SL_TYPE_Q2_K,   SL_TYPE_Q3_K,   SL_TYPE_Q4_K, SL_TYPE_Q5_K, SL_TYPE_Q6_K,
                                SL_TYPE_IQ4_NL, SL_TYPE_IQ4_XS, SL_TYPE_MXFP4};

// Any bytes, but none with the exponent bits that make an infinity or NaN of a scale wherever it lies.
static void fill(uint8_t *p, size_t n_bytes) {
    test_random_bytes(p, n_bytes);
    for (size_t i = 0; i < n_bytes; i++) p[i] &= 0xbf;
}

typedef struct rig {
    sl_plan_weight weight[N_MATRIX];
    const void *data[N_MATRIX];
    sl_plan plan;
    sl_pool *pool;
    sl_repack *repack;
} rig;

// The same type three times, so that the copies lie behind one another; only the outer two are asked for.
static void open_rig(rig *r, sl_type type, uint32_t n_col, int n_thread) {
    *r = (rig){.plan = {.weight = r->weight, .n_weight = N_MATRIX}};
    for (int i = 0; i < N_MATRIX; i++) {
        sl_plan_weight *w = &r->weight[i];
        *w = (sl_plan_weight){.type = (uint8_t)type, .n_row = N_ROW + 16 * (uint32_t)i, .n_col = n_col};
        w->n_bytes = w->n_row * sl_type_row_bytes(sl_type_find(type), n_col);
        w->copy_bytes = i == 1 ? 0 : sl_repack_bytes(w);
        r->plan.copy_bytes += w->copy_bytes;
        uint8_t *data = test_guarded(w->n_bytes);
        fill(data, w->n_bytes);
        r->data[i] = data;
    }
    REQUIRE_OK(sl_pool_create(&r->pool, n_thread), sl_error_text());
    sl_program_memory memory = {.weight = r->data};
    REQUIRE_OK(sl_repack_create(&r->repack, &r->plan, &memory, r->pool, false), sl_error_text());
    CHECK(sl_repack_find(r->repack, r->data[1]) == NULL);
}

static void close_rig(rig *r) {
    sl_repack_destroy(r->repack);
    sl_pool_destroy(r->pool);
}

static void compare(const sl_cpu_kernels *k, const rig *r, int i, uint32_t width) {
    const sl_plan_weight *w = &r->weight[i];
    uint64_t act_stride = sl_act16_row_bytes(w->n_col), out_stride = w->n_row * sizeof(float);
    uint8_t *act = test_guarded(width * act_stride);
    float *in = test_guarded(w->n_col * sizeof(float)), *out[2];
    for (uint32_t row = 0; row < width; row++) {
        for (uint32_t c = 0; c < w->n_col; c++) in[c] = (float)test_normal();
        k->quant(act + row * act_stride, in, w->n_col);
    }
    void *scratch = test_guarded(sl_round_up(k->matmul_scratch_bytes((sl_type)w->type, w->n_col, width), 64));
    for (int packed = 0; packed < 2; packed++) {
        out[packed] = test_guarded(width * out_stride);
        sl_cpu_matmul m = {.weight = packed ? sl_repack_find(r->repack, r->data[i]) : r->data[i],
                           .packed = packed,
                           .w_row_bytes = w->n_bytes / w->n_row,
                           .act = act,
                           .act_stride = act_stride,
                           .out = out[packed],
                           .out_stride = out_stride,
                           .n_row = width,
                           .n_col = w->n_col,
                           .n_out = w->n_row};
        REQUIRE(m.weight);
        k->matmul[w->type](&m, 0, 16, scratch);
        k->matmul[w->type](&m, 16, w->n_row, scratch);
    }
    if (memcmp(out[0], out[1], width * out_stride) != 0)
        test_failed(__FILE__, __LINE__, "%s, %s, %u columns, %u rows: other bits in panel order", k->level,
                    sl_type_name((sl_type)w->type), w->n_col, width);
}

TEST(panel_order_gives_the_same_bits) {
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        static const uint32_t columns[] = {32, 256, 576, 896, 1280};
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            if (columns[c] % sl_type_find(types[t])->blk_len) continue;
            rig r;
            open_rig(&r, types[t], columns[c], 1 + (int)(c % 3));
            const char *level;
            for (int l = 0; (level = sl_cpu_level_name(l)) != NULL; l++) {
                sl_cpu_kernels k;
                if (sl_cpu_kernels_select(&k, sl_cpu_features(), level) != SL_OK) break;
                compare(&k, &r, 0, 1);
                compare(&k, &r, 2, MAX_WIDTH);
            }
            close_rig(&r);
        }
    }
}

static int stop(void *user, uint64_t n, uint64_t total) {
    CHECK(n <= total);
    return --*(int *)user == 0;
}

TEST(copying_can_be_stopped) {
    rig r;
    open_rig(&r, SL_TYPE_Q8_0, 256, 2);
    sl_repack *other;
    int left = 1;
    sl_program_memory memory = {.weight = r.data, .progress = stop, .user = &left};
    CHECK_INT(sl_repack_create(&other, &r.plan, &memory, r.pool, false), SL_CANCELLED);
    CHECK(other == NULL);
    close_rig(&r);
}

TEST(float_weights_are_read_in_place) {
    CHECK_INT(sl_repack_bytes(&(sl_plan_weight){.type = SL_TYPE_F16, .n_row = 64, .n_col = 64}), 0);
    CHECK_INT(sl_repack_bytes(&(sl_plan_weight){.type = SL_TYPE_Q8_0, .n_row = 33, .n_col = 64}), 48 * 68);
}
