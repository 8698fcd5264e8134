// SPDX-License-Identifier: MIT
//
// A pool of threads that run one function together and meet at barriers in it. The caller is thread
// 0, so a pool of one starts nothing. Nothing is allocated and no lock is taken after create; the
// kernel is entered only to sleep and wake.
//
// Waiting is spinning at first, because phases are microseconds apart; then sleeping, so that an idle pool costs
// nothing and a late thread on a busy machine gets the processor that it needs. No two threads of a pool share a
// processor as long as there are enough of those that the process may use.
//
// The pool knows nothing of plans or kernels. Work is split by the function itself, by (i_thread,
// n_thread) alone.
#ifndef SL_BACKEND_CPU_POOL_H
#define SL_BACKEND_CPU_POOL_H

#include <stdint.h>

#include "base/status.h"

enum { SL_POOL_MAX_THREADS = 1024 };

typedef struct sl_pool sl_pool;

typedef void sl_pool_fn(void *arg, int i_thread, int n_thread);

// n_thread in 1 .. SL_POOL_MAX_THREADS, the caller included.
sl_status sl_pool_create(sl_pool **out, int n_thread);
void sl_pool_destroy(sl_pool *pool); // NULL is fine; no run may be going on
int sl_pool_size(const sl_pool *pool);

// Calls run(arg, i, n_thread) for i in 0 .. n_thread-1, each on its own thread, and returns when
// all have returned. What the caller wrote before is seen by all; what they wrote is seen by the
// caller. n_thread is at most the pool's size. One run at a time.
void sl_pool_run(sl_pool *pool, int n_thread, sl_pool_fn *run, void *arg);

// Inside a run, called by each of its threads: no thread leaves before all have come.
void sl_pool_barrier(sl_pool *pool);

// Splits n units into n_thread ranges whose lengths differ by at most one.
static inline void sl_pool_share(int64_t *begin, int64_t *end, int64_t n, int i_thread, int n_thread) {
    int64_t each = n / n_thread, rest = n % n_thread;
    *begin = i_thread * each + (i_thread < rest ? i_thread : rest);
    *end = *begin + each + (i_thread < rest);
}

#endif
