// SPDX-License-Identifier: MIT
//
// Which numbers belong to an op, by the column `attrs` of ops.def.
#include "plan/explain_part.h"

#define ATTR(k, text, number) \
    out[k] = (sl_attr_number) { text, (double)(number) }

static int none(const sl_op *op, sl_attr_number *out) { return (void)op, (void)out, 0; }

static int embed(const sl_op *op, sl_attr_number *out) { return ATTR(0, "scale", op->attr.embed.scale), 1; }

static int rope_table(const sl_op *op, sl_attr_number *out) {
    ATTR(0, "rope", op->attr.rope_table.rope);
    ATTR(1, "cells", op->attr.rope_table.cells);
    return op->attr.rope_table.cells ? 2 : 1;
}

static int norm(const sl_op *op, sl_attr_number *out) {
    ATTR(0, "eps", op->attr.norm.eps);
    ATTR(1, "group", op->attr.norm.group);
    return 2;
}

static int rope(const sl_op *op, sl_attr_number *out) {
    ATTR(0, "n_head", op->attr.rope.n_head);
    ATTR(1, "head_dim", op->attr.rope.head_dim);
    ATTR(2, "n_rot", op->attr.rope.n_rot);
    ATTR(3, "interleaved", op->attr.rope.interleaved);
    return 4;
}

static int kv(const sl_op *op, sl_attr_number *out) { return ATTR(0, "kv_layer", op->attr.kv.kv_layer), 1; }

static int attend(const sl_op *op, sl_attr_number *out) {
    ATTR(0, "kv_layer", op->attr.attend.kv_layer);
    ATTR(1, "n_head", op->attr.attend.n_head);
    ATTR(2, "window", op->attr.attend.window);
    ATTR(3, "scale", op->attr.attend.scale);
    ATTR(4, "softcap", op->attr.attend.softcap);
    return 5;
}

static int glu(const sl_op *op, sl_attr_number *out) { return ATTR(0, "act", op->attr.glu.act), 1; }

static int softcap(const sl_op *op, sl_attr_number *out) { return ATTR(0, "cap", op->attr.softcap.cap), 1; }

int sl_op_attr_numbers(const sl_op *op, sl_attr_number out[SL_ATTR_MAX]) {
    switch (op->code) {
#define SL_OP(code, name, n_in, n_weight, attrs, fused) \
    case SL_OP_##code:                                  \
        return attrs(op, out);
#include "plan/ops.def"
#undef SL_OP
    }
    return 0;
}
