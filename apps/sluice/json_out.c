// SPDX-License-Identifier: MIT
//
// Results as JSON on standard output.
#include "json_out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

int json_print(json_t *root) {
    // 9 digits bring a float back exactly; times need no more.
    char *printed = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (!printed) return app_fail("out of memory");
    text line = {0};
    int result = text_append(&line, printed, strlen(printed));
    free(printed);
    if (result == APP_OK) result = text_append(&line, "\n", 1);
    if (result == APP_OK) result = out_write(line.data, line.n);
    text_free(&line);
    return result;
}

json_t *json_finite(double value) { return isfinite(value) ? json_real(value) : json_null(); }
