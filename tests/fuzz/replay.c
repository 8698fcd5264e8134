// SPDX-License-Identifier: MIT
//
// Replays files through a fuzz target without a fuzzer:  PROGRAM FOLDER|FILE ...
// A target returns 0 or crashes. An empty corpus is a failure, so that a wrong path does not pass.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static int n_files;

static void replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    long n = ftell(file);
    rewind(file);
    uint8_t *data = malloc(n > 0 ? (size_t)n : 1); // exactly the size, for the address sanitizer
    if (n < 0 || !data || fread(data, 1, (size_t)n, file) != (size_t)n) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    fprintf(stderr, "%s\n", path); // the last name before a crash is the culprit
    LLVMFuzzerTestOneInput(data, (size_t)n);
    free(data);
    n_files++;
}

static void replay_folder(const char *path) {
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort);
    if (n < 0) {
        replay_file(path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.') replay_file(file);
        free(names[i]);
    }
    free(names);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) replay_folder(argv[i]);
    printf("%d files replayed\n", n_files);
    return n_files > 0 ? 0 : 1;
}
