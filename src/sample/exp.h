// SPDX-License-Identifier: MIT
//
// exp for x <= 0 from IEEE additions and multiplications alone, because the exp of C libraries differs in its last bits from
// machine to machine, and a sampled token must not. Relative error below 3e-16; results under 2^-1021 are 0.
#ifndef SL_SAMPLE_EXP_H
#define SL_SAMPLE_EXP_H

#include <stdint.h>
#include <string.h>

static inline double sl_exp_negative(double x) {
    // x = k ln 2 + r, |r| <= ln 2 / 2, with ln 2 in two parts so that k times the first is exact (Cody, Waite 1980)
    const double log2_e = 0x1.71547652b82fep+0, ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    static const double inverse_factorial[] = {
        0x1p+0, 0x1p+0, 0x1p-1, 0x1.5555555555555p-3, 0x1.5555555555555p-5, 0x1.1111111111111p-7,
        0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-16, 0x1.71de3a556c734p-19,
        0x1.27e4fb7789f5cp-22, 0x1.ae64567f544e4p-26, 0x1.1eed8eff8d898p-29, 0x1.6124613a86d09p-33,
    };
    if (!(x > -708)) return 0;
    int64_t k = (int64_t)(x * log2_e - 0.5); // to nearest, x being negative
    double r = x - (double)k * ln2_high - (double)k * ln2_low, r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    // the series to r^13 in pairs, pairs of pairs, ...: short chains of dependent operations (Estrin 1960)
    const double *c = inverse_factorial;
    double low = ((c[0] + c[1] * r) + (c[2] + c[3] * r) * r2) + ((c[4] + c[5] * r) + (c[6] + c[7] * r) * r2) * r4;
    double high = ((c[8] + c[9] * r) + (c[10] + c[11] * r) * r2) + (c[12] + c[13] * r) * r4;
    double sum = low + high * r8;
    uint64_t bits = (uint64_t)(1023 + k) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

#endif
