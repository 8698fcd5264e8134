// SPDX-License-Identifier: MIT
//
// The token loop. All memory is taken before it begins; only an answer that nothing bounds, in a context that moves on,
// grows, by doubling.
#include "generate.h"

#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "progress.h"

const char *stop_reason_name(stop_reason reason) {
    static const char *const names[] = {"eos", "length", "context", "interrupted"};
    return names[reason];
}

// Zeroed and touched, so that the token loop is not the first to write it.
static void *take(size_t n, size_t elem_bytes) {
    enum { PAGE_BYTES = 4096 };
    volatile char *p = calloc(n ? n : 1, elem_bytes);
    for (size_t at = 0; p && at < n * elem_bytes; at += PAGE_BYTES) p[at] = 0;
    return (void *)p;
}

static int answer_init(answer *a, size_t cap, int32_t n_top) {
    enum { TOKEN_BYTES = 16 }; // of text; longer ones make the text grow
    *a = (answer){.cap = cap, .n_top = n_top > 0 ? (size_t)n_top : 0};
    a->ids = take(cap, sizeof *a->ids);
    a->token_ms = take(cap, sizeof *a->token_ms);
    a->text = (text){take(cap, TOKEN_BYTES), 0, cap * TOKEN_BYTES};
    if (!a->ids || !a->token_ms || !a->text.data) return app_fail("out of memory");
    if (n_top < 0) return APP_OK;
    a->logprobs = take(cap, sizeof *a->logprobs);
    a->top_ids = take(cap, a->n_top * sizeof *a->top_ids);
    a->top_logprobs = take(cap, a->n_top * sizeof *a->top_logprobs);
    return a->logprobs && a->top_ids && a->top_logprobs ? APP_OK : app_fail("out of memory");
}

void answer_free(answer *a) {
    free(a->ids), free(a->token_ms), free(a->logprobs), free(a->top_ids), free(a->top_logprobs);
    text_free(&a->text);
    *a = (answer){0};
}

static void *grow(void *p, size_t n, size_t elem_bytes, bool *ok) {
    void *more = p && *ok ? realloc(p, n * elem_bytes) : p;
    if (p && !more) *ok = false;
    return more ? more : p;
}

// Room for twice as many tokens.
static int answer_grow(answer *a) {
    size_t cap = a->cap * 2;
    bool ok = cap <= SIZE_MAX / 2 / (sizeof *a->logprobs * (a->n_top + 1));
    a->ids = grow(a->ids, cap, sizeof *a->ids, &ok);
    a->token_ms = grow(a->token_ms, cap, sizeof *a->token_ms, &ok);
    a->logprobs = grow(a->logprobs, cap, sizeof *a->logprobs, &ok);
    if (a->n_top) a->top_ids = grow(a->top_ids, cap, a->n_top * sizeof *a->top_ids, &ok);
    if (a->n_top) a->top_logprobs = grow(a->top_logprobs, cap, a->n_top * sizeof *a->top_logprobs, &ok);
    for (size_t i = 0; a->logprobs && i < a->n; i++) {
        a->logprobs[i].top_ids = a->top_ids + i * a->n_top;
        a->logprobs[i].top_logprobs = a->top_logprobs + i * a->n_top;
    }
    if (!ok) return app_fail("out of memory");
    a->cap = cap;
    return APP_OK;
}

static void keep_logprobs(answer *a, const float *logits, size_t n_vocab, int32_t token) {
    token_logprobs *t = &a->logprobs[a->n];
    t->top_ids = a->top_ids + a->n * a->n_top;
    t->top_logprobs = a->top_logprobs + a->n * a->n_top;
    sluice_top_logprobs(logits, n_vocab, a->n_top, t->top_ids, t->top_logprobs, token, &t->logprob);
}

// Gives the text that `token` completes (-1: what is left) to the answer and to the one who
// listens.
static int emit_text(answer *a, sluice_stream *stream, int32_t token, const generate_request *request) {
    const char *bytes;
    size_t n;
    sluice_status status = sluice_stream_push(stream, token, &bytes, &n);
    if (status != SLUICE_OK) return app_fail_library(status);
    int result = text_append(&a->text, bytes, n);
    if (result == APP_OK && n && request->emit) result = request->emit(request->user, bytes, n);
    return result;
}

static int choose_token(answer *a, const session *s, const generate_request *request, double *clock_ms) {
    int32_t token;
    sluice_status status = sluice_sample_row(request->sampler, s->engine, 0, &token);
    if (status != SLUICE_OK) return app_fail_library(status);
    if (a->n == a->cap && answer_grow(a) != APP_OK) return APP_FAILED;
    sluice_sampler_accept(request->sampler, token);
    if (a->logprobs) keep_logprobs(a, sluice_logits(s->engine, 0), (size_t)s->model_info.n_vocab, token);
    double now = app_now_ms();
    a->ids[a->n] = token;
    a->token_ms[a->n++] = (float)(now - *clock_ms);
    *clock_ms = now;
    return APP_OK;
}

// Sequence 0 holds the whole prompt, and the engine the logits of its last token.
static int decode(answer *a, session *s, const generate_request *request, sluice_stream *stream, double start_ms) {
    double clock_ms = start_ms;
    for (;;) {
        if (request->n_max >= 0 && a->n >= (size_t)request->n_max) return a->stop = STOP_LENGTH, APP_OK;
        if (interrupt_seen()) return a->stop = STOP_INTERRUPTED, APP_OK;
        if (choose_token(a, s, request, &clock_ms) != APP_OK) return APP_FAILED;
        int32_t token = a->ids[a->n - 1];
        if (a->n == 1) a->ttft_ms = clock_ms - start_ms;
        a->decode_ms = clock_ms - start_ms - a->ttft_ms;
        if (sluice_model_is_stop(s->model, token)) return a->stop = STOP_EOS, APP_OK;
        if (emit_text(a, stream, token, request) != APP_OK) return APP_FAILED;
        int32_t pos = sluice_seq_length(s->engine, 0);
        bool last = request->n_max >= 0 && a->n >= (size_t)request->n_max;
        if (last) continue; // its logits are of no use
        if (!session_fits(s, (size_t)pos + 1)) return a->stop = STOP_CONTEXT, APP_OK;
        sluice_status status = sluice_step(s->engine, &(sluice_row){token, 0, pos, true}, 1);
        if (status != SLUICE_OK) return app_fail_library(status);
        if (a->n == 1) sluice_engine_get_stats(s->engine, &a->warm); // the first decode step is warm-up
    }
}

static int prefill(answer *a, session *s, const generate_request *request) {
    progress bar;
    progress_start(&bar, "prompt");
    double start = app_now_ms();
    for (size_t i = 0; i < request->n_ids; i++) sluice_sampler_accept(request->sampler, request->ids[i]);
    size_t n_held;
    sluice_status status = sluice_seq_reuse(s->engine, 0, request->ids, request->n_ids, &n_held);
    a->n_prompt = request->n_ids - n_held;
    if (status == SLUICE_OK)
        status = sluice_prefill(s->engine, 0, request->ids + n_held, a->n_prompt, progress_update, &bar);
    progress_end(&bar);
    a->prompt_ms = app_now_ms() - start;
    if (status == SLUICE_CANCELLED) return a->stop = STOP_INTERRUPTED, APP_OK;
    return status == SLUICE_OK ? APP_OK : app_fail_library(status);
}

int generate(answer *out, session *s, const generate_request *request) {
    size_t n_ctx = (size_t)s->engine_info.n_ctx;
    *out = (answer){0};
    if (request->n_ids == 0) return app_fail("the prompt is empty, and this model has no token to begin with");
    if (!session_fits(s, request->n_ids)) {
        return app_fail(
            "the prompt has %zu tokens but the context holds %zu; raise --ctx or shorten it, or let it move "
            "on (--ctx-window)",
            request->n_ids, n_ctx);
    }
    size_t cap = s->ctx_window ? n_ctx : n_ctx - request->n_ids + 1;
    if (s->ctx_window && request->n_max >= 0) cap = (size_t)request->n_max;
    if (request->n_max >= 0 && (size_t)request->n_max < cap) cap = (size_t)request->n_max;
    sluice_stream *stream = NULL;
    int result = answer_init(out, cap + 1, request->n_top);
    sluice_status status = result == APP_OK ? sluice_stream_create(&stream, s->model, 0) : SLUICE_OK;
    if (status != SLUICE_OK) result = app_fail_library(status);
    double start = app_now_ms();
    if (result == APP_OK) result = prefill(out, s, request);
    if (result == APP_OK && out->stop != STOP_INTERRUPTED) result = decode(out, s, request, stream, start);
    sluice_engine_get_stats(s->engine, &out->end);
    if (out->n < 2) out->warm = out->end; // nothing came after warm-up
    if (result == APP_OK) result = emit_text(out, stream, -1, request);
    sluice_stream_destroy(&stream);
    return result;
}

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

answer_speed answer_get_speed(const answer *a) {
    answer_speed speed = {0};
    if (a->prompt_ms > 0) speed.prompt_tok_s = (double)a->n_prompt / a->prompt_ms * 1e3;
    if (a->n < 2) return speed;
    size_t n = speed.n_decode = a->n - 1;
    if (a->decode_ms > 0) speed.decode_tok_s = (double)n / a->decode_ms * 1e3;
    float *sorted = malloc(n * sizeof *sorted);
    if (!sorted) return speed;
    memcpy(sorted, a->token_ms + 1, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_floats);
    speed.token_p50_ms = sorted[n / 2];
    speed.token_p99_ms = sorted[n * 99 / 100];
    speed.token_max_ms = sorted[n - 1];
    free(sorted);
    return speed;
}
