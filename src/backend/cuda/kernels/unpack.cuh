// SPDX-License-Identifier: MIT
//
// Blocks of the quantised types, four elements at a time: element i of a block is scale(i/16) * q[i] - low(i/16), q a
// signed byte. Layouts: quant/blocks.h, whose order of operations this keeps, so that decoding is exact.
// Blocks of these types lie one after another in a row; rows begin at multiples of a block's alignment.
#ifndef SL_BACKEND_CUDA_UNPACK_CUH
#define SL_BACKEND_CUDA_UNPACK_CUH

#include "backend/cuda/kernels/device.cuh"
#include "quant/blocks.h"

// Four bytes at an address that is a multiple of ALIGN.
template <int ALIGN> static __device__ __forceinline__ uint32_t load4(const uint8_t *p) {
    if (ALIGN % 4 == 0) return *(const uint32_t *)p;
    if (ALIGN % 2 == 0) return ((const uint16_t *)p)[0] | (uint32_t)((const uint16_t *)p)[1] << 16;
    return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

// Bits 0..3 to bit 4 of each byte.
static __device__ __forceinline__ uint32_t fifth_bits(uint32_t bits) {
    return ((bits & 15) * 0x00204081u & 0x01010101u) << 4;
}

// Each byte 0..15 becomes the byte of that number in a book of 16.
static __device__ __forceinline__ uint32_t look_up(uint32_t nibbles, const uint32_t book[4]) {
    uint32_t s = nibbles & 0x07070707u;
    s |= s >> 4;
    s = (s & 0xff) | (s >> 8 & 0xff00);
    uint32_t upper = (nibbles >> 3 & 0x01010101u) * 0xff;
    return (__byte_perm(book[2], book[3], s) & upper) | (__byte_perm(book[0], book[1], s) & ~upper);
}

static __device__ __forceinline__ uint32_t nibbles_at(uint32_t word, int high) { return word >> 4 * high & 0x0f0f0f0fu; }

// ---- plain blocks --------------------------------------------------------------------------------

template <int TYPE> struct unpack;

template <> struct unpack<SL_TYPE_Q4_0> {
    typedef sl_blk_q4_0 blk;
    static const int LEN = 32;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        return __vsub4(nibbles_at(load4<2>(b->qs + i % 16), i / 16), 0x08080808u);
    }
    static __device__ __forceinline__ float scale(const blk *b, int) { return half_bits(b->d); }
    static __device__ __forceinline__ float low(const blk *, int) { return 0; }
};

template <> struct unpack<SL_TYPE_Q4_1> {
    typedef sl_blk_q4_1 blk;
    static const int LEN = 32;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        return nibbles_at(load4<4>(b->qs + i % 16), i / 16);
    }
    static __device__ __forceinline__ float scale(const blk *b, int) { return half_bits(b->d); }
    static __device__ __forceinline__ float low(const blk *b, int) { return -half_bits(b->m); }
};

template <> struct unpack<SL_TYPE_Q5_0> {
    typedef sl_blk_q5_0 blk;
    static const int LEN = 32;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        uint32_t q = nibbles_at(load4<2>(b->qs + i % 16), i / 16) | fifth_bits(load4<2>(b->qh) >> i);
        return __vsub4(q, 0x10101010u);
    }
    static __device__ __forceinline__ float scale(const blk *b, int) { return half_bits(b->d); }
    static __device__ __forceinline__ float low(const blk *, int) { return 0; }
};

template <> struct unpack<SL_TYPE_Q5_1> {
    typedef sl_blk_q5_1 blk;
    static const int LEN = 32;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        return nibbles_at(load4<4>(b->qs + i % 16), i / 16) | fifth_bits(load4<4>(b->qh) >> i);
    }
    static __device__ __forceinline__ float scale(const blk *b, int) { return half_bits(b->d); }
    static __device__ __forceinline__ float low(const blk *b, int) { return -half_bits(b->m); }
};

template <> struct unpack<SL_TYPE_Q8_0> {
    typedef sl_blk_q8_0 blk;
    static const int LEN = 32;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        return load4<2>((const uint8_t *)b->qs + i);
    }
    static __device__ __forceinline__ float scale(const blk *b, int) { return half_bits(b->d); }
    static __device__ __forceinline__ float low(const blk *, int) { return 0; }
};

// ---- super-blocks --------------------------------------------------------------------------------

template <int ALIGN> static __device__ __forceinline__ uint32_t two_bits(const uint8_t *qs, int i) {
    return load4<ALIGN>(qs + i / 128 * 32 + i % 32) >> i % 128 / 32 * 2 & 0x03030303u;
}

// Of sub-block j of q4_K and q5_K.
static __device__ __forceinline__ int scale_q4(const uint8_t *s, int j) {
    return j < 4 ? s[j] & 63 : (s[4 + j] & 15) | s[j - 4] >> 6 << 4;
}
static __device__ __forceinline__ int min_q4(const uint8_t *s, int j) {
    return j < 4 ? s[4 + j] & 63 : s[4 + j] >> 4 | s[j] >> 6 << 4;
}

template <> struct unpack<SL_TYPE_Q2_K> {
    typedef sl_blk_q2_k blk;
    static const int LEN = 256;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) { return two_bits<4>(b->qs, i); }
    static __device__ __forceinline__ float scale(const blk *b, int j) {
        return half_bits(b->d) * (float)(b->scales[j] & 15);
    }
    static __device__ __forceinline__ float low(const blk *b, int j) {
        return half_bits(b->dmin) * (float)(b->scales[j] >> 4);
    }
};

template <> struct unpack<SL_TYPE_Q3_K> {
    typedef sl_blk_q3_k blk;
    static const int LEN = 256;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        uint32_t high = load4<2>(b->hmask + i % 32) >> i / 32 & 0x01010101u;
        return __vsub4(two_bits<2>(b->qs, i) | high << 2, 0x04040404u);
    }
    static __device__ __forceinline__ float scale(const blk *b, int j) {
        int low = b->scales[j % 8] >> j / 8 * 4 & 15, high = b->scales[8 + j % 4] >> j / 4 * 2 & 3;
        return half_bits(b->d) * (float)((low | high << 4) - 32);
    }
    static __device__ __forceinline__ float low(const blk *, int) { return 0; }
};

template <> struct unpack<SL_TYPE_Q4_K> {
    typedef sl_blk_q4_k blk;
    static const int LEN = 256;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        return nibbles_at(load4<4>(b->qs + i / 64 * 32 + i % 32), i / 32 % 2);
    }
    static __device__ __forceinline__ float scale(const blk *b, int j) {
        return half_bits(b->d) * (float)scale_q4(b->scales, j / 2);
    }
    static __device__ __forceinline__ float low(const blk *b, int j) {
        return half_bits(b->dmin) * (float)min_q4(b->scales, j / 2);
    }
};

template <> struct unpack<SL_TYPE_Q5_K> {
    typedef sl_blk_q5_k blk;
    static const int LEN = 256;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        uint32_t high = load4<4>(b->qh + i % 32) >> i / 32 & 0x01010101u;
        return nibbles_at(load4<4>(b->qs + i / 64 * 32 + i % 32), i / 32 % 2) | high << 4;
    }
    static __device__ __forceinline__ float scale(const blk *b, int j) {
        return half_bits(b->d) * (float)scale_q4(b->scales, j / 2);
    }
    static __device__ __forceinline__ float low(const blk *b, int j) {
        return half_bits(b->dmin) * (float)min_q4(b->scales, j / 2);
    }
};

template <> struct unpack<SL_TYPE_Q6_K> {
    typedef sl_blk_q6_k blk;
    static const int LEN = 256;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        uint32_t q = nibbles_at(load4<2>(b->ql + i / 128 * 64 + i % 64), i / 64 % 2);
        return __vsub4(q | two_bits<2>(b->qh, i) << 4, 0x20202020u);
    }
    static __device__ __forceinline__ float scale(const blk *b, int j) {
        return half_bits(b->d) * (float)b->scales[j];
    }
    static __device__ __forceinline__ float low(const blk *, int) { return 0; }
};

// ---- code books ----------------------------------------------------------------------------------

static __device__ __forceinline__ uint32_t iq4_values(uint32_t nibbles) { // SL_IQ4_VALUES, four to a word
    const uint32_t book[4] = {0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u};
    return look_up(nibbles, book);
}

static __device__ __forceinline__ uint32_t mxfp4_values(uint32_t nibbles) { // SL_MXFP4_VALUES
    const uint32_t book[4] = {0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu};
    return look_up(nibbles, book);
}

template <> struct unpack<SL_TYPE_IQ4_NL> {
    typedef sl_blk_iq4_nl blk;
    static const int LEN = 32;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        return iq4_values(nibbles_at(load4<2>(b->qs + i % 16), i / 16));
    }
    static __device__ __forceinline__ float scale(const blk *b, int) { return half_bits(b->d); }
    static __device__ __forceinline__ float low(const blk *, int) { return 0; }
};

template <> struct unpack<SL_TYPE_IQ4_XS> {
    typedef sl_blk_iq4_xs blk;
    static const int LEN = 256;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        return iq4_values(nibbles_at(load4<4>(b->qs + i / 32 * 16 + i % 16), i / 16 % 2));
    }
    static __device__ __forceinline__ float scale(const blk *b, int j16) {
        int j = j16 / 2, low = b->scales_l[j / 2] >> j % 2 * 4 & 15, high = b->scales_h >> j * 2 & 3;
        return half_bits(b->d) * (float)((low | high << 4) - 32);
    }
    static __device__ __forceinline__ float low(const blk *, int) { return 0; }
};

template <> struct unpack<SL_TYPE_MXFP4> {
    typedef sl_blk_mxfp4 blk;
    static const int LEN = 32;
    static __device__ __forceinline__ uint32_t quad(const blk *b, int i) {
        return mxfp4_values(nibbles_at(load4<1>(b->qs + i % 16), i / 16));
    }
    static __device__ __forceinline__ float scale(const blk *b, int) { // 2^(e - 128); the smallest two are subnormal
        return __uint_as_float(b->e < 2 ? 0x00200000u << b->e : (uint32_t)(b->e - 1) << 23);
    }
    static __device__ __forceinline__ float low(const blk *, int) { return 0; }
};

// DO(TYPE) for the quantised type `type`; nothing for others.
#define FOR_QUANTISED(type, DO)                              \
    switch (type) {                                          \
    case SL_TYPE_Q4_0: DO(SL_TYPE_Q4_0); break;              \
    case SL_TYPE_Q4_1: DO(SL_TYPE_Q4_1); break;              \
    case SL_TYPE_Q5_0: DO(SL_TYPE_Q5_0); break;              \
    case SL_TYPE_Q5_1: DO(SL_TYPE_Q5_1); break;              \
    case SL_TYPE_Q8_0: DO(SL_TYPE_Q8_0); break;              \
    case SL_TYPE_Q2_K: DO(SL_TYPE_Q2_K); break;              \
    case SL_TYPE_Q3_K: DO(SL_TYPE_Q3_K); break;              \
    case SL_TYPE_Q4_K: DO(SL_TYPE_Q4_K); break;              \
    case SL_TYPE_Q5_K: DO(SL_TYPE_Q5_K); break;              \
    case SL_TYPE_Q6_K: DO(SL_TYPE_Q6_K); break;              \
    case SL_TYPE_IQ4_NL: DO(SL_TYPE_IQ4_NL); break;          \
    case SL_TYPE_IQ4_XS: DO(SL_TYPE_IQ4_XS); break;          \
    case SL_TYPE_MXFP4: DO(SL_TYPE_MXFP4); break;            \
    default: break;                                          \
    }

#endif
