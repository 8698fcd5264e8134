// SPDX-License-Identifier: MIT
//
// What matmul_tiles.cu, which chooses, knows of matmul_wide.cu.
#ifndef SL_BACKEND_CUDA_MATMUL_WIDE_H
#define SL_BACKEND_CUDA_MATMUL_WIDE_H

#include "backend/cuda/kernels/kernels.h"

extern "C" bool sl_cuda_matmul_wide_takes(const sl_cuda_product *product);
// n_k: of the chains that a row's sum is made of, as a step of few rows has them
extern "C" cudaError_t sl_cuda_matmul_wide(const sl_cuda_product *product, uint32_t n_k, cudaStream_t stream);

#endif
