// SPDX-License-Identifier: MIT
//
// How tiles (tile.h) of each type are multiplied by ACT16, on integer tensor cores. Knows no matrix, no row.
//
// A tile times 256 columns of a row is one float for each output, made in the same steps by whoever makes it: first
// exact integers over all groups of columns (K types), or floats by pairs of groups, whose scales are floats (q4_0,
// q8_0): groups j and j + 4, then ((0) + (1)) + ((2) + (3)).
//
//   GROUP       columns of a scale. EIGHTS: lane t has columns 8 t .. of a group, else 4 t .. and 16 + 4 t ..
//   N_GROUP     groups for each of the four lanes of an output: lane t = j has groups 4 i + j
//   a           the weights of a group as the product takes them; multiply: with which instruction
//   head        scales of outputs g and g + 8 ("upper") as lane (g, j) needs them
//   sums        of an output and row; N_PART: groups with the same j % N_PART may share one
//   add         a group's sums of products, and of the activations themselves (ACT_SUM: it needs them)
//   close, value  what the sums of groups j % N_PART are after all groups; the float
#ifndef SL_BACKEND_CUDA_PACKED_CUH
#define SL_BACKEND_CUDA_PACKED_CUH

#include "backend/cuda/kernels/device.cuh"
#include "backend/cuda/kernels/tile.h"

// ---- instructions ----------------------------------------------------------------------------------

// c (16, 8) += a (16, 32) b (32, 8); of a: rows g and g + 8, columns 4 t .. and the same again.
static __device__ __forceinline__ void product_u8(int32_t c[4], const uint32_t a[4], uint2 b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}
static __device__ __forceinline__ void product_s8(int32_t c[4], const uint32_t a[4], uint2 b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}
// The same of 16 columns.
static __device__ __forceinline__ void product_u8_16(int32_t c[4], const uint32_t a[2], uint2 b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b.x));
}

// Of what four lanes have for two outputs of one row, or each second lane for those of one of two rows, the sum for output
// t / R % 2.
template <int R, class X> static __device__ __forceinline__ X across(X lower, X upper, int t) {
    X mine = t / R % 2 ? upper : lower;
    mine += __shfl_xor_sync(ALL, t / R % 2 ? lower : upper, R);
    return R == 1 ? mine + __shfl_xor_sync(ALL, mine, 2) : mine;
}

// ---- K types -----------------------------------------------------------------------------------------

// Of products with the activations' upper and lower bytes, and of activations, all times the groups' scales. They stay
// below 2^31: 8 * 63 * 32 * 31 * 128 (times 16 for half of the groups of q4_K), 8 * 63 * 32 * 32639,
// 16 * 128 * 16 * 32639.
struct sums_k {
    int32_t hi, lo, act;
    __device__ __forceinline__ void clear() { hi = lo = act = 0; }
    __device__ __forceinline__ void join(const sums_k &next) { hi += next.hi, lo += next.lo, act += next.act; }
    template <int R> static __device__ __forceinline__ sums_k all_lanes(const sums_k &a, const sums_k &b, int t) {
        sums_k s;
        s.hi = across<R>(a.hi, b.hi, t), s.lo = across<R>(a.lo, b.lo, t), s.act = across<R>(a.act, b.act, t);
        return s;
    }
    __device__ __forceinline__ float whole() const { return __fmaf_rn((float)SL_ACT_BASE, (float)hi, (float)lo); }
};

// Scales and minima of q4_K and q5_K: 16 bytes as in their blocks.
struct head_k {
    uint4 row[2];
    __device__ __forceinline__ void load(const uint8_t *p, int g, int) {
        row[0] = *(const uint4 *)(p + g * 16), row[1] = *(const uint4 *)(p + (g + 8) * 16);
    }
    __device__ __forceinline__ int scale(int upper, int i, int j) const {
        const uint4 &h = row[upper];
        return (int)(i == 0 ? h.y >> 8 * j & 63 : (h.w >> 8 * j & 15) | (h.y >> 8 * j >> 2 & 48));
    }
    __device__ __forceinline__ int min(int upper, int i, int j) const {
        const uint4 &h = row[upper];
        return (int)(i == 0 ? h.z >> 8 * j & 63 : (h.w >> 8 * j >> 4 & 15) | (h.z >> 8 * j >> 2 & 48));
    }
};

struct packed_k {
    enum { GROUP = 32, EIGHTS = 1, N_GROUP = 2, ACT_SUM = 1 };
    typedef head_k head;
    typedef sums_k sums;
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint2 b) { product_u8(c, a, b); }
    static __device__ __forceinline__ void add(sums &s, const head &h, int upper, int i, int j, int32_t hi, int32_t lo,
                                               int32_t act) {
        const int scale = h.scale(upper, i, j);
        s.hi += scale * hi, s.lo += scale * lo, s.act += h.min(upper, i, j) * act;
    }
    static __device__ __forceinline__ float value(const head &h, int upper, const sums &s) {
        const uint32_t bits = upper ? h.row[1].x : h.row[0].x;
        const float2 d = __half22float2(*(const __half2 *)&bits);
        return __fmaf_rn(-d.y, (float)s.act, d.x * s.whole());
    }
};

template <int TYPE> struct packed;

template <> struct packed<SL_TYPE_Q4_K> : packed_k {
    enum { TYPE = SL_TYPE_Q4_K, BYTES = 2304, HEAD = 2048, N_PART = 2 };
    // Groups of odd number are times 16.
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        const uint4 w = *(const uint4 *)(p + i / 2 * 512 + lane * 16);
        const uint32_t mask = i % 2 ? 0xf0f0f0f0u : 0x0f0f0f0fu;
        out[0] = w.x & mask, out[1] = w.z & mask, out[2] = w.y & mask, out[3] = w.w & mask;
    }
    static __device__ __forceinline__ void close(sums &s, int j) { s.hi >>= 4 * (j & 1), s.lo >>= 4 * (j & 1); }
};

template <> struct packed<SL_TYPE_Q5_K> : packed_k {
    enum { TYPE = SL_TYPE_Q5_K, BYTES = 2816, HEAD = 2560, N_PART = 1 };
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        const uint4 w = *(const uint4 *)(p + i / 2 * 512 + lane * 16), h = *(const uint4 *)(p + 2048 + lane * 16);
        const int shift = i % 2 * 4;
        out[0] = (w.x >> shift & 0x0f0f0f0fu) | (h.x >> i & 0x01010101u) << 4;
        out[1] = (w.z >> shift & 0x0f0f0f0fu) | (h.z >> i & 0x01010101u) << 4;
        out[2] = (w.y >> shift & 0x0f0f0f0fu) | (h.y >> i & 0x01010101u) << 4;
        out[3] = (w.w >> shift & 0x0f0f0f0fu) | (h.w >> i & 0x01010101u) << 4;
    }
    static __device__ __forceinline__ void close(sums &, int) {}
};

template <> struct packed<SL_TYPE_Q6_K> {
    enum { TYPE = SL_TYPE_Q6_K, BYTES = 3360, HEAD = 3072 };
    enum { GROUP = 16, EIGHTS = 0, N_GROUP = 4, N_PART = 1, ACT_SUM = 1 };
    typedef sums_k sums;
    struct head {
        uint32_t scales[2]; // of groups j, j + 4 ..
        __half2 d;
        __device__ __forceinline__ void load(const uint8_t *p, int g, int j) {
            scales[0] = *(const uint32_t *)(p + g * 16 + j * 4),
            scales[1] = *(const uint32_t *)(p + 128 + g * 16 + j * 4);
            d = *(const __half2 *)(p + 256 + g * 4);
        }
    };
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        // Run i / 8 of 128 columns; group v = i % 8 of it: nibbles of bytes 16 (v % 4) .., bits 2 (v / 2) of bytes 16 (v % 2)
        const int run = i / 8, v = i % 8;
        const uint2 w = *(const uint2 *)(p + (2 * run + v % 4 / 2) * 512 + lane * 16 + v % 2 * 8);
        const uint2 h = *(const uint2 *)(p + (4 + run) * 512 + lane * 16 + v % 2 * 8);
        out[0] = (w.x >> v / 4 * 4 & 0x0f0f0f0fu) | (h.x >> v / 2 * 2 & 0x03030303u) << 4;
        out[1] = (w.y >> v / 4 * 4 & 0x0f0f0f0fu) | (h.y >> v / 2 * 2 & 0x03030303u) << 4;
    }
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint2 b) {
        product_u8_16(c, a, b);
    }
    static __device__ __forceinline__ void add(sums &s, const head &h, int upper, int i, int, int32_t hi, int32_t lo,
                                               int32_t act) {
        const int scale = (int8_t)(h.scales[upper] >> 8 * i);
        s.hi += scale * hi, s.lo += scale * lo, s.act += scale * act;
    }
    static __device__ __forceinline__ void close(sums &, int) {}
    // Weights are stored 32 too large. 32 act = 256 (act / 8) + 32 (act % 8), so it is taken off before anything is
    // rounded.
    static __device__ __forceinline__ float value(const head &h, int upper, sums s) {
        s.hi -= s.act >> 3, s.lo -= 32 * (s.act & 7);
        return (upper ? __high2float(h.d) : __low2float(h.d)) * s.whole();
    }
};

// ---- plain types -------------------------------------------------------------------------------------

struct sums_plain {
    float x;
    __device__ __forceinline__ void clear() { x = 0; }
    __device__ __forceinline__ void join(const sums_plain &next) { x += next.x; }
    template <int R>
    static __device__ __forceinline__ sums_plain all_lanes(const sums_plain &a, const sums_plain &b, int t) {
        sums_plain s;
        s.x = across<R>(a.x, b.x, t);
        return s;
    }
};

// OFFSET: what weights are stored too large by
template <int OFFSET> struct packed_plain {
    enum { GROUP = 32, N_GROUP = 2, N_PART = 4, ACT_SUM = OFFSET != 0 };
    typedef sums_plain sums;
    struct head {
        __half2 d[2]; // of groups j and j + 4
        __device__ __forceinline__ void load(const uint8_t *p, int g, int j) {
            d[0] = *(const __half2 *)(p + g * 16 + j * 4), d[1] = *(const __half2 *)(p + 128 + g * 16 + j * 4);
        }
    };
    static __device__ __forceinline__ void add(sums &s, const head &h, int upper, int i, int, int32_t hi, int32_t lo,
                                               int32_t act) {
        const float x = (float)(SL_ACT_BASE * hi + lo - OFFSET * act);
        if (i == 0) s.x = x * __low2float(h.d[upper]);
        else s.x = __fmaf_rn(x, __high2float(h.d[upper]), s.x);
    }
    static __device__ __forceinline__ void close(sums &, int) {}
    static __device__ __forceinline__ float value(const head &, int, const sums &s) { return s.x; }
};

template <> struct packed<SL_TYPE_Q8_0> : packed_plain<0> {
    enum { TYPE = SL_TYPE_Q8_0, BYTES = 4352, HEAD = 4096, EIGHTS = 1 };
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        const uint4 w = *(const uint4 *)(p + i * 512 + lane * 16);
        out[0] = w.x, out[1] = w.z, out[2] = w.y, out[3] = w.w;
    }
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint2 b) { product_s8(c, a, b); }
};

template <> struct packed<SL_TYPE_Q4_0> : packed_plain<8> {
    enum { TYPE = SL_TYPE_Q4_0, BYTES = 2304, HEAD = 2048, EIGHTS = 0 };
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        const uint2 w = *(const uint2 *)(p + i / 2 * 512 + lane * 16 + i % 2 * 8);
        out[0] = w.x & 0x0f0f0f0fu, out[1] = w.y & 0x0f0f0f0fu;
        out[2] = w.x >> 4 & 0x0f0f0f0fu, out[3] = w.y >> 4 & 0x0f0f0f0fu;
    }
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint2 b) { product_u8(c, a, b); }
};

#endif
