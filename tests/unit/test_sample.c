// SPDX-License-Identifier: MIT
// sl_test: MODULES sample
//
// Each filter against a reference that sorts everything and computes in double, by the law of many
// draws (chi-square), with a negative control; then ties, hostile logits, penalties, the
// generator's published vector and a recorded run.
#include "harness.h"

#include <time.h>

#include "sample/exp.h"
#include "sample/rank.h"
#include "sample/sample.h"

enum { N = 40, N_DRAW = 30000 };

static const sl_sampler_options off = {
    .temp = 1, .top_p = 1, .typical_p = 1, .repeat_penalty = 1, .penalty_window = 64, .seed = 7};

// Logits from integers alone, so that they are the same on every machine.
static void fill(float *logits, int n) {
    for (int i = 0; i < n; i++) logits[i] = (float)((int)test_below(900) - 450) / 64;
}

// ---- reference
// -------------------------------------------------------------------------------------------------

static const double *sort_by;
static int descending(const void *a, const void *b) {
    int i = *(const int *)a, j = *(const int *)b;
    return sort_by[i] > sort_by[j] ? -1 : sort_by[i] < sort_by[j] ? 1 : i - j;
}

static void ranked(int *order, const double *score) {
    for (int i = 0; i < N; i++) order[i] = i;
    sort_by = score;
    qsort(order, N, sizeof *order, descending);
}

static void normalise(double *p) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += p[i];
    for (int i = 0; i < N; i++) p[i] /= sum;
}

// Zeroes all but the best by score that hold the share.
static void reference_mass(double *p, const double *score, double share) {
    int order[N];
    ranked(order, score);
    double sum = 0;
    for (int i = 0; i < N; i++) {
        if (sum >= share) p[order[i]] = 0;
        else sum += p[order[i]];
    }
    normalise(p);
}

static void reference(double *p, const float *logits, const sl_sampler_options *o) {
    int order[N];
    double score[N], max = 0;
    for (int i = 0; i < N; i++) p[i] = exp((double)logits[i]);
    normalise(p);
    if (o->top_k > 0) {
        ranked(order, p);
        for (int i = o->top_k; i < N; i++) p[order[i]] = 0;
        normalise(p);
    }
    if (o->typical_p < 1) {
        double entropy = 0;
        for (int i = 0; i < N; i++)
            if (p[i] > 0) entropy -= p[i] * log(p[i]);
        for (int i = 0; i < N; i++) score[i] = p[i] > 0 ? -fabs(-log(p[i]) - entropy) : -INFINITY;
        reference_mass(p, score, (double)o->typical_p);
    }
    if (o->top_p < 1) {
        memcpy(score, p, sizeof score);
        reference_mass(p, score, (double)o->top_p);
    }
    for (int i = 0; i < N; i++) max = fmax(max, p[i]);
    for (int i = 0; i < N; i++)
        if (p[i] < max * (double)o->min_p) p[i] = 0;
    for (int i = 0; i < N; i++) p[i] = pow(p[i], 1 / (double)o->temp);
    normalise(p);
}

// How many standard deviations the chi-square statistic of the counts lies above its mean (Wilson
// and Hilferty 1931). Infinite if something impossible was drawn. Cells under five are pooled.
static double chi_square_z(const int *count, const double *p, int n_draw) {
    double stat = 0, pool_want = 0, pool_got = 0;
    int n_cell = 0;
    for (int i = 0; i < N; i++) {
        double want = p[i] * n_draw;
        if (p[i] == 0 && count[i] > 0) return INFINITY;
        if (want < 5) pool_want += want, pool_got += count[i];
        else stat += (count[i] - want) * (count[i] - want) / want, n_cell++;
    }
    if (pool_want >= 5) stat += (pool_got - pool_want) * (pool_got - pool_want) / pool_want, n_cell++;
    double df = n_cell - 1, c = 2 / (9 * df);
    return df < 1 ? 0 : (cbrt(stat / df) - (1 - c)) / sqrt(c);
}

static void draw_many(int *count, const float *logits, const sl_sampler_options *o, int n_draw) {
    sl_sampler *s;
    REQUIRE_OK(sl_sampler_create(&s, N, 64, o), sl_error_text());
    memset(count, 0, N * sizeof *count);
    for (int i = 0; i < n_draw; i++) {
        int32_t token;
        REQUIRE_OK(sl_sampler_sample(s, logits, &token), sl_error_text());
        REQUIRE(token >= 0 && token < N);
        count[token]++;
    }
    sl_sampler_destroy(s);
}

TEST(each_filter_draws_by_its_law) {
    sl_sampler_options cases[] = {off, off, off, off, off, off, off, off};
    cases[1].temp = 0.5f;
    cases[2].top_k = 7;
    cases[3].top_p = 0.8f;
    cases[4].min_p = 0.05f;
    cases[5].typical_p = 0.6f;
    cases[6] = (sl_sampler_options){
        .temp = 1.5f, .top_k = 20, .top_p = 0.95f, .min_p = 0.02f, .typical_p = 0.9f, .repeat_penalty = 1, .seed = 3};
    cases[7].temp = 20;
    for (int c = 0; c < 8; c++)
        for (int round = 0; round < 2; round++) {
            float logits[N];
            double p[N];
            int count[N];
            fill(logits, N);
            cases[c].seed += 1;
            reference(p, logits, &cases[c]);
            draw_many(count, logits, &cases[c], N_DRAW);
            double z = chi_square_z(count, p, N_DRAW);
            if (!(z < 4)) test_failed(__FILE__, __LINE__, "case %d round %d: z = %g", c, round, z);
            for (int i = 0; i < N; i++) // all that may be drawn is drawn
                if (p[i] * N_DRAW > 20 && count[i] == 0)
                    test_failed(__FILE__, __LINE__, "case %d: %d never drawn", c, i);
        }
}

TEST(the_chi_square_test_sees_a_wrong_law) {
    float logits[N];
    double p[N];
    int count[N];
    fill(logits, N);
    draw_many(count, logits, &off, N_DRAW);
    sl_sampler_options wrong = off;
    reference(p, logits, &wrong);
    CHECK(chi_square_z(count, p, N_DRAW) < 4);
    wrong.temp = 1.1f;
    reference(p, logits, &wrong);
    CHECK(chi_square_z(count, p, N_DRAW) > 6);
    wrong = off, wrong.top_p = 0.99f; // leaves out what was drawn
    reference(p, logits, &wrong);
    CHECK(chi_square_z(count, p, N_DRAW) > 6);
    draw_many(count, logits, &wrong, N_DRAW); // leaves out what should have been drawn
    reference(p, logits, &off);
    CHECK(chi_square_z(count, p, N_DRAW) > 6);
}

TEST(greedy_takes_the_best_and_among_equals_the_lowest) {
    sl_sampler_options o = off;
    o.temp = 0;
    sl_sampler *s;
    REQUIRE_OK(sl_sampler_create(&s, N, 0, &o), sl_error_text());
    float logits[N];
    for (int round = 0; round < 200; round++) {
        fill(logits, N);
        int best = 0, token;
        for (int i = 1; i < N; i++)
            if (logits[i] > logits[best]) best = i;
        logits[best + (int)test_below((uint32_t)(N - best))] = logits[best];
        REQUIRE_OK(sl_sampler_sample(s, logits, &token), sl_error_text());
        CHECK_INT(token, best);
    }
    sl_sampler_destroy(s);
    o.temp = 1, o.top_k = 2; // ties at the edge of a filter: the lower ids stay
    for (int i = 0; i < N; i++) logits[i] = 1;
    int count[N];
    draw_many(count, logits, &o, 1000);
    CHECK_INT(count[0] + count[1], 1000);
    o.top_k = 0, o.top_p = 2.5f / N;
    draw_many(count, logits, &o, 1000);
    CHECK_INT(count[0] + count[1] + count[2], 1000);
    CHECK(count[2] > 0);
}

TEST(hostile_logits_are_refused_or_have_an_answer) {
    sl_sampler_options cases[] = {off, off, off, off, off, off};
    cases[0].temp = 0;
    cases[2].top_k = 5;
    cases[3].top_p = 0.5f;
    cases[4].typical_p = 0.5f;
    cases[5].min_p = 0.5f;
    for (int c = 0; c < 6; c++) {
        sl_sampler *s;
        REQUIRE_OK(sl_sampler_create(&s, N, 0, &cases[c]), sl_error_text());
        float *logits = test_guarded(N * sizeof *logits);
        int32_t token;
        for (int at = 0; at < N; at += 13) {
            fill(logits, N);
            logits[at] = NAN;
            CHECK_INT(sl_sampler_sample(s, logits, &token), SL_BAD_INPUT);
            CHECK(strstr(sl_error_text(), "NaN"));
        }
        for (int i = 0; i < N; i++) logits[i] = -INFINITY;
        CHECK_INT(sl_sampler_sample(s, logits, &token), SL_BAD_INPUT);
        logits[17] = -1e30f; // the only one possible
        REQUIRE_OK(sl_sampler_sample(s, logits, &token), sl_error_text());
        CHECK_INT(token, 17);
        fill(logits, N);
        logits[5] = logits[9] = INFINITY; // share all the mass
        for (int i = 0; i < 50; i++) {
            REQUIRE_OK(sl_sampler_sample(s, logits, &token), sl_error_text());
            CHECK(token == 5 || token == 9);
        }
        for (int i = 0; i < N; i++) logits[i] = i % 2 ? 3e38f : -3e38f; // differences overflow a float
        REQUIRE_OK(sl_sampler_sample(s, logits, &token), sl_error_text());
        CHECK(token % 2 == 1);
        sl_sampler_destroy(s);
    }
}

TEST(penalties_and_bias_follow_their_formulas) {
    sl_sampler_options o = off;
    int32_t bias_ids[] = {3, 4, 3};
    float bias[] = {1.5f, -INFINITY, 0.25f};
    o.temp = 0, o.repeat_penalty = 2, o.frequency_penalty = 0.5f, o.presence_penalty = 0.25f, o.penalty_window = 3;
    o.bias_ids = bias_ids, o.bias = bias, o.n_bias = 3;
    sl_sampler *s;
    int32_t token;
    REQUIRE_OK(sl_sampler_create(&s, 8, 10, &o), sl_error_text());
    // token 1 leaves the window of three; 2 stays twice: 4 / 2 - 2 * 0.5 - 0.25 = 0.75; 5 once: -1
    // * 2 - 0.75 = -2.75
    sl_sampler_accept(s, 1), sl_sampler_accept(s, 2), sl_sampler_accept(s, 5), sl_sampler_accept(s, 2);
    sl_sampler_accept(s, -1), sl_sampler_accept(s, 8); // not tokens: not counted
    struct {
        float other;
        int want;
    } cases[] = {{0.74f, 2}, {0.76f, 0}};
    for (int i = 0; i < 2; i++) {
        float logits[8] = {cases[i].other, -9, 4, -2, 100, -1, -9, -9}; // 3: -2 + 1.75; 4 forbidden
        REQUIRE_OK(sl_sampler_sample(s, logits, &token), sl_error_text());
        CHECK_INT(token, cases[i].want);
    }
    float negative[8] = {-2.74f, -9, -9, -9, 100, -1, -9, -9};
    REQUIRE_OK(sl_sampler_sample(s, negative, &token), sl_error_text());
    CHECK_INT(token, 0);
    negative[0] = -2.76f;
    REQUIRE_OK(sl_sampler_sample(s, negative, &token), sl_error_text());
    CHECK_INT(token, 5);
    negative[1] = -2.5f; // free again
    REQUIRE_OK(sl_sampler_sample(s, negative, &token), sl_error_text());
    CHECK_INT(token, 1);
    sl_sampler_destroy(s);
}

TEST(pcg32_gives_the_published_numbers) {
    // pcg32-demo of the reference implementation: seed 42, stream 54, round 1
    static const uint32_t want[] = {0xa15c02b7, 0x7b47f409, 0xba1d3330, 0x83d2f293, 0xbfa4784b, 0xcbed606e};
    sl_rng rng;
    sl_rng_seed(&rng, 42);
    for (int i = 0; i < 6; i++) CHECK_INT(sl_rng_next(&rng), want[i]);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double u = sl_rng_uniform(&rng);
        CHECK(u >= 0 && u < 1);
        sum += u;
    }
    CHECK_NEAR(sum / 100000, 0.5, 0.005);
}

TEST(a_seed_gives_the_recorded_tokens) {
    static const int32_t want[] = {339, 409, 153, 258, 350, 245, 355, 286, 183, 289, 401, 21,  202, 282, 22,  357,
                                   128, 314, 325, 240, 439, 329, 356, 96,  315, 338, 12,  444, 173, 64,  171, 313};
    sl_sampler_options o = {.temp = 0.8f,
                            .top_k = 40,
                            .top_p = 0.95f,
                            .min_p = 0.05f,
                            .typical_p = 0.97f,
                            .repeat_penalty = 1.1f,
                            .frequency_penalty = 0.1f,
                            .presence_penalty = 0.1f,
                            .penalty_window = 8,
                            .seed = 20261130};
    enum { VOCAB = 500 };
    float logits[VOCAB];
    sl_sampler *s;
    REQUIRE_OK(sl_sampler_create(&s, VOCAB, 8, &o), sl_error_text());
    uint64_t state = 1; // not the harness's seed, which --seed changes
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        for (int j = 0; j < VOCAB; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            logits[j] = (float)(state >> 54) / 100;
        }
        int32_t token;
        REQUIRE_OK(sl_sampler_sample(s, logits, &token), sl_error_text());
        sl_sampler_accept(s, token);
        if (getenv("SLUICE_TEST_RECORD")) printf("%d, ", token);
        else CHECK_INT(token, want[i]);
    }
    sl_sampler_destroy(s);
}

// ---- there and back -----------------------------------------------------------------------------

enum { N_HISTORY = 50 };

static sl_sampler *open_penal(int32_t window, uint64_t seed) {
    sl_sampler_options o = off;
    o.seed = seed, o.penalty_window = window, o.temp = 3;
    o.repeat_penalty = 1.2f, o.presence_penalty = 0.5f, o.frequency_penalty = 0.4f;
    sl_sampler *s;
    REQUIRE_OK(sl_sampler_create(&s, N, N_HISTORY, &o), sl_error_text());
    return s;
}

static void draw(sl_sampler *s, const float *logits, int32_t *tokens, int n) {
    for (int i = 0; i < n; i++) {
        REQUIRE_OK(sl_sampler_sample(s, logits, &tokens[i]), sl_error_text());
        sl_sampler_accept(s, tokens[i]);
    }
}

TEST(a_sampler_goes_on_from_where_another_one_stood) {
    const int32_t windows[] = {0, 1, 3, 64, -1};
    float logits[N];
    int32_t want[100], got[100];
    fill(logits, N);
    for (int w = 0; w < 5; w++)
        for (int n_before = 0; n_before < 100; n_before += 11) {
            sl_sampler *a = open_penal(windows[w], 7), *b = open_penal(windows[w], 8);
            uint8_t *bytes;
            size_t n_bytes;
            draw(a, logits, got, n_before);
            draw(b, logits, got, 37); // what it has seen is forgotten
            REQUIRE_OK(sl_sampler_save(a, &bytes, &n_bytes), sl_error_text());
            REQUIRE_OK(sl_sampler_restore(b, bytes, n_bytes), sl_error_text());
            draw(a, logits, want, 100);
            draw(b, logits, got, 100);
            CHECK(memcmp(got, want, sizeof got) == 0);
            REQUIRE_OK(sl_sampler_restore(b, bytes, n_bytes), sl_error_text()); // and back again
            draw(b, logits, got, 100);
            CHECK(memcmp(got, want, sizeof got) == 0);
            sl_free(bytes);
            sl_sampler_destroy(a);
            sl_sampler_destroy(b);
        }
}

TEST(what_is_no_state_of_a_sampler_changes_nothing) {
    sl_sampler *s = open_penal(64, 7), *same = open_penal(64, 7);
    float logits[N];
    int32_t want[100], got[100];
    uint8_t *bytes, bad[400];
    size_t n;
    fill(logits, N);
    draw(s, logits, got, 60);
    draw(same, logits, got, 60);
    REQUIRE_OK(sl_sampler_save(s, &bytes, &n), sl_error_text());
    CHECK_INT(n, 16 + 4 * N_HISTORY);
    for (size_t cut = 0; cut < n; cut++) CHECK_INT(sl_sampler_restore(s, bytes, cut), SL_BAD_FILE);
    memcpy(bad, bytes, n), memset(bad + n, 0, 4);
    CHECK_INT(sl_sampler_restore(s, bad, n + 4), SL_BAD_FILE);
    CHECK_INT(sl_sampler_restore(s, bad, n + 1), SL_BAD_FILE);
    for (size_t at = 0; at < 8; at++) { // magic and number
        bad[at] ^= 0x80;
        CHECK_INT(sl_sampler_restore(s, bad, n), SL_BAD_FILE);
        bad[at] ^= 0x80;
    }
    for (size_t at = 17; at < n; at += 4) { // tokens
        bad[at] = 0xff;
        CHECK_INT(sl_sampler_restore(s, bad, n), SL_BAD_FILE);
        bad[at] = 0;
    }
    draw(s, logits, got, 100);
    draw(same, logits, want, 100);
    CHECK(memcmp(got, want, sizeof got) == 0);
    sl_free(bytes);
    sl_sampler_destroy(s);
    sl_sampler_destroy(same);
}

TEST(own_exp_is_as_good_as_the_library) {
    CHECK(sl_exp_negative(0) == 1);
    CHECK(sl_exp_negative(-INFINITY) == 0 && sl_exp_negative(-1e300) == 0 && sl_exp_negative(-709) == 0);
    double worst = 0;
    for (int i = 0; i < 300000; i++) {
        double x = -707 * test_uniform() * (i % 2 ? 1 : 0.01);
        worst = fmax(worst, fabs(sl_exp_negative(x) / exp(x) - 1));
    }
    CHECK(worst < 6e-16); // ours below 3e-16, and libm's own error
}

TEST(ranking_is_a_stable_sort) {
    enum { MANY = 3000 };
    static float score[MANY];
    static int32_t ids[MANY];
    for (int round = 0; round < 60; round++) {
        size_t k = round < 5 ? (size_t[]){0, 1, 2, MANY, MANY + 5}[round] : test_below(MANY);
        for (int i = 0; i < MANY; i++)
            score[i] = test_below(50) == 0 ? NAN : (float)test_below(round % 2 ? 20 : 1000000);
        size_t n = sl_rank_top(ids, score, MANY, k);
        CHECK_INT(n, k < MANY ? k : MANY);
        for (size_t i = 1; i < n; i++) {
            float a = score[ids[i - 1]], b = score[ids[i]];
            if (a != a) a = -INFINITY;
            if (b != b) b = -INFINITY;
            CHECK(a > b || (a == b && ids[i - 1] < ids[i]));
        }
        static bool in[MANY];
        memset(in, 0, sizeof in);
        for (size_t i = 0; i < n; i++) in[ids[i]] = true;
        float last = n ? score[ids[n - 1]] : INFINITY;
        for (int i = 0; i < MANY; i++) CHECK(in[i] || !(score[i] > last));
    }
}

TEST(log_probabilities_are_those_of_the_softmax) {
    float logits[N], logprobs[N], of;
    int32_t ids[N];
    double p[N];
    for (int round = 0; round < 50; round++) {
        fill(logits, N);
        reference(p, logits, &off);
        size_t k = sl_top_logprobs(logits, N, 5, ids, logprobs, 11, &of);
        CHECK_INT(k, 5);
        for (size_t i = 0; i < k; i++) CHECK_NEAR(logprobs[i], log(p[ids[i]]), 1e-6);
        for (size_t i = 1; i < k; i++) CHECK(logprobs[i] <= logprobs[i - 1]);
        CHECK_NEAR(of, log(p[11]), 1e-6);
    }
    CHECK_INT(sl_top_logprobs(logits, N, N + 9, ids, logprobs, -1, &of), N);
    CHECK(of == -INFINITY);
    logits[4] = NAN, logits[6] = INFINITY;
    CHECK_INT(sl_top_logprobs(logits, N, 2, ids, logprobs, 4, &of), 2);
    CHECK(ids[0] == 6 && logprobs[0] == 0 && logprobs[1] == -INFINITY && of == -INFINITY);
    for (int i = 0; i < N; i++) logits[i] = -INFINITY;
    CHECK_INT(sl_top_logprobs(logits, N, 2, ids, logprobs, 4, &of), 2);
    CHECK(logprobs[0] == -INFINITY && of == -INFINITY);
}

TEST(options_out_of_range_are_named) {
    sl_sampler *s;
    float one = 1, nan = NAN, inf = INFINITY;
    int32_t id = 3, high = N;
#define REFUSED(word, ...)                                                                          \
    do {                                                                                            \
        sl_sampler_options o = off;                                                                 \
        __VA_ARGS__;                                                                                \
        s = (void *)&one;                                                                           \
        CHECK_INT(sl_sampler_create(&s, N, 8, &o), SL_BAD_ARG);                                     \
        CHECK(s == NULL);                                                                           \
        if (!strstr(sl_error_text(), word)) test_failed(__FILE__, __LINE__, "%s", sl_error_text()); \
    } while (0)
    REFUSED("temperature", o.temp = nan);
    REFUSED("temperature", o.temp = inf);
    REFUSED("top-k", o.top_k = -1);
    REFUSED("top-p", o.top_p = nan);
    REFUSED("top-p", o.top_p = 1.5f);
    REFUSED("min-p", o.min_p = -0.1f);
    REFUSED("typical", o.typical_p = 2);
    REFUSED("repeat", o.repeat_penalty = 0);
    REFUSED("frequency", o.frequency_penalty = nan);
    REFUSED("presence", o.presence_penalty = inf);
    REFUSED("window", o.penalty_window = -2);
    REFUSED("bias", o.n_bias = 1);
    REFUSED("bias", o.n_bias = 1, o.bias_ids = &high, o.bias = &one);
    REFUSED("bias", o.n_bias = 1, o.bias_ids = &id, o.bias = &nan);
    REFUSED("bias", o.n_bias = 1, o.bias_ids = &id, o.bias = &inf);
    sl_sampler_options o = off;
    o.repeat_penalty = 1.2f, o.typical_p = 0.5f, o.n_bias = 1, o.bias_ids = &id, o.bias = &one;
    uint64_t n = 1;
    for (;; n++) { // the n-th allocation fails
        sl_alloc_fail_at(n);
        sl_status status = sl_sampler_create(&s, N, 8, &o);
        if (status == SL_OK) break;
        CHECK_INT(status, SL_NO_MEMORY);
        CHECK(s == NULL);
    }
    sl_alloc_fail_at(0);
    CHECK_INT(n, 11);
    sl_sampler_destroy(s);
}

TEST(sampling_allocates_nothing_and_is_quick) {
    enum { VOCAB = 150000 };
    float *logits = malloc(VOCAB * sizeof *logits);
    for (int i = 0; i < VOCAB; i++) logits[i] = (float)(2.5 * test_normal());
    for (int i = 0; i < 20; i++) logits[test_below(VOCAB)] = (float)(12 + i % 7); // as peaked as a model's
    sl_sampler_options cases[] = {off, off, off, off, off, off};
    const char *const names[] = {"greedy", "top-k 40, p, min-p", "top-p", "temperature", "typical", "top-k 20000"};
    cases[0].temp = 0;
    cases[1].top_k = 40, cases[1].top_p = 0.95f, cases[1].min_p = 0.05f, cases[1].repeat_penalty = 1.1f;
    cases[2].top_p = 0.9f;
    cases[4].typical_p = 0.9f;
    cases[5].top_k = 20000;
    for (int c = 0; c < 6; c++) {
        sl_sampler *s;
        REQUIRE_OK(sl_sampler_create(&s, VOCAB, 64, &cases[c]), sl_error_text());
        uint64_t n_alloc = sl_alloc_count();
        int n_round = test_bench() ? 200 : 3;
        clock_t start = clock();
        for (int i = 0; i < n_round; i++) {
            int32_t token;
            REQUIRE_OK(sl_sampler_sample(s, logits, &token), sl_error_text());
            sl_sampler_accept(s, token);
        }
        double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC / n_round;
        CHECK_INT(sl_alloc_count(), n_alloc);
        if (test_bench()) printf("    %-20s %.3f ms at %d tokens\n", names[c], ms, VOCAB);
        CHECK(ms < 100);
        sl_sampler_destroy(s);
    }
    free(logits);
}
