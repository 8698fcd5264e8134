// SPDX-License-Identifier: MIT
// sl_test: MODULES engine base
//
// Any bytes through the reader of session files. The checksums would keep a fuzzer out, so each input is read as it is,
// and then once more with its sums put right: numbers must be safe without them. What is found is walked over.
#include <stdlib.h>
#include <string.h>

#include "base/xxh64.h"
#include "engine/session_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static volatile uint64_t sink;

static void parse(const uint8_t *data, size_t n_bytes) {
    sl_session_view v;
    if (sl_session_parse(&v, data, n_bytes) != SL_OK) {
        if (v.head || sl_error_text()[0] == 0) abort(); // a failure has a reason and no result
        return;
    }
    sink += sl_xxh64(v.kv, (size_t)(data + n_bytes - v.kv), 0) + sl_xxh64(v.app.data, v.app.n_bytes, 0);
    for (uint32_t i = 0; i < v.n_id; i++) sink += (uint64_t)v.ids[i];
    for (uint32_t i = 0; i < v.head->n_layer; i++) sink += v.layer[i].k_blk_bytes;
}

// The sums of what has a place in the file; those of keys and values only where all of it fits.
static void put_sums_right(uint8_t *data, size_t n_bytes) {
    sl_session_head *h = (void *)data;
    if (n_bytes < sizeof *h || h->n_layer < 1 || h->n_layer > 64) return;
    size_t front = sizeof *h + sl_session_n_section(h->n_layer) * 8, layers = h->n_layer * sizeof(sl_session_layer);
    if (front + layers > n_bytes) return;
    uint64_t *sum = (void *)(h + 1), left = n_bytes - front - layers;
    const sl_session_layer *layer = (const void *)(data + front);
    const uint8_t *at = data + front + layers;
    sum[0] = sl_xxh64(layer, layers, 0);
    uint64_t n_id_bytes = 4ull * sl_session_n_id(h);
    if (n_id_bytes <= left) {
        sum[1] = sl_xxh64(at, n_id_bytes, 0), at += n_id_bytes, left -= n_id_bytes;
        if (h->app_bytes <= left) sum[2] = sl_xxh64(at, h->app_bytes, 0), at += h->app_bytes, left -= h->app_bytes;
        for (uint32_t i = 0; h->blk_len && i < 2 * h->n_layer; i++) {
            uint64_t all, blk_bytes = i % 2 ? layer[i / 2].v_blk_bytes : layer[i / 2].k_blk_bytes, hash = 0;
            uint32_t n_blk = sl_session_n_blk(h, layer[i / 2].cls);
            if (!blk_bytes || !sl_session_kv_bytes(h, &layer[i / 2], i % 2, &all) || all > left) break;
            for (uint32_t b = 0; b < n_blk; b++, at += blk_bytes, left -= blk_bytes)
                hash = sl_xxh64(at, blk_bytes, hash);
            all -= n_blk * blk_bytes; // the open block
            if (all) hash = sl_xxh64(at, all, hash), at += all, left -= all;
            sum[3 + i] = hash;
        }
    }
    h->file_bytes = n_bytes;
    h->head_hash = sl_session_hash_head(h, sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    if (n_bytes == 0 || n_bytes > 1 << 20) return 0;
    uint8_t *copy = malloc(n_bytes); // of exactly that size, aligned as a mapping is
    if (!copy) return 0;
    memcpy(copy, data, n_bytes);
    parse(copy, n_bytes);
    put_sums_right(copy, n_bytes);
    parse(copy, n_bytes);
    free(copy);
    return 0;
}
