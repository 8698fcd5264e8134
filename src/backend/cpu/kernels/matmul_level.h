// SPDX-License-Identifier: MIT
//
// Private to the matrix products of the levels: the parts of each that are files of their own.
#ifndef SL_BACKEND_CPU_MATMUL_LEVEL_H
#define SL_BACKEND_CPU_MATMUL_LEVEL_H

#include "backend/cpu/kernels/kernels.h"

// matmul_float_<level>.c: F32, F16 and BF16 weights.
void sl_cpu_matmul_init_float_generic(sl_cpu_kernels *k);
void sl_cpu_matmul_init_float_avx2(sl_cpu_kernels *k);
void sl_cpu_matmul_init_float_avx512(sl_cpu_kernels *k);
void sl_cpu_matmul_init_float_neon(sl_cpu_kernels *k);

// quant_act.h, compiled for each level.
void sl_cpu_quant_act_generic(void *out, const float *in, uint32_t n_col);
void sl_cpu_quant_act_avx2(void *out, const float *in, uint32_t n_col);
void sl_cpu_quant_act_avx512(void *out, const float *in, uint32_t n_col);
void sl_cpu_quant_act_neon(void *out, const float *in, uint32_t n_col);

#endif
