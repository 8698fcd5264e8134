// SPDX-License-Identifier: MIT
//
// Log-probabilities of the best tokens. A figure for people and tests, not part of the choice of a
// token: log is libm's.
#include <math.h>

#include "sample/exp.h"
#include "sample/rank.h"
#include "sample/sample.h"

// Infinities: those at the maximum share all the mass. A NaN counts as impossible.
static float logprob(float x, float max, double log_sum) {
    if (x == max && max > -INFINITY) return (float)-log_sum;
    return x < max ? (float)((double)x - max - log_sum) : -INFINITY;
}

size_t sl_top_logprobs(const float *logits, size_t n, size_t k, int32_t *ids, float *logprobs, int32_t id, float *of) {
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (logits[i] > max) max = logits[i];
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (logits[i] == max) sum += 1;
        else if (logits[i] < max) sum += sl_exp_negative((double)logits[i] - max);
    double log_sum = log(sum);
    k = sl_rank_top(ids, logits, n, k);
    for (size_t i = 0; i < k; i++) logprobs[i] = logprob(logits[ids[i]], max, log_sum);
    if (of) *of = id >= 0 && (size_t)id < n ? logprob(logits[id], max, log_sum) : -INFINITY;
    return k;
}
