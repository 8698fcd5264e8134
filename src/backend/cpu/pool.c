// SPDX-License-Identifier: MIT
//
// The pool of pool.h. Two kinds of word are waited on: each worker's own `ticket` (a run to join), and the pool's
// `epoch` (a barrier passed). Both only count up, so a thread that wakes late sees "not what I waited for" and goes on;
// that is also why the barrier needs no second phase: a thread reads the epoch before it arrives, and the epoch cannot
// move on twice without that thread.
//
// Places: the processors are cut into as many groups as there are threads, and each worker keeps to one, for a
// scheduler left alone puts two threads on one processor and lets another idle for seconds. The caller is not ours to
// tie down; if it turns up in a worker's group, that worker moves to the group that the caller has left.
#include "backend/cpu/pool.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "os/os.h"

enum {
    LINE_BYTES = 128,    // two cache lines: the neighbour line is fetched along
    SPINS_PER_LOOK = 32, // pauses between two looks at the clock
};
// How long to wait before sleeping, in ns. At a barrier the others are microseconds away, or have lost their processor
// for milliseconds: then ours is better left to whoever wants it. Between steps the caller samples. Yielding instead
// would hand a busy processor over for a whole slice. Only where threads share processors is it right, for then one of
// them is waited for.
static const uint64_t BARRIER_NS = 100000, IDLE_NS = 1000000, CROWDED_NS = 500000;

typedef struct gate {
    _Atomic uint32_t word;
    _Atomic uint32_t n_sleeping;
    char pad[LINE_BYTES - 8];
} gate;

typedef struct worker {
    gate ticket;
    sl_pool *pool;
    sl_thread *thread; // owned
    int index, group;
    char pad[LINE_BYTES - 2 * sizeof(void *) - 2 * sizeof(int)];
} worker;

struct sl_pool {
    gate epoch;
    _Atomic int32_t n_arrived;
    char pad[LINE_BYTES - 4];
    // written by the caller between runs, read by the workers of a run
    sl_pool_fn *run;
    void *arg;
    int n_active; // threads of this run
    bool quit;
    int caller_group;
    // fixed
    int n_thread;
    int n_cpu;
    int n_group;                  // of processors; 0: threads are not tied
    int cpu[SL_CPU_MAX];          // by group: the first n_cpu_of(0) are those of group 0
    int16_t group_of[SL_CPU_MAX]; // by processor; -1: not ours
    int group_begin[SL_CPU_MAX + 1];
    int n_started;   // of the workers; fewer than n_thread - 1 only while create fails
    worker worker[]; // (n_thread - 1): threads 1 .. n_thread-1
};

// ---- places -------------------------------------------------------------------------------------

// Processor k of the list belongs to group k % n_group: a core's second processor is with its first where that is
// possible.
static void make_groups(sl_pool *pool) {
    int list[SL_CPU_MAX], n = sl_cpu_list(list, SL_CPU_MAX), at = 0;
    for (int i = 0; i < SL_CPU_MAX; i++) pool->group_of[i] = -1;
    pool->n_group = n < 2 ? 0 : SL_MIN(n, pool->n_thread);
    for (int g = 0; g < pool->n_group; g++) {
        pool->group_begin[g] = at;
        for (int k = g; k < n; k += pool->n_group) pool->cpu[at++] = list[k], pool->group_of[list[k]] = (int16_t)g;
    }
    pool->group_begin[pool->n_group] = at;
}

static void place(const sl_pool *pool, worker *w, int group) {
    int begin = pool->group_begin[group];
    w->group = group;
    sl_thread_keep_to(w->thread, pool->cpu + begin, pool->group_begin[group + 1] - begin);
}

static void make_way(sl_pool *pool) {
    int cpu = pool->n_group > 1 ? sl_cpu_now() : -1, old = pool->caller_group;
    int group = cpu < 0 || cpu >= SL_CPU_MAX ? -1 : pool->group_of[cpu];
    if (group < 0 || group == old) return;
    for (int i = 0; i < pool->n_started; i++) {
        worker *w = &pool->worker[i];
        if (w->group == group) place(pool, w, old);
        else if (w->group == old) place(pool, w, group);
    }
    pool->caller_group = group;
}

// ---- waiting ------------------------------------------------------------------------------------

// Returns when the gate's word is no longer `old`.
static void gate_wait(gate *g, uint32_t old, uint64_t spin_ns, bool crowded) {
    if (atomic_load_explicit(&g->word, memory_order_acquire) != old) return;
    for (uint64_t start = sl_clock_ns(); sl_clock_ns() - start < spin_ns;) {
        if (crowded) sl_thread_yield();
        for (int i = 0; i < (crowded ? 1 : SPINS_PER_LOOK); i++) {
            if (atomic_load_explicit(&g->word, memory_order_acquire) != old) return;
            sl_cpu_relax();
        }
    }
    // The sleeper announces itself, then looks; the opener writes, then looks for sleepers: one of
    // them sees the other.
    atomic_fetch_add(&g->n_sleeping, 1);
    while (atomic_load(&g->word) == old) sl_wait_word(&g->word, old);
    atomic_fetch_sub(&g->n_sleeping, 1);
}

static void gate_open(gate *g) {
    atomic_fetch_add(&g->word, 1);
    if (atomic_load(&g->n_sleeping) != 0) sl_wake_all(&g->word);
}

void sl_pool_barrier(sl_pool *pool) {
    int n = pool->n_active;
    if (n == 1) return;
    uint32_t now = atomic_load_explicit(&pool->epoch.word, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&pool->n_arrived, 1, memory_order_acq_rel) == n - 1) {
        atomic_store_explicit(&pool->n_arrived, 0, memory_order_relaxed);
        gate_open(&pool->epoch);
    } else {
        bool crowded = n > pool->n_cpu;
        gate_wait(&pool->epoch, now, crowded ? CROWDED_NS : BARRIER_NS, crowded);
    }
}

// ---- runs ---------------------------------------------------------------------------------------

static void worker_main(void *arg) {
    worker *w = arg;
    sl_pool *pool = w->pool;
    for (uint32_t ticket = 0;; ticket++) {
        bool crowded = pool->n_thread > pool->n_cpu;
        gate_wait(&w->ticket, ticket, crowded ? CROWDED_NS : IDLE_NS, crowded);
        if (pool->quit) return;
        pool->run(pool->arg, w->index, pool->n_active);
        sl_pool_barrier(pool);
    }
}

void sl_pool_run(sl_pool *pool, int n_thread, sl_pool_fn *run, void *arg) {
    SL_CHECK(n_thread >= 1 && n_thread <= pool->n_thread);
    pool->run = run;
    pool->arg = arg;
    pool->n_active = n_thread;
    if (n_thread > 1) make_way(pool);
    for (int i = 0; i < n_thread - 1; i++) gate_open(&pool->worker[i].ticket);
    run(arg, 0, n_thread);
    sl_pool_barrier(pool);
}

sl_status sl_pool_create(sl_pool **out, int n_thread) {
    *out = NULL;
    if (n_thread < 1 || n_thread > SL_POOL_MAX_THREADS)
        return SL_FAIL(SL_BAD_ARG, "%d threads: the number must be 1 to %d", n_thread, SL_POOL_MAX_THREADS);
    sl_pool *pool;
    SL_TRY(sl_alloc(&pool, 1, sizeof *pool + (size_t)(n_thread - 1) * sizeof(worker), "the thread pool"));
    pool->n_cpu = sl_cpu_count();
    pool->n_thread = n_thread;
    make_groups(pool);
    for (int i = 0; i < n_thread - 1; i++) pool->worker[i].pool = pool, pool->worker[i].index = i + 1;
    for (int i = 0; i < n_thread - 1; i++) {
        char name[24];
        snprintf(name, sizeof name, "sluice-%d", i + 1);
        sl_status status = sl_thread_create(&pool->worker[i].thread, worker_main, &pool->worker[i], name);
        if (status != SL_OK) {
            sl_pool_destroy(pool);
            return status;
        }
        pool->n_started++;
        if (pool->n_group) place(pool, &pool->worker[i], (i + 1) % pool->n_group);
    }
    *out = pool;
    return SL_OK;
}

void sl_pool_destroy(sl_pool *pool) {
    if (!pool) return;
    pool->quit = true;
    for (int i = 0; i < pool->n_started; i++) gate_open(&pool->worker[i].ticket);
    for (int i = 0; i < pool->n_started; i++) sl_thread_join(pool->worker[i].thread);
    sl_free(pool);
}

int sl_pool_size(const sl_pool *pool) { return pool->n_thread; }
