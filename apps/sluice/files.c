// SPDX-License-Identifier: MIT
//
// Bytes in and out.
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// No prompt or text to tokenize is larger; an endless device is refused instead of filling the
// memory.
enum { INPUT_MAX_BYTES = 1 << 28, READ_BYTES = 1 << 16 };

int text_append(text *t, const char *bytes, size_t n) {
    if (n >= SIZE_MAX / 2 - t->n) return app_fail("out of memory");
    if (t->n + n + 1 > t->cap) {
        size_t cap = (t->n + n + 1) * 2;
        char *data = realloc(t->data, cap);
        if (!data) return app_fail("out of memory");
        t->data = data, t->cap = cap;
    }
    if (n) memcpy(t->data + t->n, bytes, n);
    t->n += n;
    t->data[t->n] = '\0';
    return APP_OK;
}

void text_free(text *t) {
    free(t->data);
    *t = (text){0};
}

static int read_stream(text *out, FILE *stream, const char *name) {
    char block[READ_BYTES];
    int status = text_append(out, "", 0);
    while (status == APP_OK) {
        errno = 0;
        size_t n = fread(block, 1, sizeof block, stream);
        status = text_append(out, block, n);
        if (status == APP_OK && out->n > INPUT_MAX_BYTES) {
            status = app_fail("%s: more than %d MiB of input", name, INPUT_MAX_BYTES >> 20);
        }
        if (n < sizeof block) break;
    }
    if (status == APP_OK && ferror(stream)) status = app_fail("%s: cannot read: %s", name, strerror(errno));
    return status;
}

int file_read(text *out, const char *path) {
    *out = (text){0};
    if (!path || strcmp(path, "-") == 0) return read_stream(out, stdin, "standard input");
    FILE *stream = fopen(path, "rb");
    if (!stream) return app_fail("%s: cannot open: %s", path, strerror(errno));
    int status = read_stream(out, stream, path);
    fclose(stream);
    if (status != APP_OK) text_free(out);
    return status;
}

const char *file_cache_path(char *out, size_t cap) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = cache && *cache ? snprintf(out, cap, "%s", cache)
            : home && *home ? snprintf(out, cap, "%s/.cache", home)
                            : -1;
    static const char folder[] = "/sluice", name[] = "/measured.json";
    if (n < 0 || (size_t)n + sizeof folder + sizeof name > cap) return NULL;
    mkdir(out, 0755); // it may be there already; if it can't be made, nothing is remembered
    strcat(out, folder);
    mkdir(out, 0755);
    return strcat(out, name);
}

int out_open(void) {
    // If 0, 1 or 2 is closed, the next file opened would get its number, and output would go into
    // that file. Each is taken here by a descriptor that refuses what the real one is for.
    const int mode[3] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", mode[fd]) != fd) return APP_FAILED;
    }
    return APP_OK;
}

int out_write(const char *bytes, size_t n) {
    if (n == 0) return APP_OK;
    errno = 0;
    if (fwrite(bytes, 1, n, stdout) == n && fflush(stdout) == 0) return APP_OK;
    return app_fail("cannot write to standard output: %s", strerror(errno));
}

int out_close(void) {
    bool failed_before = ferror(stdout); // and was reported then
    errno = 0;
    if (fclose(stdout) == 0 || failed_before) return failed_before ? APP_FAILED : APP_OK;
    if (errno == EBADF) return APP_OK; // was closed from the start, and nothing was written
    return app_fail("cannot write to standard output: %s", strerror(errno));
}

int new_file_open(new_file *f, const char *path) {
    *f = (new_file){0};
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) return app_fail("%s: is not a regular file", path);
    size_t n = strlen(path);
    f->path = malloc(n + 1), f->temp = malloc(n + sizeof ".XXXXXX");
    if (!f->path || !f->temp) return new_file_abandon(f), app_fail("out of memory");
    memcpy(f->path, path, n + 1);
    memcpy(f->temp, path, n), memcpy(f->temp + n, ".XXXXXX", sizeof ".XXXXXX");
    int fd = mkstemp(f->temp);
    f->stream = fd < 0 ? NULL : fdopen(fd, "wb");
    if (f->stream) return APP_OK;
    int status = app_fail("%s: cannot create: %s", path, strerror(errno));
    if (fd >= 0) close(fd), unlink(f->temp);
    new_file_abandon(f);
    return status;
}

int new_file_write(new_file *f, const void *bytes, size_t n) {
    errno = 0;
    if (fwrite(bytes, 1, n, f->stream) == n) return APP_OK;
    return app_fail("%s: cannot write: %s", f->path, strerror(errno));
}

int new_file_commit(new_file *f) {
    errno = 0;
    mode_t mask = umask(0);
    umask(mask);
    bool ok = fflush(f->stream) == 0 && fchmod(fileno(f->stream), 0666 & ~mask) == 0 && fsync(fileno(f->stream)) == 0;
    ok = fclose(f->stream) == 0 && ok;
    f->stream = NULL;
    if (ok && rename(f->temp, f->path) == 0) return APP_OK;
    int status = app_fail("%s: cannot write: %s", f->path, strerror(errno));
    unlink(f->temp);
    return status;
}

void new_file_abandon(new_file *f) {
    if (f->stream) fclose(f->stream), unlink(f->temp);
    free(f->path), free(f->temp);
    *f = (new_file){0};
}
