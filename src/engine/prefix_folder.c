// SPDX-License-Identifier: MIT
//
// The times of the files are the order of their use; there is no index that could disagree with the folder.
#include "engine/prefix_folder.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

enum { NAME_HEX = 16, NAME_LEN = NAME_HEX + 1 + NAME_HEX + 3 }; // FORM-CHAIN.kv
static const int64_t abandoned_ns = 3600 * INT64_C(1000000000);

typedef struct entry {
    char name[NAME_LEN + 1];
    uint64_t n_bytes;
    int64_t time_ns;
} entry;

typedef struct listing {
    const sl_prefix_folder *folder;
    int64_t now_ns;
    entry *entry; // owned
    size_t n, cap;
    uint64_t n_bytes;
} listing;

static bool is_hex(const char *s, size_t n) { return strspn(s, "0123456789abcdef") >= n; }

// Does it begin as the name of one of our files does?
static bool is_ours(const char *name) {
    return is_hex(name, NAME_HEX) && name[NAME_HEX] == '-' && is_hex(name + NAME_HEX + 1, NAME_HEX) &&
           strncmp(name + NAME_LEN - 3, ".kv", 3) == 0;
}

static bool remove_file(const sl_prefix_folder *folder, const char *name) {
    char path[SL_PREFIX_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return sl_file_remove(path);
}

static sl_status list_file(void *user, const char *name, uint64_t n_bytes, int64_t time_ns) {
    listing *l = user;
    if (strlen(name) < NAME_LEN || !is_ours(name)) return SL_OK;
    if (name[NAME_LEN]) { // of somebody who writes now, or was killed then
        bool is_part = strncmp(name + NAME_LEN, ".tmp-", 5) == 0;
        if (is_part && time_ns < l->now_ns - abandoned_ns && strlen(name) < 100) remove_file(l->folder, name);
        return SL_OK;
    }
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 256;
        SL_TRY(sl_realloc(&l->entry, l->cap, cap, sizeof *l->entry, "files of prefixes"));
        l->cap = cap;
    }
    if (time_ns > l->now_ns) time_ns = 0; // a clock that was wrong must not keep it for ever
    entry *e = &l->entry[l->n++];
    *e = (entry){.n_bytes = n_bytes, .time_ns = time_ns};
    memcpy(e->name, name, NAME_LEN);
    l->n_bytes = n_bytes < UINT64_MAX - l->n_bytes ? l->n_bytes + n_bytes : UINT64_MAX;
    return SL_OK;
}

static int older_first(const void *a, const void *b) {
    int64_t x = ((const entry *)a)->time_ns, y = ((const entry *)b)->time_ns;
    return (x > y) - (x < y);
}

// Looks through the folder and removes the oldest, but none used at since_ns or later, until there is room for
// n_room_bytes more.
static sl_status shrink(sl_prefix_folder *folder, uint64_t n_room_bytes, int64_t since_ns) {
    listing l = {.folder = folder, .now_ns = sl_clock_date_ns()};
    sl_status status = sl_folder_walk(folder->path, list_file, &l);
    uint64_t n_free = sl_folder_free_bytes(folder->path);
    folder->limit_bytes =
        SL_MIN(folder->budget_bytes, n_free < UINT64_MAX - l.n_bytes ? l.n_bytes + n_free : UINT64_MAX);
    uint64_t n_left = folder->limit_bytes - SL_MIN(n_room_bytes, folder->limit_bytes);
    if (status == SL_OK && l.n_bytes > n_left) qsort(l.entry, l.n, sizeof *l.entry, older_first);
    for (size_t i = 0; status == SL_OK && i < l.n && l.n_bytes > n_left && l.entry[i].time_ns < since_ns; i++)
        if (remove_file(folder, l.entry[i].name)) l.n_bytes -= SL_MIN(l.entry[i].n_bytes, l.n_bytes);
    folder->n_bytes = l.n_bytes;
    sl_free(l.entry);
    return status;
}

sl_status sl_prefix_folder_open(sl_prefix_folder *out, const char *path, uint64_t budget_bytes) {
    *out = (sl_prefix_folder){.budget_bytes = budget_bytes};
    if (strlen(path) >= sizeof out->path) return SL_FAIL(SL_IO, "the path %.60s... is too long", path);
    strcpy(out->path, path);
    SL_TRY(sl_folder_make(path));
    return sl_prefix_folder_look(out);
}

void sl_prefix_folder_path(char out[SL_PREFIX_PATH_BYTES], const sl_prefix_folder *folder, sl_prefix_key key) {
    snprintf(out, SL_PREFIX_PATH_BYTES, "%s/%016" PRIx64 "-%016" PRIx64 ".kv", folder->path, key.form, key.chain);
}

sl_status sl_prefix_folder_look(sl_prefix_folder *folder) { return shrink(folder, 0, INT64_MAX); }

static bool has_room(const sl_prefix_folder *folder, uint64_t n_bytes) {
    return n_bytes <= folder->limit_bytes && folder->n_bytes <= folder->limit_bytes - n_bytes;
}

sl_status sl_prefix_folder_make_room(sl_prefix_folder *folder, uint64_t n_bytes, int64_t since_ns) {
    uint64_t spare = folder->limit_bytes / 16; // so that not each file has the folder looked through
    if (has_room(folder, n_bytes)) return SL_OK;
    SL_TRY(shrink(folder, SL_MAX(n_bytes, spare), since_ns));
    if (has_room(folder, n_bytes)) return SL_OK;
    return SL_FAIL(SL_FULL, "%s: its %.1f MiB are full of prefixes just used", folder->path,
                   (double)folder->limit_bytes / 0x1p20);
}
