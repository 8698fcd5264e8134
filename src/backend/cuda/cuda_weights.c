// SPDX-License-Identifier: MIT
#include "backend/cuda/cuda_weights.h"

#include <string.h>

#include "backend/cuda/cuda.h"
#include "base/alloc.h"
#include "base/size.h"

enum { N_RING = 4, RING_BYTES = 8 << 20 };

typedef struct entry {
    const void *host;
    const uint8_t *device;
} entry;

struct sl_cuda_weights {
    uint8_t *memory; // owned, on the device
    entry *entry;    // (n_entry) owned
    uint32_t n_entry;
};

// A pinned buffer may be filled again when the copy out of it is done.
typedef struct ring {
    uint8_t *pinned;            // owned; (N_RING, RING_BYTES)
    cudaEvent_t copied[N_RING]; // owned
    cudaStream_t stream;
    int next;
} ring;

uint64_t sl_cuda_weight_bytes(const sl_plan_weight *weight) {
    return sl_round_up(weight->n_bytes, SL_CUDA_WEIGHT_ALIGN);
}

static void ring_deinit(ring *r) {
    for (int i = 0; i < N_RING; i++)
        if (r->copied[i]) (void)cudaEventDestroy(r->copied[i]);
    if (r->pinned) (void)cudaFreeHost(r->pinned);
}

static sl_status ring_init(ring *r, cudaStream_t stream) {
    *r = (ring){.stream = stream};
    SL_CUDA_TRY(cudaMallocHost((void **)&r->pinned, (size_t)N_RING * RING_BYTES), "the loading of weights");
    for (int i = 0; i < N_RING; i++)
        SL_CUDA_TRY(cudaEventCreateWithFlags(&r->copied[i], cudaEventDisableTiming), "the loading of weights");
    return SL_OK;
}

static sl_status send(ring *r, uint8_t *to, const uint8_t *from, size_t n_bytes) {
    int i = r->next;
    uint8_t *buffer = r->pinned + (size_t)i * RING_BYTES;
    SL_CUDA_TRY(cudaEventSynchronize(r->copied[i]), "the loading of weights");
    memcpy(buffer, from, n_bytes);
    SL_CUDA_TRY(cudaMemcpyAsync(to, buffer, n_bytes, cudaMemcpyHostToDevice, r->stream), "the loading of weights");
    SL_CUDA_TRY(cudaEventRecord(r->copied[i], r->stream), "the loading of weights");
    r->next = (i + 1) % N_RING;
    return SL_OK;
}

static sl_status load(sl_cuda_weights *w, ring *r, const sl_plan *plan, const sl_program_memory *memory) {
    uint64_t off = 0, done = 0, total = 0;
    for (uint32_t i = 0; i < plan->n_weight; i++) total += plan->weight[i].n_bytes;
    for (uint32_t i = 0; i < plan->n_weight; i++) {
        const uint8_t *from = memory->weight[i];
        uint8_t *to = w->memory + off;
        w->entry[w->n_entry++] = (entry){from, to};
        for (uint64_t at = 0, n; at < plan->weight[i].n_bytes; at += n) {
            n = SL_MIN(plan->weight[i].n_bytes - at, (uint64_t)RING_BYTES);
            SL_TRY(send(r, to + at, from + at, n));
            done += n;
            if (memory->progress && memory->progress(memory->user, done, total))
                return SL_FAIL(SL_CANCELLED, "loading was stopped");
        }
        off += sl_cuda_weight_bytes(&plan->weight[i]);
    }
    SL_CUDA_TRY(cudaStreamSynchronize(r->stream), "the loading of weights");
    return SL_OK;
}

static sl_status create(sl_cuda_weights *w, const sl_plan *plan, const sl_program_memory *memory, cudaStream_t stream) {
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < plan->n_weight; i++) n_bytes += sl_cuda_weight_bytes(&plan->weight[i]);
    SL_TRY(sl_alloc(&w->entry, plan->n_weight, sizeof *w->entry, "the list of weights"));
    SL_CUDA_TRY(cudaMalloc((void **)&w->memory, SL_MAX(n_bytes, 1)), "the weights");
    ring r;
    sl_status status = ring_init(&r, stream);
    if (status == SL_OK) status = load(w, &r, plan, memory);
    if (status != SL_OK) (void)cudaStreamSynchronize(stream); // no copy may outlive the ring
    ring_deinit(&r);
    return status;
}

sl_status sl_cuda_weights_create(sl_cuda_weights **out, const sl_plan *plan, const sl_program_memory *memory,
                                 cudaStream_t stream) {
    SL_TRY(sl_alloc(out, 1, sizeof **out, "the weights"));
    sl_status status = create(*out, plan, memory, stream);
    if (status == SL_OK) return SL_OK;
    sl_cuda_weights_destroy(*out);
    *out = NULL;
    return status;
}

void sl_cuda_weights_destroy(sl_cuda_weights *weights) {
    if (!weights) return;
    if (weights->memory) (void)cudaFree(weights->memory);
    sl_free(weights->entry);
    sl_free(weights);
}

const uint8_t *sl_cuda_weights_find(const sl_cuda_weights *weights, const void *host) {
    for (uint32_t i = 0; i < weights->n_entry; i++)
        if (weights->entry[i].host == host) return weights->entry[i].device;
    return NULL;
}
