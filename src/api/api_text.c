// SPDX-License-Identifier: MIT
//
// Text: encode, decode, streams, prompts.
#include <string.h>

#include "api/api_part.h"
#include "text/chat_template.h"

struct sluice_stream {
    const sl_tokenizer *tokenizer; // borrowed from the model
    int32_t n_vocab;
    sl_decode_options options;
    sl_utf8_stream utf8;
    char *text; // owned; large enough for any token
};

static sl_status need_tokenizer(const sluice_model *model) {
    if (model->tokenizer) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED, "the model's file has no vocabulary: it works with token ids alone");
}

static sl_status check_cap(size_t n, size_t cap, const char *what) {
    if (cap == 0 || n <= cap) return SL_OK;
    return SL_FAIL(SL_FULL, "there are %zu %s, and room for %zu", n, what, cap);
}

sluice_status sluice_encode(const sluice_model *model, int32_t *ids, size_t cap, size_t *n, const char *text,
                            size_t n_bytes, unsigned flags) {
    API_NEED(n);
    *n = 0;
    API_NEED(model);
    API_NEED(ids || cap == 0);
    API_NEED(text || n_bytes == 0);
    sl_status status = need_tokenizer(model);
    if (status != SL_OK) return api_fail(status);
    sl_encode_options options = {.add_bos = flags & SLUICE_ADD_BOS, .parse_special = flags & SLUICE_PARSE_SPECIAL};
    status = sl_tokenizer_encode(model->tokenizer, ids, cap, n, sl_span_make(text, n_bytes), &options);
    return api_fail(status == SL_OK ? check_cap(*n, cap, "ids") : status);
}

sluice_status sluice_decode(const sluice_model *model, char *text, size_t cap, size_t *n, const int32_t *ids,
                            size_t n_ids, unsigned flags) {
    API_NEED(n);
    *n = 0;
    API_NEED(model);
    API_NEED(text || cap == 0);
    API_NEED(ids || n_ids == 0);
    sl_status status = need_tokenizer(model);
    if (status != SL_OK) return api_fail(status);
    int32_t n_vocab = model->model->vocab.n_vocab;
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            return api_fail(SL_FAIL(SL_BAD_ARG, "id %d at %zu is not in 0 .. %d", ids[i], i, n_vocab - 1));
    sl_decode_options options = {.special = flags & SLUICE_SHOW_SPECIAL};
    status = sl_tokenizer_decode(model->tokenizer, text, cap, n, ids, n_ids, &options);
    return api_fail(status == SL_OK ? check_cap(*n, cap, "bytes") : status);
}

// ---- streams ------------------------------------------------------------------------------------

sluice_status sluice_stream_create(sluice_stream **out, const sluice_model *model, unsigned flags) {
    API_NEED(out);
    *out = NULL;
    API_NEED(model);
    sl_status status = need_tokenizer(model);
    if (status != SL_OK) return api_fail(status);
    sluice_stream *s;
    status = sl_alloc(&s, 1, sizeof *s, "stream");
    if (status != SL_OK) return api_fail(status);
    s->tokenizer = model->tokenizer;
    s->n_vocab = model->model->vocab.n_vocab;
    s->options.special = flags & SLUICE_SHOW_SPECIAL;
    size_t longest = 0; // so that a push never allocates
    for (int32_t id = 0; id < s->n_vocab; id++)
        longest = SL_MAX(longest, sl_tokenizer_piece(s->tokenizer, id, &s->options).n_bytes);
    status = sl_alloc(&s->text, longest + 4, 3, "stream");
    if (status != SL_OK) sluice_stream_destroy(&s);
    *out = s;
    return api_fail(status);
}

void sluice_stream_destroy(sluice_stream **stream) {
    if (!stream || !*stream) return;
    sl_free((*stream)->text);
    sl_free(*stream);
    *stream = NULL;
}

sluice_status sluice_stream_push(sluice_stream *stream, int32_t token, const char **text, size_t *n_bytes) {
    API_NEED(text);
    API_NEED(n_bytes);
    *text = "", *n_bytes = 0;
    API_NEED(stream);
    if (token < -1 || token >= stream->n_vocab)
        return api_fail(SL_FAIL(SL_BAD_ARG, "token %d is not in 0 .. %d", token, stream->n_vocab - 1));
    if (token < 0) *n_bytes = sl_utf8_stream_finish(&stream->utf8, stream->text);
    else {
        sl_span piece = sl_tokenizer_piece(stream->tokenizer, token, &stream->options);
        *n_bytes = sl_utf8_stream_push(&stream->utf8, stream->text, piece);
    }
    *text = stream->text;
    return SLUICE_OK;
}

// ---- prompts ------------------------------------------------------------------------------------

static sl_span raw_token(const sluice_model *model, int32_t id) {
    return model && model->tokenizer && id >= 0 ? sl_tokenizer_raw(model->tokenizer, id) : sl_span_of("");
}

sluice_status sluice_render(const sluice_model *model, const char *template_text, const char *conversation,
                            int64_t now_unix, char **text) {
    API_NEED(text);
    *text = NULL;
    API_NEED(conversation);
    API_NEED(model || template_text);
    sl_span source = template_text ? sl_span_of(template_text) : model->model->vocab.chat_template;
    if (!template_text && source.n_bytes == 0)
        return api_fail(SL_FAIL(SL_UNSUPPORTED, "the model's file has no chat template"));
    sl_chat_template *tmpl;
    sl_status status = sl_chat_template_create(&tmpl, source);
    if (status != SL_OK) return api_fail(status);
    sl_chat_options options = {
        .bos = raw_token(model, model ? model->model->vocab.bos : -1),
        .eos = raw_token(model, model ? model->model->vocab.eos : -1),
        .now_unix = now_unix,
    };
    size_t n_bytes;
    status = sl_chat_template_render(tmpl, text, &n_bytes, sl_span_of(conversation), &options);
    sl_chat_template_destroy(tmpl);
    return api_fail(status);
}
