// SPDX-License-Identifier: MIT
//
// sluice inspect: what is in a GGUF file, also one that sluice cannot run.
#include <string.h>

#include "files.h"
#include "options.h"

typedef struct inspect_options {
    bool json, full;
} inspect_options;

enum { SHORT_ARRAY = 8 };

static const option inspect_table[] = {
    {0, "json", OPTION_FLAG, offsetof(inspect_options, json), NULL, 0, 0, "as one JSON object"},
    {0, "full", OPTION_FLAG, offsetof(inspect_options, full), NULL, 0, 0, "long arrays to their end"},
};

int cmd_inspect(int argc, char **argv) {
    inspect_options options = {0};
    const option_group groups[] = {{"options", inspect_table, 2, &options}};
    const command_line line = {"sluice inspect FILE [--json] [--full]",
                               "Prints the metadata and the tensors of a GGUF file, whatever architecture it is of.\n",
                               groups,
                               1,
                               1,
                               1};
    const char *path;
    int result = options_parse(&line, argc, argv, &path);
    if (result != OPTIONS_GO_ON) return result;
    sluice_file *file = NULL;
    char *description = NULL;
    sluice_status status = sluice_file_open(&file, path);
    if (status == SLUICE_OK)
        status = sluice_file_describe(file, options.json, options.full ? 0 : SHORT_ARRAY, &description);
    result = status == SLUICE_OK ? out_write(description, strlen(description)) : app_fail_library(status);
    sluice_free(description);
    sluice_file_close(&file);
    return result;
}
