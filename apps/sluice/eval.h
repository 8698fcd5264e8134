// SPDX-License-Identifier: MIT
//
// The measurements of sluice eval.
#ifndef SLUICE_EVAL_H
#define SLUICE_EVAL_H

#include "app.h"

app_command eval_logits, eval_ppl;

#endif
