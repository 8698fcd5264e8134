// SPDX-License-Identifier: MIT
//
// Rotary frequencies. Linear scaling, YaRN (Peng et al. 2023, arXiv:2309.00071, with the rounding
// of its ramp that Hugging Face's code made the custom) and Llama 3's per-frequency factors all end
// in the same data: inv_freq and mscale.
#include <math.h>

#include "model/config_part.h"

static const double PI = 3.14159265358979323846;

static double log_scale(double factor, double weight) { return factor <= 1 ? 1 : 0.1 * weight * log(factor) + 1; }

static sl_status read_yarn(sl_rope_scaling *out, const sl_keys *keys) {
    double ext_factor, log_mul, mscale;
    SL_TRY(sl_keys_float(keys, "rope.scaling.yarn_beta_fast", &out->beta_fast, 32, SL_POSITIVE));
    SL_TRY(sl_keys_float(keys, "rope.scaling.yarn_beta_slow", &out->beta_slow, 1, SL_POSITIVE));
    SL_TRY(sl_keys_float(keys, "rope.scaling.yarn_log_multiplier", &log_mul, 0, SL_NOT_NEGATIVE));
    mscale = log_scale(out->factor, 1);
    if (log_mul > 0) mscale /= log_scale(out->factor, log_mul);
    SL_TRY(sl_keys_float(keys, "rope.scaling.yarn_attn_factor", &mscale, mscale, SL_POSITIVE));
    out->mscale *= mscale;
    SL_TRY(sl_keys_float(keys, "rope.scaling.yarn_ext_factor", &ext_factor, 1, SL_ANY_NUMBER));
    if (ext_factor == 1 || ext_factor == -1) return SL_OK; // -1: "not set"
    return SL_FAIL(SL_UNSUPPORTED, "the key '%s.rope.scaling.yarn_ext_factor' is %g; only 1 is supported", keys->arch,
                   ext_factor);
}

sl_status sl_rope_scaling_read(sl_rope_scaling *out, const sl_keys *keys, uint32_t n_ctx_train) {
    *out = (sl_rope_scaling){.factor = 1, .mscale = 1};
    sl_span type;
    double factor;
    // old files have only a factor, by an older name; a factor of 0 means none
    SL_TRY(sl_keys_float(keys, "rope.scale_linear", &factor, 0, SL_NOT_NEGATIVE));
    SL_TRY(sl_keys_float(keys, "rope.scaling.factor", &factor, factor, SL_NOT_NEGATIVE));
    SL_TRY(sl_keys_text(keys, "rope.scaling.type", &type, "linear"));
    SL_TRY(sl_keys_float(keys, "rope.scaling.attn_factor", &out->mscale, 1, SL_POSITIVE));
    SL_TRY(sl_keys_int(keys, "rope.scaling.original_context_length", &out->n_ctx_orig, n_ctx_train, 1, INT32_MAX));
    if (factor > 0) out->factor = factor;
    if (sl_span_is(type, "none")) return SL_OK;
    if (sl_span_is(type, "linear")) return out->kind = SL_ROPE_LINEAR, SL_OK;
    if (!sl_span_is(type, "yarn"))
        return SL_FAIL(SL_UNSUPPORTED, "the rope scaling '%.*s' (key '%s.rope.scaling.type') is not supported",
                       (int)SL_MIN(type.n_bytes, 64), type.data, keys->arch);
    out->kind = SL_ROPE_YARN;
    return read_yarn(out, keys);
}

// The (fractional) pair whose wave turns `n_turn` times within the original context.
static double pair_of_turns(double n_turn, uint32_t n_rot, double base, uint32_t n_ctx) {
    return n_rot * log(n_ctx / (n_turn * 2 * PI)) / (2 * log(base));
}

// Fast waves keep their frequency, slow ones are stretched by the factor, with a ramp between.
static void apply_yarn(double *inv_freq, const sl_rope_scaling *s, uint32_t n_rot, double base) {
    double low = fmax(floor(pair_of_turns(s->beta_fast, n_rot, base, s->n_ctx_orig)), 0);
    double high = fmin(ceil(pair_of_turns(s->beta_slow, n_rot, base, s->n_ctx_orig)), n_rot - 1);
    if (low == high) high += 0.001;
    for (uint32_t i = 0; i < n_rot / 2; i++) {
        double ramp = fmin(fmax((i - low) / (high - low), 0), 1);
        inv_freq[i] = inv_freq[i] * (1 - ramp) + inv_freq[i] / s->factor * ramp;
    }
}

static sl_status apply_factors(double *inv_freq, const sl_keys *keys, uint32_t n_rot) {
    const sl_gguf_tensor *t = sl_gguf_tensor_find(keys->gguf, "rope_freqs.weight");
    if (!t) return SL_OK;
    if (t->type_id != SL_TYPE_F32)
        return SL_FAIL(SL_UNSUPPORTED, "the tensor 'rope_freqs.weight' has type %s; F32 is needed",
                       sl_type_name((sl_type)t->type_id));
    if (t->n_dims != 1 || t->dim[0] != n_rot / 2)
        return SL_FAIL(SL_BAD_FILE, "the tensor 'rope_freqs.weight' has %llu elements; %u are needed",
                       (unsigned long long)(t->dim[0] * t->dim[1]), n_rot / 2);
    if (!t->data) return SL_OK; // a header alone is planned, never run
    for (uint32_t i = 0; i < n_rot / 2; i++) {
        float factor;
        memcpy(&factor, t->data + i * sizeof factor, sizeof factor);
        if (!isfinite(factor) || factor <= 0)
            return SL_FAIL(SL_BAD_FILE, "the tensor 'rope_freqs.weight' holds %g at %u", (double)factor, i);
        inv_freq[i] /= factor;
    }
    return SL_OK;
}

sl_status sl_rope_build(sl_config_rope *out, const sl_keys *keys, const sl_rope_scaling *scaling, uint32_t n_rot,
                        double base, bool interleaved, sl_arena *arena) {
    *out = (sl_config_rope){.n_rot = n_rot, .interleaved = interleaved, .mscale = (float)scaling->mscale};
    SL_TRY(sl_arena_alloc(arena, &out->inv_freq, n_rot / 2, sizeof *out->inv_freq, "rotary frequencies"));
    for (uint32_t i = 0; i < n_rot / 2; i++) {
        out->inv_freq[i] = pow(base, -2.0 * i / n_rot);
        if (scaling->kind == SL_ROPE_LINEAR) out->inv_freq[i] /= scaling->factor;
    }
    if (scaling->kind == SL_ROPE_YARN) apply_yarn(out->inv_freq, scaling, n_rot, base);
    return apply_factors(out->inv_freq, keys, n_rot);
}
