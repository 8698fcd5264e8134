// SPDX-License-Identifier: MIT
//
// Time and threads of os.h for Linux and macOS. sl_wait_word is the one place where a thread may
// sleep: a futex on Linux, its twin __ulock on macOS.
#define _GNU_SOURCE // pthread_setname_np, pthread_setaffinity_np, syscall
#define _DARWIN_C_SOURCE
#include "os/os.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

#if defined(__linux__)
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread/qos.h>
// Declared here because the SDK has no public header for them; libc++ stands on the same two calls.
extern int __ulock_wait(uint32_t operation, void *addr, uint64_t value, uint32_t timeout_us);
extern int __ulock_wake(uint32_t operation, void *addr, uint64_t wake_value);
enum { ULOCK_COMPARE_AND_WAIT = 1, ULOCK_WAKE_ALL = 0x100 };
#endif

uint64_t sl_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sl_clock_thread_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t sl_clock_date_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// ---- threads ------------------------------------------------------------------------------------

enum { NAME_BYTES = 16 }; // with the NUL; the limit of Linux

struct sl_thread {
    pthread_t id;
    void (*run)(void *arg);
    void *arg; // borrowed
    char name[NAME_BYTES];
};

static void *thread_main(void *arg) {
    sl_thread *thread = arg;
#if defined(__APPLE__)
    pthread_setname_np(thread->name);
    pthread_set_qos_class_self_np(QOS_CLASS_USER_INTERACTIVE,
                                  0); // else it may land on an efficiency core
#elif defined(__linux__)
    pthread_setname_np(pthread_self(), thread->name);
#endif
    thread->run(thread->arg);
    return NULL;
}

sl_status sl_thread_create(sl_thread **out, void (*run)(void *arg), void *arg, const char *name) {
    SL_TRY(sl_alloc(out, 1, sizeof **out, "a thread"));
    sl_thread *thread = *out;
    thread->run = run;
    thread->arg = arg;
    snprintf(thread->name, sizeof thread->name, "%s", name);
    int error = pthread_create(&thread->id, NULL, thread_main, thread);
    if (error == 0) return SL_OK;
    sl_free(thread);
    *out = NULL;
    return SL_FAIL(SL_NO_MEMORY, "could not start the thread %s: %s; try fewer threads", name, strerror(error));
}

void sl_thread_join(sl_thread *thread) {
    if (!thread) return;
    SL_CHECK(pthread_join(thread->id, NULL) == 0);
    sl_free(thread);
}

void sl_thread_keep_to(const sl_thread *thread, const int *cpu, int n_cpu) {
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < n_cpu; i++) CPU_SET((size_t)cpu[i], &set);
    (void)pthread_setaffinity_np(thread->id, sizeof set, &set);
#else
    (void)thread, (void)cpu, (void)n_cpu;
#endif
}

// ---- waiting ------------------------------------------------------------------------------------

void sl_wait_word(const _Atomic uint32_t *word, uint32_t expected) {
#if defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
#elif defined(__APPLE__)
    __ulock_wait(ULOCK_COMPARE_AND_WAIT, (void *)(uintptr_t)word, expected, 0);
#else
    (void)word, (void)expected;
    sched_yield();
#endif
}

void sl_wake_all(const _Atomic uint32_t *word) {
#if defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#elif defined(__APPLE__)
    __ulock_wake(ULOCK_COMPARE_AND_WAIT | ULOCK_WAKE_ALL, (void *)(uintptr_t)word, 0);
#else
    (void)word;
#endif
}

void sl_thread_yield(void) { sched_yield(); }

void sl_cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); // longer than `yield`, which most cores treat as nothing
#endif
}
