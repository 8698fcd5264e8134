// SPDX-License-Identifier: MIT
//
// Files and split sets. A set is opened by its first file, whose name ends in -00001-of-NNNNN.gguf;
// the others stand beside it, and only their tensors count. Mappings live as long as the sl_gguf.
#include "gguf/gguf_part.h"

#include "base/size.h"
#include "os/os.h"

struct sl_gguf {
    sl_gguf_part whole;
    sl_map *maps; // owned, one for each file; a single one that is not ours if `borrowed`
    uint32_t n_files;
    bool borrowed;
    char *path; // owned
};

typedef struct split_info {
    int64_t no, count,
        n_tensors; // count is 0 for a file that belongs to no set; n_tensors -1 if absent
} split_info;

static sl_status read_split(split_info *out, const sl_gguf_part *part) {
    const sl_gguf_kv *count = sl_gguf_part_find(part, "split.count"), *no = sl_gguf_part_find(part, "split.no"),
                     *n_tensors = sl_gguf_part_find(part, "split.tensors.count");
    *out = (split_info){0, 0, -1};
    if (!count) return SL_OK;
    SL_TRY(sl_gguf_read_int(count, 0, &out->count, 0, UINT16_MAX));
    if (out->count <= 1) return out->count = 0, SL_OK;
    if (!no) return SL_FAIL(SL_BAD_FILE, "the key split.no is missing");
    SL_TRY(sl_gguf_read_int(no, 0, &out->no, 0, out->count - 1));
    if (n_tensors) SL_TRY(sl_gguf_read_int(n_tensors, 0, &out->n_tensors, 0, INT64_MAX));
    return SL_OK;
}

// Where the file's name says "-00001-of-00003.gguf" for this count; NULL if it says something else.
static char *split_suffix(const char *path, int64_t count) {
    char suffix[64];
    snprintf(suffix, sizeof suffix, "-00001-of-%05lld.gguf", (long long)count);
    size_t n = strlen(path), n_suffix = strlen(suffix);
    if (n < n_suffix || strcmp(path + n - n_suffix, suffix) != 0) return NULL;
    return (char *)(uintptr_t)path + n - n_suffix;
}

static sl_status check_sibling(const split_info *first, const split_info *info, uint32_t no) {
    if (info->count != first->count || info->n_tensors != first->n_tensors)
        return SL_FAIL(SL_BAD_FILE, "the file belongs to another split set than the first one");
    if (info->no != no)
        return SL_FAIL(SL_BAD_FILE, "the file says that it is part %lld of its set, not part %u",
                       (long long)info->no + 1, no + 1);
    return SL_OK;
}

// Moves the tensors of `part`, file `no` of the set, into the whole.
static sl_status adopt_tensors(sl_gguf *gguf, const sl_gguf_part *part, uint32_t no) {
    sl_gguf_part *whole = &gguf->whole;
    size_t n = whole->n_tensors + part->n_tensors;
    SL_TRY(sl_realloc(&whole->tensors, whole->n_tensors, n, sizeof *whole->tensors, "tensors of a split set"));
    for (size_t i = 0; i < part->n_tensors; i++) {
        sl_gguf_tensor *t = &whole->tensors[whole->n_tensors + i];
        *t = part->tensors[i];
        t->file = no;
    }
    whole->n_tensors = n;
    return SL_OK;
}

static sl_status open_sibling(sl_gguf *gguf, const char *path, const split_info *first, uint32_t no,
                              bool allow_no_data) {
    sl_map *map = &gguf->maps[no];
    sl_gguf_part part = {0};
    split_info info;
    sl_status status;
    SL_TRY(sl_map_open(map, path));
    gguf->n_files = no + 1;
    SL_TRY_OUT(sl_gguf_part_parse(&part, map->data, map->n_bytes, allow_no_data));
    SL_TRY_OUT(read_split(&info, &part));
    SL_TRY_OUT(check_sibling(first, &info, no));
    SL_TRY_OUT(adopt_tensors(gguf, &part, no));
out:
    sl_gguf_part_deinit(&part);
    return status == SL_OK ? SL_OK : sl_fail_prefix(status, "%s", path);
}

static sl_status open_siblings(sl_gguf *gguf, const split_info *first, bool allow_no_data) {
    char *path = NULL;
    size_t n_path = strlen(gguf->path) + 1;
    const char *suffix = split_suffix(gguf->path, first->count);
    if (!suffix)
        return SL_FAIL(SL_BAD_FILE,
                       "%s: this is the first of %lld files, but its name does not end in "
                       "-00001-of-%05lld.gguf, so the others cannot be found",
                       gguf->path, (long long)first->count, (long long)first->count);
    size_t n_prefix = (size_t)(suffix - gguf->path);
    sl_status status;
    SL_TRY_OUT(sl_realloc(&gguf->maps, 1, (size_t)first->count, sizeof *gguf->maps, "mappings of a split set"));
    SL_TRY_OUT(sl_alloc(&path, n_path, 1, "path of a split file"));
    for (uint32_t no = 1; no < first->count; no++) {
        memcpy(path, gguf->path, n_prefix);
        snprintf(path + n_prefix, n_path - n_prefix, "-%05u-of-%05lld.gguf", no + 1, (long long)first->count);
        SL_TRY_OUT(open_sibling(gguf, path, first, no, allow_no_data));
    }
    SL_TRY_OUT(sl_gguf_part_index_tensors(&gguf->whole));
    if (first->n_tensors >= 0 && (uint64_t)first->n_tensors != gguf->whole.n_tensors)
        status = SL_FAIL(SL_BAD_FILE, "%s: the set should have %lld tensors, but its files have %zu", gguf->path,
                         (long long)first->n_tensors, gguf->whole.n_tensors);
out:
    sl_free(path);
    return status;
}

static sl_status open_first(sl_gguf *gguf, split_info *split, bool allow_no_data) {
    SL_TRY(sl_gguf_part_parse(&gguf->whole, gguf->maps[0].data, gguf->maps[0].n_bytes, allow_no_data));
    SL_TRY(read_split(split, &gguf->whole));
    if (split->no != 0)
        return SL_FAIL(SL_BAD_ARG, "this is part %lld of %lld; open part 1 (...-00001-of-%05lld.gguf)",
                       (long long)split->no + 1, (long long)split->count, (long long)split->count);
    return SL_OK;
}

static sl_status open_all(sl_gguf *gguf, const char *path, bool allow_no_data) {
    split_info split;
    SL_TRY(sl_alloc(&gguf->path, strlen(path) + 1, 1, "path"));
    memcpy(gguf->path, path, strlen(path));
    SL_TRY(sl_alloc(&gguf->maps, 1, sizeof *gguf->maps, "mapping"));
    SL_TRY(sl_map_open(&gguf->maps[0], path));
    gguf->n_files = 1;
    sl_status status = open_first(gguf, &split, allow_no_data);
    if (status != SL_OK) return sl_fail_prefix(status, "%s", path);
    return split.count ? open_siblings(gguf, &split, allow_no_data) : SL_OK;
}

static sl_status parse_borrowed(sl_gguf *gguf, const uint8_t *data, size_t n_bytes, bool allow_no_data) {
    split_info split;
    SL_TRY(sl_alloc(&gguf->path, 1, 1, "path"));
    SL_TRY(sl_alloc(&gguf->maps, 1, sizeof *gguf->maps, "mapping"));
    gguf->borrowed = true;
    gguf->maps[0] = (sl_map){.data = data, .n_bytes = n_bytes};
    gguf->n_files = 1;
    SL_TRY(sl_gguf_part_parse(&gguf->whole, data, n_bytes, allow_no_data));
    SL_TRY(read_split(&split, &gguf->whole));
    if (split.count)
        return SL_FAIL(SL_UNSUPPORTED, "this is one of %lld split files; open the set by its path",
                       (long long)split.count);
    return SL_OK;
}

sl_status sl_gguf_open(sl_gguf **out, const char *path, const sl_gguf_options *options) {
    sl_gguf *gguf;
    *out = NULL;
    if (!path) return SL_FAIL(SL_BAD_ARG, "no path was given");
    SL_TRY(sl_alloc(&gguf, 1, sizeof *gguf, "gguf reader"));
    sl_status status = open_all(gguf, path, options && options->allow_no_data);
    if (status == SL_OK) *out = gguf;
    else sl_gguf_close(gguf);
    return status;
}

sl_status sl_gguf_parse(sl_gguf **out, const uint8_t *data, size_t n_bytes, const sl_gguf_options *options) {
    sl_gguf *gguf;
    *out = NULL;
    SL_TRY(sl_alloc(&gguf, 1, sizeof *gguf, "gguf reader"));
    sl_status status = parse_borrowed(gguf, data, n_bytes, options && options->allow_no_data);
    if (status == SL_OK) *out = gguf;
    else sl_gguf_close(gguf);
    return status;
}

void sl_gguf_close(sl_gguf *gguf) {
    if (!gguf) return;
    sl_gguf_part_deinit(&gguf->whole);
    for (uint32_t i = 0; i < gguf->n_files && !gguf->borrowed; i++) sl_map_close(&gguf->maps[i]);
    sl_free(gguf->maps);
    sl_free(gguf->path);
    sl_free(gguf);
}

uint32_t sl_gguf_version(const sl_gguf *gguf) { return gguf->whole.version; }
uint32_t sl_gguf_n_files(const sl_gguf *gguf) { return gguf->n_files; }
uint64_t sl_gguf_alignment(const sl_gguf *gguf) { return gguf->whole.alignment; }
const char *sl_gguf_path(const sl_gguf *gguf) { return gguf->path; }

bool sl_gguf_reads(const sl_gguf *gguf, const char *path) {
    for (uint32_t i = 0; i < gguf->n_files && !gguf->borrowed; i++)
        if (sl_map_is(&gguf->maps[i], path)) return true;
    return false;
}

uint64_t sl_gguf_file_bytes(const sl_gguf *gguf) {
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < gguf->n_files; i++) n_bytes += gguf->maps[i].n_bytes;
    return n_bytes;
}

size_t sl_gguf_n_kv(const sl_gguf *gguf) { return gguf->whole.n_kv; }

const sl_gguf_kv *sl_gguf_kv_at(const sl_gguf *gguf, size_t i) {
    SL_CHECK(i < gguf->whole.n_kv);
    return &gguf->whole.kvs[i];
}

const sl_gguf_kv *sl_gguf_find(const sl_gguf *gguf, const char *key) { return sl_gguf_part_find(&gguf->whole, key); }

size_t sl_gguf_n_tensors(const sl_gguf *gguf) { return gguf->whole.n_tensors; }

const sl_gguf_tensor *sl_gguf_tensor_at(const sl_gguf *gguf, size_t i) {
    SL_CHECK(i < gguf->whole.n_tensors);
    return &gguf->whole.tensors[i];
}

const sl_gguf_tensor *sl_gguf_tensor_find(const sl_gguf *gguf, const char *name) {
    const sl_name *found = sl_name_index_find(&gguf->whole.tensor_index, sl_span_of(name));
    return found ? &gguf->whole.tensors[found->i] : NULL;
}

sl_status sl_gguf_prefault(const sl_gguf *gguf, int (*progress)(void *user, uint64_t n, uint64_t total), void *user) {
    enum { STEP_BYTES = 16 << 20 };
    uint64_t n_done = 0, total = sl_gguf_file_bytes(gguf);
    for (uint32_t file = 0; file < gguf->n_files; file++) {
        const sl_map *map = &gguf->maps[file];
        if (!gguf->borrowed) sl_map_advise(map, 0, map->n_bytes);
        for (size_t off = 0; off < map->n_bytes; off += STEP_BYTES) {
            size_t n = SL_MIN(map->n_bytes - off, (size_t)STEP_BYTES);
            if (!gguf->borrowed) sl_map_prefault(map, off, n);
            n_done += n;
            if (progress && progress(user, n_done, total)) return SL_FAIL(SL_CANCELLED, "loading was stopped");
        }
    }
    return SL_OK;
}

void sl_gguf_tensor_prefault(const sl_gguf *gguf, const sl_gguf_tensor *tensor) {
    if (gguf->borrowed || !tensor->data) return;
    sl_map_advise(&gguf->maps[tensor->file], tensor->file_off, tensor->n_bytes);
    sl_map_prefault(&gguf->maps[tensor->file], tensor->file_off, tensor->n_bytes);
}

void sl_gguf_tensor_release(const sl_gguf *gguf, const sl_gguf_tensor *tensor) {
    if (!gguf->borrowed && tensor->data) sl_map_release(&gguf->maps[tensor->file], tensor->file_off, tensor->n_bytes);
}

void sl_gguf_header_prefault(const sl_gguf *gguf) {
    for (uint32_t file = 0; !gguf->borrowed && file < gguf->n_files; file++) {
        const sl_map *map = &gguf->maps[file];
        size_t end = map->n_bytes;
        for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
            const sl_gguf_tensor *t = sl_gguf_tensor_at(gguf, i);
            if (t->file == file && t->file_off < end) end = t->file_off;
        }
        sl_map_prefault(map, 0, end);
    }
}
