// SPDX-License-Identifier: MIT
// sl_test: MODULES plan LIBS jansson
//
// Plans of all families: that they hold what ir.h promises, whichever worker is the faster one; that
// verify sees each kind of corruption; that rewrites, costs and prints are right.
#include <jansson.h>

#include "base/alloc.h"
#include "plan_run.h"

static const char *const archs[] = {"llama", "smollm3", "qwen2", "qwen3", "gemma2", "gemma3"};

static uint32_t count_ops(const sl_plan *p, sl_opcode code) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_op; i++) n += p->op[i].code == code;
    return n;
}

TEST(every_family_runs_in_any_order_between_barriers) {
    static const sl_type types[] = {SL_TYPE_F32, SL_TYPE_Q8_0};
    for (size_t a = 0; a < SL_COUNT(archs); a++)
        for (size_t k = 0; k < SL_COUNT(types); k++)
            for (uint32_t fusions = 0; fusions < 16; fusions++) {
                model_recipe r = quantised(archs[a], types[k]);
                r.untied = a % 2, r.biases = a % 3 == 0;
                sl_plan *p = plan_for(&r, fusions % 8, fusions < 8 ? 8 : 1);
                for (int i = 0; i < 10; i++) CHECK(runs_in_any_order(p));
                CHECK(p->value_bytes <= 64 * 1024);
                sl_plan_destroy(p);
            }
}

static void check_lost_barriers(uint32_t fusions, uint32_t n_row, uint32_t n_least) {
    model_recipe r = quantised("llama", SL_TYPE_Q8_0);
    sl_plan *p = plan_for(&r, fusions, n_row);
    uint32_t n_seen = 0, n_barrier = 0;
    for (uint32_t i = 0; i < p->n_op; i++) {
        if (!p->op[i].barrier) continue;
        p->op[i].barrier = 0;
        bool ok = true;
        for (int k = 0; k < 40; k++) ok &= runs_in_any_order(p);
        n_seen += !ok;
        n_barrier++;
        p->op[i].barrier = 1;
    }
    CHECK(n_barrier >= n_least);
    CHECK_INT(n_seen, n_barrier);
    sl_plan_destroy(p);
}

TEST(the_run_without_numbers_sees_a_lost_barrier) { // the negative control of the test above
    check_lost_barriers(0, 8, 30);
    check_lost_barriers(7, 8, 30);
    check_lost_barriers(7, 1, 15);
}

// ---- rewrites -----------------------------------------------------------------------------------

TEST(quantised_matrices_read_act16) {
    model_recipe r = quantised("llama", SL_TYPE_Q8_0);
    sl_plan *p = plan_of(&r, SL_FUSE_ACT16);
    CHECK_INT(count_ops(p, SL_OP_NORM), 0);
    CHECK_INT(count_ops(p, SL_OP_GLU), 0);
    CHECK_INT(count_ops(p, SL_OP_NORM_QUANT), 2 * 3 + 1);
    CHECK_INT(count_ops(p, SL_OP_GLU_QUANT), 3);
    CHECK_INT(count_ops(p, SL_OP_QUANT), 3); // of attention
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].code == SL_OP_MATMUL) CHECK_INT(p->value[p->op[i].in[0]].kind, SL_VALUE_ACT16);
    sl_plan_destroy(p);
}

TEST(float_matrices_stay_as_they_are) {
    model_recipe r = quantised("llama", SL_TYPE_F16);
    sl_plan *plain = plan_of(&r, 0), *p = plan_of(&r, SL_FUSE_ACT16);
    CHECK_INT(p->n_op, plain->n_op);
    for (uint32_t i = 0; i < p->n_op; i++) CHECK(!sl_op_infos[p->op[i].code].fused);
    sl_plan_destroy(plain);
    sl_plan_destroy(p);
}

TEST(a_value_read_both_ways_is_kept_in_both_forms_once) {
    static const edit edits[] = {RETYPE_T("blk.1.attn_v.weight", SL_TYPE_F16),
                                 RETYPE_T("blk.2.ffn_down.weight", SL_TYPE_F32), END};
    model_recipe r = quantised("llama", SL_TYPE_Q4_0);
    r.edits = edits;
    sl_plan *p = plan_of(&r, SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD);
    CHECK_INT(count_ops(p, SL_OP_NORM), 1); // before layer 1's attention
    CHECK_INT(count_ops(p, SL_OP_QUANT), 3 + 1);
    CHECK_INT(count_ops(p, SL_OP_GLU), 1); // only a float matrix reads it
    for (uint32_t i = 0; i < p->n_op; i++) {
        const sl_op *op = &p->op[i];
        if (op->code != SL_OP_MATMUL && op->code != SL_OP_MATMUL_ADD) continue;
        bool is_float = sl_type_find(p->weight[op->weight[0]].type)->blk_len == 1;
        CHECK_INT(p->value[op->in[0]].kind, is_float ? SL_VALUE_F32 : SL_VALUE_ACT16);
    }
    sl_plan_destroy(p);
}

TEST(residuals_join_their_product) {
    for (size_t a = 0; a < SL_COUNT(archs); a++) {
        model_recipe r = recipe(archs[a]);
        sl_plan *p = plan_of(&r, SL_FUSE_MATMUL_ADD);
        bool gemma = arch_is(&r, "gemma"); // a norm stands between
        CHECK_INT(count_ops(p, SL_OP_ADD), gemma ? 6 : 0);
        CHECK_INT(count_ops(p, SL_OP_MATMUL_ADD), gemma ? 0 : 6);
        sl_plan_destroy(p);
    }
}

TEST(an_unknown_fusion_is_refused) {
    model_recipe r = recipe("llama");
    sl_model *m = make_model(&r);
    sl_plan *p;
    CHECK_INT(sl_plan_create(&p, m, &(sl_plan_options){.shape = shape8, .fusions = 1u << 31}), SL_BAD_ARG);
    CHECK(p == NULL);
    sl_model_close(m);
}

// ---- layout -------------------------------------------------------------------------------------

TEST(no_barrier_but_those_of_the_data) {
    model_recipe r = quantised("llama", SL_TYPE_Q8_0);
    sl_plan *p = plan_of(&r, SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_op; i++) n += p->op[i].barrier;
    // norm, qkv, rope, kv write, attend, quant, output, norm, gate and up, glu, down; gather, norm,
    // output at the end
    CHECK_INT(n, 3 * 11 + 3);
    sl_plan_destroy(p);
}

static uint32_t count_barriers(const char *arch, uint32_t n_row) {
    model_recipe r = quantised(arch, SL_TYPE_Q8_0);
    sl_plan *p = plan_for(&r, SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD | SL_FUSE_WORKERS, n_row);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_op; i++) n += p->op[i].barrier;
    sl_plan_destroy(p);
    return n;
}

TEST(narrow_steps_wait_less) {
    for (size_t a = 0; a < SL_COUNT(archs); a++) {
        // qkv with the cache, attend, output, gate and up, down; the logits for the first qkv, which waits for nothing
        bool softcap = strcmp(archs[a], "gemma2") == 0; // of the logits
        CHECK_INT(count_barriers(archs[a], 1), 3 * 5 + softcap);
        bool gemma = strncmp(archs[a], "gemma", 5) == 0; // norms and sums behind products
        CHECK_INT(count_barriers(archs[a], 8), 3 * (gemma ? 13 : 9) + 3 + softcap);
    }
    CHECK(count_barriers("llama", 9) == 3 * 11 + 3); // work enough in each op
}

TEST(the_workspace_is_small_and_does_not_grow_with_depth) {
    model_recipe r = recipe("llama");
    sl_plan *few = plan_of(&r, 3);
    r.n_layer = 30;
    sl_plan *many = plan_of(&r, 3);
    CHECK_INT(few->value_bytes, many->value_bytes);
    sl_plan_destroy(few);
    sl_plan_destroy(many);
}

static sl_status wants_scratch(void *user, const sl_plan *plan, const sl_op *op, sl_op_need *need) {
    (void)plan;
    if (op->code == SL_OP_SOFTCAP) return SL_FAIL(SL_UNSUPPORTED, "no softcap here");
    need->scratch_bytes = op->code == SL_OP_ATTEND ? *(uint64_t *)user : 10;
    return SL_OK;
}

TEST(scratch_is_the_most_that_an_op_wants) {
    model_recipe r = recipe("llama");
    sl_model *m = make_model(&r);
    sl_plan *p;
    uint64_t want = 1000;
    sl_plan_options options = {.shape = shape8, .supports = wants_scratch, .user = &want};
    REQUIRE_OK(sl_plan_create(&p, m, &options), sl_error_text());
    CHECK_INT(p->scratch_bytes, 1024);
    CHECK(p->scratch_off >= p->value_bytes && p->workspace_bytes == p->scratch_off + 1024);
    sl_plan_destroy(p);
    want = UINT64_MAX - 10;
    CHECK_INT(sl_plan_create(&p, m, &options), SL_NO_MEMORY);
    sl_model_close(m);
    r = recipe("gemma2");
    m = make_model(&r);
    CHECK_INT(sl_plan_create(&p, m, &options), SL_UNSUPPORTED);
    CHECK(p == NULL);
    sl_model_close(m);
}

#define SHAPE(rows, logits, ctx, slots, blks, k, v)                                                          \
    {                                                                                                        \
        .n_row_max = (rows), .n_logit_max = (logits), .n_ctx = (ctx), .n_slot = (slots), .n_kv_blk = (blks), \
        .type_k = (k), .type_v = (v)                                                                         \
    }

TEST(only_layers_that_see_the_first_block_score_it_apart) {
    static const edit window[] = {INT(".attention.sliding_window", 64), END};
    model_recipe r = recipe("gemma2"); // every other layer has a window
    r.edits = window;
    sl_model *m = make_model(&r);
    for (uint32_t n_ctx = 96; n_ctx <= 128; n_ctx += 32) { // in 96 positions, windows of 64 may reach into it
        sl_plan *p;
        sl_plan_shape shape = SHAPE(1, 1, n_ctx, 1, 8, SL_TYPE_F16, SL_TYPE_F16);
        uint32_t n_wide = 0;
        shape.moves = 1;
        REQUIRE_OK(sl_plan_create(&p, m, &(sl_plan_options){.shape = shape}), sl_error_text());
        for (uint32_t i = 0; i < p->n_kv; i++) n_wide += p->kv[i].window == 0;
        CHECK(n_wide > 0 && n_wide < p->n_kv);
        CHECK_INT(count_ops(p, SL_OP_ATTEND_SINKS), n_ctx == 96 ? p->n_kv : n_wide);
        CHECK_INT(count_ops(p, SL_OP_ATTEND), n_ctx == 96 ? 0 : p->n_kv - n_wide);
        sl_plan_destroy(p);
        shape.n_ctx++; // not whole blocks
        CHECK_INT(sl_plan_create(&p, m, &(sl_plan_options){.shape = shape}), SL_BAD_ARG);
    }
    sl_model_close(m);
}

TEST(an_impossible_shape_is_refused) {
    static const sl_plan_shape shapes[] = {
        SHAPE(0, 1, 64, 1, 1, 0, 0),
        SHAPE(1, 0, 64, 1, 1, 0, 0),
        SHAPE(2, 3, 64, 1, 1, 0, 0),
        SHAPE(1, 1, 0, 1, 1, 0, 0),
        SHAPE(1, 1, 64, 0, 1, 0, 0),
        SHAPE(1, 1, 64, 1, 0, 0, 0),
        SHAPE(1u << 21, 1, 64, 1, 1, 0, 0),
        SHAPE(1, 1, 64, 1, UINT32_MAX, 0, 0),
        SHAPE(1, 1, 64, 1, 1, SL_TYPE_Q6_K, 0),
        SHAPE(1, 1, 64, 1, 1, 0, 77),
    };
    model_recipe r = recipe("llama");
    sl_model *m = make_model(&r);
    for (size_t i = 0; i < SL_COUNT(shapes); i++) {
        sl_plan *p = (sl_plan *)m;
        sl_status status = sl_plan_create(&p, m, &(sl_plan_options){.shape = shapes[i]});
        CHECK_INT(status, i < 8 ? SL_BAD_ARG : SL_UNSUPPORTED);
        CHECK(p == NULL);
    }
    sl_model_close(m);
}

// ---- cost and prints ----------------------------------------------------------------------------

TEST(cost_counts_what_must_move) {
    static const edit window[] = {INT(".attention.sliding_window", 7), END};
    model_recipe r = recipe("qwen3");
    for (int k = 0; k < 2; k++) {
        r.edits = k ? window : NULL;
        sl_plan *p = plan_of(&r, 0);
        uint64_t all = 0;
        for (uint32_t i = 0; i < p->n_weight; i++) all += p->weight[i].n_bytes;
        sl_cost one = sl_plan_cost(p, 1, 1, 0);
        CHECK_INT(one.weight_bytes,
                  all + 64 * 4); // the tied table is read whole at the end, and one row at the start
        CHECK_INT(one.kv_write_bytes, 3 * 2 * 32 * (2 + 4)); // layers, heads, columns, F16 and F32
        for (uint32_t n_past = 0; n_past < 20; n_past += 3)
            for (uint32_t n_row = 1; n_row < 9; n_row++) {
                sl_cost c = sl_plan_cost(p, n_row, 0, n_past);
                uint64_t seen = 0, oldest = n_past + n_row;
                for (uint64_t pos = n_past; pos < n_past + n_row; pos++) {
                    uint64_t first = k && pos + 1 > 7 ? pos + 1 - 7 : 0;
                    seen += pos + 1 - first;
                    if (first < oldest) oldest = first;
                }
                uint64_t matrices = 3 * (64 * 128 * 2 + 64 * 64 * 2 + 64 * 96 * 3);
                CHECK_INT(c.n_mac, n_row * matrices + 3 * seen * 4 * (32 + 32));
                CHECK_INT(c.kv_read_bytes, (n_past + n_row - oldest) * 3 * 2 * 32 * (2 + 4));
            }
        sl_plan_destroy(p);
    }
}

static char *explained(const sl_plan *p, void print(const sl_plan *, sl_buf *)) {
    sl_buf buf = {0};
    char *text;
    print(p, &buf);
    REQUIRE_OK(sl_buf_take(&buf, &text, NULL), sl_error_text());
    return text;
}

TEST(prints_are_the_same_each_time) {
    for (size_t a = 0; a < SL_COUNT(archs); a++) {
        model_recipe r = quantised(archs[a], SL_TYPE_Q8_0);
        sl_plan *p = plan_of(&r, 3), *q = plan_of(&r, 3);
        char *x = explained(p, sl_plan_explain), *y = explained(q, sl_plan_explain);
        CHECK_TEXT(x, y);
        CHECK(strstr(x, "attend") && strstr(x, "blk.2.ffn_down.weight Q8_0 64 x 96"));
        sl_free(x);
        sl_free(y);
        sl_plan_destroy(p);
        sl_plan_destroy(q);
    }
}

TEST(the_json_print_is_json_and_complete) {
    model_recipe r = quantised("gemma3", SL_TYPE_Q8_0);
    sl_plan *p = plan_of(&r, 3);
    char *text = explained(p, sl_plan_explain_json);
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root) test_failed(__FILE__, __LINE__, "line %d: %s", error.line, error.text), test_end();
    json_t *ops = json_object_get(root, "ops");
    REQUIRE(json_array_size(ops) == p->n_op);
    CHECK_INT(json_array_size(json_object_get(root, "values")), p->n_value);
    CHECK_INT(json_array_size(json_object_get(root, "weights")), p->n_weight);
    CHECK_INT(json_array_size(json_object_get(root, "kv")), p->n_kv);
    CHECK_INT(json_array_size(json_object_get(root, "ropes")), p->n_rope);
    for (uint32_t i = 0; i < p->n_op; i++) {
        json_t *op = json_array_get(ops, i), *out = json_object_get(op, "out");
        CHECK_TEXT(json_string_value(json_object_get(op, "op")), sl_op_infos[p->op[i].code].name);
        CHECK_INT(json_is_true(json_object_get(op, "barrier")), p->op[i].barrier);
        CHECK(json_is_string(json_object_get(op, "who")));
        CHECK_INT(out ? json_integer_value(out) : SL_NO_VALUE, p->op[i].out);
    }
    CHECK_INT(json_integer_value(json_object_get(json_object_get(root, "totals"), "kv_bytes")), p->kv_bytes);
    json_decref(root);
    sl_free(text);
    sl_plan_destroy(p);
}

TEST(no_memory_is_an_error_and_no_leak) {
    model_recipe r = quantised("gemma2", SL_TYPE_Q8_0);
    sl_model *m = make_model(&r);
    sl_status status = SL_NO_MEMORY;
    int n = 0;
    while (status == SL_NO_MEMORY && n++ < 1000) {
        sl_plan *p = (sl_plan *)m;
        sl_alloc_fail_at((uint64_t)n);
        status = sl_plan_create(&p, m, &(sl_plan_options){.shape = shape8, .fusions = 3});
        sl_alloc_fail_at(0);
        CHECK((status == SL_OK) == (p != NULL));
        sl_plan_destroy(p);
    }
    CHECK_INT(status, SL_OK);
    CHECK(n > 15);
    sl_model_close(m);
}
