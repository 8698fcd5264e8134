// SPDX-License-Identifier: MIT
//
// AVX-512 VNNI: block weights times ACT16. Many rows by panels of 16 bits (matmul_wide_avx512.c); few rows as they are
// unpacked (matmul_few_avx512.c) in panel order, by panels of bytes (matmul_tile_avx512.h) in the order of the file.
#include "backend/cpu/kernels/avx512/matmul_few_avx512.h"
#include "backend/cpu/kernels/avx512/matmul_tile_avx512.h"
#include "backend/cpu/kernels/avx512/matmul_vec_avx512.h"
#include "backend/cpu/kernels/avx512/matmul_wide_avx512.h"
#include "backend/cpu/kernels/matmul_level.h"
#include "backend/cpu/kernels/matmul_panel.h"

SL_INLINE void multiply(float *acc, const sl_panel *panel, uint32_t n_panel, const sl_act_blk *act,
                        const uint32_t grp_len, const bool minima) {
    multiply_tiles(acc, panel, n_panel, act, grp_len, minima);
}

#define FEW(name)  sl_few_##name##_avx512
#define WIDE(name) (&sl_wide_##name##_avx512)
#include "backend/cpu/kernels/matmul_types.h"

void sl_cpu_matmul_init_avx512(sl_cpu_kernels *k) {
    set_matmul_blocks(k);
    sl_cpu_matmul_init_float_avx512(k);
    k->quant = sl_cpu_quant_act_avx512;
}
