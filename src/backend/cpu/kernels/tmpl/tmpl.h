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
#define sl_cpu_kv_write_f32         SL_KERNEL(sl_cpu_kv_write_f32)
#define sl_cpu_kv_write_f16         SL_KERNEL(sl_cpu_kv_write_f16)
#define sl_cpu_attend_f32           SL_KERNEL(sl_cpu_attend_f32)
#define sl_cpu_attend_f16           SL_KERNEL(sl_cpu_attend_f16)
#define sl_cpu_attend_scratch_bytes SL_KERNEL(sl_cpu_attend_scratch_bytes)

void sl_cpu_norm(float *out, const float *in, const float *weight, uint32_t n_col, uint32_t group, float eps);
void sl_cpu_glu(float *out, const float *gate, const float *up, uint32_t n_col, uint8_t act);
void sl_cpu_add(float *out, const float *a, const float *b, uint32_t n_col);
void sl_cpu_softcap(float *out, const float *in, uint32_t n_col, float cap);
void sl_cpu_rope(float *out, const float *in, const float *table, const sl_attr_rope *attr);

void sl_cpu_kv_write_f32(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, int is_v);
void sl_cpu_kv_write_f16(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, int is_v);
void sl_cpu_attend_f32(const sl_cpu_attend *a, uint32_t row_begin, uint32_t row_end, uint32_t head_begin,
                       uint32_t head_end, void *scratch);
void sl_cpu_attend_f16(const sl_cpu_attend *a, uint32_t row_begin, uint32_t row_end, uint32_t head_begin,
                       uint32_t head_end, void *scratch);
uint64_t sl_cpu_attend_scratch_bytes(uint32_t n_query, uint32_t v_dim);

#endif
