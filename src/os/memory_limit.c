// SPDX-License-Identifier: MIT
//
// How much memory there is, and how much a new process could use now: the machine's figure, cut by
// every control group above us (version 2 and 1), because a container is killed at its own limit,
// not at the machine's.
#define _DARWIN_C_SOURCE
#include "os/os.h"

#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

#if defined(__APPLE__)

#include <mach/mach.h>
#include <sys/sysctl.h>

size_t sl_memory_total_bytes(void) {
    uint64_t n = 0;
    size_t size = sizeof n;
    return sysctlbyname("hw.memsize", &n, &size, NULL, 0) == 0 ? (size_t)n : 0;
}

size_t sl_memory_free_bytes(void) {
    vm_statistics64_data_t stat;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&stat, &n) != KERN_SUCCESS) return 0;
    return ((size_t)stat.free_count + stat.inactive_count) * sl_page_bytes();
}

#else

enum { PATH_BYTES = 1024 };

// The number after `name` at the beginning of a line of the file; with name "" the file's first
// number.
static bool read_number(uint64_t *out, const char *path, const char *name) {
    FILE *file = fopen(path, "r");
    if (!file) return false;
    char line[256];
    bool found = false;
    size_t n = strlen(name);
    while (!found && fgets(line, sizeof line, file)) {
        unsigned long long value;
        if (strncmp(line, name, n) != 0 || sscanf(line + n, "%llu", &value) != 1) continue;
        *out = value;
        found = true;
    }
    fclose(file);
    return found;
}

typedef struct group_files {
    const char *root, *limit, *usage, *stat_inactive, *stat_active;
} group_files;

static const group_files version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ",
                                      "active_file "};
static const group_files version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                      "total_inactive_file ", "total_active_file "};

static bool group_number(uint64_t *out, const group_files *files, const char *group, const char *file,
                         const char *name) {
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s%s/%s", files->root, group, file);
    return read_number(out, path, name);
}

// Lowers *limit and *room to what one group allows. Cached file pages count as used but can be
// given back.
static void apply_group(const group_files *files, const char *group, uint64_t *limit, uint64_t *room) {
    uint64_t max, used = 0, inactive = 0, active = 0;
    if (!group_number(&max, files, group, files->limit, "")) return; // "max", or no such group
    *limit = SL_MIN(*limit, max);
    if (!group_number(&used, files, group, files->usage, "")) return;
    group_number(&inactive, files, group, "memory.stat", files->stat_inactive);
    group_number(&active, files, group, "memory.stat", files->stat_active);
    used -= SL_MIN(used, inactive + active);
    *room = SL_MIN(*room, max - SL_MIN(max, used));
}

// The group and all above it, up to the root. Inside a container the path may be one of the host
// and lead nowhere here; the root is then the container's own group.
static void apply_groups(const group_files *files, char *group, uint64_t *limit, uint64_t *room) {
    for (;;) {
        size_t n = strlen(group);
        if (n && group[n - 1] == '/') group[n - 1] = 0;
        apply_group(files, group, limit, room);
        char *slash = strrchr(group, '/');
        if (!slash) return;
        *slash = 0;
    }
}

static void group_limits(uint64_t *limit, uint64_t *room) {
    *limit = *room = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (!file) return;
    char line[PATH_BYTES];
    while (fgets(line, sizeof line, file)) { // "id:controllers:/path"
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        if (!controllers[1]) apply_groups(&version_2, path, limit, room);
        else if (strstr(controllers, "memory")) apply_groups(&version_1, path, limit, room);
    }
    fclose(file);
}

size_t sl_memory_total_bytes(void) {
    uint64_t limit, room;
    long n = sysconf(_SC_PHYS_PAGES);
    if (n <= 0) return 0;
    group_limits(&limit, &room);
    return (size_t)SL_MIN(limit, (uint64_t)n * sl_page_bytes());
}

size_t sl_memory_free_bytes(void) {
    uint64_t limit, room, kib;
    if (!read_number(&kib, "/proc/meminfo", "MemAvailable:")) return 0;
    group_limits(&limit, &room);
    return (size_t)SL_MIN(room, kib * 1024);
}

#endif
