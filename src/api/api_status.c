// SPDX-License-Identifier: MIT
//
// Status codes, reasons, and what a caller gives back.
#include <string.h>

#include "api/api_part.h"

#define SAME(public, internal) _Static_assert((int)(public) == (int)(internal), #public)
SAME(SLUICE_OK, SL_OK);
SAME(SLUICE_BAD_ARG, SL_BAD_ARG);
SAME(SLUICE_NO_MEMORY, SL_NO_MEMORY);
SAME(SLUICE_IO, SL_IO);
SAME(SLUICE_BAD_FILE, SL_BAD_FILE);
SAME(SLUICE_UNSUPPORTED, SL_UNSUPPORTED);
SAME(SLUICE_FULL, SL_FULL);
SAME(SLUICE_CANCELLED, SL_CANCELLED);
SAME(SLUICE_BAD_INPUT, SL_BAD_INPUT);
SAME(SLUICE_DEVICE, SL_DEVICE);
SAME(SLUICE_INTERNAL, SL_INTERNAL);
SAME(SLUICE_INTERNAL + 1, SL_STATUS_COUNT);

const char *sluice_last_error(void) { return sl_error_text(); }

const char *sluice_status_name(sluice_status status) { return sl_status_name((sl_status)status); }

void sluice_free(void *ptr) { sl_free(ptr); }

sl_status sl_api_options(void *out, const void *given, size_t n_bytes, const char *name) {
    size_t given_bytes;
    if (!given) return SL_OK;
    memcpy(&given_bytes, given, sizeof given_bytes);
    if (given_bytes < sizeof given_bytes)
        return SL_FAIL(SL_BAD_ARG, "the size of the %s options is not set; begin with their _default function", name);
    if (given_bytes > n_bytes)
        return SL_FAIL(SL_BAD_ARG, "the %s options are of a newer version than this library (%s)", name,
                       SLUICE_VERSION);
    memcpy(out, given, given_bytes);
    memcpy(out, &n_bytes, sizeof n_bytes);
    return SL_OK;
}
