// SPDX-License-Identifier: MIT
//
// What `sluice run` and its chat share: the options, and the report of an answer.
#ifndef SLUICE_RUN_H
#define SLUICE_RUN_H

#include "conversation.h"
#include "generate.h"

typedef struct run_options {
    const char *prompt, *prompt_path, *system, *tools_path, *session_path;
    int32_t n_max, n_top;
    bool raw, json;
    float temp, top_p, min_p, typical_p, repeat_penalty, presence_penalty, frequency_penalty;
    int32_t top_k, penalty_window;
    int64_t seed; // -1: by the clock, or as the session has it
    option_list bias;
} run_options;

int64_t run_seed_by_clock(void);
int run_create_sampler(sluice_sampler **out, const session *s, const run_options *options);
void run_print_speed(const session *s, const answer *a); // the one line on stderr
void run_print_cache(const sluice_engine_stats *stats);  // two lines there
int run_print_json(const session *s, const run_options *options, const generate_request *request, const answer *a);

int chat(session *s, const run_options *options); // until the user leaves

#endif
