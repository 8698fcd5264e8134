// SPDX-License-Identifier: MIT
// sl_test: MODULES backend
//
// Backends as such, with plans of a few ops made by hand: what is refused and by which name, steps
// that would leave their memory, barriers, and no allocation in a step.
#include "op/op_rig.h"

#include "base/alloc.h"

enum { N_ROW = 12, N_VOCAB = 50, N_SLOT = 3, N_KV_BLK = 20 };

static int32_t token[N_ROW], pos[N_ROW], slot[N_ROW], blk_table[N_SLOT * RIG_BLK_STRIDE];
static uint8_t wants_logits[N_ROW];
static const rig_rows text = {N_ROW, token, pos, slot, wants_logits, blk_table, NULL, NULL};

// One sequence, positions rising.
static void make_text(void) {
    for (int32_t i = 0; i < N_ROW; i++) token[i] = i, pos[i] = i, slot[i] = 1;
    for (int32_t i = 0; i < N_SLOT * RIG_BLK_STRIDE; i++) blk_table[i] = i % N_KV_BLK;
}

static void start(rig *r) {
    rig_init(r, N_VOCAB, N_SLOT, N_KV_BLK);
    make_text();
}

static float *random_floats(size_t n) {
    float *f = test_guarded(n * sizeof *f);
    for (size_t i = 0; i < n; i++) f[i] = (float)test_normal();
    return f;
}

static void refuse(rig *r, const sl_backend *backend, sl_status status, const char *part) {
    sl_status got = rig_open(r, backend, NULL, 1, 1);
    CHECK_INT(got, status);
    if (!strstr(sl_error_text(), part))
        test_failed(__FILE__, __LINE__, "\"%s\" does not name %s", sl_error_text(), part);
    rig_close(r);
}

TEST(what_a_backend_lacks_is_refused_by_name) {
    const sl_backend *const both[2] = {&sl_backend_ref, &sl_backend_cpu};
    static uint8_t data[4096];
    for (int i = 0; i < 2; i++) {
        rig r;
        start(&r);
        uint16_t in = rig_value(&r, SL_VALUE_F32, 64, NULL), out = rig_value(&r, SL_VALUE_F32, 4, NULL);
        rig_op(&r, SL_OP_MATMUL, in, SL_NO_VALUE, out)->weight[0] =
            rig_weight(&r, "blk.5.ffn_up.weight", (sl_type)16, 4, 64, data); // iq2_xxs
        refuse(&r, both[i], SL_UNSUPPORTED, "blk.5.ffn_up.weight");
        start(&r);
        in = rig_value(&r, SL_VALUE_F32, 64, NULL), out = rig_value(&r, SL_VALUE_F32, 64, NULL);
        sl_op *op = rig_op(&r, SL_OP_NORM, in, SL_NO_VALUE, out);
        op->attr.norm.group = 64;
        op->weight[0] = rig_weight(&r, "attn_norm.weight", SL_TYPE_F16, 1, 64, data);
        refuse(&r, both[i], SL_UNSUPPORTED, "attn_norm.weight");
        start(&r);
        rig_kv(&r, 1, 8, 8, SL_TYPE_F16, SL_TYPE_F16);
        r.kv[0].type_k = SL_TYPE_Q4_K;
        rig_op(&r, SL_OP_KV_WRITE, rig_value(&r, SL_VALUE_F32, 8, NULL), rig_value(&r, SL_VALUE_F32, 8, NULL),
               SL_NO_VALUE);
        refuse(&r, both[i], SL_UNSUPPORTED, "layer 5");
        CHECK(strstr(sl_error_text(), "Q4_K"));
    }
    rig r;
    start(&r);
    rig_op(&r, SL_OP_QUANT, rig_value(&r, SL_VALUE_F32, 64, NULL), SL_NO_VALUE,
           rig_value(&r, SL_VALUE_ACT16, 64, NULL));
    refuse(&r, &sl_backend_ref, SL_UNSUPPORTED, "quant");
    start(&r);
    rig_op(&r, SL_OP_MATMUL, rig_value(&r, SL_VALUE_F32, 256, NULL), SL_NO_VALUE, rig_value(&r, SL_VALUE_F32, 4, NULL))
        ->weight[0] = rig_weight(&r, "output.weight", SL_TYPE_Q4_K, 4, 256, data);
    refuse(&r, &sl_backend_cpu, SL_UNSUPPORTED, "16-bit");
}

TEST(unknown_levels_are_refused) {
    sl_device *device = (sl_device *)&device;
    CHECK_INT(sl_backend_cpu.open(&device, &(sl_device_options){.level = "sse9"}), SL_BAD_ARG);
    CHECK(device == NULL && strstr(sl_error_text(), "sse9"));
    CHECK(sl_backend_find("cpu") == &sl_backend_cpu && sl_backend_find("ref") == &sl_backend_ref &&
          !sl_backend_find("tpu"));
    size_t n = 0;
    for (; sl_backend_at(n); n++) CHECK(sl_backend_find(sl_backend_at(n)->name) == sl_backend_at(n));
    CHECK(n >= 2 && sl_backend_at(n - 1) == &sl_backend_ref);
}

TEST(a_step_that_would_leave_its_memory_is_refused) {
    const sl_backend *const both[2] = {&sl_backend_ref, &sl_backend_cpu};
    for (int i = 0; i < 2; i++) {
        rig r;
        start(&r);
        uint16_t in = rig_value(&r, SL_VALUE_F32, 8, NULL), out = rig_value(&r, SL_VALUE_F32, 8, NULL);
        rig_op(&r, SL_OP_ADD, in, in, out);
        REQUIRE_OK(rig_open(&r, both[i], NULL, 1, 2), sl_error_text());
        memset(rig_row(&r, in, 0), 0, 2 * r.value[in].row_bytes);
        int32_t logit[2] = {0, 1}, tokens[2] = {0, 1}, poses[2] = {0, 1}, slots[2] = {0, 0};
        sl_step step = {.n_row = 2,
                        .n_logit = 2,
                        .token = tokens,
                        .pos = poses,
                        .slot = slots,
                        .logit_row = logit,
                        .blk_table = blk_table,
                        .blk_stride = RIG_BLK_STRIDE};
        const struct {
            int32_t *field, bad;
        } wrong[] = {
            {&step.n_row, 0},
            {&step.n_row, 3},
            {&step.n_row, -1},
            {&step.n_logit, 3},
            {&step.n_logit, -1},
            {&logit[1], 0},
            {&logit[1], 2},
            {&logit[0], -1},
            {&tokens[1], N_VOCAB},
            {&tokens[0], -1},
            {&poses[1], 1 << 30},
            {&poses[1], -1},
            {&poses[0], RIG_BLK_STRIDE * SL_KV_BLK_LEN},
            {&slots[1], N_SLOT},
            {&slots[0], -1},
            {&blk_table[0], -1},
            {&blk_table[0], N_KV_BLK},
        };
        CHECK_INT(both[i]->run(r.program, &step), SL_OK);
        for (size_t j = 0; j < SL_COUNT(wrong); j++) {
            int32_t good = *wrong[j].field;
            *wrong[j].field = wrong[j].bad;
            if (both[i]->run(r.program, &step) != SL_BAD_ARG)
                test_failed(__FILE__, __LINE__, "case %zu was not refused", j);
            *wrong[j].field = good;
        }
        CHECK_INT(both[i]->run(r.program, &step), SL_OK);
        rig_close(&r);
    }
}

TEST(a_step_allocates_nothing) {
    rig r;
    start(&r);
    rig_kv(&r, 2, 16, 16, SL_TYPE_F16, SL_TYPE_F16);
    uint16_t kv = rig_value(&r, SL_VALUE_F32, 32, random_floats(N_ROW * 32)),
             out = rig_value(&r, SL_VALUE_F32, 32, NULL);
    rig_op(&r, SL_OP_KV_WRITE, kv, kv, SL_NO_VALUE);
    rig_op(&r, SL_OP_ATTEND, kv, SL_NO_VALUE, out)->attr.attend = (sl_attr_attend){.n_head = 2, .scale = 1};
    static float cpu_out[4 * 32];
    REQUIRE_OK(rig_open(&r, &sl_backend_cpu, NULL, 2, 4), sl_error_text());
    uint64_t before = sl_alloc_count();
    for (int i = 0; i < 3; i++) rig_step(&r, &text, 4 * i, 4, out, cpu_out);
    CHECK_INT(sl_alloc_count(), before);
    rig_close(&r);
}

// The first ops run on thread 0 alone, and long; the barrier between them may be left out, but not
// the one before the product, although that op itself does not ask for one: it reads what lies
// before the barrier that was left out.
TEST(a_barrier_left_out_is_made_up_for) {
    enum { N = 1 << 16, N_OUT = 32 };
    float *x = random_floats((size_t)N_ROW * N), *w = random_floats((size_t)N * N_OUT);
    static float want[N_ROW * N_OUT], got[N_ROW * N_OUT];
    for (int n_thread = 1; n_thread <= 3; n_thread++) {
        rig r;
        start(&r);
        uint16_t in = rig_value(&r, SL_VALUE_F32, N, x), gated = rig_value(&r, SL_VALUE_F32, N, NULL);
        uint16_t sum = rig_value(&r, SL_VALUE_F32, N, NULL), out = rig_value(&r, SL_VALUE_F32, N_OUT, NULL);
        rig_op(&r, SL_OP_GLU, in, in, gated)->barrier = 0;
        rig_op(&r, SL_OP_ADD, gated, gated, sum)->barrier = 1;
        sl_op *product = rig_op(&r, SL_OP_MATMUL, gated, SL_NO_VALUE, out);
        product->barrier = 0;
        product->weight[0] = rig_weight(&r, "w", SL_TYPE_F32, N_OUT, N, w);
        for (int turn = 0; turn < 3; turn++) { // the wider the step, the fewer tasks are thread 0's alone
            CHECK_INT(rig_run(&r, &sl_backend_cpu, NULL, n_thread, turn == 2 ? 5 : 1, &text, out,
                              n_thread == 1 && turn == 0 ? want : got),
                      N_ROW);
            if (n_thread > 1 || turn > 0) CHECK(memcmp(want, got, sizeof want) == 0);
        }
    }
}
