// SPDX-License-Identifier: MIT
// sl_test: MODULES os base
//
// Mappings, atomic files and pages of os.h.
#include "harness.h"

#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"

static const char *scratch_file(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", test_scratch_dir(), name);
    return path;
}

static void write_text(const char *path, const char *text) {
    sl_atomic_file file;
    REQUIRE_OK(sl_atomic_file_open(&file, path, false), sl_error_text());
    fputs(text, file.file);
    REQUIRE_OK(sl_atomic_file_commit(&file), sl_error_text());
    sl_atomic_file_cancel(&file); // nothing happens
}

static void check_text(const char *path, const char *text) {
    sl_map map;
    REQUIRE_OK(sl_map_open(&map, path), sl_error_text());
    CHECK(map.n_bytes == strlen(text) && (!map.n_bytes || memcmp(map.data, text, map.n_bytes) == 0));
    sl_map_advise(&map, 0, SIZE_MAX), sl_map_prefault(&map, 1, SIZE_MAX); // ranges are cut to the file
    sl_map_advise(&map, 100, 1), sl_map_prefault(&map, SIZE_MAX, 1);
    sl_map_close(&map);
    CHECK(map.data == NULL && map.n_bytes == 0);
}

TEST(an_atomic_file_appears_whole_or_not_at_all) {
    const char *path = scratch_file("a");
    write_text(path, "one"), check_text(path, "one");
    write_text(path, "two"), check_text(path, "two");
    sl_atomic_file file;
    REQUIRE_OK(sl_atomic_file_open(&file, path, false), sl_error_text());
    fputs("three", file.file);
    check_text(path, "two");
    sl_atomic_file_cancel(&file);
    check_text(path, "two");
    CHECK(access(file.temp_path, F_OK) != 0);
    write_text(path, ""), check_text(path, "");
}

TEST(a_private_file_is_its_users_alone) {
    const char *path = scratch_file("private");
    sl_atomic_file file;
    REQUIRE_OK(sl_atomic_file_open(&file, path, true), sl_error_text());
    REQUIRE_OK(sl_atomic_file_commit(&file), sl_error_text());
    struct stat st;
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
}

TEST(an_atomic_file_keeps_mode_and_link_and_spares_devices) {
    char path[4096];
    snprintf(path, sizeof path, "%s", scratch_file("target"));
    write_text(path, "one");
    REQUIRE(chmod(path, 0640) == 0 && symlink("target", scratch_file("link")) == 0);
    write_text(scratch_file("link"), "two");
    struct stat st;
    CHECK(lstat(scratch_file("link"), &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    check_text(path, "two");
    sl_atomic_file file;
    CHECK_INT(sl_atomic_file_open(&file, "/dev/null", false), SL_IO); // rename() would replace the device
    CHECK_INT(sl_atomic_file_open(&file, test_scratch_dir(), false), SL_IO);
}

TEST(a_full_disk_is_reported) {
    if (access("/dev/full", W_OK) != 0) test_skip("no /dev/full");
    sl_atomic_file file;
    REQUIRE_OK(sl_atomic_file_open(&file, scratch_file("full"), false), sl_error_text());
    REQUIRE(freopen("/dev/full", "wb", file.file));
    fputs("text", file.file);
    CHECK_INT(sl_atomic_file_commit(&file), SL_IO);
    CHECK(strstr(sl_error_text(), "No space left") != NULL);
    CHECK(access(scratch_file("full"), F_OK) != 0 && access(file.temp_path, F_OK) != 0);
}

TEST(pages_are_zeroed_aligned_and_touched) {
    const size_t sizes[] = {1, 4096, 100000, 5 << 20};
    for (size_t i = 0; i < 4; i++)
        for (int huge = 0; huge < 2; huge++) {
            uint8_t *p;
            REQUIRE_OK(sl_pages_alloc(&p, sizes[i], huge, "test"), sl_error_text());
            CHECK((uintptr_t)p % sl_page_bytes() == 0);
            sl_faults before = sl_faults_now();
            uint8_t sum = 0;
            for (size_t k = 0; k < sizes[i]; k++) sum |= p[k], p[k] = 1;
            sl_faults after = sl_faults_now();
            CHECK_INT(sum, 0);
            CHECK_INT(after.n_minor - before.n_minor, 0);
            CHECK(sl_pages_lock(p, sizes[i]) <= sizes[i]);
            sl_pages_free(p, sizes[i]);
        }
    sl_pages_free(NULL, 1);
}

TEST(too_many_pages_are_refused_before_any_is_touched) {
    void *p;
    CHECK_INT(sl_pages_alloc(&p, SIZE_MAX, false, "test"), SL_NO_MEMORY);
    CHECK_INT(sl_pages_alloc(&p, (size_t)1 << 46, true, "the pool"), SL_NO_MEMORY);
    CHECK(p == NULL && strstr(sl_error_text(), "the pool needs 70368744177664 bytes, but only") != NULL);
}

TEST(memory_figures_are_plausible) {
    size_t total = sl_memory_total_bytes(), free_bytes = sl_memory_free_bytes();
    CHECK(total > 64 << 20);
    CHECK(free_bytes > 0 && free_bytes <= total);
}
