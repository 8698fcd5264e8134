// SPDX-License-Identifier: MIT
//
// The kernels of this folder, under the names of the level that is being compiled; init.c puts them
// into the table.
#ifndef SL_BACKEND_CPU_TMPL_H
#define SL_BACKEND_CPU_TMPL_H

#include "backend/cpu/kernels/isa.h"
#include "backend/cpu/kernels/kernels.h"

#define sl_cpu_norm                 SL_KERNEL(sl_cpu_norm)
#define sl_cpu_glu                  SL_KERNEL(sl_cpu_glu)
#define sl_cpu_add                  SL_KERNEL(sl_cpu_add)
#define sl_cpu_softcap              SL_KERNEL(sl_cpu_softcap)
#define sl_cpu_rope                 SL_KERNEL(sl_cpu_rope)
#define sl_cpu_kv_rotate            SL_KERNEL(sl_cpu_kv_rotate)
#define sl_cpu_kv_write_f32         SL_KERNEL(sl_cpu_kv_write_f32)
#define sl_cpu_kv_write_f16         SL_KERNEL(sl_cpu_kv_write_f16)
#define sl_cpu_kv_write_bf16        SL_KERNEL(sl_cpu_kv_write_bf16)
#define sl_cpu_kv_write_q8_0        SL_KERNEL(sl_cpu_kv_write_q8_0)
#define sl_cpu_kv_write_q5_0        SL_KERNEL(sl_cpu_kv_write_q5_0)
#define sl_cpu_kv_write_q4_0        SL_KERNEL(sl_cpu_kv_write_q4_0)
#define sl_cpu_kv_close_q8_0        SL_KERNEL(sl_cpu_kv_close_q8_0)
#define sl_cpu_kv_close_q5_0        SL_KERNEL(sl_cpu_kv_close_q5_0)
#define sl_cpu_kv_close_q4_0        SL_KERNEL(sl_cpu_kv_close_q4_0)
#define sl_cpu_attend_tile          SL_KERNEL(sl_cpu_attend_tile)
#define sl_cpu_attend_span          SL_KERNEL(sl_cpu_attend_span)
#define sl_cpu_attend_merge         SL_KERNEL(sl_cpu_attend_merge)
#define sl_cpu_attend_part_bytes    SL_KERNEL(sl_cpu_attend_part_bytes)
#define sl_cpu_attend_scratch_bytes SL_KERNEL(sl_cpu_attend_scratch_bytes)

void sl_cpu_norm(float *out, const float *in, const float *weight, uint32_t n_col, uint32_t group, float eps);
void sl_cpu_glu(float *out, const float *gate, const float *up, uint32_t n_col, uint8_t act);
void sl_cpu_add(float *out, const float *a, const float *b, uint32_t n_col);
void sl_cpu_softcap(float *out, const float *in, uint32_t n_col, float cap);
void sl_cpu_rope(float *out, const float *in, const float *table, const sl_attr_rope *attr);

// sl_kv_rotate of quant/kv_codec.h, for n_rot 0 or a multiple of 32.
void sl_cpu_kv_rotate(float *x, uint32_t n, uint32_t n_rot);
sl_cpu_kv_write_fn sl_cpu_kv_write_f32, sl_cpu_kv_write_f16, sl_cpu_kv_write_bf16, sl_cpu_kv_write_q8_0,
    sl_cpu_kv_write_q5_0, sl_cpu_kv_write_q4_0;
sl_cpu_kv_close_fn sl_cpu_kv_close_q8_0, sl_cpu_kv_close_q5_0, sl_cpu_kv_close_q4_0;
sl_cpu_attend_fn sl_cpu_attend_tile;
sl_cpu_attend_span_fn sl_cpu_attend_span;
sl_cpu_attend_merge_fn sl_cpu_attend_merge;
uint64_t sl_cpu_attend_part_bytes(uint32_t n_query, uint32_t v_dim);
uint64_t sl_cpu_attend_scratch_bytes(uint32_t n_query, uint32_t head_dim, uint32_t v_dim);

#endif
