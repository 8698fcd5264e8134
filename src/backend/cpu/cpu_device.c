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
    const int wanted[2] = {options->n_thread, options->n_thread_prefill};
    const int known[2] = {options->known_thread, options->known_thread_prefill};
    for (int i = 0; i < 2; i++) {
        device->n_max[i] = wanted[i] > 0 ? wanted[i] : n_cpu;
        device->n_thread[i] = known[i] > 0 && wanted[i] <= 0 ? SL_MIN(known[i], n_cpu) : device->n_max[i];
        device->is_open[i] = wanted[i] <= 0 && known[i] <= 0 && n_cpu > 1;
    }
    device->repack = options->repack;
    device->wire = options->wire;
    SL_TRY(sl_cpu_kernels_select(&device->kernels, sl_cpu_features(), options->level));
    return sl_pool_create(&device->pool, SL_MAX(device->n_max[0], device->n_max[1]));
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
    *out = (sl_device_info){.n_thread = device->n_thread[0],
                            .n_thread_prefill = device->n_thread[1],
                            .chose = device->is_known[0],
                            .chose_prefill = device->is_known[1],
                            .wired_bytes = sl_repack_wired_bytes(device->packed)};
    snprintf(out->name, sizeof out->name, "%.60s, %s", sl_cpu_name(), device->kernels.level);
}

const sl_backend sl_backend_cpu = {
    .name = "cpu",
    .fusions = SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD | SL_FUSE_WORKERS | SL_WINDOW_TABLES | SL_MOVING_ROWS,
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
