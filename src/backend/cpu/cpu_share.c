// SPDX-License-Identifier: MIT
//
// Which outputs of a product a thread computes. Products between two barriers (Q, K and V; gate and up) are dealt out
// together, by cost, so that a small one leaves no thread idle: first those whose outputs must stay together in units,
// then the others fill all threads to the same level. What a thread gets of a product is one range. Bits do not depend
// on it.
#include "backend/cpu/cpu.h"

static bool is_product(const sl_task *t) { return t->kind == SL_TASK_PANELS; }

// Outputs that are dealt out as one: whole panels, and whole units where the product has such.
static uint32_t grain_of(const sl_task *t) {
    uint32_t grain = SL_CPU_PANEL_ROWS;
    while (t->unit && grain % t->unit != 0) grain += SL_CPU_PANEL_ROWS;
    return grain;
}

// Of an output: what is read in a narrow step, what is computed in a wide one.
static double cost_of(const sl_task *t, bool wide) { return wide ? t->mm.n_col : (double)t->mm.w_row_bytes; }

// Whole units, the same number for each thread or one more. Every second product begins at the last thread, so that the
// one more does not always come to the first.
static void deal_units(const sl_task *t, double *load, int n_thread, bool backward, bool wide) {
    uint32_t grain = grain_of(t), n_out = t->mm.n_out;
    for (int i = 0; i < n_thread; i++) {
        int64_t begin, end;
        sl_pool_share(&begin, &end, (n_out + grain - 1) / grain, i, n_thread);
        int at = backward ? n_thread - 1 - i : i;
        t->range[at] = (sl_range){SL_MIN((uint32_t)begin * grain, n_out), SL_MIN((uint32_t)end * grain, n_out)};
        load[at] += (t->range[at].end - t->range[at].begin) * cost_of(t, wide);
    }
}

// The output of a product at which `cost` of it is done.
static uint32_t cut_at(const sl_task *t, double cost, bool wide) {
    double panels = cost / (cost_of(t, wide) * SL_CPU_PANEL_ROWS) + 0.5;
    if (!(panels > 0)) return 0;
    return panels * SL_CPU_PANEL_ROWS >= t->mm.n_out ? t->mm.n_out : (uint32_t)panels * SL_CPU_PANEL_ROWS;
}

// The products of a phase that can be cut at any panel, laid end to end and cut where each thread has its part.
static void fill(const sl_task *first, const sl_task *end, const double *load, int n_thread, bool wide) {
    double all = 0, rest = 0, room = 0, done = 0;
    for (const sl_task *t = first; t < end; t++)
        if (is_product(t) && !t->unit) rest += t->mm.n_out * cost_of(t, wide);
    for (int i = 0; i < n_thread; i++) all += load[i];
    double level = (all + rest) / n_thread;
    for (int i = 0; i < n_thread; i++) room += SL_MAX(level - load[i], 0.0);
    for (int i = 0; i < n_thread && rest > 0; i++) {
        double from = done, at = 0;
        done += SL_MAX(level - load[i], 0.0) * rest / room;
        for (const sl_task *t = first; t < end; t++) {
            if (!is_product(t) || t->unit) continue;
            uint32_t stop = i + 1 == n_thread ? t->mm.n_out : cut_at(t, done - at, wide);
            t->range[i] = (sl_range){cut_at(t, from - at, wide), stop};
            at += t->mm.n_out * cost_of(t, wide);
        }
    }
}

void sl_cpu_share_products(sl_program *p, int n_thread) {
    const sl_task *end = p->task + p->n_task;
    bool wide = sl_cpu_is_wide(p->plan);
    for (const sl_task *first = p->task, *next; first < end; first = next) {
        double load[SL_POOL_MAX_THREADS] = {0};
        uint32_t n_dealt = 0;
        for (next = first + 1; next < end && !next->barrier;) next++;
        for (const sl_task *t = first; t < next; t++)
            if (is_product(t) && t->unit) deal_units(t, load, n_thread, n_dealt++ % 2, wide);
        fill(first, next, load, n_thread, wide);
    }
    p->n_thread = n_thread;
}
