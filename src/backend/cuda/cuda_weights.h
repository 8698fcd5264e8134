// SPDX-License-Identifier: MIT
//
// The weights of a plan in device memory: one allocation, each weight at a multiple of SL_CUDA_WEIGHT_ALIGN, copied
// once from the mapped file through a ring of pinned buffers, so that reading the file and the bus work at once.
// Matrices whose type and shape have tiles (kernels/tile.h) are put into that order on the way, by the device.
#ifndef SL_BACKEND_CUDA_CUDA_WEIGHTS_H
#define SL_BACKEND_CUDA_CUDA_WEIGHTS_H

#include <cuda_runtime_api.h>

#include "backend/backend.h"

enum { SL_CUDA_WEIGHT_ALIGN = 256 };

typedef struct sl_cuda_weights sl_cuda_weights;

// Does it lie in tiles?
bool sl_cuda_weight_tiled(const sl_plan_weight *weight);

// Bytes of device memory that a weight takes.
uint64_t sl_cuda_weight_bytes(const sl_plan_weight *weight);

sl_status sl_cuda_weights_create(sl_cuda_weights **out, const sl_plan *plan, const sl_program_memory *memory,
                                 cudaStream_t stream);
// The speed of the device's memory, by reading the copies (at most 1 GiB of them) a few times; the best.
sl_status sl_cuda_weights_time(const sl_cuda_weights *weights, double *gb_s, cudaStream_t stream);
void sl_cuda_weights_destroy(sl_cuda_weights *weights); // NULL is fine

// The copy of what lies at `host`, or NULL.
const uint8_t *sl_cuda_weights_find(const sl_cuda_weights *weights, const void *host);

#endif
