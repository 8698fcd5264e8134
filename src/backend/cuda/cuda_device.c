// SPDX-License-Identifier: MIT
//
// An NVIDIA GPU as an sl_backend: is there one, its buffers, copies. The runtime is linked statically and asks for the
// driver when it is first used, so the program starts on machines that have none.
#include "backend/cuda/cuda.h"

#include <string.h>

#include "base/alloc.h"

enum { MIN_MAJOR = 8 }; // compute capability: integer tensor cores, asynchronous copies

// ---- errors -------------------------------------------------------------------------------------

sl_status sl_cuda_fail(cudaError_t error, const char *what) {
    (void)cudaGetLastError(); // or the next call would report it again
    if (error != cudaErrorMemoryAllocation)
        return SL_FAIL(SL_DEVICE, "the GPU failed at %s: %s", what, cudaGetErrorString(error));
    size_t n_free = 0, n_total = 0;
    (void)cudaMemGetInfo(&n_free, &n_total);
    return SL_FAIL(SL_NO_MEMORY, "not enough memory on the GPU for %s; %zu of %zu MiB are free", what, n_free >> 20,
                   n_total >> 20);
}

sl_status sl_cuda_alloc(void *out, size_t n_bytes, const char *what) {
    void **p = out;
    *p = NULL;
    SL_CUDA_TRY(cudaMalloc(p, SL_MAX(n_bytes, 1)), what);
    SL_CUDA_TRY(cudaMemset(*p, 0, n_bytes), what);
    SL_CUDA_TRY(cudaStreamSynchronize(NULL), what); // other streams do not wait for it
    return SL_OK;
}

// ---- the device ---------------------------------------------------------------------------------

static sl_status probe(void) {
    int n = 0, driver = 0, runtime = CUDART_VERSION, major = 0, minor = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return SL_FAIL(SL_DEVICE, "this machine has no NVIDIA driver, so backend cuda cannot run");
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaErrorInsufficientDriver)
        return SL_FAIL(SL_DEVICE, "the NVIDIA driver is for CUDA %d.%d, but %d.%d is needed; install a newer driver",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (error == cudaErrorNoDevice || (error == cudaSuccess && n == 0))
        return SL_FAIL(SL_DEVICE, "the NVIDIA driver sees no GPU (is CUDA_VISIBLE_DEVICES set?)");
    SL_CUDA_TRY(error, "looking for a GPU");
    SL_CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "asking for its capability");
    SL_CUDA_TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "asking for its capability");
    if (major < MIN_MAJOR)
        return SL_FAIL(SL_DEVICE, "the GPU has compute capability %d.%d, but backend cuda needs %d.0 (Ampere) or more",
                       major, minor, MIN_MAJOR);
    if (!sl_cuda_has_code())
        return SL_FAIL(SL_DEVICE,
                       "this build has no code for a GPU of compute capability %d.%d; build with "
                       "-DSLUICE_CUDA_ARCHS=%d%d",
                       major, minor, major, minor);
    return SL_OK;
}

static void device_close(sl_device *device) {
    if (!device) return;
    sl_cuda_weights_destroy(device->weights);
    if (device->stream) (void)cudaStreamDestroy(device->stream);
    sl_free(device);
}

static sl_status open_into(sl_device *device) {
    struct cudaDeviceProp props;
    SL_CUDA_TRY(cudaSetDevice(0), "opening it");
    SL_CUDA_TRY(cudaGetDeviceProperties(&props, 0), "asking for its properties");
    snprintf(device->name, sizeof device->name, "%.64s, CUDA %d.%d", props.name, props.major, props.minor);
    device->n_sm = (uint32_t)props.multiProcessorCount;
    device->shared_bytes = (uint32_t)props.sharedMemPerBlockOptin;
    device->early = props.major >= 9;
    device->most_parts = device->early ? sl_cuda_attend_most_parts() : SL_CUDA_MOST_PARTS;
    SL_CUDA_TRY(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking), "making a stream");
    return SL_OK;
}

static sl_status device_open(sl_device **out, const sl_device_options *options) {
    (void)options; // of processors
    *out = NULL;
    SL_TRY(probe());
    SL_TRY(sl_alloc(out, 1, sizeof **out, "the device"));
    sl_status status = open_into(*out);
    if (status == SL_OK) return SL_OK;
    device_close(*out);
    *out = NULL;
    return status;
}

static void device_info(const sl_device *device, sl_device_info *out) {
    size_t n_free = 0, n_total = 0;
    (void)cudaMemGetInfo(&n_free, &n_total);
    *out = (sl_device_info){.own_memory = true, .free_bytes = n_free, .read_gb_s = device->read_gb_s};
    memcpy(out->name, device->name, sizeof out->name);
}

// ---- buffers: handle is the address on the device, or that of pinned host memory ------------------

// A view is pinned so that copies need no detour; where that is not possible they take one.
static sl_status buf_create(sl_device *device, sl_device_buf *out, void *host, size_t n_bytes, const char *what) {
    (void)device;
    *out = (sl_device_buf){0};
    if (!host) SL_TRY(sl_cuda_alloc(&out->handle, n_bytes, what));
    else if (cudaHostRegister(host, n_bytes, cudaHostRegisterDefault) == cudaSuccess) out->handle = host;
    else (void)cudaGetLastError();
    out->host = host;
    out->n_bytes = n_bytes;
    return SL_OK;
}

static void buf_destroy(sl_device *device, sl_device_buf *buf) {
    (void)device;
    if (buf->handle && buf->host) (void)cudaHostUnregister(buf->host);
    else if (buf->handle) (void)cudaFree(buf->handle);
    *buf = (sl_device_buf){0};
}

static bool inside(const sl_device_buf *buf, size_t off, size_t n_bytes) {
    return off <= buf->n_bytes && n_bytes <= buf->n_bytes - off;
}

static char *address(const sl_device_buf *buf, size_t off) {
    return (char *)(buf->host ? buf->host : buf->handle) + off;
}

// Between two places of the device it follows what was launched before; host memory is done with on return.
static sl_status buf_copy(sl_device *device, sl_device_buf *dst, size_t dst_off, const sl_device_buf *src,
                          size_t src_off, size_t n_bytes) {
    if (!inside(dst, dst_off, n_bytes) || !inside(src, src_off, n_bytes))
        return SL_FAIL(SL_BAD_ARG, "a copy of %zu bytes does not fit into its buffers", n_bytes);
    SL_CUDA_TRY(
        cudaMemcpyAsync(address(dst, dst_off), address(src, src_off), n_bytes, cudaMemcpyDefault, device->stream),
        "a copy");
    if (dst->host || src->host) SL_CUDA_TRY(cudaStreamSynchronize(device->stream), "a copy");
    return SL_OK;
}

static sl_status buf_read(sl_device *device, void *out, const sl_device_buf *src, size_t src_off, size_t n_bytes) {
    if (!inside(src, src_off, n_bytes))
        return SL_FAIL(SL_BAD_ARG, "a read of %zu bytes at %zu is past the end of a buffer", n_bytes, src_off);
    if (n_bytes)
        SL_CUDA_TRY(cudaMemcpyAsync(out, address(src, src_off), n_bytes, cudaMemcpyDefault, device->stream),
                    "reading a result");
    SL_CUDA_TRY(cudaStreamSynchronize(device->stream), "a step");
    return SL_OK;
}

const sl_backend sl_backend_cuda = {
    .name = "cuda",
    .fusions = SL_FUSE_ACT16 | SL_FUSE_MATMUL_ADD | SL_FUSE_BEST,
    .probe = probe,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .buf_create = buf_create,
    .buf_destroy = buf_destroy,
    .buf_copy = buf_copy,
    .buf_read = buf_read,
    .supports = sl_cuda_supports,
    .compile = sl_cuda_compile,
    .program_destroy = sl_cuda_program_destroy,
    .run = sl_cuda_run,
};
