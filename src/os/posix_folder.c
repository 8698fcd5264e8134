// SPDX-License-Identifier: MIT
//
// Folders of os.h for Linux and macOS. Links are no files here: what they lead to is not ours to count or to touch.
#define _GNU_SOURCE
#include "base/size.h"
#include "os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

sl_status sl_folder_make(const char *path) {
    struct stat st;
    if (mkdir(path, 0700) == 0) return SL_OK;
    int reason = errno;
    if (stat(path, &st) != 0) return SL_FAIL(SL_IO, "cannot make the folder %s: %s", path, strerror(reason));
    return S_ISDIR(st.st_mode) ? SL_OK : SL_FAIL(SL_IO, "%s is no folder", path);
}

uint64_t sl_folder_free_bytes(const char *path) {
    struct statvfs disk;
    uint64_t n_bytes;
    if (statvfs(path, &disk) != 0 || !sl_size_mul(&n_bytes, disk.f_bavail, disk.f_frsize)) return UINT64_MAX;
    return n_bytes;
}

static int64_t time_of(const struct stat *st) {
#ifdef __APPLE__
    return (int64_t)st->st_mtimespec.tv_sec * 1000000000 + st->st_mtimespec.tv_nsec;
#else
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
#endif
}

sl_status sl_folder_walk(const char *path, sl_folder_visit *each, void *user) {
    DIR *folder = opendir(path);
    if (!folder) return SL_FAIL(SL_IO, "cannot read the folder %s: %s", path, strerror(errno));
    sl_status status = SL_OK;
    for (const struct dirent *entry; status == SL_OK && (entry = readdir(folder));) {
        struct stat st;
        if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue; // somebody has removed it
        if (S_ISREG(st.st_mode)) status = each(user, entry->d_name, (uint64_t)st.st_size, time_of(&st));
    }
    closedir(folder);
    return status;
}

bool sl_file_touch(const char *path, int64_t time_ns) {
    struct timespec t = {.tv_sec = (time_t)(time_ns / 1000000000), .tv_nsec = (long)(time_ns % 1000000000)};
    return utimensat(AT_FDCWD, path, (struct timespec[2]){t, t}, AT_SYMLINK_NOFOLLOW) == 0;
}

bool sl_file_remove(const char *path) { return unlink(path) == 0; }
