// SPDX-License-Identifier: MIT
//
// The program for people: one line for each op, then what it costs and takes. The same plan always
// prints the same text, so prints are goldens. Bytes of a line are those of one row at position 0.
#include "plan/explain_part.h"

typedef unsigned long long ull;

static void print_value(const sl_plan *p, sl_buf *out, uint16_t id) {
    char text[96] = "-";
    if (id != SL_NO_VALUE) {
        const sl_value *v = &p->value[id];
        snprintf(text, sizeof text, "v%u: %s %u x %u @%llu", id, sl_value_kind_name(v),
                 (v->logit_rows ? p->shape.n_logit_max : p->shape.n_row_max) * sl_value_n_copy(p, v), v->n_col,
                 (ull)v->off);
    }
    sl_buf_printf(out, "  %-34s", text);
}

static void print_inputs(sl_buf *out, const sl_op *op) {
    char text[32] = "-";
    if (op->in[1] != SL_NO_VALUE) snprintf(text, sizeof text, "v%u v%u", op->in[0], op->in[1]);
    else if (op->in[0] != SL_NO_VALUE) snprintf(text, sizeof text, "v%u", op->in[0]);
    sl_buf_printf(out, "  %-13s", text);
}

static void print_weights(const sl_plan *p, sl_buf *out, const sl_op *op) {
    for (int k = 0; k < 2; k++) {
        if (op->weight[k] == SL_NO_WEIGHT) continue;
        const sl_plan_weight *w = &p->weight[op->weight[k]];
        sl_buf_printf(out, "  %s %s ", w->name, sl_type_name((sl_type)w->type));
        if (w->n_row > 1) sl_buf_printf(out, "%u x ", w->n_row);
        sl_buf_printf(out, "%u", w->n_col);
    }
}

static void print_attrs(sl_buf *out, const sl_op *op) {
    sl_attr_number attr[SL_ATTR_MAX];
    int n = sl_op_attr_numbers(op, attr);
    for (int k = 0; k < n; k++) sl_buf_printf(out, "%s%s %.7g", k ? ", " : "  (", attr[k].name, attr[k].value);
    if (n) sl_buf_text(out, ")");
}

static void print_op(const sl_plan *p, sl_buf *out, uint32_t i) {
    const sl_op *op = &p->op[i];
    sl_cost cost = sl_plan_op_cost(p, op, 1, 1, 0);
    char layer[8] = "-";
    if (op->layer >= 0) snprintf(layer, sizeof layer, "%d", op->layer);
    sl_buf_printf(out, "%5u %c%c %-11s %5s", i, op->barrier ? '|' : ' ', " eo"[op->who], sl_op_infos[op->code].name,
                  layer);
    print_value(p, out, op->out);
    print_inputs(out, op);
    sl_buf_printf(out, "%11llu", (ull)(cost.weight_bytes + cost.kv_read_bytes + cost.kv_write_bytes));
    print_weights(p, out, op);
    print_attrs(out, op);
    sl_buf_text(out, "\n");
}

static void print_totals(const sl_plan *p, sl_buf *out) {
    sl_cost one = sl_plan_cost(p, 1, 1, 0);
    uint64_t weight_bytes = 0, pos_bytes = 0;
    uint32_t n_phase = 1;
    for (uint32_t i = 0; i < p->n_weight; i++) weight_bytes += p->weight[i].n_bytes;
    for (uint32_t i = 0; i < p->n_kv; i++) pos_bytes += (p->kv[i].k_blk_bytes + p->kv[i].v_blk_bytes) / SL_KV_BLK_LEN;
    for (uint32_t i = 0; i < p->n_op; i++) n_phase += p->op[i].barrier;
    sl_buf_printf(out, "\n%u ops in %u phases, %u values\n", p->n_op, n_phase, p->n_value);
    sl_buf_printf(out, "weights    %14llu bytes in %u tensors; %llu read for a token, %llu multiply-adds\n",
                  (ull)weight_bytes, p->n_weight, (ull)one.weight_bytes, (ull)one.n_mac);
    if (p->copy_bytes)
        sl_buf_printf(out, "copies     %14llu bytes of weights in the backend's own order\n", (ull)p->copy_bytes);
    sl_buf_printf(out, "workspace  %14llu bytes: values %llu, scratch %llu\n", (ull)p->workspace_bytes,
                  (ull)p->value_bytes, (ull)p->scratch_bytes);
    sl_buf_printf(out, "kv         %14llu bytes: %u blocks of %d positions, %llu for a position", (ull)p->kv_bytes,
                  p->shape.n_kv_blk, SL_KV_BLK_LEN, (ull)pos_bytes);
    if (p->shape.n_window_blk) sl_buf_printf(out, "; %u blocks for windows", p->shape.n_window_blk);
    sl_buf_text(out, "\n");
}

void sl_plan_explain(const sl_plan *plan, sl_buf *out) {
    const sl_plan_shape *s = &plan->shape;
    sl_buf_printf(out, "up to %u rows a step, %u with logits; %u sequences of up to %u positions; K %s, V %s\n",
                  s->n_row_max, s->n_logit_max, s->n_slot, s->n_ctx, sl_type_name((sl_type)s->type_k),
                  sl_type_name((sl_type)s->type_v));
    sl_buf_printf(out,
                  "    # |  op          layer  %-34s  %-13s%11s  weights (attributes);  | waits for all above, e "
                  "each worker for itself, o each its own heads\n",
                  "out: kind rows x columns @offset", "in", "bytes");
    for (uint32_t i = 0; i < plan->n_op; i++) print_op(plan, out, i);
    print_totals(plan, out);
}
