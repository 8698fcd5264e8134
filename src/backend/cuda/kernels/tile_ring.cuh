// SPDX-License-Identifier: MIT
//
// A warp's ring of tiles under way from memory to shared memory. All lanes call all of it, but for `ask` in a warp that asks
// for others (lane = 0). From Hopper on one lane asks
// for a tile by one bulk copy; before, each lane copies its pieces of 16 bytes. A slot has a barrier that turns when the
// tile is there.
#ifndef SL_BACKEND_CUDA_TILE_RING_CUH
#define SL_BACKEND_CUDA_TILE_RING_CUH

#include "backend/cuda/kernels/device.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define SL_BULK_COPIES 1
#else
#define SL_BULK_COPIES 0
#endif

enum { BARRIER_BYTES = 8 };

struct tile_ring {
    uint8_t *slots;
    uint32_t barriers, slot_bytes, n_slot; // address of the first barrier
    uint32_t at, turn;                     // the slot that is next to be read, and which turn of its barrier says so

    tile_ring() = default;
    __device__ __forceinline__ tile_ring(uint8_t *slots_at, void *barriers_at, uint32_t bytes, uint32_t n)
        : slots(slots_at), barriers(shared_address(barriers_at)), slot_bytes(bytes), n_slot(n), at(0), turn(0) {}

    // n barriers, by a warp.
    static __device__ __forceinline__ void init(void *barriers_at, uint32_t n, int lane) {
        for (uint32_t i = lane; i < n; i += WARP)
            asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barriers_at) + i * BARRIER_BYTES),
                         "r"(SL_BULK_COPIES ? 1 : WARP)
                         : "memory");
#if SL_BULK_COPIES
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
        __syncwarp();
    }

    // Asks for a tile (multiple of 16 bytes) into slot i, which nobody reads any more.
    __device__ __forceinline__ void ask(uint32_t i, const uint8_t *from, uint32_t n_bytes, int lane) const {
        const uint32_t barrier = barriers + i * BARRIER_BYTES;
        uint8_t *to = slots + i * slot_bytes;
#if SL_BULK_COPIES
        if (lane == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(n_bytes)
                         : "memory");
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                    shared_address(to)),
                "l"(from), "r"(n_bytes), "r"(barrier)
                : "memory");
        }
#else
        for (uint32_t k = lane * 16; k < n_bytes; k += WARP * 16) copy_async(to + k, from + k);
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
#endif
    }

    // The next tile, when it is there.
    __device__ __forceinline__ const uint8_t *wait() const {
        const uint32_t barrier = barriers + at * BARRIER_BYTES;
        uint32_t done = 0;
        while (!done)
            asm volatile("{ .reg .pred p;\n"
#if SL_BULK_COPIES
                         "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
#else
                         "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
#endif
                         "selp.u32 %0, 1, 0, p; }"
                         : "=r"(done)
                         : "r"(barrier), "r"(turn)
                         : "memory");
        return slots + at * slot_bytes;
    }

    // It has been read by all lanes; its slot is free for the caller to ask for another.
    __device__ __forceinline__ uint32_t release() {
        __syncwarp();
        const uint32_t i = at;
        if (++at == n_slot) at = 0, turn ^= 1;
        return i;
    }
};

#endif
