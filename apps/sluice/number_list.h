// SPDX-License-Identifier: MIT
//
// An option's value that is a list: "32,128,512".
#ifndef SLUICE_NUMBER_LIST_H
#define SLUICE_NUMBER_LIST_H

#include "app.h"

enum { NUMBER_LIST_MAX = 32 };

typedef struct number_list {
    int32_t value[NUMBER_LIST_MAX]; // rising
    size_t n;
} number_list;

// OPTIONS_GO_ON, or APP_USAGE and has printed what is wrong. `name` is the option's.
int number_list_parse(number_list *out, const char *name, const char *text, int32_t min, int32_t max);

#endif
