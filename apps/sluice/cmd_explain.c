// SPDX-License-Identifier: MIT
//
// sluice explain: the program that a model is compiled to.
#include <string.h>

#include "files.h"
#include "session.h"

typedef struct explain_options {
    bool json;
} explain_options;

static const option explain_table[] = {
    {0, "json", OPTION_FLAG, offsetof(explain_options, json), NULL, 0, 0, "as one JSON object"},
};

int cmd_explain(int argc, char **argv) {
    explain_options options = {0};
    session_options engine = {0};
    const option_group groups[] = {
        {"options", explain_table, 1, &options},
        {"engine", session_engine_options, sizeof session_engine_options / sizeof *session_engine_options, &engine},
    };
    const command_line line = {
        "sluice explain MODEL [options]",
        "Prints the program that the model is compiled to: each operation with its shapes, types "
        "and bytes, and\n"
        "the memory that it all takes. Only the file's header is read; nothing is computed.\n",
        groups,
        2,
        1,
        1};
    const char *path;
    int result = options_parse(&line, argc, argv, &path);
    if (result != OPTIONS_GO_ON) return result;
    session s;
    char *program = NULL;
    result = session_open_model(&s, path, &engine, SESSION_HEADER);
    if (result == APP_OK) {
        sluice_engine_options engine_options = session_get_engine_options(&engine);
        sluice_status status = sluice_explain(s.model, &engine_options, options.json, &program);
        result = status == SLUICE_OK ? out_write(program, strlen(program)) : app_fail_library(status);
    }
    sluice_free(program);
    session_close(&s);
    return result;
}
