// SPDX-License-Identifier: MIT
//
// The sampler: bias and penalties on a copy of the logits, then filters over a shrinking list of
// ids, then one draw. All floats are added and multiplied in a fixed order (sums in double), exp is
// our own: a seed gives the same tokens on every machine. Invariant of the filters: at least the
// best token stays.
#include "sample/sample.h"

#include <math.h>
#include <string.h>

#include "sample/exp.h"
#include "sample/rank.h"

struct sl_sampler {
    sl_sampler_options options; // its arrays are our copies
    int32_t n_vocab;
    sl_rng rng;
    float *logits;  // (n_vocab) after bias and penalties
    float *score;   // (n_vocab) of the typical filter
    int32_t *ids;   // (n_vocab) the tokens still in
    double *weight; // (n_vocab) of ids[i]
    int32_t *bias_ids;
    float *bias; // (n_bias)
    // The penalty window: a ring of the last n_held tokens; slot n_accepted % n_window is the next
    // to be overwritten.
    int32_t *window; // (n_window)
    int32_t *count;  // (n_vocab) occurrences in the window
    int32_t *latest; // (n_vocab) the slot of its latest occurrence, if count > 0
    int32_t n_window, n_held, next;
};

// NaN fails every test.
static sl_status check_options(const sl_sampler_options *o, int32_t n_vocab) {
    if (!isfinite(o->temp)) return SL_FAIL(SL_BAD_ARG, "the temperature must be a finite number");
    if (o->top_k < 0) return SL_FAIL(SL_BAD_ARG, "top-k is %d; it must be 0 (off) or more", o->top_k);
    if (!(o->top_p >= 0 && o->top_p <= 1))
        return SL_FAIL(SL_BAD_ARG, "top-p is %g; it must be in 0 .. 1", (double)o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return SL_FAIL(SL_BAD_ARG, "min-p is %g; it must be in 0 .. 1", (double)o->min_p);
    if (!(o->typical_p >= 0 && o->typical_p <= 1))
        return SL_FAIL(SL_BAD_ARG, "typical-p is %g; it must be in 0 .. 1", (double)o->typical_p);
    if (!(o->repeat_penalty > 0 && isfinite(o->repeat_penalty)))
        return SL_FAIL(SL_BAD_ARG, "the repeat penalty is %g; it must be above 0", (double)o->repeat_penalty);
    if (!isfinite(o->frequency_penalty) || !isfinite(o->presence_penalty))
        return SL_FAIL(SL_BAD_ARG, "the frequency and presence penalties must be finite numbers");
    if (o->penalty_window < -1)
        return SL_FAIL(SL_BAD_ARG, "the penalty window is %d; it must be -1 (all) or more", o->penalty_window);
    if (o->n_bias && (!o->bias_ids || !o->bias)) return SL_FAIL(SL_BAD_ARG, "the logit biases are missing");
    for (size_t i = 0; i < o->n_bias; i++) {
        if (o->bias_ids[i] < 0 || o->bias_ids[i] >= n_vocab)
            return SL_FAIL(SL_BAD_ARG, "logit bias for token %d, but ids are 0 .. %d", o->bias_ids[i], n_vocab - 1);
        if (!(o->bias[i] < INFINITY))
            return SL_FAIL(SL_BAD_ARG, "the logit bias of token %d must be finite, or -inf to forbid it",
                           o->bias_ids[i]);
    }
    return SL_OK;
}

static bool has_penalties(const sl_sampler_options *o) {
    return o->penalty_window != 0 && (o->repeat_penalty != 1 || o->frequency_penalty != 0 || o->presence_penalty != 0);
}

// Zeroed, and touched: the first sample must not fault.
static sl_status touched(void *out, size_t n, size_t elem_bytes) {
    SL_TRY(sl_alloc(out, n, elem_bytes, "sampler"));
    memset(*(void **)out, 0, n * elem_bytes);
    return SL_OK;
}

sl_status sl_sampler_create(sl_sampler **out, int32_t n_vocab, int32_t n_history, const sl_sampler_options *options) {
    *out = NULL;
    if (n_vocab < 1 || n_history < 0)
        return SL_FAIL(SL_BAD_ARG, "a sampler needs a vocabulary and a history of 0 or more");
    SL_TRY(check_options(options, n_vocab));
    sl_sampler *s;
    sl_status status = sl_alloc(&s, 1, sizeof *s, "sampler");
    if (status != SL_OK) return status;
    s->options = *options, s->n_vocab = n_vocab;
    s->options.bias_ids = NULL, s->options.bias = NULL;
    size_t n = (size_t)n_vocab, n_bias = options->n_bias;
    SL_TRY_OUT(touched(&s->logits, n, sizeof *s->logits));
    SL_TRY_OUT(touched(&s->ids, n, sizeof *s->ids));
    SL_TRY_OUT(touched(&s->weight, n, sizeof *s->weight));
    if (options->typical_p < 1) SL_TRY_OUT(touched(&s->score, n, sizeof *s->score));
    if (n_bias) {
        SL_TRY_OUT(touched(&s->bias_ids, n_bias, sizeof *s->bias_ids));
        SL_TRY_OUT(touched(&s->bias, n_bias, sizeof *s->bias));
        memcpy(s->bias_ids, options->bias_ids, n_bias * sizeof *s->bias_ids);
        memcpy(s->bias, options->bias, n_bias * sizeof *s->bias);
    }
    if (has_penalties(options))
        s->n_window = options->penalty_window < 0 ? n_history : SL_MIN(options->penalty_window, n_history);
    if (s->n_window) {
        SL_TRY_OUT(touched(&s->window, (size_t)s->n_window, sizeof *s->window));
        SL_TRY_OUT(touched(&s->count, n, sizeof *s->count));
        SL_TRY_OUT(touched(&s->latest, n, sizeof *s->latest));
    }
    sl_rng_seed(&s->rng, options->seed);
    *out = s;
out:
    if (status != SL_OK) sl_sampler_destroy(s);
    return status;
}

void sl_sampler_destroy(sl_sampler *s) {
    if (!s) return;
    sl_free(s->logits);
    sl_free(s->score);
    sl_free(s->ids);
    sl_free(s->weight);
    sl_free(s->bias_ids);
    sl_free(s->bias);
    sl_free(s->window);
    sl_free(s->count);
    sl_free(s->latest);
    sl_free(s);
}

void sl_sampler_accept(sl_sampler *s, int32_t token) {
    if (s->n_window == 0 || token < 0 || token >= s->n_vocab) return;
    if (s->n_held == s->n_window) s->count[s->window[s->next]]--;
    else s->n_held++;
    s->window[s->next] = token;
    s->count[token]++;
    s->latest[token] = s->next;
    s->next = s->next + 1 == s->n_window ? 0 : s->next + 1;
}

// ---- there and back -----------------------------------------------------------------------------

typedef struct saved { // then the tokens, (n_held) int32, oldest first; little-endian
    char magic[4];
    int32_t n_held;
    uint64_t rng_state;
} saved;
_Static_assert(sizeof(saved) == 16, "as it is saved");

static const char magic[4] = {'s', 'l', 'S', '1'};

sl_status sl_sampler_save(const sl_sampler *s, uint8_t **out, size_t *n_bytes) {
    saved head = {.n_held = s->n_held, .rng_state = s->rng.state};
    memcpy(head.magic, magic, sizeof magic);
    *n_bytes = 0;
    SL_TRY(sl_alloc(out, sizeof head + (size_t)s->n_held * sizeof *s->window, 1, "the state of a sampler"));
    *n_bytes = sizeof head + (size_t)s->n_held * sizeof *s->window;
    memcpy(*out, &head, sizeof head);
    int32_t slot = s->n_held < s->n_window ? 0 : s->next; // the oldest
    for (int32_t i = 0; i < s->n_held; i++, slot = slot + 1 == s->n_window ? 0 : slot + 1)
        memcpy(*out + sizeof head + (size_t)i * sizeof slot, &s->window[slot], sizeof slot);
    return SL_OK;
}

static int32_t token_at(const uint8_t *bytes, int32_t i) {
    int32_t token;
    memcpy(&token, bytes + sizeof(saved) + (size_t)i * sizeof token, sizeof token);
    return token;
}

sl_status sl_sampler_restore(sl_sampler *s, const uint8_t *bytes, size_t n_bytes) {
    saved head = {.n_held = -1};
    if (n_bytes >= sizeof head) memcpy(&head, bytes, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.n_held < 0 ||
        (n_bytes - sizeof head) / sizeof(int32_t) != (size_t)head.n_held || n_bytes % sizeof(int32_t) != 0)
        return SL_FAIL(SL_BAD_FILE, "%zu bytes are not the state of a sampler", n_bytes);
    for (int32_t i = 0; i < head.n_held; i++)
        if (token_at(bytes, i) < 0 || token_at(bytes, i) >= s->n_vocab)
            return SL_FAIL(SL_BAD_FILE, "the state of a sampler has token %d, past a vocabulary of %d",
                           token_at(bytes, i), s->n_vocab);
    s->rng.state = head.rng_state;
    s->n_held = s->next = 0;
    if (s->n_window) memset(s->count, 0, (size_t)s->n_vocab * sizeof *s->count);
    for (int32_t i = 0; i < head.n_held; i++) sl_sampler_accept(s, token_at(bytes, i));
    return SL_OK;
}

// ---- bias and penalties -------------------------------------------------------------------------

static void apply_bias(sl_sampler *s) {
    for (size_t i = 0; i < s->options.n_bias; i++) {
        float *x = &s->logits[s->bias_ids[i]];
        *x = s->bias[i] > -INFINITY ? *x + s->bias[i] : -INFINITY; // forbidden is forbidden, also at +inf
    }
}

static void apply_penalties(sl_sampler *s) {
    const sl_sampler_options *o = &s->options;
    for (int32_t slot = 0; slot < s->n_held; slot++) {
        int32_t token = s->window[slot];
        if (s->latest[token] != slot) continue; // each token once
        float *x = &s->logits[token];
        *x = *x > 0 ? *x / o->repeat_penalty : *x * o->repeat_penalty;
        *x -= (float)s->count[token] * o->frequency_penalty + o->presence_penalty;
    }
}

// The best token; refuses logits that are no distribution.
static sl_status find_best(int32_t *best, const float *x, int32_t n) {
    float max = -INFINITY;
    int32_t at = -1;
    bool has_nan = false;
    for (int32_t i = 0; i < n; i++) {
        has_nan |= x[i] != x[i];
        if (x[i] > max) max = x[i], at = i;
    }
    if (has_nan) return SL_FAIL(SL_BAD_INPUT, "the logits hold a NaN: the weights or the computation are broken");
    if (at < 0) return SL_FAIL(SL_BAD_INPUT, "no token is possible: every logit is -inf");
    *best = at;
    return SL_OK;
}

// ---- filters ------------------------------------------------------------------------------------
// Each takes and leaves ids (n); x are the logits, max the largest of them.

// inf - inf is 0 here.
static double distance(float x, float max) { return x == max ? 0 : (double)x - max; }

static double weight_of(float x, float max) { return x == max ? 1 : sl_exp_negative((double)x - max); }

// Sets the weights of all ids and returns their sum.
static double weigh(sl_sampler *s, size_t n, const float *x, float max) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += s->weight[i] = weight_of(x[s->ids[i]], max);
    return sum;
}

// The k best, or all if k is 0.
static size_t keep_top(int32_t *ids, size_t n, const float *x, size_t k) {
    if (k > 0 && k < n) return sl_rank_top(ids, x, n, k);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)i;
    return n;
}

// Keeps the best by `score` until their weights reach `least`.
static size_t keep_mass(int32_t *ids, size_t n, const float *score, const float *x, float max, double least) {
    double sum = 0;
    size_t n_kept = 0;
    sl_rank_heap(ids, score, n);
    while (n_kept == 0 || (n_kept < n && sum < least)) {
        sum += weight_of(x[sl_rank_pop(ids, score, n - n_kept)], max);
        n_kept++;
    }
    // the popped ones lie at the end, the best last
    for (size_t i = 0, j = n - 1; i < j; i++, j--) {
        int32_t id = ids[i];
        ids[i] = ids[j];
        ids[j] = id;
    }
    return n_kept;
}

// Locally typical sampling (Meister et al. 2022): those whose surprise is nearest to the entropy.
// With p = w / sum the surprise is log(sum) - d and the entropy log(sum) - mean(d), so that the log
// drops out.
static size_t keep_typical(sl_sampler *s, size_t n, const float *x, float max) {
    double sum = weigh(s, n, x, max), mean = 0;
    for (size_t i = 0; i < n; i++)
        if (s->weight[i] > 0) mean += s->weight[i] * distance(x[s->ids[i]], max);
    mean /= sum;
    for (size_t i = 0; i < n; i++) {
        double off = distance(x[s->ids[i]], max) - mean;
        s->score[s->ids[i]] = (float)(off < 0 ? off : -off);
    }
    return keep_mass(s->ids, n, s->score, x, max, (double)s->options.typical_p * sum);
}

// top-p (Holtzman et al. 2020): the fewest that hold the share p.
static size_t keep_nucleus(sl_sampler *s, size_t n, const float *x, float max) {
    double p = (double)s->options.top_p, sum = weigh(s, n, x, max);
    // All that are lighter than this together weigh less than the part that may go; so that only a
    // few need be ranked. A little less, because sums are rounded.
    double tail = 0.999 * (1 - p) * sum / (double)n;
    size_t n_heavy = 0;
    for (size_t i = 0; i < n; i++)
        if (s->weight[i] >= tail) s->ids[n_heavy++] = s->ids[i];
    return keep_mass(s->ids, n_heavy, x, x, max, p * sum);
}

// min-p (Nguyen et al. 2024): those at least min_p times as likely as the best.
static size_t keep_likely(int32_t *ids, size_t n, const float *x, double min_p) {
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++) max = x[ids[i]] > max ? x[ids[i]] : max;
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++)
        if (weight_of(x[ids[i]], max) >= min_p) ids[n_kept++] = ids[i];
    return n_kept;
}

static int32_t draw(sl_sampler *s, size_t n, const float *x) {
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++) max = x[s->ids[i]] > max ? x[s->ids[i]] : max;
    double temp = (double)s->options.temp, sum = 0;
    for (size_t i = 0; i < n; i++) {
        float logit = x[s->ids[i]];
        s->weight[i] = logit == max ? 1 : sl_exp_negative(((double)logit - max) / temp);
        sum += s->weight[i];
    }
    double target = sl_rng_uniform(&s->rng) * sum, below = 0;
    int32_t last = s->ids[0];
    for (size_t i = 0; i < n; i++) {
        if (s->weight[i] == 0) continue;
        last = s->ids[i];
        below += s->weight[i];
        if (target < below) break;
    }
    return last;
}

static bool changes_logits(const sl_sampler *s) { return s->options.n_bias || s->n_held; }

bool sl_sampler_takes_best(const sl_sampler *s) { return s->options.temp <= 0 && !changes_logits(s); }

sl_status sl_sampler_sample(sl_sampler *s, const float *logits, int32_t *token) {
    *token = 0;
    const sl_sampler_options *o = &s->options;
    const float *x = logits;
    if (changes_logits(s)) {
        memcpy(s->logits, logits, (size_t)s->n_vocab * sizeof *logits);
        apply_bias(s);
        apply_penalties(s);
        x = s->logits;
    }
    int32_t best = 0;
    SL_TRY(find_best(&best, x, s->n_vocab));
    if (o->temp <= 0) return *token = best, SL_OK;

    size_t n = keep_top(s->ids, (size_t)s->n_vocab, x, (size_t)o->top_k);
    if (o->typical_p < 1) n = keep_typical(s, n, x, x[best]);
    // the typical filter may have dropped the best token; weights relative to it are still right
    if (o->top_p < 1) n = keep_nucleus(s, n, x, x[best]);
    if (o->min_p > 0) n = keep_likely(s->ids, n, x, (double)o->min_p);
    *token = draw(s, n, x);
    return SL_OK;
}
