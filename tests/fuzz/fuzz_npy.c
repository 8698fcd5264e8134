// SPDX-License-Identifier: MIT
// sl_test: MODULES sluice
//
// Any bytes as a .npy file. What is accepted has as many numbers as its head says, and all its rows can be read or are
// refused for what they hold. The program's own file is taken in whole: it is no part of the library.
#define _GNU_SOURCE // fmemopen
#include "../../apps/sluice/npy.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static int n_reason;

int app_fail(const char *fmt, ...) { return n_reason += *fmt != '\0', APP_FAILED; }

int new_file_write(new_file *f, const void *bytes, size_t n) {
    (void)f, (void)bytes, (void)n;
    return APP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (n_bytes == 0) return 0; // fmemopen has no empty files
    npy a = {.stream = fmemopen((void *)(uintptr_t)data, n_bytes, "rb"), .path = "fuzz"};
    if (!a.stream) abort();
    n_reason = 0;
    int result = read_head(&a);
    if (result == APP_OK) result = check_length(&a);
    if (result == APP_OK && a.n_row * a.n_col * sizeof(float) >= n_bytes) abort();
    float *row = result == APP_OK ? malloc(a.n_col * sizeof *row) : NULL;
    while (row && result == APP_OK && a.at < a.n_row) result = npy_read_row(&a, row);
    if ((result != APP_OK) != (n_reason == 1)) abort(); // a refusal has one reason
    free(row);
    npy_close(&a);
    return 0;
}
