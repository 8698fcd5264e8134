// SPDX-License-Identifier: MIT
// sl_test: MODULES plan
//
// Verify sees each kind of corruption, and what it lets pass runs.
#include "plan_run.h"

static sl_plan *victim;

static uint32_t find_op(sl_opcode code, int nth) {
    for (uint32_t i = 0; i < victim->n_op; i++)
        if (victim->op[i].code == code && nth-- == 0) return i;
    return test_failed(__FILE__, __LINE__, "no op %s", sl_op_infos[code].name), 0;
}
#define OPS(code, nth) (&victim->op[find_op(SL_OP_##code, nth)])

// Each corrupts the plan in one way. `what` is part of the reason that verify must give.
#define CORRUPTIONS(X)                                                                                                 \
    X(unknown_code, OPS(NORM, 0)->code = SL_OP_COUNT, "code")                                                          \
    X(barrier_of_two, OPS(NORM, 0)->barrier = 2, "barrier")                                                            \
    X(lost_barrier, OPS(ATTEND, 1)->barrier = 0, "barrier is missing")                                                 \
    X(needless_barrier, OPS(ROPE, 1)->barrier = 1, "barrier is of no use")                                             \
    X(barrier_at_start, victim->op[0].barrier = 1, "barrier is of no use")                                             \
    X(input_out_of_range, OPS(ADD, 0)->in[1] = (uint16_t)victim->n_value, "input 1")                                   \
    X(input_missing, OPS(ADD, 0)->in[1] = SL_NO_VALUE, "input 1")                                                      \
    X(input_too_many, OPS(MATMUL, 0)->in[1] = 0, "input 1")                                                            \
    X(output_missing, OPS(NORM, 1)->out = SL_NO_VALUE, "output")                                                       \
    X(output_of_kv_write, OPS(KV_WRITE, 0)->out = 0, "output")                                                         \
    X(output_out_of_range, OPS(NORM, 1)->out = 60000, "output")                                                        \
    X(written_twice, OPS(ROPE, 1)->out = OPS(ROPE, 0)->out, "a second time")                                           \
    X(read_before_written, OPS(NORM, 0)->in[0] = victim->logits, "before it is written")                               \
    X(reads_itself, OPS(ADD, 1)->in[0] = OPS(ADD, 1)->out, "before it is written")                                     \
    X(weight_out_of_range, OPS(MATMUL, 2)->weight[0] = (uint16_t)victim->n_weight, "weight 0")                         \
    X(weight_missing, OPS(MATMUL, 2)->weight[0] = SL_NO_WEIGHT, "weight 0")                                            \
    X(weight_too_many, OPS(ADD, 0)->weight[0] = 0, "weight 0")                                                         \
    X(weight_of_other_shape, OPS(MATMUL, 0)->weight[0] = OPS(MATMUL, 6)->weight[0], "not so")                          \
    X(bias_of_other_shape, OPS(MATMUL, 0)->weight[1] = OPS(MATMUL, 1)->weight[1], "not so")                            \
    X(bias_is_a_matrix, OPS(MATMUL, 0)->weight[1] = OPS(MATMUL, 0)->weight[0], "not so")                               \
    X(matrix_is_a_norm, OPS(NORM, 0)->weight[0] = OPS(MATMUL, 0)->weight[0], "not so")                                 \
    X(columns, victim->value[OPS(GLU, 0)->out].n_col += 1, "not so")                                                   \
    X(no_columns, victim->value[OPS(GLU, 0)->out].n_col = 0, "columns")                                                \
    X(value_kind, victim->value[OPS(GLU, 0)->out].kind = SL_VALUE_ACT16, "not so")                                     \
    X(value_kind_unknown, victim->value[OPS(GLU, 0)->out].kind = 7, "kind")                                            \
    X(rows_of_logits, victim->value[OPS(GATHER, 0)->out].logit_rows = 0, "not so")                                     \
    X(rows_of_step, victim->value[OPS(GLU, 0)->out].logit_rows = 1, "not so")                                          \
    X(norm_group, OPS(NORM, 0)->attr.norm.group = 32, "not so")                                                        \
    X(norm_eps, OPS(NORM, 0)->attr.norm.eps = NAN, "not so")                                                           \
    X(rope_heads, OPS(ROPE, 0)->attr.rope.n_head = 3, "not so")                                                        \
    X(rope_columns, OPS(ROPE, 0)->attr.rope.n_rot = 64, "not so")                                                      \
    X(rope_by_no_table, OPS(ROPE, 1)->in[1] = OPS(ROPE, 1)->in[0], "not so")                                           \
    X(rope_table_out_of_range, OPS(ROPE_TABLE, 0)->attr.rope_table.rope = 9, "not so")                                 \
    X(kv_layer_out_of_range, OPS(KV_WRITE, 0)->attr.kv.kv_layer = 3, "not so")                                         \
    X(kv_layer_written_twice, OPS(KV_WRITE, 1)->attr.kv.kv_layer = 0, "not so")                                        \
    X(kv_layer_read_early, OPS(ATTEND, 0)->attr.attend.kv_layer = 2, "not so")                                         \
    X(kv_of_queries, swap_queries_and_values(), "not so")                                                              \
    X(attend_heads, OPS(ATTEND, 0)->attr.attend.n_head = 3, "not so")                                                  \
    X(attend_window, OPS(ATTEND, 0)->attr.attend.window = 5, "not so")                                                 \
    X(attend_scale, OPS(ATTEND, 0)->attr.attend.scale = 0, "not so")                                                   \
    X(attend_softcap, OPS(ATTEND, 0)->attr.attend.softcap = -1, "not so")                                              \
    X(embed_scale, OPS(EMBED, 0)->attr.embed.scale = INFINITY, "not so")                                               \
    X(act, OPS(GLU, 0)->attr.glu.act = 9, "not so")                                                                    \
    X(row_bytes, victim->value[2].row_bytes += 64, "value 2")                                                          \
    X(misaligned, victim->value[2].off += 4, "value 2")                                                                \
    X(past_the_workspace, victim->value[2].off = victim->value_bytes, "do not end")                                    \
    X(far_past_the_workspace, victim->value[2].off = UINT64_MAX - 63, "value 2")                                       \
    X(all_at_the_start, pile_up(), "do not end")                                                                       \
    X(over_the_residual, victim->value[OPS(NORM, 0)->out].off = victim->value[OPS(NORM, 0)->in[0]].off, "over value")  \
    X(over_the_table, victim->value[OPS(NORM, 1)->out].off = victim->value[OPS(ROPE_TABLE, 0)->out].off, "over value") \
    X(half_over, victim->value[OPS(ADD, 0)->out].off += 64, "over value")                                              \
    X(value_bytes, victim->value_bytes += 64, "do not end")                                                            \
    X(scratch_inside, victim->scratch_off = 0, "scratch")                                                              \
    X(workspace_bytes, victim->workspace_bytes -= 64, "scratch")                                                       \
    X(more_rows, victim->shape.n_row_max += 1, "")                                                                     \
    X(kv_bytes, victim->kv_bytes += 64, "KV pool")                                                                     \
    X(kv_overlap, victim->kv[1].k_off = victim->kv[0].v_off, "kv layer 1")                                             \
    X(kv_block_bytes, victim->kv[1].v_blk_bytes /= 2, "kv layer 1")                                                    \
    X(kv_type, victim->kv[1].type_k = SL_TYPE_Q8_0, "kv layer 1")                                                      \
    X(kv_heads, victim->kv[0].n_head_kv = 0, "kv layer 0")                                                             \
    X(more_blocks, victim->shape.n_kv_blk += 1, "kv layer 0")                                                          \
    X(weight_type, victim->weight[3].type = 77, "weight 3")                                                            \
    X(weight_bytes, victim->weight[3].n_bytes -= 1, "weight 3")                                                        \
    X(weight_rows, victim->weight[3].n_row = 0, "weight 3")                                                            \
    X(weight_name, victim->weight[3].name[0] = 0, "weight 3")                                                          \
    X(rope_set, victim->rope[0].inv_freq_at = 1, "rotary set 0")                                                       \
    X(rope_nan, victim->inv_freq[3] = NAN, "rotary set 0")                                                             \
    X(rope_mscale, victim->rope[0].mscale = 0, "rotary set 0")                                                         \
    X(logits_missing, victim->logits = SL_NO_VALUE, "no logits")                                                       \
    X(logits_elsewhere, victim->logits = OPS(ADD, 0)->out, "never read")                                               \
    X(fewer_words, victim->n_vocab -= 1, "logits")                                                                     \
    X(op_cut_off, victim->n_op -= 1, "no logits")                                                                      \
    X(no_ops, victim->n_op = 0, "0 ops")

static void pile_up(void) {
    for (uint32_t v = 0; v < victim->n_value; v++) victim->value[v].off = 0;
}

static void swap_queries_and_values(void) {
    uint16_t *v = &OPS(KV_WRITE, 0)->in[1], *q = &OPS(ROPE, 1)->in[0], swap = *v;
    *v = *q, *q = swap;
}

static void check_caught(const char *name, const char *what) {
    sl_error_clear();
    sl_status status = sl_plan_verify(victim);
    if (status != SL_INTERNAL || !strstr(sl_error_text(), what))
        test_failed(__FILE__, __LINE__, "%s: status %d, \"%s\", wanted \"%s\"", name, status, sl_error_text(), what);
    sl_plan_destroy(victim);
}

TEST(verify_sees_each_kind_of_corruption) {
    model_recipe r = recipe("qwen2"); // it has biases
#define X(name, change, what)                 \
    victim = plan_of(&r, 0);                  \
    CHECK_INT(sl_plan_verify(victim), SL_OK); \
    change;                                   \
    check_caught(#name, what);
    CORRUPTIONS(X)
#undef X
}

// In programs whose workers wait less.
#define WORKER_CORRUPTIONS(X)                                                      \
    X(unknown_who, OPS(ROPE, 0)->who = 3, "not so")                                \
    X(alone_but_shared, OPS(NORM_QUANT, 0)->who = SL_WHO_ALL, "not so")            \
    X(shared_but_alone, victim->value[OPS(MATMUL, 0)->out].each = 1, "not so")     \
    X(product_by_each, OPS(MATMUL, 0)->who = SL_WHO_EACH, "not so")                \
    X(attention_by_each, OPS(ATTEND, 0)->who = SL_WHO_EACH, "not so")              \
    X(logits_by_each, OPS(MATMUL, 3 * 5)->who = SL_WHO_EACH, "not so")             \
    X(gate_by_heads, OPS(GLU_QUANT, 0)->who = SL_WHO_OWN, "not so")                \
    X(head_of_all, OPS(ROPE, 0)->who = SL_WHO_ALL, "not so")                       \
    X(cache_of_all, OPS(KV_WRITE, 0)->who = SL_WHO_ALL, "barrier is missing")      \
    X(torn_heads, victim->value[OPS(MATMUL, 1)->out].unit = 0, "not so")           \
    X(other_heads, victim->value[OPS(MATMUL, 1)->out].unit = 16, "not so")         \
    X(heads_of_a_norm, victim->value[OPS(NORM_QUANT, 0)->out].unit = 32, "not so") \
    X(no_workers, victim->shape.n_worker = 0, "no worker")                         \
    X(more_workers, victim->shape.n_worker += 1, "")                               \
    X(twice_each, victim->value[OPS(NORM_QUANT, 0)->out].each = 2, "value")        \
    X(lost_barrier, OPS(ROPE, 1)->barrier = 0, "barrier is missing")               \
    X(barrier_in_chain, OPS(KV_WRITE, 0)->barrier = 1, "barrier is of no use")

TEST(verify_sees_what_workers_may_not) {
    model_recipe r = quantised("llama", SL_TYPE_Q8_0);
#define X(name, change, what)                 \
    victim = plan_for(&r, 7, 1);              \
    CHECK_INT(sl_plan_verify(victim), SL_OK); \
    change;                                   \
    check_caught(#name, what);
    WORKER_CORRUPTIONS(X)
#undef X
}

static void check_flipped_barriers(uint32_t fusions, uint32_t n_row) {
    model_recipe r = quantised("gemma3", SL_TYPE_Q8_0);
    sl_plan *p = plan_for(&r, fusions, n_row);
    for (uint32_t i = 0; i < p->n_op; i++) {
        p->op[i].barrier ^= 1;
        CHECK_INT(sl_plan_verify(p), SL_INTERNAL);
        p->op[i].barrier ^= 1;
    }
    CHECK_INT(sl_plan_verify(p), SL_OK);
    sl_plan_destroy(p);
}

TEST(verify_sees_each_flipped_barrier) {
    check_flipped_barriers(SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD, 8);
    check_flipped_barriers(SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD | SL_FUSE_WORKERS, 1);
}

// Whatever verify lets pass must still run: random offsets, ids and barriers, many times.
TEST(what_verify_lets_pass_runs) {
    model_recipe r = recipe("llama");
    r.n_layer = 1;
    uint32_t n_passed = 0;
    for (int i = 0; i < 4000; i++) {
        if (i % 100 == 0) {
            if (i) sl_plan_destroy(victim);
            victim = plan_for(&r, (uint32_t)i / 100 % 8, i / 100 % 3 ? 8 : 1);
        }
        sl_value *v = &victim->value[test_below(victim->n_value)], old_value = *v;
        sl_op *op = &victim->op[test_below(victim->n_op)], old_op = *op;
        if (i % 3 == 0) v->off = test_below((uint32_t)(victim->value_bytes / 64)) * 64;
        if (i % 3 == 1) op->in[0] = (uint16_t)test_below(victim->n_value);
        if (i % 3 == 2) op->barrier ^= 1;
        if (sl_plan_verify(victim) == SL_OK) {
            n_passed++;
            for (int k = 0; k < 5; k++) CHECK(runs_in_any_order(victim));
        }
        *v = old_value;
        *op = old_op;
    }
    sl_plan_destroy(victim);
    CHECK(n_passed > 0 && n_passed < 1500);
}
