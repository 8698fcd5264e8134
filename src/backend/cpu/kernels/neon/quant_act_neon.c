// SPDX-License-Identifier: MIT
//
// The ACT16 quantiser with the flags of this level.
#include "backend/cpu/kernels/matmul_level.h"
#include "backend/cpu/kernels/quant_act.h"

void sl_cpu_quant_act_neon(void *out, const float *in, uint32_t n_col) { quant_row(out, in, n_col); }
