// SPDX-License-Identifier: MIT
//
// The keys tokenizer.* -> sl_vocab. Types come from the file, never from how a token looks. Must
// not know how text is cut.
#include "model/vocab.h"

#include <math.h>

enum { TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4, TYPE_MAX = 6 };

static const sl_gguf_kv *find(const sl_gguf *gguf, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "tokenizer.%s", name);
    return sl_gguf_find(gguf, key);
}

static sl_status find_kind(sl_vocab *v, const sl_gguf *gguf) {
    const sl_gguf_kv *kv = find(gguf, "ggml.model");
    if (!kv) return SL_OK;
    SL_TRY(sl_gguf_read_text(kv, &v->model));
    if (sl_span_is(v->model, "gpt2")) return v->kind = SL_VOCAB_BPE, SL_OK;
    if (sl_span_is(v->model, "llama")) return v->kind = SL_VOCAB_SPM, SL_OK;
    // Gemma 4's is byte-pair encoding too, with a pre-tokenizer of that name and no key for it.
    if (sl_span_is(v->model, "gemma4")) return v->kind = SL_VOCAB_BPE, v->pre = v->model, SL_OK;
    if (sl_span_is(v->model, "no_vocab") || sl_span_is(v->model, "none")) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED,
                   "the vocabulary model '%.*s' (key 'tokenizer.ggml.model') is not supported; "
                   "gpt2, gemma4 and llama are",
                   (int)SL_MIN(v->model.n_bytes, 64), v->model.data);
}

// An array of n elements of a fixed-size kind (is_float: f32 or f64; else an integer kind), or NULL
// if absent.
static sl_status find_array(const sl_gguf_kv **out, const sl_gguf *gguf, const char *name, uint64_t n, bool is_float) {
    const sl_gguf_kv *kv = find(gguf, name);
    *out = NULL;
    if (!kv) return SL_OK;
    bool kind_ok = kv->elem_kind == SL_GGUF_F32 || kv->elem_kind == SL_GGUF_F64;
    if (!is_float) kind_ok = !kind_ok && kv->elem_kind != SL_GGUF_STRING && kv->elem_kind != SL_GGUF_BOOL;
    if (kv->kind != SL_GGUF_ARRAY || !kind_ok)
        return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.%s' is no array of %s", name, is_float ? "floats" : "integers");
    if (kv->n != n)
        return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.%s' has %llu elements for %llu tokens", name,
                       (unsigned long long)kv->n, (unsigned long long)n);
    *out = kv;
    return SL_OK;
}

// An array of strings; {NULL, 0} if absent.
static sl_status read_texts(const sl_gguf *gguf, const char *name, const sl_span **out, int32_t *n_out,
                            sl_arena *arena) {
    const sl_gguf_kv *kv = find(gguf, name);
    *out = NULL;
    *n_out = 0;
    if (!kv) return SL_OK;
    if (kv->kind != SL_GGUF_ARRAY || kv->elem_kind != SL_GGUF_STRING)
        return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.%s' is no array of strings", name);
    if (kv->n > INT32_MAX) return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.%s' has too many elements", name);
    sl_span *texts;
    SL_TRY(sl_arena_alloc(arena, &texts, kv->n, sizeof *texts, "vocabulary"));
    SL_TRY(sl_gguf_read_texts(kv, texts));
    *out = texts;
    *n_out = (int32_t)kv->n;
    return SL_OK;
}

static sl_status read_scores(sl_vocab *v, const sl_gguf *gguf, sl_arena *arena) {
    const sl_gguf_kv *kv;
    float *score;
    SL_TRY(find_array(&kv, gguf, "ggml.scores", (uint64_t)v->n_vocab, true));
    if (!kv) return SL_OK;
    SL_TRY(sl_arena_alloc(arena, &score, kv->n, sizeof *score, "token scores"));
    for (uint64_t i = 0; i < kv->n; i++) {
        double value;
        SL_TRY(sl_gguf_read_float(kv, i, &value));
        if (isnan(value))
            return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.ggml.scores' holds a NaN at %llu", (unsigned long long)i);
        score[i] = (float)value;
    }
    v->score = score;
    return SL_OK;
}

static sl_status read_types(sl_vocab *v, const sl_gguf *gguf, sl_arena *arena) {
    const sl_gguf_kv *kv;
    uint8_t *type;
    SL_TRY(find_array(&kv, gguf, "ggml.token_type", (uint64_t)v->n_vocab, false));
    if (!kv) return SL_OK;
    SL_TRY(sl_arena_alloc(arena, &type, kv->n, sizeof *type, "token types"));
    for (uint64_t i = 0; i < kv->n; i++) {
        int64_t value;
        SL_TRY(sl_gguf_read_int(kv, i, &value, 0, TYPE_MAX));
        type[i] = (uint8_t)(value ? value : 1); // 0 (undefined) is a plain token
    }
    v->type = type;
    return SL_OK;
}

// An id of the vocabulary; `absent` (if it is one) without the key; -1 if the file says so by all
// ones.
static sl_status read_id(const sl_vocab *v, const sl_gguf *gguf, const char *name, int32_t absent, int32_t *out) {
    const sl_gguf_kv *kv = find(gguf, name);
    *out = absent < v->n_vocab ? absent : -1;
    if (!kv) return SL_OK;
    *out = -1;
    int64_t id;
    if (kv->kind == SL_GGUF_ARRAY)
        return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.%s' is an array where one id is needed", name);
    SL_TRY(sl_gguf_read_int(kv, 0, &id, -1, INT64_MAX));
    if (id == -1 || id == UINT32_MAX) return SL_OK;
    if (id >= v->n_vocab)
        return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.%s' holds %lld; the vocabulary has %d tokens", name,
                       (long long)id, v->n_vocab);
    *out = (int32_t)id;
    return SL_OK;
}

static sl_status read_flag(const sl_gguf *gguf, const char *name, int8_t *out) {
    const sl_gguf_kv *kv = find(gguf, name);
    bool flag;
    *out = -1;
    if (!kv) return SL_OK;
    SL_TRY(sl_gguf_read_bool(kv, 0, &flag));
    *out = flag;
    return SL_OK;
}

// Texts that end a turn, in the families that there are; plain words of the same look do not count.
static bool is_stop_text(sl_span text) {
    static const char *const stops[] = {
        "<|eot_id|>",
        "<|eom_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|flush|>",
        "<|calls|>",
        "<end_of_turn>",
        "<turn|>",
        "<eos>",
        "</s>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "[e~[",
        "<｜end▁of▁sentence｜>",
    };
    for (size_t i = 0; i < SL_COUNT(stops); i++)
        if (sl_span_is(text, stops[i])) return true;
    return false;
}

// Control tokens, and user-defined ones, but not "</s>": that is also HTML for struck-out text
// (gemma).
static bool is_stop(const sl_vocab *v, int32_t id) {
    sl_span text = v->token[id];
    if (text.n_bytes < 4 || text.n_bytes > 32) return false;
    if (text.data[0] != '<' && text.data[0] != '[' && text.data[0] != '_') return false;
    uint8_t type = v->type ? v->type[id] : TYPE_CONTROL;
    if (type != TYPE_CONTROL && (type != TYPE_USER_DEFINED || sl_span_is(text, "</s>"))) return false;
    return is_stop_text(text);
}

static sl_status read_stops(sl_vocab *v, const sl_gguf *gguf, sl_arena *arena) {
    int32_t eot, eom, n = 0, *stop;
    SL_TRY(read_id(v, gguf, "ggml.eot_token_id", -1, &eot));
    SL_TRY(read_id(v, gguf, "ggml.eom_token_id", -1, &eom));
    for (int pass = 0; pass < 2; pass++, v->n_stop = n, n = 0) {
        if (pass == 1) SL_TRY(sl_arena_alloc(arena, &stop, (size_t)v->n_stop, sizeof *stop, "stop tokens"));
        for (int32_t id = 0; id < v->n_vocab; id++) {
            if (id != v->eos && id != eot && id != eom && !is_stop(v, id)) continue;
            if (pass == 1) stop[n] = id;
            n++;
        }
    }
    v->stop = stop;
    return SL_OK;
}

static sl_status read_tokens(sl_vocab *v, const sl_gguf *gguf, sl_arena *arena) {
    SL_TRY(read_texts(gguf, "ggml.tokens", &v->token, &v->n_vocab, arena));
    if (v->n_vocab == 0) return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.ggml.tokens' is missing or empty");
    SL_TRY(read_scores(v, gguf, arena));
    SL_TRY(read_types(v, gguf, arena));
    SL_TRY(read_texts(gguf, "ggml.merges", &v->merge, &v->n_merge, arena));
    if (v->kind == SL_VOCAB_BPE && !v->merge) return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.ggml.merges' is missing");
    if (v->kind == SL_VOCAB_SPM && !v->score) return SL_FAIL(SL_BAD_FILE, "the key 'tokenizer.ggml.scores' is missing");
    return SL_OK;
}

static sl_status read_vocab(sl_vocab *v, const sl_gguf *gguf, sl_span pre_override, sl_arena *arena) {
    SL_TRY(find_kind(v, gguf));
    const sl_gguf_kv *kv = find(gguf, "chat_template");
    if (kv) SL_TRY(sl_gguf_read_text(kv, &v->chat_template));
    if (v->kind == SL_VOCAB_NONE) return SL_OK;
    kv = find(gguf, "ggml.pre");
    if (kv && !v->pre.data) SL_TRY(sl_gguf_read_text(kv, &v->pre));
    if (pre_override.data) v->pre = pre_override;
    SL_TRY(read_tokens(v, gguf, arena));
    bool spm = v->kind == SL_VOCAB_SPM; // SentencePiece's own defaults
    SL_TRY(read_id(v, gguf, "ggml.bos_token_id", spm ? 1 : -1, &v->bos));
    SL_TRY(read_id(v, gguf, "ggml.eos_token_id", spm ? 2 : -1, &v->eos));
    SL_TRY(read_id(v, gguf, "ggml.unknown_token_id", spm ? 0 : -1, &v->unk));
    SL_TRY(read_flag(gguf, "ggml.add_bos_token", &v->add_bos));
    SL_TRY(read_flag(gguf, "ggml.add_eos_token", &v->add_eos));
    SL_TRY(read_flag(gguf, "ggml.add_space_prefix", &v->add_space_prefix));
    return read_stops(v, gguf, arena);
}

sl_status sl_vocab_read(sl_vocab *out, const sl_gguf *gguf, sl_span pre_override, sl_arena *arena) {
    sl_vocab v = {.bos = -1, .eos = -1, .unk = -1, .add_bos = -1, .add_eos = -1, .add_space_prefix = -1};
    *out = v;
    SL_TRY(read_vocab(&v, gguf, pre_override, arena));
    *out = v;
    return SL_OK;
}
