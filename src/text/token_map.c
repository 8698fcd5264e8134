// SPDX-License-Identifier: MIT
//
// The table behind sl_token_map. It must not know what a token means.
#include "text/token_map.h"

static uint32_t hash_joined(sl_span head, sl_span tail) {
    uint64_t h = sl_span_hash(head);
    for (size_t i = 0; i < tail.n_bytes; i++) h = (h ^ (unsigned char)tail.data[i]) * 1099511628211u;
    return (uint32_t)(h ^ h >> 32);
}

static bool is_joined(sl_span text, sl_span head, sl_span tail) {
    if (text.n_bytes != head.n_bytes + tail.n_bytes) return false;
    if (memcmp(text.data, head.data, head.n_bytes) != 0) return false;
    return tail.n_bytes == 0 || memcmp(text.data + head.n_bytes, tail.data, tail.n_bytes) == 0;
}

int32_t sl_token_map_find_joined(const sl_token_map *map, sl_span head, sl_span tail) {
    if (head.n_bytes == 0) head = tail, tail = (sl_span){0};
    if (head.n_bytes == 0 || head.n_bytes + tail.n_bytes > map->longest_bytes) return -1;
    uint32_t hash = hash_joined(head, tail);
    for (uint32_t i = hash & map->mask;; i = (i + 1) & map->mask) {
        const sl_token_slot *slot = &map->slot[i];
        if (slot->id_plus_1 == 0) return -1;
        if (slot->hash == hash && is_joined(map->token[slot->id_plus_1 - 1], head, tail))
            return (int32_t)(slot->id_plus_1 - 1);
    }
}

static void insert(sl_token_map *map, int32_t id) {
    sl_span text = map->token[id];
    uint32_t hash = hash_joined(text, (sl_span){0}), i = hash & map->mask;
    for (; map->slot[i].id_plus_1 != 0; i = (i + 1) & map->mask) {
        if (map->slot[i].hash == hash && sl_span_equal(map->token[map->slot[i].id_plus_1 - 1], text)) return;
    }
    map->slot[i] = (sl_token_slot){hash, (uint32_t)id + 1};
    map->longest_bytes = SL_MAX(map->longest_bytes, text.n_bytes);
}

sl_status sl_token_map_init(sl_token_map *map, const sl_span *token, int32_t n_vocab) {
    *map = (sl_token_map){.token = token};
    uint64_t n_slot = 16;
    while (3 * n_slot < 4 * (uint64_t)n_vocab) n_slot *= 2;
    SL_TRY(sl_alloc(&map->slot, n_slot, sizeof *map->slot, "the token table"));
    map->mask = (uint32_t)(n_slot - 1);
    for (int32_t id = 0; id < n_vocab; id++) {
        if (token[id].n_bytes > 0) insert(map, id);
    }
    return SL_OK;
}

void sl_token_map_deinit(sl_token_map *map) {
    sl_free(map->slot);
    *map = (sl_token_map){0};
}
