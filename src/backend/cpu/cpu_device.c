// SPDX-License-Identifier: MIT
//
// The CPU as an sl_backend: kernels of the best level that the processor has, and a pool of
// threads.
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/select.h"
#include "backend/host.h"
#include "base/alloc.h"
#include "os/os.h"

static sl_status probe(void) { return SL_OK; }

static void device_close(sl_device *device) {
    if (!device) return;
    sl_repack_destroy(device->packed);
    sl_pool_destroy(device->pool);
    sl_free(device);
}

static sl_status open_into(sl_device *device, const sl_device_options *options) {
    int n_cpu = SL_MIN(sl_cpu_count(), SL_POOL_MAX_THREADS);
    device->n_thread = options->n_thread > 0 ? options->n_thread : n_cpu;
    device->n_thread_prefill =
        options->n_thread_prefill > 0 ? options->n_thread_prefill : SL_MAX(device->n_thread, n_cpu);
    device->repack = options->repack;
    device->wire = options->wire;
    SL_TRY(sl_cpu_kernels_select(&device->kernels, sl_cpu_features(), options->level));
    return sl_pool_create(&device->pool, SL_MAX(device->n_thread, device->n_thread_prefill));
}

static sl_status device_open(sl_device **out, const sl_device_options *options) {
    SL_TRY(sl_alloc(out, 1, sizeof **out, "the device"));
    sl_status status = open_into(*out, options);
    if (status == SL_OK) return SL_OK;
    device_close(*out);
    *out = NULL;
    return status;
}

static void device_info(const sl_device *device, sl_device_info *out) {
    *out = (sl_device_info){.n_thread = device->n_thread,
                            .n_thread_prefill = device->n_thread_prefill,
                            .wired_bytes = sl_repack_wired_bytes(device->packed)};
    snprintf(out->name, sizeof out->name, "%.60s, %s", sl_cpu_name(), device->kernels.level);
}

const sl_backend sl_backend_cpu = {
    .name = "cpu",
    .fusions = SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD | SL_FUSE_WORKERS,
    .probe = probe,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .buf_create = sl_host_buf_create,
    .buf_destroy = sl_host_buf_destroy,
    .buf_copy = sl_host_buf_copy,
    .buf_read = sl_host_buf_read,
    .supports = sl_cpu_supports,
    .compile = sl_cpu_compile,
    .program_destroy = sl_cpu_program_destroy,
    .run = sl_cpu_run,
};
