// SPDX-License-Identifier: MIT
#include "gguf/name_index.h"

sl_status sl_name_index_init(sl_name_index *index, size_t n) {
    *index = (sl_name_index){0};
    SL_TRY(sl_alloc(&index->names, n, sizeof *index->names, "index of names"));
    index->n = n;
    return SL_OK;
}

void sl_name_index_deinit(sl_name_index *index) {
    sl_free(index->names);
    *index = (sl_name_index){0};
}

void sl_name_index_put(sl_name_index *index, size_t i, sl_span text) {
    index->names[i] = (sl_name){text, sl_span_hash(text), i};
}

static int compare(const sl_name *a, const sl_name *b) {
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    if (a->text.n_bytes != b->text.n_bytes) return a->text.n_bytes < b->text.n_bytes ? -1 : 1;
    return a->text.n_bytes ? memcmp(a->text.data, b->text.data, a->text.n_bytes) : 0;
}

static int compare_for_sort(const void *a, const void *b) {
    const sl_name *x = a, *y = b;
    int order = compare(x, y);
    return order ? order : (x->i > y->i) - (x->i < y->i);
}

void sl_name_index_sort(sl_name_index *index) {
    if (index->n) qsort(index->names, index->n, sizeof *index->names, compare_for_sort);
}

const sl_name *sl_name_index_duplicate(const sl_name_index *index) {
    for (size_t i = 1; i < index->n; i++)
        if (compare(&index->names[i - 1], &index->names[i]) == 0) return &index->names[i];
    return NULL;
}

const sl_name *sl_name_index_find(const sl_name_index *index, sl_span text) {
    sl_name wanted = {text, sl_span_hash(text), 0};
    size_t low = 0, high = index->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(&index->names[mid], &wanted) < 0) low = mid + 1;
        else high = mid;
    }
    return low < index->n && compare(&index->names[low], &wanted) == 0 ? &index->names[low] : NULL;
}
