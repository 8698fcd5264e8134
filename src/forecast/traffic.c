// SPDX-License-Identifier: MIT
//
// A tensor is read whole for each token, but for tables (one row of them) and experts (the chosen
// ones). A tensor of a prediction head is not read: plain decoding does not use it.
#include "forecast/traffic.h"

#include "base/size.h"

typedef enum role { WHOLE, TABLE, EXPERT, UNREAD } role;

// Tables of which a token takes its own row.
static const char *const tables[] = {"token_embd.weight", "per_layer_token_embd.weight", "position_embd.weight"};
// Constants that are folded into something else when a model is opened.
static const char *const constants[] = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"};

static bool is_one_of(sl_span name, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (sl_span_is(name, names[i])) return true;
    return false;
}

// "blk.N." with N past the layers: a head that predicts further tokens.
static bool is_past_layers(sl_span name, uint32_t n_layer) {
    if (name.n_bytes < 6 || memcmp(name.data, "blk.", 4) != 0) return false;
    uint64_t n = 0;
    size_t i = 4;
    for (; i < name.n_bytes && i < 14 && name.data[i] >= '0' && name.data[i] <= '9'; i++)
        n = n * 10 + (uint64_t)(name.data[i] - '0');
    return i > 4 && n >= n_layer;
}

static bool contains(sl_span name, const char *part) {
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= name.n_bytes; i++)
        if (memcmp(name.data + i, part, n) == 0) return true;
    return false;
}

static role role_of(const sl_gguf_tensor *t, const sl_geometry *g, bool tied) {
    if (is_past_layers(t->name, g->n_layer) || is_one_of(t->name, constants, SL_COUNT(constants))) return UNREAD;
    if (is_one_of(t->name, tables, SL_COUNT(tables)) && !(tied && sl_span_is(t->name, tables[0]))) return TABLE;
    // All experts of a layer are one tensor, the last dimension counts them.
    bool stacked = g->n_expert > 1 && t->dim[t->n_dims - 1] == g->n_expert;
    return stacked && contains(t->name, "_exps.") ? EXPERT : WHOLE;
}

static sl_status too_many(void) { return SL_FAIL(SL_BAD_FILE, "the tensors have more elements than can be counted"); }

static uint64_t n_elem(const sl_gguf_tensor *t) {
    uint64_t n = 1;
    for (int i = 0; i < SL_GGUF_MAX_DIMS; i++)
        if (!sl_size_mul(&n, n, t->dim[i])) break;
    return n;
}

static sl_status add(sl_traffic *s, const sl_gguf_tensor *t, const sl_geometry *g, bool tied) {
    uint64_t elements = n_elem(t), n_bytes = t->n_bytes, used = n_bytes;
    bool matrix = t->n_dims > 1, output = sl_span_is(t->name, "output.weight");
    if (elements == 0 || !sl_size_add(&s->file_bytes, s->file_bytes, n_bytes) ||
        !sl_size_add(&s->n_param, s->n_param, elements))
        return too_many();
    switch (role_of(t, g, tied)) {
    case UNREAD: return SL_OK;
    case TABLE: s->token_bytes += n_bytes / (elements / t->dim[0]); return SL_OK;
    case EXPERT: // each is as likely as the others, so a whole number of them is read
        used = n_bytes / g->n_expert * g->n_expert_used;
        s->expert_bytes += n_bytes, s->token_expert_bytes += used;
        elements = elements / g->n_expert * g->n_expert_used;
        matrix = t->n_dims > 2;
        break;
    case WHOLE: break;
    }
    s->token_bytes += used;
    if (tied && sl_span_is(t->name, tables[0])) {
        s->token_bytes += n_bytes / (elements / t->dim[0]); // its row as a table, besides
        output = true;
    }
    if (matrix) *(output ? &s->output_mac : &s->row_mac) += elements;
    return SL_OK;
}

static void find_main_type(sl_traffic *s, const sl_gguf *gguf) {
    uint64_t n_bytes[SL_TYPE_ID_COUNT] = {0};
    uint32_t best = 0;
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(gguf, i);
        n_bytes[t->type_id] += t->n_bytes;
        if (n_bytes[t->type_id] > n_bytes[best]) best = t->type_id;
    }
    snprintf(s->main_type, sizeof s->main_type, "%s", sl_type_find(best)->name);
}

sl_status sl_traffic_read(sl_traffic *out, const sl_gguf *gguf, const sl_geometry *geometry) {
    sl_traffic s = {0};
    *out = s;
    bool tied = !sl_gguf_tensor_find(gguf, "output.weight");
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) SL_TRY(add(&s, sl_gguf_tensor_at(gguf, i), geometry, tied));
    find_main_type(&s, gguf);
    *out = s;
    return SL_OK;
}
