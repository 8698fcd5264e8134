// SPDX-License-Identifier: MIT
//
// Softmax and Kullback-Leibler divergence of logits.
#include "eval_law.h"

#include <math.h>
#include <stdlib.h>

int law_init(law *l, size_t n) {
    *l = (law){.p = calloc(n + 1, sizeof *l->p), .n = n};
    return l->p ? APP_OK : app_fail("out of memory");
}

void law_free(law *l) {
    free(l->p);
    *l = (law){0};
}

static size_t find_best(const float *logits, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

void law_take(law *l, const float *logits) {
    l->logits = logits, l->best = find_best(logits, l->n);
    double most = (double)logits[l->best], sum = 0;
    for (size_t i = 0; i < l->n; i++) sum += l->p[i] = exp((double)logits[i] - most);
    for (size_t i = 0; i < l->n; i++) l->p[i] /= sum;
    l->log_sum = most + log(sum);
}

law_gap law_compare(const law *l, const float *other) {
    size_t best = find_best(other, l->n);
    double most = (double)other[best], sum = 0, gap = 0;
    for (size_t i = 0; i < l->n; i++) {
        sum += exp((double)other[i] - most);
        if (l->p[i] > 0) gap += l->p[i] * ((double)l->logits[i] - (double)other[i]); // 0 log 0 is 0
    }
    double log_sum = most + log(sum);
    return (law_gap){fmax(gap - l->log_sum + log_sum, 0), log_sum, best == l->best};
}
