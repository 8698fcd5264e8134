// SPDX-License-Identifier: MIT
//
// The program for programs: one JSON object with shape, ops, values, weights, ropes, kv and totals.
// Ids index the arrays; what an op does not have is left out.
#include "plan/explain_part.h"

typedef unsigned long long ull;

static void print_shape(const sl_plan_shape *s, sl_buf *out) {
    sl_buf_printf(out,
                  "{\"shape\":{\"n_row_max\":%u,\"n_logit_max\":%u,\"n_ctx\":%u,\"n_slot\":%u,\"n_"
                  "kv_blk\":%u,",
                  s->n_row_max, s->n_logit_max, s->n_ctx, s->n_slot, s->n_kv_blk);
    sl_buf_printf(out, "\"n_window_blk\":%u,", s->n_window_blk);
    sl_buf_printf(out, "\"kv_blk_len\":%d,\"type_k\":\"%s\",\"type_v\":\"%s\"}", SL_KV_BLK_LEN,
                  sl_type_name((sl_type)s->type_k), sl_type_name((sl_type)s->type_v));
}

// ,"name":[a,b] of the ids that are there
static void print_ids(sl_buf *out, const char *name, const uint16_t id[2]) {
    int n = 0;
    for (int k = 0; k < 2; k++) {
        if (id[k] == SL_NO_VALUE) continue;
        if (n++) sl_buf_printf(out, ",%u", id[k]);
        else sl_buf_printf(out, ",\"%s\":[%u", name, id[k]);
    }
    if (n) sl_buf_text(out, "]");
}

static void print_op(const sl_plan *p, const sl_op *op, sl_buf *out) {
    sl_attr_number attr[SL_ATTR_MAX];
    sl_cost cost = sl_plan_op_cost(p, op, 1, 1, 0);
    int n = sl_op_attr_numbers(op, attr);
    sl_buf_printf(out, "{\"op\":\"%s\",\"barrier\":%s,\"who\":\"%s\"", sl_op_infos[op->code].name,
                  op->barrier ? "true" : "false", sl_who_name(op));
    if (op->layer >= 0) sl_buf_printf(out, ",\"layer\":%d", op->layer);
    print_ids(out, "in", op->in);
    if (op->out != SL_NO_VALUE) sl_buf_printf(out, ",\"out\":%u", op->out);
    print_ids(out, "weights", op->weight);
    for (int k = 0; k < n; k++)
        sl_buf_printf(out, "%s\"%s\":%.9g", k ? "," : ",\"attr\":{", attr[k].name, attr[k].value);
    if (n) sl_buf_text(out, "}");
    sl_buf_printf(out, ",\"bytes\":%llu,\"n_mac\":%llu}",
                  (ull)(cost.weight_bytes + cost.kv_read_bytes + cost.kv_write_bytes), (ull)cost.n_mac);
}

static void print_values(const sl_plan *p, sl_buf *out) {
    for (uint32_t i = 0; i < p->n_value; i++) {
        const sl_value *v = &p->value[i];
        sl_buf_printf(out,
                      "%s{\"kind\":\"%s\",\"rows\":%u,\"copies\":%u,\"logit_rows\":%s,\"n_col\":%u,\"row_bytes\":"
                      "%llu,\"off\":%llu}",
                      i ? ",\n" : "", sl_value_kind_name(v), v->logit_rows ? p->shape.n_logit_max : p->shape.n_row_max,
                      sl_value_n_copy(p, v), v->logit_rows ? "true" : "false", v->n_col, (ull)v->row_bytes,
                      (ull)v->off);
    }
}

static void print_weights(const sl_plan *p, sl_buf *out) {
    for (uint32_t i = 0; i < p->n_weight; i++) {
        const sl_plan_weight *w = &p->weight[i];
        sl_buf_text(out, i ? ",\n{\"name\":" : "{\"name\":");
        sl_buf_json(out, sl_span_of(w->name));
        sl_buf_printf(out, ",\"type\":\"%s\",\"n_row\":%u,\"n_col\":%u,\"bytes\":%llu}", sl_type_name((sl_type)w->type),
                      w->n_row, w->n_col, (ull)w->n_bytes);
    }
}

static void print_ropes(const sl_plan *p, sl_buf *out) {
    for (uint32_t i = 0; i < p->n_rope; i++) {
        const sl_plan_rope *r = &p->rope[i];
        sl_buf_printf(out, "%s{\"n_rot\":%u,\"mscale\":%.9g,\"inv_freq\":[", i ? ",\n" : "", r->n_rot,
                      (double)r->mscale);
        for (uint32_t k = 0; k < r->n_rot / 2; k++)
            sl_buf_printf(out, "%s%.17g", k ? "," : "", p->inv_freq[r->inv_freq_at + k]);
        sl_buf_text(out, "]}");
    }
}

static void print_kv(const sl_plan *p, sl_buf *out) {
    for (uint32_t i = 0; i < p->n_kv; i++) {
        const sl_plan_kv *kv = &p->kv[i];
        sl_buf_printf(out, "%s{\"n_head_kv\":%u,\"head_dim\":%u,\"v_dim\":%u,\"window\":%u,\"class\":%u,",
                      i ? ",\n" : "", kv->n_head_kv, kv->head_dim, kv->v_dim, kv->window, kv->cls);
        sl_buf_printf(out, "\"k_blk_bytes\":%llu,\"v_blk_bytes\":%llu,\"k_off\":%llu,\"v_off\":%llu}",
                      (ull)kv->k_blk_bytes, (ull)kv->v_blk_bytes, (ull)kv->k_off, (ull)kv->v_off);
    }
}

static void print_totals(const sl_plan *p, sl_buf *out) {
    sl_cost one = sl_plan_cost(p, 1, 1, 0);
    sl_buf_printf(out, "\"totals\":{\"token_weight_bytes\":%llu,\"token_n_mac\":%llu,\"value_bytes\":%llu,",
                  (ull)one.weight_bytes, (ull)one.n_mac, (ull)p->value_bytes);
    sl_buf_printf(out, "\"scratch_bytes\":%llu,\"workspace_bytes\":%llu,\"kv_bytes\":%llu,\"copy_bytes\":%llu}}\n",
                  (ull)p->scratch_bytes, (ull)p->workspace_bytes, (ull)p->kv_bytes, (ull)p->copy_bytes);
}

void sl_plan_explain_json(const sl_plan *plan, sl_buf *out) {
    print_shape(&plan->shape, out);
    sl_buf_printf(out, ",\"n_vocab\":%u,\"logits\":%u,\"ops\":[\n", plan->n_vocab, plan->logits);
    for (uint32_t i = 0; i < plan->n_op; i++) {
        if (i) sl_buf_text(out, ",\n");
        print_op(plan, &plan->op[i], out);
    }
    sl_buf_text(out, "],\n\"values\":[\n");
    print_values(plan, out);
    sl_buf_text(out, "],\n\"weights\":[\n");
    print_weights(plan, out);
    sl_buf_text(out, "],\n\"ropes\":[\n");
    print_ropes(plan, out);
    sl_buf_text(out, "],\n\"kv\":[\n");
    print_kv(plan, out);
    sl_buf_text(out, "],\n");
    print_totals(plan, out);
}
