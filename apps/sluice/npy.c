// SPDX-License-Identifier: MIT
//
// The .npy format, versions 1.0 to 3.0: magic, version, length of the head, a Python dict of three keys padded with
// spaces, then the numbers. Of other people's files nothing is believed until it was checked.
#include "npy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_MAGIC = 8, HEAD_MAX = 4096, SIDE_MAX = 1 << 30 };
static const char magic[] = "\x93NUMPY";

// Padded so that the data is aligned to 64 bytes.
int npy_write_head(new_file *f, size_t n_row, size_t n_col) {
    char head[128];
    const size_t n_fixed = 10;
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00", N_MAGIC);
    head[8] = (char)(sizeof head - n_fixed), head[9] = 0;
    int n = snprintf(head + n_fixed, sizeof head - n_fixed,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", n_row, n_col);
    head[n_fixed + (size_t)n] = ' '; // over the NUL
    head[sizeof head - 1] = '\n';
    return new_file_write(f, head, sizeof head);
}

// What follows `key:` in the dict, or NULL. numpy writes the keys once each and nothing else in quotes but '<f4'.
static const char *find_value(const char *dict, const char *key) {
    const char *at = strstr(dict, key);
    if (!at) return NULL;
    at += strlen(key);
    while (*at == ' ') at++;
    if (*at++ != ':') return NULL;
    while (*at == ' ') at++;
    return at;
}

static const char *read_side(const char *at, size_t *side) {
    while (*at == ' ') at++;
    if (*at < '0' || *at > '9') return NULL;
    for (*side = 0; *at >= '0' && *at <= '9'; at++)
        if ((*side = *side * 10 + (size_t)(*at - '0')) > SIDE_MAX) return NULL;
    while (*at == ' ') at++;
    return at;
}

static int parse_dict(npy *a, const char *dict) {
    const char *type = find_value(dict, "'descr'"), *order = find_value(dict, "'fortran_order'");
    const char *shape = find_value(dict, "'shape'");
    if (!type || !order || !shape) return app_fail("%s: its head lacks descr, fortran_order or shape", a->path);
    if (strncmp(type, "'<f4'", 5) != 0) return app_fail("%s: must hold little-endian float32 ('<f4')", a->path);
    if (strncmp(order, "False", 5) != 0) return app_fail("%s: must be in C order", a->path);
    const char *at = *shape == '(' ? read_side(shape + 1, &a->n_row) : NULL;
    at = at && *at == ',' ? read_side(at + 1, &a->n_col) : NULL;
    if (at && *at == ',') at++;
    while (at && *at == ' ') at++;
    if (!at || *at != ')' || !a->n_row || !a->n_col)
        return app_fail("%s: its shape must be (rows, columns), of a row and a column at least", a->path);
    return APP_OK;
}

static int read_head(npy *a) {
    unsigned char fixed[12];
    char dict[HEAD_MAX + 1];
    if (fread(fixed, 1, 10, a->stream) != 10 || memcmp(fixed, magic, 6) != 0)
        return app_fail("%s: is not a .npy file", a->path);
    if (fixed[6] < 1 || fixed[6] > 3) return app_fail("%s: version %d of .npy is not known", a->path, fixed[6]);
    size_t n = fixed[8] | (size_t)fixed[9] << 8;
    if (fixed[6] > 1) {
        if (fread(fixed + 10, 1, 2, a->stream) != 2) return app_fail("%s: ends in its head", a->path);
        n |= (size_t)fixed[10] << 16 | (size_t)fixed[11] << 24;
    }
    if (n > HEAD_MAX) return app_fail("%s: a head of %zu bytes is not that of an array of logits", a->path, n);
    if (fread(dict, 1, n, a->stream) != n) return app_fail("%s: ends in its head", a->path);
    dict[n] = '\0';
    return parse_dict(a, dict);
}

static int check_length(npy *a) {
    long at = ftell(a->stream), end = -1;
    if (at >= 0 && fseek(a->stream, 0, SEEK_END) == 0) end = ftell(a->stream);
    if (end < 0 || fseek(a->stream, at, SEEK_SET) != 0) return app_fail("%s: cannot be read", a->path);
    if ((uint64_t)(end - at) != (uint64_t)a->n_row * a->n_col * sizeof(float)) // sides are at most 2^30
        return app_fail("%s: holds %ld bytes of numbers, but its shape is (%zu, %zu)", a->path, end - at, a->n_row,
                        a->n_col);
    return APP_OK;
}

int npy_open(npy *a, const char *path) {
    *a = (npy){.stream = fopen(path, "rb"), .path = path};
    if (!a->stream) return app_fail("%s: cannot be opened", path);
    int result = read_head(a);
    return result == APP_OK ? check_length(a) : result;
}

int npy_read_row(npy *a, float *row) {
    if (fread(row, sizeof *row, a->n_col, a->stream) != a->n_col)
        return app_fail("%s: row %zu cannot be read", a->path, a->at);
    for (size_t i = 0; i < a->n_col; i++)
        if (!isfinite(row[i])) return app_fail("%s: row %zu holds a NaN or an infinity", a->path, a->at);
    a->at++;
    return APP_OK;
}

void npy_close(npy *a) {
    if (a->stream) fclose(a->stream);
    a->stream = NULL;
}
