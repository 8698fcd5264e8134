// SPDX-License-Identifier: MIT
// sl_test: MODULES backend
//
// The thread pool: every unit is done once, phases do not overlap, results are seen, more threads
// than processors, sleep and wake, and a thread that cannot be started. The same program is run
// under TSan.
#include "harness.h"

#include <stdatomic.h>
#include <time.h>

#include "backend/cpu/pool.h"
#include "base/alloc.h"
#include "os/os.h"

enum { N_SLOT = 64 };

static sl_pool *open_pool(int n_thread) {
    sl_pool *pool;
    REQUIRE_OK(sl_pool_create(&pool, n_thread), sl_error_text());
    CHECK_INT(sl_pool_size(pool), n_thread);
    return pool;
}

// ---- one run ------------------------------------------------------------------------------------

typedef struct visits {
    _Atomic int count[N_SLOT];
    int n_thread;
    int plain[N_SLOT]; // not atomic: the end of the run has to order it
} visits;

static void visit(void *arg, int i_thread, int n_thread) {
    visits *v = arg;
    CHECK_INT(n_thread, v->n_thread);
    atomic_fetch_add(&v->count[i_thread], 1);
    v->plain[i_thread]++;
}

TEST(each_thread_runs_once_per_run) {
    for (int size = 1; size <= 9; size++) {
        sl_pool *pool = open_pool(size);
        visits v = {0};
        int want[N_SLOT] = {0};
        for (int run = 0; run < 300; run++) {
            v.n_thread = 1 + run % size; // any count up to the size, also changing
            for (int i = 0; i < v.n_thread; i++) want[i]++;
            sl_pool_run(pool, v.n_thread, visit, &v);
            for (int i = 0; i < N_SLOT; i++)
                if (v.count[i] != want[i] || v.plain[i] != want[i])
                    test_failed(__FILE__, __LINE__, "size %d run %d", size, run);
        }
        sl_pool_destroy(pool);
    }
}

TEST(shares_cover_everything_once) {
    for (int n_thread = 1; n_thread < 20; n_thread++)
        for (int64_t n = 0; n < 70; n++) {
            int64_t at = 0, least = n, most = 0;
            for (int i = 0; i < n_thread; i++) {
                int64_t begin, end;
                sl_pool_share(&begin, &end, n, i, n_thread);
                CHECK_INT(begin, at);
                at = end;
                least = end - begin < least ? end - begin : least;
                most = end - begin > most ? end - begin : most;
            }
            CHECK_INT(at, n);
            CHECK(most - least <= 1);
        }
}

// ---- phases -------------------------------------------------------------------------------------

typedef struct phases {
    sl_pool *pool;
    int n_phase;
    uint32_t cell[2][N_SLOT]; // plain memory: a missing barrier is a wrong sum, and a race for TSan
    uint32_t n_wrong[N_SLOT];
    bool uneven;
} phases;

// In each phase a thread writes its cell from what all wrote in the phase before.
static void run_phases(void *arg, int i_thread, int n_thread) {
    phases *p = arg;
    for (int phase = 0; phase < p->n_phase; phase++) {
        uint32_t sum = 0;
        for (int i = 0; i < n_thread; i++) sum += p->cell[phase % 2][i];
        if (phase > 0 && sum != (uint32_t)(phase * n_thread)) p->n_wrong[i_thread]++;
        if (p->uneven && phase % n_thread == i_thread)
            for (int i = 0; i < 2000; i++) sl_cpu_relax();
        p->cell[(phase + 1) % 2][i_thread] = (uint32_t)phase + 1;
        sl_pool_barrier(p->pool);
    }
}

static void check_phases(int n_thread, int n_phase, bool uneven) {
    phases p = {.pool = open_pool(n_thread), .n_phase = n_phase, .uneven = uneven};
    for (int run = 0; run < 2; run++) {
        memset(p.cell, 0, sizeof p.cell);
        sl_pool_run(p.pool, n_thread, run_phases, &p);
        for (int i = 0; i < n_thread; i++) CHECK_INT(p.n_wrong[i], 0);
    }
    sl_pool_destroy(p.pool);
}

TEST(phases_do_not_overlap) {
    for (int n = 1; n <= 9; n++) check_phases(n, n <= sl_cpu_count() ? 20000 : 1000, false);
}

TEST(phases_do_not_overlap_with_a_late_thread) {
    for (int n = 2; n <= 9; n++) check_phases(n, 300, true);
}

// ---- sleep and wake -----------------------------------------------------------------------------

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

TEST(an_idle_pool_costs_nothing_and_wakes_again) {
    sl_pool *pool = open_pool(8);
    visits v = {.n_thread = 8};
    sl_pool_run(pool, 8, visit, &v);
    sleep_ms(100);
    double start = cpu_seconds();
    sleep_ms(400);
    CHECK(cpu_seconds() - start < 0.02); // 8 spinning threads would use 0.8 s of two processors
    sl_pool_run(pool, 8, visit, &v);
    for (int i = 0; i < 8; i++) CHECK_INT(v.count[i], 2);
    for (int run = 0; run < 60; run++) { // waits that end around the borders of spinning, yielding and sleeping
        nanosleep(&(struct timespec){0, 20000L * (run % 20) + (run % 3) * 1000000L}, NULL);
        sl_pool_run(pool, 8, visit, &v);
    }
    for (int i = 0; i < 8; i++) CHECK_INT(v.count[i], 62);
    sl_pool_destroy(pool);
}

static void sleep_in_one(void *arg, int i_thread, int n_thread) {
    (void)n_thread;
    if (i_thread == 1) sleep_ms(300);
    sl_pool_barrier(arg);
}

TEST(waiting_for_a_stuck_thread_costs_nothing) {
    sl_pool *pool = open_pool(4);
    double start = cpu_seconds();
    sl_pool_run(pool, 4, sleep_in_one, pool);
    CHECK(cpu_seconds() - start < 0.05);
    sl_pool_destroy(pool);
}

// ---- places -------------------------------------------------------------------------------------

static void note_cpu(void *arg, int i_thread, int n_thread) {
    (void)n_thread;
    ((int *)arg)[i_thread] = sl_cpu_now();
}

TEST(threads_keep_apart) {
    int list[SL_CPU_MAX], n_cpu = sl_cpu_list(list, SL_CPU_MAX), n_thread = n_cpu < 4 ? n_cpu : 4;
    if (n_thread < 2) return; // one processor, or a system that ties no threads
    for (int i = 0; i < n_cpu; i++)
        for (int k = 0; k < i; k++) CHECK(list[i] != list[k]);
    sl_pool *pool = open_pool(n_thread);
    int n_apart = 0, cpu[4];
    for (int run = 0; run < 200; run++) {
        sl_pool_run(pool, n_thread, note_cpu, cpu);
        bool apart = true;
        for (int i = 0; i < n_thread; i++)
            for (int k = 0; k < i; k++) apart &= cpu[i] != cpu[k];
        n_apart += apart;
    }
    CHECK(n_apart >= 100); // the caller may be moved within a run; left alone, threads meet for seconds
    sl_pool_destroy(pool);
}

// ---- trouble ------------------------------------------------------------------------------------

TEST(impossible_sizes_are_refused) {
    sl_pool *pool = (sl_pool *)&pool;
    CHECK_INT(sl_pool_create(&pool, 0), SL_BAD_ARG);
    CHECK(pool == NULL);
    CHECK_INT(sl_pool_create(&pool, -3), SL_BAD_ARG);
    CHECK_INT(sl_pool_create(&pool, SL_POOL_MAX_THREADS + 1), SL_BAD_ARG);
    sl_pool_destroy(NULL);
}

TEST(a_failed_start_leaves_nothing_behind) {
    for (uint64_t nth = 1; nth <= 6; nth++) {
        sl_pool *pool = (sl_pool *)&pool;
        sl_alloc_fail_at(nth); // the pool itself, then each of five threads
        CHECK_INT(sl_pool_create(&pool, 6), SL_NO_MEMORY);
        CHECK(pool == NULL);
    }
    sl_alloc_fail_at(0);
    sl_pool_destroy(open_pool(6));
}

TEST(a_run_allocates_nothing) {
    sl_pool *pool = open_pool(3);
    visits v = {.n_thread = 3};
    uint64_t before = sl_alloc_count();
    for (int i = 0; i < 50; i++) sl_pool_run(pool, 3, visit, &v);
    CHECK_INT(sl_alloc_count(), before);
    sl_pool_destroy(pool);
}

static void do_nothing(void *arg, int i_thread, int n_thread) { (void)arg, (void)i_thread, (void)n_thread; }

static void barriers(void *arg, int i_thread, int n_thread) {
    (void)i_thread, (void)n_thread;
    for (int i = 0; i < 10000; i++) sl_pool_barrier(arg);
}

TEST(times_of_run_and_barrier) {
    for (int n = 1; n <= 8 && test_bench(); n *= 2) {
        sl_pool *pool = open_pool(n);
        uint64_t start = sl_clock_ns();
        for (int i = 0; i < 10000; i++) sl_pool_run(pool, n, do_nothing, NULL);
        uint64_t middle = sl_clock_ns();
        sl_pool_run(pool, n, barriers, pool);
        printf("    %d threads: run %.0f ns, barrier %.0f ns\n", n, (double)(middle - start) / 1e4,
               (double)(sl_clock_ns() - middle) / 1e4);
        sl_pool_destroy(pool);
    }
}

// ---- processor ----------------------------------------------------------------------------------

TEST(the_processor_is_described) {
    CHECK(sl_cpu_count() >= 1);
    CHECK(strlen(sl_cpu_name()) > 0);
    uint32_t f = sl_cpu_features();
    if (f & SL_CPU_AVX512) CHECK(f & SL_CPU_AVX2);
    uint64_t a = sl_clock_ns(), b = sl_clock_ns();
    CHECK(b >= a && a > 0);
    printf("    %d x %s, features 0x%x\n", sl_cpu_count(), sl_cpu_name(), f);
}
