// SPDX-License-Identifier: MIT
//
// The file of measured.h. It is replaced as a whole, so no reader sees half of it; of two writers at once one loses.
#include "forecast/measured.h"

#include <jansson.h>

#include "base/buf.h"
#include "os/os.h"

enum { MAX_FILE_BYTES = 1 << 20 };

static json_t *read_file(const char *path) {
    sl_map map;
    json_t *all = NULL;
    if (sl_map_open(&map, path) == SL_OK) {
        if (map.n_bytes <= MAX_FILE_BYTES) all = json_loadb((const char *)map.data, map.n_bytes, 0, NULL);
        sl_map_close(&map);
    }
    sl_error_clear(); // of a file that was not there
    if (json_is_object(all)) return all;
    json_decref(all);
    return json_object();
}

static void write_file(const char *path, const json_t *all) {
    sl_atomic_file file;
    if (sl_atomic_file_open(&file, path, false) == SL_OK) {
        if (json_dumpf(all, file.file, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(6)) == 0)
            (void)sl_atomic_file_commit(&file);
        sl_atomic_file_cancel(&file);
    }
    sl_error_clear();
}

double sl_measured_find(const char *path, const char *what) {
    if (!path) return 0;
    json_t *all = read_file(path);
    double value = json_number_value(json_object_get(all, what));
    json_decref(all);
    return value;
}

void sl_measured_keep(const char *path, const char *what, double value) {
    if (!path) return;
    json_t *all = read_file(path);
    if (json_object_set_new(all, what, json_real(value)) == 0) write_file(path, all);
    json_decref(all);
}
