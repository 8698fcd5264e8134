// SPDX-License-Identifier: MIT
//
// The only compiler extensions that the project uses, under names of its own.
#ifndef SL_BASE_COMPILER_H
#define SL_BASE_COMPILER_H

#define SL_LIKELY(x)        __builtin_expect(!!(x), 1)
#define SL_UNLIKELY(x)      __builtin_expect(!!(x), 0)
#define SL_PRINTF(fmt, va)  __attribute__((format(printf, fmt, va)))
#define SL_MUST_CHECK       __attribute__((warn_unused_result))
#define SL_INLINE           static inline __attribute__((always_inline))
#define SL_NOINLINE         __attribute__((noinline))
#define SL_THREAD_LOCAL     _Thread_local
#define SL_PREFETCH(p)      __builtin_prefetch((p), 0, 2) // for reading, into the second-level cache
#define SL_PREFETCH_NEAR(p) __builtin_prefetch((p), 0, 3) // into the first-level cache

// Before a small loop of constant length over an array of vectors, so that the array lives in registers.
#if defined(__clang__)
#define SL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SL_UNROLL _Pragma("GCC unroll 16")
#endif

#define SL_MIN(a, b)    ((a) < (b) ? (a) : (b))
#define SL_MAX(a, b)    ((a) > (b) ? (a) : (b))
#define SL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
