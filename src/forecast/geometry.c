// SPDX-License-Identifier: MIT
//
// Metadata -> sl_geometry, by the rows of geometry_family.c.
#include "forecast/geometry.h"

#include "base/size.h"
#include "forecast/geometry_family.h"
#include "model/config.h"
#include "model/config_key.h"
#include "quant/kv_codec.h"

// Far above any model, and small enough that the products of a layer fit into 64 bits.
enum {
    MAX_EMBD = 1 << 20,
    MAX_HEADS = 1 << 14,
    MAX_DIM = 1 << 16,
    MAX_FF = 1 << 24,
    MAX_EXPERTS = 1 << 16,
    MAX_CONV = 64
};

// Caches that are compressed or chosen by an index: their bytes follow from more than these keys.
static const char *const unknown_caches[] = {"attention.compress_ratios", "attention.indexer.head_count",
                                             "attention.indexer.top_k",   "attention.kv_lora_rank_swa",
                                             "hyper_connection.count",    "ple.layers"};

typedef struct reader {
    sl_geometry *g;
    const sl_geometry_family *family;
    sl_keys keys;
    uint32_t n_block; // layers and prediction heads: the length of the file's arrays
    uint32_t row[SL_MAX_LAYERS];
} reader;

static void copy_text(char *out, size_t cap, sl_span text) {
    size_t n = SL_MIN(text.n_bytes, cap - 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text.data[i];
        out[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    out[n] = 0;
}

static sl_status find_family(reader *r) {
    const sl_gguf_kv *kv = sl_gguf_find(r->keys.gguf, "general.architecture");
    sl_span arch, name = {NULL, 0};
    if (!kv) return SL_FAIL(SL_BAD_FILE, "the key 'general.architecture' is missing; this is no language model");
    SL_TRY(sl_gguf_read_text(kv, &arch));
    copy_text(r->g->arch, sizeof r->g->arch, arch);
    memcpy(r->keys.arch, r->g->arch, sizeof r->keys.arch);
    kv = sl_gguf_find(r->keys.gguf, "general.name");
    if (kv) SL_TRY(sl_gguf_read_text(kv, &name));
    copy_text(r->g->name, sizeof r->g->name, name);
    r->family = sl_geometry_family_find(arch);
    if (!r->family)
        return SL_FAIL(SL_UNSUPPORTED,
                       "what the architecture '%s' keeps of a sequence is not known here, and will "
                       "not be guessed",
                       r->g->arch);
    for (size_t i = 0; i < SL_COUNT(unknown_caches); i++)
        if (sl_keys_find(&r->keys, unknown_caches[i]))
            return SL_FAIL(SL_UNSUPPORTED,
                           "the model has a compressed or indexed cache ('%s.%s'), whose size is "
                           "not known here and will "
                           "not be guessed",
                           r->g->arch, unknown_caches[i]);
    return SL_OK;
}

static sl_status read_sizes(reader *r, sl_arena *arena) {
    sl_geometry *g = r->g;
    SL_TRY(sl_keys_int_required(&r->keys, "block_count", &r->n_block, 1, SL_MAX_LAYERS));
    SL_TRY(sl_keys_int(&r->keys, "nextn_predict_layers", &g->n_layer_nextn, 0, 0, r->n_block - 1));
    SL_TRY(sl_keys_int_required(&r->keys, "embedding_length", &g->n_embd, 1, MAX_EMBD));
    SL_TRY(sl_keys_int_required(&r->keys, "context_length", &g->n_ctx_train, 1, INT32_MAX));
    SL_TRY(sl_keys_int(&r->keys, "expert_count", &g->n_expert, 0, 0, MAX_EXPERTS));
    bool found;
    SL_TRY(sl_keys_layers(&r->keys, "expert_used_count", &found, r->row, r->n_block, 0, MAX_EXPERTS));
    for (uint32_t i = 0; found && i < r->n_block; i++) g->n_expert_used = SL_MAX(g->n_expert_used, r->row[i]);
    if (g->n_expert > 0 && (g->n_expert_used == 0 || g->n_expert_used > g->n_expert))
        return SL_FAIL(SL_BAD_FILE, "the key '%s.expert_used_count' holds %u of %u experts", g->arch, g->n_expert_used,
                       g->n_expert);
    g->n_layer = r->n_block - g->n_layer_nextn;
    return sl_arena_alloc(arena, &g->layer, g->n_layer, sizeof *g->layer, "layers");
}

// ---- attention
// -------------------------------------------------------------------------------------------------

static sl_status read_heads(reader *r) {
    sl_geometry *g = r->g;
    bool found, found_kv;
    SL_TRY(sl_keys_layers(&r->keys, "attention.head_count", &found, r->row, r->n_block, 0, MAX_HEADS));
    if (!found) return SL_FAIL(SL_BAD_FILE, "the key '%s.attention.head_count' is missing", g->arch);
    for (uint32_t i = 0; i < g->n_layer; i++) g->layer[i].n_head = g->layer[i].n_head_kv = r->row[i];
    SL_TRY(sl_keys_layers(&r->keys, "attention.head_count_kv", &found_kv, r->row, r->n_block, 0, MAX_HEADS));
    for (uint32_t i = 0; found_kv && i < g->n_layer; i++) g->layer[i].n_head_kv = r->row[i];
    return SL_OK;
}

// The width of a head if the file does not say: that of the row by the heads of the first layer
// that has some.
static uint32_t head_dim_of(const sl_geometry *g) {
    for (uint32_t i = 0; i < g->n_layer; i++)
        if (g->layer[i].n_head > 0) return g->n_embd % g->layer[i].n_head == 0 ? g->n_embd / g->layer[i].n_head : 0;
    return 0;
}

static sl_status read_dims(reader *r) {
    sl_geometry *g = r->g;
    uint32_t k, v, k_swa, v_swa, plain = head_dim_of(g);
    SL_TRY(sl_keys_int(&r->keys, "attention.key_length", &k, plain, 1, MAX_DIM));
    SL_TRY(sl_keys_int(&r->keys, "attention.value_length", &v, plain, 1, MAX_DIM));
    SL_TRY(sl_keys_int(&r->keys, "attention.key_length_swa", &k_swa, k, 1, MAX_DIM));
    SL_TRY(sl_keys_int(&r->keys, "attention.value_length_swa", &v_swa, v, 1, MAX_DIM));
    for (uint32_t i = 0; i < g->n_layer; i++) {
        sl_geometry_layer *l = &g->layer[i];
        l->k_dim = l->window ? k_swa : k, l->v_dim = l->window ? v_swa : v;
        if (l->n_head_kv > 0 && (l->k_dim == 0 || l->v_dim == 0 || l->k_dim > MAX_DIM || l->v_dim > MAX_DIM))
            return SL_FAIL(SL_BAD_FILE,
                           "the width of a head does not follow from '%s.attention.head_count' and "
                           "'%s.embedding_length', and '%s.attention.key_length' is missing",
                           g->arch, g->arch, g->arch);
    }
    return SL_OK;
}

// Multi-head latent attention: a position is one latent with its rotated part; values are computed
// from it.
static sl_status read_latent(reader *r) {
    sl_geometry *g = r->g;
    bool has_k = sl_keys_find(&r->keys, "attention.key_length_mla"),
         has_v = sl_keys_find(&r->keys, "attention.value_length_mla");
    if (!r->family->mla || (!has_k && !has_v)) return SL_OK; // files from before the split of kv_b hold plain heads
    if (!has_k || !has_v)
        return SL_FAIL(SL_BAD_FILE,
                       "of the keys '%s.attention.key_length_mla' and '...value_length_mla' one is missing", g->arch);
    uint32_t rank, n_rot;
    SL_TRY(sl_keys_int_required(&r->keys, "attention.kv_lora_rank", &rank, 1, MAX_DIM / 2));
    SL_TRY(sl_keys_int_required(&r->keys, "rope.dimension_count", &n_rot, 0, MAX_DIM / 2));
    for (uint32_t i = 0; i < g->n_layer; i++) {
        sl_geometry_layer *l = &g->layer[i];
        if (l->n_head_kv == 0) continue; // a recurrent layer
        if (l->n_head_kv != 1 || l->k_dim != rank + n_rot)
            return SL_FAIL(SL_BAD_FILE,
                           "a latent of %u + %u does not agree with '%s.attention.key_length' %u "
                           "and %u KV heads",
                           rank, n_rot, g->arch, l->k_dim, l->n_head_kv);
        l->v_dim = 0;
    }
    return SL_OK;
}

static sl_status read_windows(reader *r) {
    sl_geometry *g = r->g;
    const sl_geometry_family *f = r->family;
    bool applies = f->window_rule != SL_WINDOW_NONE && (f->n_layer_only == 0 || f->n_layer_only == g->n_layer), found;
    if (!applies) return SL_OK;
    uint32_t window;
    if (f->window_rule == SL_WINDOW_REQUIRED && f->window == 0)
        SL_TRY(sl_keys_int_required(&r->keys, "attention.sliding_window", &window, 1, INT32_MAX));
    else SL_TRY(sl_keys_int(&r->keys, "attention.sliding_window", &window, f->window, 0, INT32_MAX));
    SL_TRY(sl_keys_layers(&r->keys, "attention.sliding_window_pattern", &found, r->row, r->n_block, 0, INT32_MAX));
    const sl_gguf_kv *kv = sl_keys_find(&r->keys, "attention.sliding_window_pattern");
    bool by_layer = kv && kv->kind == SL_GGUF_ARRAY;
    if (f->window_rule == SL_WINDOW_REQUIRED && f->pattern == 0 && !by_layer)
        return SL_FAIL(SL_BAD_FILE, "the key '%s.attention.sliding_window_pattern' is missing or no array", g->arch);
    uint32_t pattern = found ? r->row[0] : f->pattern;
    for (uint32_t i = 0; i < g->n_layer; i++) {
        bool local = by_layer         ? r->row[i] != 0
                     : pattern == 0   ? true
                     : f->dense_first ? i % pattern != 0
                                      : i % pattern < pattern - 1;
        g->layer[i].window = local ? window : 0;
    }
    return SL_OK;
}

// The last layers may read the cache of an earlier one.
static sl_status read_shared(reader *r) {
    sl_geometry *g = r->g;
    uint32_t n_shared = 0, n_own = r->family->n_layer_kv;
    if (n_own == 0) {
        SL_TRY(sl_keys_int(&r->keys, "attention.shared_kv_layers", &n_shared, 0, 0, g->n_layer - 1));
        n_own = g->n_layer - n_shared;
    }
    for (uint32_t i = n_own; i < g->n_layer; i++) g->layer[i].shared = true;
    return SL_OK;
}

// ---- recurrent layers
// ------------------------------------------------------------------------------------------

static sl_status read_ssm(reader *r, sl_geometry_layer *state) {
    uint32_t conv, inner, size, group;
    SL_TRY(sl_keys_int_required(&r->keys, "ssm.conv_kernel", &conv, 1, MAX_CONV));
    SL_TRY(sl_keys_int_required(&r->keys, "ssm.inner_size", &inner, 1, MAX_EMBD));
    SL_TRY(sl_keys_int_required(&r->keys, "ssm.state_size", &size, 1, MAX_DIM));
    SL_TRY(sl_keys_int(&r->keys, "ssm.group_count", &group, 0, 0, MAX_DIM));
    state->n_state = (uint64_t)size * inner;
    state->n_conv = (conv - 1) * (inner + 2ull * group * size); // the newest column is shifted in each time
    return SL_OK;
}

// The state of one recurrent layer, into n_state and n_conv.
static sl_status read_state(reader *r, sl_geometry_layer *state) {
    const sl_geometry *g = r->g;
    uint64_t n_head = g->layer[0].n_head, dim;
    uint32_t a, b;
    switch (r->family->state) {
    case SL_STATE_SHORTCONV:
        SL_TRY(sl_keys_int_required(&r->keys, "shortconv.l_cache", &a, 1, MAX_CONV));
        state->n_conv = (uint64_t)g->n_embd * (a - 1);
        return SL_OK;
    case SL_STATE_KDA:
        SL_TRY(sl_keys_int_required(&r->keys, "kda.head_dim", &a, 1, MAX_DIM));
        SL_TRY(sl_keys_int_required(&r->keys, "ssm.conv_kernel", &b, 1, MAX_CONV));
        state->n_state = (uint64_t)a * a * n_head;
        state->n_conv = 3ull * (b - 1) * n_head * a;
        return SL_OK;
    case SL_STATE_LINEAR:
        SL_TRY(sl_keys_int_required(&r->keys, "attention.key_length", &a, 1, MAX_DIM));
        dim = a;
        state->n_state = dim * dim * n_head;
        return SL_OK;
    case SL_STATE_WKV:
        SL_TRY(sl_keys_int_required(&r->keys, "wkv.head_size", &a, 1, MAX_DIM));
        SL_TRY(sl_keys_int(&r->keys, "token_shift_count", &b, 2, 0, MAX_CONV));
        state->n_state = (uint64_t)g->n_embd * a;
        state->n_conv = (uint64_t)g->n_embd * b;
        return SL_OK;
    default: return read_ssm(r, state);
    }
}

// Which layers are recurrent, into row[].
static sl_status choose_recurrent(reader *r) {
    sl_geometry *g = r->g;
    uint32_t interval = 1, ff[SL_MAX_LAYERS];
    bool found = false;
    if (r->family->recurrent == SL_RECURRENT_INTERVAL) {
        SL_TRY(sl_keys_layers(&r->keys, "attention.recurrent_layers", &found, r->row, r->n_block, 0, 1));
        if (found) return SL_OK;
        SL_TRY(sl_keys_int(&r->keys, "full_attention_interval", &interval, 4, 1, SL_MAX_LAYERS));
    }
    if (r->family->recurrent == SL_RECURRENT_NO_KV_FF) {
        SL_TRY(sl_keys_layers(&r->keys, "feed_forward_length", &found, ff, r->n_block, 0, MAX_FF));
        if (!found) return SL_FAIL(SL_BAD_FILE, "the key '%s.feed_forward_length' is missing", g->arch);
    }
    for (uint32_t i = 0; i < g->n_layer; i++) {
        sl_geometry_layer *l = &g->layer[i];
        bool has_ff = r->family->recurrent == SL_RECURRENT_NO_KV_FF && ff[i] > 0;
        if (r->family->recurrent == SL_RECURRENT_INTERVAL) r->row[i] = (i + 1) % interval != 0;
        else if (r->family->recurrent >= SL_RECURRENT_NO_KV) r->row[i] = l->n_head_kv == 0 && !has_ff;
        else r->row[i] = r->family->recurrent != SL_RECURRENT_NONE;
        if (has_ff) l->n_head = l->n_head_kv = 0;
    }
    return SL_OK;
}

static sl_status read_recurrent(reader *r) {
    sl_geometry *g = r->g;
    sl_geometry_layer state = {0};
    if (r->family->recurrent == SL_RECURRENT_NONE) return SL_OK;
    SL_TRY(choose_recurrent(r));
    SL_TRY(read_state(r, &state));
    for (uint32_t i = 0; i < g->n_layer; i++) {
        sl_geometry_layer *l = &g->layer[i];
        if (!r->row[i]) continue;
        l->n_state = state.n_state, l->n_conv = state.n_conv;
        if (r->family->recurrent != SL_RECURRENT_BESIDE) l->n_head = l->n_head_kv = 0;
    }
    return SL_OK;
}

sl_status sl_geometry_read(sl_geometry *out, const sl_gguf *gguf, sl_arena *arena) {
    *out = (sl_geometry){0};
    reader r = {.g = out, .keys = {.gguf = gguf}};
    SL_TRY(find_family(&r));
    SL_TRY(read_sizes(&r, arena));
    if (r.family->recurrent != SL_RECURRENT_ALL) {
        SL_TRY(read_heads(&r));
        SL_TRY(read_windows(&r));
        SL_TRY(read_dims(&r));
    }
    SL_TRY(read_recurrent(&r));
    SL_TRY(read_latent(&r));
    return read_shared(&r);
}

// ---- sums
// ------------------------------------------------------------------------------------------------------

static sl_status position_bytes(uint64_t *out, const sl_geometry *g, const sl_geometry_layer *l, sl_type type) {
    const sl_type_info *info = sl_type_find(type);
    if (l->n_head_kv == 0) return *out = 0, SL_OK;
    if (l->k_dim % info->blk_len != 0 || l->v_dim % info->blk_len != 0)
        return SL_FAIL(SL_UNSUPPORTED,
                       "a KV cache of type %s needs heads of whole blocks of %u; those of '%s' are "
                       "%u and %u wide",
                       info->name, info->blk_len, g->arch, l->k_dim, l->v_dim);
    *out =
        l->n_head_kv * (sl_kv_head_bytes(type, false, l->k_dim) + sl_kv_head_bytes(type, true, l->v_dim)) / SL_KV_GROUP;
    return SL_OK;
}

sl_status sl_geometry_kv(sl_kv_sizes *out, const sl_geometry *g, sl_type type, uint32_t n_ctx) {
    sl_kv_sizes s = {0};
    *out = s;
    bool fits = true;
    for (uint32_t i = 0; i < g->n_layer; i++) {
        const sl_geometry_layer *l = &g->layer[i];
        uint64_t each = 0, all = 0;
        SL_TRY(position_bytes(&each, g, l, type));
        fits = fits && sl_size_mul(&all, each, l->window ? SL_MIN(l->window, n_ctx) : n_ctx);
        fits = fits && sl_size_add(&s.read_bytes, s.read_bytes, all);
        fits = fits && sl_size_add(&s.state_bytes, s.state_bytes, (l->n_state + l->n_conv) * 4);
        if (!fits) break;
        if (l->shared) continue;
        if (l->window) s.window_bytes += all;
        else s.growing_bytes += all, s.position_bytes += each;
    }
    uint64_t sum;
    fits = fits && sl_size_add(&sum, s.growing_bytes, s.window_bytes) && sl_size_add(&sum, sum, s.state_bytes);
    if (!fits)
        return SL_FAIL(SL_NO_MEMORY, "a cache of %u positions of '%s' has more bytes than can be counted", n_ctx,
                       g->arch);
    *out = s;
    return SL_OK;
}

double sl_geometry_attention_macs(const sl_geometry *g, uint32_t n_pos) {
    double n_mac = 0;
    for (uint32_t i = 0; i < g->n_layer; i++) {
        const sl_geometry_layer *l = &g->layer[i];
        double n_seen = l->window ? SL_MIN(l->window, n_pos) : n_pos;
        // A latent serves as key and, without its rotated part, as value: about twice its width.
        n_mac += n_seen * l->n_head * ((double)l->k_dim + (l->v_dim ? l->v_dim : l->k_dim));
    }
    return n_mac;
}
