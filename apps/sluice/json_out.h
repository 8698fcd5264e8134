// SPDX-License-Identifier: MIT
//
// Results as JSON on standard output.
#ifndef SLUICE_JSON_OUT_H
#define SLUICE_JSON_OUT_H

#include <jansson.h>

#include "app.h"

// One line. Takes root, which may be NULL for want of memory. APP_OK, or has printed why not.
int json_print(json_t *root);
// null for what is no number.
json_t *json_finite(double value);

#endif
