// SPDX-License-Identifier: MIT
//
// The parser of the option tables.
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

typedef struct match { // an option and the group that it belongs to
    const option *option;
    void *into;
} match;

static match find_option(const command_line *line, const char *name, size_t n_name, char letter) {
    for (size_t g = 0; g < line->n_group; g++) {
        const option_group *group = &line->groups[g];
        for (size_t i = 0; i < group->n; i++) {
            const option *o = &group->options[i];
            bool found = letter ? o->letter == letter : strncmp(o->name, name, n_name) == 0 && !o->name[n_name];
            if (found) return (match){o, group->into};
        }
    }
    return (match){0};
}

static int fail_unknown(const command_line *line, const char *name, size_t n_name) {
    const char *names[128] = {"help"};
    size_t n = 1;
    for (size_t g = 0; g < line->n_group; g++) {
        for (size_t i = 0; i < line->groups[g].n && n < 128; i++) names[n++] = line->groups[g].options[i].name;
    }
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)n_name, name);
    const char *nearest = app_nearest(word, names, n);
    if (nearest) return app_usage("there is no option --%s; is it --%s?", word, nearest);
    return app_usage("there is no option --%s; --help lists them", word);
}

static int fail_range(const option *o, const char *what, const char *value) {
    if (o->max >= 1e9) return app_usage("--%s must be %s of at least %g, not \"%s\"", o->name, what, o->min, value);
    return app_usage("--%s must be %s from %g to %g, not \"%s\"", o->name, what, o->min, o->max, value);
}

static bool is_choice(const char *words, const char *value) {
    size_t n = strlen(value);
    for (const char *word = words; n; word += strcspn(word, "|") + 1) {
        if (strcspn(word, "|") == n && memcmp(word, value, n) == 0) return true;
        if (!word[strcspn(word, "|")]) break;
    }
    return false;
}

static int set_number(const option *o, void *field, const char *value) {
    char *end;
    errno = 0;
    if (o->kind == OPTION_REAL) {
        double number = strtod(value, &end);
        if (end == value || *end || !isfinite(number) || number < o->min || number > o->max) {
            return fail_range(o, "a number", value);
        }
        *(float *)field = (float)number;
        return OPTIONS_GO_ON;
    }
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno || (double)number < o->min || (double)number > o->max) {
        return fail_range(o, "a whole number", value);
    }
    if (o->kind == OPTION_SEED) *(int64_t *)field = number;
    else *(int32_t *)field = (int32_t)number;
    return OPTIONS_GO_ON;
}

static int set_value(match m, const char *value) {
    const option *o = m.option;
    void *field = (char *)m.into + o->at;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)field = true; return OPTIONS_GO_ON;
    case OPTION_INT:
    case OPTION_SEED:
    case OPTION_REAL: return set_number(o, field, value);
    case OPTION_CHOICE:
        if (!is_choice(o->value, value))
            return app_usage("--%s must be one of %s, not \"%s\"", o->name, o->value, value);
        *(const char **)field = value;
        return OPTIONS_GO_ON;
    case OPTION_TEXT: *(const char **)field = value; return OPTIONS_GO_ON;
    case OPTION_LIST: break;
    }
    option_list *list = field;
    if (list->n == OPTION_LIST_MAX) return app_usage("--%s is given more than %d times", o->name, OPTION_LIST_MAX);
    list->item[list->n++] = value;
    return OPTIONS_GO_ON;
}

static int print_help(const command_line *line) {
    text help = {0};
    char row[512];
    snprintf(row, sizeof row, "usage: %s\n\n", line->usage);
    int status = text_append(&help, row, strlen(row));
    if (status == APP_OK) status = text_append(&help, line->about, strlen(line->about));
    for (size_t g = 0; g < line->n_group && status == APP_OK; g++) {
        const option_group *group = &line->groups[g];
        snprintf(row, sizeof row, "\n%s:\n", group->title);
        status = text_append(&help, row, strlen(row));
        for (size_t i = 0; i < group->n && status == APP_OK; i++) {
            const option *o = &group->options[i];
            char letter[8] = "    ", left[64];
            if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
            snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
            snprintf(row, sizeof row, "  %-28s %s\n", left, o->help);
            status = text_append(&help, row, strlen(row));
        }
    }
    if (status == APP_OK) status = out_write(help.data, help.n);
    text_free(&help);
    return status;
}

// One argument that begins with a dash. Takes the next one too if it needs its value.
static int parse_option(const command_line *line, int argc, char **argv, int *at) {
    const char *arg = argv[*at], *value = NULL;
    match m;
    if (arg[1] == '-') {
        size_t n_name = strcspn(arg + 2, "=");
        m = find_option(line, arg + 2, n_name, 0);
        if (!m.option) return fail_unknown(line, arg + 2, n_name);
        if (arg[2 + n_name]) value = arg + 2 + n_name + 1;
    } else {
        m = find_option(line, NULL, 0, arg[1]);
        if (!m.option) return app_usage("there is no option -%c; --help lists them", arg[1]);
        if (arg[2]) value = arg + 2;
    }
    if (m.option->kind == OPTION_FLAG && value) return app_usage("--%s takes no value", m.option->name);
    if (m.option->kind != OPTION_FLAG && !value) {
        if (++*at == argc) return app_usage("--%s needs a value, %s", m.option->name, m.option->value);
        value = argv[*at];
    }
    return set_value(m, value);
}

int options_parse(const command_line *line, int argc, char **argv, const char **operands) {
    size_t n = 0;
    bool options_ended = false;
    for (size_t i = 0; i < line->n_operand_max; i++) operands[i] = NULL;
    for (int i = 1; i < argc; i++) {
        if (!options_ended && strcmp(argv[i], "--") == 0) {
            options_ended = true;
        } else if (!options_ended && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            return print_help(line);
        } else if (!options_ended && argv[i][0] == '-' && argv[i][1]) {
            int status = parse_option(line, argc, argv, &i);
            if (status != OPTIONS_GO_ON) return status;
        } else {
            if (n == line->n_operand_max)
                return app_usage("\"%s\" is one argument too many; usage: %s", argv[i], line->usage);
            operands[n++] = argv[i];
        }
    }
    if (n < line->n_operand_min) return app_usage("an argument is missing; usage: %s", line->usage);
    return OPTIONS_GO_ON;
}
