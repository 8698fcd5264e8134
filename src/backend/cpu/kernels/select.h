// SPDX-License-Identifier: MIT
//
// The kernel table of this processor.
#ifndef SL_BACKEND_CPU_SELECT_H
#define SL_BACKEND_CPU_SELECT_H

#include "backend/cpu/kernels/kernels.h"
#include "base/status.h"

// Generic kernels, overwritten by each level that `features` (SL_CPU_* of os.h) allow, up to and
// with `level` (NULL: all). SL_BAD_ARG for an unknown level, SL_DEVICE for one that this processor
// lacks.
sl_status sl_cpu_kernels_select(sl_cpu_kernels *out, uint32_t features, const char *level);

// The name of the i-th level of this build, in rising order; NULL past the last.
const char *sl_cpu_level_name(int i);

#endif
