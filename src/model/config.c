// SPDX-License-Identifier: MIT
//
// Metadata -> sl_config. A family is a row of constants; all that differs between two models of a
// family is in their keys. Which keys are refused is in config_refuse.c, how rotary sets are made
// in config_rope.c.
#include <math.h>

#include "model/config_part.h"

enum { MAX_EMBD = 1 << 20, MAX_FF = 1 << 22, MAX_HEADS = 1 << 14, MAX_HEAD_DIM = 1024, MAX_VOCAB = 1 << 24 };

typedef struct family {
    const char *name;
    sl_builder builder;
    bool interleaved;          // rotary pairs (2i, 2i+1)
    bool qk_norms, qkv_biases; // see sl_config
    bool gemma;                // post norms, tanh GELU, scaled embeddings
    uint32_t no_rope_every;    // every n-th layer is not rotated; 0 = all are
    uint32_t window,
        pattern; // if the file does not say; pattern n: every n-th layer sees all, 0: none does
    double attn_softcap, final_softcap;
    double base_swa;      // rotary base of the window layers, never scaled; 0 = as the others
    uint32_t n_layer_27b; // the size that scales by n_embd / n_head in place of head_dim; 0 = none
} family;

static const family families[] = {
    {.name = "llama", .builder = SL_BUILDER_LLAMA, .interleaved = true},
    {.name = "smollm3", .builder = SL_BUILDER_LLAMA, .interleaved = true, .no_rope_every = 4},
    {.name = "qwen2", .builder = SL_BUILDER_LLAMA, .qkv_biases = true},
    {.name = "qwen3", .builder = SL_BUILDER_LLAMA, .qk_norms = true},
    {.name = "gemma2",
     .builder = SL_BUILDER_GEMMA,
     .gemma = true,
     .window = 4096,
     .pattern = 2,
     .attn_softcap = 50,
     .final_softcap = 30,
     .n_layer_27b = 46},
    {.name = "gemma3",
     .builder = SL_BUILDER_GEMMA,
     .gemma = true,
     .qk_norms = true,
     .pattern = 6,
     .base_swa = 10000,
     .n_layer_27b = 62},
};

// Text for a message or a print: control characters and anything not ASCII becomes '?'.
static void copy_text(char *out, size_t cap, sl_span text) {
    size_t n = SL_MIN(text.n_bytes, cap - 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text.data[i];
        out[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    out[n] = 0;
}

static sl_status find_family(sl_keys *keys, const family **out) {
    *out = NULL;
    const sl_gguf_kv *kv = sl_gguf_find(keys->gguf, "general.architecture");
    sl_span arch;
    if (!kv) return SL_FAIL(SL_BAD_FILE, "the key 'general.architecture' is missing; this is no language model");
    SL_TRY(sl_gguf_read_text(kv, &arch));
    copy_text(keys->arch, sizeof keys->arch, arch);
    for (size_t i = 0; i < SL_COUNT(families); i++)
        if (sl_span_is(arch, families[i].name)) return *out = &families[i], SL_OK;
    return SL_FAIL(SL_UNSUPPORTED,
                   "the architecture '%s' is not supported; llama, smollm3, qwen2, qwen3, gemma2 "
                   "and gemma3 are",
                   keys->arch);
}

static sl_status read_general(sl_config *c, const sl_keys *keys) {
    const sl_gguf_kv *kv = sl_gguf_find(keys->gguf, "general.name");
    sl_span name = {NULL, 0};
    if (kv) SL_TRY(sl_gguf_read_text(kv, &name));
    copy_text(c->name, sizeof c->name, name);
    int64_t file_type = 0;
    kv = sl_gguf_find(keys->gguf, "general.file_type");
    if (kv) SL_TRY(sl_gguf_read_int(kv, 0, &file_type, 0, UINT32_MAX));
    c->file_type = (uint32_t)file_type;
    return SL_OK;
}

static sl_status read_sizes(sl_config *c, const sl_keys *keys) {
    double eps;
    SL_TRY(sl_keys_int_required(keys, "block_count", &c->n_layer, 1, SL_MAX_LAYERS));
    SL_TRY(sl_keys_int_required(keys, "embedding_length", &c->n_embd, 1, MAX_EMBD));
    SL_TRY(sl_keys_int_required(keys, "context_length", &c->n_ctx_train, 1, INT32_MAX));
    SL_TRY(sl_keys_float_required(keys, "attention.layer_norm_rms_epsilon", &eps, SL_POSITIVE));
    c->norm_eps = (float)eps;
    const sl_gguf_tensor *t = sl_gguf_tensor_find(keys->gguf, "token_embd.weight");
    if (!t) return SL_FAIL(SL_BAD_FILE, "the tensor 'token_embd.weight' is missing");
    if (t->dim[1] > MAX_VOCAB)
        return SL_FAIL(SL_BAD_FILE, "the tensor 'token_embd.weight' has %llu rows; at most %d are allowed",
                       (unsigned long long)t->dim[1], MAX_VOCAB);
    c->n_vocab = (uint32_t)t->dim[1];
    return SL_OK;
}

// Heads, head sizes and feed-forward widths of each layer.
static sl_status read_layers(sl_config *c, const sl_keys *keys) {
    uint32_t row[4][SL_MAX_LAYERS];
    bool has_heads, has_kv, has_ff;
    SL_TRY(sl_keys_layers(keys, "attention.head_count", &has_heads, row[0], c->n_layer, 1, MAX_HEADS));
    SL_TRY(sl_keys_layers(keys, "attention.head_count_kv", &has_kv, row[1], c->n_layer, 1, MAX_HEADS));
    SL_TRY(sl_keys_layers(keys, "feed_forward_length", &has_ff, row[2], c->n_layer, 1, MAX_FF));
    if (!has_heads || !has_ff)
        return SL_FAIL(SL_BAD_FILE, "the key '%s.%s' is missing", keys->arch,
                       has_heads ? "feed_forward_length" : "attention.head_count");
    bool has_k = sl_keys_find(keys, "attention.key_length") != NULL;
    if (!has_k && c->n_embd % row[0][0] != 0)
        return SL_FAIL(SL_BAD_FILE, "the key '%s.attention.head_count' holds %u, which does not divide the width %u",
                       keys->arch, row[0][0], c->n_embd);
    uint32_t head_dim, v_dim;
    SL_TRY(sl_keys_int(keys, "attention.key_length", &head_dim, c->n_embd / row[0][0], 2, MAX_HEAD_DIM));
    SL_TRY(sl_keys_int(keys, "attention.value_length", &v_dim, head_dim, 2, MAX_HEAD_DIM));
    if (head_dim % 2 != 0 || v_dim % 2 != 0 || head_dim < 2 || head_dim > MAX_HEAD_DIM)
        return SL_FAIL(SL_BAD_FILE,
                       "the heads are %u and %u wide; even numbers from 2 to %d are needed (key "
                       "'%s.attention.%s')",
                       head_dim, v_dim, MAX_HEAD_DIM, keys->arch, has_k ? "key_length" : "head_count");
    for (uint32_t i = 0; i < c->n_layer; i++) {
        uint32_t n_head = row[0][i], n_head_kv = has_kv ? row[1][i] : n_head;
        if (n_head % n_head_kv != 0)
            return SL_FAIL(SL_BAD_FILE, "the key '%s.attention.head_count_kv' holds %u, which does not divide %u heads",
                           keys->arch, n_head_kv, n_head);
        if ((uint64_t)n_head * SL_MAX(head_dim, v_dim) > MAX_FF)
            return SL_FAIL(SL_BAD_FILE, "the key '%s.attention.head_count' holds %u: too many heads of %u", keys->arch,
                           n_head, head_dim);
        c->layer[i] = (sl_config_layer){n_head, n_head_kv, head_dim, v_dim, row[2][i], 0, 0};
    }
    return SL_OK;
}

// A window that the file names holds in every family; without a pattern key the family's pattern
// counts.
static sl_status read_windows(sl_config *c, const sl_keys *keys, const family *f) {
    uint32_t window, local[SL_MAX_LAYERS];
    bool found;
    SL_TRY(sl_keys_int(keys, "attention.sliding_window", &window, f->window, 0, INT32_MAX));
    SL_TRY(sl_keys_layers(keys, "attention.sliding_window_pattern", &found, local, c->n_layer, 0, INT32_MAX));
    const sl_gguf_kv *kv = sl_keys_find(keys, "attention.sliding_window_pattern");
    bool by_layer = kv && kv->kind == SL_GGUF_ARRAY;
    uint32_t pattern = found ? local[0] : f->pattern;
    for (uint32_t i = 0; i < c->n_layer; i++) {
        bool is_local = by_layer ? local[i] != 0 : pattern == 0 || i % pattern < pattern - 1;
        c->layer[i].window = is_local ? window : 0;
    }
    return SL_OK;
}

static sl_status read_ropes(sl_config *c, const sl_keys *keys, const family *f, sl_arena *arena) {
    sl_rope_scaling scaling, plain = {.kind = SL_ROPE_PLAIN, .factor = 1, .mscale = 1};
    uint32_t head_dim = c->layer[0].head_dim, n_rot;
    double base, base_swa;
    SL_TRY(sl_keys_int(keys, "rope.dimension_count", &n_rot, head_dim, 2, head_dim));
    if (n_rot % 2 != 0)
        return SL_FAIL(SL_BAD_FILE, "the key '%s.rope.dimension_count' holds %u; an even number is needed", keys->arch,
                       n_rot);
    SL_TRY(sl_keys_float(keys, "rope.freq_base", &base, 10000, SL_ABOVE_ONE));
    SL_TRY(sl_keys_float(keys, "rope.freq_base_swa", &base_swa, f->base_swa > 0 ? f->base_swa : base, SL_ABOVE_ONE));
    SL_TRY(sl_rope_scaling_read(&scaling, keys, c->n_ctx_train));
    SL_TRY(sl_rope_build(&c->rope[0], keys, &scaling, n_rot, base, f->interleaved, arena));
    SL_TRY(
        sl_rope_build(&c->rope[1], keys, f->base_swa > 0 ? &plain : &scaling, n_rot, base_swa, f->interleaved, arena));
    c->n_rope = 1;
    bool differ = c->rope[0].mscale != c->rope[1].mscale;
    for (uint32_t i = 0; i < n_rot / 2; i++) differ |= c->rope[0].inv_freq[i] != c->rope[1].inv_freq[i];
    for (uint32_t i = 0; i < c->n_layer; i++) {
        bool bare = f->no_rope_every > 0 && (i + 1) % f->no_rope_every == 0;
        bool local = differ && c->layer[i].window > 0;
        c->layer[i].rope = bare ? -1 : local;
        if (local) c->n_rope = 2;
    }
    return SL_OK;
}

static sl_status read_scales(sl_config *c, const sl_keys *keys, const family *f) {
    bool is_27b = f->n_layer_27b > 0 && c->n_layer == f->n_layer_27b;
    uint32_t n = is_27b ? c->n_embd / c->layer[0].n_head : c->layer[0].head_dim;
    double scale, attn_cap, final_cap;
    SL_TRY(sl_keys_float(keys, "attention.scale", &scale, 0, SL_NOT_NEGATIVE)); // 0: not set
    SL_TRY(sl_keys_float(keys, "attn_logit_softcapping", &attn_cap, f->attn_softcap, SL_NOT_NEGATIVE));
    SL_TRY(sl_keys_float(keys, "final_logit_softcapping", &final_cap, f->final_softcap, SL_NOT_NEGATIVE));
    if (is_27b && n == 0)
        return SL_FAIL(SL_BAD_FILE, "the key '%s.attention.head_count' holds more heads than the width %u", keys->arch,
                       c->n_embd);
    c->attn_scale = (float)(scale > 0 ? scale : 1 / sqrt((double)n));
    c->attn_softcap = (float)attn_cap;
    c->final_softcap = (float)final_cap;
    c->embed_scale = f->gemma ? (float)sqrt((double)c->n_embd) : 1;
    return SL_OK;
}

sl_status sl_config_read(sl_config *out, const sl_gguf *gguf, sl_arena *arena) {
    sl_config c = {0};
    sl_keys keys = {.gguf = gguf};
    const family *f;
    *out = c;
    SL_TRY(find_family(&keys, &f));
    memcpy(c.arch, keys.arch, sizeof c.arch);
    c.builder = f->builder;
    c.act = f->gemma ? 1 : 0;
    c.post_norms = f->gemma;
    c.qk_norms = f->qk_norms;
    c.qkv_biases = f->qkv_biases;
    SL_TRY(sl_config_refuse_keys(&keys));
    SL_TRY(read_general(&c, &keys));
    SL_TRY(read_sizes(&c, &keys));
    SL_TRY(sl_arena_alloc(arena, &c.layer, c.n_layer, sizeof *c.layer, "layers"));
    SL_TRY(read_layers(&c, &keys));
    SL_TRY(read_windows(&c, &keys, f));
    SL_TRY(read_ropes(&c, &keys, f, arena));
    SL_TRY(read_scales(&c, &keys, f));
    *out = c;
    return SL_OK;
}
