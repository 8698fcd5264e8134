// SPDX-License-Identifier: MIT
//
// What was (or would be) done to a file, for people and for programs.
#include <inttypes.h>

#include "convert/quantize.h"

typedef struct kind { // the tensors that became one type
    size_t n;
    uint64_t n_bytes;
} kind;

static void count_kinds(const sl_quantize_report *r, const sl_gguf *gguf, kind kinds[SL_TYPE_ID_COUNT],
                        size_t *n_fallback) {
    *n_fallback = 0;
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
        kind *k = &kinds[r->choice[i].type];
        k->n++, k->n_bytes += r->out_bytes[i];
        *n_fallback += r->choice[i].fell_back;
    }
}

static double bits_per_weight(const sl_quantize_report *r, uint64_t n_bytes) {
    return r->n_params ? 8 * (double)n_bytes / (double)r->n_params : 0;
}

static double mib(uint64_t n_bytes) { return (double)n_bytes / (1 << 20); }

// ---- text ---------------------------------------------------------------------------------------

static void print_tensor(const sl_quantize_report *r, size_t i, const sl_gguf_tensor *t, sl_buf *out) {
    const sl_mix_choice *c = &r->choice[i];
    size_t start = out->n_bytes;
    sl_buf_text(out, "  ");
    sl_buf_json(out, t->name);
    size_t width = out->n_bytes - start;
    sl_buf_printf(out, "%*s %-7s", width < 44 ? (int)(44 - width) : 0, "", sl_type_name((sl_type)t->type_id));
    if (c->type == (sl_type)t->type_id) sl_buf_printf(out, "%-10s", "");
    else sl_buf_printf(out, "-> %-7s", sl_type_name(c->type));
    sl_buf_printf(out, " %13" PRIu64 " bytes  ", r->out_bytes[i]);
    for (uint32_t d = 0; d < t->n_dims; d++) sl_buf_printf(out, d ? " x %" PRIu64 : "%" PRIu64, t->dim[d]);
    sl_buf_text(out, c->fell_back ? "  (the row is no whole number of the mix's blocks)\n" : "\n");
}

void sl_quantize_report_text(const sl_quantize_report *r, const sl_gguf *gguf, bool each, sl_buf *out) {
    kind kinds[SL_TYPE_ID_COUNT] = {0};
    size_t n_fallback;
    count_kinds(r, gguf, kinds, &n_fallback);
    for (size_t i = 0; each && i < sl_gguf_n_tensors(gguf); i++) print_tensor(r, i, sl_gguf_tensor_at(gguf, i), out);
    for (int type = 0; type < SL_TYPE_ID_COUNT; type++)
        if (kinds[type].n)
            sl_buf_printf(out, "%-7s %5zu tensors %10.1f MiB\n", sl_type_name((sl_type)type), kinds[type].n,
                          mib(kinds[type].n_bytes));
    sl_buf_printf(out, "%s: %.1f MiB -> %.1f MiB, %.2f -> %.2f bits a weight", r->mix, mib(r->n_in_bytes),
                  mib(r->n_out_bytes), bits_per_weight(r, r->n_in_bytes), bits_per_weight(r, r->n_out_bytes));
    if (!each) sl_buf_printf(out, ", %.1f s on %d threads", r->seconds, r->n_thread);
    sl_buf_text(out, "\n");
    if (n_fallback)
        sl_buf_printf(
            out, "note: %zu tensors have rows that are no whole number of the mix's blocks, and got another type\n",
            n_fallback);
    if (r->n_requantised)
        sl_buf_printf(out,
                      "warning: %zu tensors were quantised already, and the errors add up; start from F16 or BF16\n",
                      r->n_requantised);
    if (r->n_without_importance)
        sl_buf_printf(out, "warning: %zu tensors are not in the importance matrix\n", r->n_without_importance);
}

// ---- JSON ---------------------------------------------------------------------------------------

void sl_quantize_report_json(const sl_quantize_report *r, const sl_gguf *gguf, sl_buf *out) {
    kind kinds[SL_TYPE_ID_COUNT] = {0};
    size_t n_fallback;
    const char *comma = "";
    count_kinds(r, gguf, kinds, &n_fallback);
    sl_buf_printf(out,
                  "{\"mix\": \"%s\", \"n_params\": %" PRIu64 ", \"in_bytes\": %" PRIu64 ", \"out_bytes\": %" PRIu64
                  ", \"bits_per_weight\": %.4f, \"seconds\": %.3f, \"n_threads\": %d, \"n_fallback\": %zu, "
                  "\"n_requantised\": %zu, \"n_without_importance\": %zu,\n\"types\": {",
                  r->mix, r->n_params, r->n_in_bytes, r->n_out_bytes, bits_per_weight(r, r->n_out_bytes), r->seconds,
                  r->n_thread, n_fallback, r->n_requantised, r->n_without_importance);
    for (int type = 0; type < SL_TYPE_ID_COUNT; type++) {
        if (!kinds[type].n) continue;
        sl_buf_printf(out, "%s\"%s\": {\"n\": %zu, \"bytes\": %" PRIu64 "}", comma, sl_type_name((sl_type)type),
                      kinds[type].n, kinds[type].n_bytes);
        comma = ", ";
    }
    sl_buf_text(out, "},\n\"tensors\": [");
    for (size_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(gguf, i);
        sl_buf_text(out, i ? ",\n{\"name\": " : "\n{\"name\": ");
        sl_buf_json(out, t->name);
        sl_buf_printf(out, ", \"from\": \"%s\", \"to\": \"%s\", \"bytes\": %" PRIu64 ", \"fell_back\": %s}",
                      sl_type_name((sl_type)t->type_id), sl_type_name(r->choice[i].type), r->out_bytes[i],
                      r->choice[i].fell_back ? "true" : "false");
    }
    sl_buf_text(out, "]}\n");
}
