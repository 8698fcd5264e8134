// SPDX-License-Identifier: MIT
//
// Files of os.h for Linux and macOS: read-only mappings and files that appear whole or not at all.
// A mapped file that somebody else cuts short while we read it raises SIGBUS; nothing here guards
// against that.
#define _GNU_SOURCE // MADV_POPULATE_READ
#include "base/size.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"

static sl_status not_a_file(const char *path, mode_t mode) {
    const char *kind = S_ISDIR(mode) ? "a folder" : "no regular file";
    return SL_FAIL(SL_IO, "%s is %s", path, kind);
}

static sl_status map_fd(sl_map *out, int fd, const char *path) {
    struct stat st;
    if (fstat(fd, &st) != 0) return SL_FAIL(SL_IO, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return not_a_file(path, st.st_mode);
    out->device = (uint64_t)st.st_dev, out->inode = (uint64_t)st.st_ino;
    if (st.st_size == 0) return SL_OK;
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return SL_FAIL(SL_IO, "cannot map %s: %s", path, strerror(errno));
    out->data = data, out->n_bytes = (size_t)st.st_size;
    return SL_OK;
}

sl_status sl_map_open(sl_map *out, const char *path) {
    *out = (sl_map){0};
    // O_NONBLOCK: opening a pipe must not wait for its writer
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return SL_FAIL(SL_IO, "cannot open %s: %s", path, strerror(errno));
    sl_status status = map_fd(out, fd, path);
    close(fd);
    return status;
}

void sl_map_close(sl_map *map) {
    if (map->data) munmap((void *)(uintptr_t)map->data, map->n_bytes);
    *map = (sl_map){0};
}

bool sl_map_is(const sl_map *map, const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && (uint64_t)st.st_dev == map->device && (uint64_t)st.st_ino == map->inode;
}

// The range as whole pages inside the mapping; false if nothing is left of it.
static bool page_range(const sl_map *map, size_t off, size_t *n_bytes, char **start) {
    if (off >= map->n_bytes) return false;
    size_t before = off % sl_page_bytes(); // the mapping itself begins at a page
    *start = (char *)(uintptr_t)map->data + off - before;
    *n_bytes = SL_MIN(*n_bytes, map->n_bytes - off) + before;
    return true;
}

void sl_map_advise(const sl_map *map, size_t off, size_t n_bytes) {
    char *start;
    if (page_range(map, off, &n_bytes, &start)) posix_madvise(start, n_bytes, POSIX_MADV_WILLNEED);
}

void sl_map_prefault(const sl_map *map, size_t off, size_t n_bytes) {
    char *start;
    if (!page_range(map, off, &n_bytes, &start)) return;
#ifdef MADV_POPULATE_READ
    if (madvise(start, n_bytes, MADV_POPULATE_READ) == 0) return; // Linux 5.14 and later
#endif
    const volatile char *pages = start;
    for (size_t i = 0, step = sl_page_bytes(); i < n_bytes; i += step) (void)pages[i];
}

void sl_map_release(const sl_map *map, size_t off, size_t n_bytes) {
    size_t page = sl_page_bytes(), end = SL_MIN(off + n_bytes, map->n_bytes) / page * page;
    off = sl_round_up(off, page);
    if (off < end) madvise((char *)(uintptr_t)map->data + off, end - off, MADV_DONTNEED);
}

// ---- atomic files -------------------------------------------------------------------------------

// Where the new file goes: the target of a link, so that the link stays. Refuses what rename() must
// not replace.
static sl_status choose_target(sl_atomic_file *file, const char *path, mode_t *mode) {
    struct stat st;
    char resolved[PATH_MAX];
    *mode = 0;
    if (stat(path, &st) == 0) {
        if (!S_ISREG(st.st_mode)) return not_a_file(path, st.st_mode);
        *mode = st.st_mode & 07777;
        if (realpath(path, resolved)) path = resolved;
    }
    if (strlen(path) >= sizeof file->path - 32) return SL_FAIL(SL_IO, "the path %.60s... is too long", path);
    strcpy(file->path, path);
    return SL_OK;
}

sl_status sl_atomic_file_open(sl_atomic_file *out, const char *path, bool is_private) {
    out->file = NULL;
    out->path[0] = out->temp_path[0] = 0;
    mode_t mode;
    SL_TRY(choose_target(out, path, &mode));
    int fd = -1;
    for (unsigned i = 0; i < 1000 && fd < 0; i++) {
        snprintf(out->temp_path, sizeof out->temp_path, "%.4060s.tmp-%ld-%u", out->path, (long)getpid(), i);
        fd = open(out->temp_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, is_private ? 0600 : 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    if (fd < 0) return SL_FAIL(SL_IO, "cannot create %s: %s", out->temp_path, strerror(errno));
    if (mode && fchmod(fd, mode) != 0) errno = 0; // a file system without modes keeps its own
    out->file = fdopen(fd, "wb");
    if (out->file) return SL_OK;
    close(fd);
    unlink(out->temp_path);
    return SL_FAIL(SL_NO_MEMORY, "out of memory: stream of %s", path);
}

// The rename itself survives a power cut only once the folder is on disk; some file systems cannot,
// so no error.
static void sync_folder(const char *path) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

static sl_status finish(sl_atomic_file *file, bool sync) {
    if (!file->file) return SL_FAIL(SL_BAD_ARG, "the file was already committed or cancelled");
    bool good = fflush(file->file) == 0 && !ferror(file->file) && (!sync || fsync(fileno(file->file)) == 0);
    int reason = errno;
    if (fclose(file->file) != 0 && good) good = false, reason = errno;
    file->file = NULL;
    if (good && rename(file->temp_path, file->path) != 0) good = false, reason = errno;
    if (good && sync) sync_folder(file->path);
    if (good) return SL_OK;
    unlink(file->temp_path);
    return SL_FAIL(SL_IO, "cannot write %s: %s", file->path, strerror(reason));
}

sl_status sl_atomic_file_commit(sl_atomic_file *file) { return finish(file, true); }

sl_status sl_atomic_file_publish(sl_atomic_file *file) { return finish(file, false); }

void sl_atomic_file_cancel(sl_atomic_file *file) {
    if (!file->file) return;
    fclose(file->file);
    file->file = NULL;
    unlink(file->temp_path);
}
