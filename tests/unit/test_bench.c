// SPDX-License-Identifier: MIT
//
// The parts of `sluice bench` that need no model: order statistics, and what Linux says of itself.
// sl_test: MODULES base
#include "harness.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

// A program's own files are in no library.
#include "../../apps/sluice/bench_machine.c"
#include "../../apps/sluice/bench_stats.c"

int app_fail(const char *fmt, ...) {
    test_failed(__FILE__, __LINE__, "%s", fmt);
    return APP_FAILED;
}

static summary summarize(const double *values, size_t n) {
    series s;
    REQUIRE(series_init(&s, n) == APP_OK);
    for (size_t i = 0; i < n; i++) series_push(&s, values[i]);
    summary out = series_summarize(&s);
    for (size_t i = 0; i < n; i++) CHECK(s.value[i] == values[i]); // the order stays
    series_free(&s);
    return out;
}

TEST(order_statistics) {
    double hundred[100];
    for (int i = 0; i < 100; i++) hundred[i] = (i * 37) % 100 + 1; // 1 .. 100, mixed
    summary s = summarize(hundred, 100);
    CHECK_NEAR(s.p50, 50.5, 0);
    CHECK_NEAR(s.p90, 90, 0);
    CHECK_NEAR(s.p99, 99, 0);
    CHECK_NEAR(s.min, 1, 0);
    CHECK_NEAR(s.max, 100, 0);
    CHECK_NEAR(s.mean, 50.5, 1e-12);
    CHECK_NEAR(s.spread, 99 / 50.5, 1e-12);
    s = summarize((double[]){3, 1, 2}, 3);
    CHECK_NEAR(s.p50, 2, 0);
    CHECK_NEAR(s.p99, 3, 0);
    s = summarize((double[]){7}, 1);
    CHECK(s.p50 == 7 && s.p90 == 7 && s.p99 == 7 && s.min == 7 && s.max == 7 && s.spread == 0);
    s = summarize(NULL, 0);
    CHECK(s.n == 0 && s.p50 == 0 && s.max == 0 && s.spread == 0);
    s = summarize((double[]){0, 0}, 2);
    CHECK(s.spread == 0);
}

TEST(p99_against_its_definition) { // the smallest value that 99 % do not exceed
    double values[997];
    for (int round = 0; round < 50; round++) {
        size_t n = 1 + test_below(997), n_below = 0, n_less = 0;
        for (size_t i = 0; i < n; i++) values[i] = test_below(50);
        summary s = summarize(values, n);
        for (size_t i = 0; i < n; i++) n_below += values[i] <= s.p99, n_less += values[i] < s.p99;
        CHECK((double)n_below >= 0.99 * (double)n);
        CHECK((double)n_less < 0.99 * (double)n);
    }
}

TEST(a_full_series_takes_no_more) {
    series s;
    REQUIRE(series_init(&s, 2) == APP_OK);
    for (int i = 0; i < 5; i++) series_push(&s, i);
    CHECK_INT(s.n, 2);
    series_free(&s);
}

// ---- files that Linux would have ----------------------------------------------------------------

static char folder[64];

static void begin_folder(void) {
    strcpy(folder, "/tmp/sluice-bench-XXXXXX");
    REQUIRE(mkdtemp(folder) != NULL);
}

static void put(const char *name, const char *content) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0', mkdir(path, 0700), *slash = '/';
    }
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(content, file), fclose(file);
}

static void end_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

TEST(processor_time) {
    char path[128];
    double tick = (double)sysconf(_SC_CLK_TCK);
    begin_folder();
    snprintf(path, sizeof path, "%s/stat", folder);
    put("stat", "cpu 100 10 50 800 20 5 5 10 0 0\ncpu0 1 2 3\n");
    machine_time from = machine_time_read(path);
    CHECK_NEAR(from.all, 1000 / tick, 1e-9);
    CHECK_NEAR(from.busy, 170 / tick, 1e-9);
    put("stat", "cpu 400 10 50 1400 20 5 5 110 0 0\n");
    machine_time to = machine_time_read(path);
    CHECK_NEAR(machine_steal(&from, &to), 0.1, 1e-9);
    to.own = from.own + 100 / tick;
    CHECK_NEAR(machine_others(&from, &to), 0.2, 1e-9);
    to.own = from.own + 1000 / tick; // the clocks differ: no less than none
    CHECK_NEAR(machine_others(&from, &to), 0, 0);
    put("stat", "cpu 1 2\n");
    to = machine_time_read(path);
    CHECK(isnan(machine_steal(&from, &to)) && isnan(machine_others(&from, &to)));
    to = machine_time_read("/nowhere");
    CHECK(isnan(machine_steal(&from, &to)));
    end_folder();
}

TEST(energy) {
    energy_meter meter;
    begin_folder();
    energy_open(&meter, folder);
    energy_reading none = energy_read(&meter);
    CHECK_INT(meter.n, 0);
    CHECK(isnan(energy_between(&meter, &none, &none)));
    put("intel-rapl:0/energy_uj", "1000000\n"), put("intel-rapl:0/max_energy_range_uj", "10000000\n");
    put("intel-rapl:1/energy_uj", "9000000\n"), put("intel-rapl:1/max_energy_range_uj", "10000000\n");
    put("intel-rapl:0:0/energy_uj", "5\n"), put("intel-rapl:0:0/max_energy_range_uj", "10\n");
    energy_open(&meter, folder);
    CHECK_INT(meter.n, 2);
    energy_reading from = energy_read(&meter);
    put("intel-rapl:0/energy_uj", "3000000\n"), put("intel-rapl:1/energy_uj", "500000\n"); // starts again
    energy_reading to = energy_read(&meter);
    CHECK_NEAR(energy_between(&meter, &from, &to), 2 + 1.5, 1e-9);
    end_folder();
}

TEST(machine_has_a_name) {
    machine m = machine_read();
    CHECK(m.cpu[0] && m.system[0] && m.n_cpu >= 1);
}
