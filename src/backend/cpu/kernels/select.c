// SPDX-License-Identifier: MIT
//
// The levels of this build, in rising order; see select.h.
#include "backend/cpu/kernels/select.h"

#include <string.h>

#include "os/os.h"

typedef struct level {
    const char *name;
    uint32_t needs;
    void (*init)(sl_cpu_kernels *k);
} level;

static const level levels[] = {
    {"generic", 0, sl_cpu_kernels_init_generic},
#if defined(__x86_64__)
#define LEVEL_NAMES "generic, avx2, avx512 or amx"
    {"avx2", SL_CPU_AVX2, sl_cpu_kernels_init_avx2},
    {"avx512", SL_CPU_AVX2 | SL_CPU_AVX512 | SL_CPU_AVX512_VNNI, sl_cpu_kernels_init_avx512},
    {"amx", SL_CPU_AVX2 | SL_CPU_AVX512 | SL_CPU_AVX512_VNNI | SL_CPU_AMX_INT8, sl_cpu_kernels_init_amx},
#elif defined(__aarch64__)
#define LEVEL_NAMES "generic, neon, dotprod or i8mm"
    {"neon", SL_CPU_NEON, sl_cpu_kernels_init_neon},
    {"dotprod", SL_CPU_NEON | SL_CPU_DOTPROD, sl_cpu_kernels_init_dotprod},
    {"i8mm", SL_CPU_NEON | SL_CPU_DOTPROD | SL_CPU_I8MM, sl_cpu_kernels_init_i8mm},
#else
#define LEVEL_NAMES "generic"
#endif
};

const char *sl_cpu_level_name(int i) { return i >= 0 && (size_t)i < SL_COUNT(levels) ? levels[i].name : NULL; }

sl_status sl_cpu_kernels_select(sl_cpu_kernels *out, uint32_t features, const char *name) {
    *out = (sl_cpu_kernels){0};
    for (size_t i = 0; i < SL_COUNT(levels); i++) {
        bool named = name && strcmp(name, levels[i].name) == 0;
        if ((features & levels[i].needs) == levels[i].needs) levels[i].init(out);
        else if (named)
            return SL_FAIL(SL_DEVICE, "this processor has no %s; leave the level away to use the best it has", name);
        if (named) return SL_OK;
    }
    if (name) return SL_FAIL(SL_BAD_ARG, "there is no level %s; use " LEVEL_NAMES, name);
    return SL_OK;
}
