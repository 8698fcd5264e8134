// SPDX-License-Identifier: MIT
//
// The block types of a level: each type's kernel from the level's unpackers (matmul_unpack.h) and its product
//   multiply(acc, panel, n_panel, act, grp_len, minima), always inlined, as sl_panel_multiply_fn
// A level defines that, includes this, and calls set_matmul_blocks. If it multiplies few rows without a panel, or many
// by another way, it defines FEW(name) first, the sl_panel_few_fn of a type, or WIDE(name), its other sl_panel_way.
#ifndef SL_BACKEND_CPU_MATMUL_TYPES_H
#define SL_BACKEND_CPU_MATMUL_TYPES_H

#include "backend/cpu/kernels/matmul_panel.h"

#define MULTIPLY(grp_len, minima)                                                                  \
    static void multiply_##grp_len##_##minima(float *acc, const sl_panel *panel, uint32_t n_panel, \
                                              const sl_act_blk *act) {                             \
        multiply(acc, panel, n_panel, act, grp_len, minima);                                       \
    }
MULTIPLY(16, 0)
MULTIPLY(16, 1)
MULTIPLY(32, 0)
MULTIPLY(32, 1)
#undef MULTIPLY

#if !defined(FEW)
#define FEW(name) NULL
#endif
#if !defined(WIDE)
#define WIDE(name) NULL
#endif

#define BLOCK_MATMUL(TYPE, name, grp_len_, offset_, minima)                                                          \
    static void unpack_file_##name(sl_panel *out, const sl_panel_source *from) { unpack_##name(out, from, false); }  \
    static void unpack_packed_##name(sl_panel *out, const sl_panel_source *from) { unpack_##name(out, from, true); } \
    static void matmul_##name(const sl_cpu_matmul *m, uint32_t out_begin, uint32_t out_end, void *scratch) {         \
        static const sl_panel_kind kind = {                                                                          \
            .type = SL_TYPE_##TYPE,                                                                                  \
            .grp_len = grp_len_,                                                                                     \
            .offset = offset_,                                                                                       \
            .way = {unpack_file_##name, unpack_packed_##name, multiply_##grp_len_##_##minima, NULL},                 \
            .wide = WIDE(name),                                                                                      \
            .few = FEW(name)};                                                                                       \
        sl_panel_matmul(&kind, m, out_begin, out_end, scratch);                                                      \
    }
SL_BLOCK_TYPES(BLOCK_MATMUL)

SL_INLINE void set_matmul_blocks(sl_cpu_kernels *k) {
#define BLOCK_ENTRY(TYPE, name, grp_len_, offset_, minima) k->matmul[SL_TYPE_##TYPE] = matmul_##name;
    SL_BLOCK_TYPES(BLOCK_ENTRY)
    k->matmul_scratch_bytes = sl_matmul_scratch_bytes;
}

#endif
