// SPDX-License-Identifier: MIT
//
// How a run went: a line for people, an object for programs.
#include <math.h>
#include <stdio.h>

#include "json_out.h"
#include "run.h"

void run_print_speed(const session *s, const answer *a) {
    answer_speed speed = answer_get_speed(a);
    fprintf(stderr, "load %.0f ms | first token %.0f ms | prompt %zu tokens, %.1f tok/s", s->load_ms, a->ttft_ms,
            a->n_prompt, speed.prompt_tok_s);
    fprintf(stderr, " | decode %zu tokens, %.1f tok/s, p50 %.2f ms, p99 %.2f ms | %s\n", speed.n_decode,
            speed.decode_tok_s, speed.token_p50_ms, speed.token_p99_ms, stop_reason_name(a->stop));
}

typedef unsigned long long llu;

void run_print_cache(const sluice_engine_stats *s) {
    uint64_t n_computed = s->n_prompt - s->n_reused - s->n_disk;
    fprintf(stderr, "KV blocks of 32: %llu of %llu held, by %llu positions; %llu cached, %llu free, %llu given up\n",
            (llu)s->n_blk_held, (llu)s->n_blk, (llu)s->n_pos_held, (llu)s->n_blk_cached,
            (llu)(s->n_blk - s->n_blk_held - s->n_blk_cached), (llu)s->n_evicted);
    fprintf(stderr, "prompts: %llu tokens, of them %llu from memory, %llu from disk (%.1f MiB there), %llu computed\n",
            (llu)s->n_prompt, (llu)s->n_reused, (llu)s->n_disk, (double)s->disk_bytes / 0x1p20, (llu)n_computed);
}

static json_t *cache_to_json(const sluice_engine_stats *s) {
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I}, s:I}", "blocks", (json_int_t)s->n_blk,
                     "held", (json_int_t)s->n_blk_held, "cached", (json_int_t)s->n_blk_cached, "free",
                     (json_int_t)(s->n_blk - s->n_blk_held - s->n_blk_cached), "given_up", (json_int_t)s->n_evicted,
                     "positions", (json_int_t)s->n_pos_held, "prompt", "all", (json_int_t)s->n_prompt, "memory",
                     (json_int_t)s->n_reused, "disk", (json_int_t)s->n_disk, "computed",
                     (json_int_t)(s->n_prompt - s->n_reused - s->n_disk), "disk_bytes", (json_int_t)s->disk_bytes);
}

static json_t *ids_to_json(const int32_t *ids, size_t n) {
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(array, json_integer(ids[i]));
    return array;
}

// JSON has no infinities: a token that a bias forbids gets the lowest float.
static json_t *logprob_to_json(float logprob) {
    return json_real(isfinite(logprob) ? (double)logprob : -3.4028234663852886e38);
}

static json_t *logprobs_to_json(const answer *a) {
    json_t *array = json_array();
    for (size_t i = 0; i < a->n; i++) {
        const token_logprobs *t = &a->logprobs[i];
        json_t *top = json_array();
        for (size_t k = 0; k < a->n_top; k++) {
            json_array_append_new(top, json_pack("[i, o]", t->top_ids[k], logprob_to_json(t->top_logprobs[k])));
        }
        json_array_append_new(
            array, json_pack("{s:i, s:o, s:o}", "id", a->ids[i], "logprob", logprob_to_json(t->logprob), "top", top));
    }
    return array;
}

static json_t *timings_to_json(const session *s, const answer *a) {
    answer_speed speed = answer_get_speed(a);
    return json_pack("{s:f, s:f, s:I, s:f, s:f, s:I, s:f, s:f, s:f, s:f, s:f}", "load_ms", s->load_ms, "ttft_ms",
                     a->ttft_ms, "prompt_n", (json_int_t)a->n_prompt, "prompt_ms", a->prompt_ms, "prompt_tok_s",
                     speed.prompt_tok_s, "decode_n", (json_int_t)speed.n_decode, "decode_ms", a->decode_ms,
                     "decode_tok_s", speed.decode_tok_s, "token_p50_ms", speed.token_p50_ms, "token_p99_ms",
                     speed.token_p99_ms, "token_max_ms", speed.token_max_ms);
}

int run_print_json(const session *s, const run_options *options, const generate_request *request, const answer *a) {
    json_t *root = json_pack(
        "{s:o, s:o, s:o, s:s, s:I, s:o, s:o, s:i, s:I, s:{s:I, s:I}}", "text", json_any_text(a->text.data, a->text.n),
        "prompt_ids", ids_to_json(request->ids, request->n_ids), "ids", ids_to_json(a->ids, a->n), "stop",
        stop_reason_name(a->stop), "seed", (json_int_t)options->seed, "timings", timings_to_json(s, a), "kv",
        cache_to_json(&a->end), "n_threads", (int)s->engine_info.n_thread, "allocations",
        (json_int_t)(a->end.n_alloc - a->warm.n_alloc), "faults", "minor",
        (json_int_t)(a->end.n_minor_fault - a->warm.n_minor_fault), "major",
        (json_int_t)(a->end.n_major_fault - a->warm.n_major_fault));
    if (root && a->logprobs) json_object_set_new(root, "logprobs", logprobs_to_json(a));
    return json_print(root);
}
