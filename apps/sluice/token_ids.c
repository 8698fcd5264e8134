// SPDX-License-Identifier: MIT
//
// Token ids in JSON.
#include "token_ids.h"

#include <jansson.h>
#include <stdlib.h>

static int copy_ids(int32_t *ids, const json_t *array, const char *name, int32_t n_vocab) {
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        json_int_t id = json_integer_value(item);
        if (!json_is_integer(item)) return app_fail("%s: element %zu is not a whole number", name, i);
        if (id < 0 || id >= n_vocab) {
            return app_fail("%s: element %zu is %lld, but ids go from 0 to %d", name, i, (long long)id,
                            (int)n_vocab - 1);
        }
        ids[i] = (int32_t)id;
    }
    return APP_OK;
}

int token_ids_parse(int32_t **ids, size_t *n, const text *json, const char *name, int32_t n_vocab) {
    *ids = NULL, *n = 0;
    json_error_t error;
    json_t *root = json_loadb(json->data, json->n, JSON_REJECT_DUPLICATES, &error);
    if (!root) return app_fail("%s: line %d: %s", name, error.line, error.text);
    const json_t *array = json_is_object(root) ? json_object_get(root, "ids") : root;
    int result = json_is_array(array) ? APP_OK : app_fail("%s: must be a JSON array of token ids", name);
    size_t n_ids = json_array_size(array);
    int32_t *copy = result == APP_OK ? malloc((n_ids + 1) * sizeof *copy) : NULL;
    if (result == APP_OK && !copy) result = app_fail("out of memory");
    if (result == APP_OK) result = copy_ids(copy, array, name, n_vocab);
    json_decref(root);
    if (result != APP_OK) return free(copy), result;
    *ids = copy, *n = n_ids;
    return APP_OK;
}

int token_ids_read(int32_t **ids, size_t *n, const char *path, int32_t n_vocab) {
    text source;
    *ids = NULL, *n = 0;
    int result = file_read(&source, path);
    if (result != APP_OK) return result;
    result = token_ids_parse(ids, n, &source, path, n_vocab);
    text_free(&source);
    if (result == APP_OK && *n == 0) result = app_fail("%s: holds no ids", path);
    return result;
}
