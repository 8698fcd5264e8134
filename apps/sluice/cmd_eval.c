// SPDX-License-Identifier: MIT
//
// sluice eval: how good the numbers are.
#include <string.h>

#include "eval.h"
#include "files.h"

static const char help[] = "usage: sluice eval logits MODEL --ids FILE.json --out F.npy [options]\n"
                           "       sluice eval ppl MODEL FILE [options]\n\n"
                           "  logits   the logits after each token, as a float32 numpy array (n, n_vocab)\n"
                           "  ppl      the perplexity of a text, in windows as llama-perplexity takes them\n\n"
                           "sluice eval logits --help and sluice eval ppl --help list the options.\n";

int cmd_eval(int argc, char **argv) {
    static const char *const names[] = {"logits", "ppl"};
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "logits") == 0) return eval_logits(argc - 1, argv + 1);
    if (strcmp(name, "ppl") == 0) return eval_ppl(argc - 1, argv + 1);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return out_write(help, strlen(help));
    const char *nearest = app_nearest(name, names, 2);
    if (!*name) return app_usage("eval needs to know what: logits or ppl");
    return app_usage("eval has no \"%s\"; is it %s?", name, nearest ? nearest : "logits or ppl");
}
