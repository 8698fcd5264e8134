// SPDX-License-Identifier: MIT
//
// The parts of sl_plan_verify. Each takes for granted what the earlier ones have shown. Private to
// verify*.c.
#ifndef SL_PLAN_VERIFY_PART_H
#define SL_PLAN_VERIFY_PART_H

#include "plan/plan.h"

// "op 12 (matmul, layer 3): ..." as SL_INTERNAL
sl_status sl_verify_fail(const sl_plan *plan, uint32_t op, const char *fmt, ...) SL_PRINTF(3, 4);

sl_status sl_verify_shapes(const sl_plan *plan); // each op against its definition in ops.def
sl_status sl_verify_memory(const sl_plan *plan); // offsets, overlaps, barriers, KV pool, totals

#endif
