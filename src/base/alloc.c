// SPDX-License-Identifier: MIT
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/size.h"

static _Atomic uint64_t n_alloc, n_sealed, fail_in;
static SL_THREAD_LOCAL int sealed;

static bool count_one(void) {
    atomic_fetch_add_explicit(&n_alloc, 1, memory_order_relaxed);
    if (sealed) {
        atomic_fetch_add_explicit(&n_sealed, 1, memory_order_relaxed);
        SL_ASSERT(!sealed);
    }
    if (atomic_load_explicit(&fail_in, memory_order_relaxed) == 0) return true;
    return atomic_fetch_sub_explicit(&fail_in, 1, memory_order_relaxed) != 1;
}

static sl_status no_memory(uint64_t n, uint64_t elem_bytes, const char *what) {
    return SL_FAIL(SL_NO_MEMORY, "out of memory: %s needs %llu x %llu bytes", what, (unsigned long long)n,
                   (unsigned long long)elem_bytes);
}

sl_status sl_alloc(void *out, size_t n, size_t elem_bytes, const char *what) {
    void **p = out;
    uint64_t n_bytes;
    *p = NULL;
    if (!sl_size_mul(&n_bytes, n, elem_bytes) || n_bytes > PTRDIFF_MAX || !count_one() ||
        !(*p = calloc(n_bytes ? n_bytes : 1, 1)))
        return no_memory(n, elem_bytes, what);
    return SL_OK;
}

sl_status sl_realloc(void *ptr, size_t n_old, size_t n_new, size_t elem_bytes, const char *what) {
    void **p = ptr;
    uint64_t n_bytes;
    void *grown = NULL;
    if (!sl_size_mul(&n_bytes, n_new, elem_bytes) || n_bytes > PTRDIFF_MAX || !count_one() ||
        !(grown = realloc(*p, n_bytes ? n_bytes : 1)))
        return no_memory(n_new, elem_bytes, what);
    if (n_new > n_old) memset((char *)grown + n_old * elem_bytes, 0, (n_new - n_old) * elem_bytes);
    *p = grown;
    return SL_OK;
}

void sl_free(void *ptr) { free(ptr); }

uint64_t sl_alloc_count(void) { return atomic_load(&n_alloc); }

void sl_alloc_fail_at(uint64_t n) { atomic_store(&fail_in, n); }

void sl_alloc_seal(int on) { sealed = on; }

uint64_t sl_alloc_sealed_count(void) { return atomic_load(&n_sealed); }
