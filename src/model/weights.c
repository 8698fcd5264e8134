// SPDX-License-Identifier: MIT
//
// Tensors by name into the slots of sl_weights, each checked against the config. The table says for
// each name of a layer its shape and when it must be there. A tensor that has no slot is refused: a
// model has it because it computes with it.
#include "model/weights.h"

#include "base/size.h"

typedef enum dim_kind { ONE, EMBD, VOCAB, HEAD, Q, K, V, ATT, FF } dim_kind;
typedef enum need_kind { OPTIONAL, REQUIRED, IF_QK_NORMS, IF_QKV_BIASES, IF_POST_NORMS } need_kind;

typedef struct slot {
    const char *name;
    size_t at; // of the sl_weight in its struct
    dim_kind row, col;
    need_kind need;
} slot;

#define AT(member) offsetof(sl_weights_layer, member)
static const slot layer_slots[] = {
    {"attn_norm.weight", AT(attn_norm), ONE, EMBD, REQUIRED},
    {"attn_q.weight", AT(attn_q), Q, EMBD, REQUIRED},
    {"attn_k.weight", AT(attn_k), K, EMBD, REQUIRED},
    {"attn_v.weight", AT(attn_v), V, EMBD, REQUIRED},
    {"attn_output.weight", AT(attn_output), EMBD, ATT, REQUIRED},
    {"attn_q.bias", AT(attn_q_bias), ONE, Q, IF_QKV_BIASES},
    {"attn_k.bias", AT(attn_k_bias), ONE, K, IF_QKV_BIASES},
    {"attn_v.bias", AT(attn_v_bias), ONE, V, IF_QKV_BIASES},
    {"attn_output.bias", AT(attn_output_bias), ONE, EMBD, OPTIONAL},
    {"attn_q_norm.weight", AT(attn_q_norm), ONE, HEAD, IF_QK_NORMS},
    {"attn_k_norm.weight", AT(attn_k_norm), ONE, HEAD, IF_QK_NORMS},
    {"post_attention_norm.weight", AT(attn_post_norm), ONE, EMBD, IF_POST_NORMS},
    {"ffn_norm.weight", AT(ffn_norm), ONE, EMBD, REQUIRED},
    {"ffn_gate.weight", AT(ffn_gate), FF, EMBD, REQUIRED},
    {"ffn_up.weight", AT(ffn_up), FF, EMBD, REQUIRED},
    {"ffn_down.weight", AT(ffn_down), EMBD, FF, REQUIRED},
    {"ffn_gate.bias", AT(ffn_gate_bias), ONE, FF, OPTIONAL},
    {"ffn_up.bias", AT(ffn_up_bias), ONE, FF, OPTIONAL},
    {"ffn_down.bias", AT(ffn_down_bias), ONE, EMBD, OPTIONAL},
    {"post_ffw_norm.weight", AT(ffn_post_norm), ONE, EMBD, IF_POST_NORMS},
};
#undef AT

#define AT(member) offsetof(sl_weights, member)
static const slot model_slots[] = {
    {"token_embd.weight", AT(token_embd), VOCAB, EMBD, REQUIRED},
    {"output_norm.weight", AT(output_norm), ONE, EMBD, REQUIRED},
    {"output.weight", AT(output), VOCAB, EMBD, OPTIONAL},
    {"output.bias", AT(output_bias), ONE, VOCAB, OPTIONAL},
};
#undef AT

// Read by config_rope.c, so they need no slot.
static const char *const known_tensors[] = {"rope_freqs.weight"};

static sl_weight *weight_at(void *base, const slot *s) { return (sl_weight *)((char *)base + s->at); }

// Must the model have it (1), may it (0), or may it not (-1)? Biases are the same to every family:
// added if there.
static int demand(const sl_config *c, need_kind need) {
    switch (need) {
    case REQUIRED: return 1;
    case OPTIONAL: return 0;
    case IF_QKV_BIASES: return c->qkv_biases ? 1 : 0;
    case IF_QK_NORMS: return c->qk_norms ? 1 : -1;
    case IF_POST_NORMS: return c->post_norms ? 1 : -1;
    }
    return -1;
}

static uint32_t dim_of(const sl_config *c, const sl_config_layer *l, dim_kind dim) {
    switch (dim) {
    case ONE: return 1;
    case EMBD: return c->n_embd;
    case VOCAB: return c->n_vocab;
    case HEAD: return l->head_dim;
    case Q: return l->n_head * l->head_dim;
    case K: return l->n_head_kv * l->head_dim;
    case V: return l->n_head_kv * l->v_dim;
    case ATT: return l->n_head * l->v_dim;
    case FF: return l->n_ff;
    }
    return 0;
}

// Vectors are F32 in every file that we know of; matrices may have any type that we can decode.
static sl_status check_type(const sl_gguf_tensor *t, const char *name, bool vector) {
    const sl_type_info *info = sl_type_find(t->type_id);
    if (!info || !info->computable)
        return SL_FAIL(SL_UNSUPPORTED, "the tensor '%s' has type %s, which is not supported", name,
                       info ? info->name : "unknown");
    if (vector && t->type_id != SL_TYPE_F32)
        return SL_FAIL(SL_UNSUPPORTED, "the tensor '%s' has type %s; a vector must be F32", name, info->name);
    if (t->dim[0] % info->blk_len != 0)
        return SL_FAIL(SL_BAD_FILE, "the tensor '%s' has rows of %llu, which is no multiple of the %u of %s", name,
                       (unsigned long long)t->dim[0], info->blk_len, info->name);
    return SL_OK;
}

static sl_status fill(sl_weight *out, const sl_gguf_tensor *t, uint32_t source, uint32_t n_row, uint32_t n_col,
                      sl_arena *arena) {
    char *name;
    SL_TRY(sl_arena_text(arena, &name, t->name));
    SL_TRY(check_type(t, name, n_row == 1));
    if (t->dim[0] != n_col || t->dim[1] != n_row || t->dim[2] != 1 || t->dim[3] != 1)
        return SL_FAIL(SL_BAD_FILE, "the tensor '%s' has the shape %llu x %llu x %llu x %llu; %u x %u is needed", name,
                       (unsigned long long)t->dim[0], (unsigned long long)t->dim[1], (unsigned long long)t->dim[2],
                       (unsigned long long)t->dim[3], n_col, n_row);
    *out = (sl_weight){name, (sl_type)t->type_id, n_row, n_col, t->data, t->n_bytes, source};
    return SL_OK;
}

// "blk.N.rest" -> N and rest; false if it has another form (also N with leading zeros or above the
// layers).
static bool parse_layer(sl_span name, uint32_t n_layer, uint32_t *layer, sl_span *rest) {
    uint32_t n = 0;
    size_t i = 4;
    if (name.n_bytes < 7 || memcmp(name.data, "blk.", 4) != 0) return false;
    for (; i < name.n_bytes && name.data[i] >= '0' && name.data[i] <= '9' && i < 9; i++)
        n = n * 10 + (uint32_t)(name.data[i] - '0');
    if (i == 4 || i + 1 >= name.n_bytes || name.data[i] != '.' || (name.data[4] == '0' && i > 5) || n >= n_layer)
        return false;
    *layer = n;
    *rest = sl_span_make(name.data + i + 1, name.n_bytes - i - 1);
    return true;
}

static const slot *find_slot(const slot *slots, size_t n, sl_span name) {
    for (size_t i = 0; i < n; i++)
        if (sl_span_is(name, slots[i].name)) return &slots[i];
    return NULL;
}

static sl_status place(sl_weights *w, const sl_gguf_tensor *t, uint32_t source, const sl_config *c, sl_arena *arena) {
    uint32_t layer = 0;
    sl_span rest;
    bool in_layer = parse_layer(t->name, c->n_layer, &layer, &rest);
    const slot *s = in_layer ? find_slot(layer_slots, SL_COUNT(layer_slots), rest)
                             : find_slot(model_slots, SL_COUNT(model_slots), t->name);
    if (s && demand(c, s->need) >= 0) {
        const sl_config_layer *l = &c->layer[layer];
        return fill(weight_at(in_layer ? (void *)&w->layer[layer] : w, s), t, source, dim_of(c, l, s->row),
                    dim_of(c, l, s->col), arena);
    }
    for (size_t i = 0; i < SL_COUNT(known_tensors); i++)
        if (sl_span_is(t->name, known_tensors[i])) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED, "the model has the tensor '%.*s', which the architecture '%s' does not use",
                   (int)SL_MIN(t->name.n_bytes, 64), t->name.data, c->arch);
}

// What must be there is there; what may be there is in every layer or in none (one that is lost
// would go unnoticed).
static sl_status check_layer_slot(sl_weights *w, const sl_config *c, const slot *s) {
    uint32_t n = 0, absent = 0;
    for (uint32_t i = c->n_layer; i-- > 0;) {
        if (weight_at(&w->layer[i], s)->name) n++;
        else absent = i;
    }
    if (n == c->n_layer || (n == 0 && demand(c, s->need) <= 0)) return SL_OK;
    return SL_FAIL(SL_BAD_FILE, "the tensor 'blk.%u.%s' is missing", absent, s->name);
}

static sl_status check_complete(sl_weights *w, const sl_config *c) {
    for (size_t i = 0; i < SL_COUNT(model_slots); i++)
        if (model_slots[i].need == REQUIRED && !weight_at(w, &model_slots[i])->name)
            return SL_FAIL(SL_BAD_FILE, "the tensor '%s' is missing", model_slots[i].name);
    for (size_t i = 0; i < SL_COUNT(layer_slots); i++) SL_TRY(check_layer_slot(w, c, &layer_slots[i]));
    return SL_OK;
}

static sl_status count(sl_weights *w, const sl_gguf_tensor *t) {
    uint64_t n = 1;
    for (int i = 0; i < SL_GGUF_MAX_DIMS; i++)
        if (!sl_size_mul(&n, n, t->dim[i])) break;
    if (n != 0 && sl_size_add(&w->n_params, w->n_params, n) && sl_size_add(&w->n_bytes, w->n_bytes, t->n_bytes))
        return SL_OK;
    return SL_FAIL(SL_BAD_FILE, "the tensors have more elements than can be counted");
}

sl_status sl_weights_read(sl_weights *out, const sl_gguf *gguf, const sl_config *config, sl_arena *arena) {
    sl_weights w = {0};
    *out = w;
    SL_TRY(sl_arena_alloc(arena, &w.layer, config->n_layer, sizeof *w.layer, "weights"));
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(gguf, i);
        SL_TRY(count(&w, t));
        SL_TRY(place(&w, t, (uint32_t)i, config, arena));
    }
    SL_TRY(check_complete(&w, config));
    w.tied = !w.output.name;
    if (w.tied) w.output = w.token_embd;
    *out = w;
    return SL_OK;
}
