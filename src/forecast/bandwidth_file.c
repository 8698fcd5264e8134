// SPDX-License-Identifier: MIT
//
// Measured bandwidths in a small JSON file, {"PROCESSOR, N threads": GB/s}, so that `plan` need not
// measure each time. A missing, broken or unwritable file costs a measurement and nothing else.
#include <jansson.h>

#include "base/buf.h"
#include "forecast/bandwidth.h"
#include "os/os.h"

enum { MAX_FILE_BYTES = 1 << 20 };

static json_t *read_file(const char *path) {
    sl_map map;
    json_t *all = NULL;
    if (sl_map_open(&map, path) != SL_OK) return json_object();
    if (map.n_bytes <= MAX_FILE_BYTES) all = json_loadb((const char *)map.data, map.n_bytes, 0, NULL);
    sl_map_close(&map);
    if (json_is_object(all)) return all;
    json_decref(all);
    return json_object();
}

static void write_file(const char *path, const json_t *all) {
    sl_atomic_file file;
    if (sl_atomic_file_open(&file, path) != SL_OK) return;
    if (json_dumpf(all, file.file, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(6)) == 0)
        (void)sl_atomic_file_commit(&file);
    sl_atomic_file_cancel(&file);
}

sl_status sl_bandwidth_get(sl_bandwidth *out, const char *path, int n_thread) {
    char key[160];
    *out = (sl_bandwidth){0};
    snprintf(key, sizeof key, "%s, %d threads", sl_cpu_name(), n_thread);
    json_t *all = path ? read_file(path) : NULL;
    double known = json_number_value(json_object_get(all, key));
    sl_status status = SL_OK;
    if (known > 0.01 && known < 1e6) {
        *out = (sl_bandwidth){.gb_s = known, .remembered = true};
    } else {
        status = sl_bandwidth_measure(out, n_thread);
        if (status == SL_OK && all && !out->busy && json_object_set_new(all, key, json_real(out->gb_s)) == 0)
            write_file(path, all);
    }
    json_decref(all);
    if (status == SL_OK) sl_error_clear(); // of a file that was not there
    return status;
}
