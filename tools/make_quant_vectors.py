#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/quant_vectors.bin: blocks of every type, and what the PyPI package gguf makes of them.

    python tools/make_quant_vectors.py tests/golden/quant_vectors.bin      (needs numpy, gguf 0.19)

The file, little-endian: "SLQV", u32 number of types; for each type
    u32 id, u32 blk_len, u32 blk_bytes, u32 n_blk, the blocks, the floats,
    u64 hash of the floats of N_HASHED blocks that are the bytes of a SplitMix64 stream seeded with the id,
    u32 n_enc, n_enc * blk_len floats and the blocks that they are encoded to (0 if we have no encoder).
tests/golden/test_quant.c reads it.
"""
import struct
import sys

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

HALF_FIELDS = {  # offsets of the binary16 scales in a block
    T.F32: [], T.F16: [0], T.BF16: [], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0],
    T.MXFP4: [],
}
ENCODED = {T.F16, T.BF16, T.Q8_0}
N_HASHED = 1000
EXTREME_HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E01]


def splitmix_bytes(seed, n):
    out = bytearray()
    state, mask = seed, (1 << 64) - 1
    while len(out) < n:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        out += struct.pack("<Q", z ^ z >> 31)
    return np.frombuffer(bytes(out[:n]), dtype=np.uint8)


def decode(blocks, t):
    with np.errstate(all="ignore"):
        return quants.dequantize(blocks, t).astype(np.float32).reshape(-1)


def hash_floats(floats):
    words = np.where(np.isnan(floats), np.uint32(0x7FC00000), floats.view(np.uint32))
    h = 14695981039346656037
    for w in words.tolist():
        h = (h ^ w) * 1099511628211 & (1 << 64) - 1
    return h


def sample_blocks(t, blk_bytes, rng):
    """All zeros, all ones, random ones with sane scales, and random ones with extreme scales."""
    wide = GGML_QUANT_SIZES[t][0] == 256
    rows = [np.zeros(blk_bytes, np.uint8), np.full(blk_bytes, 255, np.uint8)]
    for _ in range(4 if wide else 12):
        b = rng.integers(0, 256, blk_bytes, dtype=np.uint8)
        for off in HALF_FIELDS[t]:
            b[off:off + 2] = np.frombuffer(np.float16(rng.normal() / 64).tobytes(), np.uint8)
        rows.append(b)
    for h in EXTREME_HALVES:
        b = rng.integers(0, 256, blk_bytes, dtype=np.uint8)
        for off in HALF_FIELDS[t]:
            b[off:off + 2] = [h & 255, h >> 8]
        rows.append(b)
    if t == T.MXFP4:
        for e in (0, 1, 2, 3, 127, 128, 253, 254, 255):
            b = rng.integers(0, 256, blk_bytes, dtype=np.uint8)
            b[0] = e
            rows.append(b)
    return np.stack(rows)


def sample_floats(blk_len, rng):
    n = 24 if blk_len > 1 else 512
    x = rng.normal(size=(n, blk_len)) * np.exp(rng.normal(size=(n, 1)) * 4)
    x[0] = 0
    x[1] = 1e-30
    return x.astype(np.float32)


def main():
    rng = np.random.default_rng(20261130)
    out = [b"SLQV", struct.pack("<I", len(HALF_FIELDS))]
    for t in HALF_FIELDS:
        blk_len, blk_bytes = GGML_QUANT_SIZES[t]
        blocks = sample_blocks(t, blk_bytes, rng)
        many = splitmix_bytes(int(t), N_HASHED * blk_bytes).reshape(N_HASHED, blk_bytes)
        out += [struct.pack("<IIII", t, blk_len, blk_bytes, len(blocks)), blocks.tobytes(),
                decode(blocks, t).tobytes(), struct.pack("<Q", hash_floats(decode(many, t)))]
        if t not in ENCODED:
            out.append(struct.pack("<I", 0))
            continue
        floats = sample_floats(blk_len, rng)
        with np.errstate(all="ignore"):
            encoded = quants.quantize(floats, t)
        out += [struct.pack("<I", len(floats)), floats.tobytes(), encoded.tobytes()]
    with open(sys.argv[1], "wb") as f:
        f.write(b"".join(out))


main()
