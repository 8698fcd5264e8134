// SPDX-License-Identifier: MIT
//
// What is in the file: keys and tensors of a family, and which type each matrix has. The mixes and
// fall-backs are those of llama.cpp's llama-quantize (facts; its layout is what real files have).
#include "synth.h"

#include <math.h>
#include <stdarg.h>

#include "base/alloc.h"

// clang-format off
static const synth_shape shapes[] = {
    // name         embd layers heads kv  dim     ff   vocab     ctx   tied  rope base
    {"llama-3.1-8b", 4096, 32, 32, 8, 128, 14336, 128256, 131072, false, 500000},
    {"llama-3.2-1b", 2048, 16, 32, 8,  64,  8192, 128256, 131072, true,  500000},
    {"dense-144k",   4096, 36, 32, 8, 128, 12288,  32000, 131072, false, 1000000}, // KiB of f16 KV a token
    {"tiny",          512,  4,  8, 2,  64,  1536,   4096,   8192, false, 10000},
};
const char synth_shape_names[] = "llama-3.1-8b llama-3.2-1b dense-144k tiny";

typedef struct family {
    const char *name;
    bool qkv_biases, qk_norms, gemma; // gemma: post norms, and always tied
    uint32_t window;
    float attn_softcap, final_softcap;
} family;
static const family families[] = {
    {"llama",  false, false, false, 0, 0, 0},
    {"qwen2",  true,  false, false, 0, 0, 0},
    {"qwen3",  false, true,  false, 0, 0, 0},
    {"gemma2", false, false, true,  4096, 50, 30},
    {"gemma3", false, true,  true,  512, 0, 0},
};
const char synth_arch_names[] = "llama qwen2 qwen3 gemma2 gemma3";

typedef struct mix {
    const char *name;
    uint32_t file_type;         // general.file_type
    sl_type base, more, output; // more: attn_v and ffn_down of the layers that get more bits
} mix;
static const mix mixes[] = {
    {"F32",    0,  SL_TYPE_F32,    SL_TYPE_F32,    SL_TYPE_F32},
    {"F16",    1,  SL_TYPE_F16,    SL_TYPE_F16,    SL_TYPE_F16},
    {"BF16",   32, SL_TYPE_BF16,   SL_TYPE_BF16,   SL_TYPE_BF16},
    {"Q4_0",   2,  SL_TYPE_Q4_0,   SL_TYPE_Q4_0,   SL_TYPE_Q6_K},
    {"Q4_1",   3,  SL_TYPE_Q4_1,   SL_TYPE_Q4_1,   SL_TYPE_Q6_K},
    {"Q5_0",   8,  SL_TYPE_Q5_0,   SL_TYPE_Q5_0,   SL_TYPE_Q6_K},
    {"Q5_1",   9,  SL_TYPE_Q5_1,   SL_TYPE_Q5_1,   SL_TYPE_Q6_K},
    {"Q8_0",   7,  SL_TYPE_Q8_0,   SL_TYPE_Q8_0,   SL_TYPE_Q8_0},
    {"Q4_K_M", 15, SL_TYPE_Q4_K,   SL_TYPE_Q6_K,   SL_TYPE_Q6_K},
    {"Q5_K_M", 17, SL_TYPE_Q5_K,   SL_TYPE_Q6_K,   SL_TYPE_Q6_K},
    {"Q6_K",   18, SL_TYPE_Q6_K,   SL_TYPE_Q6_K,   SL_TYPE_Q6_K},
    // of one type throughout, unlike the files that go by these names
    {"Q2_K",   10, SL_TYPE_Q2_K,   SL_TYPE_Q2_K,   SL_TYPE_Q2_K},
    {"Q3_K",   12, SL_TYPE_Q3_K,   SL_TYPE_Q3_K,   SL_TYPE_Q3_K},
    {"Q4_K",   14, SL_TYPE_Q4_K,   SL_TYPE_Q4_K,   SL_TYPE_Q4_K},
    {"Q5_K",   16, SL_TYPE_Q5_K,   SL_TYPE_Q5_K,   SL_TYPE_Q5_K},
    {"IQ4_NL", 25, SL_TYPE_IQ4_NL, SL_TYPE_IQ4_NL, SL_TYPE_IQ4_NL},
    {"IQ4_XS", 30, SL_TYPE_IQ4_XS, SL_TYPE_IQ4_XS, SL_TYPE_IQ4_XS},
    {"MXFP4",  38, SL_TYPE_MXFP4,  SL_TYPE_MXFP4,  SL_TYPE_MXFP4},
};
const char synth_type_names[] = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 "
                                "Q4_K_M Q5_K_M Q6_K Q2_K Q3_K Q4_K Q5_K IQ4_NL IQ4_XS MXFP4";
// clang-format on

const synth_shape *synth_shape_find(const char *name) {
    for (size_t i = 0; i < SL_COUNT(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
    return NULL;
}

typedef struct builder {
    synth_model *model;
    sl_gguf_writer *writer;
    const synth_request *request;
    const family *family;
    const mix *mix;
    sl_status status; // the first failure
} builder;

static void keep(builder *b, sl_status status) {
    if (b->status == SL_OK) b->status = status;
}

// ---- keys ---------------------------------------------------------------------------------------

static const char *key(const builder *b, const char *name) {
    static char text[128];
    snprintf(text, sizeof text, "%s.%s", b->family->name, name);
    return text;
}

static void set_u32(builder *b, const char *name, uint32_t value) {
    keep(b, sl_gguf_writer_set_u32(b->writer, key(b, name), value));
}

static void set_f32(builder *b, const char *name, float value) {
    keep(b, sl_gguf_writer_set_f32(b->writer, key(b, name), value));
}

static void set_keys(builder *b) {
    const synth_shape *s = &b->request->shape;
    sl_gguf_writer *w = b->writer;
    char name[128];
    snprintf(name, sizeof name, "synthetic %s %s %s", b->family->name, s->name, b->mix->name);
    keep(b, sl_gguf_writer_set_text(w, "general.architecture", sl_span_of(b->family->name)));
    keep(b, sl_gguf_writer_set_text(w, "general.name", sl_span_of(name)));
    keep(b, sl_gguf_writer_set_u32(w, "general.file_type", b->mix->file_type));
    keep(b, sl_gguf_writer_set_u32(w, "general.quantization_version", 2));
    set_u32(b, "context_length", s->n_ctx);
    set_u32(b, "embedding_length", s->n_embd);
    set_u32(b, "block_count", s->n_layer);
    set_u32(b, "feed_forward_length", s->n_ff);
    set_u32(b, "attention.head_count", s->n_head);
    set_u32(b, "attention.head_count_kv", s->n_head_kv);
    set_u32(b, "attention.key_length", s->head_dim);
    set_u32(b, "attention.value_length", s->head_dim);
    set_u32(b, "rope.dimension_count", s->head_dim);
    set_u32(b, "vocab_size", s->n_vocab);
    set_f32(b, "rope.freq_base", s->rope_base);
    set_f32(b, "attention.layer_norm_rms_epsilon", 1e-5f);
    if (b->family->window) set_u32(b, "attention.sliding_window", b->family->window);
    if (b->family->attn_softcap > 0) {
        set_f32(b, "attn_logit_softcapping", b->family->attn_softcap);
        set_f32(b, "final_logit_softcapping", b->family->final_softcap);
    }
}

// ---- vocabulary ---------------------------------------------------------------------------------

static sl_status pad_tokens(sl_gguf_writer *w, const sl_gguf_kv *kv, uint32_t n_vocab) {
    sl_span *token;
    char(*name)[32] = NULL;
    sl_status status = SL_OK;
    SL_TRY(sl_alloc(&token, n_vocab, sizeof *token, "tokens"));
    SL_TRY_OUT(sl_alloc(&name, n_vocab, sizeof *name, "tokens"));
    SL_TRY_OUT(sl_gguf_read_texts(kv, token));
    for (uint32_t i = (uint32_t)kv->n; i < n_vocab; i++) {
        int n = snprintf(name[i], sizeof *name, "<unused_synthetic_%u>", i);
        token[i] = sl_span_make(name[i], (size_t)n);
    }
    SL_TRY_OUT(sl_gguf_writer_set_texts(w, "tokenizer.ggml.tokens", token, n_vocab));
out:
    sl_free(token), sl_free(name);
    return status;
}

static sl_status pad_types(sl_gguf_writer *w, const sl_gguf_kv *kv, uint32_t n_vocab) {
    enum { UNUSED = 5 };
    int32_t *type;
    int64_t value;
    sl_status status = SL_OK;
    SL_TRY(sl_alloc(&type, n_vocab, sizeof *type, "token types"));
    for (uint32_t i = 0; i < n_vocab; i++) {
        value = UNUSED;
        if (i < kv->n) SL_TRY_OUT(sl_gguf_read_int(kv, i, &value, INT32_MIN, INT32_MAX));
        type[i] = (int32_t)value;
    }
    SL_TRY_OUT(sl_gguf_writer_set_i32s(w, "tokenizer.ggml.token_type", type, n_vocab));
out:
    sl_free(type);
    return status;
}

static sl_status pad_scores(sl_gguf_writer *w, const sl_gguf_kv *kv, uint32_t n_vocab) {
    float *score;
    double value;
    sl_status status = SL_OK;
    SL_TRY(sl_alloc(&score, n_vocab, sizeof *score, "scores"));
    for (uint32_t i = 0; i < n_vocab && i < kv->n; i++) {
        SL_TRY_OUT(sl_gguf_read_float(kv, i, &value));
        score[i] = (float)value;
    }
    SL_TRY_OUT(sl_gguf_writer_set_f32s(w, "tokenizer.ggml.scores", score, n_vocab));
out:
    sl_free(score);
    return status;
}

static sl_status copy_vocab(sl_gguf_writer *w, const sl_gguf *source, uint32_t n_vocab) {
    static const char prefix[] = "tokenizer.";
    for (size_t i = 0; i < sl_gguf_n_kv(source); i++) {
        const sl_gguf_kv *kv = sl_gguf_kv_at(source, i);
        if (kv->key.n_bytes < sizeof prefix || memcmp(kv->key.data, prefix, sizeof prefix - 1) != 0) continue;
        if (sl_span_is(kv->key, "tokenizer.ggml.tokens")) SL_TRY(pad_tokens(w, kv, n_vocab));
        else if (sl_span_is(kv->key, "tokenizer.ggml.token_type")) SL_TRY(pad_types(w, kv, n_vocab));
        else if (sl_span_is(kv->key, "tokenizer.ggml.scores")) SL_TRY(pad_scores(w, kv, n_vocab));
        else SL_TRY(sl_gguf_writer_copy_kv(w, kv));
    }
    return SL_OK;
}

static sl_status set_vocab(sl_gguf_writer *w, synth_request *request) {
    if (!request->vocab_path) return sl_gguf_writer_set_text(w, "tokenizer.ggml.model", sl_span_of("no_vocab"));
    sl_gguf *source;
    SL_TRY(sl_gguf_open(&source, request->vocab_path, &(sl_gguf_options){.allow_no_data = true}));
    const sl_gguf_kv *tokens = sl_gguf_find(source, "tokenizer.ggml.tokens");
    sl_status status = SL_OK;
    if (!tokens || tokens->kind != SL_GGUF_ARRAY || tokens->elem_kind != SL_GGUF_STRING || tokens->n > SYNTH_MAX_VOCAB)
        status = SL_FAIL(SL_BAD_FILE, "%s: has no vocabulary to copy", request->vocab_path);
    if (status == SL_OK && tokens->n > request->shape.n_vocab) request->shape.n_vocab = (uint32_t)tokens->n;
    if (status == SL_OK) status = copy_vocab(w, source, request->shape.n_vocab);
    sl_gguf_close(source);
    return status;
}

// ---- tensors ------------------------------------------------------------------------------------

// What a row length allows in place of `type`.
static sl_type fit(sl_type type, uint64_t n_col) {
    if (n_col % sl_type_find(type)->blk_len == 0) return type;
    switch (type) {
    case SL_TYPE_Q2_K:
    case SL_TYPE_Q3_K: type = SL_TYPE_Q4_0; break;
    case SL_TYPE_Q4_K: type = SL_TYPE_Q5_0; break;
    case SL_TYPE_Q5_K: type = SL_TYPE_Q5_1; break;
    case SL_TYPE_Q6_K: type = SL_TYPE_Q8_0; break;
    case SL_TYPE_IQ4_XS: type = SL_TYPE_IQ4_NL; break;
    default: break;
    }
    return n_col % sl_type_find(type)->blk_len == 0 ? type : SL_TYPE_F16;
}

static bool gets_more_bits(uint32_t layer, uint32_t n) {
    return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
}

static void add(builder *b, sl_type type, float scale, uint64_t n_row, uint64_t n_col, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
static void add(builder *b, sl_type type, float scale, uint64_t n_row, uint64_t n_col, const char *fmt, ...) {
    synth_model *m = b->model;
    char name[64];
    uint64_t dim[2] = {n_col, n_row};
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    if (b->status == SL_OK && m->n_tensor == m->cap_tensor) {
        size_t cap = m->cap_tensor * 2 + 64;
        keep(b, sl_realloc(&m->tensor, m->cap_tensor, cap, sizeof *m->tensor, "tensors"));
        if (b->status == SL_OK) m->cap_tensor = cap;
    }
    if (b->status == SL_OK) keep(b, sl_gguf_writer_add_tensor(b->writer, name, type, dim, n_row > 1 ? 2 : 1));
    if (b->status != SL_OK) return;
    m->tensor[m->n_tensor++] = (synth_tensor){type, scale};
    m->n_bytes += n_row * sl_type_row_bytes(sl_type_find(type), n_col);
}

static void add_matrix(builder *b, sl_type type, uint64_t n_row, uint64_t n_col, const char *name, uint32_t layer) {
    float scale = 1 / sqrtf((float)n_col);
    if (layer == UINT32_MAX) add(b, fit(type, n_col), scale, n_row, n_col, "%s.weight", name);
    else add(b, fit(type, n_col), scale, n_row, n_col, "blk.%u.%s.weight", layer, name);
}

static void add_norm(builder *b, uint64_t n_col, const char *name, uint32_t layer) {
    add(b, SL_TYPE_F32, 0, 1, n_col, "blk.%u.%s.weight", layer, name);
}

static void add_bias(builder *b, uint64_t n, const char *name, uint32_t layer) {
    add(b, SL_TYPE_F32, 1 / sqrtf((float)n), 1, n, "blk.%u.%s.bias", layer, name);
}

static void add_layer(builder *b, uint32_t layer) {
    const synth_shape *s = &b->request->shape;
    const mix *m = b->mix;
    uint64_t n_q = (uint64_t)s->n_head * s->head_dim, n_kv = (uint64_t)s->n_head_kv * s->head_dim;
    sl_type more = gets_more_bits(layer, s->n_layer) ? m->more : m->base;
    add_norm(b, s->n_embd, "attn_norm", layer);
    add_matrix(b, m->base, n_q, s->n_embd, "attn_q", layer);
    add_matrix(b, m->base, n_kv, s->n_embd, "attn_k", layer);
    add_matrix(b, more, n_kv, s->n_embd, "attn_v", layer);
    add_matrix(b, m->base, s->n_embd, n_q, "attn_output", layer);
    if (b->family->qkv_biases) {
        add_bias(b, n_q, "attn_q", layer);
        add_bias(b, n_kv, "attn_k", layer);
        add_bias(b, n_kv, "attn_v", layer);
    }
    if (b->family->qk_norms) {
        add_norm(b, s->head_dim, "attn_q_norm", layer);
        add_norm(b, s->head_dim, "attn_k_norm", layer);
    }
    add_norm(b, s->n_embd, "ffn_norm", layer);
    add_matrix(b, m->base, s->n_ff, s->n_embd, "ffn_gate", layer);
    add_matrix(b, m->base, s->n_ff, s->n_embd, "ffn_up", layer);
    add_matrix(b, more, s->n_embd, s->n_ff, "ffn_down", layer);
    if (b->family->gemma) {
        add_norm(b, s->n_embd, "post_attention_norm", layer);
        add_norm(b, s->n_embd, "post_ffw_norm", layer);
    }
}

static void add_tensors(builder *b) {
    const synth_shape *s = &b->request->shape;
    // Of an output the fall-back is q8_0 whatever the mix.
    bool fits = s->n_embd % sl_type_find(b->mix->output)->blk_len == 0;
    sl_type output = fits ? b->mix->output : SL_TYPE_Q8_0;
    add_matrix(b, s->tied ? output : b->mix->base, s->n_vocab, s->n_embd, "token_embd", UINT32_MAX);
    add(b, SL_TYPE_F32, 0, 1, s->n_embd, "output_norm.weight");
    if (!s->tied) add_matrix(b, output, s->n_vocab, s->n_embd, "output", UINT32_MAX);
    for (uint32_t i = 0; i < s->n_layer && b->status == SL_OK; i++) add_layer(b, i);
}

sl_status synth_model_build(synth_model *model, sl_gguf_writer *writer, synth_request *request) {
    builder b = {.model = model, .writer = writer, .request = request};
    *model = (synth_model){0};
    for (size_t i = 0; i < SL_COUNT(families); i++)
        if (strcmp(families[i].name, request->arch) == 0) b.family = &families[i];
    for (size_t i = 0; i < SL_COUNT(mixes); i++)
        if (strcmp(mixes[i].name, request->type) == 0) b.mix = &mixes[i];
    if (!b.family) return SL_FAIL(SL_BAD_ARG, "there is no family '%s'; there are %s", request->arch, synth_arch_names);
    if (!b.mix) return SL_FAIL(SL_BAD_ARG, "there is no type '%s'; there are %s", request->type, synth_type_names);
    if (b.family->gemma) request->shape.tied = true;
    SL_TRY(set_vocab(writer, request)); // before the keys: it may raise n_vocab
    set_keys(&b);
    add_tensors(&b);
    return b.status;
}

void synth_model_deinit(synth_model *model) {
    sl_free(model->tensor);
    *model = (synth_model){0};
}
