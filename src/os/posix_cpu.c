// SPDX-License-Identifier: MIT
//
// The processor section of os.h: how many processors we may use, what they can do and what they are
// called. A feature counts only if the OS also saves its registers.
#define _GNU_SOURCE // sched_getaffinity, sched_getcpu
#define _DARWIN_C_SOURCE
#include "os/os.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

// ---- how many -----------------------------------------------------------------------------------

static int online_count(void) {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 4096 ? 4096 : (int)n;
}

#if defined(__linux__)

enum { PATH_BYTES = 1024 };

// Two numbers of a small file; "max" as the first reads as -1. false if there is no such file.
static bool read_quota(long long *quota, long long *period, const char *root, const char *group, const char *name) {
    char path[2 * PATH_BYTES], text[64] = "";
    snprintf(path, sizeof path, "%s%s/%s", root, group, name);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    if (!read) return false;
    if (strncmp(text, "max", 3) == 0) return *quota = -1, true;
    return sscanf(text, "%lld %lld", quota, period) >= 1;
}

// The processors that one control group allows, rounded up; `most` if it says nothing.
static int group_count(bool v2, const char *group, int most) {
    const char *root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    long long quota = -1, period = 100000, unused;
    if (!read_quota(&quota, &period, root, group, v2 ? "cpu.max" : "cpu.cfs_quota_us") || quota <= 0) return most;
    if (!v2) read_quota(&period, &unused, root, group, "cpu.cfs_period_us");
    if (period <= 0) return most;
    long long n = quota / period + (quota % period != 0);
    return n < 1 ? 1 : n < most ? (int)n : most;
}

// Our group and all above it. Inside a container the path may be the host's; then the root is our
// group.
static int quota_count(int most) {
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (!file) return most;
    char line[PATH_BYTES];
    while (fgets(line, sizeof line, file)) { // "id:controllers:/path"
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        bool v2 = controllers[1] == 0;
        if (!v2 && !strstr(controllers, "cpu")) continue;
        for (char *slash = path + strlen(path); slash; slash = strrchr(path, '/')) {
            *slash = 0;
            most = group_count(v2, path, most);
        }
    }
    fclose(file);
    return most;
}

#else

static int quota_count(int most) { return most; }

#endif

// ---- which --------------------------------------------------------------------------------------

#if defined(__linux__)

// How many processors of the same core have a lower number: 0 for a core's first.
static int rank_in_core(int cpu) {
    char path[96], list[256] = "";
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    bool read = fgets(list, sizeof list, file) != NULL;
    fclose(file);
    int rank = 0;
    for (const char *p = list; read && *p; p += strcspn(p, ","), p += *p == ',') { // "0,64" or "0-1"
        int first, last, n = sscanf(p, "%d-%d", &first, &last);
        if (n < 1) break;
        if (n == 1) last = first;
        rank += last < cpu ? last - first + 1 : first < cpu ? cpu - first : 0;
    }
    return rank;
}

int sl_cpu_list(int *cpu, int cap) {
    enum { MAX_RANK = 16 };
    uint8_t rank[SL_CPU_MAX];
    cpu_set_t set;
    int n = 0;
    _Static_assert((int)SL_CPU_MAX <= CPU_SETSIZE, "a set has a bit for each");
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    for (int i = 0; i < SL_CPU_MAX; i++)
        if (CPU_ISSET((size_t)i, &set)) rank[i] = (uint8_t)SL_MIN(rank_in_core(i), (int)MAX_RANK);
    for (int r = 0; r <= MAX_RANK; r++)
        for (int i = 0; i < SL_CPU_MAX && n < cap; i++)
            if (CPU_ISSET((size_t)i, &set) && rank[i] == r) cpu[n++] = i;
    return n;
}

int sl_cpu_now(void) { return sched_getcpu(); }

#else

int sl_cpu_list(int *cpu, int cap) { return (void)cpu, (void)cap, 0; }

int sl_cpu_now(void) { return -1; }

#endif

int sl_cpu_count(void) { return quota_count(online_count()); }

// ---- what they can do ---------------------------------------------------------------------------

#if defined(__x86_64__)

static uint64_t saved_registers(void) { // XCR0
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

// Linux saves the 8 KiB of tile registers only for a process that has asked (Documentation/arch/x86/xstate.rst).
static bool ask_for_tiles(void) {
#if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

uint32_t sl_cpu_features(void) {
    enum { YMM = 0x6, ZMM = 0xe6, TILES = 0x60000 };
    uint32_t a, b, c, d, c1, features = 0;
    if (!__get_cpuid(1, &a, &b, &c1, &d) || !has(c1, bit_OSXSAVE)) return 0;
    uint64_t saved = saved_registers();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (saved & YMM) != YMM) return 0;
    uint32_t b7 = b, c7 = c, d7 = d;
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) a = 0;
    if (!has(c1, bit_AVX | bit_FMA | bit_F16C) || !has(b7, bit_AVX2 | bit_BMI2)) return 0;
    features |= SL_CPU_AVX2;
    if (has(a, 1u << 4)) features |= SL_CPU_AVX_VNNI;
    if ((saved & ZMM) == ZMM && has(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL)) {
        features |= SL_CPU_AVX512;
        if (has(c7, 1u << 11)) features |= SL_CPU_AVX512_VNNI;
        if (has(a, 1u << 5)) features |= SL_CPU_AVX512_BF16;
        if ((saved & TILES) == TILES && has(d7, 1u << 24 | 1u << 25) && ask_for_tiles()) features |= SL_CPU_AMX_INT8;
    }
    return features;
}

static bool processor_name(char name[96]) {
    uint32_t words[12] = {0};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *w = words + 4 * i;
        if (!__get_cpuid(0x80000002 + i, &w[0], &w[1], &w[2], &w[3])) return false;
    }
    memcpy(name, words, sizeof words);
    name[sizeof words] = 0;
    return true;
}

#elif defined(__aarch64__)

#if defined(__APPLE__)

static bool has(const char *name) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value;
}

uint32_t sl_cpu_features(void) {
    uint32_t features = SL_CPU_NEON;
    if (has("hw.optional.arm.FEAT_DotProd")) features |= SL_CPU_DOTPROD;
    if (has("hw.optional.arm.FEAT_I8MM")) features |= SL_CPU_I8MM;
    return features;
}

static bool processor_name(char name[96]) {
    size_t size = 96;
    return sysctlbyname("machdep.cpu.brand_string", name, &size, NULL, 0) == 0;
}

#else

uint32_t sl_cpu_features(void) {
    uint32_t features = SL_CPU_NEON;
    if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) features |= SL_CPU_DOTPROD;
    if (getauxval(AT_HWCAP2) & HWCAP2_I8MM) features |= SL_CPU_I8MM;
    return features;
}

static bool processor_name(char name[96]) { return (void)name, false; }

#endif

#else

uint32_t sl_cpu_features(void) { return 0; }

static bool processor_name(char name[96]) { return (void)name, false; }

#endif

// ---- their name ---------------------------------------------------------------------------------

const char *sl_cpu_name(void) {
    static SL_THREAD_LOCAL char name[96];
    if (!processor_name(name)) return "unknown";
    char *from = name, *to = name;
    while (*from == ' ') from++;
    for (; *from; from++) // Intel pads with runs of spaces
        if (*from != ' ' || (from[1] && from[1] != ' ')) *to++ = *from;
    *to = 0;
    return *name ? name : "unknown";
}
