// SPDX-License-Identifier: MIT
//
// From prompt ids to an answer: prefill, then sample and step until something ends it; the times of
// it all. Knows nothing of options, templates or terminals.
#ifndef SLUICE_GENERATE_H
#define SLUICE_GENERATE_H

#include "files.h"
#include "session.h"

typedef enum stop_reason { STOP_EOS, STOP_LENGTH, STOP_CONTEXT, STOP_INTERRUPTED } stop_reason;
const char *stop_reason_name(stop_reason reason); // as in --json

typedef struct token_logprobs {
    float logprob;       // of the chosen token
    int32_t *top_ids;    // (n_top) in the answer's array
    float *top_logprobs; // (n_top) likewise
} token_logprobs;

typedef struct answer {
    int32_t *ids;             // (n) with the stop token, if one ended it
    float *token_ms;          // (n) from the token before (the first: from the start) to this one
    token_logprobs *logprobs; // (n) or NULL
    int32_t *top_ids;         // (cap, n_top)
    float *top_logprobs;      // (cap, n_top)
    size_t n, cap, n_top;
    text text; // what the ids say, without the stop token
    stop_reason stop;
    size_t n_prompt; // tokens of the prompt that were computed; the others were there already
    double prompt_ms, ttft_ms, decode_ms;
    sluice_engine_stats warm, end; // after the first decode step, and at the end
} answer;

typedef int generate_emit(void *user, const char *bytes,
                          size_t n); // of each piece of text; not APP_OK stops

typedef struct generate_request {
    const int32_t *ids; // (n_ids) the whole prompt; what sequence 0 or the cache hold of it is not computed again
    size_t n_ids;
    int32_t n_max; // tokens to make; negative: no limit
    int32_t n_top; // log-probabilities to keep of each token; negative: none
    sluice_sampler *sampler;
    generate_emit *emit; // may be NULL
    void *user;
} generate_request;

// APP_OK with any stop reason, or has printed what failed; `out` must be given to answer_free in
// each case.
int generate(answer *out, session *s, const generate_request *request);
void answer_free(answer *a);

typedef struct answer_speed { // 0 where there is nothing to divide by
    double prompt_tok_s, decode_tok_s;
    size_t n_decode; // tokens after the first, which is the prompt's; decode_tok_s and those below
                     // are theirs
    double token_p50_ms, token_p99_ms, token_max_ms;
} answer_speed;
answer_speed answer_get_speed(const answer *a);

#endif
