// SPDX-License-Identifier: MIT
//
// Opening a model: the file, then its config, weights and vocabulary, in this order, so that what
// is wrong is named before anything large is taken.
#include "model/model.h"

// Token ids index the embedding: both must agree on how many there are.
static sl_status check_sizes(const sl_model *m) {
    if (m->vocab.kind == SL_VOCAB_NONE || (uint32_t)m->vocab.n_vocab == m->config.n_vocab) return SL_OK;
    return SL_FAIL(SL_BAD_FILE, "the vocabulary has %d tokens, but 'token_embd.weight' has %u rows", m->vocab.n_vocab,
                   m->config.n_vocab);
}

static sl_status read_all(sl_model *m, const sl_model_options *options) {
    sl_span pre = options->pre ? sl_span_of(options->pre) : (sl_span){NULL, 0};
    if (!options->vocab_only) {
        SL_TRY(sl_config_read(&m->config, m->gguf, &m->arena));
        SL_TRY(sl_weights_read(&m->weights, m->gguf, &m->config, &m->arena));
    }
    SL_TRY(sl_vocab_read(&m->vocab, m->gguf, pre, &m->arena));
    return options->vocab_only ? SL_OK : check_sizes(m);
}

sl_status sl_model_open(sl_model **out, const char *path, const sl_model_options *options) {
    static const sl_model_options defaults = {0};
    sl_model *m = NULL;
    sl_status status;
    *out = NULL;
    if (!path) return SL_FAIL(SL_BAD_ARG, "no path of a model was given");
    if (!options) options = &defaults;
    sl_gguf_options gguf_options = {.allow_no_data = options->vocab_only || options->header_only};
    SL_TRY(sl_alloc(&m, 1, sizeof *m, "model"));
    SL_TRY_OUT(sl_gguf_open(&m->gguf, path, &gguf_options)); // names the path itself
    status = read_all(m, options);
    if (status != SL_OK) status = sl_fail_prefix(status, "%s", path);
out:
    if (status != SL_OK) sl_model_close(m);
    else *out = m;
    return status;
}

void sl_model_close(sl_model *model) {
    if (!model) return;
    sl_gguf_close(model->gguf);
    sl_arena_deinit(&model->arena);
    sl_free(model);
}
