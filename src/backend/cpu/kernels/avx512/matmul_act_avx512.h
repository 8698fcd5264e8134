// SPDX-License-Identifier: MIT
//
// What the two AVX-512 products (many rows from a panel, few rows as they are unpacked) share: the activations' side
// and the end of a group.
#ifndef SL_BACKEND_CPU_MATMUL_ACT_AVX512_H
#define SL_BACKEND_CPU_MATMUL_ACT_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "backend/cpu/kernels/matmul.h"
#include "base/compiler.h"

enum { SL_ACT_SHIFT = 8 };
_Static_assert(1 << SL_ACT_SHIFT == SL_ACT_BASE, "planes are joined by shifts");

// By group, for types with minima the sum of the activations; for others what the offset adds to a group.
typedef union act_sums {
    float sum[SL_PANEL_GROUPS];
    int32_t start[SL_PANEL_GROUPS];
} act_sums;

// Sums of 16 columns -> sums of 32: pairs added, in the lower half.
SL_INLINE __m512i pair_sums(__m512i s) {
    __m512i pairs = _mm512_add_epi32(s, _mm512_srli_epi64(s, 32));
    return _mm512_castsi256_si512(_mm512_cvtepi64_epi32(pairs));
}

SL_INLINE void set_sums(act_sums *out, const uint8_t *sums, int32_t offset, const uint32_t grp_len, const bool minima) {
    __m512i sum = _mm512_loadu_si512(sums);
    if (grp_len == 32) sum = pair_sums(sum);
    if (minima) _mm512_storeu_ps(out->sum, _mm512_cvtepi32_ps(sum));
    else _mm512_storeu_si512(out->start, _mm512_mullo_epi32(sum, _mm512_set1_epi32(-offset)));
}

SL_INLINE __m512i four_acts(const int8_t *p) {
    int32_t four_bytes;
    memcpy(&four_bytes, p, sizeof four_bytes);
    return _mm512_set1_epi32(four_bytes);
}

SL_INLINE __m512 add_group(__m512 sum, __m512i x, __m512 scale, __m512 min, const act_sums *act, uint32_t grp,
                           const bool minima) {
    if (!minima) x = _mm512_add_epi32(x, _mm512_set1_epi32(act->start[grp]));
    sum = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(x), sum);
    return minima ? _mm512_fmadd_ps(min, _mm512_set1_ps(act->sum[grp]), sum) : sum;
}

#endif
