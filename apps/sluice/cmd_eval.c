// SPDX-License-Identifier: MIT
//
// sluice eval: how good the numbers are.
#include <string.h>

#include "eval.h"
#include "files.h"

static const struct {
    const char *name;
    app_command *run;
} measurements[] = {
    {"logits", eval_logits}, {"kl", eval_kl}, {"ppl", eval_ppl}, {"kv", eval_kv}, {"needle", eval_needle},
};
enum { N_MEASUREMENT = sizeof measurements / sizeof *measurements };

static const char help[] = "usage: sluice eval logits MODEL --ids FILE.json --out F.npy [options]\n"
                           "       sluice eval kl MODEL --ids FILE.json --ref F.npy [options]\n"
                           "       sluice eval ppl MODEL FILE [options]\n"
                           "       sluice eval kv MODEL FILE [options]\n"
                           "       sluice eval needle MODEL [options]\n\n"
                           "  logits   the logits after each token, as a float32 numpy array (n, n_vocab)\n"
                           "  kl       how far the model's laws are from those of saved logits\n"
                           "  ppl      the perplexity of a text, in windows as llama-perplexity takes them\n"
                           "  kv       what each type of the KV cache costs in perplexity, and which to take\n"
                           "  needle   whether a fact in a long text is found again, by length and depth\n\n"
                           "sluice eval kv --help, and so on, list the options.\n";

int cmd_eval(int argc, char **argv) {
    const char *names[N_MEASUREMENT], *name = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < N_MEASUREMENT; i++) {
        names[i] = measurements[i].name;
        if (strcmp(name, names[i]) == 0) return measurements[i].run(argc - 1, argv + 1);
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return out_write(help, strlen(help));
    const char *nearest = app_nearest(name, names, N_MEASUREMENT);
    if (!*name) return app_usage("eval needs to know what: logits, kl, ppl, kv or needle");
    return app_usage("eval has no \"%s\"; is it %s?", name, nearest ? nearest : "logits, kl, ppl, kv or needle");
}
