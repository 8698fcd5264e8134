// SPDX-License-Identifier: MIT
//
// What reader and writer share: the rules of shapes and alignment, and the index of names.
#include "gguf/gguf_part.h"

#include "base/size.h"

void sl_gguf_part_deinit(sl_gguf_part *part) {
    sl_name_index_deinit(&part->kv_index);
    sl_name_index_deinit(&part->tensor_index);
    sl_free(part->kvs);
    sl_free(part->tensors);
    *part = (sl_gguf_part){0};
}

const sl_gguf_kv *sl_gguf_part_find(const sl_gguf_part *part, const char *key) {
    const sl_name *name = sl_name_index_find(&part->kv_index, sl_span_of(key));
    return name ? &part->kvs[name->i] : NULL;
}

sl_status sl_gguf_part_index_tensors(sl_gguf_part *part) {
    sl_name_index_deinit(&part->tensor_index);
    SL_TRY(sl_name_index_init(&part->tensor_index, part->n_tensors));
    for (size_t i = 0; i < part->n_tensors; i++) sl_name_index_put(&part->tensor_index, i, part->tensors[i].name);
    sl_name_index_sort(&part->tensor_index);
    const sl_name *twice = sl_name_index_duplicate(&part->tensor_index);
    if (twice) return SL_FAIL(SL_BAD_FILE, "the tensor '%s' appears twice", sl_gguf_show(twice->text).text);
    return SL_OK;
}

static const struct {
    const char *name;
    size_t n_bytes;
} kinds[SL_GGUF_KIND_COUNT] = {
    [SL_GGUF_U8] = {"u8", 1},       [SL_GGUF_I8] = {"i8", 1},     [SL_GGUF_U16] = {"u16", 2},
    [SL_GGUF_I16] = {"i16", 2},     [SL_GGUF_U32] = {"u32", 4},   [SL_GGUF_I32] = {"i32", 4},
    [SL_GGUF_F32] = {"f32", 4},     [SL_GGUF_BOOL] = {"bool", 1}, [SL_GGUF_STRING] = {"string", 0},
    [SL_GGUF_ARRAY] = {"array", 0}, [SL_GGUF_U64] = {"u64", 8},   [SL_GGUF_I64] = {"i64", 8},
    [SL_GGUF_F64] = {"f64", 8},
};

const char *sl_gguf_kind_name(sl_gguf_kind kind) {
    return (unsigned)kind < SL_GGUF_KIND_COUNT ? kinds[kind].name : "unknown";
}

size_t sl_gguf_kind_bytes(sl_gguf_kind kind) { return kinds[kind].n_bytes; }

sl_status sl_gguf_shape_bytes(uint64_t *out, uint32_t type_id, const uint64_t *dim, uint32_t n_dims) {
    const sl_type_info *info = sl_type_find(type_id);
    uint64_t n_elem = 1;
    *out = 0;
    if (!info) return SL_FAIL(SL_UNSUPPORTED, "its type %u is unknown, or was removed from the format", type_id);
    if (n_dims < 1 || n_dims > SL_GGUF_MAX_DIMS) return SL_FAIL(SL_BAD_ARG, "it has %u dimensions", n_dims);
    for (uint32_t i = 0; i < n_dims; i++) {
        if (dim[i] == 0) return SL_FAIL(SL_BAD_FILE, "its dimension %u is 0", i);
        if (!sl_size_mul(&n_elem, n_elem, dim[i]))
            return SL_FAIL(SL_BAD_FILE, "it claims more elements than 64 bits can count");
    }
    if (dim[0] % info->blk_len != 0)
        return SL_FAIL(SL_BAD_FILE, "its row length %llu is no multiple of the block length %u of %s",
                       (unsigned long long)dim[0], info->blk_len, info->name);
    if (!sl_size_mul(out, n_elem / info->blk_len, info->blk_bytes))
        return SL_FAIL(SL_BAD_FILE, "it claims more bytes than 64 bits can count");
    return SL_OK;
}

sl_status sl_gguf_check_alignment(uint64_t alignment) {
    if (alignment < SL_GGUF_MIN_ALIGNMENT || alignment > SL_GGUF_MAX_ALIGNMENT || (alignment & (alignment - 1)))
        return SL_FAIL(SL_BAD_FILE, "general.alignment is %llu; powers of two from %d to %d are allowed",
                       (unsigned long long)alignment, SL_GGUF_MIN_ALIGNMENT, SL_GGUF_MAX_ALIGNMENT);
    return SL_OK;
}

sl_gguf_shown sl_gguf_show(sl_span name) {
    sl_gguf_shown shown = {{0}};
    size_t n = SL_MIN(name.n_bytes, (size_t)SL_GGUF_MAX_NAME_BYTES);
    for (size_t i = 0; i < n; i++) {
        char c = name.data[i];
        shown.text[i] = c >= 0x20 && c < 0x7f ? c : '?';
    }
    if (name.n_bytes > n) memcpy(shown.text + n, "...", 4);
    return shown;
}
