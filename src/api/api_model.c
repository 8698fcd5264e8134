// SPDX-License-Identifier: MIT
//
// Models: a file with its tokenizer.
#include <string.h>

#include "api/api_part.h"

sluice_model_options sluice_model_options_default(void) {
    return (sluice_model_options){.size = sizeof(sluice_model_options)};
}

// What text/ needs, out of what model/ read.
static sl_status create_tokenizer(sluice_model *m) {
    const sl_vocab *v = &m->model->vocab;
    if (v->kind == SL_VOCAB_NONE) return SL_OK;
    sl_vocab_source source = {
        .kind = v->kind == SL_VOCAB_BPE ? SL_TOKENIZER_BPE : SL_TOKENIZER_SPM,
        .pre = v->pre,
        .token = v->token,
        .score = v->score,
        .type = v->type,
        .n_vocab = v->n_vocab,
        .merge = v->merge,
        .n_merge = v->n_merge,
        .bos = v->bos,
        .eos = v->eos,
        .unk = v->unk,
        .add_bos = v->add_bos,
        .add_eos = v->add_eos,
        .add_space_prefix = v->add_space_prefix,
        .ignore_merges = -1,
    };
    return sl_tokenizer_create(&m->tokenizer, &source);
}

static void read_arch(sluice_model *m) {
    const sl_gguf_kv *kv = sl_gguf_find(m->model->gguf, "general.architecture");
    sl_span arch;
    if (!kv || sl_gguf_read_text(kv, &arch) != SL_OK) return;
    memcpy(m->arch, arch.data, SL_MIN(arch.n_bytes, sizeof m->arch - 1));
}

sluice_status sluice_model_open(sluice_model **out, const char *path, const sluice_model_options *options) {
    API_NEED(out);
    *out = NULL;
    API_NEED(path);
    sluice_model_options o = sluice_model_options_default();
    sl_status status = sl_api_options(&o, options, sizeof o, "model");
    if (status != SL_OK) return api_fail(status);
    if (o.check && (o.vocab_only || o.header_only))
        return api_fail(SL_FAIL(SL_BAD_ARG, "weights cannot be checked when they are not opened"));
    sl_model_options model_options = {.vocab_only = o.vocab_only, .header_only = o.header_only, .pre = o.pre};
    sluice_model *m;
    status = sl_alloc(&m, 1, sizeof *m, "model");
    if (status != SL_OK) return api_fail(status);
    SL_TRY_OUT(sl_model_open(&m->model, path, &model_options));
    SL_TRY_OUT(create_tokenizer(m));
    if (o.check) {
        SL_TRY_OUT(sl_gguf_prefault(m->model->gguf, o.progress, o.user));
        SL_TRY_OUT(sl_weights_check(m->model->gguf));
    }
    read_arch(m);
out:
    if (status != SL_OK) sluice_model_close(&m);
    *out = m;
    return api_fail(status);
}

void sluice_model_close(sluice_model **model) {
    if (!model || !*model) return;
    sl_tokenizer_destroy((*model)->tokenizer);
    sl_model_close((*model)->model);
    sl_free(*model);
    *model = NULL;
}

// The type that holds the most bytes.
static const char *main_type(const sl_gguf *gguf) {
    uint64_t n_bytes[SL_TYPE_ID_COUNT] = {0};
    uint32_t best = 0;
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(gguf, i);
        n_bytes[t->type_id] += t->n_bytes;
        if (n_bytes[t->type_id] > n_bytes[best]) best = t->type_id;
    }
    return sl_type_name((sl_type)best);
}

sluice_status sluice_model_get_info(const sluice_model *model, sluice_model_info *out) {
    API_NEED(out);
    memset(out, 0, sizeof *out);
    API_NEED(model);
    const sl_model *m = model->model;
    const sl_config *c = &m->config;
    *out = (sluice_model_info){
        .arch = model->arch,
        .name = c->name,
        .type = main_type(m->gguf),
        .n_layer = (int32_t)c->n_layer,
        .n_embd = (int32_t)c->n_embd,
        .n_head = c->layer ? (int32_t)c->layer[0].n_head : 0,
        .n_head_kv = c->layer ? (int32_t)c->layer[0].n_head_kv : 0,
        .n_vocab = c->n_vocab ? (int32_t)c->n_vocab : m->vocab.n_vocab,
        .n_ctx_train = (int32_t)SL_MIN(c->n_ctx_train, (uint32_t)INT32_MAX),
        .n_params = m->weights.n_params,
        .file_bytes = sl_gguf_file_bytes(m->gguf),
        .weight_bytes = m->weights.n_bytes,
        .bos = m->vocab.kind == SL_VOCAB_NONE ? -1 : m->vocab.bos,
        .eos = m->vocab.kind == SL_VOCAB_NONE ? -1 : m->vocab.eos,
        .has_tokenizer = model->tokenizer != NULL,
        .has_chat_template = m->vocab.chat_template.n_bytes > 0,
        .adds_bos = model->tokenizer && sl_tokenizer_adds_bos(model->tokenizer),
    };
    return SLUICE_OK;
}

bool sluice_model_is_stop(const sluice_model *model, int32_t token) {
    if (!model) return false;
    const sl_vocab *v = &model->model->vocab;
    for (int32_t i = 0; i < v->n_stop; i++)
        if (v->stop[i] == token) return true;
    return false;
}
