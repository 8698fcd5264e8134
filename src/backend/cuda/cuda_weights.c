// SPDX-License-Identifier: MIT
#include "backend/cuda/cuda_weights.h"

#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/tile.h"
#include "base/alloc.h"
#include "base/size.h"

enum { N_RING = 4, SLOT_BYTES = 8 << 20, TIME_BYTES = 1 << 30, TIME_RUNS = 6 };

typedef struct entry {
    const void *host;
    const uint8_t *device;
} entry;

struct sl_cuda_weights {
    uint8_t *memory; // owned, on the device
    entry *entry;    // (n_entry) owned
    uint32_t n_entry;
    uint64_t n_bytes;
};

// Slots of pinned memory and as many of the device's; a slot may be filled again when what follows its copy is done.
typedef struct ring {
    uint8_t *pinned, *staging; // owned; (N_RING, slot_bytes)
    size_t slot_bytes;
    cudaEvent_t done[N_RING]; // owned
    cudaStream_t stream;
    int next;
} ring;

bool sl_cuda_weight_tiled(const sl_plan_weight *weight) {
    return weight->n_row > 1 && sl_tile_fits(weight->type, weight->n_col);
}

uint64_t sl_cuda_weight_bytes(const sl_plan_weight *weight) {
    uint64_t n_bytes = weight->n_bytes;
    if (sl_cuda_weight_tiled(weight)) n_bytes = sl_tile_matrix_bytes(weight->type, weight->n_row, weight->n_col);
    return sl_round_up(n_bytes, SL_CUDA_WEIGHT_ALIGN);
}

// Bytes of the file's rows that become one row of tiles; 0: it has none.
static uint64_t tile_row_bytes(const sl_plan_weight *weight) {
    return sl_cuda_weight_tiled(weight) ? weight->n_bytes / weight->n_row * SL_TILE_ROWS : 0;
}

static void ring_deinit(ring *r) {
    for (int i = 0; i < N_RING; i++)
        if (r->done[i]) (void)cudaEventDestroy(r->done[i]);
    if (r->pinned) (void)cudaFreeHost(r->pinned);
    if (r->staging) (void)cudaFree(r->staging);
}

static sl_status ring_init(ring *r, const sl_plan *plan, cudaStream_t stream) {
    *r = (ring){.stream = stream, .slot_bytes = SLOT_BYTES};
    for (uint32_t i = 0; i < plan->n_weight; i++)
        r->slot_bytes = SL_MAX(r->slot_bytes, tile_row_bytes(&plan->weight[i]));
    SL_CUDA_TRY(cudaMallocHost((void **)&r->pinned, N_RING * r->slot_bytes), "the loading of weights");
    SL_CUDA_TRY(cudaMalloc((void **)&r->staging, N_RING * r->slot_bytes), "the loading of weights");
    for (int i = 0; i < N_RING; i++)
        SL_CUDA_TRY(cudaEventCreateWithFlags(&r->done[i], cudaEventDisableTiming), "the loading of weights");
    return SL_OK;
}

// A part of a weight; of one in tiles whole rows of tiles.
static sl_status send(ring *r, const sl_plan_weight *w, uint8_t *to, const uint8_t *from, size_t n_bytes) {
    int i = r->next;
    uint8_t *pinned = r->pinned + (size_t)i * r->slot_bytes, *staging = r->staging + (size_t)i * r->slot_bytes;
    bool tiled = sl_cuda_weight_tiled(w);
    SL_CUDA_TRY(cudaEventSynchronize(r->done[i]), "the loading of weights");
    memcpy(pinned, from, n_bytes);
    SL_CUDA_TRY(cudaMemcpyAsync(tiled ? staging : to, pinned, n_bytes, cudaMemcpyHostToDevice, r->stream),
                "the loading of weights");
    uint32_t n_row = (uint32_t)(n_bytes / (w->n_bytes / w->n_row));
    if (tiled)
        SL_CUDA_TRY(sl_cuda_tile_pack(to, staging, w->type, n_row, w->n_col, r->stream), "the loading of weights");
    SL_CUDA_TRY(cudaEventRecord(r->done[i], r->stream), "the loading of weights");
    r->next = (i + 1) % N_RING;
    return SL_OK;
}

static sl_status load(sl_cuda_weights *w, ring *r, const sl_plan *plan, const sl_program_memory *memory) {
    uint64_t off = 0, done = 0, total = 0;
    for (uint32_t i = 0; i < plan->n_weight; i++) total += plan->weight[i].n_bytes;
    for (uint32_t i = 0; i < plan->n_weight; i++) {
        const sl_plan_weight *weight = &plan->weight[i];
        const uint8_t *from = memory->weight[i];
        uint8_t *to = w->memory + off;
        w->entry[w->n_entry++] = (entry){from, to};
        uint64_t part = tile_row_bytes(weight), slot = part ? r->slot_bytes / part * part : r->slot_bytes;
        for (uint64_t at = 0, n; at < weight->n_bytes; at += n) {
            n = SL_MIN(weight->n_bytes - at, slot);
            SL_TRY(send(r, weight, to + at, from + at, n)); // whole tiles take as many bytes as their rows
            done += n;
            if (memory->progress && memory->progress(memory->user, done, total))
                return SL_FAIL(SL_CANCELLED, "loading was stopped");
        }
        off += sl_cuda_weight_bytes(weight);
    }
    SL_CUDA_TRY(cudaStreamSynchronize(r->stream), "the loading of weights");
    return SL_OK;
}

static sl_status create(sl_cuda_weights *w, const sl_plan *plan, const sl_program_memory *memory, cudaStream_t stream) {
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < plan->n_weight; i++) n_bytes += sl_cuda_weight_bytes(&plan->weight[i]);
    w->n_bytes = n_bytes;
    SL_TRY(sl_alloc(&w->entry, plan->n_weight, sizeof *w->entry, "the list of weights"));
    SL_CUDA_TRY(cudaMalloc((void **)&w->memory, SL_MAX(n_bytes, 1)), "the weights");
    ring r;
    sl_status status = ring_init(&r, plan, stream);
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

static cudaError_t time_reads(double *best_ms, const uint8_t *memory, uint64_t n_bytes, cudaEvent_t at[2],
                              cudaStream_t stream) {
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < TIME_RUNS && error == cudaSuccess; i++) {
        float ms = 0;
        error = cudaEventRecord(at[0], stream);
        if (error == cudaSuccess) error = sl_cuda_read(memory, n_bytes, stream);
        if (error == cudaSuccess) error = cudaEventRecord(at[1], stream);
        if (error == cudaSuccess) error = cudaEventSynchronize(at[1]);
        if (error == cudaSuccess) error = cudaEventElapsedTime(&ms, at[0], at[1]);
        if (*best_ms == 0 || ms < *best_ms) *best_ms = ms;
    }
    return error;
}

sl_status sl_cuda_weights_time(const sl_cuda_weights *weights, double *gb_s, cudaStream_t stream) {
    uint64_t n_bytes = SL_MIN(weights->n_bytes, TIME_BYTES);
    cudaEvent_t at[2] = {0};
    double ms = 0;
    cudaError_t error = cudaEventCreate(&at[0]);
    if (error == cudaSuccess) error = cudaEventCreate(&at[1]);
    if (error == cudaSuccess) error = time_reads(&ms, weights->memory, n_bytes, at, stream);
    for (int i = 0; i < 2; i++)
        if (at[i]) (void)cudaEventDestroy(at[i]);
    SL_CUDA_TRY(error, "measuring its memory");
    *gb_s = ms > 0 ? (double)n_bytes / ms * 1e-6 : 0;
    return SL_OK;
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
