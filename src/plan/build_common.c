// SPDX-License-Identifier: MIT
//
// Adding ops, values and weights to a plan, and the parts that families share. Must not know a
// family's name.
#include "plan/build_common.h"

static bool fail(sl_build *b, sl_status status) {
    if (b->status == SL_OK) b->status = status;
    return false;
}

// Room for one more of an array with n elements; ids are 16 bits and the last one means "none".
static bool grow(sl_build *b, void *array, uint32_t n, uint32_t *cap, size_t elem_bytes, const char *what) {
    if (b->status != SL_OK) return false;
    if (n >= SL_NO_VALUE) return fail(b, SL_FAIL(SL_UNSUPPORTED, "the model needs more than %d %s", SL_NO_VALUE, what));
    if (n < *cap) return true;
    uint32_t more = *cap * 2 + 64;
    sl_status status = sl_realloc(array, *cap, more, elem_bytes, what);
    if (status != SL_OK) return fail(b, status);
    *cap = more;
    return true;
}

static uint16_t add_value(sl_build *b, uint32_t n_col, bool logit_rows) {
    sl_plan *p = b->plan;
    if (!grow(b, &p->value, p->n_value, &b->value_cap, sizeof *p->value, "values")) return SL_NO_VALUE;
    p->value[p->n_value] = (sl_value){.kind = SL_VALUE_F32, .logit_rows = logit_rows, .n_col = n_col};
    return (uint16_t)p->n_value++;
}

// The id of a file's tensor; the same tensor gets the same id (tied embeddings).
static uint16_t add_weight(sl_build *b, const sl_weight *w) {
    sl_plan *p = b->plan;
    if (b->status != SL_OK || !w || !w->name) return SL_NO_WEIGHT;
    SL_CHECK(w->source < b->n_source);
    if (b->weight_id[w->source]) return (uint16_t)(b->weight_id[w->source] - 1);
    if (!grow(b, &p->weight, p->n_weight, &b->weight_cap, sizeof *p->weight, "weights")) return SL_NO_WEIGHT;
    sl_plan_weight *out = &p->weight[p->n_weight];
    *out = (sl_plan_weight){
        .type = (uint8_t)w->type, .n_row = w->n_row, .n_col = w->n_col, .source = w->source, .n_bytes = w->n_bytes};
    snprintf(out->name, sizeof out->name, "%s", w->name);
    b->weight_id[w->source] = (uint16_t)(p->n_weight + 1);
    return (uint16_t)p->n_weight++;
}

static void add_op(sl_build *b, sl_op op) {
    sl_plan *p = b->plan;
    if (!grow(b, &p->op, p->n_op, &b->op_cap, sizeof *p->op, "ops")) return;
    op.layer = b->layer;
    p->op[p->n_op++] = op;
}

#define OP(op_code, x, y, w0, w1) .code = (op_code), .in = {(x), (y)}, .weight = {(w0), (w1)}

// The shape of an input; zeros after a failure.
static sl_value shape(const sl_build *b, uint16_t x) { return b->status == SL_OK ? b->plan->value[x] : (sl_value){0}; }

uint16_t sl_build_embed(sl_build *b, const sl_weight *table, float scale) {
    uint16_t w = add_weight(b, table), out = add_value(b, table->n_col, false);
    add_op(b, (sl_op){OP(SL_OP_EMBED, SL_NO_VALUE, SL_NO_VALUE, w, SL_NO_WEIGHT), .out = out, .attr.embed = {scale}});
    return out;
}

static uint16_t add_rope_table(sl_build *b, uint16_t rope, uint32_t n_rot, bool cells) {
    uint16_t out = add_value(b, n_rot, false);
    add_op(b, (sl_op){OP(SL_OP_ROPE_TABLE, SL_NO_VALUE, SL_NO_VALUE, SL_NO_WEIGHT, SL_NO_WEIGHT), .out = out,
                      .attr.rope_table = {rope, cells}});
    return out;
}

uint16_t sl_build_norm(sl_build *b, uint16_t x, const sl_weight *weight) {
    sl_value in = shape(b, x);
    uint16_t w = add_weight(b, weight), out = add_value(b, in.n_col, in.logit_rows);
    add_op(b, (sl_op){OP(SL_OP_NORM, x, SL_NO_VALUE, w, SL_NO_WEIGHT), .out = out,
                      .attr.norm = {b->config->norm_eps, weight->n_col}});
    return out;
}

uint16_t sl_build_matmul(sl_build *b, uint16_t x, const sl_weight *weight, const sl_weight *bias) {
    uint16_t w0 = add_weight(b, weight), w1 = add_weight(b, bias);
    uint16_t out = add_value(b, weight->n_row, shape(b, x).logit_rows);
    add_op(b, (sl_op){OP(SL_OP_MATMUL, x, SL_NO_VALUE, w0, w1), .out = out});
    return out;
}

uint16_t sl_build_rope(sl_build *b, uint16_t x, uint32_t n_head, const sl_config_layer *layer,
                       const uint16_t table[SL_MAX_ROPES]) {
    if (layer->rope < 0) return x;
    const sl_config_rope *rope = &b->config->rope[layer->rope];
    uint16_t out = add_value(b, n_head * layer->head_dim, false);
    add_op(b, (sl_op){OP(SL_OP_ROPE, x, table[layer->rope], SL_NO_WEIGHT, SL_NO_WEIGHT), .out = out,
                      .attr.rope = {n_head, layer->head_dim, rope->n_rot, rope->interleaved}});
    return out;
}

void sl_build_kv_write(sl_build *b, uint16_t k, uint16_t v) {
    add_op(b, (sl_op){OP(SL_OP_KV_WRITE, k, v, SL_NO_WEIGHT, SL_NO_WEIGHT), .out = SL_NO_VALUE,
                      .attr.kv = {(uint16_t)b->layer}});
}

uint16_t sl_build_attend(sl_build *b, uint16_t q, uint16_t q_first, const sl_config_layer *layer) {
    const sl_config *c = b->config;
    uint16_t kv = (uint16_t)b->layer;
    uint16_t out = add_value(b, layer->n_head * layer->v_dim, false);
    sl_opcode code = q_first == q ? SL_OP_ATTEND : SL_OP_ATTEND_SINKS;
    add_op(b, (sl_op){OP((uint8_t)code, q, q_first == q ? SL_NO_VALUE : q_first, SL_NO_WEIGHT, SL_NO_WEIGHT),
                      .out = out, .attr.attend = {kv, layer->n_head, layer->window, c->attn_scale, c->attn_softcap}});
    return out;
}

uint16_t sl_build_glu(sl_build *b, uint16_t gate, uint16_t up) {
    uint16_t out = add_value(b, shape(b, gate).n_col, false);
    add_op(b, (sl_op){OP(SL_OP_GLU, gate, up, SL_NO_WEIGHT, SL_NO_WEIGHT), .out = out, .attr.glu = {b->config->act}});
    return out;
}

uint16_t sl_build_add(sl_build *b, uint16_t x, uint16_t y) {
    uint16_t out = add_value(b, shape(b, x).n_col, false);
    add_op(b, (sl_op){OP(SL_OP_ADD, x, y, SL_NO_WEIGHT, SL_NO_WEIGHT), .out = out});
    return out;
}

uint16_t sl_build_gather(sl_build *b, uint16_t x) {
    uint16_t out = add_value(b, shape(b, x).n_col, true);
    add_op(b, (sl_op){OP(SL_OP_GATHER, x, SL_NO_VALUE, SL_NO_WEIGHT, SL_NO_WEIGHT), .out = out});
    return out;
}

uint16_t sl_build_softcap(sl_build *b, uint16_t x, float cap) {
    if (cap <= 0) return x;
    sl_value in = shape(b, x);
    uint16_t out = add_value(b, in.n_col, in.logit_rows);
    add_op(b,
           (sl_op){OP(SL_OP_SOFTCAP, x, SL_NO_VALUE, SL_NO_WEIGHT, SL_NO_WEIGHT), .out = out, .attr.softcap = {cap}});
    return out;
}

// ---- what families share ------------------------------------------------------------------------

// Does a row of a sequence that has moved see its first block? Its cell is in the last block of the context.
static bool sees_sinks(const sl_build *b, const sl_config_layer *layer) {
    const sl_plan_shape *shape = &b->plan->shape;
    return shape->moves && (layer->window == 0 || layer->window + 2ull * SL_KV_BLK_LEN > shape->n_ctx);
}

uint16_t sl_build_begin(sl_build *b) {
    const sl_config *c = b->config;
    b->layer = -1;
    for (uint32_t r = 0; r < c->n_rope; r++) {
        bool used = false, by_cells = false;
        for (uint32_t i = 0; i < c->n_layer; i++) {
            bool of_layer = c->layer[i].rope == (int32_t)r;
            used |= of_layer, by_cells |= of_layer && sees_sinks(b, &c->layer[i]);
        }
        b->rope_table[r] = used ? add_rope_table(b, (uint16_t)r, c->rope[r].n_rot, false) : SL_NO_VALUE;
        b->cell_table[r] = by_cells ? add_rope_table(b, (uint16_t)r, c->rope[r].n_rot, true) : SL_NO_VALUE;
    }
    return sl_build_embed(b, &b->weights->token_embd, c->embed_scale);
}

void sl_build_end(sl_build *b, uint16_t x) {
    const sl_weights *w = b->weights;
    b->layer = -1;
    x = sl_build_gather(b, x); // only rows that want logits are normed and multiplied
    x = sl_build_norm(b, x, &w->output_norm);
    x = sl_build_matmul(b, x, &w->output, &w->output_bias);
    b->plan->logits = sl_build_softcap(b, x, b->config->final_softcap);
}

uint16_t sl_build_attention(sl_build *b, uint16_t x, uint32_t layer) {
    const sl_config_layer *l = &b->config->layer[layer];
    const sl_weights_layer *w = &b->weights->layer[layer];
    uint16_t q = sl_build_matmul(b, x, &w->attn_q, &w->attn_q_bias);
    uint16_t k = sl_build_matmul(b, x, &w->attn_k, &w->attn_k_bias);
    uint16_t v = sl_build_matmul(b, x, &w->attn_v, &w->attn_v_bias);
    if (b->config->qk_norms) k = sl_build_norm(b, k, &w->attn_k_norm);
    k = sl_build_rope(b, k, l->n_head_kv, l, b->rope_table);
    sl_build_kv_write(b, k, v);
    if (b->config->qk_norms) q = sl_build_norm(b, q, &w->attn_q_norm);
    uint16_t q_first = sees_sinks(b, l) ? sl_build_rope(b, q, l->n_head, l, b->cell_table) : SL_NO_VALUE;
    q = sl_build_rope(b, q, l->n_head, l, b->rope_table);
    x = sl_build_attend(b, q, q_first == SL_NO_VALUE ? q : q_first, l);
    return sl_build_matmul(b, x, &w->attn_output, &w->attn_output_bias);
}

uint16_t sl_build_ffn(sl_build *b, uint16_t x, uint32_t layer) {
    const sl_weights_layer *w = &b->weights->layer[layer];
    uint16_t gate = sl_build_matmul(b, x, &w->ffn_gate, &w->ffn_gate_bias);
    uint16_t up = sl_build_matmul(b, x, &w->ffn_up, &w->ffn_up_bias);
    return sl_build_matmul(b, sl_build_glu(b, gate, up), &w->ffn_down, &w->ffn_down_bias);
}
