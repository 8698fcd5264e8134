// SPDX-License-Identifier: MIT
//
// Fills the kernel table with this level's kernels: those of this folder and the matrix products.
#include "backend/cpu/kernels/matmul.h"
#include "backend/cpu/kernels/tmpl/tmpl.h"

void SL_KERNEL(sl_cpu_kernels_init)(sl_cpu_kernels *k) {
    k->level = SL_ISA_NAME;
    k->norm = sl_cpu_norm;
    k->glu = sl_cpu_glu;
    k->add = sl_cpu_add;
    k->softcap = sl_cpu_softcap;
    k->rope = sl_cpu_rope;
    k->kv_write[SL_TYPE_F32] = sl_cpu_kv_write_f32;
    k->kv_write[SL_TYPE_F16] = sl_cpu_kv_write_f16;
    k->kv_write[SL_TYPE_BF16] = sl_cpu_kv_write_bf16;
    k->kv_write[SL_TYPE_Q8_0] = sl_cpu_kv_write_q8_0;
    k->kv_write[SL_TYPE_Q5_0] = sl_cpu_kv_write_q5_0;
    k->kv_write[SL_TYPE_Q4_0] = sl_cpu_kv_write_q4_0;
    k->kv_close[SL_TYPE_Q8_0] = sl_cpu_kv_close_q8_0;
    k->kv_close[SL_TYPE_Q5_0] = sl_cpu_kv_close_q5_0;
    k->kv_close[SL_TYPE_Q4_0] = sl_cpu_kv_close_q4_0;
    k->attend = sl_cpu_attend_tile;
    k->attend_span = sl_cpu_attend_span;
    k->attend_merge = sl_cpu_attend_merge;
    k->attend_part_bytes = sl_cpu_attend_part_bytes;
    k->attend_scratch_bytes = sl_cpu_attend_scratch_bytes;
    SL_KERNEL(sl_cpu_matmul_init)(k);
}
