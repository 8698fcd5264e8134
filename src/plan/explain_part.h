// SPDX-License-Identifier: MIT
//
// The attributes of an op as named numbers, for both prints. Private to explain*.c.
#ifndef SL_PLAN_EXPLAIN_PART_H
#define SL_PLAN_EXPLAIN_PART_H

#include "plan/plan.h"

typedef struct sl_attr_number {
    const char *name;
    double value;
} sl_attr_number;

enum { SL_ATTR_MAX = 5 };
int sl_op_attr_numbers(const sl_op *op, sl_attr_number out[SL_ATTR_MAX]); // how many there are

static inline const char *sl_who_name(const sl_op *op) {
    static const char *const names[] = {[SL_WHO_ALL] = "all", [SL_WHO_EACH] = "each", [SL_WHO_OWN] = "own"};
    return names[op->who];
}

static inline const char *sl_value_kind_name(const sl_value *v) { return v->kind == SL_VALUE_ACT16 ? "act16" : "f32"; }

#endif
