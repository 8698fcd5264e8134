// SPDX-License-Identifier: MIT
//
// What a backend is. `compile` decides everything; `run` decides nothing: it allocates nothing, looks nothing up,
// compares no strings. A backend sees a plan and weights, never a model or an engine. It refuses at compile, by name,
// what it lacks; it never falls back to another device.
#ifndef SL_BACKEND_BACKEND_H
#define SL_BACKEND_BACKEND_H

#include "base/status.h"
#include "plan/ir.h"

typedef struct sl_device sl_device;   // an open device with its threads or queues
typedef struct sl_program sl_program; // a compiled plan, bound to its memory

typedef struct sl_device_options {
    int n_thread;         // decode (steps of up to 8 rows); 0 = chosen by the backend
    int n_thread_prefill; // wider steps; 0 = chosen by the backend
    // What it chose on this machine before, in place of a count that is 0; 0 = it measures.
    int known_thread, known_thread_prefill;
    bool repack;       // may keep own copies of weights in a faster order (plan->copy_bytes)
    bool wire;         // locks such copies into memory, as far as the system allows
    const char *level; // narrows the instruction set ("generic", "avx2", "neon" and so on); NULL = the best there is
} sl_device_options;

typedef struct sl_device_info {
    char name[96];                  // "AMD EPYC ..., avx512"
    int n_thread, n_thread_prefill; // 0 where it means nothing; before compile the most there may be
    bool chose, chose_prefill;      // the counts were measured, and on an idle machine
    uint64_t wired_bytes;           // of the copies of weights
    bool own_memory;                // buffers and copies of weights lie in memory that the CPU does not see
    uint64_t free_bytes;            // of that memory now
    double read_gb_s; // of that memory, in 10^9 bytes a second, as copies of weights were read; 0: unknown
} sl_device_info;

// Memory of a device. `host` is its address for the CPU, or NULL if the CPU cannot see it.
typedef struct sl_device_buf {
    void *host;
    size_t n_bytes;
    void *handle; // the backend's own
} sl_device_buf;

// Bound once at compile. Weights by plan weight id.
typedef struct sl_program_memory {
    const void *const *weight;      // (n_weight) host addresses, borrowed, alive as long as the program
    const sl_device_buf *workspace; // at least plan->workspace_bytes
    const sl_device_buf *kv;        // at least plan->kv_bytes
    int (*progress)(void *user, uint64_t n,
                    uint64_t total); // of copying weights, in bytes; may be NULL; non-zero stops
    void *user;
} sl_program_memory;

typedef struct sl_backend {
    const char *name;
    uint32_t fusions; // SL_FUSE_* of plan/ir.h that it wants

    // Is there such a device? SL_OK, or SL_DEVICE with the reason in words.
    sl_status (*probe)(void);
    sl_status (*open)(sl_device **out, const sl_device_options *options);
    void (*close)(sl_device *device); // NULL is fine
    void (*info)(const sl_device *device, sl_device_info *out);

    // host == NULL: new zeroed memory, touched. Otherwise a view of host memory that the caller keeps alive.
    sl_status (*buf_create)(sl_device *device, sl_device_buf *out, void *host, size_t n_bytes, const char *what);
    void (*buf_destroy)(sl_device *device, sl_device_buf *buf); // zeroed is fine
    sl_status (*buf_copy)(sl_device *device, sl_device_buf *dst, size_t dst_off, const sl_device_buf *src,
                          size_t src_off, size_t n_bytes);
    sl_status (*buf_read)(sl_device *device, void *out, const sl_device_buf *src, size_t src_off, size_t n_bytes);

    // Called by layout for each op: what it needs, or SL_UNSUPPORTED naming op and type. `device` is an sl_device.
    sl_status (*supports)(void *device, const sl_plan *plan, const sl_op *op, sl_op_need *need);
    // `plan` and the memory must outlive the program.
    sl_status (*compile)(sl_device *device, sl_program **out, const sl_plan *plan, const sl_program_memory *memory);
    void (*program_destroy)(sl_program *program); // NULL is fine
    // Runs a step. A device backend may return before it is complete; buf_read waits for what it reads.
    sl_status (*run)(sl_program *program, const sl_step *step);
} sl_backend; // twelve functions and two facts: fourteen entries, and no more

extern const sl_backend sl_backend_ref;
extern const sl_backend sl_backend_cpu;
extern const sl_backend sl_backend_cuda; // in builds with SLUICE_CUDA

// NULL if there is none of that name. sl_backend_at(i): all that are built in, NULL past the end.
const sl_backend *sl_backend_find(const char *name);
const sl_backend *sl_backend_at(size_t i);

#endif
