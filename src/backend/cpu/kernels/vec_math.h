// SPDX-License-Identifier: MIT
//
// exp, tanh and the gate functions over sixteen lanes, without FMA, so that their bits are the same
// on every level. Polynomials and reduction as in Cephes (Moshier): within 2 ulp of the true exp
// over its whole range, subnormal results and overflow to infinity included. NaN gives NaN.
#ifndef SL_BACKEND_CPU_VEC_MATH_H
#define SL_BACKEND_CPU_VEC_MATH_H

#include "backend/cpu/kernels/vec.h"

// 1.5 * 2^23: adding it leaves the nearest integer in the low bits of the sum.
#define SL_ROUND_BIAS 12582912.0f

SL_INLINE v16 v16_exp(v16 x) {
    // Past these bounds the result is 0 or infinity anyway; NaN passes, being the second operand.
    x = v16_min(v16_all(89.0f), v16_max(v16_all(-105.0f), x));
    v16 biased = v16_add(v16_mul(x, v16_all(1.44269504088896341f)), v16_all(SL_ROUND_BIAS));
    v16 n = v16_sub(biased, v16_all(SL_ROUND_BIAS));
    // ln 2 in two parts, the first with so few bits that n times it is exact
    v16 r = v16_sub(x, v16_mul(n, v16_all(0.693359375f)));
    r = v16_sub(r, v16_mul(n, v16_all(-2.12194440e-4f)));
    v16 p = v16_all(1.9875691500e-4f);
    p = v16_add(v16_mul(p, r), v16_all(1.3981999507e-3f));
    p = v16_add(v16_mul(p, r), v16_all(8.3334519073e-3f));
    p = v16_add(v16_mul(p, r), v16_all(4.1665795894e-2f));
    p = v16_add(v16_mul(p, r), v16_all(1.6666665459e-1f));
    p = v16_add(v16_mul(p, r), v16_all(5.0000001201e-1f));
    p = v16_add(v16_add(v16_mul(p, v16_mul(r, r)), r), v16_all(1.0f));
    return v16_mul(v16_mul(p, v16_exp2_of_bits(biased, 0)), v16_exp2_of_bits(biased, 1));
}

// Near 0 a polynomial, for there 1 - 2/(e^2x + 1) would lose its digits.
SL_INLINE v16 v16_tanh(v16 x) {
    v16 z = v16_mul(x, x), p = v16_all(-5.70498872745e-3f);
    p = v16_add(v16_mul(p, z), v16_all(2.06390887954e-2f));
    p = v16_add(v16_mul(p, z), v16_all(-5.37397155531e-2f));
    p = v16_add(v16_mul(p, z), v16_all(1.33314422036e-1f));
    p = v16_add(v16_mul(p, z), v16_all(-3.33332819422e-1f));
    v16 small = v16_add(v16_mul(v16_mul(p, z), x), x);
    v16 e = v16_add(v16_exp(v16_add(x, x)), v16_all(1.0f));
    v16 large = v16_sub(v16_all(1.0f), v16_div(v16_all(2.0f), e));
    return v16_pick_less(v16_abs(x), v16_all(0.625f), small, large);
}

// x / (1 + e^-x). Below -88.7 the result is -0; the true value is under 3e-37.
SL_INLINE v16 v16_silu(v16 x) { return v16_div(x, v16_add(v16_all(1.0f), v16_exp(v16_sub(v16_all(0.0f), x)))); }

// 0.5 x (1 + tanh u) = x / (1 + e^-2u) with u = sqrt(2/pi) (x + 0.044715 x^3).
SL_INLINE v16 v16_gelu_tanh(v16 x) {
    v16 cube = v16_mul(v16_mul(v16_mul(x, x), x), v16_all(0.044715f));
    v16 u = v16_mul(v16_add(x, cube), v16_all(-1.5957691216057308f)); // -2 sqrt(2/pi)
    return v16_div(x, v16_add(v16_all(1.0f), v16_exp(u)));
}

#endif
