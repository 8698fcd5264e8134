// SPDX-License-Identifier: MIT
//
// Rewrites that a backend asks for. They change which op does a thing, never what is computed:
// after them each value is still written once, before it is read, and values are numbered anew in
// the order in which they are written.
#include "plan/plan.h"

typedef struct rewriter {
    sl_plan *plan;
    sl_op *op; // the new program, (n_op); owned until it replaces the old one
    uint32_t n_op;
    uint32_t *n_reader;  // (n_value) of the old program: ops that read it
    uint32_t *n_quant;   // (n_value) of those, products with a quantised matrix
    uint32_t *def;       // (n_value) the op that writes it
    uint16_t *quantised; // (n_value) its 16-bit version, or SL_NO_VALUE
} rewriter;

static bool is_matmul(const sl_op *op) { return op->code == SL_OP_MATMUL || op->code == SL_OP_MATMUL_ADD; }

static bool reads_quantised_matrix(const sl_plan *p, const sl_op *op) {
    return is_matmul(op) && sl_type_find(p->weight[op->weight[0]].type)->blk_len > 1;
}

static void deinit(rewriter *r) {
    sl_free(r->op);
    sl_free(r->n_reader);
    sl_free(r->n_quant);
    sl_free(r->def);
    sl_free(r->quantised);
}

// Counts readers of the plan as it is now. At most one op is inserted for each there is.
static sl_status init(rewriter *r, sl_plan *p) {
    *r = (rewriter){.plan = p};
    SL_TRY(sl_alloc(&r->op, (size_t)p->n_op * 2, sizeof *r->op, "rewritten ops"));
    SL_TRY(sl_alloc(&r->n_reader, p->n_value, sizeof *r->n_reader, "reader counts"));
    SL_TRY(sl_alloc(&r->n_quant, p->n_value, sizeof *r->n_quant, "reader counts"));
    SL_TRY(sl_alloc(&r->def, p->n_value, sizeof *r->def, "definitions"));
    SL_TRY(sl_alloc(&r->quantised, p->n_value, sizeof *r->quantised, "quantised values"));
    for (uint32_t v = 0; v < p->n_value; v++) r->quantised[v] = SL_NO_VALUE;
    for (uint32_t i = 0; i < p->n_op; i++) {
        const sl_op *op = &p->op[i];
        for (int k = 0; k < sl_op_infos[op->code].n_in; k++) r->n_reader[op->in[k]]++;
        if (reads_quantised_matrix(p, op)) r->n_quant[op->in[0]]++;
        if (op->out != SL_NO_VALUE) r->def[op->out] = i;
    }
    if (p->logits != SL_NO_VALUE) r->n_reader[p->logits]++; // the caller
    return SL_OK;
}

static void emit(rewriter *r, sl_op op) { r->op[r->n_op++] = op; }

static void replace_program(rewriter *r) {
    sl_free(r->plan->op);
    r->plan->op = r->op;
    r->plan->n_op = r->n_op;
    r->op = NULL;
}

// ---- SL_FUSE_ACT16 ------------------------------------------------------------------------------

// The 16-bit version of value v, made by a QUANT before its first reader.
static sl_status quantise(rewriter *r, uint16_t v, int16_t layer, uint16_t *out) {
    sl_plan *p = r->plan;
    if (p->value[v].kind == SL_VALUE_ACT16) return *out = v, SL_OK;
    if (r->quantised[v] == SL_NO_VALUE) {
        if (p->n_value + 1 >= SL_NO_VALUE)
            return SL_FAIL(SL_UNSUPPORTED, "the model needs more than %d values", SL_NO_VALUE);
        SL_TRY(sl_realloc(&p->value, p->n_value, p->n_value + 1, sizeof *p->value, "values"));
        r->quantised[v] = (uint16_t)p->n_value++;
        p->value[r->quantised[v]] = p->value[v];
        p->value[r->quantised[v]].kind = SL_VALUE_ACT16;
        emit(r, (sl_op){.code = SL_OP_QUANT,
                        .layer = layer,
                        .in = {v, SL_NO_VALUE},
                        .out = r->quantised[v],
                        .weight = {SL_NO_WEIGHT, SL_NO_WEIGHT}});
    }
    return *out = r->quantised[v], SL_OK;
}

static sl_status fuse_act16(rewriter *r) {
    sl_plan *p = r->plan;
    for (uint32_t i = 0; i < p->n_op; i++) {
        sl_op op = p->op[i];
        bool makes = (op.code == SL_OP_NORM || op.code == SL_OP_GLU) && r->n_reader[op.out] > 0;
        if (makes && r->n_quant[op.out] == r->n_reader[op.out]) { // nobody wants it as floats
            op.code = op.code == SL_OP_NORM ? SL_OP_NORM_QUANT : SL_OP_GLU_QUANT;
            p->value[op.out].kind = SL_VALUE_ACT16;
        }
        if (reads_quantised_matrix(p, &op)) SL_TRY(quantise(r, op.in[0], op.layer, &op.in[0]));
        emit(r, op);
    }
    return SL_OK;
}

// ---- SL_FUSE_MATMUL_ADD -------------------------------------------------------------------------

// Which input of an ADD is a product that nothing else reads? -1: none.
static int find_product(const rewriter *r, const sl_op *add) {
    for (int k = 0; k < 2; k++)
        if (r->n_reader[add->in[k]] == 1 && r->plan->op[r->def[add->in[k]]].code == SL_OP_MATMUL) return k;
    return -1;
}

// The product moves to the place of the ADD, where the other input is sure to be there.
static void fuse_matmul_add(rewriter *r) {
    sl_plan *p = r->plan;
    for (uint32_t i = 0; i < p->n_op; i++) {
        sl_op *add = &p->op[i];
        int k = add->code == SL_OP_ADD ? find_product(r, add) : -1;
        if (k < 0) continue;
        sl_op *product = &p->op[r->def[add->in[k]]];
        sl_op fused = *product;
        fused.code = SL_OP_MATMUL_ADD;
        fused.layer = add->layer;
        fused.in[1] = add->in[1 - k];
        fused.out = add->out;
        *add = fused;
        product->code = SL_OP_COUNT; // gone
    }
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].code != SL_OP_COUNT) emit(r, p->op[i]);
}

// ---- the pass -----------------------------------------------------------------------------------

// Numbers values in the order in which they are written and drops those that are not.
static sl_status renumber(sl_plan *p) {
    uint16_t *id;
    sl_value *value;
    sl_status status;
    uint32_t n = 0;
    SL_TRY(sl_alloc(&id, p->n_value, sizeof *id, "value ids"));
    SL_TRY_OUT(sl_alloc(&value, p->n_value, sizeof *value, "values"));
    for (uint32_t i = 0; i < p->n_op; i++) {
        sl_op *op = &p->op[i];
        for (int k = 0; k < sl_op_infos[op->code].n_in; k++) op->in[k] = id[op->in[k]];
        if (op->out == SL_NO_VALUE) continue;
        value[n] = p->value[op->out];
        id[op->out] = (uint16_t)n;
        op->out = (uint16_t)n++;
    }
    p->logits = id[p->logits];
    sl_free(p->value);
    p->value = value;
    p->n_value = n;
out:
    sl_free(id);
    return status;
}

// ---- SL_FUSE_BEST -------------------------------------------------------------------------------

static sl_status add_best(sl_plan *p) {
    if (p->n_value + 1 >= SL_NO_VALUE)
        return SL_FAIL(SL_UNSUPPORTED, "the model needs more than %d values", SL_NO_VALUE);
    SL_TRY(sl_realloc(&p->value, p->n_value, p->n_value + 1, sizeof *p->value, "values"));
    SL_TRY(sl_realloc(&p->op, p->n_op, p->n_op + 1, sizeof *p->op, "ops"));
    p->best = (uint16_t)p->n_value++;
    p->value[p->best] = (sl_value){.kind = SL_VALUE_F32, .logit_rows = 1, .n_col = 2};
    p->op[p->n_op++] = (sl_op){.code = SL_OP_BEST,
                               .layer = -1,
                               .in = {p->logits, SL_NO_VALUE},
                               .out = p->best,
                               .weight = {SL_NO_WEIGHT, SL_NO_WEIGHT}};
    return SL_OK;
}

// ---- all of them --------------------------------------------------------------------------------

static sl_status run(sl_plan *p, uint32_t fusion) {
    rewriter r;
    sl_status status;
    SL_TRY_OUT(init(&r, p));
    if (fusion == SL_FUSE_ACT16) SL_TRY_OUT(fuse_act16(&r));
    else fuse_matmul_add(&r);
    replace_program(&r);
    status = renumber(p);
out:
    deinit(&r);
    return status;
}

sl_status sl_plan_rewrite(sl_plan *plan, uint32_t fusions) {
    if (fusions & ~(uint32_t)(SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD | SL_FUSE_WORKERS | SL_FUSE_BEST))
        return SL_FAIL(SL_BAD_ARG, "unknown fusions 0x%x", fusions);
    if (fusions & SL_FUSE_ACT16) SL_TRY(run(plan, SL_FUSE_ACT16));
    if (fusions & SL_FUSE_MATMUL_ADD) SL_TRY(run(plan, SL_FUSE_MATMUL_ADD));
    if (fusions & SL_FUSE_WORKERS) sl_plan_assign_workers(plan);
    return fusions & SL_FUSE_BEST ? add_best(plan) : SL_OK;
}
