// SPDX-License-Identifier: MIT
// sl_test: MODULES backend quant os
//
// The matrix products and the activation quantiser of every level that this processor has, against double precision and
// against each other: all levels, widths and ranges must agree to the bit. Weights, activations, results and scratch
// lie against inaccessible pages. With --bench: GB/s of weights and GMAC/s of one thread, with weights in panel order
// (BENCH_ORDER=file: in that of the file) on huge pages; BENCH_LEVEL and BENCH_TYPE choose.
#include <time.h>

#include "harness.h"
#include "backend/cpu/kernels/matmul.h"
#include "backend/cpu/kernels/select.h"
#include "base/compiler.h"
#include "base/half.h"
#include "os/os.h"
#include "quant/quant.h"

enum { MAX_OUT = 33, MAX_ROWS = 64, MAX_LEVELS = 8 };

static const sl_type types[] = {
    SL_TYPE_Q4_0, SL_TYPE_Q4_1, SL_TYPE_Q5_0,   SL_TYPE_Q5_1,   SL_TYPE_Q8_0,  SL_TYPE_Q2_K, SL_TYPE_Q3_K, SL_TYPE_Q4_K,
    SL_TYPE_Q5_K, SL_TYPE_Q6_K, SL_TYPE_IQ4_NL, SL_TYPE_IQ4_XS, SL_TYPE_MXFP4, SL_TYPE_F32,  SL_TYPE_F16,  SL_TYPE_BF16,
};

static int levels(sl_cpu_kernels *k) {
    int n = 0;
    for (const char *name; n < MAX_LEVELS && (name = sl_cpu_level_name(n)) != NULL; n++)
        if (sl_cpu_kernels_select(&k[n], sl_cpu_features(), name) != SL_OK) break;
    return n;
}

static bool is_float(sl_type type) { return sl_type_find(type)->blk_len == 1; }
static bool has_minima(sl_type type) {
    return type == SL_TYPE_Q4_1 || type == SL_TYPE_Q5_1 || type == SL_TYPE_Q2_K || type == SL_TYPE_Q4_K ||
           type == SL_TYPE_Q5_K;
}

// ---- weights -----------------------------------------------------------------------------------------------

static void put16(uint8_t *p, uint16_t h) { memcpy(p, &h, 2); }

// Sets a block's d (and m or dmin).
static void set_scales(sl_type type, uint8_t *blk, float d, float m) {
    uint16_t hd = sl_f16_from_f32(d), hm = sl_f16_from_f32(m);
    switch (type) {
    case SL_TYPE_Q4_1:
    case SL_TYPE_Q5_1:
    case SL_TYPE_Q4_K:
    case SL_TYPE_Q5_K: put16(blk, hd), put16(blk + 2, hm); break;
    case SL_TYPE_Q2_K: put16(blk + 80, hd), put16(blk + 82, hm); break;
    case SL_TYPE_Q3_K: put16(blk + 108, hd); break;
    case SL_TYPE_Q6_K: put16(blk + 208, hd); break;
    case SL_TYPE_MXFP4: blk[0] = (uint8_t)(120 + (int)(d > 1 ? 10 : 10 * d)); break;
    default: put16(blk, hd); break;
    }
}

static void random_weights(sl_type type, uint8_t *out, size_t n_elem) {
    const sl_type_info *info = sl_type_find(type);
    for (size_t i = 0; i < n_elem / info->blk_len; i++, out += info->blk_bytes) {
        float x = (float)test_normal();
        if (type == SL_TYPE_F32) memcpy(out, &x, 4);
        else if (type == SL_TYPE_F16) put16(out, sl_f16_from_f32(x));
        else if (type == SL_TYPE_BF16) put16(out, sl_bf16_from_f32(x));
        else {
            test_random_bytes(out, info->blk_bytes);
            set_scales(type, out, (float)test_uniform() - 0.3f, (float)test_normal());
        }
    }
}

// All bytes the same (0, 127, 128, 255 or 0x88), the scales as large as they come.
static void extreme_weights(sl_type type, uint8_t *out, size_t n_elem) {
    static const uint8_t fill[] = {0, 127, 128, 255, 0x88};
    const sl_type_info *info = sl_type_find(type);
    for (size_t i = 0; i < n_elem / info->blk_len; i++, out += info->blk_bytes) {
        memset(out, fill[test_below(5)], info->blk_bytes);
        set_scales(type, out, test_below(2) ? 65504.0f : -65504.0f, test_below(2) ? 65504.0f : 0);
    }
}

// ---- one product, kept against guard pages -----------------------------------------------------------------

typedef struct problem {
    sl_type type;
    uint32_t n_col, n_out, n_row;
    uint8_t *weight, *act; // guarded
    uint64_t w_row_bytes, act_stride;
    double *want, *scale; // (n_row, n_out) result, and what its error is relative to
} problem;

static void fill_act(float *x, uint32_t n, uint32_t row) {
    double scale = row % 4 == 1 ? 1e-3 : row % 4 == 2 ? 3e4 : 1;
    for (uint32_t i = 0; i < n; i++) x[i] = (float)(test_normal() * scale);
    if (row == 3) memset(x, 0, n * sizeof *x);
    if (row == 5) // a full block at the limits
        for (uint32_t i = 0; i < n; i++) x[i] = i % 7 ? 1 : -1;
    if (row == 6) x[n / 2] = 1e6f;
}

static void decode_act(double *out, const uint8_t *row, uint32_t n_col) {
    uint32_t n_pad = (n_col + 255) / 256 * 256;
    const int8_t *hi = (const int8_t *)row, *lo = hi + n_pad;
    const float *d = (const float *)(const void *)(lo + n_pad);
    for (uint32_t i = 0; i < n_col; i++) out[i] = (double)d[i / 256] * (SL_ACT_BASE * hi[i] + lo[i]);
}

static void reference(problem *p) {
    float *w = calloc(p->n_col, sizeof *w);
    double *a = calloc((size_t)p->n_row * p->n_col, sizeof *a);
    for (uint32_t r = 0; r < p->n_row; r++) {
        const uint8_t *row = p->act + r * p->act_stride;
        if (is_float(p->type))
            for (uint32_t i = 0; i < p->n_col; i++) a[r * p->n_col + i] = ((const float *)(const void *)row)[i];
        else decode_act(a + (size_t)r * p->n_col, row, p->n_col);
    }
    p->want = test_guarded((size_t)p->n_row * p->n_out * sizeof(double));
    p->scale = test_guarded((size_t)p->n_row * p->n_out * sizeof(double));
    for (uint32_t o = 0; o < p->n_out; o++) {
        uint8_t *copy = malloc(p->w_row_bytes); // the decoder wants it aligned
        memcpy(copy, p->weight + o * p->w_row_bytes, p->w_row_bytes);
        sl_quant_decode(p->type, w, copy, p->n_col);
        free(copy);
        double top = 0;
        for (uint32_t i = 0; i < p->n_col; i++) top = fmax(top, fabs(w[i]));
        for (uint32_t r = 0; r < p->n_row; r++) {
            const double *x = a + (size_t)r * p->n_col;
            double sum = 0, scale = 0;
            // minima cancel against the rest: the error is relative to them, not to their difference
            for (uint32_t i = 0; i < p->n_col; i++)
                sum += w[i] * x[i], scale += (has_minima(p->type) ? top : fabs(w[i])) * fabs(x[i]);
            p->want[r * p->n_out + o] = sum, p->scale[r * p->n_out + o] = scale;
        }
    }
    free(w), free(a);
}

static problem make(const sl_cpu_kernels *k, sl_type type, uint32_t n_col, uint32_t n_out, uint32_t n_row,
                    bool extreme) {
    problem p = {.type = type, .n_col = n_col, .n_out = n_out, .n_row = n_row};
    p.w_row_bytes = sl_type_row_bytes(sl_type_find(type), n_col);
    p.weight = test_guarded(n_out * p.w_row_bytes);
    (extreme ? extreme_weights : random_weights)(type, p.weight, (size_t)n_out * n_col);
    uint64_t row_bytes = is_float(type) ? (uint64_t)n_col * 4 : sl_act16_row_bytes(n_col);
    p.act_stride = (row_bytes + 63) / 64 * 64;
    p.act = (uint8_t *)test_guarded((n_row - 1) * p.act_stride + row_bytes);
    float *x = calloc(n_col, sizeof *x);
    for (uint32_t r = 0; r < n_row; r++) {
        fill_act(x, n_col, r);
        if (is_float(type)) memcpy(p.act + r * p.act_stride, x, n_col * 4);
        else k->quant(p.act + r * p.act_stride, x, n_col);
    }
    free(x);
    reference(&p);
    return p;
}

// Runs the first n_row rows and n_out outputs; the result is dense, (n_row, n_out), guarded.
static float *product(const sl_cpu_kernels *k, const problem *p, const uint8_t *weight, uint32_t n_row,
                      uint32_t n_out) {
    float *out = test_guarded((size_t)n_row * n_out * sizeof *out);
    void *scratch = test_guarded(k->matmul_scratch_bytes(p->type, p->n_col, n_row) + 64);
    sl_cpu_matmul m = {.weight = weight,
                       .w_row_bytes = p->w_row_bytes,
                       .act = p->act,
                       .act_stride = p->act_stride,
                       .out = out,
                       .out_stride = n_out * sizeof *out,
                       .n_row = n_row,
                       .n_col = p->n_col,
                       .n_out = n_out};
    k->matmul[p->type](&m, 0, n_out, (uint8_t *)scratch + 64);
    return out;
}

static void check_near(const sl_cpu_kernels *k, const problem *p, const float *out, double bound) {
    for (uint32_t i = 0; i < p->n_row * p->n_out; i++)
        if (!(fabs(out[i] - p->want[i]) <= bound * p->scale[i]))
            test_failed(__FILE__, __LINE__, "%s %s, %u columns, row %u, output %u: %.9g, not %.9g: off by %.2g of %.2g",
                        k->level, sl_type_name(p->type), p->n_col, i / p->n_out, i % p->n_out, out[i], p->want[i],
                        fabs(out[i] - p->want[i]) / p->scale[i], bound);
}

static void check_same(const char *what, const sl_cpu_kernels *k, const problem *p, const float *got, const float *base,
                       uint32_t n_row, uint32_t n_out) {
    for (uint32_t r = 0; r < n_row; r++)
        for (uint32_t o = 0; o < n_out; o++)
            if (memcmp(&got[r * n_out + o], &base[r * p->n_out + o], sizeof(float)) != 0)
                test_failed(__FILE__, __LINE__,
                            "%s: %s %s, %u columns, %u rows, %u outputs: row %u, output %u is %.9g, not %.9g", what,
                            k->level, sl_type_name(p->type), p->n_col, n_row, n_out, r, o, got[r * n_out + o],
                            base[r * p->n_out + o]);
}

static const uint32_t widths[] = {1, 2, 3, 5, 8, 9, 17, 32, 64}, outs[] = {1, 15, 16, 17, 33};

// The bound: about 2^-24 for each of the 8 to 16 float additions of a block and the up to 8 blocks, at random signs.
static void check_type(sl_type type, uint32_t n_col, bool extreme) {
    sl_cpu_kernels k[MAX_LEVELS];
    int n_level = levels(k);
    problem p = make(&k[0], type, n_col, MAX_OUT, MAX_ROWS, extreme);
    const float *base = product(&k[0], &p, p.weight, MAX_ROWS, MAX_OUT);
    check_near(&k[0], &p, base, 1e-6);
    for (int l = 0; l < n_level; l++) {
        for (size_t i = 0; i < SL_COUNT(widths); i++)
            check_same("width", &k[l], &p, product(&k[l], &p, p.weight, widths[i], MAX_OUT), base, widths[i], MAX_OUT);
        for (size_t i = 0; i < SL_COUNT(outs); i++) {
            uint8_t *weight = test_guarded(outs[i] * p.w_row_bytes); // ends where the guard begins
            memcpy(weight, p.weight, outs[i] * p.w_row_bytes);
            for (uint32_t n_row = 1; n_row <= 6; n_row += 5)
                check_same("outputs", &k[l], &p, product(&k[l], &p, weight, n_row, outs[i]), base, n_row, outs[i]);
        }
        uint8_t *odd = malloc(MAX_OUT * p.w_row_bytes + 1); // no alignment may be taken for granted
        memcpy(odd + 1, p.weight, MAX_OUT * p.w_row_bytes);
        check_same("odd address", &k[l], &p, product(&k[l], &p, odd + 1, 2, MAX_OUT), base, 2, MAX_OUT);
        free(odd);
    }
}

static void check_family(bool super, bool extreme) {
    static const uint32_t plain_cols[] = {32, 96, 256, 288, 576, 640, 896, 1536}, k_cols[] = {256, 768, 1536};
    const size_t step = test_quick() ? 2 : 1;
    for (size_t t = 0; t < SL_COUNT(types); t++) {
        if (is_float(types[t]) || (sl_type_find(types[t])->blk_len == 256) != super) continue;
        if (super)
            for (size_t i = 0; i < SL_COUNT(k_cols); i += step) check_type(types[t], k_cols[i], extreme);
        else
            for (size_t i = 0; i < SL_COUNT(plain_cols); i += step) check_type(types[t], plain_cols[i], extreme);
    }
}

__attribute__((constructor)) static void allow_for_sanitizers(void) { test_set_timeout(300); }

TEST(plain_blocks) { check_family(false, false); }
TEST(super_blocks) { check_family(true, false); }
TEST(plain_blocks_at_the_limits) { check_family(false, true); }
TEST(super_blocks_at_the_limits) { check_family(true, true); }

TEST(float_weights) {
    static const uint32_t cols[] = {1, 7, 15, 16, 17, 64, 100, 576, 1000};
    for (size_t t = 0; t < SL_COUNT(types); t++)
        for (size_t i = 0; i < SL_COUNT(cols) && is_float(types[t]); i++) check_type(types[t], cols[i], false);
}

// ---- ranges, bias, add -------------------------------------------------------------------------------------

TEST(ranges_write_only_theirs) {
    sl_cpu_kernels k[MAX_LEVELS];
    int n_level = levels(k);
    static const uint32_t cuts[][2] = {{0, 16}, {16, 33}, {32, 33}, {0, 32}, {16, 32}, {0, 33}, {16, 16}};
    for (size_t t = 0; t < SL_COUNT(types); t++)
        for (int l = 0; l < n_level; l++) {
            problem p = make(&k[0], types[t], 512, MAX_OUT, 5, false);
            const float *base = product(&k[0], &p, p.weight, 5, MAX_OUT);
            void *scratch = test_guarded(k[l].matmul_scratch_bytes(p.type, p.n_col, 5) + 64);
            for (size_t c = 0; c < SL_COUNT(cuts); c++) {
                float out[5][48];
                memset(out, 0x55, sizeof out);
                sl_cpu_matmul m = {.weight = p.weight,
                                   .w_row_bytes = p.w_row_bytes,
                                   .act = p.act,
                                   .act_stride = p.act_stride,
                                   .out = out[0],
                                   .out_stride = sizeof out[0],
                                   .n_row = 5,
                                   .n_col = 512,
                                   .n_out = MAX_OUT};
                k[l].matmul[p.type](&m, cuts[c][0], cuts[c][1], (uint8_t *)scratch + 64);
                for (uint32_t r = 0; r < 5; r++)
                    for (uint32_t o = 0; o < 48; o++) {
                        bool in = o >= cuts[c][0] && o < cuts[c][1];
                        CHECK_INT(sl_f32_bits(out[r][o]), in ? sl_f32_bits(base[r * MAX_OUT + o]) : 0x55555555u);
                    }
            }
        }
}

TEST(bias_then_add) {
    sl_cpu_kernels k[MAX_LEVELS];
    int n_level = levels(k);
    for (size_t t = 0; t < SL_COUNT(types); t++)
        for (int l = 0; l < n_level; l++) {
            problem p = make(&k[0], types[t], 256, 20, 3, false);
            const float *base = product(&k[0], &p, p.weight, 3, 20);
            float bias[20], sum[3][20], want[3][20];
            for (uint32_t i = 0; i < 20; i++) bias[i] = (float)test_normal();
            for (uint32_t i = 0; i < 60; i++) {
                sum[i / 20][i % 20] = (float)test_normal();
                want[i / 20][i % 20] = (base[i] + bias[i % 20]) + sum[i / 20][i % 20];
            }
            void *scratch = test_guarded(k[l].matmul_scratch_bytes(p.type, p.n_col, 3) + 64);
            sl_cpu_matmul m = {.weight = p.weight,
                               .w_row_bytes = p.w_row_bytes,
                               .act = p.act,
                               .act_stride = p.act_stride,
                               .out = sum[0],
                               .out_stride = sizeof sum[0],
                               .bias = bias,
                               .add = sum[0],
                               .add_stride = sizeof sum[0],
                               .n_row = 3,
                               .n_col = 256,
                               .n_out = 20};
            k[l].matmul[p.type](&m, 0, 20, (uint8_t *)scratch + 64); // in place
            CHECK(memcmp(sum, want, sizeof want) == 0);
        }
}

TEST(what_is_not_finite_stays_in_its_row_or_output) {
    sl_cpu_kernels k[MAX_LEVELS];
    int n_level = levels(k);
    for (size_t t = 0; t < SL_COUNT(types); t++)
        for (int l = 0; l < n_level; l++) {
            sl_type type = types[t];
            problem p = make(&k[0], type, 512, 17, 6, false);
            const float *base = product(&k[l], &p, p.weight, 6, 17);
            float x[512];
            fill_act(x, 512, 0);
            x[300] = NAN;
            if (is_float(type)) memcpy(p.act + 4 * p.act_stride, x, sizeof x);
            else k[l].quant(p.act + 4 * p.act_stride, x, 512);
            uint8_t *row = p.weight + 2 * p.w_row_bytes;
            if (type == SL_TYPE_F32) memcpy(row, &(float){INFINITY}, 4);
            else if (type == SL_TYPE_BF16) put16(row, 0x7f80);
            else if (type == SL_TYPE_F16) put16(row, 0x7c00);
            else if (type != SL_TYPE_MXFP4) set_scales(type, row, INFINITY, 0);
            const float *out = product(&k[l], &p, p.weight, 6, 17);
            for (uint32_t r = 0; r < 6; r++)
                for (uint32_t o = 0; o < 17; o++) {
                    if (r == 4) CHECK(isnan(out[r * 17 + o]));
                    else if (o == 2 && type != SL_TYPE_MXFP4) CHECK(!isfinite(out[r * 17 + o]));
                    else CHECK_INT(sl_f32_bits(out[r * 17 + o]), sl_f32_bits(base[r * 17 + o]));
                }
        }
}

// ---- the quantiser -----------------------------------------------------------------------------------------

static void check_quant_row(const sl_cpu_kernels *k, const float *x, uint32_t n_col) {
    uint32_t n_pad = (n_col + 255) / 256 * 256;
    uint64_t n_bytes = 2 * n_pad + n_pad / 256 * 4 + n_pad / 16 * 4;
    uint8_t *row = test_guarded(n_bytes); // written to its last sum and not beyond
    float *in = test_guarded(n_col * sizeof *in);
    memcpy(in, x, n_col * sizeof *in);
    k->quant(row, in, n_col);
    const int8_t *hi = (const int8_t *)row, *lo = hi + n_pad;
    const float *d = (const float *)(const void *)(lo + n_pad);
    const int32_t *sum = (const int32_t *)(const void *)(d + n_pad / 256);
    for (uint32_t b = 0; b < n_pad / 256; b++) {
        float top = 0;
        bool finite = true;
        for (uint32_t i = 256 * b; i < SL_MIN(256 * b + 256, n_col); i++)
            top = fmaxf(top, fabsf(x[i])), finite = finite && isfinite(x[i]);
        if (!finite) CHECK(isnan(d[b]));
        else if (top < 1e-34f) CHECK(d[b] == 0);
        else if (top > 1e-33f) CHECK_NEAR(d[b] / top, 1.0 / 32639, 1e-9);
        for (uint32_t i = 256 * b; i < 256 * b + 256; i++) {
            int q = SL_ACT_BASE * hi[i] + lo[i];
            if (i >= n_col || !finite || top < 1e-34f) CHECK_INT(q, 0);
            else CHECK(fabs(x[i] - (double)d[b] * q) <= 0.505 * (double)d[b] || (top < 1e-33f && q == 0));
            CHECK(hi[i] != -128);
        }
    }
    for (uint32_t j = 0; j < n_pad / 16; j++) {
        int want = 0;
        for (uint32_t i = 16 * j; i < 16 * j + 16; i++) want += SL_ACT_BASE * hi[i] + lo[i];
        CHECK_INT(sum[j], want);
    }
    sl_cpu_kernels all[MAX_LEVELS];
    levels(all);
    uint8_t *same = test_guarded(n_bytes);
    all[0].quant(same, in, n_col);
    CHECK(memcmp(row, same, n_bytes) == 0);
}

TEST(quantiser) {
    sl_cpu_kernels k[MAX_LEVELS];
    int n_level = levels(k);
    static const uint32_t cols[] = {1, 31, 255, 256, 257, 576, 640, 896, 2048};
    static const float scales[] = {1, 1e-3f, 1e30f, 1e-30f, 1e-38f, 3.0e-34f, 4.0e-34f};
    for (int l = 0; l < n_level; l++)
        for (size_t c = 0; c < SL_COUNT(cols); c++)
            for (size_t s = 0; s < SL_COUNT(scales); s++) {
                float x[2048];
                for (uint32_t i = 0; i < cols[c]; i++) x[i] = (float)test_normal() * scales[s];
                check_quant_row(&k[l], x, cols[c]);
                for (uint32_t i = 0; i < cols[c]; i++)
                    x[i] = (float)((int)test_below(65536) - 32768); // ties of every kind
                x[0] = 32639;
                check_quant_row(&k[l], x, cols[c]);
                memset(x, 0, sizeof x);
                check_quant_row(&k[l], x, cols[c]);
                x[test_below(cols[c])] = s % 2 ? -3.4028234e38f : 3.4028234e38f;
                check_quant_row(&k[l], x, cols[c]);
                x[test_below(cols[c])] = s % 3 == 0 ? NAN : s % 3 == 1 ? INFINITY : -INFINITY;
                check_quant_row(&k[l], x, cols[c]);
            }
}

TEST(every_step_of_16_bits) {
    sl_cpu_kernels k[MAX_LEVELS];
    int n_level = levels(k);
    for (int l = 0; l < n_level; l++)
        for (int from = -32639; from <= 32639; from += 255) {
            float x[256] = {32639};
            uint8_t row[1024];
            for (int i = 1; i < 256; i++) x[i] = (float)SL_MIN(from + i - 1, 32639);
            k[l].quant(row, x, 256);
            for (int i = 0; i < 256; i++) CHECK_INT(SL_ACT_BASE * (int8_t)row[i] + (int8_t)row[256 + i], (int)x[i]);
        }
}

// ---- figures -----------------------------------------------------------------------------------------------

static double seconds(void) { // of this thread: others may share its core
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Seconds for n_row rows and `slice` outputs, walking over n_out of them twice: the tenth percentile of all slices,
// so that other programs on the machine count little.
static double slice_time(const sl_cpu_kernels *k, sl_cpu_matmul *m, sl_type type, uint32_t n_row, uint32_t slice,
                         uint32_t n_out, void *scratch) {
    static double t[4096];
    size_t n = 0;
    m->n_row = n_row, m->n_out = n_out;
    for (int pass = 0; pass < 2 || n < 8; pass++)
        for (uint32_t o = 0; o + slice <= n_out && n < SL_COUNT(t); o += slice) {
            double begin = seconds();
            k->matmul[type](m, o, o + slice, scratch);
            t[n++] = seconds() - begin;
        }
    qsort(t, n, sizeof *t, by_value);
    return t[n / 10];
}

TEST(figures) {
    if (!test_bench()) return;
    enum { N_COL = 4096, WIDE = 512, MEMORY = 256 << 20, SLICE = 4 << 20 };
    const char *only = getenv("BENCH_LEVEL"), *only_type = getenv("BENCH_TYPE"), *order = getenv("BENCH_ORDER");
    sl_cpu_kernels k[MAX_LEVELS];
    int n_level = levels(k);
    uint8_t *weight, *act = aligned_alloc(64, WIDE * sl_act16_row_bytes(N_COL));
    REQUIRE_OK(sl_pages_map(&weight, MEMORY, true, "the weights"), sl_error_text());
    float *x = malloc(WIDE * N_COL * sizeof *x), *out = malloc((size_t)WIDE * (MEMORY / 1344) * sizeof *out);
    for (uint32_t i = 0; i < WIDE * N_COL; i++) x[i] = (float)test_uniform() - 0.5f;
    printf("GB/s of weights in memory for 1, 4, 8 rows; in cache for 1 row; time of 4 and 8 rows over 1; %u rows\n",
           WIDE);
    printf("%-8s %-7s %8s %8s %8s %8s | %6s %6s | %7s\n", "level", "type", "1", "4", "8", "cache", "4/1", "8/1",
           "GMAC/s");
    for (int l = 0; l < n_level; l++)
        for (size_t t = 0; t < SL_COUNT(types); t++) {
            sl_type type = types[t];
            if (only && strcmp(only, k[l].level) != 0) continue;
            if (only_type && strcmp(only_type, sl_type_name(type)) != 0) continue;
            uint64_t row_bytes = sl_type_row_bytes(sl_type_find(type), N_COL);
            uint32_t slice = (uint32_t)(SLICE / row_bytes / 64 * 64), n_out = (uint32_t)(MEMORY / row_bytes / 64 * 64);
            if (l == 0) n_out = 2 * slice;           // the generic level is slow
            memset(weight, 0x33, n_out * row_bytes); // a fair number as every type's scale, in either order
            for (uint32_t r = 0; r < WIDE; r++) k[l].quant(act + r * sl_act16_row_bytes(N_COL), x + r * N_COL, N_COL);
            sl_cpu_matmul m = {.weight = weight,
                               .packed = !is_float(type) && !(order && !strcmp(order, "file")),
                               .w_row_bytes = row_bytes,
                               .act = act,
                               .act_stride = sl_act16_row_bytes(N_COL),
                               .out = out,
                               .out_stride = (uint64_t)n_out * 4,
                               .n_col = N_COL};
            if (is_float(type)) m.act = (const uint8_t *)x, m.act_stride = N_COL * 4;
            void *scratch = aligned_alloc(64, (k[l].matmul_scratch_bytes(type, N_COL, WIDE) + 127) / 64 * 64);
            double one = slice_time(&k[l], &m, type, 1, slice, n_out, scratch), bytes = (double)row_bytes * slice;
            double four = slice_time(&k[l], &m, type, 4, slice, n_out, scratch);
            double eight = slice_time(&k[l], &m, type, 8, slice, n_out, scratch);
            double cached = slice_time(&k[l], &m, type, 1, 64, 128, scratch) / 64;
            uint32_t wide = l == 0 ? 16 : WIDE;
            double many = slice_time(&k[l], &m, type, wide, 64, 256, scratch);
            printf("%-8s %-7s %8.2f %8.2f %8.2f %8.2f | %6.2f %6.2f | %7.1f\n", k[l].level, sl_type_name(type),
                   1e-9 * bytes / one, 1e-9 * bytes / four, 1e-9 * bytes / eight, 1e-9 * (double)row_bytes / cached,
                   four / one, eight / one, 1e-9 * wide * 64 * N_COL / many);
            fflush(stdout);
            free(scratch);
        }
    sl_pages_free(weight, MEMORY);
    free(x), free(act), free(out);
}
