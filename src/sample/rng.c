// SPDX-License-Identifier: MIT
//
// PCG32, XSH-RR 64/32 (O'Neill 2014), always on stream 54, so that a seed is one number.
#include "sample/sample.h"

static const uint64_t multiplier = 6364136223846793005u, increment = 54 << 1 | 1;

void sl_rng_seed(sl_rng *rng, uint64_t seed) {
    rng->state = 0;
    sl_rng_next(rng);
    rng->state += seed;
    sl_rng_next(rng);
}

uint32_t sl_rng_next(sl_rng *rng) {
    uint64_t old = rng->state;
    rng->state = old * multiplier + increment;
    uint32_t mixed = (uint32_t)((old >> 18 ^ old) >> 27), turn = (uint32_t)(old >> 59);
    return mixed >> turn | mixed << (-turn & 31);
}

double sl_rng_uniform(sl_rng *rng) {
    uint64_t high = sl_rng_next(rng) >> 5, low = sl_rng_next(rng) >> 6;
    return (double)(high << 26 | low) * 0x1p-53;
}
