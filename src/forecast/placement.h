// SPDX-License-Identifier: MIT
//
// The same model placed in different ways, side by side: what fits, how fast it decodes, and what
// limits it.
#ifndef SL_FORECAST_PLACEMENT_H
#define SL_FORECAST_PLACEMENT_H

#include "forecast/predict.h"

typedef struct sl_placement_ask {
    const sl_load *load;
    const sl_machine *device, *host; // host: what feeds the device; NULL if the device is the host
    const sl_rate *device_rate, *host_rate;
    double need_bytes;   // weights, cache at n_ctx, states, workspace
    double usable_bytes; // of the device's memory; 0: not known
    double host_bytes;   // of the host's; 0: not known
    uint32_t n_past;     // depth of the token that is timed
} sl_placement_ask;

typedef struct sl_placement {
    char what[64];
    bool fits;
    double device_bytes, host_bytes; // what lies where
    double link_bytes;               // over a link for each token
    double ms, tok_s;
    char limit[48], note[176];
} sl_placement;

enum { SL_MAX_PLACEMENTS = 8 };

sl_status sl_placements(sl_placement out[SL_MAX_PLACEMENTS], size_t *n, const sl_placement_ask *ask);

#endif
