// SPDX-License-Identifier: MIT
//
// The chat. The whole conversation is rendered and encoded anew each turn; what the KV cache
// already holds of it, the longest common beginning of the ids, is kept (generate.h), and only the
// rest is computed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "line_editor.h"
#include "run.h"
#include "saved_session.h"

typedef struct chat_state {
    session *session;
    const run_options *options;
    conversation said;
    chat_draws draws; // by turn, so that /retry draws other numbers
    bool leave;
} chat_state;

typedef struct chat_command {
    const char *name, *argument, *help;
    int (*run)(chat_state *c, const char *argument);
} chat_command;

static int emit_answer(void *user, const char *bytes, size_t n) {
    (void)user;
    return out_write(bytes, n);
}

// What goes wrong is printed; the chat goes on.
static void keep_session(chat_state *c) {
    if (c->options->session_path) saved_session_store(c->session, &c->said, c->draws, c->options->session_path);
}

static int answer_turn(chat_state *c, const int32_t *ids, size_t n_ids) {
    size_t n_ctx = (size_t)c->session->engine_info.n_ctx;
    if (!session_fits(c->session, n_ids)) {
        fprintf(stderr,
                "With this message the conversation has %zu tokens, and the context holds %zu. It "
                "was not taken: /undo takes back a turn, /clear starts anew; --ctx-window goes on.\n",
                n_ids, n_ctx);
        conversation_drop_last(&c->said);
        return APP_OK;
    }
    run_options options = *c->options;
    options.seed = c->draws.seed + c->draws.n_turn++;
    answer a = {0};
    generate_request request = {.ids = ids, .n_ids = n_ids, .n_max = options.n_max, .n_top = -1, .emit = emit_answer};
    int result = run_create_sampler(&request.sampler, c->session, &options);
    if (result == APP_OK) result = generate(&a, c->session, &request);
    if (result == APP_OK) result = out_write("\n", 1);
    if (result == APP_OK && a.stop == STOP_CONTEXT)
        fputs("(The context is full. /undo takes back a turn, /clear starts anew; --ctx-window goes on.)\n", stderr);
    if (result == APP_OK && a.stop == STOP_INTERRUPTED) {
        fputs(a.text.n ? "(stopped)\n" : "(stopped before the answer began: the message was not taken)\n", stderr);
        // Many templates refuse two messages of the user in a row.
        if (!a.text.n) conversation_drop_last(&c->said);
    }
    if (result == APP_OK) run_print_speed(c->session, &a);
    if (result == APP_OK && a.text.n) result = conversation_add(&c->said, "assistant", a.text.data, a.text.n);
    if (result == APP_OK) session_keep_prefixes(c->session), keep_session(c);
    answer_free(&a);
    sluice_sampler_destroy(&request.sampler);
    return result;
}

// Asks for the answer to what was said last. A template that refuses is told to the user, and the
// chat goes on.
static int answer_last(chat_state *c) {
    int32_t *ids;
    size_t n_ids;
    interrupt_clear();
    int result = APP_OK;
    if (conversation_encode(&c->said, c->session, &ids, &n_ids) != APP_OK) conversation_drop_last(&c->said);
    else result = answer_turn(c, ids, n_ids), free(ids);
    interrupt_clear();
    return result;
}

static int chat_clear(chat_state *c, const char *argument) {
    (void)argument;
    conversation_clear(&c->said);
    return APP_OK;
}

static int chat_system(chat_state *c, const char *argument) {
    if (c->said.plain)
        return fputs("This model has no chat template, so there is no system message.\n", stderr), APP_OK;
    return conversation_set_system(&c->said, argument);
}

static void drop_answer(chat_state *c) {
    if (strcmp(conversation_last_role(&c->said), "assistant") == 0) conversation_drop_last(&c->said);
}

static int chat_retry(chat_state *c, const char *argument) {
    (void)argument;
    drop_answer(c);
    if (strcmp(conversation_last_role(&c->said), "user") == 0) return answer_last(c);
    return fputs("There is nothing to answer yet.\n", stderr), APP_OK;
}

static int chat_undo(chat_state *c, const char *argument) {
    (void)argument;
    drop_answer(c);
    if (strcmp(conversation_last_role(&c->said), "user") == 0) conversation_drop_last(&c->said);
    return APP_OK;
}

static int chat_stats(chat_state *c, const char *argument) {
    (void)argument;
    const sluice_engine_info *info = &c->session->engine_info;
    sluice_engine_stats stats;
    if (sluice_engine_get_stats(c->session->engine, &stats) != SLUICE_OK) return APP_OK;
    fprintf(stderr, "%s on %s, %d threads\n", c->session->model_info.arch, info->device, (int)info->n_thread);
    fprintf(stderr, "context: %d positions%s %d; %zu messages\n", (int)sluice_seq_length(c->session->engine, 0),
            c->session->ctx_window ? ", in a window of" : " of", (int)info->n_ctx, conversation_length(&c->said));
    fprintf(stderr, "memory: weights %.1f MiB, KV %.1f MiB, workspace %.1f MiB\n", (double)info->weight_bytes / 0x1p20,
            (double)info->kv_bytes / 0x1p20, (double)info->workspace_bytes / 0x1p20);
    run_print_cache(&stats);
    fprintf(stderr, "steps: %llu, rows: %llu; allocations: %llu, page faults: %llu minor, %llu major\n",
            (unsigned long long)stats.n_step, (unsigned long long)stats.n_row, (unsigned long long)stats.n_alloc,
            (unsigned long long)stats.n_minor_fault, (unsigned long long)stats.n_major_fault);
    return APP_OK;
}

static int chat_save(chat_state *c, const char *argument) {
    if (!*argument) return fputs("/save needs the name of a file.\n", stderr), APP_OK;
    char *source = json_dumps(c->said.root, JSON_INDENT(1));
    new_file f;
    // What goes wrong is printed; the chat goes on.
    if (source && new_file_open(&f, argument) == APP_OK) {
        if (new_file_write(&f, source, strlen(source)) == APP_OK) new_file_commit(&f);
        new_file_abandon(&f);
    }
    free(source);
    return APP_OK;
}

static int chat_quit(chat_state *c, const char *argument) {
    (void)argument;
    c->leave = true;
    return APP_OK;
}

static int chat_help(chat_state *c, const char *argument);

static const chat_command commands[] = {
    {"/help", "", "this list", chat_help},
    {"/clear", "", "forget the conversation", chat_clear},
    {"/system", " TEXT", "set the system message (nothing: none)", chat_system},
    {"/retry", "", "answer the last message again", chat_retry},
    {"/undo", "", "take back the last message and its answer", chat_undo},
    {"/stats", "", "memory, context and counts", chat_stats},
    {"/save", " FILE", "write the conversation as JSON", chat_save},
    {"/quit", "", "leave (or Ctrl-D)", chat_quit},
};

static int chat_help(chat_state *c, const char *argument) {
    (void)c, (void)argument;
    char left[32];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        snprintf(left, sizeof left, "%s%s", commands[i].name, commands[i].argument);
        fprintf(stderr, "  %-14s %s\n", left, commands[i].help);
    }
    fputs("A line that ends in \\ goes on in the next one; between two lines \"\"\" all lines are "
          "one message.\n"
          "A message that begins with / is written with two. Ctrl-C stops an answer.\n",
          stderr);
    return APP_OK;
}

static int run_command(chat_state *c, const char *line) {
    size_t n = strcspn(line, " ");
    const char *argument = line + n + strspn(line + n, " ");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strlen(commands[i].name) == n && memcmp(commands[i].name, line, n) == 0)
            return commands[i].run(c, argument);
    }
    fprintf(stderr, "There is no command %.*s; /help lists them.\n", (int)n, line);
    return APP_OK;
}

static int take_message(chat_state *c, const text *message) {
    const char *bytes = message->data;
    size_t n = message->n;
    if (n == 0) return APP_OK;
    if (bytes[0] == '/' && bytes[1] != '/') return run_command(c, bytes);
    if (bytes[0] == '/') bytes++, n--;
    int result = conversation_add(&c->said, "user", bytes, n);
    return result == APP_OK ? answer_last(c) : result;
}

int chat(session *s, const run_options *options) {
    chat_state c = {.session = s, .options = options, .draws = {.seed = options->seed}};
    line_editor *editor = NULL;
    text message = {0};
    bool plain = options->raw || !s->model_info.has_chat_template;
    int result = conversation_init(&c.said, plain, options->tools_path);
    if (result == APP_OK && options->session_path)
        result = saved_session_load(s, &c.said, &c.draws, options->session_path);
    if (c.draws.seed < 0) c.draws.seed = run_seed_by_clock();
    if (result == APP_OK && options->system) result = conversation_set_system(&c.said, options->system);
    if (result == APP_OK) result = line_editor_open(&editor);
    if (result == APP_OK) fprintf(stderr, "%s %s; /help lists the commands.\n", s->model_info.arch, s->model_info.name);
    while (result == APP_OK && !c.leave) {
        line_result line = line_editor_read(editor, &message);
        if (line == LINE_FAILED) result = APP_FAILED;
        if (line == LINE_END || line == LINE_FAILED) break;
        if (line == LINE_GIVEN) result = take_message(&c, &message);
    }
    line_editor_close(editor);
    text_free(&message);
    conversation_deinit(&c.said);
    return result;
}
