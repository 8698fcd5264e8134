// SPDX-License-Identifier: MIT
//
// What a decoded token must read of the weights, and compute with them, from the tensor directory
// alone. For the families that the engine runs it equals sl_plan_cost (tests/unit/test_forecast.c).
#ifndef SL_FORECAST_TRAFFIC_H
#define SL_FORECAST_TRAFFIC_H

#include "forecast/geometry.h"

typedef struct sl_traffic {
    uint64_t file_bytes;         // of all tensors
    uint64_t n_param;            // elements of all tensors
    uint64_t token_bytes;        // read for one token; of experts the expected part
    uint64_t expert_bytes;       // of all experts, in file_bytes
    uint64_t token_expert_bytes; // of experts, in token_bytes
    uint64_t row_mac;            // multiply-accumulates of a row before the output matrix
    uint64_t output_mac;         // of the output matrix, for each row that wants logits
    char main_type[16];          // what holds the most bytes
} sl_traffic;

sl_status sl_traffic_read(sl_traffic *out, const sl_gguf *gguf, const sl_geometry *geometry);

#endif
