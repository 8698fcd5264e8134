// SPDX-License-Identifier: MIT
//
// A read-only sweep: decoding reads weights once and writes almost nothing, so a copy or a triad
// would grade it against the wrong figure. Each thread reads its own part again and again until the
// time is over, and counts; their rates add up.
#include "forecast/bandwidth.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "forecast/measured.h"
#include "os/os.h"

#define IDLE_SHARE 0.9 // of the time; with less of it a thread had to share its processor

enum {
    MIN_BYTES = 256 << 20, // beyond the last cache of a desk machine
    MAX_BYTES = 512 << 20,
    STRETCH_BYTES = 2 << 20, // between two looks at the clock
    RUN_NS = 70 * 1000 * 1000,
    N_RUN = 3,
    MAX_THREADS = 1024,
    LINE_WORDS = 8,     // 64 bytes
    AHEAD_BYTES = 4096, // the processor's own prefetcher stops at the border of a page
};

typedef struct sweep {
    const uint64_t *data; // (n_word) of this thread
    size_t n_word;
    const _Atomic uint32_t *go;
    double gb_s, share; // of the processor's time that this thread had
    uint64_t sum;       // so that no read is optimised away
    sl_thread *thread;
} sweep;

// Eight sums, so that the adds wait for memory and not for each other.
static uint64_t read_stretch(const uint64_t *data, size_t n_word) {
    uint64_t sum[LINE_WORDS] = {0};
    for (size_t i = 0; i + LINE_WORDS <= n_word; i += LINE_WORDS) {
        SL_PREFETCH((const void *)((uintptr_t)(data + i) + AHEAD_BYTES)); // past the end it does nothing
        for (int k = 0; k < LINE_WORDS; k++) sum[k] += data[i + (size_t)k];
    }
    uint64_t all = 0;
    for (int k = 0; k < LINE_WORDS; k++) all += sum[k];
    return all;
}

static void run_sweep(void *arg) {
    sweep *s = arg;
    while (!atomic_load_explicit(s->go, memory_order_acquire)) sl_thread_yield();
    uint64_t start = sl_clock_ns(), start_cpu = sl_clock_thread_ns(), now, n_bytes = 0, stretch = STRETCH_BYTES / 8;
    size_t at = 0;
    do {
        size_t n = SL_MIN(stretch, s->n_word - at);
        s->sum += read_stretch(s->data + at, n);
        n_bytes += n * 8;
        at = at + n == s->n_word ? 0 : at + n;
        now = sl_clock_ns();
    } while (now - start < RUN_NS);
    s->gb_s = (double)n_bytes / (double)(now - start);
    s->share = (double)(sl_clock_thread_ns() - start_cpu) / (double)(now - start);
}

static sl_status run_all(sweep *sweeps, int n_thread, _Atomic uint32_t *go, sl_bandwidth *best) {
    sl_status status = SL_OK;
    int n = 0;
    atomic_store(go, 0);
    for (; n < n_thread - 1; n++) {
        status = sl_thread_create(&sweeps[n].thread, run_sweep, &sweeps[n], "sluice-read");
        if (status != SL_OK) break;
    }
    atomic_store_explicit(go, 1, memory_order_release);
    if (status == SL_OK) run_sweep(&sweeps[n]);
    for (int i = 0; i < n; i++) sl_thread_join(sweeps[i].thread);
    if (status != SL_OK) return status;
    double gb_s = 0, share = 1;
    for (int i = 0; i < n_thread; i++) gb_s += sweeps[i].gb_s, share = SL_MIN(share, sweeps[i].share);
    if (gb_s > best->gb_s) *best = (sl_bandwidth){.gb_s = gb_s, .busy = share < IDLE_SHARE};
    return SL_OK;
}

sl_status sl_bandwidth_measure(sl_bandwidth *out, int n_thread) {
    *out = (sl_bandwidth){0};
    if (n_thread < 1 || n_thread > MAX_THREADS)
        return SL_FAIL(SL_BAD_ARG, "bandwidth by %d threads; 1 .. %d are possible", n_thread, MAX_THREADS);
    size_t free_bytes = sl_memory_free_bytes(), n_bytes = MIN_BYTES;
    while (n_bytes < MAX_BYTES && n_bytes < free_bytes / 8) n_bytes *= 2;
    uint64_t *data = NULL;
    sweep *sweeps = NULL;
    _Atomic uint32_t go;
    sl_status status = sl_alloc(&sweeps, (size_t)n_thread, sizeof *sweeps, "bandwidth");
    if (status != SL_OK) return status;
    SL_TRY_OUT(sl_pages_alloc(&data, n_bytes, true, "measuring the bandwidth"));
    // Pages that were only zeroed may all be one page of the kernel's; these are real.
    for (size_t i = 0; i < n_bytes / 8; i += sl_page_bytes() / 8) data[i] = i;
    for (int i = 0; i < n_thread; i++) {
        size_t each = n_bytes / 8 / (size_t)n_thread / LINE_WORDS * LINE_WORDS;
        sweeps[i] = (sweep){.data = data + (size_t)i * each, .n_word = each, .go = &go};
    }
    for (int i = 0; i < N_RUN; i++) SL_TRY_OUT(run_all(sweeps, n_thread, &go, out));
out:
    sl_pages_free(data, n_bytes);
    sl_free(sweeps);
    return status;
}

sl_status sl_bandwidth_get(sl_bandwidth *out, const char *path, int n_thread) {
    char key[160];
    snprintf(key, sizeof key, "%s, %d threads", sl_cpu_name(), n_thread);
    double known = sl_measured_find(path, key);
    if (known > 0.01 && known < 1e6) {
        *out = (sl_bandwidth){.gb_s = known, .remembered = true};
        return SL_OK;
    }
    SL_TRY(sl_bandwidth_measure(out, n_thread));
    if (!out->busy) sl_measured_keep(path, key, out->gb_s);
    return SL_OK;
}
