// SPDX-License-Identifier: MIT
//
// The way of every block type for many rows.
#ifndef SL_BACKEND_CPU_MATMUL_WIDE_AVX512_H
#define SL_BACKEND_CPU_MATMUL_WIDE_AVX512_H

#include "backend/cpu/kernels/matmul.h"

extern const sl_panel_way sl_wide_q4_0_avx512, sl_wide_q4_1_avx512, sl_wide_q5_0_avx512, sl_wide_q5_1_avx512,
    sl_wide_q8_0_avx512, sl_wide_q2_k_avx512, sl_wide_q3_k_avx512, sl_wide_q4_k_avx512, sl_wide_q5_k_avx512,
    sl_wide_q6_k_avx512, sl_wide_iq4_nl_avx512, sl_wide_iq4_xs_avx512, sl_wide_mxfp4_avx512;

#endif
