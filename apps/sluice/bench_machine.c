// SPDX-License-Identifier: MIT
//
// Small files of Linux, and what POSIX has. Elsewhere the files are not there, and so are the
// answers.
#include "bench_machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

// The value of the first line "name : value".
static void read_cpu_name(char *out, size_t cap) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        snprintf(out, cap, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (file) fclose(file);
}

machine machine_read(void) {
    machine m = {.n_cpu = 1};
    struct utsname name;
    long n_cpu = sysconf(_SC_NPROCESSORS_ONLN), page = sysconf(_SC_PAGESIZE);
    if (n_cpu > 0) m.n_cpu = (int32_t)n_cpu;
#ifdef _SC_PHYS_PAGES
    long n_page = sysconf(_SC_PHYS_PAGES);
    if (page > 0 && n_page > 0) m.memory_bytes = (uint64_t)page * (uint64_t)n_page;
#else
    (void)page;
#endif
    if (uname(&name) == 0) {
        snprintf(m.system, sizeof m.system, "%.60s %.60s", name.sysname, name.release);
        snprintf(m.cpu, sizeof m.cpu, "%.60s", name.machine);
    }
    read_cpu_name(m.cpu, sizeof m.cpu);
    return m;
}

machine_time machine_time_read(const char *stat_path) {
    machine_time t = {NAN, NAN, NAN, 0};
    unsigned long long v[8]; // user nice system idle iowait irq softirq steal
    FILE *file = fopen(stat_path, "r");
    long tick = sysconf(_SC_CLK_TCK);
    if (file && tick > 0 &&
        fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
               &v[7]) == 8) {
        double second = 1.0 / (double)tick, all = 0;
        for (int i = 0; i < 8; i++) all += (double)v[i];
        t.all = all * second;
        t.busy = (all - (double)(v[3] + v[4] + v[7])) * second;
        t.steal = (double)v[7] * second;
    }
    if (file) fclose(file);
    struct rusage own;
    if (getrusage(RUSAGE_SELF, &own) == 0) {
        t.own = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
                1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
    }
    return t;
}

double machine_steal(const machine_time *from, const machine_time *to) {
    double all = to->all - from->all;
    return all > 0 ? (to->steal - from->steal) / all : NAN;
}

double machine_others(const machine_time *from, const machine_time *to) {
    double all = to->all - from->all;
    double others = to->busy - from->busy - (to->own - from->own);
    return all > 0 ? fmax(others, 0) / all : NAN; // the clocks tick differently: never below none
}

static bool read_number(double *out, const char *folder, const char *name) {
    char path[192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    bool ok = file && fscanf(file, "%lf", out) == 1;
    if (file) fclose(file);
    return ok;
}

void energy_open(energy_meter *meter, const char *folder) {
    *meter = (energy_meter){0};
    for (int i = 0; i < ENERGY_MAX; i++) { // a package each; its parts have longer names
        char *path = meter->path[meter->n];
        double now, range;
        snprintf(path, sizeof meter->path[0], "%s/intel-rapl:%d", folder, i);
        if (!read_number(&now, path, "energy_uj")) continue;
        if (!read_number(&range, path, "max_energy_range_uj")) continue;
        meter->range_j[meter->n++] = range * 1e-6;
    }
}

energy_reading energy_read(const energy_meter *meter) {
    energy_reading r = {{0}};
    for (int i = 0; i < meter->n; i++) {
        double now;
        r.joules[i] = read_number(&now, meter->path[i], "energy_uj") ? now * 1e-6 : NAN;
    }
    return r;
}

double energy_between(const energy_meter *meter, const energy_reading *from, const energy_reading *to) {
    double sum = 0;
    for (int i = 0; i < meter->n; i++) {
        double joules = to->joules[i] - from->joules[i];
        sum += joules < 0 ? joules + meter->range_j[i] : joules;
    }
    return meter->n > 0 ? sum : NAN;
}
