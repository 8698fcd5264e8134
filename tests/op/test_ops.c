// SPDX-License-Identifier: MIT
// sl_test: MODULES backend BACKENDS cuda
//
// Every op of ops.def, by a small plan of its own: the backend that is tested against ref, and the same bits on it for
// any width of a step; on cpu also for any number of threads and every level. Fused ops are compared with the
// composition of the plain ones. Adding an op to ops.def without a case here does not compile.
#include "op/op_rig.h"

#include "backend/cpu/kernels/select.h"
enum { N_ROW = 90, N_VOCAB = 50, N_SLOT = 3, N_KV_BLK = 20, MAX_OUT = N_ROW * 2048 };

static const sl_type float_types[] = {SL_TYPE_F32, SL_TYPE_F16, SL_TYPE_BF16};
static const sl_type blk_types[] = {SL_TYPE_Q4_0,   SL_TYPE_Q4_1,   SL_TYPE_Q5_0, SL_TYPE_Q5_1, SL_TYPE_Q8_0,
                                    SL_TYPE_Q2_K,   SL_TYPE_Q3_K,   SL_TYPE_Q4_K, SL_TYPE_Q5_K, SL_TYPE_Q6_K,
                                    SL_TYPE_IQ4_NL, SL_TYPE_IQ4_XS, SL_TYPE_MXFP4};

// ---- the text: three sequences whose rows are mixed, with shuffled blocks -----------------------

static int32_t token[N_ROW], pos[N_ROW], slot[N_ROW], blk_table[N_SLOT * RIG_BLK_STRIDE];
static uint8_t wants_logits[N_ROW];
static rig_rows text = {N_ROW, token, pos, slot, wants_logits, blk_table, NULL, NULL};

static void make_text(void) {
    int32_t next[N_SLOT] = {0};
    for (int32_t i = 0; i < N_ROW; i++) {
        token[i] = (int32_t)test_below(N_VOCAB);
        slot[i] = i < 72 ? 0 : i < 76 ? 1 : i % 3; // runs of consecutive positions, then turns
        pos[i] = next[slot[i]]++;
        wants_logits[i] = i % 4 == 3 || i == 0;
    }
    int32_t order[N_KV_BLK];
    for (int32_t i = 0; i < N_KV_BLK; i++) order[i] = i;
    for (int32_t i = N_KV_BLK - 1; i > 0; i--) {
        int32_t j = (int32_t)test_below((uint32_t)i + 1), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    for (int32_t i = 0; i < N_SLOT * RIG_BLK_STRIDE; i++) blk_table[i] = order[i % N_KV_BLK];
    for (int32_t i = 0; i < N_SLOT; i++)
        for (int32_t j = 0; j < 5; j++) blk_table[i * RIG_BLK_STRIDE + j] = order[i * 5 + j];
}

// Two blocks are seen: the first and a row's own. Only the first slot is that long.
static int32_t moved_cell[N_ROW], moved_skip[N_ROW];

static void move_text(bool moves) {
    make_text();
    for (int32_t i = 0, next[N_SLOT] = {0}; i < N_ROW; i++) {
        int32_t p = next[slot[i]]++, hidden = SL_MAX(p / SL_KV_BLK_LEN - 1, 0) * SL_KV_BLK_LEN;
        moved_cell[i] = p - hidden, moved_skip[i] = hidden / SL_KV_BLK_LEN;
    }
    text.cell = moves ? moved_cell : NULL, text.skip = moves ? moved_skip : NULL;
}

static float *random_floats(size_t n, double scale) {
    float *f = test_guarded(n * sizeof *f);
    for (size_t i = 0; i < n; i++) f[i] = (float)(test_normal() * scale);
    return f;
}

// A matrix of any type whose decoded values are of ordinary size: random blocks, drawn until they
// are.
static void *random_weight(sl_type type, uint32_t n_row, uint32_t n_col) {
    const sl_type_info *info = sl_type_find((uint32_t)type);
    uint32_t n_blk = n_row * (n_col / info->blk_len);
    uint8_t *data = test_guarded((size_t)n_blk * info->blk_bytes);
    for (uint32_t b = 0; b < n_blk; b++) {
        float f[256], most;
        do {
            test_random_bytes(data + (size_t)b * info->blk_bytes, info->blk_bytes);
            sl_quant_decode(type, f, data + (size_t)b * info->blk_bytes, info->blk_len);
            most = 0;
            for (uint32_t i = 0; i < info->blk_len; i++) most = isfinite(f[i]) ? fmaxf(most, fabsf(f[i])) : INFINITY;
        } while (!(most < 2 && (most > 0.01f || info->blk_len == 1)));
    }
    return data;
}

// ---- running ------------------------------------------------------------------------------------

static float ref_out[MAX_OUT], cpu_out[MAX_OUT];
static uint8_t base_out[4 * MAX_OUT], other_out[4 * MAX_OUT];

// Row i of ref's result and of the target's; both have n_col floats.
typedef void check_row_fn(const float *want, const float *got, int32_t row, uint32_t n_col, void *user);

static int32_t run_ref(rig *r, uint16_t value) {
    make_text();
    return rig_run(r, &sl_backend_ref, NULL, 2, 7, &text, value, ref_out);
}

static const sl_backend *target; // NULL: cpu

static size_t out_row_bytes(const rig *r, uint16_t value) {
    const sl_value *v = &r->value[value];
    return v->kind == SL_VALUE_ACT16 ? v->row_bytes : v->n_col * sizeof(float);
}

// One row a step; then the same bits in other steps.
static int32_t run_other(rig *r, uint16_t value) {
    static const int32_t widths[] = {2, 3, 8, N_ROW};
    int32_t n = rig_run(r, target, NULL, 1, 1, &text, value, base_out);
    for (size_t i = 0; i < SL_COUNT(widths); i++) {
        CHECK_INT(rig_run(r, target, NULL, 1, widths[i], &text, value, other_out), n);
        if (memcmp(base_out, other_out, (size_t)n * out_row_bytes(r, value)) != 0)
            test_failed(__FILE__, __LINE__, "%s: other bits in steps of %d", sl_op_infos[r->op[0].code].name,
                        widths[i]);
    }
    return n;
}

// On cpu at generic, one thread, one row; then the same bits everywhere else. The result is left in
// base_out.
static int32_t run_target(rig *r, uint16_t value) {
    if (target) return run_other(r, value);
    size_t n_row_bytes = out_row_bytes(r, value);
    int32_t n = rig_run(r, &sl_backend_cpu, "generic", 1, 1, &text, value, base_out);
    static const struct {
        int n_thread;
        int32_t width;
    } runs[] = {{1, 1}, {2, 3}, {3, 8}, {7, N_ROW}};
    const char *level;
    for (int l = 0; (level = sl_cpu_level_name(l)) != NULL; l++)
        for (size_t i = 0; i < SL_COUNT(runs); i++) {
            sl_device *device;
            if (sl_backend_cpu.open(&device, &(sl_device_options){.n_thread = 1, .level = level}) == SL_DEVICE)
                continue;
            sl_backend_cpu.close(device);
            CHECK_INT(rig_run(r, &sl_backend_cpu, level, runs[i].n_thread, runs[i].width, &text, value, other_out), n);
            if (memcmp(base_out, other_out, (size_t)n * n_row_bytes) != 0)
                test_failed(__FILE__, __LINE__, "%s: other bits with %s, %d threads, steps of %d",
                            sl_op_infos[r->op[0].code].name, level, runs[i].n_thread, runs[i].width);
        }
    return n;
}

// |got - want| <= bound of the element; equal infinities and two NaN are fine.
static void check_near(const float *want, const float *got, size_t n, double relative, double absolute,
                       const char *what) {
    for (size_t i = 0; i < n; i++) {
        if (isnan(want[i]) ? isnan(got[i]) : want[i] == got[i]) continue;
        double err = fabs((double)want[i] - (double)got[i]);
        if (!(err <= relative * fabs((double)want[i]) + absolute))
            test_failed(__FILE__, __LINE__, "%s: element %zu is %.9g, not %.9g", what, i, (double)got[i],
                        (double)want[i]);
    }
}

// The same plan on both, element by element.
static void compare(rig *r, uint16_t value, double relative, double absolute, const char *what) {
    int32_t n = run_ref(r, value);
    CHECK_INT(run_target(r, value), n);
    CHECK(n > 0);
    memcpy(cpu_out, base_out, sizeof cpu_out);
    check_near(ref_out, cpu_out, (size_t)n * r->value[value].n_col, relative, absolute, what);
}

static void start(rig *r) { rig_init(r, N_VOCAB, N_SLOT, N_KV_BLK); }

// Values of every kind of trouble at the front of some rows.
static void put_trouble(float *x, uint32_t n_col) {
    const float bad[] = {0, -0.0f, 1e-42f, -1e-42f, 100, -100, 3e4f, -3e4f};
    for (size_t i = 0; i < SL_COUNT(bad) && i < n_col; i++) x[i] = bad[i];
    x[n_col + n_col - 1] = INFINITY;
    x[2 * n_col] = NAN;
}

// ---- one case for each op -----------------------------------------------------------------------

static void op_embed(void) { // decoding is exact
    for (size_t i = 0; i < SL_COUNT(float_types) + SL_COUNT(blk_types); i++) {
        sl_type type = i < SL_COUNT(float_types) ? float_types[i] : blk_types[i - SL_COUNT(float_types)];
        rig r;
        start(&r);
        uint16_t out = rig_value(&r, SL_VALUE_F32, 512, NULL);
        sl_op *op = rig_op(&r, SL_OP_EMBED, SL_NO_VALUE, SL_NO_VALUE, out);
        op->weight[0] = rig_weight(&r, "token_embd.weight", type, N_VOCAB, 512, random_weight(type, N_VOCAB, 512));
        op->attr.embed.scale = 3.7f;
        compare(&r, out, 0, 0, sl_type_name(type));
    }
}

static void op_rope_table(void) { // the same formula in double, whose cosines may differ in a last bit of theirs
    static double inv_freq[40];
    for (int i = 0; i < 40; i++) inv_freq[i] = pow(10000, -i / 40.0);
    rig r;
    start(&r);
    uint16_t out = rig_value(&r, SL_VALUE_F32, 80, NULL);
    r.plan.inv_freq = inv_freq, r.plan.n_inv_freq = 40, r.plan.n_rope = 1;
    r.rope[0] = (sl_plan_rope){.n_rot = 80, .mscale = 1.25f};
    sl_op *op = rig_op(&r, SL_OP_ROPE_TABLE, SL_NO_VALUE, SL_NO_VALUE, out);
    compare(&r, out, target ? 1.2e-7 : 0, target ? 1e-12 : 0, "rope_table");
    if (target) return; // does not move
    move_text(true);
    compare(&r, out, 0, 0, "rope_table of positions");
    op->attr.rope_table.cells = 1;
    compare(&r, out, 0, 0, "rope_table of cells");
    move_text(false);
}

// Three roundings of cpu: the scale and two products.
static const double NORM_BOUND = 3e-7;

static void op_norm(void) {
    static const struct {
        uint32_t n_col, group;
        bool weight;
    } shapes[] = {{64, 64, true}, {896, 896, true}, {100, 100, false}, {7, 7, true}, {256, 64, true}, {39, 13, false}};
    for (size_t i = 0; i < SL_COUNT(shapes); i++) {
        rig r;
        start(&r);
        uint32_t n = shapes[i].n_col;
        float *x = random_floats((size_t)N_ROW * n, 2);
        put_trouble(x, n);
        uint16_t in = rig_value(&r, SL_VALUE_F32, n, x), out = rig_value(&r, SL_VALUE_F32, n, NULL);
        sl_op *op = rig_op(&r, SL_OP_NORM, in, SL_NO_VALUE, out);
        op->attr.norm = (sl_attr_norm){.eps = 1e-6f, .group = shapes[i].group};
        if (shapes[i].weight)
            op->weight[0] =
                rig_weight(&r, "norm.weight", SL_TYPE_F32, 1, shapes[i].group, random_floats(shapes[i].group, 1));
        compare(&r, out, NORM_BOUND, 1e-44, "norm");
    }
}

// in (N_ROW, n_col) as ref's MATMUL sees it; what 16-bit activations may be off by in one output:
// half a step of each 256 columns times the weights there; and the float sums, by their length.
static double act16_bound(const float *x, const float *w, uint32_t n_col) {
    double bound = 0;
    for (uint32_t first = 0; first < n_col; first += SL_ACT_BLK_LEN) {
        double most = 0, sum = 0, product = 0;
        for (uint32_t i = first; i < n_col && i < first + SL_ACT_BLK_LEN; i++) {
            most = fmax(most, fabs((double)x[i]));
            sum += fabs((double)w[i]);
            product += fabs((double)x[i] * (double)w[i]);
        }
        bound += sum * most / 32639 * 0.51 + 1e-6 * product;
    }
    return bound;
}

static double float_bound(const float *x, const float *w, uint32_t n_col) {
    double sum = 0;
    for (uint32_t i = 0; i < n_col; i++) sum += fabs((double)x[i] * (double)w[i]);
    return sum * (n_col / 16 + 8) * 0x1p-24;
}

// MATMUL or MATMUL_ADD: plain on ref, with QUANT before it and fused on cpu.
static void check_matmul(sl_type type, uint32_t n_out, uint32_t n_col, bool with_bias, bool with_add) {
    bool act16 = sl_type_find((uint32_t)type)->blk_len > 1;
    float *x = random_floats((size_t)N_ROW * n_col, 1), *residual = random_floats((size_t)N_ROW * n_out, 1);
    float *bias = random_floats(n_out, 1), *w = random_floats(n_col, 1);
    for (int i = 0; i < 40; i++) x[test_below(N_ROW * n_col)] *= 50; // outliers
    uint8_t *data = random_weight(type, n_out, n_col);
    rig plain, fused;
    start(&plain), start(&fused);
    rig *both[2] = {&plain, &fused};
    uint16_t out[2];
    for (int i = 0; i < 2; i++) {
        rig *r = both[i];
        uint16_t in = rig_value(r, SL_VALUE_F32, n_col, x), add = rig_value(r, SL_VALUE_F32, n_out, residual), product;
        out[i] = product = rig_value(r, SL_VALUE_F32, n_out, NULL);
        if (i == 1 && act16) {
            uint16_t quant = rig_value(r, SL_VALUE_ACT16, n_col, NULL);
            rig_op(r, SL_OP_QUANT, in, SL_NO_VALUE, quant);
            in = quant;
        }
        bool fuse = i == 1 && with_add;
        sl_op *op = rig_op(r, fuse ? SL_OP_MATMUL_ADD : SL_OP_MATMUL, in, fuse ? add : SL_NO_VALUE, product);
        op->weight[0] = rig_weight(r, "ffn_down.weight", type, n_out, n_col, data);
        if (with_bias) op->weight[1] = rig_weight(r, "bias", SL_TYPE_F32, 1, n_out, bias);
        if (i == 0 && with_add) rig_op(r, SL_OP_ADD, add, product, out[i] = rig_value(r, SL_VALUE_F32, n_out, NULL));
    }
    run_ref(&plain, out[0]);
    CHECK_INT(run_target(&fused, out[1]), N_ROW);
    memcpy(cpu_out, base_out, sizeof cpu_out);
    uint64_t row_bytes = sl_type_row_bytes(sl_type_find((uint32_t)type), n_col);
    for (uint32_t o = 0; o < n_out; o++) {
        sl_quant_decode(type, w, data + o * row_bytes, n_col);
        for (uint32_t row = 0; row < N_ROW; row++) {
            const float *in = x + row * n_col;
            double bound = (act16 ? act16_bound(in, w, n_col) : float_bound(in, w, n_col)) + 2e-6;
            double err = fabs((double)ref_out[row * n_out + o] - (double)cpu_out[row * n_out + o]);
            if (!(err <= bound))
                test_failed(__FILE__, __LINE__, "%s %ux%u: output %u of row %u is off by %g, bound %g",
                            sl_type_name(type), n_out, n_col, o, row, err, bound);
        }
    }
}

static void check_matmul_types(bool with_add) {
    for (size_t i = 0; i < SL_COUNT(float_types); i++) {
        check_matmul(float_types[i], 33, 100, false, with_add);
        check_matmul(float_types[i], 16, 256, true, with_add);
    }
    for (size_t i = 0; i < SL_COUNT(blk_types); i++) {
        check_matmul(blk_types[i], 37, 512, i % 2, with_add);
        if (sl_type_find((uint32_t)blk_types[i])->blk_len == 32)
            check_matmul(blk_types[i], 16, 32 * 11, false, with_add);
        if (target)
            check_matmul(blk_types[i], 300, 256 * 18, true, with_add); // columns and outputs dealt out more than once
    }
}

static void op_matmul(void) { check_matmul_types(false); }
static void op_matmul_add(void) { check_matmul_types(true); }

static void op_rope(void) { // two products and a sum of numbers up to the size of the pair
    static const sl_attr_rope shapes[] = {{3, 64, 64, 0}, {2, 64, 64, 1}, {4, 80, 32, 0}, {1, 6, 6, 1}, {5, 10, 10, 0}};
    for (size_t i = 0; i < SL_COUNT(shapes); i++) {
        rig r;
        start(&r);
        uint32_t n = shapes[i].n_head * shapes[i].head_dim, n_rot = shapes[i].n_rot;
        float *x = random_floats((size_t)N_ROW * n, 1), *table = random_floats((size_t)N_ROW * n_rot, 0.5);
        uint16_t in = rig_value(&r, SL_VALUE_F32, n, x), t = rig_value(&r, SL_VALUE_F32, n_rot, table);
        uint16_t out = rig_value(&r, SL_VALUE_F32, n, NULL);
        rig_op(&r, SL_OP_ROPE, in, t, out)->attr.rope = shapes[i];
        compare(&r, out, 1e-7, 1e-6, "rope");
    }
}

// KV_WRITE and ATTEND together: the pool's order of bytes is the backend's own. v of ordinary size,
// so errors are absolute: scores are off by some 1e-6 of their size, and so are the weights.
// Against codes Q and the weights have 16 bits with a scale for each 32 (tests/kernel/test_attend.c); the codes
// themselves are the same on both.
static const double ATTEND_BOUND = 1e-5, ATTEND_BOUND_CODES = 4e-4;

typedef struct kv_types {
    sl_type k, v;
    bool rotate;
} kv_types;

static void check_attend_of(sl_opcode code, uint32_t n_head, uint32_t n_head_kv, uint32_t head_dim, uint32_t v_dim,
                            kv_types type, uint32_t window, float softcap) {
    rig r;
    start(&r);
    rig_kv(&r, n_head_kv, head_dim, v_dim, type.k, type.v);
    if (type.rotate && sl_kv_code_bits(type.v)) r.kv[0].v_rot = sl_kv_rotation(v_dim);
    float *q = random_floats((size_t)N_ROW * n_head * head_dim, 1),
          *k = random_floats((size_t)N_ROW * n_head_kv * head_dim, 1);
    float *v = random_floats((size_t)N_ROW * n_head_kv * v_dim, 1);
    uint16_t iq = rig_value(&r, SL_VALUE_F32, n_head * head_dim, q),
             ik = rig_value(&r, SL_VALUE_F32, n_head_kv * head_dim, k);
    uint16_t iv = rig_value(&r, SL_VALUE_F32, n_head_kv * v_dim, v), first = SL_NO_VALUE,
             out = rig_value(&r, SL_VALUE_F32, n_head * v_dim, NULL);
    if (code == SL_OP_ATTEND_SINKS)
        first = rig_value(&r, SL_VALUE_F32, n_head * head_dim, random_floats((size_t)N_ROW * n_head * head_dim, 1));
    rig_op(&r, SL_OP_KV_WRITE, ik, iv, SL_NO_VALUE)->attr.kv.kv_layer = 0;
    rig_op(&r, code, iq, first, out)->attr.attend = (sl_attr_attend){
        .kv_layer = 0, .n_head = n_head, .window = window, .scale = 1 / sqrtf((float)head_dim), .softcap = softcap};
    char what[80];
    snprintf(what, sizeof what, "%s %u/%u x %u,%u %s/%s window %u", sl_op_infos[code].name, n_head, n_head_kv, head_dim,
             v_dim, sl_type_name(type.k), sl_type_name(type.v), window);
    bool codes = sl_kv_code_bits(type.k) || sl_kv_code_bits(type.v);
    compare(&r, out, 0, codes ? ATTEND_BOUND_CODES : ATTEND_BOUND, what);
}

static void check_attend(uint32_t n_head, uint32_t n_head_kv, uint32_t head_dim, uint32_t v_dim, kv_types type,
                         uint32_t window, float softcap) {
    check_attend_of(SL_OP_ATTEND, n_head, n_head_kv, head_dim, v_dim, type, window, softcap);
}

static void op_attend_sinks(void) {
    static const kv_types types[] = {{SL_TYPE_F32, SL_TYPE_F32, false},
                                     {SL_TYPE_F16, SL_TYPE_BF16, false},
                                     {SL_TYPE_Q8_0, SL_TYPE_Q8_0, true},
                                     {SL_TYPE_Q4_0, SL_TYPE_F16, false},
                                     {SL_TYPE_F16, SL_TYPE_Q5_0, true}};
    if (target) test_skip("only cpu has sequences that move");
    move_text(true);
    for (size_t i = 0; i < SL_COUNT(types); i++) {
        check_attend_of(SL_OP_ATTEND_SINKS, 14, 2, 64, 64, types[i], 0, 0);
        check_attend_of(SL_OP_ATTEND_SINKS, 20, 1, 32, 96, types[i], 50, 50); // into the first block
        check_attend_of(SL_OP_ATTEND, 4, 4, 64, 32, types[i], 30, 0);
    }
    move_text(false);
    check_attend_of(SL_OP_ATTEND_SINKS, 14, 2, 64, 64, types[0], 0, 0);
}

static void op_attend(void) {
    static const kv_types types[] = {{SL_TYPE_F32, SL_TYPE_F32, false},
                                     {SL_TYPE_F16, SL_TYPE_F16, false},
                                     {SL_TYPE_BF16, SL_TYPE_F32, false},
                                     {SL_TYPE_F16, SL_TYPE_BF16, false}};
    for (size_t i = 0; i < (target || test_quick() ? 2 : SL_COUNT(types)); i++) { // other targets lack the rest
        check_attend(4, 4, 64, 64, types[i], 0, 0);
        check_attend(test_quick() ? 6 : 14, 2, 64, 64, types[i], 0, 0);
        if (!test_quick() || i == 1) check_attend(4, 1, 256, 256, types[i], 1, 0);
        check_attend(8, 2, 80, 40, types[i], 5, 50);
        check_attend(6, 3, 7, 5, types[i], 3, 0);
        check_attend(test_quick() ? 17 : 40, 1, 16, 33, types[i], 0, 1);
    }
}

static void op_attend_codes(void) {
    static const kv_types types[] = {{SL_TYPE_Q8_0, SL_TYPE_Q8_0, true},  {SL_TYPE_Q5_0, SL_TYPE_Q5_0, true},
                                     {SL_TYPE_Q4_0, SL_TYPE_Q4_0, true},  {SL_TYPE_Q8_0, SL_TYPE_F16, true},
                                     {SL_TYPE_BF16, SL_TYPE_Q4_0, false}, {SL_TYPE_Q5_0, SL_TYPE_Q4_0, true}};
    for (size_t i = 0; i < SL_COUNT(types); i++) {
        check_attend(test_quick() ? 6 : 14, 2, 64, 64, types[i], 0, 0);
        if (!test_quick() || i == 0) check_attend(4, 1, 256, 256, types[i], 5, 0);
        check_attend(8, 2, 96, 32, types[i], 0, 50);
    }
}

static void op_kv_write(void) {
    check_attend(3, 3, 48, 16, (kv_types){SL_TYPE_F16, SL_TYPE_F16, false}, 1, 0);
} // window 1: the result is v itself, as stored

// Of the value, where the argument of exp is exact; tanh GELU rounds its argument u, and e^2u grows
// that.
static void check_glu(uint8_t act, double relative) {
    static const uint32_t cols[] = {1, 15, 16, 100, 1536};
    for (size_t i = 0; i < SL_COUNT(cols); i++) {
        rig r;
        start(&r);
        uint32_t n = cols[i];
        float *gate = random_floats((size_t)N_ROW * n, 4), *up = random_floats((size_t)N_ROW * n, 2);
        put_trouble(gate, n);
        uint16_t a = rig_value(&r, SL_VALUE_F32, n, gate), b = rig_value(&r, SL_VALUE_F32, n, up),
                 out = rig_value(&r, SL_VALUE_F32, n, NULL);
        rig_op(&r, SL_OP_GLU, a, b, out)->attr.glu.act = act;
        compare(&r, out, relative, 1e-35, "glu");
    }
}

static void op_glu(void) {
    check_glu(SL_ACT_SILU, 5e-7);
    check_glu(SL_ACT_GELU_TANH, 3e-5);
}

static void op_add(void) { // one rounding each, of the double sum and of the float sum
    rig r;
    start(&r);
    float *x = random_floats(N_ROW * 77, 1), *y = random_floats(N_ROW * 77, 1e-3);
    put_trouble(x, 77);
    uint16_t a = rig_value(&r, SL_VALUE_F32, 77, x), b = rig_value(&r, SL_VALUE_F32, 77, y),
             out = rig_value(&r, SL_VALUE_F32, 77, NULL);
    rig_op(&r, SL_OP_ADD, a, b, out);
    compare(&r, out, 0x1p-23, 0, "add");
}

static void op_gather(void) { // a copy
    rig r;
    start(&r);
    uint16_t in = rig_value(&r, SL_VALUE_F32, 70, random_floats(N_ROW * 70, 1)),
             out = rig_value(&r, SL_VALUE_F32, 70, NULL);
    r.value[out].logit_rows = 1;
    rig_op(&r, SL_OP_GATHER, in, SL_NO_VALUE, out);
    compare(&r, out, 0, 0, "gather");
}

static void op_softcap(void) {
    rig r;
    start(&r);
    float *x = random_floats(N_ROW * 131, 30);
    for (int i = 0; i < 500; i++) x[3 * 131 + i] *= powf(10, -(float)test_below(8)); // small ones keep their digits
    put_trouble(x, 131);
    uint16_t in = rig_value(&r, SL_VALUE_F32, 131, x), out = rig_value(&r, SL_VALUE_F32, 131, NULL);
    rig_op(&r, SL_OP_SOFTCAP, in, SL_NO_VALUE, out)->attr.softcap.cap = 30;
    compare(&r, out, 6e-7, 1e-37, "softcap");
}

// Exact; rows with equal ones far apart, infinities and NaN. On cpu nobody asks for it.
static void op_best(void) {
    enum { N = 5003 };
    if (!target) return;
    rig r;
    start(&r);
    float *x = random_floats((size_t)N_ROW * N, 3);
    for (int row = 0; row < N_ROW; row++) {
        float *of = x + (size_t)row * N;
        uint32_t at = test_below(N - 1000);
        if (row % 5 < 2) of[at] = of[at + 999] = 40 + (float)row;
        if (row % 5 == 1) of[test_below(N)] = NAN, of[test_below(N)] = -INFINITY;
        if (row % 5 == 2) of[N - 1] = INFINITY;
        for (int i = 0; row % 5 == 3 && i < N; i++) of[i] = row % 2 ? -INFINITY : -fabsf(of[i]);
    }
    uint16_t in = rig_value(&r, SL_VALUE_F32, N, x), out = rig_value(&r, SL_VALUE_F32, 2, NULL);
    rig_op(&r, SL_OP_BEST, in, SL_NO_VALUE, out);
    compare(&r, out, 0, 0, "best");
}

// ---- fused: as the plain op on ref within half a step of its block, and as the two ops on cpu to
// the bit

static float act16_value(const uint8_t *row, uint32_t n_col, uint32_t i) {
    uint32_t n_pad = (n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN * SL_ACT_BLK_LEN;
    float d;
    memcpy(&d, row + 2 * n_pad + i / SL_ACT_BLK_LEN * sizeof d, sizeof d);
    return d * (float)(SL_ACT_BASE * (int8_t)row[i] + (int8_t)row[n_pad + i]);
}

// base_out holds ACT16 rows, ref_out the same in float.
static void check_act16(uint32_t n_col, uint64_t row_bytes, double relative) {
    for (uint32_t row = 0; row < N_ROW; row++)
        for (uint32_t first = 0; first < n_col; first += SL_ACT_BLK_LEN) {
            const float *want = ref_out + row * n_col;
            uint32_t end = first + SL_ACT_BLK_LEN < n_col ? first + SL_ACT_BLK_LEN : n_col;
            double most = 0;
            for (uint32_t i = first; i < end; i++) most = isfinite(want[i]) ? fmax(most, fabs((double)want[i])) : NAN;
            bool bad = false;
            for (uint32_t i = first; i < end; i++) bad |= !isfinite(want[i]);
            for (uint32_t i = first; i < end; i++) {
                float got = act16_value(base_out + row * row_bytes, n_col, i);
                if (bad ? isnan(got) : fabs((double)got - (double)want[i]) <= most * (0.51 / 32639 + relative) + 4e-34)
                    continue;
                test_failed(__FILE__, __LINE__, "row %u column %u is %g, not %g", row, i, (double)got, (double)want[i]);
            }
        }
}

// Runs the fused op on cpu, `plain` on ref, and `plain` followed by QUANT on cpu.
static void check_quant(sl_op plain, sl_opcode fused, const float *in0, const float *in1, const float *weight,
                        uint32_t n_col, double relative) {
    rig r;
    for (int composed = 0; composed < 2; composed++) {
        start(&r);
        uint16_t a = rig_value(&r, SL_VALUE_F32, n_col, in0),
                 b = in1 ? rig_value(&r, SL_VALUE_F32, n_col, in1) : SL_NO_VALUE;
        uint16_t middle = rig_value(&r, SL_VALUE_F32, n_col, NULL), out = rig_value(&r, SL_VALUE_ACT16, n_col, NULL);
        sl_op *op = rig_op(&r, (sl_opcode)plain.code, a, b, middle);
        op->attr = plain.attr;
        if (weight) op->weight[0] = rig_weight(&r, "norm.weight", SL_TYPE_F32, 1, plain.attr.norm.group, weight);
        if (!composed) {
            CHECK_INT(run_ref(&r, middle), N_ROW);
            op->code = (uint8_t)fused;
            op->out = out;
        } else {
            rig_op(&r, SL_OP_QUANT, middle, SL_NO_VALUE, out);
        }
        CHECK_INT(run_target(&r, out), N_ROW);
        check_act16(n_col, r.value[out].row_bytes, relative);
        static uint8_t first_out[sizeof base_out];
        if (!composed) memcpy(first_out, base_out, sizeof base_out);
        else CHECK(memcmp(first_out, base_out, N_ROW * r.value[out].row_bytes) == 0);
    }
}

static void op_norm_quant(void) {
    static const uint32_t cols[] = {64, 256, 896, 300};
    for (size_t i = 0; i < SL_COUNT(cols); i++) {
        sl_op plain = {.code = SL_OP_NORM};
        plain.attr.norm = (sl_attr_norm){.eps = 1e-5f, .group = cols[i]};
        float *x = random_floats((size_t)N_ROW * cols[i], 3);
        put_trouble(x, cols[i]);
        check_quant(plain, SL_OP_NORM_QUANT, x, NULL, random_floats(cols[i], 1), cols[i], NORM_BOUND);
    }
}

static void op_glu_quant(void) {
    static const uint32_t cols[] = {33, 512, 1000};
    for (size_t i = 0; i < SL_COUNT(cols); i++) {
        sl_op plain = {.code = SL_OP_GLU};
        plain.attr.glu.act = i % 2 ? SL_ACT_SILU : SL_ACT_GELU_TANH;
        float *x = random_floats((size_t)N_ROW * cols[i], 3);
        check_quant(plain, SL_OP_GLU_QUANT, x, random_floats((size_t)N_ROW * cols[i], 3), NULL, cols[i], 1e-6);
    }
}

static void op_quant(void) {
    static const uint32_t cols[] = {1, 255, 256, 257, 1536};
    for (size_t i = 0; i < SL_COUNT(cols); i++) {
        uint32_t n = cols[i];
        rig r;
        start(&r);
        float *x = random_floats((size_t)N_ROW * n, 3);
        if (n > 8) put_trouble(x, n);
        uint16_t in = rig_value(&r, SL_VALUE_F32, n, x), out = rig_value(&r, SL_VALUE_ACT16, n, NULL);
        rig_op(&r, SL_OP_QUANT, in, SL_NO_VALUE, out);
        make_text();
        memcpy(ref_out, x, (size_t)N_ROW * n * sizeof *x);
        CHECK_INT(run_target(&r, out), N_ROW);
        check_act16(n, r.value[out].row_bytes, 0);
    }
}

static void choose_target(void) {
    if (strcmp(test_backend(), "cpu") == 0) return;
    target = sl_backend_find(test_backend());
    if (!target) test_skip_device("this build has no such backend");
    if (target->probe() != SL_OK) test_skip_device(sl_error_text());
}

// Every op has a case, or this does not compile.
#define SL_OP(code, name, n_in, n_weight, attrs, fused) \
    TEST(name) {                                        \
        choose_target();                                \
        op_##name();                                    \
    }
#include "plan/ops.def"
#undef SL_OP

TEST(attend_codes) {
    choose_target();
    if (target) test_skip_device("caches of codes are only on cpu and ref");
    op_attend_codes();
}
