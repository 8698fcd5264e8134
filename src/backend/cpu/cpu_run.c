// SPDX-License-Identifier: MIT
//
// A step: every thread walks the same tasks and does its share of each; barriers are where the plan has them. Decides
// nothing, allocates nothing.
#include "backend/cpu/cpu.h"
#include "backend/host.h"

static sl_range share_of(uint32_t n, uint32_t unit, const sl_share *s) {
    int64_t begin, end;
    sl_pool_share(&begin, &end, (n + unit - 1) / unit, s->i_thread, s->n_thread);
    return (sl_range){SL_MIN((uint32_t)begin * unit, n), SL_MIN((uint32_t)end * unit, n)};
}

static void choose_share(sl_share *s, const sl_task *t) {
    if (t->who == SL_WHO_OWN) {
        s->col[0] = t->range[s->i_thread];
        if (t->range1) s->col[1] = t->range1[s->i_thread];
    } else if (t->who == SL_WHO_ALL && t->kind == SL_TASK_PANELS) {
        s->col[0] = t->range[s->i_thread];
    } else if (t->who == SL_WHO_ALL && t->kind == SL_TASK_COLS) {
        s->col[0] = share_of(t->n_col, SL_CPU_PANEL_ROWS, s);
    } else if (t->who == SL_WHO_ALL && t->kind == SL_TASK_ROWS) {
        sl_range rows = share_of((uint32_t)s->row_end, 1, s);
        s->row_begin = (int32_t)rows.begin, s->row_end = (int32_t)rows.end;
    }
}

static void run_tasks(void *arg, int i_thread, int n_thread) {
    const sl_program *p = arg;
    for (const sl_task *t = p->task, *end = t + p->n_task; t < end; t++) {
        if (t->barrier) sl_pool_barrier(p->device->pool);
        sl_share s = {.i_thread = i_thread,
                      .n_thread = n_thread,
                      .row_end = t->logit_rows ? p->step->n_logit : p->step->n_row,
                      .col = {{0, t->n_col}, {0, t->n_col_v}},
                      .scratch = p->scratch + (uint64_t)i_thread * p->scratch_bytes};
        choose_share(&s, t);
        bool some = s.col[0].begin < s.col[0].end || s.col[1].begin < s.col[1].end;
        if (some && s.row_begin < s.row_end) t->run(p, t, &s);
    }
}

sl_status sl_cpu_run(sl_program *program, const sl_step *step) {
    SL_TRY(sl_host_check_step(program->plan, step));
    program->step = step;
    sl_pool_run(program->device->pool, program->n_thread, run_tasks, program);
    program->step = NULL;
    return SL_OK;
}
