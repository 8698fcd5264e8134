// SPDX-License-Identifier: MIT
//
// The rules as tables and small functions, one for each kind of tensor.
#include "convert/mix.h"

#include <stdlib.h>
#include <strings.h>

#include "model/config_key.h"

// Numbers of general.file_type.
enum {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q8_0 = 7,
    Q5_0 = 8,
    Q5_1 = 9,
    Q2_K = 10,
    Q3_K_S = 11,
    Q3_K_M = 12,
    Q3_K_L = 13,
    Q4_K_S = 14,
    Q4_K_M = 15,
    Q5_K_S = 16,
    Q5_K_M = 17,
    Q6_K = 18,
    Q2_K_S = 21,
    IQ4_NL = 25,
    IQ4_XS = 30,
    BF16 = 32,
    MXFP4 = 38,
};

static const sl_mix mixes[] = {
    {"F32", SL_TYPE_F32, F32, "32 bits a weight"},
    {"F16", SL_TYPE_F16, F16, "16 bits"},
    {"BF16", SL_TYPE_BF16, BF16, "16 bits, the range of F32"},
    {"Q8_0", SL_TYPE_Q8_0, Q8_0, "8.5 bits: next to no loss"},
    {"Q6_K", SL_TYPE_Q6_K, Q6_K, "6.6 bits: a very small loss"},
    {"Q5_K_M", SL_TYPE_Q5_K, Q5_K_M, "5.7 bits: a small loss"},
    {"Q5_K_S", SL_TYPE_Q5_K, Q5_K_S, "5.5 bits"},
    {"Q5_1", SL_TYPE_Q5_1, Q5_1, "6 bits, short blocks"},
    {"Q5_0", SL_TYPE_Q5_0, Q5_0, "5.5 bits, short blocks"},
    {"Q4_K_M", SL_TYPE_Q4_K, Q4_K_M, "4.8 bits: what most people use"},
    {"Q4_K_S", SL_TYPE_Q4_K, Q4_K_S, "4.6 bits"},
    {"Q4_1", SL_TYPE_Q4_1, Q4_1, "5 bits, short blocks"},
    {"Q4_0", SL_TYPE_Q4_0, Q4_0, "4.5 bits, short blocks"},
    {"IQ4_NL", SL_TYPE_IQ4_NL, IQ4_NL, "4.5 bits, short blocks, a code book"},
    {"IQ4_XS", SL_TYPE_IQ4_XS, IQ4_XS, "4.3 bits, a code book"},
    {"MXFP4", SL_TYPE_MXFP4, MXFP4, "4.25 bits in all matrices"},
    {"MXFP4_MOE", SL_TYPE_MXFP4, MXFP4, "4.25 bits in the experts, Q8_0 elsewhere"},
    {"Q3_K_L", SL_TYPE_Q3_K, Q3_K_L, "4.3 bits: a clear loss"},
    {"Q3_K_M", SL_TYPE_Q3_K, Q3_K_M, "3.9 bits"},
    {"Q3_K_S", SL_TYPE_Q3_K, Q3_K_S, "3.5 bits"},
    {"Q2_K", SL_TYPE_Q2_K, Q2_K, "3.3 bits: a large loss"},
    {"Q2_K_S", SL_TYPE_Q2_K, Q2_K_S, "2.9 bits, only with an importance matrix"},
};

const sl_mix *sl_mix_find(const char *name) {
    static const char *const aliases[][2] = {{"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}};
    for (size_t i = 0; i < SL_COUNT(aliases); i++)
        if (strcasecmp(name, aliases[i][0]) == 0) name = aliases[i][1];
    for (size_t i = 0; i < SL_COUNT(mixes); i++)
        if (strcasecmp(name, mixes[i].name) == 0) return &mixes[i];
    return NULL;
}

const sl_mix *sl_mix_at(size_t i) { return i < SL_COUNT(mixes) ? &mixes[i] : NULL; }

// ---- names --------------------------------------------------------------------------------------

typedef enum role { OTHER, EMBEDDING, OUTPUT, ATTN_Q, ATTN_K, ATTN_V, ATTN_QKV, ATTN_OUT, FFN_DOWN } role;

static bool has(sl_span name, const char *part) {
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= name.n_bytes; i++)
        if (memcmp(name.data + i, part, n) == 0) return true;
    return false;
}

static role find_role(sl_span name) {
    static const struct {
        const char *part;
        role role;
    } parts[] = {{"attn_qkv.weight", ATTN_QKV}, {"attn_kv_b.weight", ATTN_V}, {"attn_v.weight", ATTN_V},
                 {"attn_k.weight", ATTN_K},     {"attn_q.weight", ATTN_Q},    {"attn_output.weight", ATTN_OUT},
                 {"ffn_down", FFN_DOWN}};
    if (sl_span_is(name, "output.weight")) return OUTPUT;
    if (sl_span_is(name, "token_embd.weight") || sl_span_is(name, "per_layer_token_embd.weight")) return EMBEDDING;
    for (size_t i = 0; i < SL_COUNT(parts); i++)
        if (has(name, parts[i].part)) return parts[i].role;
    return OTHER;
}

// Small or delicate matrices that no mix touches, whatever their shape.
static bool is_kept(const sl_gguf_tensor *t, const sl_mix_request *request) {
    static const char *const parts[] = {
        "_norm.weight",
        "ffn_gate_inp.weight",
        "ffn_gate_tid2eid.weight",
        "altup",
        "laurel",
        "per_layer_model_proj",
        "ssm_conv1d",
        "shortconv.conv.weight",
        "indexer.k_proj.weight",
        "indexer.q_proj.weight",
        "time_mix_first.weight",
        "time_mix_w0.weight",
        "time_mix_w1.weight",
        "time_mix_w2.weight",
        "time_mix_v0.weight",
        "time_mix_v1.weight",
        "time_mix_v2.weight",
        "time_mix_a0.weight",
        "time_mix_a1.weight",
        "time_mix_a2.weight",
        "time_mix_g1.weight",
        "time_mix_g2.weight",
        "time_mix_decay_w1.weight",
        "time_mix_decay_w2.weight",
        "time_mix_lerp_fused.weight",
        "attn_rel_b.weight",
        "position_embd",
        "token_types",
        "sam.pos_embd",
        "sam.neck.",
        "sam.net_",
        ".rel_pos",
        ".patch_embd",
        ".patch_merger",
        "a.rvq.codebook",
        "mm.a.code_embd",
    };
    const sl_type_info *info = sl_type_find(t->type_id);
    if (t->n_dims < 2 || (t->dim[1] == 1 && t->dim[2] == 1)) return true;
    if (!info->computable) return true; // integers, and types that nothing here decodes
    if (t->name.n_bytes < 6 || memcmp(t->name.data + t->name.n_bytes - 6, "weight", 6) != 0) return true;
    if (request->keep_output && sl_span_is(t->name, "output.weight")) return true;
    for (size_t i = 0; i < SL_COUNT(parts); i++)
        if (has(t->name, parts[i])) return true;
    return false;
}

// Of "blk.N.": N; -1 outside the layers.
static int64_t find_layer(sl_span name) {
    if (name.n_bytes < 6 || memcmp(name.data, "blk.", 4) != 0) return -1;
    int64_t n = 0;
    size_t i = 4;
    for (; i < name.n_bytes && i < 12 && name.data[i] >= '0' && name.data[i] <= '9'; i++)
        n = n * 10 + name.data[i] - '0';
    return i > 4 && i < name.n_bytes && name.data[i] == '.' ? n : -1;
}

// ---- the model ----------------------------------------------------------------------------------

typedef struct facts {
    bool falcon, tied, is_70b;
    uint32_t n_layer, n_expert;
    uint32_t n_gqa;    // query heads to a KV head
    uint32_t n_attn_v; // tensors of that role
} facts;

enum { MAX_LAYER = 1 << 16, MAX_HEAD = 1 << 16, MAX_EXPERT = 1 << 16 };

// What a file does not say is taken as plain: mixes are for any architecture. What it says wrongly is refused.
static sl_status read_facts(facts *f, const sl_gguf *gguf) {
    sl_keys keys = {.gguf = gguf};
    sl_span arch = {0};
    const sl_gguf_kv *kv = sl_gguf_find(gguf, "general.architecture");
    if (kv) SL_TRY(sl_gguf_read_text(kv, &arch));
    snprintf(keys.arch, sizeof keys.arch, "%.*s", (int)SL_MIN(arch.n_bytes, sizeof keys.arch - 1),
             arch.n_bytes ? arch.data : "");
    SL_TRY(sl_keys_int(&keys, "block_count", &f->n_layer, 0, 0, MAX_LAYER));
    SL_TRY(sl_keys_int(&keys, "expert_count", &f->n_expert, 0, 0, MAX_EXPERT));
    int64_t n_head = 1, n_head_kv;
    if ((kv = sl_keys_find(&keys, "attention.head_count")) && kv->n)
        SL_TRY(sl_gguf_read_int(kv, 0, &n_head, 0, MAX_HEAD)); // an array: the first layer's
    n_head_kv = n_head;
    if ((kv = sl_keys_find(&keys, "attention.head_count_kv")) && kv->n)
        SL_TRY(sl_gguf_read_int(kv, 0, &n_head_kv, 0, MAX_HEAD));
    f->n_gqa = n_head_kv > 0 ? (uint32_t)(n_head / n_head_kv) : 0;
    f->falcon = sl_span_is(arch, "falcon");
    f->is_70b = f->n_layer == 80 &&
                (sl_span_is(arch, "qwen2") || sl_span_is(arch, "deci") || (sl_span_is(arch, "llama") && f->n_gqa > 1));
    f->tied = sl_gguf_tensor_find(gguf, "output.weight") == NULL;
    return SL_OK;
}

// Position of each tensor among those of its role, in the order of layers.
typedef struct place {
    int64_t layer;
    size_t tensor;
} place;

static int compare_places(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

// (n_tensors) each tensor's rank among the attention values, and among the down projections.
static sl_status find_ranks(uint32_t *rank, facts *f, const sl_gguf *gguf) {
    size_t n = sl_gguf_n_tensors(gguf);
    uint32_t n_v = 0, n_down = 0;
    place *places;
    SL_TRY(sl_alloc(&places, n, sizeof *places, "order of tensors"));
    for (size_t i = 0; i < n; i++) places[i] = (place){find_layer(sl_gguf_tensor_at(gguf, i)->name), i};
    qsort(places, n, sizeof *places, compare_places);
    for (size_t i = 0; i < n; i++) {
        role r = find_role(sl_gguf_tensor_at(gguf, places[i].tensor)->name);
        if (r == ATTN_V || r == ATTN_QKV) rank[places[i].tensor] = n_v++;
        // experts lie in one tensor or in many: their layer counts
        if (r == FFN_DOWN) rank[places[i].tensor] = f->n_expert > 1 ? (uint32_t)SL_MAX(places[i].layer, 0) : n_down++;
    }
    f->n_attn_v = n_v;
    sl_free(places);
    return SL_OK;
}

// ---- the rules ----------------------------------------------------------------------------------

// The first and last eighth of the layers, and every third between.
static bool has_more_bits(uint32_t i, uint32_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

static sl_type choose_attn_v(sl_type type, uint32_t mix, uint32_t i, const facts *f) {
    bool shared = f->n_gqa >= 4; // a small matrix that many heads read
    switch (mix) {
    case Q2_K: type = shared ? SL_TYPE_Q4_K : SL_TYPE_Q3_K; break;
    case Q2_K_S: type = shared ? SL_TYPE_Q4_K : type; break;
    case Q3_K_M: type = i < 2 ? SL_TYPE_Q5_K : SL_TYPE_Q4_K; break;
    case Q3_K_L: type = SL_TYPE_Q5_K; break;
    case Q4_K_S: type = i < 4 ? SL_TYPE_Q5_K : type; break;
    case Q4_K_M:
    case Q5_K_M: type = has_more_bits(i, f->n_attn_v) ? SL_TYPE_Q6_K : type; break;
    case IQ4_NL:
    case IQ4_XS: type = shared ? SL_TYPE_Q5_K : type; break;
    default: break;
    }
    if (f->is_70b && (type == SL_TYPE_Q3_K || type == SL_TYPE_Q4_K)) type = SL_TYPE_Q5_K;
    return f->n_expert == 8 ? SL_TYPE_Q8_0 : type;
}

static sl_type choose_ffn_down(sl_type type, uint32_t mix, uint32_t i, const facts *f, bool has_imatrix) {
    uint32_t n = f->n_layer;
    bool more = has_more_bits(i, n);
    switch (mix) {
    case Q2_K: return SL_TYPE_Q3_K;
    case Q2_K_S: return i < n / 8 ? SL_TYPE_Q4_K : type;
    case Q3_K_M: return i < n / 16 ? SL_TYPE_Q5_K : !f->falcon || more ? SL_TYPE_Q4_K : SL_TYPE_Q3_K;
    case Q3_K_L: return f->falcon ? SL_TYPE_Q4_K : SL_TYPE_Q5_K;
    case Q4_K_S: return !f->falcon && i < n / 8 ? SL_TYPE_Q5_K : type;
    case Q4_K_M:
        if (f->falcon) return i < n / 16 ? SL_TYPE_Q6_K : more ? SL_TYPE_Q5_K : SL_TYPE_Q4_K;
        return more ? SL_TYPE_Q6_K : type;
    case Q5_K_M: return more ? SL_TYPE_Q6_K : type;
    case IQ4_NL:
    case IQ4_XS: return i < n / 8 && !has_imatrix ? SL_TYPE_Q5_K : type;
    case Q4_0: return i < n / 8 && has_imatrix ? SL_TYPE_Q4_1 : type;
    case Q5_0: return i < n / 8 && has_imatrix ? SL_TYPE_Q5_1 : type;
    default: return type;
    }
}

static sl_type choose_attn_out(sl_type type, uint32_t mix, const facts *f) {
    if (f->falcon) return mix == Q3_K_L ? SL_TYPE_Q4_K : type;
    if (f->n_expert == 8) {
        bool small = mix == Q2_K || mix == Q3_K_S || mix == Q3_K_M || mix == IQ4_NL || mix == Q4_K_S || mix == Q4_K_M ||
                     mix == IQ4_XS;
        return small ? SL_TYPE_Q5_K : type;
    }
    switch (mix) {
    case Q2_K: return SL_TYPE_Q3_K;
    case Q3_K_M: return SL_TYPE_Q4_K;
    case Q3_K_L: return SL_TYPE_Q5_K;
    default: return type;
    }
}

static sl_type choose_output(sl_type type, uint32_t mix, const sl_gguf_tensor *t, const facts *f) {
    if (mix == MXFP4 || f->falcon || t->dim[0] % sl_type_find(type)->blk_len != 0) return SL_TYPE_Q8_0;
    return type == SL_TYPE_Q8_0 ? type : SL_TYPE_Q6_K;
}

static sl_type choose_type(const sl_gguf_tensor *t, uint32_t rank, const facts *f, const sl_mix_request *request) {
    uint32_t mix = request->mix->file_type;
    sl_type type = request->mix->type;
    role r = find_role(t->name);
    if (r == EMBEDDING && request->set_embedding) return request->embedding;
    if ((r == OUTPUT || (r == EMBEDDING && f->tied)) && request->set_output) return request->output;
    if (request->pure || mix == F32 || mix == F16 || mix == BF16) return type;
    if (r == OUTPUT || (r == EMBEDDING && f->tied)) return choose_output(type, mix, t, f);
    if (strcmp(request->mix->name, "MXFP4_MOE") == 0) return t->dim[2] > 1 ? type : SL_TYPE_Q8_0;
    switch (r) {
    case ATTN_QKV: // a value matrix too, so its rules count
    case ATTN_V: return choose_attn_v(type, mix, rank, f);
    case ATTN_K: return f->n_expert == 8 ? SL_TYPE_Q8_0 : type;
    case FFN_DOWN: return choose_ffn_down(type, mix, rank, f, request->has_imatrix);
    case ATTN_OUT: return choose_attn_out(type, mix, f);
    default: return type;
    }
}

// A type whose blocks fit the row.
static sl_type fall_back(sl_type type, uint64_t n_col) {
    if (n_col % sl_type_find(type)->blk_len == 0) return type;
    switch (type) {
    case SL_TYPE_Q4_K: type = SL_TYPE_Q5_0; break;
    case SL_TYPE_Q5_K: type = SL_TYPE_Q5_1; break;
    case SL_TYPE_Q6_K: type = SL_TYPE_Q8_0; break;
    case SL_TYPE_Q2_K:
    case SL_TYPE_Q3_K:
    case SL_TYPE_IQ4_XS: type = SL_TYPE_IQ4_NL; break;
    default: break;
    }
    return n_col % sl_type_find(type)->blk_len == 0 ? type : SL_TYPE_F16;
}

sl_status sl_mix_choose(sl_mix_choice **out, const sl_gguf *gguf, const sl_mix_request *request) {
    size_t n = sl_gguf_n_tensors(gguf);
    uint32_t *rank = NULL;
    facts f = {0};
    sl_status status;
    *out = NULL;
    SL_TRY_OUT(sl_alloc(out, n, sizeof **out, "types of tensors"));
    SL_TRY_OUT(sl_alloc(&rank, n, sizeof *rank, "ranks of tensors"));
    SL_TRY_OUT(read_facts(&f, gguf));
    SL_TRY_OUT(find_ranks(rank, &f, gguf));
    for (size_t i = 0; i < n; i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(gguf, i);
        sl_mix_choice *choice = &(*out)[i];
        choice->kept = is_kept(t, request);
        sl_type wanted = choice->kept ? (sl_type)t->type_id : choose_type(t, rank[i], &f, request);
        choice->type = choice->kept ? wanted : fall_back(wanted, t->dim[0]);
        choice->fell_back = choice->type != wanted;
    }
out:
    sl_free(rank);
    if (status != SL_OK) sl_free(*out), *out = NULL;
    return status;
}
