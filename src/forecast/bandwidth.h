// SPDX-License-Identifier: MIT
//
// The read bandwidth of this machine's memory, measured or remembered.
#ifndef SL_FORECAST_BANDWIDTH_H
#define SL_FORECAST_BANDWIDTH_H

#include "base/status.h"

typedef struct sl_bandwidth {
    double gb_s;     // 10^9 bytes a second
    bool busy;       // others had the processors for a good part of the time: an idle machine reads faster
    bool remembered; // from the file
} sl_bandwidth;

// Reads memory larger than the caches with n_thread threads for some 100 ms and gives the best of a
// few runs. SL_NO_MEMORY if there is too little to tell memory from cache.
sl_status sl_bandwidth_measure(sl_bandwidth *out, int n_thread);

// From the file if it holds a figure for this processor and number of threads, else measured, and
// put there unless the machine was busy. path NULL: always measured. A file that cannot be read or
// written is no failure.
sl_status sl_bandwidth_get(sl_bandwidth *out, const char *path, int n_thread);

#endif
