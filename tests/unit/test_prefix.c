// SPDX-License-Identifier: MIT
// sl_test: MODULES engine
//
// Prefixes in a folder: what comes back from there gives the bits of a fresh start, after it was given up for its
// memory and in another process; whatever is in the folder, and whoever else writes there or is killed meanwhile, costs
// the prefix at most; the budget is kept, the files that were used longest ago go, and other people's files stay.
#define _GNU_SOURCE // unshare
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mount.h>
#endif

#include "engine/prefix_folder.h"
#include "engine_case.h"
#include "os/os.h"

static sl_engine_options options_with(const sl_backend *backend, sl_type type, const char *folder) {
    sl_engine_options o = options_of(backend, type);
    o.prefix_path = folder, o.prefix_bytes = 1 << 30;
    return o;
}

static void save(sl_engine *e) { REQUIRE_OK(sl_engine_prefix_save(e), sl_error_text()); }

static sl_engine_stats stats_of(const sl_engine *e) {
    sl_engine_stats s;
    sl_engine_get_stats(e, &s);
    CHECK_INT(s.n_alloc, 0);
    return s;
}

// Prefills an empty sequence 0, and the same into `fresh`, which must have the same logits; how many positions came
// from the folder.
static uint64_t prefill_both(sl_engine *e, sl_engine *fresh, const int32_t *ids, size_t n) {
    uint64_t before = stats_of(e).n_disk;
    REQUIRE_OK(sl_engine_seq_truncate(e, 0, 0), sl_error_text());
    REQUIRE_OK(sl_engine_seq_truncate(fresh, 0, 0), sl_error_text());
    prefill(e, 0, ids, n);
    prefill(fresh, 0, ids, n);
    CHECK(memcmp(sl_engine_seq_ids(e, 0), ids, n * sizeof *ids) == 0);
    same_logits(e, fresh);
    return stats_of(e).n_disk - before;
}

typedef struct files { // of the folder
    char name[400][256];
    size_t n;
    uint64_t n_bytes;
} files;

static sl_status note_file(void *user, const char *name, uint64_t n_bytes, int64_t time_ns) {
    files *f = user;
    (void)time_ns;
    REQUIRE(f->n < 400);
    snprintf(f->name[f->n++], sizeof f->name[0], "%.255s", name);
    f->n_bytes += n_bytes;
    return SL_OK;
}

static files files_of(const char *folder) {
    files f = {.n = 0};
    REQUIRE_OK(sl_folder_walk(folder, note_file, &f), sl_error_text());
    return f;
}

static char *path_in(const char *folder, const char *name) {
    static char path[4600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

// ---- there and back -------------------------------------------------------------------------------------------------

static void there_and_back(const char *name, const sl_backend *backend, sl_type type, int32_t n_ctx) {
    sl_model *m = open_model(name);
    char folder[4300];
    snprintf(folder, sizeof folder, "%s-%s-%d", file_path(name), backend->name, (int)type);
    sl_engine_options o = options_with(backend, type, folder);
    o.n_ctx = (uint32_t)n_ctx;
    sl_engine *a = open_engine(m, &o), *b = open_engine(m, &o);
    sl_engine_memory memory;
    sl_engine_estimate estimate;
    sl_engine_get_memory(a, &memory);
    REQUIRE_OK(sl_engine_estimate_make(&estimate, m, &o), sl_error_text());
    CHECK_INT(estimate.memory.other_bytes, memory.other_bytes);
    o.prefix_path = NULL, o.prefix_cache = false;
    sl_engine *fresh = open_engine(m, &o);
    int32_t ids[512], n = n_ctx - 40;
    random_ids(ids, 512);
    CHECK_INT(prefill_both(a, fresh, ids, (size_t)n), 0);
    CHECK_INT(files_of(folder).n, 0); // a prefill writes nothing
    save(a);
    CHECK_INT(files_of(folder).n, n / 32);
    CHECK_INT(prefill_both(b, fresh, ids, (size_t)n), n / 32 * 32);
    CHECK_INT(prefill_both(b, fresh, ids, (size_t)n), 0); // from the tree now
    ids[n - 70]++;
    save(b);
    CHECK_INT(files_of(folder).n, n / 32);
    CHECK_INT(prefill_both(a, fresh, ids, (size_t)n), 0);
    for (int i = 0; i < 5; i++) { // and on, beside the other sequences
        REQUIRE_OK(sl_engine_step(a, &(sl_row){ids[i], 0, n + i, true}, 1), sl_error_text());
        REQUIRE_OK(sl_engine_step(fresh, &(sl_row){ids[i], 0, n + i, true}, 1), sl_error_text());
        same_logits(a, fresh);
    }
    sl_engine_destroy(a);
    sl_engine_destroy(b);
    sl_engine_destroy(fresh);
    sl_model_close(m);
}

TEST(what_is_in_the_folder_gives_the_bits_of_a_fresh_start) {
    there_and_back("llama-linear-spm", &sl_backend_cpu, SL_TYPE_F16, 256);
    there_and_back("qwen3", &sl_backend_ref, SL_TYPE_F32, 256);
    there_and_back("qwen3", &sl_backend_cpu, SL_TYPE_Q4_0, 256);
    there_and_back("qwen3", &sl_backend_ref, SL_TYPE_Q8_0, 256);
    there_and_back("gemma3", &sl_backend_cpu, SL_TYPE_F16, 256);
}

TEST(what_was_given_up_comes_back) {
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_with(&sl_backend_cpu, SL_TYPE_F16, file_path("small"));
    char folder[4200];
    snprintf(folder, sizeof folder, "%s", o.prefix_path);
    o.n_seq = 1, o.n_ctx = N + 28; // four blocks: one prompt
    sl_engine *e = open_engine(m, &o);
    o.prefix_path = NULL, o.prefix_cache = false;
    sl_engine *fresh = open_engine(m, &o);
    int32_t ids[3][N];
    for (int i = 0; i < 3; i++) random_ids(ids[i], N);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 3; i++) {
            CHECK_INT(prefill_both(e, fresh, ids[i], N), round ? 96 : 0);
            save(e);
        }
    sl_engine_stats s = stats_of(e);
    CHECK(s.n_evicted > 12);
    CHECK_INT(s.n_disk, 6 * 96);
    CHECK_INT(s.n_prompt, 9 * N);
    CHECK_INT(s.n_reused, 0);
    CHECK_INT(s.n_row, 3 * N + 6 * 4);
    CHECK_INT(s.n_blk, 4);
    CHECK_INT(s.n_blk_held, 4);
    CHECK_INT(s.n_pos_held, N);
    CHECK_INT(s.disk_bytes, files_of(folder).n_bytes);
    CHECK_INT(files_of(folder).n, 9);
    sl_engine_destroy(e);
    sl_engine_destroy(fresh);
    sl_model_close(m);
}

// ---- whatever is there ----------------------------------------------------------------------------------------------

static uint8_t bytes[1 << 20], other[1 << 20];

static void damage(const char *folder) {
    files f = files_of(folder);
    if (f.n == 0) return;
    char path[4600];
    snprintf(path, sizeof path, "%s", path_in(folder, f.name[test_below((uint32_t)f.n)]));
    size_t n = read_file(path, bytes, sizeof bytes), n_other;
    switch (test_below(6)) {
    case 0: unlink(path); break;
    case 1: // a bit
        bytes[test_below((uint32_t)n)] ^= (uint8_t)(1 << test_below(8));
        write_file(path, bytes, n);
        break;
    case 2: write_file(path, bytes, 1 + test_below((uint32_t)n - 1)); break;
    case 3: // another block under this name
        n_other = read_file(path_in(folder, f.name[test_below((uint32_t)f.n)]), other, sizeof other);
        write_file(path, other, n_other);
        break;
    case 4:
        test_random_bytes(bytes, n);
        write_file(path, bytes, n);
        break;
    default: // what is no file is no prefix either
        unlink(path);
        if (test_below(2)) REQUIRE(mkfifo(path, 0600) == 0);
        else if (symlink("/dev/zero", path) != 0) test_failed(__FILE__, __LINE__, "no links here");
    }
}

// Prompts that share beginnings, engines that come and go, and a folder that is damaged all of the time.
static void hostile_life(const char *name, const sl_backend *backend, sl_type type, int32_t n_ctx) {
    sl_model *m = open_model(name);
    char folder[4300];
    snprintf(folder, sizeof folder, "%s-hostile", file_path(name));
    sl_engine_options o = options_with(backend, type, folder), plain = o;
    o.n_ctx = plain.n_ctx = (uint32_t)n_ctx, o.n_seq = 1, plain.prefix_path = NULL, plain.prefix_cache = false;
    sl_engine *e = open_engine(m, &o), *fresh = open_engine(m, &plain);
    int32_t ids[512];
    uint64_t n_disk = 0;
    random_ids(ids, 512);
    for (int i = 0; i < 60; i++) {
        size_t n = 1 + test_below((uint32_t)n_ctx);
        if (test_below(2)) ids[test_below((uint32_t)n_ctx)] = (int32_t)test_below(2);
        n_disk += prefill_both(e, fresh, ids, n);
        if (test_below(3)) save(e);
        if (test_below(2)) damage(folder);
        if (test_below(4) > 0) continue;
        sl_engine_destroy(e);
        e = open_engine(m, &o);
    }
    CHECK(n_disk >= 96);
    sl_engine_destroy(e);
    sl_engine_destroy(fresh);
    sl_model_close(m);
}

TEST(a_damaged_folder_costs_only_prefixes) { hostile_life("llama-linear-spm", &sl_backend_cpu, SL_TYPE_F16, 256); }
TEST(a_damaged_folder_costs_only_prefixes_of_codes) { hostile_life("qwen3", &sl_backend_cpu, SL_TYPE_Q8_0, 256); }
TEST(a_damaged_folder_costs_only_prefixes_with_windows) { hostile_life("gemma3", &sl_backend_cpu, SL_TYPE_F16, 512); }

TEST(other_models_and_types_have_other_files) {
    const char *const names[2] = {"llama-linear-spm", "qwen3"};
    const char *folder = file_path("shared");
    int32_t ids[N];
    random_ids(ids, N);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 4; i++) {
            sl_model *m = open_model(names[i / 2]);
            sl_engine_options o = options_with(&sl_backend_cpu, i % 2 ? SL_TYPE_F32 : SL_TYPE_F16, folder);
            sl_engine *e = open_engine(m, &o);
            prefill(e, 0, ids, N);
            CHECK_INT(stats_of(e).n_disk, round ? 96 : 0);
            save(e);
            sl_engine_destroy(e);
            sl_model_close(m);
        }
    CHECK_INT(files_of(folder).n, 4 * 3);
}

TEST(a_folder_that_cannot_be_is_refused) {
    sl_model *m = open_model("llama-linear-spm");
    write_file(file_path("file"), (const uint8_t *)"x", 1);
    char below[4300], too_long[4000];
    snprintf(below, sizeof below, "%s/x", file_path("file"));
    memset(too_long, 'x', sizeof too_long);
    too_long[sizeof too_long - 1] = 0;
    const char *const bad[] = {file_path("file"), below, too_long};
    for (int i = 0; i < 3; i++) {
        sl_engine *e = (sl_engine *)&e;
        sl_engine_options o = options_with(&sl_backend_cpu, SL_TYPE_F16, bad[i]);
        CHECK_INT(sl_engine_create(&e, m, &o), SL_IO);
        CHECK(!e && strstr(sl_error_text(), i == 0 ? "is no folder" : i == 1 ? "cannot make" : "too long"));
    }
    sl_model_close(m);
}

// ---- the budget -----------------------------------------------------------------------------------------------------

static void old_file(const char *folder, const char *name, int64_t age_s) {
    write_file(path_in(folder, name), bytes, 1000);
    REQUIRE(sl_file_touch(path_in(folder, name), sl_clock_date_ns() - age_s * 1000000000));
}

static bool is_there(const char *folder, const char *name) { return access(path_in(folder, name), F_OK) == 0; }

TEST(the_budget_is_kept_and_the_oldest_go) {
    enum { N_PROMPT = 12 };
    sl_model *m = open_model("llama-linear-spm");
    const char *folder = file_path("budget");
    sl_engine_options o = options_with(&sl_backend_cpu, SL_TYPE_F16, folder);
    o.n_seq = 1, o.n_ctx = N + 28;
    sl_engine *e = open_engine(m, &o);
    int32_t ids[N_PROMPT][N];
    random_ids(ids[0], N_PROMPT * N);
    prefill(e, 0, ids[0], N);
    save(e);
    o.prefix_bytes = files_of(folder).n_bytes * 5 + 10; // five prompts
    sl_engine_destroy(e);
    e = open_engine(m, &o);
    old_file(folder, "somebody.else", 1 << 20);
    old_file(folder, "0123456789abcdef-0123456789abcdef.kv.txt", 1 << 20);
    old_file(folder, "0123456789abcdef-0123456789abcdef.kv.tmp-1-0", 3000); // being written
    old_file(folder, "0123456789abcdef-0123456789abcdef.kv.tmp-2-0", 4000); // given up
    old_file(folder, "0123456789abcdef-fedcba9876543210.kv", 50);           // of another model, not used lately
    for (int i = 0; i < 40; i++) {
        int p = test_below(2) ? 0 : (int)test_below(N_PROMPT); // the first is used all of the time
        sl_engine_stats before = stats_of(e);
        REQUIRE_OK(sl_engine_seq_truncate(e, 0, 0), sl_error_text());
        prefill(e, 0, ids[p], N);
        sl_engine_stats after = stats_of(e);
        if (p == 0) CHECK(after.n_disk + after.n_reused >= before.n_disk + before.n_reused + 96); // never gone
        save(e);
        uint64_t n_strange = 2000 + 1000 * (uint64_t)is_there(folder, "0123456789abcdef-0123456789abcdef.kv.tmp-1-0");
        CHECK(stats_of(e).disk_bytes <= o.prefix_bytes);
        CHECK(files_of(folder).n_bytes <= o.prefix_bytes + n_strange); // which are not counted
    }
    CHECK(is_there(folder, "somebody.else") && is_there(folder, "0123456789abcdef-0123456789abcdef.kv.txt"));
    CHECK(is_there(folder, "0123456789abcdef-0123456789abcdef.kv.tmp-1-0"));
    CHECK(!is_there(folder, "0123456789abcdef-0123456789abcdef.kv.tmp-2-0"));
    CHECK(!is_there(folder, "0123456789abcdef-fedcba9876543210.kv"));
    sl_engine_destroy(e);
    e = open_engine(m, &o);
    for (int p = 0; p < N_PROMPT; p++) {
        REQUIRE_OK(sl_engine_seq_truncate(e, 0, 0), sl_error_text());
        prefill(e, 0, ids[p], N);
    }
    enum { STRANGE = 3 };
    CHECK_INT(stats_of(e).n_disk / 32, files_of(folder).n - STRANGE); // no end is there without its beginning
    sl_engine_destroy(e);
    sl_model_close(m);
}

TEST(a_chain_longer_than_the_budget_keeps_its_beginning) {
    sl_model *m = open_model("llama-linear-spm");
    const char *folder = file_path("tight");
    sl_engine_options o = options_with(&sl_backend_cpu, SL_TYPE_F16, folder);
    sl_engine *e = open_engine(m, &o);
    int32_t ids[250];
    random_ids(ids, 250);
    prefill(e, 0, ids, 40);
    save(e);
    uint64_t blk_bytes = files_of(folder).n_bytes;
    sl_engine_destroy(e);
    for (uint64_t n_blk = 0; n_blk < 4; n_blk++) {
        o.prefix_bytes = n_blk * blk_bytes + 600; // the ids of more blocks are longer
        e = open_engine(m, &o);
        prefill(e, 0, ids, 250);
        save(e);
        save(e); // and is not tried again and again
        CHECK_INT(files_of(folder).n, n_blk);
        sl_engine_destroy(e);
        e = open_engine(m, &o);
        prefill(e, 0, ids, 250);
        CHECK_INT(stats_of(e).n_disk, n_blk * 32);
        sl_engine_destroy(e);
    }
    sl_model_close(m);
}

// ---- trouble --------------------------------------------------------------------------------------------------------

TEST(a_full_disk_is_said_and_leaves_nothing_half) {
    sl_model *m = open_model("llama-linear-spm");
    const char *folder = file_path("full");
    sl_engine_options o = options_with(&sl_backend_ref, SL_TYPE_F32, folder);
    sl_engine *e = open_engine(m, &o);
    int32_t ids[N];
    random_ids(ids, N);
    prefill(e, 0, ids, N);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < 4000; limit += 1000) {
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, RLIM_INFINITY});
        CHECK_INT(sl_engine_prefix_save(e), SL_IO);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
        CHECK_INT(files_of(folder).n, 0);
    }
    save(e);
    CHECK_INT(files_of(folder).n, 3);
    sl_engine_destroy(e);
    sl_model_close(m);
}

// A disk of 300 kB that this process alone sees; where that cannot be had (it takes root), false.
static bool open_small_disk(const char *folder) {
#ifdef __linux__
    if (mkdir(folder, 0700) == 0 && unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
        return mount("none", folder, "tmpfs", 0, "size=300k") == 0;
#endif
    return false;
}

static void close_small_disk(const char *folder) {
#ifdef __linux__
    umount(folder);
#endif
}

// The disk is the budget then.
TEST(on_a_small_disk_the_oldest_go_too) {
    const char *folder = file_path("small-disk");
    if (!open_small_disk(folder)) {
        printf("    no disk of its own for this test\n");
        return;
    }
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_with(&sl_backend_ref, SL_TYPE_F32, folder);
    o.n_seq = 1, o.n_ctx = N + 28;
    sl_engine *e = open_engine(m, &o);
    int32_t ids[30][N];
    random_ids(ids[0], 30 * N);
    for (int i = 0; i < 30; i++) {
        REQUIRE_OK(sl_engine_seq_truncate(e, 0, 0), sl_error_text());
        prefill(e, 0, ids[i], N);
        save(e); // never fails
        files f = files_of(folder);
        for (size_t k = 0; k < f.n; k++) CHECK(strlen(f.name[k]) == 36); // nothing half
    }
    for (int i = 0; i < 30; i += 29) { // the first prompt is gone, the last is there
        sl_engine_destroy(e);
        e = open_engine(m, &o);
        prefill(e, 0, ids[i], N);
        CHECK_INT(stats_of(e).n_disk, i ? 96 : 0);
    }
    sl_engine_destroy(e);
    sl_model_close(m);
    close_small_disk(folder);
}

TEST(without_memory_only_the_prefix_is_lost) {
    sl_model *m = open_model("llama-linear-spm");
    sl_engine_options o = options_with(&sl_backend_ref, SL_TYPE_F32, file_path("poor"));
    int32_t ids[N];
    random_ids(ids, N);
    for (uint64_t k = 1;; k++) {
        sl_engine *e = open_engine(m, &o);
        sl_alloc_fail_at(k);
        sl_status status = sl_engine_prefill(e, 0, ids, N, NULL, NULL); // its steps need none
        CHECK_INT(status, SL_OK);
        status = sl_engine_prefix_save(e);
        sl_alloc_fail_at(0);
        if (status != SL_OK) CHECK_INT(status, SL_NO_MEMORY);
        uint64_t n_disk = stats_of(e).n_disk;
        sl_engine_destroy(e);
        if (status == SL_OK && n_disk == 96) break;
        REQUIRE(k < 200);
    }
    sl_model_close(m);
}

static _Noreturn void use_for_ever(sl_engine *e, const int32_t *ids) {
    for (uint32_t i = 0;; i++) {
        if (sl_engine_seq_truncate(e, 0, 0) != SL_OK) _exit(1);
        if (sl_engine_prefill(e, 0, ids + i % 7 * N, N, NULL, NULL) != SL_OK) _exit(1);
        if (sl_engine_prefix_save(e) != SL_OK) _exit(1);
    }
}

// Several at once, with a budget that makes them remove each other's files, all of them killed.
TEST(processes_share_a_folder_and_may_be_killed) {
    enum { N_CHILD = 3 };
    sl_model *m = open_model("llama-linear-spm");
    const char *folder = file_path("crowd");
    sl_engine_options o = options_with(&sl_backend_ref, SL_TYPE_F32, folder); // has no threads, which a fork would lose
    o.n_seq = 1, o.n_ctx = N + 28;
    o.prefix_bytes = 100000;
    sl_engine *e = open_engine(m, &o);
    o.prefix_path = NULL, o.prefix_cache = false;
    sl_engine *fresh = open_engine(m, &o);
    int32_t ids[7 * N];
    random_ids(ids, 7 * N);
    uint64_t n_disk = 0;
    for (int round = 0; round < 4; round++) {
        pid_t child[N_CHILD];
        for (int i = 0; i < N_CHILD; i++)
            if ((child[i] = fork()) == 0) use_for_ever(e, ids);
        for (int i = 0; i < 10; i++) {
            n_disk += prefill_both(e, fresh, ids + test_below(7) * N, N);
            save(e);
        }
        for (int i = 0; i < N_CHILD; i++) {
            int status;
            kill(child[i], SIGKILL);
            REQUIRE(waitpid(child[i], &status, 0) == child[i]);
            CHECK(WIFSIGNALED(status)); // and had not failed
        }
    }
    CHECK(n_disk > 0);
    sl_engine_destroy(e);
    sl_engine_destroy(fresh);
    sl_model_close(m);
}
