// SPDX-License-Identifier: MIT
//
// A step: every thread walks the same tasks and does its share of each. Decides nothing, allocates
// nothing; what it looks at (rows, shares, barriers) is the same on all threads.
#include "backend/cpu/cpu.h"
#include "backend/host.h"

static void run_share(const sl_program *p, const sl_task *t, int32_t n_row, int i_thread, int n_thread) {
    int64_t begin = i_thread, end = n_thread;
    void *scratch = p->scratch + (uint64_t)i_thread * t->scratch_bytes;
    if (t->kind == SL_TASK_ROWS) {
        sl_pool_share(&begin, &end, n_row, i_thread, n_thread);
    } else if (t->kind == SL_TASK_PANELS) {
        int64_t n_out = t->mm.n_out, n_panel = (n_out + SL_CPU_PANEL_ROWS - 1) / SL_CPU_PANEL_ROWS;
        sl_pool_share(&begin, &end, n_panel, i_thread, n_thread);
        begin *= SL_CPU_PANEL_ROWS;
        end = SL_MIN(end * SL_CPU_PANEL_ROWS, n_out);
    }
    if (begin < end) t->run(p, t, (int32_t)begin, (int32_t)end, scratch);
}

// A barrier between two tasks is needed only if a thread other than 0 had or has a part in them:
// single rows (norms, gates, rotations of a decode step) follow each other on thread 0 without one.
// `owed` remembers a barrier left out, for a later task of all threads may rest on it without
// naming it again.
static void run_tasks(void *arg, int i_thread, int n_thread) {
    const sl_program *p = arg;
    bool shared = false, owed = false;
    for (const sl_task *t = p->task, *end = t + p->n_task; t < end; t++) {
        int32_t n_row = t->logit_rows ? p->step->n_logit : p->step->n_row;
        bool alone = n_row == 0 || (n_row == 1 && t->kind == SL_TASK_ROWS);
        owed |= t->barrier;
        if (owed && (shared || !alone)) {
            sl_pool_barrier(p->device->pool);
            owed = shared = false;
        }
        shared |= !alone;
        if (n_row > 0 && (!alone || i_thread == 0)) run_share(p, t, n_row, i_thread, alone ? 1 : n_thread);
    }
}

sl_status sl_cpu_run(sl_program *program, const sl_step *step) {
    SL_TRY(sl_host_check_step(program->plan, step));
    program->step = step;
    sl_pool_run(program->device->pool, program->n_thread, run_tasks, program);
    program->step = NULL;
    return SL_OK;
}
