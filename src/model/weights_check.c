// SPDX-License-Identifier: MIT
//
// Looking for NaN and infinities. In a quantised block only the scales can hold one, and they show
// it by an exponent of all ones; so a few bits of each block are tested and nothing is decoded.
#include "model/weights.h"
#include "quant/blocks.h"

// A block's floating-point fields: where, how wide, and the bits of their exponent.
typedef struct field_set {
    uint8_t n, n_bytes;
    uint16_t at[2];
    uint32_t exponent;
} field_set;

#define HALF1(type, a) \
    { 1, 2, {offsetof(sl_blk_##type, a), 0}, 0x7c00 }
#define HALF2(type, a, b) \
    { 2, 2, {offsetof(sl_blk_##type, a), offsetof(sl_blk_##type, b)}, 0x7c00 }
static const field_set fields[SL_TYPE_ID_COUNT] = {
    [SL_TYPE_F32] = {1, 4, {0, 0}, 0x7f800000},
    [SL_TYPE_F16] = {1, 2, {0, 0}, 0x7c00},
    [SL_TYPE_BF16] = {1, 2, {0, 0}, 0x7f80},
    [SL_TYPE_Q4_0] = HALF1(q4_0, d),
    [SL_TYPE_Q4_1] = HALF2(q4_1, d, m),
    [SL_TYPE_Q5_0] = HALF1(q5_0, d),
    [SL_TYPE_Q5_1] = HALF2(q5_1, d, m),
    [SL_TYPE_Q8_0] = HALF1(q8_0, d),
    [SL_TYPE_Q2_K] = HALF2(q2_k, d, dmin),
    [SL_TYPE_Q3_K] = HALF1(q3_k, d),
    [SL_TYPE_Q4_K] = HALF2(q4_k, d, dmin),
    [SL_TYPE_Q5_K] = HALF2(q5_k, d, dmin),
    [SL_TYPE_Q6_K] = HALF1(q6_k, d),
    [SL_TYPE_IQ4_NL] = HALF1(iq4_nl, d),
    [SL_TYPE_IQ4_XS] = HALF1(iq4_xs, d),
    [SL_TYPE_MXFP4] = {1, 1, {offsetof(sl_blk_mxfp4, e), 0}, 0xff}, // all ones is the standard's NaN
};

// The first block with a non-finite field, or n_blk.
static uint64_t find_bad(const uint8_t *data, uint64_t n_blk, size_t blk_bytes, size_t n_bytes, size_t at,
                         uint32_t exponent) {
    for (uint64_t i = 0; i < n_blk; i++) {
        uint32_t bits = 0;
        memcpy(&bits, data + i * blk_bytes + at, n_bytes); // little-endian, as the file is
        if ((bits & exponent) == exponent) return i;
    }
    return n_blk;
}

// The same with the field's width as a constant: this reads the whole file.
static uint64_t find_bad_field(const sl_gguf_tensor *t, const sl_type_info *info, const field_set *f, int k) {
    uint64_t n = t->n_bytes / info->blk_bytes;
    switch (f->n_bytes) {
    case 4: return find_bad(t->data, n, info->blk_bytes, 4, f->at[k], f->exponent);
    case 2: return find_bad(t->data, n, info->blk_bytes, 2, f->at[k], f->exponent);
    default: return find_bad(t->data, n, info->blk_bytes, 1, f->at[k], f->exponent);
    }
}

sl_status sl_weights_check_tensor(const sl_gguf_tensor *t) {
    const sl_type_info *info = sl_type_find(t->type_id);
    if (!t->data || !info || !info->computable) return SL_OK;
    const field_set *f = &fields[t->type_id];
    for (int k = 0; k < f->n; k++) {
        uint64_t bad = find_bad_field(t, info, f, k);
        if (bad == t->n_bytes / info->blk_bytes) continue;
        return SL_FAIL(SL_BAD_FILE, "the tensor '%.*s' holds a NaN or an infinity at element %llu",
                       (int)SL_MIN(t->name.n_bytes, 64), t->name.data, (unsigned long long)(bad * info->blk_len));
    }
    return SL_OK;
}

sl_status sl_weights_check(const sl_gguf *gguf) {
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) SL_TRY(sl_weights_check_tensor(sl_gguf_tensor_at(gguf, i)));
    return SL_OK;
}
