// SPDX-License-Identifier: MIT
//
// Lists of whole numbers on the command line.
#include "number_list.h"

#include <errno.h>
#include <stdlib.h>

#include "options.h"

int number_list_parse(number_list *out, const char *name, const char *text, int32_t min, int32_t max) {
    out->n = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long value = strtol(at, &end, 10);
        bool digit = *at >= '0' && *at <= '9';
        if (!digit || errno || value < min || value > max || (*end && *end != ','))
            return app_usage("--%s must be whole numbers from %d to %d with commas between, not "
                             "\"%s\"",
                             name, (int)min, (int)max, text);
        if (out->n && value <= out->value[out->n - 1]) return app_usage("--%s must rise, unlike \"%s\"", name, text);
        if (out->n == NUMBER_LIST_MAX) return app_usage("--%s has more than %d numbers", name, NUMBER_LIST_MAX);
        out->value[out->n++] = (int32_t)value;
        at = end;
        if (!*at) return OPTIONS_GO_ON;
    }
}
