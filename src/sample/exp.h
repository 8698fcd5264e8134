// SPDX-License-Identifier: MIT
//
// exp for x <= 0 from IEEE additions and multiplications alone, because the exp of C libraries
// differs in its last bits from machine to machine, and a sampled token must not. Relative error
// below 3e-16; results under 2^-1021 are 0.
#ifndef SL_SAMPLE_EXP_H
#define SL_SAMPLE_EXP_H

#include <stdint.h>
#include <string.h>

static inline double sl_exp_negative(double x) {
    // x = k ln 2 + r, |r| <= ln 2 / 2, with ln 2 in two parts so that k times the first is exact
    // (Cody, Waite 1980)
    const double log2_e = 0x1.71547652b82fep+0;
    const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    if (!(x > -708)) return 0;
    int64_t k = (int64_t)(x * log2_e - 0.5); // to nearest, x being negative
    double r = x - (double)k * ln2_high - (double)k * ln2_low, r2 = r * r, r4 = r2 * r2;
    // the series to r^13 in pairs, pairs of pairs, ...: short chains of dependent operations
    // (Estrin 1960). The coefficients are 1/i!.
    const double c2 = 0x1p-1, c3 = 0x1.5555555555555p-3, c4 = 0x1.5555555555555p-5, c5 = 0x1.1111111111111p-7,
                 c6 = 0x1.6c16c16c16c17p-10, c7 = 0x1.a01a01a01a01ap-13, c8 = 0x1.a01a01a01a01ap-16,
                 c9 = 0x1.71de3a556c734p-19, c10 = 0x1.27e4fb7789f5cp-22, c11 = 0x1.ae64567f544e4p-26,
                 c12 = 0x1.1eed8eff8d898p-29, c13 = 0x1.6124613a86d09p-33;
    double low = ((1 + r) + (c2 + c3 * r) * r2) + ((c4 + c5 * r) + (c6 + c7 * r) * r2) * r4;
    double high = ((c8 + c9 * r) + (c10 + c11 * r) * r2) + (c12 + c13 * r) * r4;
    uint64_t bits = (uint64_t)(1023 + k) << 52;
    double scale; // 2^k
    memcpy(&scale, &bits, sizeof scale);
    return (low + high * (r4 * r4)) * scale;
}

#endif
