// SPDX-License-Identifier: MIT
//
// Attention of 8 queries (of heads, of rows) to 16 positions by tensor cores, as attend_mma.cu and attend_wide.cu share it,
// so that a row has the same bits in either. The product m16n8k16 has queries as rows: row g is query g's upper half (x
// rounded to f16), row g + 8 what that left off (rounded to f16), so that queries and weights keep 22 bits at no cost.
// Columns of K are taken in an order in which a lane reads 16 bytes at once; queries are laid out alike. Scores are scaled
// by log2 e: weights are powers of 2.
#ifndef SL_BACKEND_CUDA_ATTEND_MMA_CUH
#define SL_BACKEND_CUDA_ATTEND_MMA_CUH

#include "backend/cuda/kernels/kv.cuh"

// The tiles of a part are N_CHAIN chains: every N_CHAIN-th is one.
enum { TILE = 16, MAX_GROUP = 8, N_CHAIN = 4 };

// c (16, 8) += a (16, 16) b (16, 8)
static __device__ __forceinline__ void product(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two floats as two halves, and what was left off.
static __device__ __forceinline__ void split(float x, float y, uint32_t *upper, uint32_t *rest) {
    __half2 h = __floats2half2_rn(x, y);
    float2 f = __half22float2(h);
    __half2 r = __floats2half2_rn(x - f.x, y - f.y);
    *upper = *(uint32_t *)&h, *rest = *(uint32_t *)&r;
}

static __device__ __forceinline__ float power(float x) { return exp2f(x); }

// A tile in shared memory: 16 rows of K, 16 rows of V. Pieces of 16 bytes are permuted within their row so that the
// reads below meet no bank twice.
template <int DIM> struct tile {
    enum { N_PIECE = DIM / 8, BYTES = 2 * TILE * DIM * 2 };
    static __device__ __forceinline__ int key(int row, int piece) {
        return (row * N_PIECE + (piece ^ (row & 1) << 2)) * 16;
    }
    static __device__ __forceinline__ int value(int row, int piece) {
        return TILE * DIM * 2 + (row * N_PIECE + (piece ^ (row >> 1 & 3) << 1)) * 16;
    }
    // k, v: the first of 16 rows
    static __device__ __forceinline__ void fetch(uint8_t *to, const uint8_t *k, const uint8_t *v, int lane) {
#pragma unroll
        for (int i = 0; i < TILE * N_PIECE / WARP; i++) {
            const int at = i * WARP + lane, row = at / N_PIECE, piece = at % N_PIECE;
            copy_async(to + key(row, piece), k + at * 16);
            copy_async(to + value(row, piece), v + at * 16);
        }
    }
};

// What a warp knows after some positions: lane (g, t) has head g; acc[j]: rows as in `product`, the columns of 8 that
// `column` names.
template <int DIM> struct state {
    float max, sum, acc[DIM / 8][4];
    __device__ __forceinline__ void clear() {
        max = -CUDART_INF_F, sum = 0;
        for (int i = 0; i < DIM / 8; i++)
            for (int j = 0; j < 4; j++) acc[i][j] = 0;
    }
    static __device__ __forceinline__ int column(int i, int t, int e) { return i / 8 * 64 + 16 * t + 8 * e + i % 8; }
};

template <int DIM> struct query {
    uint32_t a[DIM / 16][4];
    __device__ __forceinline__ void load(const float *q, bool mine, int t) {
#pragma unroll
        for (int i = 0; i < DIM / 32; i++) {
            float x[8] = {0, 0, 0, 0, 0, 0, 0, 0};
            if (mine) {
                const float *from = q + 32 * i + 8 * t;
                const float4 lower = *(const float4 *)from, upper = *(const float4 *)(from + 4);
                x[0] = lower.x, x[1] = lower.y, x[2] = lower.z, x[3] = lower.w;
                x[4] = upper.x, x[5] = upper.y, x[6] = upper.z, x[7] = upper.w;
            }
            for (int j = 0; j < 2; j++) {
                split(x[4 * j], x[4 * j + 1], &a[2 * i + j][0], &a[2 * i + j][1]);
                split(x[4 * j + 2], x[4 * j + 3], &a[2 * i + j][2], &a[2 * i + j][3]);
            }
        }
    }
};

// Weights of the tile's positions 2 t, 2 t + 1 (row 0) and 8 more (row 1) for head g; the state is scaled to them.
template <int DIM>
static __device__ __forceinline__ void weigh(const sl_cuda_task &t, state<DIM> &s, float w[4], const query<DIM> &q,
                                             const uint8_t *tile_at, int32_t first, const part &p, int lane) {
    const int g = lane / 4, k = lane % 4;
    float c[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < DIM / 32; i++) {
            const uint4 b = *(const uint4 *)(tile_at + tile<DIM>::key(8 * half + g, 4 * i + k));
            product(c[half], q.a[2 * i], b.x, b.y);
            product(c[half], q.a[2 * i + 1], b.z, b.w);
        }
    const float log2_e = 1.44269504f, cap = t.attr.attend.softcap;
    float top = s.max;
    for (int i = 0; i < 4; i++) {
        int32_t pos = first + i / 2 * 8 + 2 * k + i % 2;
        float x = (c[i / 2][i % 2] + c[i / 2][i % 2 + 2]) * t.attr.attend.scale;
        if (cap > 0) x = cap * tanhf(x / cap);
        w[i] = pos < p.from || pos > p.last ? -CUDART_INF_F : x * log2_e;
        top = fmaxf(top, w[i]);
    }
    top = fmaxf(top, __shfl_xor_sync(ALL, top, 1));
    top = fmaxf(top, __shfl_xor_sync(ALL, top, 2));
    const float base = top == -CUDART_INF_F ? 0.0f : top, old = power(s.max - base);
    s.sum *= old, s.max = top;
    for (int i = 0; i < 4; i++) w[i] = power(w[i] - base), s.sum += w[i]; // of this lane's positions
    if (__any_sync(ALL, old != 1))
        for (int i = 0; i < DIM / 8; i++)
            for (int j = 0; j < 4; j++) s.acc[i][j] *= old;
}

template <int DIM>
static __device__ __forceinline__ void add_values(state<DIM> &s, const float w[4], const uint8_t *tile_at,
                                                  int32_t first, const part &p, int lane) {
    const int g = lane / 4, k = lane % 4;
    uint32_t a[4];
    split(w[0], w[1], &a[0], &a[1]);
    split(w[2], w[3], &a[2], &a[3]);
    const bool edge = first < p.from || first + TILE - 1 > p.last;
#pragma unroll
    for (int i = 0; i < DIM / 64; i++) {
        uint32_t v[4][4];
        for (int r = 0; r < 4; r++) {
            const int row = 2 * k + r % 2 + r / 2 * 8;
            const uint4 x = *(const uint4 *)(tile_at + tile<DIM>::value(row, 8 * i + g));
            v[r][0] = x.x, v[r][1] = x.y, v[r][2] = x.z, v[r][3] = x.w;
            if (edge && (first + row < p.from || first + row > p.last)) // what lies there may not be a number
                v[r][0] = v[r][1] = v[r][2] = v[r][3] = 0;
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const uint32_t pick = j % 2 ? 0x7632 : 0x5410;
            product(s.acc[8 * i + j], a, __byte_perm(v[0][j / 2], v[1][j / 2], pick),
                    __byte_perm(v[2][j / 2], v[3][j / 2], pick));
        }
    }
}

// One head's numbers in memory: maximum, sum, weighted sum of V (DIM).
static __device__ __forceinline__ void merge(float *max, float *sum, float *acc, float next_max, float next_sum,
                                             float next_acc) {
    const float top = fmaxf(*max, next_max), base = top == -CUDART_INF_F ? 0.0f : top;
    const float a = power(*max - base), b = power(next_max - base);
    *sum = *sum * a + next_sum * b;
    *acc = *acc * a + next_acc * b;
    *max = top;
}

#endif
