// SPDX-License-Identifier: MIT
//
// sluice render: a conversation to the prompt that a chat template makes of it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "session.h"

typedef struct render_options {
    const char *now;
} render_options;

static const option render_table[] = {
    {0, "now", OPTION_TEXT, offsetof(render_options, now), "TIME", 0, 0,
     "what the template takes for now: 2026-11-30T12:00:00, or seconds since 1970"},
};

static bool ends_in(const char *name, const char *ending) {
    size_t n = strlen(name), n_ending = strlen(ending);
    return n > n_ending && strcmp(name + n - n_ending, ending) == 0;
}

// 2026-11-30, with T12:00 or T12:00:00 behind it if wanted.
static bool parse_date(int64_t *out, const char *value) {
    struct tm tm = {0};
    int n = 0;
    bool ok = sscanf(value, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &n) == 3;
    const char *clock = value + n;
    if (ok && *clock) ok = sscanf(clock, "T%2d:%2d%n", &tm.tm_hour, &tm.tm_min, &n) == 2;
    if (ok && *clock) clock += n;
    if (ok && *clock) ok = sscanf(clock, ":%2d%n", &tm.tm_sec, &n) == 1 && !clock[n];
    ok = ok && tm.tm_mon >= 1 && tm.tm_mon <= 12 && tm.tm_mday >= 1 && tm.tm_mday <= 31;
    ok = ok && tm.tm_hour >= 0 && tm.tm_hour < 24 && tm.tm_min >= 0 && tm.tm_min < 60 && tm.tm_sec >= 0 &&
         tm.tm_sec < 60;
    tm.tm_year -= 1900, tm.tm_mon -= 1;
    *out = ok ? (int64_t)timegm(&tm) : 0;
    return ok;
}

// A time of the clock on the wall, as the seconds that it would be in a place on GMT.
static int parse_now(int64_t *out, const char *value) {
    if (!value) {
        struct tm local;
        time_t now = time(NULL);
        if (!localtime_r(&now, &local)) return app_fail("the time of day is not known");
        *out = (int64_t)now + local.tm_gmtoff;
        return APP_OK;
    }
    char *end;
    *out = strtoll(value, &end, 10);
    if ((end != value && !*end) || parse_date(out, value)) return APP_OK;
    return app_usage("--now must be like 2026-11-30T12:00:00 or seconds since 1970, not \"%s\"", value);
}

static int render_input(const session *s, const text *template_text, int64_t now) {
    text input;
    char *prompt = NULL;
    int result = file_read(&input, NULL);
    if (result == APP_OK && strlen(input.data) != input.n)
        result = app_fail("standard input: holds a NUL byte, so it is not JSON");
    if (result == APP_OK) {
        sluice_status status = sluice_render(s->model, template_text->data, input.data, now, &prompt);
        result = status == SLUICE_OK ? out_write(prompt, strlen(prompt)) : app_fail_library(status);
    }
    sluice_free(prompt);
    text_free(&input);
    return result;
}

int cmd_render(int argc, char **argv) {
    render_options options = {0};
    const option_group groups[] = {{"options", render_table, 1, &options}};
    const command_line line = {
        "sluice render MODEL|TEMPLATE.jinja [--now TIME] < CONVERSATION.json",
        "Prints the prompt that a chat template (the model's, or a file that ends in .jinja) makes "
        "of a conversation:\n"
        "{\"messages\": [...], \"tools\": [...], \"add_generation_prompt\": true}. Other keys, "
        "such as bos_token or\n"
        "enable_thinking, are passed to the template. Nothing is added to the prompt, not even a "
        "newline.\n",
        groups,
        1,
        1,
        1};
    const char *path;
    int64_t now;
    int result = options_parse(&line, argc, argv, &path);
    if (result != OPTIONS_GO_ON) return result;
    if ((result = parse_now(&now, options.now)) != APP_OK) return result;
    session s = {0};
    text template_text = {0};
    if (ends_in(path, ".jinja")) {
        result = file_read(&template_text, path);
        if (result == APP_OK && strlen(template_text.data) != template_text.n)
            result = app_fail("%s: holds a NUL byte", path);
    } else {
        result = session_open_model(&s, path, &(session_options){0}, SESSION_VOCAB);
    }
    if (result == APP_OK) result = render_input(&s, &template_text, now);
    text_free(&template_text);
    session_close(&s);
    return result;
}
