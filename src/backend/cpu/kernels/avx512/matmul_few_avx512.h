// SPDX-License-Identifier: MIT
//
// sl_panel_few_fn of every block type.
#ifndef SL_BACKEND_CPU_MATMUL_FEW_AVX512_H
#define SL_BACKEND_CPU_MATMUL_FEW_AVX512_H

#include "backend/cpu/kernels/matmul.h"

sl_panel_few_fn sl_few_q4_0_avx512, sl_few_q4_1_avx512, sl_few_q5_0_avx512, sl_few_q5_1_avx512, sl_few_q8_0_avx512,
    sl_few_q2_k_avx512, sl_few_q3_k_avx512, sl_few_q4_k_avx512, sl_few_q5_k_avx512, sl_few_q6_k_avx512,
    sl_few_iq4_nl_avx512, sl_few_iq4_xs_avx512, sl_few_mxfp4_avx512;

#endif
