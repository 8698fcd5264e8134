// SPDX-License-Identifier: MIT
//
// A tokenizer out of a GGUF file, for the tests of text/ (which must not need model/). The model "gemma4" is BPE over
// characters, which we know by the name of a pre-tokenizer.
#ifndef SL_TESTS_VOCAB_LOADER_H
#define SL_TESTS_VOCAB_LOADER_H

#include "gguf/gguf.h"
#include "text/tokenizer.h"

typedef struct vocab_file {
    sl_gguf *gguf;           // owned
    sl_span *token, *merge;  // owned
    float *score;            // owned
    uint8_t *type;           // owned
    sl_tokenizer *tokenizer; // owned
    double create_ms;        // of sl_tokenizer_create
} vocab_file;

double vocab_loader_ms(void); // a clock, by the program that includes this

static inline const sl_gguf_kv *vocab_key(const vocab_file *file, const char *name) {
    char key[96];
    snprintf(key, sizeof key, "tokenizer.ggml.%s", name);
    return sl_gguf_find(file->gguf, key);
}

static inline int32_t vocab_int(const vocab_file *file, const char *name, int32_t absent) {
    const sl_gguf_kv *kv = vocab_key(file, name);
    int64_t value;
    return kv && sl_gguf_read_int(kv, 0, &value, -1, INT32_MAX) == SL_OK ? (int32_t)value : absent;
}

static inline int8_t vocab_flag(const vocab_file *file, const char *name) {
    const sl_gguf_kv *kv = vocab_key(file, name);
    bool value;
    return kv && sl_gguf_read_bool(kv, 0, &value) == SL_OK ? (int8_t)value : -1;
}

static inline sl_span *vocab_texts(const vocab_file *file, const char *name, int32_t *n) {
    const sl_gguf_kv *kv = vocab_key(file, name);
    *n = kv ? (int32_t)kv->n : 0;
    sl_span *texts = malloc(((size_t)*n + 1) * sizeof *texts);
    if (kv && sl_gguf_read_texts(kv, texts) != SL_OK) abort();
    return texts;
}

static inline void vocab_close(vocab_file *file) {
    sl_tokenizer_destroy(file->tokenizer);
    sl_gguf_close(file->gguf);
    free(file->token), free(file->merge), free(file->score), free(file->type);
    *file = (vocab_file){0};
}

static inline sl_status vocab_create(vocab_file *file) {
    sl_span model = {0}, pre = {0};
    const sl_gguf_kv *kv = vocab_key(file, "model");
    if (kv) SL_TRY(sl_gguf_read_text(kv, &model));
    if ((kv = vocab_key(file, "pre"))) SL_TRY(sl_gguf_read_text(kv, &pre));
    bool spm = sl_span_is(model, "llama");
    if (sl_span_is(model, "gemma4")) pre = model;
    else if (!spm && !sl_span_is(model, "gpt2"))
        return SL_FAIL(SL_UNSUPPORTED, "vocabulary model %.*s", (int)model.n_bytes, model.data);
    sl_vocab_source source = {.kind = spm ? SL_TOKENIZER_SPM : SL_TOKENIZER_BPE, .pre = pre, .ignore_merges = -1};
    source.token = file->token = vocab_texts(file, "tokens", &source.n_vocab);
    source.merge = file->merge = vocab_texts(file, "merges", &source.n_merge);
    const sl_gguf_kv *type = vocab_key(file, "token_type"), *score = vocab_key(file, "scores");
    if (type) source.type = file->type = malloc((size_t)source.n_vocab);
    if (score) source.score = file->score = malloc((size_t)source.n_vocab * sizeof(float));
    for (int32_t i = 0; i < source.n_vocab; i++) {
        int64_t id = 1;
        double value = 0;
        if (type) SL_TRY(sl_gguf_read_int(type, (uint64_t)i, &id, 0, 6));
        if (score) SL_TRY(sl_gguf_read_float(score, (uint64_t)i, &value));
        if (type) file->type[i] = (uint8_t)id;
        if (score) file->score[i] = (float)value;
    }
    source.bos = vocab_int(file, "bos_token_id", spm ? 1 : -1);
    source.eos = vocab_int(file, "eos_token_id", spm ? 2 : -1);
    source.unk = vocab_int(file, "unknown_token_id", spm ? 0 : -1);
    source.add_bos = vocab_flag(file, "add_bos_token");
    source.add_eos = vocab_flag(file, "add_eos_token");
    source.add_space_prefix = vocab_flag(file, "add_space_prefix");
    double start = vocab_loader_ms();
    SL_TRY(sl_tokenizer_create(&file->tokenizer, &source));
    file->create_ms = vocab_loader_ms() - start;
    return SL_OK;
}

static inline sl_status vocab_open(vocab_file *file, const char *path) {
    *file = (vocab_file){0};
    sl_status status = sl_gguf_open(&file->gguf, path, &(sl_gguf_options){.allow_no_data = true});
    if (status == SL_OK) status = vocab_create(file);
    if (status != SL_OK) vocab_close(file);
    return status;
}

#endif
