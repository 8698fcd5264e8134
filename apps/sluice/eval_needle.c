// SPDX-License-Identifier: MIT
//
// sluice eval needle: a fact is hidden in a filler text, at several depths of prompts of several lengths, and the model
// is asked for it, greedily. What the sequence holds of the prompt before is not computed again.
#include "eval_needle.h"

#include <stdlib.h>
#include <string.h>

#include "conversation.h"
#include "eval.h"
#include "generate.h"
#include "interrupt.h"
#include "progress.h"

typedef struct needle_options {
    const char *lengths, *depths, *html;
    int32_t n_trial;
    int64_t seed;
    bool json, raw;
} needle_options;

#define AT(field) offsetof(needle_options, field)
static const option needle_option_table[] = {
    {0, "lengths", OPTION_TEXT, AT(lengths), "N,N..", 0, 0, "tokens of the prompt, at most (512,1024,2048)"},
    {0, "depths", OPTION_TEXT, AT(depths), "D,D..", 0, 0, "where the fact stands, in per cent (0,25,50,75,100)"},
    {0, "trials", OPTION_INT, AT(n_trial), "N", 1, 1000, "facts at each length and depth (1)"},
    {0, "seed", OPTION_SEED, AT(seed), "S", 0, 1e15, "start of the random numbers (1)"},
    {0, "raw", OPTION_FLAG, AT(raw), NULL, 0, 0, "the text as it is, without the model's chat template"},
    {0, "json", OPTION_FLAG, AT(json), NULL, 0, 0, "as one JSON object"},
    {0, "html", OPTION_TEXT, AT(html), "FILE", 0, 0, "also write a report with a chart"},
};

typedef struct prompt {
    int32_t *ids; // (n) owned
    size_t n;
} prompt;

static void prompt_free(prompt *p) {
    free(p->ids);
    *p = (prompt){0};
}

static int encode_needle(prompt *out, const session *s, const needle *n, bool chat) {
    text words = {0};
    conversation c = {0};
    *out = (prompt){0};
    int result = needle_write(&words, n, chat);
    if (!chat && result == APP_OK) result = prompt_encode(s, words.data, words.n, &out->ids, &out->n);
    if (chat && result == APP_OK) {
        result = conversation_init(&c, false, NULL);
        if (result == APP_OK) result = conversation_add(&c, "user", words.data, words.n);
        if (result == APP_OK) result = conversation_encode(&c, s, &out->ids, &out->n);
        conversation_deinit(&c);
    }
    text_free(&words);
    return result;
}

// Gives the needle as many sentences of filler as n_max tokens allow, by halving.
static int fit_needle(prompt *out, needle *n, const session *s, size_t n_max, bool chat) {
    size_t fits = 0, too_many = n_max; // a sentence has more than one token
    int result = encode_needle(out, s, n, chat);
    if (result == APP_OK && out->n > n_max) {
        result = app_usage("--lengths: the question alone has %zu tokens, more than %zu", out->n, n_max);
        prompt_free(out);
    }
    while (result == APP_OK && fits + 1 < too_many) {
        prompt tried;
        n->n_sentence = fits + (too_many - fits) / 2;
        result = encode_needle(&tried, s, n, chat);
        if (result == APP_OK && tried.n <= n_max) {
            prompt_free(out);
            *out = tried, fits = n->n_sentence;
        } else {
            prompt_free(&tried);
            too_many = n->n_sentence;
        }
    }
    n->n_sentence = fits;
    return result;
}

static void keep_answer(needle_cell *cell, const needle *n, const prompt *p, const answer *a) {
    cell->n_tok = p->n;
    cell->n_tried++;
    cell->n_found += needle_is_found(n, a->text.data ? a->text.data : "");
    size_t n_byte = a->text.n < NEEDLE_SAID - 1 ? a->text.n : NEEDLE_SAID - 1;
    if (n_byte) memcpy(cell->said, a->text.data, n_byte);
    cell->said[n_byte] = '\0';
}

static int ask(needle_cell *cell, needle_table *t, needle *n, size_t n_max, bool chat) {
    prompt now = {0};
    answer a = {0};
    sluice_sampler *sampler = NULL;
    sluice_sampler_options greedy = sluice_sampler_options_default();
    greedy.temp = 0;
    int result = fit_needle(&now, n, &t->session, n_max, chat);
    if (result == APP_OK) {
        sluice_status status =
            sluice_sampler_create(&sampler, t->session.model_info.n_vocab, t->session.engine_info.n_ctx, &greedy);
        if (status != SLUICE_OK) result = app_fail_library(status);
    }
    if (result == APP_OK) {
        generate_request request = {
            .ids = now.ids, .n_ids = now.n, .n_max = NEEDLE_ANSWER, .n_top = -1, .sampler = sampler};
        result = generate(&a, &t->session, &request);
    }
    if (result == APP_OK && a.stop == STOP_INTERRUPTED) result = app_fail_library(SLUICE_CANCELLED);
    if (result == APP_OK) keep_answer(cell, n, &now, &a);
    answer_free(&a);
    sluice_sampler_destroy(&sampler);
    prompt_free(&now);
    return result;
}

static int measure(needle_table *t, bool chat) {
    progress bar;
    int result = APP_OK;
    uint64_t n_done = 0, n_all = (uint64_t)t->lengths.n * t->depths.n * (uint64_t)t->n_trial;
    progress_start(&bar, "needle");
    for (size_t c = 0; c < t->lengths.n; c++)
        for (int32_t trial = 0; trial < t->n_trial; trial++)
            for (size_t r = t->depths.n; r-- > 0 && result == APP_OK;) { // deepest first: the others begin like it
                uint64_t seed = (uint64_t)t->seed + (uint64_t)trial;
                needle n = needle_make(seed, c * NUMBER_LIST_MAX + r, t->depths.value[r] / 100.0);
                needle_cell *cell = &t->cell[c * NUMBER_LIST_MAX + r];
                result = ask(cell, t, &n, (size_t)t->lengths.value[c], chat);
                if (result == APP_OK && progress_update(&bar, ++n_done, n_all)) result = APP_INTERRUPTED;
            }
    progress_end(&bar);
    return result;
}

static int evaluate(needle_table *t, session_options *engine, const needle_options *options) {
    session *s = &t->session;
    int32_t n_needed = t->lengths.value[t->lengths.n - 1] + NEEDLE_ANSWER;
    if (!s->model_info.has_tokenizer) return app_fail("%s: has no tokenizer", t->model_path);
    if (engine->n_ctx && engine->n_ctx < n_needed)
        return app_usage("the prompts and answers need %d positions but --ctx is %d", (int)n_needed,
                         (int)engine->n_ctx);
    if (!engine->n_ctx) engine->n_ctx = n_needed;
    int result = session_open_engine(s, engine, 1);
    if (result == APP_OK) result = measure(t, s->model_info.has_chat_template && !options->raw);
    if (result == APP_OK && options->html) result = needle_write_page(t, options->html);
    if (result == APP_OK) result = options->json ? needle_print_json(t) : needle_print_table(t);
    return result;
}

int eval_needle(int argc, char **argv) {
    needle_options options = {.lengths = "512,1024,2048", .depths = "0,25,50,75,100", .n_trial = 1, .seed = 1};
    session_options engine = {0};
    const option_group groups[] = {
        {"options", needle_option_table, sizeof needle_option_table / sizeof *needle_option_table, &options},
        {"engine", session_engine_options, sizeof session_engine_options / sizeof *session_engine_options, &engine},
        {"model", session_model_options, 2, &engine},
    };
    const command_line line = {
        "sluice eval needle MODEL [options]",
        "Hides a sentence with a number in a long text and asks for the number. Prints how often "
        "the answer has it, by\n"
        "length of the prompt and depth of the sentence. A model with a chat template is asked in "
        "its form.\n",
        groups,
        3,
        1,
        1};
    enum { LENGTH_MIN = 64, LENGTH_MAX = 1 << 24 };
    static needle_table t; // large
    int result = options_parse(&line, argc, argv, &t.model_path);
    if (result == OPTIONS_GO_ON)
        result = number_list_parse(&t.lengths, "lengths", options.lengths, LENGTH_MIN, LENGTH_MAX);
    if (result == OPTIONS_GO_ON) result = number_list_parse(&t.depths, "depths", options.depths, 0, 100);
    if (result != OPTIONS_GO_ON) return result;
    t.n_trial = options.n_trial, t.seed = options.seed;
    interrupt_catch();
    result = session_open_model(&t.session, t.model_path, &engine, SESSION_WEIGHTS);
    if (result == APP_OK) result = evaluate(&t, &engine, &options);
    session_close(&t.session);
    return result;
}
