// SPDX-License-Identifier: MIT
//
// The measurements of sluice eval.
#ifndef SLUICE_EVAL_H
#define SLUICE_EVAL_H

#include "app.h"

// Rows of a step if --chunk is not given. Most want logits, n_vocab floats each, so a step is short.
enum { EVAL_CHUNK = 64 };

app_command eval_logits, eval_ppl, eval_kl, eval_kv, eval_needle;

#endif
