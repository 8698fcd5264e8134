// SPDX-License-Identifier: MIT
//
// What the operating system tells of the machine: its name, how busy others keep it, and the energy
// that it took. What it does not tell is absent (NAN), never guessed. It must not know of models.
#ifndef SLUICE_BENCH_MACHINE_H
#define SLUICE_BENCH_MACHINE_H

#include "app.h"

typedef struct machine {
    char cpu[128], system[160];
    int32_t n_cpu;         // online processors
    uint64_t memory_bytes; // 0: unknown
} machine;

machine machine_read(void);

// Processor time since boot, in seconds of one processor.
typedef struct machine_time {
    double all, busy, steal; // of all processors; NAN: the system does not say
    double own;              // of this process
} machine_time;

machine_time machine_time_read(const char *stat_path);
// Shares of all processors' time between two readings; NAN if unknown.
double machine_steal(const machine_time *from, const machine_time *to);
double machine_others(const machine_time *from, const machine_time *to);

enum { ENERGY_MAX = 8 }; // packages

typedef struct energy_meter { // RAPL through Linux's powercap; root may be needed to read it
    char path[ENERGY_MAX][128];
    double range_j[ENERGY_MAX]; // where the counter starts again
    int n;                      // 0: the system offers none
} energy_meter;

typedef struct energy_reading {
    double joules[ENERGY_MAX];
} energy_reading;

void energy_open(energy_meter *meter, const char *folder); // of Linux: ENERGY_FOLDER
energy_reading energy_read(const energy_meter *meter);
double energy_between(const energy_meter *meter, const energy_reading *from,
                      const energy_reading *to); // joules; NAN if there is no meter

#define ENERGY_FOLDER "/sys/class/powercap"
#define STAT_PATH     "/proc/stat"

#endif
