// SPDX-License-Identifier: MIT
//
// Logits -> token. All memory at create; a sample call allocates nothing. Deterministic: fixed
// order of float operations and an own generator, so that a seed gives the same tokens on every
// machine. Knows nothing of models.
#ifndef SL_SAMPLE_SAMPLE_H
#define SL_SAMPLE_SAMPLE_H

#include "base/alloc.h"

// PCG32 (O'Neill 2014, XSH-RR 64/32), stream 54.
typedef struct sl_rng {
    uint64_t state;
} sl_rng;
void sl_rng_seed(sl_rng *rng, uint64_t seed);
uint32_t sl_rng_next(sl_rng *rng);
double sl_rng_uniform(sl_rng *rng); // [0, 1), 53 bits out of two draws

typedef struct sl_sampler_options {
    float temp;
    int32_t top_k;
    float top_p, min_p, typical_p;
    float repeat_penalty, frequency_penalty, presence_penalty;
    int32_t penalty_window; // -1: all of the history
    uint64_t seed;
    const int32_t *bias_ids; // (n_bias)
    const float *bias;
    size_t n_bias;
} sl_sampler_options;

typedef struct sl_sampler sl_sampler;
// SL_BAD_ARG names an option out of its range.
sl_status sl_sampler_create(sl_sampler **out, int32_t n_vocab, int32_t n_history, const sl_sampler_options *options);
void sl_sampler_destroy(sl_sampler *sampler); // NULL is fine
void sl_sampler_accept(sl_sampler *sampler, int32_t token);
// Would it take the largest logit as it is?
bool sl_sampler_takes_best(const sl_sampler *sampler);
// Where it stands, as bytes for sl_free: the generator, and the tokens that penalties look back on.
sl_status sl_sampler_save(const sl_sampler *sampler, uint8_t **out, size_t *n_bytes);
// Puts it there, whatever it has seen before. SL_BAD_FILE: those are no such bytes, and nothing has changed.
sl_status sl_sampler_restore(sl_sampler *sampler, const uint8_t *bytes, size_t n_bytes);
// logits (n_vocab)
sl_status sl_sampler_sample(sl_sampler *sampler, const float *logits, int32_t *token);

// See sluice_top_logprobs.
size_t sl_top_logprobs(const float *logits, size_t n, size_t k, int32_t *ids, float *logprobs, int32_t id, float *of);

#endif
