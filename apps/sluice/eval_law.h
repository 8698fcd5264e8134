// SPDX-License-Identifier: MIT
//
// The law that logits stand for, softmax, in double, and how far another is from it.
#ifndef SLUICE_EVAL_LAW_H
#define SLUICE_EVAL_LAW_H

#include "app.h"

typedef struct law {
    const float *logits; // (n) borrowed
    double *p;           // (n) owned; probabilities
    size_t n, best;      // best: the likeliest, of equals the first
    double log_sum;      // log of the sum of exp(logits)
} law;

int law_init(law *l, size_t n); // APP_OK, or has printed why not
void law_free(law *l);
void law_take(law *l, const float *logits);

// What is found of logits (n) by their side.
typedef struct law_gap {
    double divergence; // KL(law || other) in nats; at least 0
    double log_sum;    // of the other
    bool same_best;
} law_gap;
law_gap law_compare(const law *l, const float *other);

#endif
