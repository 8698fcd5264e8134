// SPDX-License-Identifier: MIT
// sl_test: MODULES backend
//
// The row kernels of every level (norm, gate, add, cap, rotation, exp inside them) against formulas
// in double. Rows begin and end at guard pages, have odd lengths and odd alignment, and hold
// infinities, NaN, denormals and huge numbers. All levels give the same bits. Matrix products:
// test_matmul.c, attention: test_attend.c.
#include "harness.h"

#include "backend/cpu/kernels/select.h"
#include "base/half.h"
#include "os/os.h"

enum { MAX_LEVELS = 8 };

static const char *names[MAX_LEVELS];
static sl_cpu_kernels levels[MAX_LEVELS];
static int n_level;

static void find_levels(void) {
    for (n_level = 0; n_level < MAX_LEVELS && (names[n_level] = sl_cpu_level_name(n_level)) != NULL; n_level++)
        if (sl_cpu_kernels_select(&levels[n_level], sl_cpu_features(), names[n_level]) != SL_OK) break;
    CHECK(n_level >= 1);
}

static const uint32_t lengths[] = {1, 2, 15, 16, 17, 31, 33, 100, 896, 1001};

// n floats that end at a guard page, misaligned by one float if n is odd.
static float *floats(uint32_t n) { return test_guarded(n * sizeof(float)); }

typedef enum fill { NORMAL, LARGE, TINY, BITS, N_FILL } fill;

static void fill_with(float *x, uint32_t n, fill f) {
    for (uint32_t i = 0; i < n; i++) {
        double v = test_normal();
        x[i] = f == NORMAL  ? (float)v
               : f == LARGE ? (float)(v * 1e38)
               : f == TINY  ? (float)(v * 1e-40)
                            : sl_f32_from_bits((uint32_t)test_random());
    }
}

// Relative to the value; equal infinities and two NaN are fine.
static void check_value(float got, double want, double relative, double absolute, const char *what, const char *level,
                        float x) {
    if (isnan(want) ? isnan(got) : (double)got == (double)(float)want) return;
    if (fabs((double)got - want) <= relative * fabs(want) + absolute) return;
    if (isinf(got) && fabs(want) > 3.4028e38) return;
    test_failed(__FILE__, __LINE__, "%s %s(%.9g) is %.9g, not %.9g", level, what, (double)x, (double)got, want);
}

// NaN payloads are not promised.
static bool same_bits(const float *a, const float *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (sl_f32_bits(a[i]) != sl_f32_bits(b[i]) && !(isnan(a[i]) && isnan(b[i]))) return false;
    return true;
}

// The first level's first result is kept; all others have to be the same.
static void check_bits(const float *out, uint32_t n, int level, bool keep, const char *what) {
    static float base[4096];
    if (level == 0 && keep) memcpy(base, out, n * sizeof *out);
    else if (!same_bits(base, out, n))
        test_failed(__FILE__, __LINE__, "%s: %s gives other bits, length %u", what, names[level], n);
}

// ---- norm ---------------------------------------------------------------------------------------

TEST(norm) {
    find_levels();
    for (size_t i = 0; i < SL_COUNT(lengths); i++)
        for (int f = 0; f < N_FILL; f++) {
            uint32_t n = lengths[i];
            float *x = floats(n), *w = floats(n), *out = floats(n);
            fill_with(x, n, (fill)f), fill_with(w, n, NORMAL);
            double sum = 0;
            for (uint32_t j = 0; j < n; j++) sum += (double)x[j] * (double)x[j];
            double scale = 1 / sqrt(sum / n + 1e-6f);
            for (int l = 0; l < n_level; l++) {
                levels[l].norm(out, x, w, n, n, 1e-6f);
                check_bits(out, n, l, true, "norm");
                // the scale is a float: below 1e-38 it loses digits, and with it the result; three
                // roundings otherwise
                for (uint32_t j = 0; j < n && f != BITS; j++)
                    check_value(out[j], (double)x[j] * scale * (double)w[j], f == LARGE ? 1e-6 : 3e-7,
                                f == LARGE ? 1e-6 : 3e-45, "norm", names[l], x[j]);
                memcpy(out, x, n * sizeof *out); // in place
                levels[l].norm(out, out, w, n, n, 1e-6f);
                check_bits(out, n, l, false, "norm in place");
            }
        }
}

TEST(norm_of_groups_is_norm_of_each) {
    find_levels();
    for (int l = 0; l < n_level; l++) {
        float *x = floats(5 * 48), *w = floats(48), *out = floats(5 * 48), *one = floats(48);
        fill_with(x, 5 * 48, NORMAL), fill_with(w, 48, NORMAL);
        x[50] = NAN, x[100] = INFINITY;
        levels[l].norm(out, x, w, 5 * 48, 48, 1e-5f);
        for (int g = 0; g < 5; g++) {
            levels[l].norm(one, x + 48 * g, w, 48, 48, 1e-5f);
            CHECK(same_bits(out + 48 * g, one, 48));
            for (int j = 0; j < 48; j++) CHECK(g == 1 || (g == 2 && j == 4) ? isnan(one[j]) : isfinite(one[j]));
        }
    }
}

// ---- gate ---------------------------------------------------------------------------------------

static double silu(double x) { return x / (1 + exp(-x)); }
static double gelu(double x) { return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x))); }

// Every exponent and both signs, eight mantissas each, against double.
static void check_gate(uint8_t act, double (*want)(double), const char *what) {
    enum { N = 16 * 256 };
    find_levels();
    static float x[N], one[N], out[N];
    for (int part = 0; part < 8; part++) {
        for (int i = 0; i < N; i++)
            one[i] = 1, x[i] = sl_f32_from_bits((uint32_t)(i * 8 + part) << 17 | (uint32_t)(test_random() & 0x1ffff));
        for (int l = 0; l < n_level; l++) {
            levels[l].glu(out, x, one, N, act);
            check_bits(out, N, l, true, what);
            for (int i = 0; i < N; i++) {
                if (isinf(x[i])) continue; // -inf * 0 is NaN, here as in ref; see below
                // GELU rounds u = x + ..., and e^-2u grows that error by |2u|; only the far tail is
                // touched
                double grow = act == SL_ACT_SILU
                                  ? 0
                                  : fmin(fabs(2 * 0.8 * ((double)x[i] + 0.0447 * pow((double)x[i], 3))), 200) * 2e-7;
                check_value(out[i], want((double)x[i]), 4e-7 + grow, 3e-37, what, names[l], x[i]);
            }
        }
    }
    float edge[5] = {INFINITY, -INFINITY, NAN, 0, -0.0f}, ones[5] = {1, 1, 1, 1, 1}, got[5];
    for (int l = 0; l < n_level; l++) {
        levels[l].glu(got, edge, ones, 5, act);
        CHECK(isinf(got[0]) && got[0] > 0);
        CHECK(isnan(got[1]) && isnan(got[2])); // a broken activation stays visible
        CHECK(got[3] == 0 && got[4] == 0);
    }
}

TEST(gate_silu) { check_gate(SL_ACT_SILU, silu, "silu"); }
TEST(gate_gelu) { check_gate(SL_ACT_GELU_TANH, gelu, "gelu"); }

TEST(rows_of_any_length_and_place) {
    find_levels();
    for (size_t i = 0; i < SL_COUNT(lengths); i++) {
        uint32_t n = lengths[i];
        float *x = floats(n), *y = floats(n), *out = floats(n);
        for (int f = 0; f < N_FILL; f++) {
            fill_with(x, n, (fill)f), fill_with(y, n, NORMAL);
            for (int l = 0; l < n_level; l++) {
                levels[l].glu(out, x, y, n, SL_ACT_SILU), check_bits(out, n, l, true, "glu");
                memcpy(out, x, n * sizeof *x);
                levels[l].glu(out, out, y, n, SL_ACT_SILU), check_bits(out, n, l, false, "glu in place");
            }
            for (int l = 0; l < n_level; l++) {
                levels[l].add(out, x, y, n), check_bits(out, n, l, true, "add");
                for (uint32_t j = 0; j < n; j++) CHECK(out[j] == x[j] + y[j] || isnan(x[j]));
            }
            for (int l = 0; l < n_level; l++) levels[l].softcap(out, x, n, 30), check_bits(out, n, l, true, "softcap");
        }
    }
}

TEST(softcap_keeps_its_digits) {
    enum { N = 4096 };
    find_levels();
    static float x[N], out[N];
    for (int part = 0; part < 8; part++) {
        for (int i = 0; i < N; i++)
            x[i] = sl_f32_from_bits((uint32_t)(i * 8 + part) << 17 | (uint32_t)(test_random() & 0x1ffff));
        for (int l = 0; l < n_level; l++) {
            levels[l].softcap(out, x, N, 30);
            check_bits(out, N, l, true, "softcap");
            for (int i = 0; i < N; i++)
                check_value(out[i], 30 * tanh((double)x[i] / 30), 5e-7, 1e-43, "softcap", names[l], x[i]);
        }
    }
    float edge[4] = {INFINITY, -INFINITY, NAN, 0}, got[4];
    for (int l = 0; l < n_level; l++) {
        levels[l].softcap(got, edge, 4, 30);
        CHECK(got[0] == 30 && got[1] == -30 && isnan(got[2]) && got[3] == 0);
    }
}

// ---- rotation -----------------------------------------------------------------------------------

TEST(rope) {
    find_levels();
    static const sl_attr_rope shapes[] = {{1, 2, 2, 0},     {1, 2, 2, 1},   {3, 64, 64, 0}, {3, 64, 64, 1},
                                          {2, 80, 32, 0},   {2, 80, 32, 1}, {5, 34, 34, 0}, {5, 34, 34, 1},
                                          {2, 128, 128, 0}, {2, 7, 6, 0}};
    for (size_t i = 0; i < SL_COUNT(shapes); i++)
        for (int f = 0; f < N_FILL; f++) {
            const sl_attr_rope *a = &shapes[i];
            uint32_t n = a->n_head * a->head_dim, half = a->n_rot / 2;
            float *x = floats(n), *table = floats(a->n_rot), *out = floats(n);
            fill_with(x, n, (fill)f);
            for (uint32_t j = 0; j < half; j++)
                table[2 * j] = (float)cos(j + 0.5), table[2 * j + 1] = (float)sin(j + 0.5);
            for (int l = 0; l < n_level; l++) {
                levels[l].rope(out, x, table, a);
                check_bits(out, n, l, true, "rope");
                for (uint32_t p = 0; p < a->n_head * half && f == NORMAL; p++) {
                    uint32_t at = p / half * a->head_dim + (a->interleaved ? 2 : 1) * (p % half),
                             other = at + (a->interleaved ? 1 : half);
                    double c = (double)table[2 * (p % half)], s = (double)table[2 * (p % half) + 1];
                    check_value(out[at], (double)x[at] * c - (double)x[other] * s, 0, 1e-6, "rope", names[l], x[at]);
                    check_value(out[other], (double)x[at] * s + (double)x[other] * c, 0, 1e-6, "rope", names[l],
                                x[other]);
                }
                for (uint32_t h = 0; h < a->n_head; h++)
                    for (uint32_t d = a->n_rot; d < a->head_dim; d++)
                        CHECK(same_bits(out + h * a->head_dim + d, x + h * a->head_dim + d, 1));
                memcpy(out, x, n * sizeof *x);
                levels[l].rope(out, out, table, a), check_bits(out, n, l, false, "rope in place");
            }
        }
}

// ---- the table ----------------------------------------------------------------------------------

TEST(every_level_has_every_kernel) {
    find_levels();
    for (int l = 0; l < n_level; l++) {
        const sl_cpu_kernels *k = &levels[l];
        CHECK_TEXT(k->level, names[l]);
        CHECK(k->quant && k->norm && k->glu && k->add && k->softcap && k->rope && k->matmul_scratch_bytes &&
              k->attend_scratch_bytes && k->attend && k->attend_span && k->attend_merge && k->attend_part_bytes);
        for (uint32_t type = 0; type < SL_TYPE_ID_COUNT; type++) {
            const sl_type_info *info = sl_type_find(type);
            CHECK_INT(k->matmul[type] != NULL, info && info->computable);
            CHECK_INT(k->kv_write[type] != NULL, type == SL_TYPE_F32 || type == SL_TYPE_F16 || type == SL_TYPE_BF16 ||
                                                     type == SL_TYPE_Q8_0 || type == SL_TYPE_Q5_0 ||
                                                     type == SL_TYPE_Q4_0);
        }
    }
}

// A level is named here only where the processor has it: its init is compiled for it, too.
TEST(a_level_that_the_processor_lacks_is_refused) {
    sl_cpu_kernels k;
    CHECK_INT(sl_cpu_kernels_select(&k, 0, NULL), SL_OK);
    CHECK_TEXT(k.level, "generic");
#if defined(__x86_64__)
    CHECK_INT(sl_cpu_kernels_select(&k, 0, "avx2"), SL_DEVICE);
    if (sl_cpu_features() & SL_CPU_AVX2) {
        CHECK_INT(sl_cpu_kernels_select(&k, SL_CPU_AVX2, NULL), SL_OK);
        CHECK_TEXT(k.level, "avx2");
        CHECK_INT(sl_cpu_kernels_select(&k, SL_CPU_AVX2 | SL_CPU_AVX512, "avx512"), SL_DEVICE); // it needs VNNI too
        CHECK_INT(sl_cpu_kernels_select(&k, SL_CPU_AVX2, "generic"), SL_OK);
        CHECK_TEXT(k.level, "generic");
    }
#elif defined(__aarch64__)
    CHECK_INT(sl_cpu_kernels_select(&k, SL_CPU_NEON | SL_CPU_I8MM, NULL), SL_OK); // it needs dot products too
    CHECK_TEXT(k.level, "neon");
    CHECK_INT(sl_cpu_kernels_select(&k, SL_CPU_NEON, "dotprod"), SL_DEVICE);
    if (sl_cpu_features() & SL_CPU_DOTPROD) {
        CHECK_INT(sl_cpu_kernels_select(&k, SL_CPU_NEON | SL_CPU_DOTPROD, NULL), SL_OK);
        CHECK_TEXT(k.level, "dotprod");
        CHECK_INT(sl_cpu_kernels_select(&k, SL_CPU_NEON | SL_CPU_DOTPROD, "i8mm"), SL_DEVICE);
        CHECK_INT(sl_cpu_kernels_select(&k, SL_CPU_NEON | SL_CPU_DOTPROD, "neon"), SL_OK);
        CHECK_TEXT(k.level, "neon");
    }
#endif
    CHECK_INT(sl_cpu_kernels_select(&k, 0, "AVX2 "), SL_BAD_ARG);
}

// For those who run this on a processor that they chose (tools/test_arm64.sh).
TEST(the_level_is_the_expected_one) {
    const char *want = getenv("SLUICE_TEST_LEVEL");
    sl_cpu_kernels k;
    CHECK_INT(sl_cpu_kernels_select(&k, sl_cpu_features(), NULL), SL_OK);
    if (want) CHECK_TEXT(k.level, want);
}

#define BENCH(what, call)                                                                             \
    do {                                                                                              \
        uint64_t start_ = sl_clock_ns();                                                              \
        for (int i_ = 0; i_ < 2000; i_++) call;                                                       \
        printf("    %-8s %-10s %8.0f ns\n", names[l], what, (double)(sl_clock_ns() - start_) / 2000); \
    } while (0)

TEST(times) {
    if (!test_bench()) return;
    find_levels();
    enum { N = 4864 };
    static float x[N], y[N], out[N];
    fill_with(x, N, NORMAL), fill_with(y, N, NORMAL);
    const sl_attr_rope a = {14, 64, 64, 0};
    for (int l = 0; l < n_level; l++) {
        BENCH("norm 896", levels[l].norm(out, x, y, 896, 896, 1e-6f));
        BENCH("silu 4864", levels[l].glu(out, x, y, N, SL_ACT_SILU));
        BENCH("gelu 4864", levels[l].glu(out, x, y, N, SL_ACT_GELU_TANH));
        BENCH("add 896", levels[l].add(out, x, y, 896));
        BENCH("cap 4864", levels[l].softcap(out, x, N, 30));
        BENCH("rope 14x64", levels[l].rope(out, x, y, &a));
        BENCH("quant 4864", levels[l].quant(out, x, N));
    }
}
