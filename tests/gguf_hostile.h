// SPDX-License-Identifier: MIT
//
// GGUF files that broke other readers, and their siblings: how to make each, and what we answer.
// The same files stand in tests/fuzz/corpus/gguf as seeds.
#ifndef SL_TESTS_GGUF_HOSTILE_H
#define SL_TESTS_GGUF_HOSTILE_H

#include "gguf_bytes.h"

typedef struct hostile {
    const char *name;
    void (*make)(bytes *b);
    sl_status status;
    const char *reason; // part of the error text
} hostile;

#define MAKE(name) static void make_##name(bytes *b)

// ---- counts and lengths: 64-bit sizes that wrap, or that promise what the file does not hold

// CVE-2024-21836
MAKE(n_tensors_huge) { put_head(b, 3, 1ull << 60, 0), put_zeros(b, 64); }
// llama.cpp #15711
MAKE(n_tensors_max) { put_head(b, 3, UINT64_MAX, 0), put_zeros(b, 64); }
MAKE(n_tensors_wraps_records) { put_head(b, 3, UINT64_MAX / 33 + 2, 0), put_zeros(b, 64); }
// CVE-2024-23605
MAKE(n_kv_huge) { put_head(b, 3, 0, 1ull << 60), put_zeros(b, 64); }
MAKE(n_kv_max) { put_head(b, 3, 0, UINT64_MAX), put_zeros(b, 64); }
// ollama #17042: allocation by claim
MAKE(n_kv_one_too_many) { put_head(b, 3, 0, 2), put_kv_u32(b, "k", 1); }
// CVE-2024-23496
MAKE(key_length_max) { put_head(b, 3, 0, 1), put_u64(b, UINT64_MAX), put_zeros(b, 64); }
MAKE(key_length_65536) { put_head(b, 3, 0, 1), put_u64(b, 65536), put_zeros(b, 64); }
// CVE-2024-21825
MAKE(text_length_max) {
    put_head(b, 3, 0, 1), put_kv(b, "k", SL_GGUF_STRING), put_u64(b, UINT64_MAX), put_zeros(b, 64);
}
// CVE-2025-49847: a token of 2^31 bytes
MAKE(text_length_int32) {
    put_head(b, 3, 0, 1), put_kv_array(b, "tokenizer.ggml.tokens", SL_GGUF_STRING, 1);
    put_u64(b, 1ull << 31), put_zeros(b, 64);
}
MAKE(text_past_the_end) { put_head(b, 3, 0, 1), put_kv(b, "k", SL_GGUF_STRING), put_u64(b, 65), put_zeros(b, 64); }
MAKE(array_wraps) { put_head(b, 3, 0, 1), put_kv_array(b, "k", SL_GGUF_U32, (1ull << 62) + 1), put_zeros(b, 64); }
// #27188
MAKE(array_2_63) { put_head(b, 3, 0, 1), put_kv_array(b, "k", SL_GGUF_U8, 1ull << 63), put_zeros(b, 64); }
MAKE(texts_2_63) { put_head(b, 3, 0, 1), put_kv_array(b, "k", SL_GGUF_STRING, 1ull << 63), put_zeros(b, 64); }
MAKE(array_past_the_end) { put_head(b, 3, 0, 1), put_kv_array(b, "k", SL_GGUF_F64, 9), put_zeros(b, 64); }
// ---- shapes
MAKE(texts_past_the_end) { put_head(b, 3, 0, 1), put_kv_array(b, "k", SL_GGUF_STRING, 9), put_zeros(b, 64); }

static inline void one_tensor(bytes *b, uint32_t n_dims, uint64_t d0, uint64_t d1, uint32_t type, uint64_t off) {
    put_head(b, 3, 1, 0), put_tensor(b, "t", n_dims, d0, d1, type, off), put_data(b, 32, 64);
}
// CVE-2024-21802
MAKE(dims_wrap) { one_tensor(b, 2, 1ull << 63, 2, SL_TYPE_F32, 0); }
MAKE(dims_wrap_to_small) { one_tensor(b, 2, (1ull << 32) + 1, (1ull << 32) - 1, SL_TYPE_F32, 0); }
// #27203
MAKE(dims_negative) { one_tensor(b, 2, INT64_MAX, 2, SL_TYPE_F32, 0); }
MAKE(dim_minus_one) { one_tensor(b, 1, UINT64_MAX, 0, TYPE_I8, 0); }
// CVE-2026-33298
MAKE(bytes_wrap_to_zero) { one_tensor(b, 1, 1ull << 62, 0, SL_TYPE_F32, 0); }
// #24759
MAKE(padding_wraps) { one_tensor(b, 1, UINT64_MAX / 4, 0, SL_TYPE_F32, 0); }
// #27200
MAKE(row_bytes_wrap) { one_tensor(b, 1, 5124095576030431008u, 0, SL_TYPE_Q4_0, 0); }
// CVE-2026-7482
MAKE(dims_larger_than_data) { one_tensor(b, 2, 1024, 1024, SL_TYPE_F16, 0); }
MAKE(one_byte_too_large) { one_tensor(b, 1, 65, 0, TYPE_I8, 0); }
MAKE(dim_zero) { one_tensor(b, 2, 4, 0, SL_TYPE_F32, 0); }
MAKE(n_dims_zero) { one_tensor(b, 0, 0, 0, SL_TYPE_F32, 0); }
MAKE(n_dims_5) { one_tensor(b, 5, 1, 1, SL_TYPE_F32, 0); }
// gguf-tools #25
MAKE(n_dims_9) { one_tensor(b, 9, 1, 1, SL_TYPE_F32, 0); }
MAKE(n_dims_max) { one_tensor(b, UINT32_MAX, 1, 1, SL_TYPE_F32, 0); }
MAKE(row_of_part_blocks) { one_tensor(b, 1, 33, 0, SL_TYPE_Q4_0, 0); }
// whole in sum, but not by row
MAKE(row_of_part_blocks_2d) { one_tensor(b, 2, 16, 2, SL_TYPE_Q4_0, 0); }
MAKE(type_removed) { one_tensor(b, 1, 32, 0, 4, 0); }
MAKE(type_unknown) { one_tensor(b, 1, 32, 0, 63, 0); }
// ---- places
MAKE(type_max) { one_tensor(b, 1, 32, 0, UINT32_MAX, 0); }

// CVE-2025-53630, CVE-2026-27940: sizes whose sum is small again
MAKE(sum_wraps) {
    put_head(b, 3, 2, 0);
    put_tensor(b, "a", 1, 1ull << 63, 0, TYPE_I8, 0), put_tensor(b, "b", 1, (1ull << 63) + 32, 0, TYPE_I8, 0);
    put_data(b, 32, 64);
}
MAKE(offset_unaligned) { one_tensor(b, 1, 4, 0, SL_TYPE_F32, 4); }
MAKE(offset_wraps) { one_tensor(b, 1, 8, 0, SL_TYPE_F32, UINT64_MAX - 31); }
// start + offset < start
MAKE(offset_wraps_to_start) { one_tensor(b, 1, 8, 0, SL_TYPE_F32, UINT64_MAX - 63); }
MAKE(offset_past_the_end) { one_tensor(b, 1, 8, 0, SL_TYPE_F32, 64); }
MAKE(overlap) {
    put_head(b, 3, 2, 0);
    put_tensor(b, "a", 1, 16, 0, SL_TYPE_F32, 0), put_tensor(b, "b", 1, 8, 0, SL_TYPE_F32, 32);
    put_data(b, 32, 64);
}
MAKE(same_place) {
    put_head(b, 3, 2, 0);
    put_tensor(b, "a", 1, 8, 0, SL_TYPE_F32, 32), put_tensor(b, "b", 1, 8, 0, SL_TYPE_F32, 32);
    put_data(b, 32, 64);
}
MAKE(no_data_section) { put_head(b, 3, 1, 0), put_tensor(b, "t", 1, 8, 0, SL_TYPE_F32, 0); }

static inline void with_alignment(bytes *b, uint32_t alignment) {
    put_head(b, 3, 1, 1), put_kv_u32(b, "general.alignment", alignment);
    put_tensor(b, "t", 1, 8, 0, SL_TYPE_F32, 0), put_data(b, 32, 64);
}
// #24997
MAKE(alignment_2_31) { with_alignment(b, 1u << 31); }
MAKE(alignment_131072) { with_alignment(b, 131072); }
MAKE(alignment_0) { with_alignment(b, 0); }
MAKE(alignment_4) { with_alignment(b, 4); }
MAKE(alignment_48) { with_alignment(b, 48); }
// #26318
MAKE(alignment_text) { put_head(b, 3, 0, 1), put_kv(b, "general.alignment", SL_GGUF_STRING), put_text(b, "32"); }
MAKE(alignment_u64) { put_head(b, 3, 0, 1), put_kv(b, "general.alignment", SL_GGUF_U64), put_u64(b, 32); }
// ---- names and kinds
MAKE(alignment_array) { put_head(b, 3, 0, 1), put_kv_array(b, "general.alignment", SL_GGUF_U32, 0); }

MAKE(key_empty) { put_head(b, 3, 0, 1), put_kv_u32(b, "", 1), put_zeros(b, 1); }
MAKE(key_with_zero) { put_head(b, 3, 0, 1), put_u64(b, 3), put(b, "a\0b", 3), put_u32(b, SL_GGUF_U32), put_u32(b, 1); }
MAKE(key_twice) { put_head(b, 3, 0, 2), put_kv_u32(b, "same", 1), put_kv_u32(b, "same", 2); }
MAKE(key_with_escapes) { put_head(b, 3, 0, 1), put_kv(b, "\033[31mred\n", 99), put_u32(b, 1); }
MAKE(kind_unknown) { put_head(b, 3, 0, 1), put_kv(b, "k", SL_GGUF_KIND_COUNT), put_zeros(b, 16); }
MAKE(kind_max) { put_head(b, 3, 0, 1), put_kv(b, "k", UINT32_MAX), put_zeros(b, 16); }
// #26690
MAKE(element_kind_unknown) { put_head(b, 3, 0, 1), put_kv_array(b, "k", 77, 1), put_zeros(b, 16); }
MAKE(array_of_arrays) {
    put_head(b, 3, 0, 1), put_kv_array(b, "deep", SL_GGUF_ARRAY, 1), put_u32(b, SL_GGUF_U8), put_u64(b, 1),
        put_u8(b, 1);
}
MAKE(tensor_name_empty) { put_head(b, 3, 1, 0), put_tensor(b, "", 1, 8, 0, SL_TYPE_F32, 0), put_data(b, 32, 64); }
MAKE(tensor_name_65) {
    put_head(b, 3, 1, 0);
    put_tensor(b, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 1, 8, 0, SL_TYPE_F32, 0);
    put_data(b, 32, 64);
}
MAKE(tensor_twice) {
    put_head(b, 3, 2, 0);
    put_tensor(b, "t", 1, 8, 0, SL_TYPE_F32, 0), put_tensor(b, "t", 1, 8, 0, SL_TYPE_F32, 32);
    put_data(b, 32, 64);
}

// ---- the file itself

MAKE(empty) { (void)b; }
MAKE(three_bytes) { put(b, "GGU", 3); }
MAKE(magic_only) { put(b, "GGUF", 4); }
MAKE(text_file) { put(b, "# A model, but not really one\n", 30); }
MAKE(older_format) { put(b, "lmgg\1\0\0\0", 8), put_zeros(b, 64); }
MAKE(version_0) { put_head(b, 0, 0, 0); }
MAKE(version_1) { put_head(b, 1, 0, 0); }
MAKE(version_4) { put_head(b, 4, 0, 0); }
MAKE(big_endian_2) { put_head(b, 2u << 24, 0, 0); }
MAKE(big_endian_3) { put_head(b, 3u << 24, 0, 0); }
MAKE(split_part) {
    put_head(b, 3, 0, 2), put_kv(b, "split.no", SL_GGUF_U16), put(b, "\0\0", 2);
    put_kv(b, "split.count", SL_GGUF_U16), put(b, "\3\0", 2);
}
MAKE(split_no_past_count) {
    put_head(b, 3, 0, 2), put_kv(b, "split.no", SL_GGUF_U16), put(b, "\3\0", 2);
    put_kv(b, "split.count", SL_GGUF_U16), put(b, "\3\0", 2);
}
MAKE(split_count_text) { put_head(b, 3, 0, 1), put_kv(b, "split.count", SL_GGUF_STRING), put_text(b, "2"); }

// clang-format off
#define CASE(name, status, reason) {#name, make_##name, status, reason}
static const hostile hostiles[] = {
    CASE(n_tensors_huge, SL_BAD_FILE, "more than fit"),
    CASE(n_tensors_max, SL_BAD_FILE, "more than fit"),
    CASE(n_tensors_wraps_records, SL_BAD_FILE, "more than fit"),
    CASE(n_kv_huge, SL_BAD_FILE, "more than fit"),
    CASE(n_kv_max, SL_BAD_FILE, "more than fit"),
    CASE(n_kv_one_too_many, SL_BAD_FILE, "more than fit"),
    CASE(key_length_max, SL_BAD_FILE, "at most 65535"),
    CASE(key_length_65536, SL_BAD_FILE, "at most 65535"),
    CASE(text_length_max, SL_BAD_FILE, "at most 1073741824"),
    CASE(text_length_int32, SL_BAD_FILE, "at most 1073741824"),
    CASE(text_past_the_end, SL_BAD_FILE, "cut off"),
    CASE(array_wraps, SL_BAD_FILE, "at most 1073741824"),
    CASE(array_2_63, SL_BAD_FILE, "at most 1073741824"),
    CASE(texts_2_63, SL_BAD_FILE, "at most 1073741824"),
    CASE(array_past_the_end, SL_BAD_FILE, "cut off"),
    CASE(texts_past_the_end, SL_BAD_FILE, "cut off"),
    CASE(dims_wrap, SL_BAD_FILE, "64 bits"),
    CASE(dims_wrap_to_small, SL_BAD_FILE, "64 bits"),
    CASE(dims_negative, SL_BAD_FILE, "64 bits"),
    CASE(dim_minus_one, SL_BAD_FILE, "beyond any file"),
    CASE(bytes_wrap_to_zero, SL_BAD_FILE, "64 bits"),
    CASE(padding_wraps, SL_BAD_FILE, "beyond any file"),
    CASE(row_bytes_wrap, SL_BAD_FILE, "beyond any file"),
    CASE(dims_larger_than_data, SL_BAD_FILE, "cut off"),
    CASE(one_byte_too_large, SL_BAD_FILE, "cut off"),
    CASE(dim_zero, SL_BAD_FILE, "dimension 1 is 0"),
    CASE(n_dims_zero, SL_BAD_FILE, "0 dimensions"),
    CASE(n_dims_5, SL_BAD_FILE, "5 dimensions"),
    CASE(n_dims_9, SL_BAD_FILE, "9 dimensions"),
    CASE(n_dims_max, SL_BAD_FILE, "4294967295 dimensions"),
    CASE(row_of_part_blocks, SL_BAD_FILE, "no multiple of the block length 32 of Q4_0"),
    CASE(row_of_part_blocks_2d, SL_BAD_FILE, "no multiple of the block length"),
    CASE(type_removed, SL_UNSUPPORTED, "tensor 't': its type 4 "),
    CASE(type_unknown, SL_UNSUPPORTED, "type 63"),
    CASE(type_max, SL_UNSUPPORTED, "type 4294967295"),
    CASE(sum_wraps, SL_BAD_FILE, "beyond any file"),
    CASE(offset_unaligned, SL_BAD_FILE, "no multiple of the alignment 32"),
    CASE(offset_wraps, SL_BAD_FILE, "beyond any file"),
    CASE(offset_wraps_to_start, SL_BAD_FILE, "beyond any file"),
    CASE(offset_past_the_end, SL_BAD_FILE, "cut off"),
    CASE(overlap, SL_BAD_FILE, "'a' and 'b' overlap"),
    CASE(same_place, SL_BAD_FILE, "overlap"),
    CASE(no_data_section, SL_BAD_FILE, "cut off"),
    CASE(alignment_2_31, SL_BAD_FILE, "general.alignment is 2147483648"),
    CASE(alignment_131072, SL_BAD_FILE, "8 to 65536"),
    CASE(alignment_0, SL_BAD_FILE, "general.alignment is 0"),
    CASE(alignment_4, SL_BAD_FILE, "general.alignment is 4"),
    CASE(alignment_48, SL_BAD_FILE, "general.alignment is 48"),
    CASE(alignment_text, SL_BAD_FILE, "kind string"),
    CASE(alignment_u64, SL_BAD_FILE, "kind u64"),
    CASE(alignment_array, SL_BAD_FILE, "kind array"),
    CASE(key_empty, SL_BAD_FILE, "is empty"),
    CASE(key_with_zero, SL_BAD_FILE, "'a?b' has a zero byte"),
    CASE(key_twice, SL_BAD_FILE, "key 'same' appears twice"),
    CASE(key_with_escapes, SL_BAD_FILE, "key '?[31mred?'"),
    CASE(kind_unknown, SL_BAD_FILE, "unknown kind 13"),
    CASE(kind_max, SL_BAD_FILE, "unknown kind 4294967295"),
    CASE(element_kind_unknown, SL_BAD_FILE, "unknown kind 77"),
    CASE(array_of_arrays, SL_UNSUPPORTED, "key 'deep': arrays of arrays"),
    CASE(tensor_name_empty, SL_BAD_FILE, "is empty"),
    CASE(tensor_name_65, SL_BAD_FILE, "at most 64"),
    CASE(tensor_twice, SL_BAD_FILE, "tensor 't' appears twice"),
    CASE(empty, SL_BAD_FILE, "empty"),
    CASE(three_bytes, SL_BAD_FILE, "no GGUF file"),
    CASE(magic_only, SL_BAD_FILE, "cut off"),
    CASE(text_file, SL_BAD_FILE, "no GGUF file"),
    CASE(older_format, SL_BAD_FILE, "no GGUF file"),
    CASE(version_0, SL_UNSUPPORTED, "version 0"),
    CASE(version_1, SL_UNSUPPORTED, "version 1"),
    CASE(version_4, SL_UNSUPPORTED, "version 4"),
    CASE(big_endian_2, SL_UNSUPPORTED, "big-endian"),
    CASE(big_endian_3, SL_UNSUPPORTED, "big-endian"),
    CASE(split_part, SL_UNSUPPORTED, "3 split files"),
    CASE(split_no_past_count, SL_BAD_FILE, "'split.no' holds 3; 0 to 2"),
    CASE(split_count_text, SL_BAD_FILE, "'split.count' holds string"),
};
// clang-format on

#endif
