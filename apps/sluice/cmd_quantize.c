// SPDX-License-Identifier: MIT
//
// sluice quantize: a model's weights in fewer bits.
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "interrupt.h"
#include "options.h"
#include "progress.h"

typedef struct quantize_options {
    const char *imatrix, *output_type, *embedding_type;
    int32_t n_thread;
    bool pure, keep_output, dry_run, json;
} quantize_options;

#define AT(field) offsetof(quantize_options, field)
static const option quantize_table[] = {
    {0, "imatrix", OPTION_TEXT, AT(imatrix), "FILE", 0, 0, "importance matrix (sluice imatrix makes one)"},
    {0, "output-type", OPTION_TEXT, AT(output_type), "TYPE", 0, 0, "type of output.weight"},
    {0, "embedding-type", OPTION_TEXT, AT(embedding_type), "TYPE", 0, 0, "type of token_embd.weight"},
    {0, "pure", OPTION_FLAG, AT(pure), NULL, 0, 0, "every matrix gets the mix's main type"},
    {0, "keep-output", OPTION_FLAG, AT(keep_output), NULL, 0, 0, "output.weight stays as it is"},
    {0, "dry-run", OPTION_FLAG, AT(dry_run), NULL, 0, 0, "say what each tensor would become, write nothing"},
    {'t', "threads", OPTION_INT, AT(n_thread), "N", 1, 1024, "threads (default: all processors)"},
    {0, "json", OPTION_FLAG, AT(json), NULL, 0, 0, "what was done, as one JSON object"},
};

static const char *describe_mixes(char *help, size_t cap) {
    size_t n = (size_t)snprintf(help, cap,
                                "Writes MODEL with its weights as MIX. Vectors and norms stay as they are, and some "
                                "matrices get more bits,\nas users of llama.cpp know it. Best from F32, F16 or BF16. "
                                "The mixes:\n");
    const char *about, *name;
    for (size_t i = 0; (name = sluice_mix_name(i, &about)) && n < cap; i++)
        n += (size_t)snprintf(help + n, cap - n, "  %-10s %s\n", name, about);
    return help;
}

static int quantize(const char *path, const char *out_path, const char *mix, const quantize_options *o) {
    sluice_quantize_options options = sluice_quantize_options_default();
    progress bar;
    char *report = NULL;
    options.mix = mix, options.imatrix_path = o->imatrix, options.output_type = o->output_type;
    options.embedding_type = o->embedding_type, options.n_thread = o->n_thread, options.pure = o->pure;
    options.keep_output = o->keep_output, options.dry_run = o->dry_run;
    options.progress = progress_update, options.user = &bar;
    progress_start(&bar, "quantising");
    sluice_status status = sluice_quantize(path, out_path, &options, o->json, &report);
    progress_end(&bar);
    int result = status == SLUICE_OK ? out_write(report, strlen(report)) : app_fail_library(status);
    sluice_free(report);
    return result;
}

int cmd_quantize(int argc, char **argv) {
    quantize_options options = {0};
    char about[2048];
    const option_group groups[] = {
        {"options", quantize_table, sizeof quantize_table / sizeof *quantize_table, &options},
    };
    const command_line line = {
        "sluice quantize MODEL MIX OUT [options]", describe_mixes(about, sizeof about), groups, 1, 2, 3};
    const char *operands[3];
    int result = options_parse(&line, argc, argv, operands);
    if (result != OPTIONS_GO_ON) return result;
    if (!operands[2] && !options.dry_run) return app_usage("OUT is missing; usage: %s", line.usage);
    interrupt_catch();
    return quantize(operands[0], operands[2], operands[1], &options);
}
