// SPDX-License-Identifier: MIT
// sl_test: MODULES quant base
//
// Every codec against vectors of the numpy reference (tools/make_quant_vectors.py says how the file
// is laid out). Bit-exact; a NaN equals a NaN. Output ends at an inaccessible page.
#include "harness.h"

#include "base/half.h"
#include "quant/blocks.h"
#include "quant/quant.h"

enum { N_HASHED = 1000, N_TYPES = 16 };

typedef struct vectors {
    uint32_t id, blk_len, blk_bytes, n_blk, n_enc;
    const uint8_t *blocks, *floats, *enc_floats, *enc_blocks;
    uint64_t hash;
} vectors;

static vectors all[N_TYPES];

static const uint8_t *take(const uint8_t **p, const uint8_t *end, size_t n_bytes) {
    REQUIRE((size_t)(end - *p) >= n_bytes);
    const uint8_t *at = *p;
    *p += n_bytes;
    return at;
}

static uint32_t take_u32(const uint8_t **p, const uint8_t *end) {
    uint32_t v;
    memcpy(&v, take(p, end, sizeof v), sizeof v);
    return v;
}

static void load_vectors(void) {
    FILE *file = fopen(test_source_path("tests/golden/quant_vectors.bin"), "rb");
    REQUIRE(file);
    static uint8_t bytes[300000];
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    const uint8_t *p = bytes, *end = bytes + n;
    REQUIRE(memcmp(take(&p, end, 4), "SLQV", 4) == 0);
    REQUIRE(take_u32(&p, end) == N_TYPES);
    for (vectors *v = all; v < all + N_TYPES; v++) {
        v->id = take_u32(&p, end), v->blk_len = take_u32(&p, end);
        v->blk_bytes = take_u32(&p, end), v->n_blk = take_u32(&p, end);
        v->blocks = take(&p, end, (size_t)v->n_blk * v->blk_bytes);
        v->floats = take(&p, end, (size_t)v->n_blk * v->blk_len * 4);
        memcpy(&v->hash, take(&p, end, 8), 8);
        v->n_enc = take_u32(&p, end);
        v->enc_floats = take(&p, end, (size_t)v->n_enc * v->blk_len * 4);
        v->enc_blocks = take(&p, end, (size_t)v->n_enc * v->blk_bytes);
    }
    REQUIRE(p == end);
}

static bool same(float a, float b) { return sl_f32_bits(a) == sl_f32_bits(b) || (isnan(a) && isnan(b)); }

TEST(decode_equals_the_reference_bit_for_bit) {
    load_vectors();
    for (vectors *v = all; v < all + N_TYPES; v++) {
        const sl_type_info *info = sl_type_find(v->id);
        REQUIRE(info && info->computable && sl_quant_find((sl_type)v->id));
        CHECK_INT(info->blk_len, v->blk_len);
        CHECK_INT(info->blk_bytes, v->blk_bytes);
        size_t n = (size_t)v->n_blk * v->blk_len;
        uint8_t *blocks = test_guarded((size_t)v->n_blk * v->blk_bytes);
        float *out = test_guarded(n * 4);
        memcpy(blocks, v->blocks, (size_t)v->n_blk * v->blk_bytes);
        sl_quant_decode((sl_type)v->id, out, blocks, n);
        for (size_t i = 0; i < n; i++) {
            float want;
            memcpy(&want, v->floats + i * 4, 4);
            if (!same(out[i], want))
                test_failed(__FILE__, __LINE__, "%s block %zu element %zu is %a, not %a", info->name, i / v->blk_len,
                            i % v->blk_len, (double)out[i], (double)want);
        }
    }
}

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

TEST(decode_of_a_thousand_random_blocks_has_the_hash_of_the_reference) {
    load_vectors();
    for (vectors *v = all; v < all + N_TYPES; v++) {
        static _Alignas(16) uint8_t blocks[N_HASHED * 256 + 8];
        static float out[N_HASHED * SL_BLK_K_LEN];
        size_t n_bytes = (size_t)N_HASHED * v->blk_bytes, n = (size_t)N_HASHED * v->blk_len;
        uint64_t state = v->id, hash = 14695981039346656037u;
        for (size_t i = 0; i < n_bytes; i += 8) memcpy(blocks + i, &(uint64_t){splitmix(&state)}, 8);
        sl_quant_decode((sl_type)v->id, out, blocks, n);
        for (size_t i = 0; i < n; i++)
            hash = (hash ^ (isnan(out[i]) ? 0x7fc00000 : sl_f32_bits(out[i]))) * 1099511628211u;
        if (hash != v->hash) test_failed(__FILE__, __LINE__, "%s differs", sl_type_name((sl_type)v->id));
    }
}

TEST(encode_equals_the_reference_byte_for_byte) {
    load_vectors();
    int n_types = 0;
    for (vectors *v = all; v < all + N_TYPES; v++) {
        if (v->n_enc == 0) continue;
        size_t n_bytes = (size_t)v->n_enc * v->blk_bytes, n = (size_t)v->n_enc * v->blk_len;
        float *in = test_guarded(n * 4);
        uint8_t *out = test_guarded(n_bytes);
        memcpy(in, v->enc_floats, n * 4);
        sl_quant_find((sl_type)v->id)->encode(out, in, v->n_enc);
        for (size_t i = 0; i < n_bytes; i++)
            if (out[i] != v->enc_blocks[i])
                test_failed(__FILE__, __LINE__, "%s block %zu byte %zu is %u, not %u", sl_type_name((sl_type)v->id),
                            i / v->blk_bytes, i % v->blk_bytes, out[i], v->enc_blocks[i]);
        n_types++;
    }
    CHECK_INT(n_types, 3);
}

TEST(encode_q8_0_of_no_numbers_decodes_to_no_numbers) {
    const float odd[] = {INFINITY, -INFINITY, NAN};
    for (size_t k = 0; k < 3; k++)
        for (int at = 0; at < SL_BLK_LEN; at += 31) {
            float in[SL_BLK_LEN] = {1, 2, 3}, out[SL_BLK_LEN];
            in[at] = odd[k];
            sl_blk_q8_0 block;
            sl_quant_find(SL_TYPE_Q8_0)->encode(&block, in, 1);
            sl_quant_decode(SL_TYPE_Q8_0, out, &block, SL_BLK_LEN);
            CHECK(!isfinite(out[at]));
        }
    float tiny[SL_BLK_LEN] = {0x1p-149f, -0x1p-140f}, out[SL_BLK_LEN]; // 1 / d is infinite
    sl_blk_q8_0 block;
    sl_quant_find(SL_TYPE_Q8_0)->encode(&block, tiny, 1);
    sl_quant_decode(SL_TYPE_Q8_0, out, &block, SL_BLK_LEN);
    for (int i = 0; i < SL_BLK_LEN; i++) CHECK(out[i] == 0);
}

TEST(every_computable_type_has_a_codec_and_no_other) {
    for (uint32_t id = 0; id < SL_TYPE_ID_COUNT + 8; id++) {
        const sl_type_info *info = sl_type_find(id);
        CHECK((sl_quant_find((sl_type)id) != NULL) == (info && info->computable));
    }
}
