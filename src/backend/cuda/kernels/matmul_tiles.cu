// SPDX-License-Identifier: MIT
//
// Products of 1 to 8 rows with matrices in tiles (tile.h): the weights are read once for all rows, by integer tensor
// cores, at the pace of the memory. More rows are done eight at a time. Up to three matrices that read the same
// activations share a launch, and what follows (bias, residual, gate) is done with the sums.
//
// The columns are split over the warps of a thread block: a warp keeps to its tiles of 256 columns, walks down the rows,
// and has the next tiles of weights under way (cp.async into a ring of its own) while it multiplies one; the first ones
// before it waits for the kernel in front. At the end of a batch of rows the sums of the warps are added in rising order.
//
// One row (N = 1): each thread block has the row as ACT16 in shared memory, and may make it so itself. The 8 columns of
// the integer product m16n8k32 hold 4 groups of 32 activations with their two bytes apart, so that a product gives the
// sum of each group of 16 outputs without scaling in between; lane (g, t) gets groups t and t + 4 of outputs g and
// g + 8. Several rows: the 8 columns are the rows, and each lane does for two of them what four lanes do for one. `value`
// is shared, all else is integers, and the lanes' sums are added in the same order, so a row has the same bits in either.
#include "backend/cuda/kernels/quant.cuh"
#include "backend/cuda/kernels/tile.h"

enum {
    MAX_WARP = 16,
    N_COL = 8,     // of the integer product
    N_STAGE = 3,   // tiles of weights under way or in use, of a warp
    N_STAGE_2 = 2, // the same where a warp has few tiles: what is asked for at once is then less of a rush
    FEW_TILES = 5,
    BATCH_1 = 16, // tiles of rows between two meetings of the warps, for one row
    BATCH_8 = 2,  // for several
};

// ---- instructions ----------------------------------------------------------------------------------

// c (16, 8) += a (16, 32) b (32, 8); of a: rows g and g + 8, columns 4 t .. and the same again.
static __device__ __forceinline__ void product_u8(int32_t c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
static __device__ __forceinline__ void product_s8(int32_t c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The same of 16 columns.
static __device__ __forceinline__ void product_u8_16(int32_t c[4], uint32_t a0, uint32_t a1, uint32_t b0) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(b0));
}

// ---- types -----------------------------------------------------------------------------------------
//
// GROUP: columns of a product. EIGHTS: the group's columns of lane t are 8 t .. 8 t + 7, else 4 t .. and 16 + 4 t ..
// a(planes, i, lane, out): the weights of group i as the product takes them.
// multiply: with which instruction. head: the scales of lane's rows. value: see above; x and s are the sums of products
// and of activations of groups t, t + 4 (.. t + 12) of row `upper` (0: g, 1: g + 8).

template <int TYPE> struct packed;

// Scales and minima of q4_K and q5_K: 16 bytes as in their blocks.
struct head_k {
    uint4 row[2];
    __device__ __forceinline__ void load(const uint8_t *p, int lane) {
        row[0] = *(const uint4 *)(p + lane / 4 * 16), row[1] = *(const uint4 *)(p + (lane / 4 + 8) * 16);
    }
    // The integers stay below 2^31: 2 * 63 * 32 * 15 * 32639 (q5_K: in two steps).
    __device__ __forceinline__ void scales(int upper, int t, int sc[2], int m[2]) const {
        const uint4 h = row[upper];
        uint32_t y = h.y >> 8 * t, z = h.z >> 8 * t, w = h.w >> 8 * t;
        sc[0] = (int)(y & 63), m[0] = (int)(z & 63);
        sc[1] = (int)((w & 15) | (y >> 2 & 48)), m[1] = (int)((w >> 4 & 15) | (z >> 2 & 48));
    }
    __device__ __forceinline__ float2 d(int upper) const { return __half22float2(*(const __half2 *)&row[upper].x); }
};

template <> struct packed<SL_TYPE_Q4_K> {
    enum { TYPE = SL_TYPE_Q4_K, BYTES = 2304, HEAD = 2048, GROUP = 32, EIGHTS = 1, N_SUM = 2 };
    typedef head_k head;
    // Groups of odd number are times 16.
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        const uint4 w = *(const uint4 *)(p + i / 2 * 512 + lane * 16);
        const uint32_t mask = i % 2 ? 0xf0f0f0f0u : 0x0f0f0f0fu;
        out[0] = w.x & mask, out[1] = w.z & mask, out[2] = w.y & mask, out[3] = w.w & mask;
    }
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
        product_u8(c, a, b0, b1);
    }
    static __device__ __forceinline__ float value(const head &h, int upper, int t, const int32_t x[2],
                                                  const int32_t s[2]) {
        int sc[2], m[2], shift = 4 * (t & 1);
        h.scales(upper, t, sc, m);
        float2 d = h.d(upper);
        float low = (float)(s[0] * m[0] + s[1] * m[1]);
        return __fmaf_rn(-d.y, low, d.x * (float)((x[0] >> shift) * sc[0] + (x[1] >> shift) * sc[1]));
    }
};

template <> struct packed<SL_TYPE_Q5_K> {
    enum { TYPE = SL_TYPE_Q5_K, BYTES = 2816, HEAD = 2560, GROUP = 32, EIGHTS = 1, N_SUM = 2 };
    typedef head_k head;
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        const uint4 w = *(const uint4 *)(p + i / 2 * 512 + lane * 16), h = *(const uint4 *)(p + 2048 + lane * 16);
        const int shift = i % 2 * 4;
        out[0] = (w.x >> shift & 0x0f0f0f0fu) | (h.x >> i & 0x01010101u) << 4;
        out[1] = (w.z >> shift & 0x0f0f0f0fu) | (h.z >> i & 0x01010101u) << 4;
        out[2] = (w.y >> shift & 0x0f0f0f0fu) | (h.y >> i & 0x01010101u) << 4;
        out[3] = (w.w >> shift & 0x0f0f0f0fu) | (h.w >> i & 0x01010101u) << 4;
    }
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
        product_u8(c, a, b0, b1);
    }
    static __device__ __forceinline__ float value(const head &h, int upper, int t, const int32_t x[2],
                                                  const int32_t s[2]) {
        int sc[2], m[2];
        h.scales(upper, t, sc, m);
        float2 d = h.d(upper);
        float low = (float)(s[0] * m[0] + s[1] * m[1]);
        float sum = __fmaf_rn((float)x[1], (float)sc[1], (float)x[0] * (float)sc[0]);
        return __fmaf_rn(-d.y, low, d.x * sum);
    }
};

template <> struct packed<SL_TYPE_Q6_K> {
    enum { TYPE = SL_TYPE_Q6_K, BYTES = 3360, HEAD = 3072, GROUP = 16, EIGHTS = 0, N_SUM = 4 };
    struct head {
        uint32_t scale[2];
        __half2 d;
        __device__ __forceinline__ void load(const uint8_t *p, int lane) {
            scale[0] = *(const uint32_t *)(p + lane * 4), scale[1] = *(const uint32_t *)(p + 128 + lane * 4);
            d = *(const __half2 *)(p + 256 + lane / 4 * 4);
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
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint32_t b0, uint32_t) {
        product_u8_16(c, a[0], a[1], b0);
    }
    // 32 is taken off by way of the activations' sums, which leaves at most 32 * 16 * 32639 < 2^24: exact.
    static __device__ __forceinline__ float value(const head &h, int upper, int, const int32_t x[4],
                                                  const int32_t s[4]) {
        uint32_t sc = h.scale[upper];
        float sum = 0;
        for (int k = 0; k < 4; k++) sum = __fmaf_rn((float)(x[k] - 32 * s[k]), (float)(int8_t)(sc >> 8 * k), sum);
        return (upper ? __high2float(h.d) : __low2float(h.d)) * sum;
    }
};

// Scales of q4_0 and q8_0: of groups t and t + 4.
struct head_plain {
    __half2 d[2];
    __device__ __forceinline__ void load(const uint8_t *p, int lane) {
        d[0] = *(const __half2 *)(p + lane * 4), d[1] = *(const __half2 *)(p + 128 + lane * 4);
    }
    __device__ __forceinline__ float sum(int upper, int32_t x0, int32_t x1) const {
        float2 f = __half22float2(d[upper]);
        return __fmaf_rn((float)x1, f.y, (float)x0 * f.x);
    }
};

template <> struct packed<SL_TYPE_Q8_0> {
    enum { TYPE = SL_TYPE_Q8_0, BYTES = 4352, HEAD = 4096, GROUP = 32, EIGHTS = 1, N_SUM = 2 };
    typedef head_plain head;
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        const uint4 w = *(const uint4 *)(p + i * 512 + lane * 16);
        out[0] = w.x, out[1] = w.z, out[2] = w.y, out[3] = w.w;
    }
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
        product_s8(c, a, b0, b1);
    }
    static __device__ __forceinline__ float value(const head &h, int upper, int, const int32_t x[2], const int32_t *) {
        return h.sum(upper, x[0], x[1]);
    }
};

template <> struct packed<SL_TYPE_Q4_0> {
    enum { TYPE = SL_TYPE_Q4_0, BYTES = 2304, HEAD = 2048, GROUP = 32, EIGHTS = 0, N_SUM = 2 };
    typedef head_plain head;
    static __device__ __forceinline__ void a(const uint8_t *p, int i, int lane, uint32_t out[4]) {
        const uint2 w = *(const uint2 *)(p + i / 2 * 512 + lane * 16 + i % 2 * 8);
        out[0] = w.x & 0x0f0f0f0fu, out[1] = w.y & 0x0f0f0f0fu;
        out[2] = w.x >> 4 & 0x0f0f0f0fu, out[3] = w.y >> 4 & 0x0f0f0f0fu;
    }
    static __device__ __forceinline__ void multiply(int32_t c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
        product_u8(c, a, b0, b1);
    }
    static __device__ __forceinline__ float value(const head &h, int upper, int, const int32_t x[2],
                                                  const int32_t s[2]) {
        return h.sum(upper, x[0] - 8 * s[0], x[1] - 8 * s[1]);
    }
};

// ---- activations -----------------------------------------------------------------------------------

// 256 columns of one row of ACT16.
struct act {
    const uint8_t *byte[2]; // hi, lo
    const int32_t *sum;
    float d;
};

// p: a row of n_pad columns
static __device__ __forceinline__ act act_at(const uint8_t *p, uint32_t n_pad, uint32_t blk) {
    uint32_t n_blk = n_pad / SL_ACT_BLK_LEN;
    act a;
    a.byte[0] = p + blk * SL_ACT_BLK_LEN;
    a.byte[1] = a.byte[0] + n_pad;
    const float *d = (const float *)(p + 2 * n_pad);
    a.d = d[blk];
    a.sum = (const int32_t *)(d + n_blk) + blk * (SL_ACT_BLK_LEN / SL_ACT_SUM_LEN);
    return a;
}

// Group i of a row as lane (., t) of the product's second factor has it.
template <class T> static __device__ __forceinline__ uint2 factor(const uint8_t *bytes, int i, int t) {
    const uint8_t *p = bytes + i * T::GROUP;
    if (T::EIGHTS) return *(const uint2 *)(p + 8 * t);
    uint2 b;
    b.x = *(const uint32_t *)(p + 4 * t);
    b.y = T::GROUP == 32 ? *(const uint32_t *)(p + 16 + 4 * t) : 0;
    return b;
}

template <class T> static __device__ __forceinline__ int32_t sum_of(const int32_t *sum, int i) {
    return T::GROUP == 16 ? sum[i] : sum[2 * i] + sum[2 * i + 1];
}

// ---- one tile --------------------------------------------------------------------------------------

// N = 1. What a lane needs of the row's 256 columns.
template <class T> struct one {
    uint2 b[T::N_SUM];
    int32_t s[T::N_SUM];
    float d;

    __device__ __forceinline__ void load(const uint8_t *row, uint32_t n_col, uint32_t blk, int lane) {
        const int g = lane / 4, k = lane % 4;
        act a = act_at(row, n_col, blk);
        for (int i = 0; i < T::N_SUM; i++) {
            b[i] = factor<T>(g % 2 ? a.byte[1] : a.byte[0], 4 * i + g / 2, k);
            s[i] = sum_of<T>(a.sum, 4 * i + k);
        }
        d = a.d;
    }

    // sum (2): of outputs g and g + 8, this lane's groups
    __device__ __forceinline__ void add_tile(float sum[2], const uint8_t *p, int lane) const {
        const int g = lane / 4, k = lane % 4;
        int32_t c[T::N_SUM][4];
#pragma unroll
        for (int i = 0; i < T::N_SUM; i++) {
            for (int j = 0; j < 4; j++) c[i][j] = 0;
#pragma unroll
            for (int j = 0; j < 4; j++) { // the product's columns are the four groups' two bytes
                uint32_t a[4];
                T::a(p, 4 * i + j, lane, a);
                T::multiply(c[i], a, g / 2 == j ? b[i].x : 0, g / 2 == j ? b[i].y : 0);
            }
        }
        typename T::head h;
        h.load(p + T::HEAD, lane);
#pragma unroll
        for (int upper = 0; upper < 2; upper++) {
            int32_t x[T::N_SUM];
            for (int i = 0; i < T::N_SUM; i++) x[i] = SL_ACT_BASE * c[i][2 * upper] + c[i][2 * upper + 1];
            sum[upper] = __fmaf_rn(d, T::value(h, upper, k, x, s), sum[upper]);
        }
    }
};

// Several rows: sum (2 outputs, 2 rows, 4): of outputs g and g + 8, rows 2 t and 2 t + 1, by what lane t has for one row
template <class T>
static __device__ __forceinline__ void add_tile_rows(float sum[2][2][4], const sl_cuda_product &t, const uint8_t *p,
                                                     uint32_t first, int32_t n, uint32_t blk, int lane) {
    const int g = lane / 4, k = lane % 4;
    act part[3]; // of rows g, 2 k, 2 k + 1; rows past the end are computed and left
    for (int i = 0; i < 3; i++) {
        uint32_t row = first + min(i == 0 ? g : 2 * k + i - 1, n - 1);
        part[i] = act_at(t.in + (uint64_t)row * t.in_stride, t.n_col, blk);
    }
    const act &mine = part[0], *col = part + 1;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        typename T::head h;
        h.load(p + T::HEAD, lane / 4 * 4 + j); // what lane t = j has for one row
        int32_t c[T::N_SUM][2][4];
#pragma unroll
        for (int i = 0; i < T::N_SUM; i++) {
            uint32_t a[4];
            T::a(p, 4 * i + j, lane, a);
#pragma unroll
            for (int byte = 0; byte < 2; byte++) {
                for (int m = 0; m < 4; m++) c[i][byte][m] = 0;
                uint2 b = factor<T>(mine.byte[byte], 4 * i + j, k);
                T::multiply(c[i][byte], a, b.x, b.y);
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            int32_t s[T::N_SUM];
            for (int i = 0; i < T::N_SUM; i++) s[i] = sum_of<T>(col[r].sum, 4 * i + j);
#pragma unroll
            for (int upper = 0; upper < 2; upper++) {
                int32_t x[T::N_SUM];
                for (int i = 0; i < T::N_SUM; i++) x[i] = SL_ACT_BASE * c[i][0][2 * upper + r] + c[i][1][2 * upper + r];
                sum[upper][r][j] = __fmaf_rn(col[r].d, T::value(h, upper, j, x, s), sum[upper][r][j]);
            }
        }
    }
}

// ---- the walk --------------------------------------------------------------------------------------

// How matrices are dealt out: in a thread block n_k warps share the columns (each every n_k-th tile of them), and n_t such
// groups of warps take tiles of rows at once. The tiles of rows of all matrices, one matrix after the other, go to the
// thread blocks in turn; of gate and up the tiles of the same rows go together.
typedef struct deal {
    uint32_t n_k, n_t, n_blk, per_warp; // per_warp = n_blk / n_k
    uint32_t n_unit, per_unit;          // per_unit = 2 for gate and up, else 1
    uint32_t end[3];                    // tiles of rows of matrices 0 .. i
} deal;

template <class A, class B> struct slot {
    static const int BYTES = (int)A::BYTES > (int)B::BYTES ? (int)A::BYTES : (int)B::BYTES;
};

// Entry i of a thread block's list of tiles of rows.
struct entry {
    uint32_t matrix, tile;
    __device__ __forceinline__ entry(const deal &d, uint32_t i) {
        if (d.per_unit == 2) {
            matrix = i % 2, tile = i / 2 * gridDim.y + blockIdx.y;
            return;
        }
        tile = i * gridDim.y + blockIdx.y;
        matrix = tile < d.end[0] ? 0 : tile < d.end[1] ? 1 : 2;
        if (matrix > 0) tile -= d.end[matrix - 1];
    }
};

static __device__ __forceinline__ bool has_entry(const deal &d, uint32_t i) {
    return (d.per_unit == 2 ? i / 2 : i) * gridDim.y + blockIdx.y < d.n_unit;
}

// Where a warp is in its list, and at which of its tiles of columns.
struct walk {
    uint32_t i, at;
    __device__ __forceinline__ bool next(const deal &d) {
        if (++at < d.per_warp) return false;
        at = 0, i += d.n_t;
        return true;
    }
};

template <int BYTES> static __device__ __forceinline__ void copy_tile(uint8_t *to, const uint8_t *from, int lane) {
#pragma unroll
    for (int i = 0; i < (BYTES + 511) / 512; i++)
        if ((i + 1) * 512 <= BYTES || i * 512 + lane * 16 < BYTES)
            copy_async(to + i * 512 + lane * 16, from + i * 512 + lane * 16);
}

// `w` is ahead of what is multiplied.
template <class A, class B>
static __device__ __forceinline__ void fetch(uint8_t *to, const sl_cuda_product &t, const deal &d, walk &w, uint32_t k,
                                             int lane) {
    if (has_entry(d, w.i)) {
        const entry e(d, w.i);
        const sl_cuda_matrix &m = t.matrix[e.matrix];
        const uint64_t tile = (uint64_t)e.tile * d.n_blk + k + w.at * d.n_k;
        if ((int)A::TYPE == (int)B::TYPE || m.type == A::TYPE)
            copy_tile<A::BYTES>(to, m.weight + tile * A::BYTES, lane);
        else copy_tile<B::BYTES>(to, m.weight + tile * B::BYTES, lane);
        w.next(d);
    }
    copy_commit(); // empty at the end, so that the count of groups stays right
}

// The sums of all warps over the columns of an output, in order; then bias and residual.
static __device__ __forceinline__ float total(const sl_cuda_matrix &m, const float *part, uint32_t n_k, uint32_t stride,
                                              uint32_t o, uint32_t row) {
    float y = part[0];
    for (uint32_t k = 1; k < n_k; k++) y += part[k * stride];
    if (m.bias) y += m.bias[o];
    if (m.add) y += ((const float *)(m.add + row * m.add_stride))[o];
    return y;
}

// Results of the entries first .. of a batch. part: (entry, n_k, 16 outputs, N rows)
template <int N>
static __device__ __forceinline__ void finish(const sl_cuda_product &t, const deal &d, const float *part,
                                              uint32_t first, uint32_t n_entry, uint32_t first_row, int32_t n_row) {
    enum { PART = SL_TILE_ROWS * N };
    for (uint32_t i = threadIdx.x; i < n_entry / d.per_unit * PART; i += blockDim.x) {
        uint32_t at_entry = i / PART * d.per_unit, at = i % PART, row = first_row + at % N;
        if (!has_entry(d, first + at_entry) || (int32_t)(at % N) >= n_row) continue;
        const entry e(d, first + at_entry);
        const sl_cuda_matrix &m = t.matrix[e.matrix];
        const uint32_t o = e.tile * SL_TILE_ROWS + at / N;
        if (o >= m.n_row) continue;
        const float *from = part + at_entry * d.n_k * PART + at;
        float y = total(m, from, d.n_k, PART, o, row);
        if (t.glu) y = gate_up(y, total(t.matrix[1], from + d.n_k * PART, d.n_k, PART, o, row), t.act);
        ((float *)(m.out + row * m.out_stride))[o] = y;
    }
}

// One row as ACT16 in shared memory. All threads call it.
static __device__ __forceinline__ void take_row(uint8_t *to, const sl_cuda_product &t, uint32_t row, double *part) {
    const uint8_t *in = t.in + (uint64_t)row * t.in_stride;
    if (t.source == SL_CUDA_ACT16) {
        enum { N_LOAD = 4 }; // under way at once
        const uint32_t n_bytes = 2 * t.n_col + t.n_col / SL_ACT_BLK_LEN * 4 + t.n_col / SL_ACT_SUM_LEN * 4;
        const uint32_t n = (n_bytes + sizeof(uint4) - 1) / sizeof(uint4); // rows are padded
        for (uint32_t i = threadIdx.x; i < n; i += N_LOAD * blockDim.x) {
            uint4 x[N_LOAD];
#pragma unroll
            for (int j = 0; j < N_LOAD; j++)
                if (i + j * blockDim.x < n) x[j] = ((const uint4 *)in)[i + j * blockDim.x];
#pragma unroll
            for (int j = 0; j < N_LOAD; j++)
                if (i + j * blockDim.x < n) ((uint4 *)to)[i + j * blockDim.x] = x[j];
        }
    } else
        quant_row(act16_of(to, t.n_col), (const float *)in, t.n_col, t.source == SL_CUDA_NORM_QUANT, t.norm, t.eps,
                  part);
    __syncthreads();
}

// What a warp adds up for a tile of rows.
template <int N> struct sums;
template <> struct sums<1> {
    float s[2];
    __device__ __forceinline__ void clear() { s[0] = s[1] = 0; }
    __device__ __forceinline__ void store(float *to, int lane) const { // the four lanes of an output
        for (int upper = 0; upper < 2; upper++) {
            float y = s[upper] + __shfl_xor_sync(ALL, s[upper], 1);
            y += __shfl_xor_sync(ALL, y, 2);
            if (lane % 4 == 0) to[lane / 4 + 8 * upper] = y;
        }
    }
};
template <> struct sums<N_COL> {
    float s[2][2][4];
    __device__ __forceinline__ void clear() {
        for (int i = 0; i < 16; i++) s[i / 8][i / 4 % 2][i % 4] = 0;
    }
    __device__ __forceinline__ void store(float *to, int lane) const {
        for (int i = 0; i < 4; i++) {
            const float *y = s[i / 2][i % 2];
            to[(lane / 4 + 8 * (i / 2)) * N_COL + lane % 4 * 2 + i % 2] = (y[0] + y[1]) + (y[2] + y[3]);
        }
    }
};

// The matrices' types are A and B.
template <int A_TYPE, int B_TYPE, int N, int STAGES>
static __global__ void __launch_bounds__(MAX_WARP *WARP, 1)
    matmul_tiles(const __grid_constant__ sl_cuda_product t, const __grid_constant__ deal d) {
    typedef packed<A_TYPE> A;
    typedef packed<B_TYPE> B;
    enum { BATCH = N == 1 ? BATCH_1 : BATCH_8, SLOT = slot<A, B>::BYTES };
    extern __shared__ __align__(16) uint8_t shared[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const uint32_t k = warp % d.n_k, at_once = warp / d.n_k, first = blockIdx.x * N_COL, n_warp = d.n_k * d.n_t;
    uint8_t *ring = shared + warp * (STAGES * SLOT);
    float *part = (float *)(shared + n_warp * (STAGES * SLOT));
    uint8_t *act = (uint8_t *)(part + n_warp * BATCH * SL_TILE_ROWS * N);
    walk w = {at_once, 0}, ahead = w;
    if (gridDim.x > 1) { // a wide program: are there such rows at all?
        begin();
        if (task_rows(t) <= (int32_t)first) return;
    }
    for (int i = 0; i < STAGES - 1; i++) fetch<A, B>(ring + i * SLOT, t, d, ahead, k, lane);
    begin(); // weights do not depend on the kernel before; all else does
    const int32_t n = min(task_rows(t) - (int32_t)first, (int32_t)N_COL);
    if (n <= 0) return copy_wait<0>();
    one<A> b;
    one<B> b2;
    if (N == 1) {
        take_row(act, t, first, (double *)part);
        if (d.per_warp == 1) b.load(act, t.n_col, k, lane);
        if (A_TYPE != B_TYPE && d.per_warp == 1) b2.load(act, t.n_col, k, lane);
    }
    int stage = 0;
    for (uint32_t base = 0; has_entry(d, base); base += BATCH * d.n_t) {
        for (int i = 0; i < BATCH && has_entry(d, w.i); i++) {
            const bool is_a = A_TYPE == B_TYPE || t.matrix[entry(d, w.i).matrix].type == A_TYPE;
            sums<N> sum;
            sum.clear();
            for (bool done = false; !done;) {
                copy_wait<STAGES - 2>();
                __syncwarp();
                fetch<A, B>(ring + (stage + STAGES - 1) % STAGES * SLOT, t, d, ahead, k, lane);
                const uint8_t *p = ring + stage * SLOT;
                const uint32_t blk = k + w.at * d.n_k;
                if constexpr (N == 1) {
                    if (is_a) {
                        if (d.per_warp > 1) b.load(act, t.n_col, blk, lane);
                        b.add_tile(sum.s, p, lane);
                    } else {
                        if (d.per_warp > 1) b2.load(act, t.n_col, blk, lane);
                        b2.add_tile(sum.s, p, lane);
                    }
                } else if (is_a) add_tile_rows<A>(sum.s, t, p, first, n, blk, lane);
                else add_tile_rows<B>(sum.s, t, p, first, n, blk, lane);
                stage = (stage + 1) % STAGES;
                done = w.next(d);
            }
            sum.store(part + ((i * d.n_t + at_once) * d.n_k + k) * SL_TILE_ROWS * N, lane);
        }
        __syncthreads();
        finish<N>(t, d, part, base, BATCH * d.n_t, first, n);
        __syncthreads();
    }
    copy_wait<0>();
}

// ---- launchers -------------------------------------------------------------------------------------

static_assert(BATCH_1 == BATCH_8 * N_COL, "part sums take the same room");
enum { PART_BYTES = BATCH_1 * SL_TILE_ROWS * sizeof(float) }; // part sums of a warp

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Shared memory of a row of activations, and of the sums of a norm's blocks before them (in the part sums).
static uint32_t act_bytes(uint32_t n_col) { return (uint32_t)sl_act16_row_bytes(n_col); }

// n_k is the same for one row and for several, or their bits would differ.
static deal deal_of(const sl_cuda_product *t, uint32_t warp_bytes) {
    deal d = {};
    uint32_t most = min_u32(MAX_WARP, (t->shared_bytes - act_bytes(t->n_col)) / warp_bytes), n_tile = 0;
    for (uint32_t i = 0; i < 3; i++) {
        if (i < t->n_matrix) n_tile += (t->matrix[i].n_row + SL_TILE_ROWS - 1) / SL_TILE_ROWS;
        d.end[i] = n_tile;
    }
    d.per_unit = t->glu ? 2 : 1;
    d.n_unit = n_tile / d.per_unit;
    d.n_blk = t->n_col / SL_TILE_COLS;
    for (d.n_k = min_u32(d.n_blk, most); d.n_blk % d.n_k; d.n_k--) {}
    d.per_warp = d.n_blk / d.n_k;
    for (d.n_t = most / d.n_k; d.n_t > 1 && n_tile < d.n_t * t->n_sm; d.n_t--) {}
    return d;
}

// grid (eights of rows, units): thread blocks beside each other read the same weights.
template <int A, int B, int N, int STAGES>
static cudaError_t launch_tiles(const sl_cuda_product *t, const deal &d, cudaStream_t stream) {
    const uint32_t slot_bytes = slot<packed<A>, packed<B>>::BYTES, n_warp = d.n_k * d.n_t;
    const uint32_t n_bytes = n_warp * (STAGES * slot_bytes + PART_BYTES) + (N == 1 ? act_bytes(t->n_col) : 0);
    uint32_t in_turn = d.per_unit == 2 ? d.n_unit : (d.n_unit + d.n_t - 1) / d.n_t;
    cudaError_t error = cudaFuncSetAttribute((const void *)matmul_tiles<A, B, N, STAGES>,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n_bytes);
    if (error != cudaSuccess) return error;
    dim3 grid((t->n_row_max + N_COL - 1) / N_COL, min_u32(in_turn, t->n_sm));
    return launch(t, matmul_tiles<A, B, N, STAGES>, grid, n_warp * WARP, n_bytes, stream, *t, d);
}

template <int A, int B> static cudaError_t launch_types(const sl_cuda_product *t, cudaStream_t stream) {
    const deal d = deal_of(t, N_STAGE * slot<packed<A>, packed<B>>::BYTES + PART_BYTES);
    const bool few = d.end[2] * d.n_blk < FEW_TILES * MAX_WARP * t->n_sm;
    if (t->n_row_max > 1) return launch_tiles<A, B, N_COL, N_STAGE>(t, d, stream);
    return few ? launch_tiles<A, B, 1, N_STAGE_2>(t, d, stream) : launch_tiles<A, B, 1, N_STAGE>(t, d, stream);
}

// Two types in one launch: those of the usual mixes.
static uint8_t other_type(uint8_t type) {
    return type == SL_TYPE_Q4_K || type == SL_TYPE_Q5_K ? (uint8_t)SL_TYPE_Q6_K : type;
}

bool sl_cuda_tiles_go_with(uint8_t type, uint8_t other) { return type == other || other_type(type) == other; }

cudaError_t sl_cuda_matmul_tiles(const sl_cuda_product *t, cudaStream_t stream) {
    uint8_t type = t->matrix[0].type;
    bool mixed = false;
    for (uint32_t i = 1; i < t->n_matrix; i++) mixed |= t->matrix[i].type != type;
    if (mixed && type == SL_TYPE_Q4_K) return launch_types<SL_TYPE_Q4_K, SL_TYPE_Q6_K>(t, stream);
    if (mixed && type == SL_TYPE_Q5_K) return launch_types<SL_TYPE_Q5_K, SL_TYPE_Q6_K>(t, stream);
#define LAUNCH(type) \
    case type: return launch_types<type, type>(t, stream)
    switch (type) {
        LAUNCH(SL_TYPE_Q4_0);
        LAUNCH(SL_TYPE_Q8_0);
        LAUNCH(SL_TYPE_Q4_K);
        LAUNCH(SL_TYPE_Q5_K);
        LAUNCH(SL_TYPE_Q6_K);
    default: return cudaErrorInvalidValue;
    }
#undef LAUNCH
}
