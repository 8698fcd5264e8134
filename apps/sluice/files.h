// SPDX-License-Identifier: MIT
//
// Bytes in and out: whole inputs, standard output with every write checked, and files that appear
// only when complete.
#ifndef SLUICE_FILES_H
#define SLUICE_FILES_H

#include <stdio.h>

#include "app.h"

// Growing bytes, always followed by a NUL.
typedef struct text {
    char *data;
    size_t n, cap;
} text;

int text_append(text *t, const char *bytes, size_t n); // APP_OK, or has printed why not
void text_free(text *t);

int file_read(text *out,
              const char *path); // all of a file, or of standard input if path is NULL or "-"

// The file that remembers what was measured on this machine; NULL if there is no place for it.
const char *file_cache_path(char *out, size_t cap);

int out_open(void); // once, before anything is opened: a closed stdout must not become a file
int out_write(const char *bytes,
              size_t n); // to standard output, at once visible; has printed why not
int out_close(void);     // what only shows at the end: a full disk, a reader gone

// A file that takes its name when it is complete; until then, and after a failure, it does not
// exist.
typedef struct new_file {
    FILE *stream;
    char *path, *temp; // owned
} new_file;

int new_file_open(new_file *f, const char *path);
int new_file_write(new_file *f, const void *bytes, size_t n);
int new_file_commit(new_file *f);
void new_file_abandon(new_file *f); // also after a commit

#endif
