// SPDX-License-Identifier: MIT
//
// sluice run: a prompt in, text out; without a prompt, a chat.
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"
#include "run.h"
#include "saved_session.h"

#define AT(field) offsetof(run_options, field)

static const option run_table[] = {
    {'p', "prompt", OPTION_TEXT, AT(prompt), "TEXT", 0, 0, "the prompt"},
    {'f', "file", OPTION_TEXT, AT(prompt_path), "FILE", 0, 0, "a file with the prompt (-: standard input)"},
    {'n', "max-tokens", OPTION_INT, AT(n_max), "N", -1, INT32_MAX,
     "tokens to make at most (-1: until the model ends or the context is full)"},
    {0, "raw", OPTION_FLAG, AT(raw), NULL, 0, 0, "the prompt as it is, without the model's chat template"},
    {0, "system", OPTION_TEXT, AT(system), "TEXT", 0, 0, "the system message"},
    {0, "tools", OPTION_TEXT, AT(tools_path), "FILE", 0, 0, "a JSON array of tools for the chat template"},
    {0, "session", OPTION_TEXT, AT(session_path), "FILE", 0, 0,
     "keep what was computed, and a chat, in FILE, and go on from there"},
    {0, "json", OPTION_FLAG, AT(json), NULL, 0, 0, "print one JSON object: text, ids, stop reason, timings, counts"},
    {0, "logprobs", OPTION_INT, AT(n_top), "N", 0, 1000, "with --json: the N most likely tokens at each step"},
};

static const option sampling_table[] = {
    {0, "logit-bias", OPTION_LIST, AT(bias), "ID=V", 0, 0, "add V to the logit of token ID; may be repeated"},
    {0, "repeat-penalty", OPTION_REAL, AT(repeat_penalty), "X", 0.01, 100,
     "divide logits of tokens that occurred (1: off)"},
    {0, "frequency-penalty", OPTION_REAL, AT(frequency_penalty), "X", -100, 100,
     "take X off for each time they did (0)"},
    {0, "presence-penalty", OPTION_REAL, AT(presence_penalty), "X", -100, 100, "take X off tokens that occurred (0)"},
    {0, "penalty-window", OPTION_INT, AT(penalty_window), "N", -1, INT32_MAX,
     "tokens that penalties look back on (64; -1: all)"},
    {0, "top-k", OPTION_INT, AT(top_k), "K", 0, INT32_MAX, "keep the K most likely (40; 0: all)"},
    {0, "typical", OPTION_REAL, AT(typical_p), "P", 0, 1, "keep the locally typical share P (1: all)"},
    {0, "top-p", OPTION_REAL, AT(top_p), "P", 0, 1, "keep the most likely share P (0.95; 1: all)"},
    {0, "min-p", OPTION_REAL, AT(min_p), "P", 0, 1, "drop what is under P times the likeliest (0.05; 0: none)"},
    {0, "temp", OPTION_REAL, AT(temp), "T", 0, 100, "temperature (0.8); 0 takes the most likely token"},
    {0, "seed", OPTION_SEED, AT(seed), "S", 0, 9.2e18,
     "start of the random numbers (by the clock, or as the session has it)"},
};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void set_defaults(run_options *o) {
    sluice_sampler_options d = sluice_sampler_options_default();
    *o = (run_options){.n_max = -1, .n_top = -1, .temp = d.temp, .top_k = d.top_k, .top_p = d.top_p, .min_p = d.min_p};
    o->typical_p = d.typical_p, o->repeat_penalty = d.repeat_penalty, o->presence_penalty = d.presence_penalty;
    o->frequency_penalty = d.frequency_penalty, o->penalty_window = d.penalty_window, o->seed = -1;
}

int64_t run_seed_by_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((int64_t)now.tv_sec * 1000003 + now.tv_nsec) & 0x7fffffff;
}

static int parse_bias(const session *s, const option_list *list, int32_t *ids, float *values) {
    for (size_t i = 0; i < list->n; i++) {
        char *end, *end_value;
        long id = strtol(list->item[i], &end, 10);
        double value = *end == '=' ? strtod(end + 1, &end_value) : 0;
        if (end == list->item[i] || *end != '=' || end_value == end + 1 || *end_value || value != value) {
            return app_usage("--logit-bias must be ID=V, like 198=-1.5, not \"%s\"", list->item[i]);
        }
        if (id < 0 || id >= s->model_info.n_vocab) {
            return app_usage("--logit-bias: there is no token %ld; ids go from 0 to %d", id,
                             (int)s->model_info.n_vocab - 1);
        }
        ids[i] = (int32_t)id, values[i] = (float)value;
    }
    return APP_OK;
}

int run_create_sampler(sluice_sampler **out, const session *s, const run_options *options) {
    int32_t ids[OPTION_LIST_MAX];
    float values[OPTION_LIST_MAX];
    int result = parse_bias(s, &options->bias, ids, values);
    if (result != APP_OK) return result;
    sluice_sampler_options o = sluice_sampler_options_default();
    o.temp = options->temp, o.top_k = options->top_k, o.top_p = options->top_p, o.min_p = options->min_p;
    o.typical_p = options->typical_p, o.repeat_penalty = options->repeat_penalty;
    o.presence_penalty = options->presence_penalty, o.frequency_penalty = options->frequency_penalty;
    o.penalty_window = options->penalty_window, o.seed = (uint64_t)options->seed;
    o.bias_ids = ids, o.bias = values, o.n_bias = options->bias.n;
    sluice_status status = sluice_sampler_create(out, s->model_info.n_vocab, s->engine_info.n_ctx, &o);
    return status == SLUICE_OK ? APP_OK : app_fail_library(status);
}

// The prompt that -p, -f or standard input gave as a conversation, and its ids.
static int encode_prompt(conversation *c, const session *s, const run_options *options, const text *prompt,
                         int32_t **ids, size_t *n) {
    *ids = NULL;
    int result = conversation_init(c, options->raw || !s->model_info.has_chat_template, options->tools_path);
    if (result == APP_OK && options->system) result = conversation_set_system(c, options->system);
    if (result == APP_OK) result = conversation_add(c, "user", prompt->data, prompt->n);
    if (result == APP_OK && options->raw) result = prompt_encode(s, prompt->data, prompt->n, ids, n);
    else if (result == APP_OK) result = conversation_encode(c, s, ids, n);
    return result;
}

static int emit_out(void *user, const char *bytes, size_t n) {
    (void)user;
    return out_write(bytes, n);
}

static int store(const session *s, conversation *c, const answer *a, const run_options *options) {
    int result = a->text.n ? conversation_add(c, "assistant", a->text.data, a->text.n) : APP_OK;
    chat_draws next = {.seed = options->seed, .n_turn = 1};
    return result == APP_OK ? saved_session_store(s, c, next, options->session_path) : result;
}

static int run_once(session *s, const run_options *options, const text *prompt) {
    int32_t *ids;
    size_t n_ids;
    answer a = {0};
    conversation c;
    sluice_sampler *sampler = NULL;
    int result = encode_prompt(&c, s, options, prompt, &ids, &n_ids);
    if (result == APP_OK && options->session_path) result = saved_session_load(s, NULL, NULL, options->session_path);
    if (result == APP_OK) result = run_create_sampler(&sampler, s, options);
    if (result == APP_OK) {
        generate_request request = {.ids = ids,
                                    .n_ids = n_ids,
                                    .n_max = options->n_max,
                                    .n_top = options->n_top,
                                    .sampler = sampler,
                                    .emit = options->json ? NULL : emit_out};
        result = generate(&a, s, &request);
        if (result == APP_OK) result = options->json ? run_print_json(s, options, &request, &a) : out_write("\n", 1);
        if (result == APP_OK) run_print_speed(s, &a);
        if (result == APP_OK && a.stop == STOP_CONTEXT)
            app_note("the context of %d positions is full; --ctx makes it larger, --ctx-window goes on in it",
                     (int)s->engine_info.n_ctx);
        if (result == APP_OK) session_keep_prefixes(s);
        if (result == APP_OK && options->session_path) result = store(s, &c, &a, options);
        if (result == APP_OK && a.stop == STOP_INTERRUPTED) result = APP_INTERRUPTED;
    }
    answer_free(&a);
    sluice_sampler_destroy(&sampler);
    conversation_deinit(&c);
    free(ids);
    return result;
}

static int check_options(const run_options *o, bool interactive) {
    if (o->prompt && o->prompt_path) return app_usage("-p and -f exclude each other");
    if (o->n_top >= 0 && !o->json) return app_usage("--logprobs needs --json");
    if (o->raw && (o->system || o->tools_path))
        return app_usage("--system and --tools need the chat template; they exclude --raw");
    if (interactive && o->json) return app_usage("--json needs a prompt: -p, -f or standard input");
    return APP_OK;
}

int cmd_run(int argc, char **argv) {
    static run_options options; // static for its size
    session_options engine = {0};
    set_defaults(&options);
    const option_group groups[] = {
        {"text", run_table, LENGTH(run_table), &options},
        {"sampling, in the order of its steps", sampling_table, LENGTH(sampling_table), &options},
        {"engine", session_engine_options, LENGTH(session_engine_options), &engine},
        {"prefixes", session_prefix_options, LENGTH(session_prefix_options), &engine},
        {"model", session_model_options, LENGTH(session_model_options), &engine},
    };
    const command_line line = {"sluice run MODEL [-p TEXT | -f FILE] [options]",
                               "Generates text with a GGUF model. The prompt comes from -p, from "
                               "-f, or from standard input if that is not\n"
                               "a terminal; otherwise it is a chat (/help there lists its "
                               "commands). A model with a chat template gets the\n"
                               "prompt as the user's message. Text goes to standard output, one "
                               "line of timings to standard error.\n",
                               groups,
                               LENGTH(groups),
                               1,
                               1};
    const char *path;
    int result = options_parse(&line, argc, argv, &path);
    if (result != OPTIONS_GO_ON) return result;
    bool interactive = !options.prompt && !options.prompt_path && isatty(STDIN_FILENO) == 1;
    result = check_options(&options, interactive);
    text prompt = {0};
    if (result == APP_OK && options.prompt) result = text_append(&prompt, options.prompt, strlen(options.prompt));
    else if (result == APP_OK && !interactive) result = file_read(&prompt, options.prompt_path);
    if (result != APP_OK) return result;
    interrupt_catch();
    session s = {0};
    result = session_open_model(&s, path, &engine, SESSION_WEIGHTS);
    if (result == APP_OK && !s.model_info.has_tokenizer)
        result = app_fail("%s: has no tokenizer; only eval logits can run it", path);
    if (result == APP_OK && !s.model_info.has_chat_template && (options.system || options.tools_path)) {
        result = app_fail("%s: has no chat template, which --system and --tools need", path);
    }
    enum { COPIES_PAY = 64 }; // tokens after which copies of weights have repaid their making
    if (!engine.repack && options.n_max >= 0 && options.n_max < COPIES_PAY) engine.repack = "off";
    engine.prefix_cache = true;
    if (result == APP_OK) result = session_open_engine(&s, &engine, 1);
    if (!interactive && options.seed < 0) options.seed = run_seed_by_clock();
    if (result == APP_OK) result = interactive ? chat(&s, &options) : run_once(&s, &options, &prompt);
    session_close(&s);
    text_free(&prompt);
    return result;
}
