// SPDX-License-Identifier: MIT
//
// The sink of matmul_unpack.h that is a panel: all that is unpacked is stored, to be multiplied with many rows. A level
// includes its vocabulary of vectors first.
#ifndef SL_BACKEND_CPU_MATMUL_PANEL_H
#define SL_BACKEND_CPU_MATMUL_PANEL_H

#include "backend/cpu/kernels/matmul.h"
#include "base/compiler.h"

typedef sl_panel sink;

SL_INLINE void put_scale(sink *out, uint32_t grp, uint32_t row, fvec v) { f_put(&out->scale[grp][row], v); }
SL_INLINE void put_min(sink *out, uint32_t grp, uint32_t row, fvec v) { f_put(&out->min[grp][row], v); }
SL_INLINE void put_cols(sink *out, uint32_t at, uint32_t row, const vec q[8]) {
    SL_UNROLL
    for (uint32_t i = 0; i < 8; i++) v_put(out->q[8 * at + i][row], q[i]);
}

#include "backend/cpu/kernels/matmul_unpack.h"

#endif
