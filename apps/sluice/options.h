// SPDX-License-Identifier: MIT
//
// The options of a command as a table: parsing, range checks and --help all come from it.
//
// "--name value", "--name=value", "-x value" and "-xvalue" are the same; "--" ends the options. An
// option that does not exist is refused with the nearest one that does.
#ifndef SLUICE_OPTIONS_H
#define SLUICE_OPTIONS_H

#include "app.h"

enum { OPTION_LIST_MAX = 256 };

typedef struct option_list { // of an option that may be given again and again
    const char *item[OPTION_LIST_MAX];
    size_t n;
} option_list;

typedef enum option_kind { // and the type of the field that it fills
    OPTION_FLAG,           // bool
    OPTION_INT,            // int32_t
    OPTION_SEED,           // int64_t
    OPTION_REAL,           // float
    OPTION_TEXT,           // const char *
    OPTION_CHOICE,         // const char *; `value` holds the words, "f16|f32"
    OPTION_LIST            // option_list
} option_kind;

typedef struct option {
    char letter; // 0: none
    const char *name;
    option_kind kind;
    size_t at;         // offset of the field in the group's struct
    const char *value; // what --help calls the value
    double min, max;
    const char *help;
} option;

typedef struct option_group {
    const char *title;
    const option *options;
    size_t n;
    void *into; // the struct that the offsets are of
} option_group;

typedef struct command_line {
    const char *usage; // "sluice run MODEL [options]"
    const char *about; // a paragraph for --help
    const option_group *groups;
    size_t n_group;
    size_t n_operand_min, n_operand_max; // MODEL, FILE
} command_line;

enum { OPTIONS_GO_ON = -1 };

// OPTIONS_GO_ON with the operands (n_operand_max of them, NULL where not given), or the status to
// leave with: after
// --help, or a mistake that was printed.
int options_parse(const command_line *line, int argc, char **argv, const char **operands);

#endif
