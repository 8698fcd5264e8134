// SPDX-License-Identifier: MIT
//
// Results that thread blocks of a cluster send one another (attend_mma.cu). Stores carry their own count to a barrier, for
// a release at cluster scope would wait for all that the thread block has ever written.
#ifndef SL_BACKEND_CUDA_INBOX_CUH
#define SL_BACKEND_CUDA_INBOX_CUH

#include "backend/cuda/kernels/device.cuh"

static __device__ __forceinline__ void cluster_arrive() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
static __device__ __forceinline__ void cluster_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// Stores to shared memory of thread block `rank` of the cluster, at the place that `own` has in this one; its barrier
// counts the bytes that have come.
static __device__ __forceinline__ void send(float *own, float x, uint64_t *barrier, uint32_t rank) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile(
        "{ .reg .b32 to, at;\n"
        "mapa.shared::cluster.u32 to, %0, %3;\n"
        "mapa.shared::cluster.u32 at, %2, %3;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], %1, [at]; }" ::"r"(shared_address(own)),
        "r"(__float_as_uint(x)), "r"(shared_address(barrier)), "r"(rank)
        : "memory");
#endif
}

// What the parts of a row and group of heads send to the thread block that merges some of the columns.
struct inbox {
    uint64_t *barrier;
    float *acc;   // (part, column of the slice)
    float *max;   // (part, head)
    float *total; // (part, head)
    __device__ __forceinline__ void init(uint8_t *p, uint32_t n_part, uint32_t n_group, uint32_t n_col) {
        barrier = (uint64_t *)p, acc = (float *)(p + 16), max = acc + n_col, total = max + n_part * n_group;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        if (threadIdx.x == 0) {
            const uint32_t n_bytes = (n_col + 2 * n_part * n_group) * (uint32_t)sizeof(float);
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                         "r"(n_bytes)
                         : "memory");
        }
#endif
    }
    __device__ __forceinline__ void wait() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        uint32_t done = 0;
        while (!done)
            asm volatile("{ .reg .pred p;\n"
                         "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n"
                         "selp.u32 %0, 1, 0, p; }"
                         : "=r"(done)
                         : "r"(shared_address(barrier))
                         : "memory");
#endif
    }
    static __host__ __device__ uint32_t bytes(uint32_t n_part, uint32_t n_group, uint32_t n_col) {
        return 16 + (n_col + 2 * n_part * n_group) * (uint32_t)sizeof(float);
    }
};

#endif
