// SPDX-License-Identifier: MIT
//
// Where the CPU kernels keep quantised K and V (quant/kv_codec.h). A block holds for each KV head and each group of 32
// dims a tile of 32 positions x 32 dims: codes, then of V a binary16 scale for each position, of K what is kept of the
// grid of each dim: Q8_0 32 scales and 32 least values, in binary16; else 32 bytes of scales and 32 bytes of z. Tiles
// are whole cache lines.
//
// Codes lie so that four bytes that are multiplied and added together are neighbours, sixteen lanes of them in 64
// bytes: in K the lanes are positions and the four are dims, in V the lanes are dims and the four are positions.
//   Q8_0  K: byte [dim/4][pos][dim%4]                  V: byte [pos/4][dim][pos%4], less 128
//   Q4_0  K: nibble [dim/4 % 4][pos][dim%4], low for   V: nibble [pos/4][dim%16][pos%4], low for dims under 16
//            dims under 16
//   Q5_0  the low four bits as Q4_0; the fifth bits behind them
//         K: 32-bit word [pos], bit 8 (dim%4) + dim/4  V: byte [pos/4][dim%4][pos%4], bit dim/4
// No two positions of V share a byte, so threads may write them at once; a K block is written at once.
#ifndef SL_BACKEND_CPU_KV_TILE_H
#define SL_BACKEND_CPU_KV_TILE_H

#include "plan/ir.h"
#include "quant/kv_codec.h"

enum { KV_TILE_NIBBLES = SL_KV_BLK_LEN * SL_KV_GROUP / 2 };

static inline uint32_t kv_tile_code_bytes(int bits) { return SL_KV_BLK_LEN * SL_KV_GROUP / 8 * (uint32_t)bits; }

static inline uint32_t kv_tile_bytes(int bits, bool is_v) {
    return kv_tile_code_bytes(bits) + SL_KV_GROUP * (bits == 8 && !is_v ? 4 : 2);
}

#endif
