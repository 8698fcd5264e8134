// SPDX-License-Identifier: MIT
//
// Rows of blocks as in the file -> tiles (tile.h). A thread makes one byte, which is slow and simple: it runs once, while
// weights are loaded, and the bus is slower.
#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/kernels/tile_source.cuh"

enum { N_THREAD = 256 };

// grid (tiles of rows, n_col / 256)
static __global__ void pack(uint8_t *to, const uint8_t *from, uint8_t type, uint32_t n_row, uint64_t row_bytes,
                            uint32_t tile_bytes) {
    uint64_t tile = (uint64_t)blockIdx.x * gridDim.y + blockIdx.y;
    uint32_t blk_bytes = tile_bytes / SL_TILE_ROWS;
    for (int at = threadIdx.x; at < (int)tile_bytes; at += N_THREAD) {
        int in_tile, byte = tile_source(type, at, &in_tile);
        uint64_t row = (uint64_t)blockIdx.x * SL_TILE_ROWS + in_tile;
        to[tile * tile_bytes + at] =
            row < n_row ? from[row * row_bytes + (uint64_t)blockIdx.y * blk_bytes + byte] : (uint8_t)0;
    }
}

cudaError_t sl_cuda_tile_pack(uint8_t *to, const uint8_t *from, uint8_t type, uint32_t n_row, uint32_t n_col,
                              cudaStream_t stream) {
    uint32_t n_blk = n_col / SL_TILE_COLS, tile_bytes = sl_tile_bytes(type);
    dim3 grid((n_row + SL_TILE_ROWS - 1) / SL_TILE_ROWS, n_blk);
    pack<<<grid, N_THREAD, 0, stream>>>(to, from, type, n_row, (uint64_t)n_blk * (tile_bytes / SL_TILE_ROWS),
                                        tile_bytes);
    return cudaGetLastError();
}
