// SPDX-License-Identifier: MIT
//
// Memory of os.h for Linux and macOS: touched pages, locked pages, fault counts. How much memory
// there is: memory_limit.c.
#define _GNU_SOURCE // MAP_ANONYMOUS, MADV_HUGEPAGE
#include "os/os.h"

#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/size.h"

enum { HUGE_BYTES = 2 << 20 };

size_t sl_page_bytes(void) {
    long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (size_t)n : 4096;
}

static size_t whole_pages(size_t n_bytes) { return sl_round_up(n_bytes ? n_bytes : 1, sl_page_bytes()); }

// Maps n_bytes (whole pages) beginning at a multiple of `align`, by mapping more and giving back
// both ends.
static char *map_aligned(size_t n_bytes, size_t align) {
    size_t extra = align > sl_page_bytes() ? align : 0;
    char *p = mmap(NULL, n_bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    if (!extra) return p;
    size_t before = (align - (uintptr_t)p % align) % align, after = extra - before;
    if (before) munmap(p, before);
    if (after) munmap(p + before + n_bytes, after);
    return p + before;
}

sl_status sl_pages_map(void *out, size_t n_bytes, bool huge, const char *what) {
    void **result = out;
    *result = NULL;
    size_t free_bytes = sl_memory_free_bytes();
    if (n_bytes > PTRDIFF_MAX - HUGE_BYTES || (free_bytes && n_bytes > free_bytes))
        return SL_FAIL(SL_NO_MEMORY, "out of memory: %s needs %zu bytes, but only %zu are free", what, n_bytes,
                       free_bytes);
    size_t mapped_bytes = whole_pages(n_bytes);
    bool aligned = huge && mapped_bytes >= HUGE_BYTES;
    char *p = map_aligned(mapped_bytes, aligned ? HUGE_BYTES : sl_page_bytes());
    if (!p) return SL_FAIL(SL_NO_MEMORY, "out of memory: %s needs %zu bytes: %s", what, n_bytes, strerror(errno));
#ifdef MADV_HUGEPAGE
    if (aligned) madvise(p, mapped_bytes, MADV_HUGEPAGE); // a wish; without it pages are just smaller
#endif
    *result = p;
    return SL_OK;
}

sl_status sl_pages_alloc(void *out, size_t n_bytes, bool huge, const char *what) {
    SL_TRY(sl_pages_map(out, n_bytes, huge, what));
    volatile char *pages = *(void **)out;
    for (size_t i = 0, step = sl_page_bytes(); i < whole_pages(n_bytes); i += step) pages[i] = 0;
    return SL_OK;
}

void sl_pages_free(void *ptr, size_t n_bytes) {
    if (ptr) munmap(ptr, whole_pages(n_bytes));
}

size_t sl_pages_lock(const void *ptr, size_t n_bytes) {
    size_t page = sl_page_bytes(), before = (uintptr_t)ptr % page, n_done = 0;
    char *start = (char *)(uintptr_t)ptr - before;
    size_t n_all = whole_pages(n_bytes + before), step = n_all;
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_MEMLOCK, &limit);
    }
    // as much as the limit allows: halve the step each time it does not fit
    while (n_done < n_all && step >= page) {
        size_t n = SL_MIN(step, n_all - n_done);
        if (mlock(start + n_done, n) == 0) n_done += n;
        else step = step / 2 / page * page;
    }
    return n_done <= before ? 0 : SL_MIN(n_done - before, n_bytes);
}

sl_faults sl_faults_now(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return (sl_faults){0};
    return (sl_faults){(uint64_t)usage.ru_minflt, (uint64_t)usage.ru_majflt};
}

// ---- code ---------------------------------------------------------------------------------------

#if defined(__linux__)
extern const char __executable_start[] __attribute__((weak)), __etext[] __attribute__((weak)); // by the GNU linker

void sl_code_prefault(void) {
    enum { POPULATE_READ = 22 }; // MADV_POPULATE_READ of Linux 5.14; older ones refuse it, and nothing is lost
    if (!__executable_start || !__etext) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)__executable_start / page * page;
    (void)madvise((void *)begin, (uintptr_t)__etext - begin, POPULATE_READ);
}
#else
void sl_code_prefault(void) {}
#endif
