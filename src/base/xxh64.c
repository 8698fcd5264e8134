// SPDX-License-Identifier: MIT
//
// By the text of the specification (doc/xxhash_spec.md of xxHash 0.8): four lanes over 32 bytes at a time, then what
// is left by 8, 4 and 1. Little-endian machines only, as all of sluice.
#include "base/xxh64.h"

#include <string.h>

static const uint64_t P1 = 0x9e3779b185ebca87u, P2 = 0xc2b2ae3d27d4eb4fu, P3 = 0x165667b19e3779f9u,
                      P4 = 0x85ebca77c2b2ae63u, P5 = 0x27d4eb2f165667c5u;

static uint64_t turn(uint64_t x, int n) { return x << n | x >> (64 - n); }

static uint64_t read64(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint64_t read32(const uint8_t *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint64_t round64(uint64_t lane, uint64_t input) { return turn(lane + input * P2, 31) * P1; }

static uint64_t merge(uint64_t hash, uint64_t lane) { return (hash ^ round64(0, lane)) * P1 + P4; }

uint64_t sl_xxh64(const void *data, size_t n_bytes, uint64_t seed) {
    const uint8_t *p = data, *end = n_bytes ? p + n_bytes : p;
    uint64_t hash = seed + P5;
    if (n_bytes >= 32) {
        uint64_t lane[4] = {seed + P1 + P2, seed + P2, seed, seed - P1};
        for (; end - p >= 32; p += 32)
            for (int i = 0; i < 4; i++) lane[i] = round64(lane[i], read64(p + 8 * i));
        hash = turn(lane[0], 1) + turn(lane[1], 7) + turn(lane[2], 12) + turn(lane[3], 18);
        for (int i = 0; i < 4; i++) hash = merge(hash, lane[i]);
    }
    hash += n_bytes;
    for (; end - p >= 8; p += 8) hash = turn(hash ^ round64(0, read64(p)), 27) * P1 + P4;
    if (end - p >= 4) hash = turn(hash ^ read32(p) * P1, 23) * P2 + P3, p += 4;
    for (; p < end; p++) hash = turn(hash ^ *p * P5, 11) * P1;
    hash = (hash ^ hash >> 33) * P2;
    hash = (hash ^ hash >> 29) * P3;
    return hash ^ hash >> 32;
}
