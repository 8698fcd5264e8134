// SPDX-License-Identifier: MIT
//
// sluice plan: what a model will do on a machine, before it is loaded.
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "options.h"

typedef struct plan_options {
    int32_t n_ctx, n_thread;
    const char *kv, *device, *repack;
    bool json, measure;
} plan_options;

#define AT(field) offsetof(plan_options, field)

static const option plan_table[] = {
    {0, "ctx", OPTION_INT, AT(n_ctx), "N", 0, INT32_MAX, "positions to keep (0: the model's, at most 4096)"},
    {0, "kv", OPTION_TEXT, AT(kv), "TYPE", 0, 0,
     "type of the KV cache, f32 to q4_0 (f16, or q8_0 where that does not fit)"},
    {0, "on", OPTION_TEXT, AT(device), "DEVICE", 0, 0,
     "\"rtx 5090\", \"m4 max 64gb\", \"gddr7 32gbps x256\", \"h200 + ddr5-5600x8\" (this machine)"},
    {0, "threads", OPTION_INT, AT(n_thread), "N", 0, 1024, "threads of this machine (0: all processors)"},
    {0, "repack", OPTION_CHOICE, AT(repack), "auto|on|off", 0, 0,
     "count copies of weights in the order of the kernels (auto: if memory is free)"},
    {0, "measure", OPTION_FLAG, AT(measure), NULL, 0, 0, "measure the memory anew, and not remember it"},
    {0, "json", OPTION_FLAG, AT(json), NULL, 0, 0, "as one JSON object"},
};

int cmd_plan(int argc, char **argv) {
    plan_options options = {0};
    const option_group groups[] = {{"options", plan_table, sizeof plan_table / sizeof *plan_table, &options}};
    const command_line line = {
        "sluice plan MODEL [options]",
        "Says what the model takes in memory, whether it fits, how fast it will be and what limits "
        "it, and how it\n"
        "would do placed in other ways. Only the file's header is read; the architecture need not "
        "be one that\n"
        "sluice runs.\n",
        groups,
        1,
        1,
        1};
    const char *path;
    int result = options_parse(&line, argc, argv, &path);
    if (result != OPTIONS_GO_ON) return result;
    char cache[4096], *report = NULL;
    sluice_plan_options plan = sluice_plan_options_default();
    plan.n_ctx = options.n_ctx;
    plan.n_thread = options.n_thread;
    if (options.kv) plan.kv = options.kv;
    if (options.repack)
        plan.repack = strcmp(options.repack, "on") == 0    ? SLUICE_REPACK_ON
                      : strcmp(options.repack, "off") == 0 ? SLUICE_REPACK_OFF
                                                           : SLUICE_REPACK_AUTO;
    plan.device = options.device;
    plan.cache_path = options.measure ? NULL : file_cache_path(cache, sizeof cache);
    sluice_status status = sluice_plan(path, &plan, options.json, &report);
    result = status == SLUICE_OK ? out_write(report, strlen(report)) : app_fail_library(status);
    sluice_free(report);
    return result;
}
