// SPDX-License-Identifier: MIT
//
// How many threads are fastest? More is not always better: the memory bus may be full with fewer, and the second thread
// of a core brings little. The first products of the program, on the real weights, are timed with all threads, half of
// them and so on; that takes some tens of milliseconds. A model too small to tell leaves all threads.
#include "backend/cpu/cpu.h"
#include "os/os.h"

#define ENOUGH_FASTER 0.97 // of the time: what fewer threads must reach
#define IDLE_SHARE    0.9  // of the processor; with less of it the measurement was disturbed

enum {
    N_RUN = 2,
    N_ROW = 64,           // of a wide step
    MAX_BYTES = 48 << 20, // of the weights that are read, in a narrow step
    MIN_BYTES = 16 << 20, // below that caches and barriers are timed
    MAX_MAC = 1 << 28,    // in a wide step
    MIN_MAC = 1 << 26,
};

// Tasks of the program whose products stay within the limits; 0: they are too few to tell.
static uint32_t count_tasks(const sl_program *p, int32_t n_row) {
    uint64_t n_bytes = 0, n_mac = 0;
    uint32_t n = 0;
    for (; n < p->n_task && n_bytes < MAX_BYTES && n_mac < MAX_MAC; n++) {
        if (p->task[n].kind != SL_TASK_PANELS) continue;
        const sl_cpu_matmul *mm = &p->task[n].mm;
        n_bytes += mm->n_out * mm->w_row_bytes;
        n_mac += (uint64_t)mm->n_out * mm->n_col * (uint64_t)n_row;
    }
    return n_bytes >= MIN_BYTES || n_mac >= MIN_MAC ? n : 0;
}

typedef struct trial {
    const sl_program *program;
    uint32_t n_task;
    int32_t n_row;
} trial;

static void run_products(void *arg, int i_thread, int n_thread) {
    const trial *of = arg;
    const sl_program *p = of->program;
    for (const sl_task *t = p->task, *end = t + of->n_task; t < end; t++) {
        if (t->barrier) sl_pool_barrier(p->device->pool);
        if (t->kind != SL_TASK_PANELS || t->logit_rows) continue;
        sl_share s = {.i_thread = i_thread,
                      .n_thread = n_thread,
                      .row_end = of->n_row,
                      .col = {t->range[i_thread], {0, 0}},
                      .scratch = p->scratch + (uint64_t)i_thread * p->scratch_bytes};
        if (s.col[0].begin < s.col[0].end) t->run(p, t, &s);
    }
}

typedef struct timing {
    uint64_t best_ns, wall_ns, cpu_ns; // of one run; of all, and how much of it the caller had its processor
} timing;

static timing time_threads(sl_program *p, trial *of, int n_thread, int n_run) {
    timing t = {.best_ns = UINT64_MAX};
    sl_cpu_share_products(p, n_thread);
    for (int i = 0; i < n_run; i++) {
        uint64_t start = sl_clock_ns(), start_cpu = sl_clock_thread_ns();
        sl_pool_run(p->device->pool, n_thread, run_products, of);
        uint64_t ns = sl_clock_ns() - start;
        t.cpu_ns += sl_clock_thread_ns() - start_cpu;
        t.wall_ns += ns;
        t.best_ns = SL_MIN(t.best_ns, ns);
    }
    return t;
}

void sl_cpu_choose_threads(sl_program *p) {
    sl_device *device = p->device;
    bool wide = sl_cpu_is_wide(p->plan), idle = true;
    int n_max = device->n_max[wide], best = n_max;
    double best_ns = 0;
    trial first = {.program = p, .n_row = wide ? (int32_t)SL_MIN(p->plan->shape.n_row_max, (uint32_t)N_ROW) : 1};
    first.n_task = count_tasks(p, first.n_row);
    if (first.n_task == 0) return;
    (void)time_threads(p, &first, n_max, 1); // touches the weights
    for (int n = n_max; n >= 1; n /= 2) {
        timing t = time_threads(p, &first, n, N_RUN);
        idle &= (double)t.cpu_ns >= IDLE_SHARE * (double)t.wall_ns;
        if (n < n_max && (double)t.best_ns >= best_ns * ENOUGH_FASTER) continue;
        best = n, best_ns = (double)t.best_ns;
    }
    device->n_thread[wide] = idle ? best : n_max;
    device->is_known[wide] = idle;
    device->is_open[wide] = false;
}
