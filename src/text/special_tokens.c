// SPDX-License-Identifier: MIT
//
// Longest match in a sorted list: the range of tokens that begin with the bytes read so far shrinks byte by byte. The
// token that equals those bytes, if there is one, is the first of the range.
#include "text/special_tokens.h"

#include "text/space_mark.h"

static int compare(const void *a, const void *b) {
    const sl_special_token *x = a, *y = b;
    size_t n = SL_MIN(x->text.n_bytes, y->text.n_bytes);
    int order = memcmp(x->text.data, y->text.data, n);
    if (order != 0) return order;
    if (x->text.n_bytes != y->text.n_bytes) return x->text.n_bytes < y->text.n_bytes ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_special(const sl_vocab_source *source, int32_t id) {
    uint8_t type = source->type ? source->type[id] : SL_TOKEN_NORMAL;
    return source->token[id].n_bytes > 0 &&
           (type == SL_TOKEN_USER_DEFINED || type == SL_TOKEN_CONTROL || type == SL_TOKEN_UNKNOWN);
}

static sl_status add(sl_special_tokens *set, const sl_vocab_source *source, int32_t id, bool escape_space) {
    sl_special_token *token = &set->token[set->n];
    *token = (sl_special_token){source->token[id], id, source->type[id] == SL_TOKEN_USER_DEFINED};
    if (escape_space && memchr(token->text.data, ' ', token->text.n_bytes)) {
        char *out;
        SL_TRY(sl_arena_alloc(&set->arena, &out, token->text.n_bytes, SL_SPACE_MARK_BYTES, "special tokens"));
        token->text = sl_span_make(out, sl_space_mark_escape(out, token->text));
    }
    set->n++;
    return SL_OK;
}

sl_status sl_special_tokens_init(sl_special_tokens *set, const sl_vocab_source *source, bool escape_space) {
    *set = (sl_special_tokens){0};
    size_t n = 0;
    for (int32_t id = 0; id < source->n_vocab; id++) n += is_special(source, id);
    SL_TRY(sl_alloc(&set->token, n, sizeof *set->token, "special tokens"));
    for (int32_t id = 0; id < source->n_vocab; id++) {
        if (is_special(source, id)) SL_TRY(add(set, source, id, escape_space));
    }
    qsort(set->token, n, sizeof *set->token, compare);
    size_t i = 0;
    for (int b = 0; b < 256; b++) {
        set->first[b] = (uint32_t)i;
        for (; i < n && (uint8_t)set->token[i].text.data[0] == b; i++) set->always[b] |= set->token[i].always;
    }
    set->first[256] = (uint32_t)n;
    return SL_OK;
}

void sl_special_tokens_deinit(sl_special_tokens *set) {
    sl_free(set->token);
    sl_arena_deinit(&set->arena);
    *set = (sl_special_tokens){0};
}

// The first in [low, high) whose byte at `at` is `byte` or more. All of them are longer than `at`.
static size_t lower_bound(const sl_special_tokens *set, size_t low, size_t high, size_t at, int byte) {
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if ((uint8_t)set->token[mid].text.data[at] < byte) low = mid + 1;
        else high = mid;
    }
    return low;
}

static sl_special_match match_at(const sl_special_tokens *set, sl_span text, bool all) {
    sl_special_match best = {.id = -1};
    size_t low = set->first[(uint8_t)text.data[0]], high = set->first[(uint8_t)text.data[0] + 1];
    for (size_t n = 1; low < high; n++) {
        for (; low < high && set->token[low].text.n_bytes == n;
             low++) { // the token that ends here; equals are adjacent
            if ((all || set->token[low].always) && best.len < n) best.len = n, best.id = set->token[low].id;
        }
        if (n == text.n_bytes) break;
        int byte = (uint8_t)text.data[n];
        low = lower_bound(set, low, high, n, byte);
        high = lower_bound(set, low, high, n, byte + 1);
    }
    return best;
}

sl_special_match sl_special_tokens_next(const sl_special_tokens *set, sl_span text, size_t from, bool all) {
    for (size_t i = from; i < text.n_bytes; i++) {
        uint8_t byte = (uint8_t)text.data[i];
        if (set->first[byte] == set->first[byte + 1] || !(all || set->always[byte])) continue;
        sl_special_match match = match_at(set, sl_span_make(text.data + i, text.n_bytes - i), all);
        if (match.id >= 0) return match.off = i, match;
    }
    return (sl_special_match){text.n_bytes, 0, -1};
}
