// SPDX-License-Identifier: MIT
//
// A feature that a file names is honoured or refused, never ignored: a model that runs with a wrong
// window or scale gives fluent nonsense. This table is the part that refuses: every key of the
// families (and of their relatives) that changes results, with the value at which it changes
// nothing. Keys under "attention." and "rope." are refused even when unknown.
#include "model/config_part.h"

typedef enum neutral_kind {
    ANY,         // read elsewhere, or of no influence on results
    ZERO,        // 0, false or "": off
    ZERO_OR_ONE, // a multiplier: 1, or 0 for "not set"
    ONE,         // true: as we do it
    NEVER,       // there is no harmless value
} neutral_kind;

// '*' at the end: all names that begin so. The first match counts.
static const struct {
    const char *name;
    neutral_kind neutral;
} known[] = {
    {"attention.head_count", ANY},
    {"attention.head_count_kv", ANY},
    {"attention.key_length", ANY},
    {"attention.value_length", ANY},
    {"attention.layer_norm_rms_epsilon", ANY},
    {"attention.scale", ANY},
    {"attention.sliding_window", ANY},
    {"attention.sliding_window_pattern", ANY},
    {"attention.layer_norm_epsilon", ANY}, // of a norm that these families do not have
    {"attention.causal", ONE},
    {"attention.output_scale", ZERO_OR_ONE},
    {"attention.value_scale", ZERO_OR_ONE},
    {"attention.temperature_scale", ZERO},
    {"attention.temperature_length", ANY}, // without its scale it does nothing
    {"attention.*", ZERO},
    {"rope.dimension_count", ANY},
    {"rope.freq_base", ANY},
    {"rope.freq_base_swa", ANY},
    {"rope.scale_linear", ANY},
    {"rope.scaling.type", ANY},
    {"rope.scaling.factor", ANY},
    {"rope.scaling.attn_factor", ANY},
    {"rope.scaling.original_context_length", ANY},
    {"rope.scaling.finetuned", ANY},
    {"rope.scaling.yarn_*", ANY},
    {"rope.*", ZERO},
    {"attn_logit_softcapping", ANY},
    {"final_logit_softcapping", ANY},
    {"logit_scale", ZERO_OR_ONE},
    {"residual_scale", ZERO_OR_ONE},
    {"embedding_scale", ZERO_OR_ONE},
    {"expert_weights_scale", ANY}, // these three do nothing without experts
    {"expert_weights_norm", ANY},
    {"expert_gating_func", ANY},
    {"expert*", ZERO},
    {"moe_*", ZERO},
    {"interleave_moe_layer_step", ZERO},
    {"leading_dense_block_count", ZERO},
    {"nextn_predict_layers", ZERO},
    {"pooling_type", ZERO},
    {"classifier.*", NEVER},
    {"hidden_activation", NEVER},
    {"use_parallel_residual", ZERO},
    {"embedding_length_out", NEVER},
    {"embedding_length_per_layer_input", ZERO},
    {"dense_2_*", NEVER},
    {"dense_3_*", NEVER},
    {"decoder_block_count", ZERO},
    {"n_deepstack_layers", ZERO},
    {"deepstack_mapping", NEVER},
    {"full_attention_interval", ZERO},
    {"swiglu_clamp*", ZERO},
    {"activation.*", NEVER},
    {"router_logit_softcapping", ZERO},
    {"num_loops", ZERO_OR_ONE},
    {"adapters.*", ZERO},
    {"token_shift_count", ZERO},
    {"swin_norm", ZERO},
    {"norm_before_*", ZERO},
    {"attn_res.*", ZERO},
    {"hyper_connection.*", ZERO},
    {"hash_layer_count", ZERO},
    {"ple.*", NEVER},
    {"hrm.*", NEVER},
    {"ssm.*", NEVER},
    {"wkv.*", NEVER},
    {"kda.*", NEVER},
    {"shortconv.*", NEVER},
};

static bool matches(const char *pattern, sl_span name) {
    size_t n = strlen(pattern);
    if (pattern[n - 1] != '*') return sl_span_is(name, pattern);
    return name.n_bytes >= n - 1 && memcmp(name.data, pattern, n - 1) == 0;
}

static bool is_neutral_number(double value, neutral_kind neutral) {
    if (neutral == ONE) return value == 1;
    return value == 0 || (neutral == ZERO_OR_ONE && value == 1);
}

// All elements of the value leave the results alone.
static bool is_neutral(const sl_gguf_kv *kv, neutral_kind neutral) {
    if (neutral == ANY) return true;
    if (neutral == NEVER || kv->elem_kind == SL_GGUF_ARRAY) return false;
    if (kv->elem_kind == SL_GGUF_STRING) {
        sl_span text;
        return kv->kind == SL_GGUF_STRING && sl_gguf_read_text(kv, &text) == SL_OK && text.n_bytes == 0;
    }
    for (uint64_t i = 0; i < kv->n; i++) {
        double value = 0;
        bool flag = false;
        sl_status status =
            kv->elem_kind == SL_GGUF_BOOL ? sl_gguf_read_bool(kv, i, &flag) : sl_gguf_read_float(kv, i, &value);
        if (status != SL_OK || !is_neutral_number(kv->elem_kind == SL_GGUF_BOOL ? flag : value, neutral)) return false;
    }
    return true;
}

// An early converter wrote use_parallel_residual = true into every qwen2 file; no Qwen2 has
// parallel residuals.
static bool is_known_mistake(const sl_keys *keys, sl_span name) {
    return strcmp(keys->arch, "qwen2") == 0 && sl_span_is(name, "use_parallel_residual");
}

sl_status sl_config_refuse_keys(const sl_keys *keys) {
    size_t n_arch = strlen(keys->arch);
    for (size_t i = 0; i < sl_gguf_n_kv(keys->gguf); i++) {
        const sl_gguf_kv *kv = sl_gguf_kv_at(keys->gguf, i);
        if (kv->key.n_bytes <= n_arch + 1 || kv->key.data[n_arch] != '.' ||
            memcmp(kv->key.data, keys->arch, n_arch) != 0)
            continue;
        sl_span name = {kv->key.data + n_arch + 1, kv->key.n_bytes - n_arch - 1};
        size_t k = 0;
        while (k < SL_COUNT(known) && !matches(known[k].name, name)) k++;
        if (k == SL_COUNT(known) || is_neutral(kv, known[k].neutral) || is_known_mistake(keys, name)) continue;
        return SL_FAIL(SL_UNSUPPORTED, "the model uses '%.*s', which is not supported for the architecture '%s'",
                       (int)SL_MIN(kv->key.n_bytes, 128), kv->key.data, keys->arch);
    }
    return SL_OK;
}
