// SPDX-License-Identifier: MIT
//
// ACT16 (plan/ir.h) from floats, 256 columns by a warp, eight of them a lane: d = max |x| / 32639, q = rint(x * (1 / d)), hi
// and lo its bytes, the lower one signed; blocks too small for d are zeros, blocks that are not finite a NaN. Both
// quotients are quick ones, a last bit of d off those of backend/cpu/kernels/quant_act.h.
// The sum of squares of a norm is in double: of a lane's eight columns, then over the warp, then over the blocks; every
// kernel that norms and quantises takes this order.
#ifndef SL_BACKEND_CUDA_QUANT_CUH
#define SL_BACKEND_CUDA_QUANT_CUH

#include "backend/cuda/kernels/device.cuh"

static_assert(SL_ACT_BASE == 256, "hi and lo are bytes");
enum { ACT_MAX = 127 * SL_ACT_BASE + 127, PER_LANE = SL_ACT_BLK_LEN / WARP };

// A row of ACT16 as its parts.
struct act16 {
    int8_t *hi, *lo;
    float *d;
    int32_t *sum;
};

static __device__ __forceinline__ act16 act16_of(uint8_t *row, uint32_t n_col) {
    uint32_t n_blk = (n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN, n_pad = n_blk * SL_ACT_BLK_LEN;
    act16 a;
    a.hi = (int8_t *)row;
    a.lo = a.hi + n_pad;
    a.d = (float *)(a.lo + n_pad);
    a.sum = (int32_t *)(a.d + n_blk);
    return a;
}

// A lane's eight columns of a block.
struct act_lane {
    uint2 hi, lo;
    int32_t sum; // of the 16 columns of two lanes
    float d;     // of the block
};

// Byte `at` of four words.
static __device__ __forceinline__ uint32_t bytes_of(const uint32_t word[4], uint32_t at) {
    const uint32_t pick = at | (at + 4) << 4;
    return __byte_perm(__byte_perm(word[0], word[1], pick), __byte_perm(word[2], word[3], pick), 0x5410);
}

// x (8): columns 8 lane .. of a block, zeros past the row. Adding 1.5 2^23 rounds to a whole number, which then lies in the
// lower bits.
static __device__ __forceinline__ act_lane quantise(const float x[PER_LANE]) {
    const float round = 0x1.8p23f;
    uint32_t top = 0, whole[PER_LANE], upper[PER_LANE];
    for (int i = 0; i < PER_LANE; i++) top = max(top, __float_as_uint(x[i]) & 0x7fffffffu);
    top = __reduce_max_sync(ALL, top);
    const bool flat = top < __float_as_uint(ACT_MAX * 0x1p-126f), wild = top >= 0x7f800000u;
    const float d = __uint_as_float(top) * (1.0f / ACT_MAX), inverse = __fdividef(1, d);
    int32_t sum = 0;
    for (int i = 0; i < PER_LANE; i++) whole[i] = __float_as_uint(x[i] * inverse + round);
    if (flat || wild)
        for (int i = 0; i < PER_LANE; i++) whole[i] = __float_as_uint(round);
    for (int i = 0; i < PER_LANE; i++) {
        upper[i] = whole[i] + SL_ACT_BASE / 2;
        sum += (int32_t)(whole[i] - __float_as_uint(round));
    }
    act_lane q;
    q.hi = make_uint2(bytes_of(upper, 1), bytes_of(upper + 4, 1));
    q.lo = make_uint2(bytes_of(whole, 0), bytes_of(whole + 4, 0));
    q.sum = sum + __shfl_xor_sync(ALL, sum, 1);
    q.d = wild ? CUDART_NAN_F : flat ? 0.0f : d;
    return q;
}

static __device__ __forceinline__ void quant_blk(const act16 &a, uint32_t b, const float x[PER_LANE]) {
    const uint32_t lane = threadIdx.x % WARP, at = b * SL_ACT_BLK_LEN + PER_LANE * lane;
    const act_lane q = quantise(x);
    *(uint2 *)(a.hi + at) = q.hi;
    *(uint2 *)(a.lo + at) = q.lo;
    if (lane % 2 == 0) a.sum[at / SL_ACT_SUM_LEN] = q.sum;
    if (lane == 0) a.d[b] = q.d;
}

// The same read back.
static __device__ __forceinline__ act_lane act_of(const act16 &a, uint32_t b) {
    const uint32_t at = b * SL_ACT_BLK_LEN + PER_LANE * (threadIdx.x % WARP);
    act_lane q;
    q.hi = *(const uint2 *)(a.hi + at), q.lo = *(const uint2 *)(a.lo + at);
    q.sum = a.sum[at / SL_ACT_SUM_LEN];
    q.d = a.d[b];
    return q;
}

// This lane's columns of block b of a row of n floats.
static __device__ __forceinline__ void load_blk(float x[PER_LANE], const float *in, uint32_t b, uint32_t n) {
    uint32_t at = b * SL_ACT_BLK_LEN + PER_LANE * (threadIdx.x % WARP);
    if (at + PER_LANE <= n) { // rows are 64-byte aligned
        const float4 lower = *(const float4 *)(in + at), upper = *(const float4 *)(in + at + 4);
        x[0] = lower.x, x[1] = lower.y, x[2] = lower.z, x[3] = lower.w;
        x[4] = upper.x, x[5] = upper.y, x[6] = upper.z, x[7] = upper.w;
    } else
        for (int i = 0; i < PER_LANE; i++) x[i] = at + i < n ? in[at + i] : 0.0f;
}

// The same of a row of whole blocks.
static __device__ __forceinline__ void load_whole(float x[PER_LANE], const float *in, uint32_t b) {
    const float4 *p = (const float4 *)(in + b * SL_ACT_BLK_LEN + PER_LANE * (threadIdx.x % WARP));
    const float4 lower = p[0], upper = p[1];
    x[0] = lower.x, x[1] = lower.y, x[2] = lower.z, x[3] = lower.w;
    x[4] = upper.x, x[5] = upper.y, x[6] = upper.z, x[7] = upper.w;
}

static __device__ __forceinline__ double square_sum(const float x[PER_LANE]) {
    double sum = 0;
    for (int i = 0; i < PER_LANE; i++) sum = __fma_rn((double)x[i], (double)x[i], sum);
    return warp_sum(sum);
}

// What a norm multiplies columns by, from the sum of their squares and 1 over their number.
static __device__ __forceinline__ float norm_scale(double sum, double inverse_n, float eps) {
    return __frsqrt_rn((float)(sum * inverse_n + (double)eps));
}

// The same from the sums of a row's blocks (part).
static __device__ __forceinline__ float row_scale(const double *part, uint32_t n_blk, double inverse_n, float eps) {
    double sum = 0;
    for (uint32_t b = threadIdx.x % WARP; b < n_blk; b += WARP) sum += part[b];
    return norm_scale(warp_sum(sum), inverse_n, eps);
}

static __device__ __forceinline__ void norm_blk(float x[PER_LANE], float scale, const float w[PER_LANE]) {
    for (int i = 0; i < PER_LANE; i++) x[i] = x[i] * scale * w[i];
}

#endif
