// SPDX-License-Identifier: MIT
//
// Small model files of any family, written with the project's own writer, and edits of them: a key
// set to something else, a tensor dropped, added, reshaped. Weights are small random numbers.
#ifndef SL_TESTS_MODEL_FILE_H
#define SL_TESTS_MODEL_FILE_H

#include "gguf/gguf.h"
#include "harness.h"
#include "model/model.h"

typedef enum edit_kind {
    EDIT_END = 0, // ends a list
    SET_INT,
    SET_FLOAT,
    SET_BOOL,
    SET_TEXT,
    SET_INTS,   // `n` times the number
    SET_FLOATS, // likewise
    DROP_KEY,
    DROP_TENSOR,
    ADD_TENSOR, // (col, row)
    RESHAPE,    // (col, row)
    RETYPE,     // the number is the type
} edit_kind;

typedef struct edit {
    edit_kind kind;
    const char *name; // keys with a leading '.' get the architecture in front
    double number;
    const char *text;
    uint64_t n, col, row;
} edit;

#define INT(key, value) \
    { .kind = SET_INT, .name = (key), .number = (value) }
#define FLOAT(key, value) \
    { .kind = SET_FLOAT, .name = (key), .number = (value) }
#define BOOL(key, value) \
    { .kind = SET_BOOL, .name = (key), .number = (value) }
#define TEXT(key, value) \
    { .kind = SET_TEXT, .name = (key), .text = (value) }
#define INTS(key, value, count) \
    { .kind = SET_INTS, .name = (key), .number = (value), .n = (count) }
#define FLOATS(key, value, count) \
    { .kind = SET_FLOATS, .name = (key), .number = (value), .n = (count) }
#define DROP_K(key) \
    { .kind = DROP_KEY, .name = (key) }
#define DROP_T(tensor) \
    { .kind = DROP_TENSOR, .name = (tensor) }
#define ADD_T(tensor, c, r) \
    { .kind = ADD_TENSOR, .name = (tensor), .col = (c), .row = (r) }
#define SHAPE_T(tensor, c, r) \
    { .kind = RESHAPE, .name = (tensor), .col = (c), .row = (r) }
#define RETYPE_T(tensor, type) \
    { .kind = RETYPE, .name = (tensor), .number = (type) }
#define END \
    { .kind = EDIT_END }

typedef struct model_recipe {
    const char *arch;
    uint32_t n_layer, n_embd, n_head, n_head_kv, head_dim, n_ff, n_vocab;
    sl_type type; // of the matrices
    bool untied, biases;
    const edit *edits;
} model_recipe;

static inline model_recipe recipe(const char *arch) {
    return (model_recipe){.arch = arch,
                          .n_layer = 3,
                          .n_embd = 64,
                          .n_head = 4,
                          .n_head_kv = 2,
                          .head_dim = 32,
                          .n_ff = 96,
                          .n_vocab = 300};
}

typedef struct model_writer {
    sl_gguf_writer *w;
    const model_recipe *r;
    sl_type type[1024]; // of each tensor declared
    size_t n;
} model_writer;

static inline bool arch_is(const model_recipe *r, const char *prefix) {
    return strncmp(r->arch, prefix, strlen(prefix)) == 0;
}

static inline const edit *find_edit(const model_recipe *r, edit_kind kind, const char *name) {
    for (const edit *e = r->edits; e && e->kind; e++)
        if (e->kind == kind && strcmp(e->name, name) == 0) return e;
    return NULL;
}

static inline const char *full_key(const model_recipe *r, const char *name) {
    static char key[128];
    snprintf(key, sizeof key, "%s%s", name[0] == '.' ? r->arch : "", name);
    return key;
}

static inline void put_int(model_writer *m, const char *name, uint32_t value) {
    if (!find_edit(m->r, DROP_KEY, name))
        REQUIRE_OK(sl_gguf_writer_set_u32(m->w, full_key(m->r, name), value), sl_error_text());
}

static inline void put_tensor(model_writer *m, const char *name, sl_type type, uint64_t col, uint64_t row) {
    if (find_edit(m->r, DROP_TENSOR, name)) return;
    const edit *shape = find_edit(m->r, RESHAPE, name), *retype = find_edit(m->r, RETYPE, name);
    uint64_t dim[2] = {shape ? shape->col : col, shape ? shape->row : row};
    m->type[m->n++] = retype ? (sl_type)retype->number : type;
    REQUIRE_OK(sl_gguf_writer_add_tensor(m->w, name, m->type[m->n - 1], dim, row > 1 ? 2 : 1), sl_error_text());
}

static inline void put_layer_tensor(model_writer *m, uint32_t layer, const char *rest, uint64_t col, uint64_t row) {
    char name[64];
    snprintf(name, sizeof name, "blk.%u.%s", layer, rest);
    put_tensor(m, name, row > 1 ? m->r->type : SL_TYPE_F32, col, row);
}

static inline void put_layer(model_writer *m, uint32_t i) {
    const model_recipe *r = m->r;
    uint64_t embd = r->n_embd, q = r->n_head * r->head_dim, kv = r->n_head_kv * r->head_dim;
    bool gemma = arch_is(r, "gemma"), qk_norms = arch_is(r, "qwen3") || arch_is(r, "gemma3");
    put_layer_tensor(m, i, "attn_norm.weight", embd, 1);
    put_layer_tensor(m, i, "attn_q.weight", embd, q);
    put_layer_tensor(m, i, "attn_k.weight", embd, kv);
    put_layer_tensor(m, i, "attn_v.weight", embd, kv);
    put_layer_tensor(m, i, "attn_output.weight", q, embd);
    put_layer_tensor(m, i, "ffn_norm.weight", embd, 1);
    put_layer_tensor(m, i, "ffn_gate.weight", embd, r->n_ff);
    put_layer_tensor(m, i, "ffn_up.weight", embd, r->n_ff);
    put_layer_tensor(m, i, "ffn_down.weight", r->n_ff, embd);
    if (r->biases || arch_is(r, "qwen2")) {
        put_layer_tensor(m, i, "attn_q.bias", q, 1);
        put_layer_tensor(m, i, "attn_k.bias", kv, 1);
        put_layer_tensor(m, i, "attn_v.bias", kv, 1);
    }
    if (r->biases) {
        put_layer_tensor(m, i, "attn_output.bias", embd, 1);
        put_layer_tensor(m, i, "ffn_gate.bias", r->n_ff, 1);
        put_layer_tensor(m, i, "ffn_up.bias", r->n_ff, 1);
        put_layer_tensor(m, i, "ffn_down.bias", embd, 1);
    }
    if (qk_norms) {
        put_layer_tensor(m, i, "attn_q_norm.weight", r->head_dim, 1);
        put_layer_tensor(m, i, "attn_k_norm.weight", r->head_dim, 1);
    }
    if (gemma) {
        put_layer_tensor(m, i, "post_attention_norm.weight", embd, 1);
        put_layer_tensor(m, i, "post_ffw_norm.weight", embd, 1);
    }
}

// Tokens "<s>", "</s>", "<unk>", then words; control, control, unknown, normal.
static inline void put_vocab(model_writer *m) {
    enum { MAX = 512 };
    static char text[MAX][16];
    static sl_span token[MAX];
    static int32_t type[MAX];
    static float score[MAX];
    uint32_t n = m->r->n_vocab;
    REQUIRE(n <= MAX);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "word%u", i);
        token[i] = i == 0   ? sl_span_of("<s>")
                   : i == 1 ? sl_span_of("</s>")
                   : i == 2 ? sl_span_of("<unk>")
                            : sl_span_of(text[i]);
        type[i] = i < 2 ? 3 : i == 2 ? 2 : 1;
        score[i] = -(float)i;
    }
    sl_gguf_writer *w = m->w;
    if (!find_edit(m->r, DROP_KEY, "tokenizer.ggml.model"))
        REQUIRE_OK(sl_gguf_writer_set_text(w, "tokenizer.ggml.model", sl_span_of("llama")), sl_error_text());
    if (!find_edit(m->r, DROP_KEY, "tokenizer.ggml.tokens"))
        REQUIRE_OK(sl_gguf_writer_set_texts(w, "tokenizer.ggml.tokens", token, n), sl_error_text());
    if (!find_edit(m->r, DROP_KEY, "tokenizer.ggml.scores"))
        REQUIRE_OK(sl_gguf_writer_set_f32s(w, "tokenizer.ggml.scores", score, n), sl_error_text());
    REQUIRE_OK(sl_gguf_writer_set_i32s(w, "tokenizer.ggml.token_type", type, n), sl_error_text());
    put_int(m, "tokenizer.ggml.bos_token_id", 0);
    put_int(m, "tokenizer.ggml.eos_token_id", 1);
}

static inline void apply(model_writer *m, const edit *e) {
    static int32_t ints[2048];
    static float floats[2048];
    const char *key = full_key(m->r, e->name);
    sl_gguf_writer *w = m->w;
    sl_status status = SL_OK;
    for (uint64_t i = 0; i < e->n; i++) {
        if (e->kind == SET_INTS) ints[i] = (int32_t)e->number;
        if (e->kind == SET_FLOATS) floats[i] = (float)e->number;
    }
    switch (e->kind) {
    case SET_INT: status = sl_gguf_writer_set_i32s(w, key, ints, 0); break; // replaced below
    case SET_FLOAT: status = sl_gguf_writer_set_f32(w, key, (float)e->number); break;
    case SET_BOOL: status = sl_gguf_writer_set_bool(w, key, e->number != 0); break;
    case SET_TEXT: status = sl_gguf_writer_set_text(w, key, sl_span_of(e->text)); break;
    case SET_INTS: status = sl_gguf_writer_set_i32s(w, key, ints, e->n); break;
    case SET_FLOATS: status = sl_gguf_writer_set_f32s(w, key, floats, e->n); break;
    case ADD_TENSOR: put_tensor(m, e->name, SL_TYPE_F32, e->col, e->row); break;
    default: break;
    }
    if (e->kind == SET_INT) { // any integer, negative ones too
        int64_t value = (int64_t)e->number;
        sl_gguf_kv kv = {.key = sl_span_of(key),
                         .kind = SL_GGUF_I64,
                         .elem_kind = SL_GGUF_I64,
                         .n = 1,
                         .data = (const uint8_t *)&value,
                         .n_bytes = sizeof value};
        status = sl_gguf_writer_copy_kv(w, &kv);
    }
    REQUIRE_OK(status, sl_error_text());
}

static inline sl_status fill_tensor(void *user, size_t i, uint64_t off, void *out, size_t n_bytes) {
    model_writer *m = user;
    (void)off;
    if (m->type[i] == SL_TYPE_F32) {
        for (size_t k = 0; k < n_bytes / 4; k++) ((float *)out)[k] = 0.1f * (float)test_normal();
        return SL_OK;
    }
    memset(out, 0, n_bytes);
    return SL_OK;
}

// Writes the file; the path is borrowed and good until the next call.
static inline const char *write_model(const model_recipe *r) {
    static char path[512];
    static int n_file;
    model_writer m = {.r = r};
    snprintf(path, sizeof path, "%s/model-%d.gguf", test_scratch_dir(), n_file++ % 4);
    REQUIRE_OK(sl_gguf_writer_create(&m.w), sl_error_text());
    if (!find_edit(r, DROP_KEY, "general.architecture"))
        REQUIRE_OK(sl_gguf_writer_set_text(m.w, "general.architecture", sl_span_of(r->arch)), sl_error_text());
    put_int(&m, ".block_count", r->n_layer);
    put_int(&m, ".context_length", 2048);
    put_int(&m, ".embedding_length", r->n_embd);
    put_int(&m, ".feed_forward_length", r->n_ff);
    put_int(&m, ".attention.head_count", r->n_head);
    put_int(&m, ".attention.head_count_kv", r->n_head_kv);
    put_int(&m, ".attention.key_length", r->head_dim);
    put_int(&m, ".attention.value_length", r->head_dim);
    if (!find_edit(r, DROP_KEY, ".attention.layer_norm_rms_epsilon"))
        REQUIRE_OK(sl_gguf_writer_set_f32(m.w, full_key(r, ".attention.layer_norm_rms_epsilon"), 1e-5f),
                   sl_error_text());
    put_vocab(&m);
    put_tensor(&m, "token_embd.weight", r->type, r->n_embd, r->n_vocab);
    put_tensor(&m, "output_norm.weight", SL_TYPE_F32, r->n_embd, 1);
    if (r->untied) put_tensor(&m, "output.weight", r->type, r->n_embd, r->n_vocab);
    for (uint32_t i = 0; i < r->n_layer; i++) put_layer(&m, i);
    for (const edit *e = r->edits; e && e->kind; e++) apply(&m, e);
    REQUIRE_OK(sl_gguf_writer_write(m.w, path, fill_tensor, &m), sl_error_text());
    sl_gguf_writer_destroy(m.w);
    return path;
}

static inline sl_model *make_model(const model_recipe *r) {
    sl_model *m;
    REQUIRE_OK(sl_model_open(&m, write_model(r), NULL), sl_error_text());
    return m;
}

#endif
