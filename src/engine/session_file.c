// SPDX-License-Identifier: MIT
//
// From any bytes to a session, or to the reason why it is none.
#include "engine/session_file.h"

#include <string.h>

#include "base/size.h"
#include "base/xxh64.h"

static const char magic[8] = {'s', 'l', 'u', 'i', 'c', 'e', 'K', 'V'};

void sl_session_set_magic(sl_session_head *head) { memcpy(head->magic, magic, sizeof magic); }

uint32_t sl_session_n_blk(const sl_session_head *head, uint32_t cls) {
    uint32_t n = head->n_pos ? (head->n_pos - 1) / head->blk_len + 1 : 0;
    return n - head->n_gone - (cls ? head->window_first : head->first);
}

uint32_t sl_session_n_id(const sl_session_head *head) { return head->n_pos - head->n_gone * head->blk_len; }

uint64_t sl_session_hash_head(const sl_session_head *head, const uint64_t *sums) {
    sl_session_head copy = *head;
    copy.head_hash = 0;
    return sl_xxh64(sums, sl_session_n_section(head->n_layer) * sizeof *sums, sl_xxh64(&copy, sizeof copy, 0));
}

static uint64_t front_bytes(const sl_session_head *head) {
    return sizeof *head + (uint64_t)sl_session_n_section(head->n_layer) * sizeof(uint64_t);
}

static uint64_t open_bytes(const sl_session_head *head, const sl_session_layer *layer, bool is_v) {
    return head->n_pos % head->blk_len == 0 ? 0 : is_v ? layer->v_open_bytes : layer->k_open_bytes;
}

bool sl_session_kv_bytes(const sl_session_head *head, const sl_session_layer *layer, bool is_v, uint64_t *out) {
    uint64_t n = sl_session_n_blk(head, layer->cls), n_bytes = is_v ? layer->v_blk_bytes : layer->k_blk_bytes;
    return sl_size_mul(out, n, n_bytes) && sl_size_add(out, *out, open_bytes(head, layer, is_v));
}

bool sl_session_file_bytes(const sl_session_head *head, const sl_session_layer *layer, uint64_t *out) {
    uint64_t n_bytes,
        sum = front_bytes(head) + (uint64_t)head->n_layer * sizeof *layer + (uint64_t)sl_session_n_id(head) * 4;
    bool ok = sl_size_add(&sum, sum, head->app_bytes);
    for (uint32_t i = 0; ok && i < 2 * head->n_layer; i++)
        ok = sl_session_kv_bytes(head, &layer[i / 2], i % 2, &n_bytes) && sl_size_add(&sum, sum, n_bytes);
    *out = ok ? sum : 0;
    return ok;
}

// ---- checks, each on what the ones before have found good -----------------------------------------------------------

static sl_status torn(size_t n_bytes) {
    return SL_FAIL(SL_BAD_FILE, "ends after %zu bytes, in the middle of the session", n_bytes);
}

static sl_status check_front(const sl_session_head *h, size_t n_bytes) {
    if (n_bytes < sizeof *h || memcmp(h->magic, magic, sizeof magic) != 0)
        return SL_FAIL(SL_BAD_FILE, "is no session of sluice");
    if (h->version != SL_SESSION_VERSION)
        return SL_FAIL(SL_UNSUPPORTED, "is a session of format version %u; this sluice reads version %d", h->version,
                       SL_SESSION_VERSION);
    if (h->n_layer < 1 || h->n_layer > SL_SESSION_MAX_LAYERS)
        return SL_FAIL(SL_BAD_FILE, "is damaged: a session of %u layers", h->n_layer);
    if (front_bytes(h) > n_bytes) return torn(n_bytes);
    if (sl_session_hash_head(h, (const uint64_t *)(const void *)(h + 1)) != h->head_hash)
        return SL_FAIL(SL_BAD_FILE, "is damaged: the checksum of its head does not match");
    if (h->file_bytes > n_bytes) return torn(n_bytes);
    return SL_OK;
}

// What was let go lies between the first block and the last, and no row sees it any more.
static bool good_gone(const sl_session_head *h) {
    if (h->n_ctx == 0) return h->n_gone == 0 && h->gone_hash == 0;
    return h->first == 0 && h->n_pos >= h->n_ctx && h->n_gone <= (h->n_pos - h->n_ctx) / h->blk_len + 1 &&
           (h->n_gone == 0 || h->n_gone < (h->n_pos - 1) / h->blk_len);
}

// Numbers that other numbers are reckoned from. They have a checksum, but that can be forged.
static sl_status check_numbers(const sl_session_view *v, size_t n_bytes) {
    const sl_session_head *h = v->head;
    uint64_t file_bytes, layer_bytes = (uint64_t)h->n_layer * sizeof *v->layer;
    if (h->blk_len < 1 || h->blk_len > 1 << 16 || h->n_pos > INT32_MAX || h->n_vocab > INT32_MAX || !good_gone(h))
        return SL_FAIL(SL_BAD_FILE, "is damaged: its head has impossible numbers");
    uint64_t n_blk = ((uint64_t)h->n_pos + h->blk_len - 1) / h->blk_len - h->n_gone;
    if (h->first > n_blk || h->window_first > n_blk || front_bytes(h) + layer_bytes > n_bytes)
        return SL_FAIL(SL_BAD_FILE, "is damaged: its head has impossible numbers");
    for (uint32_t i = 0; i < h->n_layer; i++)
        if (v->layer[i].cls > 1 || !v->layer[i].k_blk_bytes || !v->layer[i].v_blk_bytes)
            return SL_FAIL(SL_BAD_FILE, "is damaged: layer %u is of no class, or its blocks are empty", i);
    if (!sl_session_file_bytes(h, v->layer, &file_bytes) || file_bytes != h->file_bytes || file_bytes != n_bytes)
        return SL_FAIL(SL_BAD_FILE, "is damaged: its parts do not add up to its %zu bytes", n_bytes);
    return SL_OK;
}

static sl_status damaged(const char *part) {
    return SL_FAIL(SL_BAD_FILE, "is damaged: the checksum of its %s does not match", part);
}

static uint64_t hash_blocks(const uint8_t *blk, uint64_t blk_bytes, uint32_t n_blk) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < n_blk; i++) hash = sl_xxh64(blk + i * blk_bytes, blk_bytes, hash);
    return hash;
}

static sl_status check_sums(const sl_session_view *v) {
    const sl_session_head *h = v->head;
    const uint64_t *sum = (const uint64_t *)(const void *)(h + 1);
    if (sl_xxh64(v->layer, h->n_layer * sizeof *v->layer, 0) != sum[0]) return damaged("layers");
    if (sl_xxh64(v->ids, v->n_id * sizeof *v->ids, 0) != sum[1]) return damaged("token ids");
    if (sl_xxh64(v->app.data, v->app.n_bytes, 0) != sum[2]) return damaged("program's own part");
    const uint8_t *at = v->kv;
    for (uint32_t i = 0; i < h->n_layer; i++) {
        const sl_session_layer *l = &v->layer[i];
        const uint64_t blk_bytes[2] = {l->k_blk_bytes, l->v_blk_bytes};
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t n_blk = sl_session_n_blk(h, l->cls);
            uint64_t n_bytes = n_blk * blk_bytes[k], n_open = open_bytes(h, l, k), hash;
            hash = hash_blocks(at, blk_bytes[k], n_blk);
            if (n_open) hash = sl_xxh64(at + n_bytes, n_open, hash);
            if (hash != sum[3 + 2 * i + k]) return damaged("keys and values");
            at += n_bytes + n_open;
        }
    }
    for (uint32_t i = 0; i < v->n_id; i++)
        if (v->ids[i] < 0 || (uint32_t)v->ids[i] >= h->n_vocab)
            return SL_FAIL(SL_BAD_FILE, "is damaged: id %d is past a vocabulary of %u", v->ids[i], h->n_vocab);
    return SL_OK;
}

sl_status sl_session_parse(sl_session_view *out, const uint8_t *data, size_t n_bytes) {
    *out = (sl_session_view){0};
    sl_session_view v = {.head = (const void *)data};
    SL_TRY(check_front(v.head, n_bytes));
    v.layer = (const void *)(data + front_bytes(v.head));
    SL_TRY(check_numbers(&v, n_bytes));
    v.ids = (const void *)(v.layer + v.head->n_layer);
    v.n_id = sl_session_n_id(v.head);
    v.app = sl_span_make((const char *)(v.ids + v.n_id), v.head->app_bytes);
    v.kv = (const uint8_t *)v.app.data + v.app.n_bytes;
    SL_TRY(check_sums(&v));
    *out = v;
    return SL_OK;
}
