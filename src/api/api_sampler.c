// SPDX-License-Identifier: MIT
#include "api/api_part.h"

sluice_sampler_options sluice_sampler_options_default(void) {
    return (sluice_sampler_options){
        .size = sizeof(sluice_sampler_options),
        .temp = 0.8f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .typical_p = 1,
        .repeat_penalty = 1,
        .penalty_window = 64,
    };
}

sluice_status sluice_sampler_create(sluice_sampler **out, int32_t n_vocab, int32_t n_history,
                                    const sluice_sampler_options *options) {
    API_NEED(out);
    *out = NULL;
    sluice_sampler_options o = sluice_sampler_options_default();
    sl_status status = sl_api_options(&o, options, sizeof o, "sampler");
    if (status != SL_OK) return api_fail(status);
    sl_sampler_options inner = {
        .temp = o.temp,
        .top_k = o.top_k,
        .top_p = o.top_p,
        .min_p = o.min_p,
        .typical_p = o.typical_p,
        .repeat_penalty = o.repeat_penalty,
        .frequency_penalty = o.frequency_penalty,
        .presence_penalty = o.presence_penalty,
        .penalty_window = o.penalty_window,
        .seed = o.seed,
        .bias_ids = o.bias_ids,
        .bias = o.bias,
        .n_bias = o.n_bias,
    };
    sluice_sampler *s;
    status = sl_alloc(&s, 1, sizeof *s, "sampler");
    if (status != SL_OK) return api_fail(status);
    status = sl_sampler_create(&s->sampler, n_vocab, n_history, &inner);
    if (status != SL_OK) sluice_sampler_destroy(&s);
    *out = s;
    return api_fail(status);
}

void sluice_sampler_destroy(sluice_sampler **sampler) {
    if (!sampler || !*sampler) return;
    sl_sampler_destroy((*sampler)->sampler);
    sl_free(*sampler);
    *sampler = NULL;
}

void sluice_sampler_accept(sluice_sampler *sampler, int32_t token) {
    if (sampler) sl_sampler_accept(sampler->sampler, token);
}

sluice_status sluice_sampler_save(const sluice_sampler *sampler, char **state, size_t *n_bytes) {
    API_NEED(state);
    API_NEED(n_bytes);
    *state = NULL, *n_bytes = 0;
    API_NEED(sampler);
    return api_fail(sl_sampler_save(sampler->sampler, (uint8_t **)state, n_bytes));
}

sluice_status sluice_sampler_restore(sluice_sampler *sampler, const char *state, size_t n_bytes) {
    API_NEED(sampler);
    API_NEED(state);
    return api_fail(sl_sampler_restore(sampler->sampler, (const uint8_t *)state, n_bytes));
}

sluice_status sluice_sample(sluice_sampler *sampler, const float *logits, int32_t *token) {
    API_NEED(token);
    *token = 0;
    API_NEED(sampler);
    API_NEED(logits);
    return api_fail(sl_sampler_sample(sampler->sampler, logits, token));
}

sluice_status sluice_sample_row(sluice_sampler *sampler, sluice_engine *engine, size_t i, int32_t *token) {
    API_NEED(token);
    *token = 0;
    API_NEED(sampler);
    API_NEED(engine);
    int32_t best = sl_engine_best(engine->engine, i);
    if (best >= 0 && sl_sampler_takes_best(sampler->sampler)) return *token = best, SLUICE_OK;
    const float *logits = sl_engine_logits(engine->engine, i);
    API_NEED(logits);
    return api_fail(sl_sampler_sample(sampler->sampler, logits, token));
}

size_t sluice_top_logprobs(const float *logits, size_t n, size_t k, int32_t *ids, float *logprobs, int32_t id,
                           float *of) {
    if (of) *of = 0;
    if (!logits || (k > 0 && (!ids || !logprobs))) return 0;
    return sl_top_logprobs(logits, n, k, ids, logprobs, id, of);
}
