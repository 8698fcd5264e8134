// SPDX-License-Identifier: MIT
//
// Arrays of float32 with rows and columns in numpy's .npy files, read and written row by row.
#ifndef SLUICE_NPY_H
#define SLUICE_NPY_H

#include "files.h"

int npy_write_head(new_file *f, size_t n_row, size_t n_col); // the rows follow by new_file_write

typedef struct npy {
    FILE *stream; // owned
    const char *path;
    size_t n_row, n_col, at; // at: the next row
} npy;

// All return APP_OK or have printed what is wrong. The file is as long as its head says.
int npy_open(npy *a, const char *path);
int npy_read_row(npy *a, float *row); // (n_col) finite numbers
void npy_close(npy *a);               // also after a failure

#endif
