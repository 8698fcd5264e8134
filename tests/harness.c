// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TESTS = 1024, STATUS_FAILED = 1, STATUS_SKIPPED = 77 };

static struct {
    const char *name;
    test_function *run;
} tests[MAX_TESTS];
static int n_tests, n_failures, timeout_s = 60;
static bool bench;
static uint64_t seed = 20261130, state;

void test_register(const char *name, test_function *run) {
    if (n_tests == MAX_TESTS) abort();
    tests[n_tests].name = name;
    tests[n_tests++].run = run;
}

void test_set_timeout(int seconds) { timeout_s = seconds; }

bool test_bench(void) { return bench; }
bool test_quick(void) { return getenv("SLUICE_TEST_QUICK") != NULL; }

void test_failed(const char *file, int line, const char *fmt, ...) {
    if (++n_failures > 20) {
        if (n_failures == 21) printf("    (further failures of this test are not shown)\n");
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    printf("    %s:%d: ", file, line);
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

void test_end(void) {
    fflush(NULL);
    exit(n_failures ? STATUS_FAILED : 0);
}

void test_skip(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    printf("    skipped: ");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
    fflush(NULL);
    exit(getenv("SLUICE_TEST_NO_SKIP") ? STATUS_FAILED : n_failures ? STATUS_FAILED : STATUS_SKIPPED);
}

uint64_t test_random(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void test_skip_device(const char *reason) {
    printf("    skipped: %s\n", reason);
    fflush(NULL);
    exit(n_failures ? STATUS_FAILED : STATUS_SKIPPED);
}

const char *test_backend(void) {
    const char *name = getenv("SLUICE_TEST_BACKEND");
    return name ? name : "cpu";
}

double test_uniform(void) { return (double)(test_random() >> 11) * 0x1p-53; }

double test_normal(void) { // Box and Muller 1958
    double u = 1 - test_uniform(), v = test_uniform();
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

uint32_t test_below(uint32_t bound) { return (uint32_t)(test_random() % bound); }

void test_random_bytes(void *out, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) ((uint8_t *)out)[i] = (uint8_t)(test_random() >> 24);
}

void *test_guarded(size_t n_bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (n_bytes + page - 1) / page * page;
    char *p = mmap(NULL, room + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) abort();
    mprotect(p, page, PROT_NONE);
    mprotect(p + page + room, page, PROT_NONE);
    memset(p + page, 0xa5, room);
    return p + page + room - n_bytes;
}

const char *test_source_path(const char *relative) {
    static char path[4096];
    const char *dir = getenv("SLUICE_SOURCE_DIR"); // of a test that was built on another machine
    snprintf(path, sizeof path, "%s/%s", dir ? dir : SL_SOURCE_DIR, relative);
    return path;
}

const char *test_model_path(const char *file) {
    static char path[4096];
    const char *dir = getenv("SLUICE_MODEL_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (dir) snprintf(path, sizeof path, "%s/%s", dir, file);
    else if (cache) snprintf(path, sizeof path, "%s/sluice/models/%s", cache, file);
    else snprintf(path, sizeof path, "%s/.cache/sluice/models/%s", home ? home : "", file);
    if (access(path, R_OK) != 0) test_skip("%s is not there; tools/fetch_models.py fetches it", path);
    return path;
}

static char scratch[] = "/tmp/sluice-test-XXXXXX";
static bool have_scratch;

static void remove_scratch(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    if (system(command) != 0) fprintf(stderr, "could not remove %s\n", scratch);
}

const char *test_scratch_dir(void) {
    if (!have_scratch) {
        if (!mkdtemp(scratch)) abort();
        have_scratch = true;
        atexit(remove_scratch);
    }
    return scratch;
}

static void run_here(int i) {
    n_failures = 0;
    state = seed;
    tests[i].run();
}

// Returns the child's exit status, or 128 + signal.
static int run_forked(int i) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) abort();
    if (pid == 0) {
        setpgid(0, 0);
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGKILL); // no orphan goes on when the program is killed
#endif
        run_here(i);
        test_end();
    }
    // Sanitizers and emulated processors are slow, and the machine may be busy besides.
    int limit = SL_SANITIZED || test_quick() ? 3 * timeout_s : timeout_s;
    time_t end = time(NULL) + limit;
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (time(NULL) > end) {
            kill(-pid, SIGKILL), kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            printf("    timed out after %d s\n", limit);
            return STATUS_FAILED;
        }
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    printf("    killed by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
    const char *filter = NULL;
    bool list = false, forked = true;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--filter") && i + 1 < argc) filter = argv[++i];
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc) seed = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--list")) list = true;
        else if (!strcmp(argv[i], "--no-fork")) forked = false;
        else if (!strcmp(argv[i], "--bench")) bench = true, timeout_s = 3600;
        else return fprintf(stderr, "unknown argument %s\n", argv[i]), 2;
    }
    int n_passed = 0, n_failed = 0, n_skipped = 0;
    for (int i = 0; i < n_tests; i++) {
        if (filter && !strstr(tests[i].name, filter)) continue;
        if (list) {
            puts(tests[i].name);
            continue;
        }
        int status = 0;
        if (forked) status = run_forked(i);
        else run_here(i), status = n_failures ? STATUS_FAILED : 0;
        n_passed += status == 0, n_skipped += status == STATUS_SKIPPED;
        n_failed += status != 0 && status != STATUS_SKIPPED;
        printf("%s %s\n", status == 0 ? "ok  " : status == STATUS_SKIPPED ? "skip" : "FAIL", tests[i].name);
    }
    if (list) return 0;
    if (n_failed) printf("seed %llu\n", (unsigned long long)seed);
    printf("%d passed, %d failed, %d skipped\n", n_passed, n_failed, n_skipped);
    return n_failed ? 1 : n_passed == 0 && n_skipped ? STATUS_SKIPPED : 0;
}
