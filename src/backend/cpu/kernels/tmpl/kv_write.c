// SPDX-License-Identifier: MIT
//
// Puts the K or V of one position into its block, in the order that attend.c reads:
//   K block: [kv head][dim][SL_KV_BLK_LEN positions]   lanes are positions: a score needs no sum
//   across lanes V block: [kv head][SL_KV_BLK_LEN positions][dim]   lanes are dims
#include "backend/cpu/kernels/tmpl/tmpl.h"
#include "backend/cpu/kernels/vec.h"

void sl_cpu_kv_write_f32(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, int is_v) {
    float *out = (float *)(void *)blk;
    if (is_v) {
        for (uint32_t head = 0; head < n_head_kv; head++)
            memcpy(out + ((uint64_t)head * SL_KV_BLK_LEN + at) * dim, in + (uint64_t)head * dim, dim * sizeof *out);
    } else {
        for (uint32_t i = 0; i < n_head_kv * dim; i++) out[(uint64_t)i * SL_KV_BLK_LEN + at] = in[i];
    }
}

// Converts the n <= 16 values at `in`.
static void convert(uint16_t half[SL_V16], const float *in, uint32_t n) {
    v16_store_f16(half, n == SL_V16 ? v16_load(in) : v16_load_part(in, n));
}

void sl_cpu_kv_write_f16(uint8_t *blk, const float *in, uint32_t n_head_kv, uint32_t dim, uint32_t at, int is_v) {
    uint16_t *out = (uint16_t *)(void *)blk, half[SL_V16];
    for (uint32_t head = 0; head < n_head_kv; head++, in += dim, out += (uint64_t)SL_KV_BLK_LEN * dim) {
        for (uint32_t first = 0; first < dim; first += SL_V16) {
            uint32_t n = SL_MIN(dim - first, (uint32_t)SL_V16);
            convert(half, in + first, n);
            if (is_v) memcpy(out + (uint64_t)at * dim + first, half, n * sizeof *half);
            else
                for (uint32_t i = 0; i < n; i++) out[(uint64_t)(first + i) * SL_KV_BLK_LEN + at] = half[i];
        }
    }
}
