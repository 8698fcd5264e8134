// SPDX-License-Identifier: MIT
//
// The life of a plan: what it is made for is checked, a builder fills it, the passes finish it. The
// table of op facts.
#include "plan/plan.h"

#include "plan/build_common.h"
#include "quant/kv_codec.h"

const sl_op_info sl_op_infos[SL_OP_COUNT] = {
#define SL_OP(code, name, n_in, n_weight, attrs, fused) {#name, n_in, n_weight, fused},
#include "plan/ops.def"
#undef SL_OP
};

static sl_status check_kv_type(uint8_t type, const char *which) {
    if (sl_kv_type_possible((sl_type)type)) return SL_OK;
    return SL_FAIL(SL_UNSUPPORTED, "the %s cache cannot have type %s; there are f32, f16, bf16, q8_0, q5_0 and q4_0",
                   which, sl_type_name((sl_type)type));
}

static sl_status check_shape(const sl_plan_shape *s) {
    if (s->n_row_max < 1 || s->n_row_max > 1 << 20) return SL_FAIL(SL_BAD_ARG, "a step of %u rows", s->n_row_max);
    if (s->n_logit_max < 1 || s->n_logit_max > s->n_row_max)
        return SL_FAIL(SL_BAD_ARG, "%u rows of logits in a step of %u rows", s->n_logit_max, s->n_row_max);
    if (s->n_worker > 1 << 16) return SL_FAIL(SL_BAD_ARG, "%u workers", s->n_worker);
    if (s->n_ctx < 1 || s->n_ctx > INT32_MAX || s->n_slot < 1 || s->n_kv_blk < 1 || s->n_kv_blk > INT32_MAX ||
        s->n_window_blk > INT32_MAX)
        return SL_FAIL(SL_BAD_ARG, "a context of %u, %u sequences, %u blocks", s->n_ctx, s->n_slot, s->n_kv_blk);
    if (s->moves && (s->n_ctx % SL_KV_BLK_LEN != 0 || s->n_ctx < 2 * SL_KV_BLK_LEN))
        return SL_FAIL(SL_BAD_ARG, "sequences that move need a context of whole blocks, two at least, not of %u",
                       s->n_ctx);
    SL_TRY(check_kv_type(s->type_k, "K"));
    return check_kv_type(s->type_v, "V");
}

static sl_status copy_ropes(sl_plan *p, const sl_config *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_rope; i++) n += c->rope[i].n_rot / 2;
    SL_TRY(sl_alloc(&p->rope, c->n_rope, sizeof *p->rope, "rotary sets"));
    SL_TRY(sl_alloc(&p->inv_freq, n, sizeof *p->inv_freq, "rotary frequencies"));
    for (uint32_t i = 0; i < c->n_rope; i++) {
        const sl_config_rope *r = &c->rope[i];
        p->rope[p->n_rope++] = (sl_plan_rope){r->n_rot, p->n_inv_freq, r->mscale};
        memcpy(p->inv_freq + p->n_inv_freq, r->inv_freq, r->n_rot / 2 * sizeof *r->inv_freq);
        p->n_inv_freq += r->n_rot / 2;
    }
    return SL_OK;
}

// Codes come in groups.
static sl_status check_groups(uint8_t type, uint32_t dim, uint32_t layer) {
    if (!sl_kv_code_bits((sl_type)type)) return SL_OK;
    if (dim % SL_KV_GROUP != 0 || dim > SL_KV_MAX_DIM)
        return SL_FAIL(
            SL_UNSUPPORTED,
            "a KV cache of type %s needs heads of whole groups of %d; those of layer %u are %u wide; use f16",
            sl_type_name((sl_type)type), SL_KV_GROUP, layer, dim);
    return SL_OK;
}

static sl_status describe_kv(sl_plan *p, const sl_config *c) {
    SL_TRY(sl_alloc(&p->kv, c->n_layer, sizeof *p->kv, "kv layers"));
    p->n_kv = c->n_layer;
    for (uint32_t i = 0; i < c->n_layer; i++) {
        const sl_config_layer *l = &c->layer[i];
        p->kv[i] = (sl_plan_kv){.n_head_kv = l->n_head_kv,
                                .head_dim = l->head_dim,
                                .v_dim = l->v_dim,
                                .window = l->window,
                                .cls = l->window && p->shape.n_window_blk,
                                .type_k = p->shape.type_k,
                                .type_v = p->shape.type_v};
        SL_TRY(check_groups(p->shape.type_k, l->head_dim, i));
        SL_TRY(check_groups(p->shape.type_v, l->v_dim, i));
        if (p->shape.kv_rotate && sl_kv_code_bits((sl_type)p->shape.type_v)) p->kv[i].v_rot = sl_kv_rotation(l->v_dim);
    }
    return SL_OK;
}

static sl_status build(sl_build *b) {
    SL_TRY(copy_ropes(b->plan, b->config));
    SL_TRY(describe_kv(b->plan, b->config));
    SL_TRY(sl_alloc(&b->weight_id, b->n_source, sizeof *b->weight_id, "weight ids"));
    switch (b->config->builder) {
    case SL_BUILDER_LLAMA: sl_build_llama(b); break;
    case SL_BUILDER_GEMMA: sl_build_gemma(b); break;
    }
    return b->status;
}

sl_status sl_plan_build(sl_plan **out, const sl_model *model, const sl_plan_shape *shape) {
    *out = NULL;
    SL_TRY(check_shape(shape));
    sl_plan *p;
    SL_TRY(sl_alloc(&p, 1, sizeof *p, "plan"));
    p->shape = *shape;
    p->shape.n_worker = SL_MAX(shape->n_worker, 1u);
    p->n_vocab = model->config.n_vocab;
    p->logits = p->best = SL_NO_VALUE;
    sl_build b = {
        .plan = p, .config = &model->config, .weights = &model->weights, .n_source = sl_gguf_n_tensors(model->gguf)};
    sl_status status = build(&b);
    sl_free(b.weight_id);
    if (status != SL_OK) sl_plan_destroy(p);
    else *out = p;
    return status;
}

sl_status sl_plan_create(sl_plan **out, const sl_model *model, const sl_plan_options *options) {
    sl_plan *p;
    sl_status status;
    *out = NULL;
    SL_TRY(sl_plan_build(&p, model, &options->shape));
    SL_TRY_OUT(sl_plan_rewrite(p, options->fusions));
    SL_TRY_OUT(sl_plan_layout(p, options->supports, options->user));
    SL_TRY_OUT(sl_plan_verify(p));
out:
    if (status != SL_OK) sl_plan_destroy(p);
    else *out = p;
    return status;
}

void sl_plan_destroy(sl_plan *plan) {
    if (!plan) return;
    sl_free(plan->op);
    sl_free(plan->value);
    sl_free(plan->weight);
    sl_free(plan->rope);
    sl_free(plan->inv_freq);
    sl_free(plan->kv);
    sl_free(plan);
}
