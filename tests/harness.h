// SPDX-License-Identifier: MIT
//
// A small test harness. A test is TEST(name) { ... }; main comes from harness.c. Each test runs in a child process
// with a timeout, so a crash or a hang fails one test and names it.
//   PROGRAM [--filter TEXT] [--list] [--seed N] [--no-fork] [--bench]
// The closing line is "N passed, N failed" (and ", N skipped").
#ifndef SL_TESTS_HARNESS_H
#define SL_TESTS_HARNESS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void test_function(void);
void test_register(const char *name, test_function *run);
void test_set_timeout(int seconds); // for the tests of this program; the default is 60

#define TEST(name)                                                                                        \
    static void test_##name(void);                                                                        \
    __attribute__((constructor)) static void register_##name(void) { test_register(#name, test_##name); } \
    static void test_##name(void)

// Prints where and what, and marks the test as failed; the test goes on.
void test_failed(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
// Ends the test as skipped, with the reason printed. With SLUICE_TEST_NO_SKIP set (as .ci/run does) that is a failure.
_Noreturn void test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// The same where a device is missing (a GPU): no failure, wherever the tests run.
_Noreturn void test_skip_device(const char *reason);
_Noreturn void test_end(void); // leaves the test now

// The backend to be tested: the program is run once for each that it names (see CMakeLists.txt); "cpu" otherwise.
const char *test_backend(void);

#define CHECK(cond)                                                \
    do {                                                           \
        if (!(cond)) test_failed(__FILE__, __LINE__, "%s", #cond); \
    } while (0)
#define REQUIRE(cond)                                                          \
    do {                                                                       \
        if (!(cond)) test_failed(__FILE__, __LINE__, "%s", #cond), test_end(); \
    } while (0)
#define CHECK_INT(got, want)                                                                           \
    do {                                                                                               \
        long long got_ = (long long)(got), want_ = (long long)(want);                                  \
        if (got_ != want_) test_failed(__FILE__, __LINE__, "%s is %lld, not %lld", #got, got_, want_); \
    } while (0)
#define CHECK_TEXT(got, want)                                                                               \
    do {                                                                                                    \
        const char *got_ = (got), *want_ = (want);                                                          \
        if (!got_ || strcmp(got_, want_) != 0)                                                              \
            test_failed(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #got, got_ ? got_ : "NULL", want_); \
    } while (0)
// |got - want| <= bound * max(1, |want|); NaN never passes.
#define CHECK_NEAR(got, want, bound)                                                                      \
    do {                                                                                                  \
        double got_ = (got), want_ = (want), bound_ = (bound);                                            \
        if (!(fabs(got_ - want_) <= bound_ * fmax(1.0, fabs(want_))))                                     \
            test_failed(__FILE__, __LINE__, "%s is %.9g, not %.9g within %g", #got, got_, want_, bound_); \
    } while (0)
// A sl_status or sluice_status that must be OK; `error` is an expression for the reason.
#define REQUIRE_OK(expr, error)                                                                                      \
    do {                                                                                                             \
        int status_ = (int)(expr);                                                                                   \
        if (status_ != 0) test_failed(__FILE__, __LINE__, "%s: status %d: %s", #expr, status_, (error)), test_end(); \
    } while (0)

// A seeded generator, the same on every machine (SplitMix64, Steele et al. 2014); --seed sets the start.
uint64_t test_random(void);
double test_uniform(void);           // in [0, 1)
double test_normal(void);            // mean 0, standard deviation 1
uint32_t test_below(uint32_t bound); // in [0, bound)
void test_random_bytes(void *out, size_t n_bytes);

// n bytes that end exactly at an inaccessible page (and begin after one), so a read past the end is a crash.
// Freed at process end.
void *test_guarded(size_t n_bytes);

bool test_bench(void); // --bench was given
bool test_quick(void); // SLUICE_TEST_QUICK is set: the processor is emulated, so smaller shapes will do

// A file of the source tree (path relative to its root) or of the model cache; the cache one skips the test if it
// isn't there. Borrowed.
const char *test_source_path(const char *relative);
const char *test_model_path(const char *file);
const char *test_scratch_dir(void); // a fresh folder, removed at process end

#endif
