// SPDX-License-Identifier: MIT
//
// What a task does with its share: it calls the kernel for each row of a range, for a range of
// outputs, or for the tiles that are its own. Knows nothing of threads beyond the share that it is
// given.
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "quant/quant.h"

static const float *in_row(const sl_task *t, int i, int32_t row, const sl_share *s) {
    return (const float *)(const void *)(t->in[i] + (uint64_t)s->i_thread * t->in_copy[i] +
                                         (uint64_t)row * t->in_stride[i]);
}

static float *out_row(const sl_task *t, int32_t row, const sl_share *s) {
    return (float *)(void *)(t->out + (uint64_t)s->i_thread * t->out_copy + (uint64_t)row * t->out_stride);
}

// ---- rows ---------------------------------------------------------------------------------------

void sl_task_embed(const sl_program *p, const sl_task *t, const sl_share *s) {
    for (int32_t row = s->row_begin; row < s->row_end; row++) {
        const uint8_t *weight = (const uint8_t *)t->weight + (uint64_t)p->step->token[row] * t->weight_row_bytes;
        float *out = out_row(t, row, s), scale = t->attr.embed.scale;
        sl_quant_decode((sl_type)t->weight_type, out, weight, t->n_col);
        for (uint32_t i = 0; i < t->n_col; i++) out[i] *= scale;
    }
}

// In double: at position 100 000 a float angle would be off by 0.004.
void sl_task_rope_table(const sl_program *p, const sl_task *t, const sl_share *s) {
    for (int32_t row = s->row_begin; row < s->row_end; row++) {
        float *out = out_row(t, row, s);
        double pos = t->attr.rope_table.cells ? sl_step_cell(p->step, row) : p->step->pos[row];
        for (uint32_t i = 0; i < t->n_col / 2; i++) {
            double angle = pos * t->inv_freq[i];
            out[2 * i] = (float)(cos(angle) * (double)t->mscale);
            out[2 * i + 1] = (float)(sin(angle) * (double)t->mscale);
        }
    }
}

// Columns in whole groups.
void sl_task_norm(const sl_program *p, const sl_task *t, const sl_share *s) {
    const sl_attr_norm *a = &t->attr.norm;
    uint32_t at = s->col[0].begin, n = s->col[0].end - at;
    for (int32_t row = s->row_begin; row < s->row_end; row++)
        p->kernels.norm(out_row(t, row, s) + at, in_row(t, 0, row, s) + at, t->weight, n, a->group, a->eps);
}

// Columns in whole heads.
void sl_task_rope(const sl_program *p, const sl_task *t, const sl_share *s) {
    sl_attr_rope attr = t->attr.rope;
    uint32_t at = s->col[0].begin;
    attr.n_head = (s->col[0].end - at) / attr.head_dim;
    for (int32_t row = s->row_begin; row < s->row_end; row++)
        p->kernels.rope(out_row(t, row, s) + at, in_row(t, 0, row, s) + at, in_row(t, 1, row, s), &attr);
}

// The pool block that a row is written into.
static uint64_t own_blk(const sl_task *t, const sl_step *step, int32_t row) {
    int32_t entry = sl_step_entry(step, row, sl_step_cell(step, row) / SL_KV_BLK_LEN);
    return (uint64_t)sl_step_table(step, t->kv, step->slot[row])[entry];
}

// The K of n heads from `head` on, at a row's position; a row that fills a block turns it into codes.
static void write_k(const sl_task *t, const sl_step *step, int32_t row, const float *in, uint32_t head, uint32_t n) {
    const sl_plan_kv *kv = t->kv;
    uint32_t at = (uint32_t)(step->pos[row] % SL_KV_BLK_LEN);
    uint64_t blk = own_blk(t, step, row);
    uint8_t *to = t->k + blk * kv->k_blk_bytes + head * t->k_head_bytes;
    if (!t->close_k) {
        t->write_k(to, in, n, kv->head_dim, at, false, 0);
        return;
    }
    uint8_t *open =
        t->kv_pool + sl_plan_open_off(&kv->k_open, step->open[row]) + head * sl_open_head_bytes(kv->head_dim);
    t->write_k(open, in, n, kv->head_dim, at, false, 0);
    if (at == SL_KV_BLK_LEN - 1) t->close_k(to, (const uint16_t *)(const void *)open, n, kv->head_dim);
}

static void write_v(const sl_task *t, const sl_step *step, int32_t row, const float *in, uint32_t head, uint32_t n) {
    const sl_plan_kv *kv = t->kv;
    uint32_t at = (uint32_t)(step->pos[row] % SL_KV_BLK_LEN);
    uint64_t blk = own_blk(t, step, row);
    t->write_v(t->v + blk * kv->v_blk_bytes + head * t->v_head_bytes, in, n, kv->v_dim, at, true, kv->v_rot);
    if (!kv->v_open.blk_bytes) return;
    uint8_t *open = t->kv_pool + sl_plan_open_off(&kv->v_open, step->open[row]) + head * sl_open_head_bytes(kv->v_dim);
    t->write_open(open, in, n, kv->v_dim, at, true, kv->v_rot);
}

// Shared out by block, where not by head: who fills a block has written all of it that is of this step.
void sl_task_kv_write(const sl_program *p, const sl_task *t, const sl_share *s) {
    const sl_step *step = p->step;
    const sl_plan_kv *kv = t->kv;
    uint32_t k = s->col[0].begin / kv->head_dim, n_k = s->col[0].end / kv->head_dim - k; // heads of this thread
    uint32_t v = s->col[1].begin / kv->v_dim, n_v = s->col[1].end / kv->v_dim - v;
    for (int32_t row = s->row_begin; row < s->row_end; row++) {
        int32_t turn = step->pos[row] / SL_KV_BLK_LEN + step->slot[row];
        if (t->who == SL_WHO_ALL && turn % s->n_thread != s->i_thread) continue;
        if (n_k) write_k(t, step, row, in_row(t, 0, row, s) + s->col[0].begin, k, n_k);
        if (n_v) write_v(t, step, row, in_row(t, 1, row, s) + s->col[1].begin, v, n_v);
    }
}

void sl_task_glu(const sl_program *p, const sl_task *t, const sl_share *s) {
    for (int32_t row = s->row_begin; row < s->row_end; row++)
        p->kernels.glu(out_row(t, row, s), in_row(t, 0, row, s), in_row(t, 1, row, s), t->n_col, t->attr.glu.act);
}

void sl_task_add(const sl_program *p, const sl_task *t, const sl_share *s) {
    for (int32_t row = s->row_begin; row < s->row_end; row++)
        p->kernels.add(out_row(t, row, s), in_row(t, 0, row, s), in_row(t, 1, row, s), t->n_col);
}

void sl_task_gather(const sl_program *p, const sl_task *t, const sl_share *s) {
    for (int32_t i = s->row_begin; i < s->row_end; i++)
        memcpy(out_row(t, i, s), in_row(t, 0, p->step->logit_row[i], s), t->n_col * sizeof(float));
}

void sl_task_softcap(const sl_program *p, const sl_task *t, const sl_share *s) {
    uint32_t at = s->col[0].begin, n = s->col[0].end - at;
    for (int32_t row = s->row_begin; row < s->row_end; row++)
        p->kernels.softcap(out_row(t, row, s) + at, in_row(t, 0, row, s) + at, n, t->attr.softcap.cap);
}

void sl_task_quant(const sl_program *p, const sl_task *t, const sl_share *s) {
    for (int32_t row = s->row_begin; row < s->row_end; row++)
        p->kernels.quant(out_row(t, row, s), in_row(t, 0, row, s), t->n_col);
}

void sl_task_norm_quant(const sl_program *p, const sl_task *t, const sl_share *s) {
    const sl_attr_norm *a = &t->attr.norm;
    for (int32_t row = s->row_begin; row < s->row_end; row++) {
        p->kernels.norm(s->scratch, in_row(t, 0, row, s), t->weight, t->n_col, a->group, a->eps);
        p->kernels.quant(out_row(t, row, s), s->scratch, t->n_col);
    }
}

void sl_task_glu_quant(const sl_program *p, const sl_task *t, const sl_share *s) {
    for (int32_t row = s->row_begin; row < s->row_end; row++) {
        p->kernels.glu(s->scratch, in_row(t, 0, row, s), in_row(t, 1, row, s), t->n_col, t->attr.glu.act);
        p->kernels.quant(out_row(t, row, s), s->scratch, t->n_col);
    }
}

// ---- outputs ------------------------------------------------------------------------------------

void sl_task_matmul(const sl_program *p, const sl_task *t, const sl_share *s) {
    sl_cpu_matmul mm = t->mm;
    mm.n_row = (uint32_t)s->row_end;
    mm.act = (const uint8_t *)(const void *)in_row(t, 0, 0, s);
    if (mm.add) mm.add = in_row(t, 1, 0, s);
    t->matmul(&mm, s->col[0].begin, s->col[0].end, s->scratch);
    (void)p;
}
