// SPDX-License-Identifier: MIT
//
// The order in which products read matrices of some types: tiles of 16 rows by 256 columns, the tiles of 16 rows
// one after another. In a tile the bytes of the file's blocks lie as a warp wants them for its integer matrix products:
// lane (g, t) = (lane / 4, lane % 4) has rows g and g + 8 and the t-th part of each group of columns, so that every
// load is 16 bytes a lane and one piece a warp. No byte is added but for rows that a last tile lacks.
//
//   planes     in units of 16 bytes a lane; which bytes of the two rows: tile_pack.cu
//   head       what remains of the blocks: scales
//
// Known to the host too, which counts bytes.
#ifndef SL_BACKEND_CUDA_TILE_H
#define SL_BACKEND_CUDA_TILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/type.h"

enum { SL_TILE_ROWS = 16, SL_TILE_COLS = 256, SL_TILE_COLS_MAX = 1 << 15 };

// Bytes of a tile; 0: the type has none.
static inline uint32_t sl_tile_bytes(uint8_t type) {
    switch (type) {
    case SL_TYPE_Q4_0: return 16 * 8 * 18;
    case SL_TYPE_Q8_0: return 16 * 8 * 34;
    case SL_TYPE_Q4_K: return 16 * 144;
    case SL_TYPE_Q5_K: return 16 * 176;
    case SL_TYPE_Q6_K: return 16 * 210;
    default: return 0;
    }
}

static inline bool sl_tile_fits(uint8_t type, uint32_t n_col) {
    return sl_tile_bytes(type) > 0 && n_col > 0 && n_col % SL_TILE_COLS == 0 && n_col <= SL_TILE_COLS_MAX;
}

static inline uint64_t sl_tile_matrix_bytes(uint8_t type, uint32_t n_row, uint32_t n_col) {
    uint64_t n_tile = ((uint64_t)n_row + SL_TILE_ROWS - 1) / SL_TILE_ROWS;
    return n_tile * (n_col / SL_TILE_COLS) * sl_tile_bytes(type);
}

#endif
