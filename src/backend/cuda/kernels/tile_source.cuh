// SPDX-License-Identifier: MIT
//
// What lies where in a tile (tile.h): tile_source(type, at, &row) says which byte of the blocks of which row is byte `at`.
#ifndef SL_BACKEND_CUDA_TILE_SOURCE_CUH
#define SL_BACKEND_CUDA_TILE_SOURCE_CUH

#include "backend/cuda/kernels/tile.h"

// Byte `at` of a plane of 16 bytes a lane.
struct place {
    int unit, lane, g, t, byte;
};
static __device__ __forceinline__ place place_of(int at) {
    place p;
    p.unit = at / 512, p.lane = at % 512 / 16, p.g = p.lane / 4, p.t = p.lane % 4, p.byte = at % 16;
    return p;
}

// 8 bytes of row g, 8 of row g + 8: bytes 8 t .. of a group of 32.
static __device__ __forceinline__ int by_eights(const place &p, int *row) {
    *row = p.g + p.byte / 8 * 8;
    return 8 * p.t + p.byte % 8;
}

// Words of (even, row g), (even, row g + 8), (odd, row g), (odd, row g + 8): bytes 4 t .. of a group of 16.
static __device__ __forceinline__ int by_fours(const place &p, int *row, int *odd) {
    *row = p.g + p.byte / 4 % 2 * 8;
    *odd = p.byte / 8;
    return 4 * p.t + p.byte % 4;
}

static __device__ int source_q4_k(int at, int *row) { // 4 units of nibbles; 16 bytes a row of d, dmin, scales
    if (at >= 2048) return *row = (at - 2048) / 16, at % 16;
    place p = place_of(at);
    int byte = by_eights(p, row);
    return 16 + 32 * p.unit + byte;
}

static __device__ int source_q5_k(int at, int *row) { // 4 units of nibbles, 1 of fifth bits; d, dmin, scales
    if (at >= 2560) return *row = (at - 2560) / 16, at % 16;
    place p = place_of(at);
    int byte = by_eights(p, row);
    return p.unit == 4 ? 16 + byte : 48 + 32 * p.unit + byte;
}

// 4 units of nibbles, 2 of upper bits; scales j, j + 4, j + 8, j + 12 to lane t = j, of row g and then of row g + 8;
// d of row g beside that of row g + 8.
static __device__ int source_q6_k(int at, int *row) {
    if (at >= 3328) return *row = (at - 3328) / 4 + (at - 3328) / 2 % 2 * 8, 208 + at % 2;
    if (at >= 3072) {
        int i = at - 3072, lane = i % 128 / 4;
        *row = lane / 4 + i / 128 * 8;
        return 192 + lane % 4 + i % 4 * 4;
    }
    place p = place_of(at);
    int odd, byte = by_fours(p, row, &odd);
    if (p.unit >= 4) return 128 + 32 * (p.unit - 4) + 16 * odd + byte;
    return 64 * (p.unit / 2) + 16 * (p.unit % 2 * 2 + odd) + byte;
}

// d of groups t and t + 4 to lane t, of row g and then of row g + 8.
static __device__ int scale_of_plain(int i, int blk_bytes, int *row) {
    int lane = i % 128 / 4;
    *row = lane / 4 + i / 128 * 8;
    return (lane % 4 + i / 2 % 2 * 4) * blk_bytes + i % 2;
}

static __device__ int source_q8_0(int at, int *row) { // 8 units of bytes; scales
    if (at >= 4096) return scale_of_plain(at - 4096, 34, row);
    place p = place_of(at);
    int byte = by_eights(p, row);
    return 34 * p.unit + 2 + byte;
}

static __device__ int source_q4_0(int at, int *row) { // 4 units of nibbles, two groups each; scales
    if (at >= 2048) return scale_of_plain(at - 2048, 18, row);
    place p = place_of(at);
    int odd, byte = by_fours(p, row, &odd);
    return 18 * (2 * p.unit + odd) + 2 + byte;
}

static __device__ int tile_source(uint8_t type, int at, int *row) {
    switch (type) {
    case SL_TYPE_Q4_0: return source_q4_0(at, row);
    case SL_TYPE_Q8_0: return source_q8_0(at, row);
    case SL_TYPE_Q4_K: return source_q4_k(at, row);
    case SL_TYPE_Q5_K: return source_q5_k(at, row);
    default: return source_q6_k(at, row);
    }
}

#endif
