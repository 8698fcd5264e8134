// SPDX-License-Identifier: MIT
//
// sluice: one program, a command for each thing that it does.
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "files.h"

static app_command cmd_help, cmd_version;

static const struct command {
    const char *name;
    app_command *run;
    const char *help;
} commands[] = {
    {"run", cmd_run, "generate text from a prompt, or chat"},
    {"tokenize", cmd_tokenize, "text to token ids, and back"},
    {"render", cmd_render, "a conversation to a prompt, by a chat template"},
    {"bench", cmd_bench, "how fast a model runs here, and what share of the memory's bandwidth that is"},
    {"plan", cmd_plan, "what a model will do on a machine: memory, speed, limits"},
    {"explain", cmd_explain, "the program that a model is compiled to"},
    {"inspect", cmd_inspect, "metadata and tensors of a GGUF file"},
    {"quantize", cmd_quantize, "a model's weights in fewer bits"},
    {"imatrix", cmd_imatrix, "which columns of the weights matter, for quantize"},
    {"eval", cmd_eval, "logits of a sequence, perplexity of a text"},
    {"help", cmd_help, "this list, or the options of a command"},
};
enum { N_COMMAND = sizeof commands / sizeof *commands };

static const struct command *find_command(const char *name) {
    for (size_t i = 0; i < N_COMMAND; i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    }
    return NULL;
}

static int fail_unknown(const char *name) {
    const char *names[N_COMMAND];
    for (size_t i = 0; i < N_COMMAND; i++) names[i] = commands[i].name;
    const char *nearest = app_nearest(name, names, N_COMMAND);
    if (nearest) return app_usage("there is no command \"%s\"; is it %s?", name, nearest);
    return app_usage("there is no command \"%s\"; sluice help lists them", name);
}

static int cmd_help(int argc, char **argv) {
    if (argc > 1) {
        const struct command *command = find_command(argv[1]);
        char help[] = "--help", *help_argv[] = {argv[1], help, NULL};
        if (!command) return fail_unknown(argv[1]);
        if (command->run != cmd_help) return command->run(2, help_argv);
    }
    char list[2048];
    size_t n = (size_t)snprintf(list, sizeof list,
                                "sluice %s: local inference of large language models\n\nusage: sluice COMMAND ...\n\n",
                                SLUICE_VERSION);
    for (size_t i = 0; i < N_COMMAND; i++) {
        n += (size_t)snprintf(list + n, sizeof list - n, "  %-10s %s\n", commands[i].name, commands[i].help);
    }
    n += (size_t)snprintf(list + n, sizeof list - n, "\n\"sluice COMMAND --help\" lists the options of a command.\n");
    return out_write(list, n);
}

static int cmd_version(int argc, char **argv) {
    (void)argc, (void)argv;
    static const char version[] = "sluice " SLUICE_VERSION "\n";
    return out_write(version, sizeof version - 1);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); // a reader that went away is a failed write, with a reason
    setlocale(LC_CTYPE, "");  // for the chat line; numbers stay as in C
    if (out_open() != APP_OK) return APP_FAILED;
    int status;
    const char *name = argc > 1 ? argv[1] : "";
    const struct command *command = find_command(name);
    if (!*name) status = app_usage("no command given; sluice help lists them");
    else if (command) status = command->run(argc - 1, argv + 1);
    else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) status = cmd_help(1, argv);
    else if (strcmp(name, "--version") == 0) status = cmd_version(1, argv);
    else status = fail_unknown(name);
    int closed = out_close();
    return status == APP_OK ? closed : status;
}
