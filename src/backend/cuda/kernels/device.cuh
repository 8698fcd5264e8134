// SPDX-License-Identifier: MIT
//
// Small things that kernels share. Compiled with -fmad=false: a fused multiply-add happens where the code says so.
#ifndef SL_BACKEND_CUDA_DEVICE_CUH
#define SL_BACKEND_CUDA_DEVICE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>

#include "backend/cuda/kernels/kernels.h"

enum { WARP = 32 };
static const unsigned ALL = 0xffffffffu; // lanes

// Kernels are launched while those before them still run (programmatic dependent launch, from Hopper on). wait() is called
// by every thread before it reads or writes what another kernel writes or reads; then all kernels before have ended.
// Before it weights may be read, and the step's arguments: kernels that follow right upon their making (fetch, embed)
// let the next one start only when they have waited themselves (begin); all others may let it start at once.
static __device__ __forceinline__ void wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
static __device__ __forceinline__ void let_next() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
static __device__ __forceinline__ void begin() {
    wait();
    let_next();
}

// Puts a kernel on the stream, to be launched early where the device can: all kernels of a program but the first.
// n_cluster thread blocks, along x, are a cluster; 1: there are none.
template <class T, class... P, class... A>
static cudaError_t launch_cluster(const T *t, void (*kernel)(P...), uint32_t n_cluster, dim3 grid, dim3 block,
                                  size_t shared_bytes, cudaStream_t stream, A... args) {
    cudaLaunchAttribute attrs[2] = {};
    attrs[0].id = cudaLaunchAttributeClusterDimension;
    attrs[0].val.clusterDim.x = n_cluster, attrs[0].val.clusterDim.y = attrs[0].val.clusterDim.z = 1;
    attrs[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attrs[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes, config.stream = stream;
    config.attrs = attrs + (n_cluster == 1), config.numAttrs = (n_cluster > 1) + t->early;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

template <class T, class... P, class... A>
static cudaError_t launch(const T *t, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                          cudaStream_t stream, A... args) {
    return launch_cluster(t, kernel, 1, grid, block, shared_bytes, stream, args...);
}

// Before a launch with so much dynamic shared memory. The multiprocessor is asked to have all that it can: it cannot
// change that while a thread block is there, so one kernel that asks for less would keep the next from beginning early.
static inline cudaError_t take_shared(const void *kernel, uint32_t n_bytes) {
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n_bytes);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
}

// The rows of this step that a task has.
template <class T> static __device__ __forceinline__ int32_t task_rows(const T &t) {
    return t.logit_rows ? *t.step.n_logit : *t.step.n_row;
}

static __device__ __forceinline__ const float *in_row(const sl_cuda_task &t, int i, uint32_t row) {
    return (const float *)(t.in[i] + (uint64_t)row * t.in_stride[i]);
}

static __device__ __forceinline__ float *out_row(const sl_cuda_task &t, uint32_t row) {
    return (float *)(t.out + (uint64_t)row * t.out_stride);
}

// All lanes get the same bits: the tree is the same for each.
static __device__ __forceinline__ float warp_sum(float x) {
    for (int step = WARP / 2; step; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

static __device__ __forceinline__ double warp_sum(double x) {
    for (int step = WARP / 2; step; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

static __device__ __forceinline__ float warp_max(float x) {
    for (int step = WARP / 2; step; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

static __device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void copy_async(void *to, const void *from) { // 16 bytes
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
static __device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> static __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

static __device__ __forceinline__ float half_bits(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }

// act(gate) * up. 0.5 x (1 + tanh u) is x / (1 + e^-2u), which keeps its digits where tanh is near -1.
static __device__ __forceinline__ float gate_up(float x, float up, uint8_t act) {
    float u = x;
    if (act == SL_ACT_GELU_TANH) u = 2 * 0.7978845608f * (x + 0.044715f * x * x * x); // sqrt(2/pi)
    return x / (1 + expf(-u)) * up;
}

#endif
