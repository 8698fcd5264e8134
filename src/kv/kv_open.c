// SPDX-License-Identifier: MIT
//
// Which open block holds what. Where keys and values are kept as codes, the newest block of a sequence, which is not
// yet full, is kept as it came, in one of two open blocks of the sequence; a step that ends in another block than it
// begins in takes the other one. So an open block holds, from its first position on, the block that is noted for it.
#include "kv/kv_part.h"

int32_t sl_kv_open_at(const sl_kv *kv, int32_t seq, int32_t blk) {
    const int32_t *held = kv->open_blk + 2 * (size_t)seq;
    return held[0] == blk ? 0 : held[1] == blk ? 1 : -1;
}

void sl_kv_set_open(sl_kv *kv, int32_t seq, int32_t i, int32_t blk) {
    int32_t *held = kv->open_blk + 2 * (size_t)seq;
    held[i] = blk;
    if (held[!i] == blk) held[!i] = -1;
}

int32_t sl_kv_begin_open(sl_kv *kv, int32_t seq, int32_t n_more) {
    int32_t n = kv->length[seq], blk_len = kv->shape.blk_len, first = n / blk_len, last = (n + n_more - 1) / blk_len;
    int32_t i = n % blk_len ? sl_kv_open_at(kv, seq, first) : sl_kv_open_at(kv, seq, first - 1) == 0;
    SL_CHECK(i >= 0); // no sequence ends in a block whose open block is gone
    sl_kv_set_open(kv, seq, i, first);
    if (last > first) sl_kv_set_open(kv, seq, !i, last);
    return i;
}

bool sl_kv_can_end(const sl_kv *kv, int32_t seq, int32_t n) {
    int32_t blk_len = kv->shape.blk_len;
    return !kv->shape.opens || n % blk_len == 0 || sl_kv_open_at(kv, seq, n / blk_len) >= 0;
}
