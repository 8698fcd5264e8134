// SPDX-License-Identifier: MIT
//
// The pool of pool.h. Two kinds of word are waited on: each worker's own `ticket` (a run to join),
// and the pool's `epoch` (a barrier passed). Both only count up, so a thread that wakes late sees
// "not what I waited for" and goes on; that is also why the barrier needs no second phase: a thread
// reads the epoch before it arrives, and the epoch cannot move on twice without that thread.
#include "backend/cpu/pool.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "os/os.h"

enum {
    LINE_BYTES = 128,    // two cache lines: the neighbour line is fetched along
    SPINS_PER_LOOK = 32, // pauses between two looks at the clock
};
// How long to wait in each way, in ns. A phase's imbalance is microseconds; between steps the
// caller samples.
static const uint64_t SPIN_NS = 50000, YIELD_NS = 200000, IDLE_YIELD_NS = 2000000;

typedef struct gate {
    _Atomic uint32_t word;
    _Atomic uint32_t n_sleeping;
    char pad[LINE_BYTES - 8];
} gate;

typedef struct worker {
    gate ticket;
    sl_pool *pool;
    sl_thread *thread; // owned
    int index;
    char pad[LINE_BYTES - 2 * sizeof(void *) - sizeof(int)];
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
    // fixed
    int n_thread;
    int n_cpu;
    int n_started;   // of the workers; fewer than n_thread - 1 only while create fails
    worker worker[]; // (n_thread - 1): threads 1 .. n_thread-1
};

// Returns when the gate's word is no longer `old`. A crowded run (more threads than processors)
// does not spin: the thread it waits for may need this processor.
static void gate_wait(gate *g, uint32_t old, bool crowded, uint64_t yield_ns) {
    if (atomic_load_explicit(&g->word, memory_order_acquire) != old) return;
    uint64_t start = sl_clock_ns(), spin_ns = crowded ? 0 : SPIN_NS, waited = 0;
    if (crowded) yield_ns = SPIN_NS;
    while (waited < spin_ns + yield_ns) {
        if (waited < spin_ns) {
            for (int i = 0; i < SPINS_PER_LOOK; i++) {
                if (atomic_load_explicit(&g->word, memory_order_acquire) != old) return;
                sl_cpu_relax();
            }
        } else {
            sl_thread_yield();
        }
        if (atomic_load_explicit(&g->word, memory_order_acquire) != old) return;
        waited = sl_clock_ns() - start;
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
        gate_wait(&pool->epoch, now, n > pool->n_cpu, YIELD_NS);
    }
}

static void worker_main(void *arg) {
    worker *w = arg;
    sl_pool *pool = w->pool;
    for (uint32_t ticket = 0;; ticket++) {
        gate_wait(&w->ticket, ticket, pool->n_thread > pool->n_cpu, IDLE_YIELD_NS);
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
