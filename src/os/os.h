// SPDX-License-Identifier: MIT
//
// All that differs between operating systems, as primitives with pre- and post-conditions. posix.c
// serves Linux and macOS; the only `#if` of an OS or a processor outside backend/cpu/kernels are in
// this folder.
#ifndef SL_OS_OS_H
#define SL_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// ---- files
// -------------------------------------------------------------------------------------------------

// A read-only mapping of a whole regular file. Nothing is read yet.
typedef struct sl_map {
    const uint8_t *data; // owned mapping, page-aligned; NULL for an empty file
    size_t n_bytes;
    uint64_t device, inode; // which file it is
} sl_map;

// SL_IO with a plain sentence if the path is no readable regular file (a folder, a pipe, a missing
// file).
sl_status sl_map_open(sl_map *out, const char *path);
void sl_map_close(sl_map *map);                      // and zeroes it
bool sl_map_is(const sl_map *map, const char *path); // is the mapped file the one at `path`?

// Asks the OS to read [off, off + n_bytes) ahead; a hint, never fails.
void sl_map_advise(const sl_map *map, size_t off, size_t n_bytes);
// Touches each page of [off, off + n_bytes), so that later reads do not fault.
void sl_map_prefault(const sl_map *map, size_t off, size_t n_bytes);
// Gives back the whole pages of [off, off + n_bytes): they are read from the file again when touched.
void sl_map_release(const sl_map *map, size_t off, size_t n_bytes);

// Writes a file so that `path` holds either its old content or all of the new: a temporary file
// beside it, fsync, rename. `cancel` removes the temporary file.
typedef struct sl_atomic_file {
    FILE *file; // owned; write to it
    char path[4096], temp_path[4096];
} sl_atomic_file;
// is_private: nobody but the user may read it, as it holds what was said.
sl_status sl_atomic_file_open(sl_atomic_file *out, const char *path, bool is_private);
sl_status sl_atomic_file_commit(sl_atomic_file *file);
// The same, not waiting for the disk: for files that carry checksums and can be lost. After a power cut the new file
// may be damaged.
sl_status sl_atomic_file_publish(sl_atomic_file *file);
void sl_atomic_file_cancel(sl_atomic_file *file); // fine after commit

// ---- folders
// ----------------------------------------------------------------------------------------------

sl_status sl_folder_make(const char *path);      // for this user alone; fine if it is there
uint64_t sl_folder_free_bytes(const char *path); // that this user may fill on its disk; UINT64_MAX if unknown
// Each regular file in a folder: its name, size, and the time of sl_file_touch or of its last change.
typedef sl_status sl_folder_visit(void *user, const char *name, uint64_t n_bytes, int64_t time_ns);
sl_status sl_folder_walk(const char *path, sl_folder_visit *each, void *user);
bool sl_file_touch(const char *path, int64_t time_ns); // false: there is no such file, or it is not ours
bool sl_file_remove(const char *path);                 // likewise

// ---- memory
// ------------------------------------------------------------------------------------------------

// n_bytes of zeroed, page-aligned, private memory, touched, so that later accesses do not fault.
// Huge pages are asked for when `huge`. SL_NO_MEMORY, before anything is touched, if the machine
// lacks that much free memory.
sl_status sl_pages_alloc(void *out, size_t n_bytes, bool huge, const char *what);
// The same, not touched: for memory that its user writes from several threads before anything reads it.
sl_status sl_pages_map(void *out, size_t n_bytes, bool huge, const char *what);
void sl_pages_free(void *ptr, size_t n_bytes); // NULL is fine

// Locks pages into memory; returns the number of bytes locked, from the start, and raises the soft
// limit if it may.
size_t sl_pages_lock(const void *ptr, size_t n_bytes);

size_t sl_page_bytes(void);
// Physical memory, and what a new process could use now without swapping (0 if unknown), container
// limits included.
size_t sl_memory_total_bytes(void);
size_t sl_memory_free_bytes(void);

typedef struct sl_faults {
    uint64_t n_minor, n_major; // of the process since its start (getrusage)
} sl_faults;
sl_faults sl_faults_now(void);
// Maps the program's code and constants in, as far as the system allows, so that code which first runs in the middle of
// an answer takes no fault.
void sl_code_prefault(void);

// ---- time
// --------------------------------------------------------------------------------------------------

uint64_t sl_clock_ns(void);        // monotonic
uint64_t sl_clock_thread_ns(void); // processor time of the calling thread
int64_t sl_clock_date_ns(void);    // since 1970, as files have it

// ---- threads
// -----------------------------------------------------------------------------------------------

typedef struct sl_thread sl_thread; // an OS thread
// Runs run(arg) on a new thread. `name` is cut to 15 bytes.
sl_status sl_thread_create(sl_thread **out, void (*run)(void *arg), void *arg, const char *name);
void sl_thread_join(sl_thread *thread); // and frees it; NULL is fine

// Sleeps while *word == expected, until a wake (or spuriously); the caller looks again. The kernel
// is entered only here.
void sl_wait_word(const _Atomic uint32_t *word, uint32_t expected);
void sl_wake_all(const _Atomic uint32_t *word);
void sl_thread_yield(void);
void sl_cpu_relax(void); // the pause instruction of a spin loop

// Processors this process may run on (affinity and container quota respected), at least 1.
int sl_cpu_count(void);
// Their numbers, at most cap of them: one of each core, then the second of each and so on. Returns how many; 0 where
// threads cannot be tied to processors. All are below SL_CPU_MAX.
enum { SL_CPU_MAX = 1024 };
int sl_cpu_list(int *cpu, int cap);
int sl_cpu_now(void);                                                       // that of the caller at this moment, or -1
void sl_thread_keep_to(const sl_thread *thread, const int *cpu, int n_cpu); // if the system will have it

// ---- processor
// ---------------------------------------------------------------------------------------------

// Feature bits; on x86-64 a bit is set only if the OS saves the registers (xgetbv).
enum {
    SL_CPU_AVX2 = 1 << 0,   // AVX2, FMA, F16C, BMI2
    SL_CPU_AVX512 = 1 << 1, // AVX-512 F, BW, DQ, VL
    SL_CPU_AVX512_VNNI = 1 << 2,
    SL_CPU_AVX512_BF16 = 1 << 3,
    SL_CPU_AMX_INT8 = 1 << 4, // and the process has been granted the tiles
    SL_CPU_AVX_VNNI = 1 << 5, // VEX-coded VNNI for 256 bits
    SL_CPU_NEON = 1 << 8,
    SL_CPU_DOTPROD = 1 << 9,
    SL_CPU_I8MM = 1 << 10,
};
uint32_t sl_cpu_features(void);
// The processor's own name, e.g. "AMD EPYC 9654"; "unknown" if the OS does not tell. Static
// storage.
const char *sl_cpu_name(void);

#endif
