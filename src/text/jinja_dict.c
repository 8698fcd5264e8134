// SPDX-License-Identifier: MIT
//
// Dictionaries in order of insertion, as Python's: keys are any hashable values, and 1, 1.0 and
// true are one key. Small ones are searched from the front; from N_SMALL on there is an index.
#include "text/jinja_value.h"

enum { N_SMALL = 8 };

static sl_status find_entry(sl_jinja_run *run, size_t *at, const sl_jinja_dict *dict, sl_jinja_value key,
                            uint64_t hash) {
    bool same;
    *at = SIZE_MAX;
    if (!dict->index) {
        for (size_t i = 0; i < dict->n; i++) {
            if (dict->entries[i].hash != hash) continue;
            SL_TRY(sl_jinja_equal(run, &same, dict->entries[i].key, key));
            if (same) return *at = i, SL_OK;
        }
        return SL_OK;
    }
    for (size_t k = hash & (dict->n_index - 1); dict->index[k]; k = (k + 1) & (dict->n_index - 1)) {
        size_t i = dict->index[k] - 1;
        SL_TRY(sl_jinja_step(run, 1)); // keys chosen to collide cost time, not only theirs
        if (dict->entries[i].hash != hash) continue;
        SL_TRY(sl_jinja_equal(run, &same, dict->entries[i].key, key));
        if (same) return *at = i, SL_OK;
    }
    return SL_OK;
}

static void index_entry(sl_jinja_dict *dict, size_t i) {
    size_t k = dict->entries[i].hash & (dict->n_index - 1);
    while (dict->index[k]) k = (k + 1) & (dict->n_index - 1);
    dict->index[k] = (uint32_t)(i + 1);
}

static sl_status grow(sl_jinja_run *run, sl_jinja_dict *dict) {
    size_t cap = dict->cap ? dict->cap * 2 : N_SMALL;
    sl_jinja_entry *entries;
    if (cap > UINT32_MAX / 4) return SL_FAIL(SL_FULL, "a dictionary has too many keys");
    SL_TRY(sl_jinja_alloc(run, &entries, cap, sizeof *entries));
    if (dict->n) memcpy(entries, dict->entries, dict->n * sizeof *entries);
    dict->entries = entries;
    dict->cap = cap;
    if (cap == N_SMALL) return SL_OK;
    dict->n_index = cap * 2;
    SL_TRY(sl_jinja_alloc(run, &dict->index, dict->n_index, sizeof *dict->index));
    for (size_t i = 0; i < dict->n; i++) index_entry(dict, i);
    return SL_OK;
}

sl_status sl_jinja_dict_set(sl_jinja_run *run, sl_jinja_dict *dict, sl_jinja_value key, sl_jinja_value v) {
    uint64_t hash;
    size_t at;
    SL_TRY(sl_jinja_hash(run, &hash, key));
    SL_TRY(find_entry(run, &at, dict, key, hash));
    if (at != SIZE_MAX) return dict->entries[at].value = v, SL_OK;
    if (dict->n == dict->cap) SL_TRY(grow(run, dict));
    dict->entries[dict->n] = (sl_jinja_entry){key, v, hash};
    dict->n++;
    if (dict->index) index_entry(dict, dict->n - 1);
    return sl_jinja_step(run, 1);
}

sl_status sl_jinja_dict_find(sl_jinja_run *run, const sl_jinja_value **out, const sl_jinja_dict *dict,
                             sl_jinja_value key) {
    uint64_t hash;
    size_t at;
    *out = NULL;
    SL_TRY(sl_jinja_hash(run, &hash, key));
    SL_TRY(find_entry(run, &at, dict, key, hash));
    if (at != SIZE_MAX) *out = &dict->entries[at].value;
    return SL_OK;
}

const sl_jinja_value *sl_jinja_dict_text(const sl_jinja_dict *dict, sl_span key) {
    uint64_t hash = sl_span_hash(key);
    for (size_t i = 0; i < dict->n && !dict->index; i++) {
        const sl_jinja_entry *e = &dict->entries[i];
        if (e->hash == hash && e->key.type == SL_JINJA_TEXT && sl_span_equal(sl_jinja_span(e->key), key))
            return &e->value;
    }
    if (!dict->index) return NULL;
    for (size_t k = hash & (dict->n_index - 1); dict->index[k]; k = (k + 1) & (dict->n_index - 1)) {
        const sl_jinja_entry *e = &dict->entries[dict->index[k] - 1];
        if (e->hash == hash && e->key.type == SL_JINJA_TEXT && sl_span_equal(sl_jinja_span(e->key), key))
            return &e->value;
    }
    return NULL;
}

// From a dictionary, or from pairs.
sl_status sl_jinja_dict_update(sl_jinja_run *run, sl_jinja_dict *dict, sl_jinja_value from) {
    if (from.type == SL_JINJA_DICT) {
        for (size_t i = 0; i < from.as.dict->n; i++)
            SL_TRY(sl_jinja_dict_set(run, dict, from.as.dict->entries[i].key, from.as.dict->entries[i].value));
        return SL_OK;
    }
    sl_jinja_iter it;
    bool done;
    SL_TRY(sl_jinja_iter_init(&it, from));
    for (sl_jinja_value item;;) {
        sl_jinja_vec pair = {0};
        SL_TRY(sl_jinja_iter_next(run, &it, &item, &done));
        if (done) return SL_OK;
        SL_TRY(sl_jinja_collect(run, &pair, item));
        if (pair.n != 2) return SL_FAIL(SL_BAD_INPUT, "a dictionary is made of pairs, not of %zu values", pair.n);
        SL_TRY(sl_jinja_dict_set(run, dict, pair.items[0], pair.items[1]));
    }
}
