// SPDX-License-Identifier: MIT
//
// What sluice eval kv prints: a table, an object, a page.
#include <stdio.h>
#include <string.h>

#include "conversation.h"
#include "eval_chart.h"
#include "eval_kv.h"
#include "json_out.h"

static size_t n_scored(const kv_table *t) { return t->type[0].nll.n; }

// What to ask the engine for. --kv sets the types of K and V, --kv-k and --kv-v one of them.
static void write_advice(char *out, size_t cap, const kv_table *t) {
    const kv_type *best = &t->type[kv_recommended(t)];
    bool apart = strcmp(best->k, best->v) != 0, any = best != &t->type[0];
    snprintf(out, cap, "recommended: %s %s%s%s, %s costs less than %.1f %% even at twice its standard error",
             apart ? "--kv-k" : "--kv", best->k, apart ? " --kv-v " : "", apart ? best->v : "",
             any ? "the smallest type here that" : "as no smaller type here", 100 * KV_BOUND);
}

int kv_print_table(const kv_table *t) {
    text out = {0};
    char line[320], advice[200];
    snprintf(line, sizeof line, "%-12s %6s %11s %20s %10s %10s %8s\n", "KV type", "bits", "perplexity", "above f16",
             "KL mean", "KL p99", "top-1");
    int result = text_append(&out, line, strlen(line));
    for (size_t i = 0; i < t->n && result == APP_OK; i++) {
        const kv_type *type = &t->type[i];
        summary gap = series_summarize(&type->gap);
        if (i == 0) snprintf(line, sizeof line, "%-12s %6.2f %11.4f\n", type->name, kv_bits(t, i), kv_ppl(type));
        else
            snprintf(line, sizeof line, "%-12s %6.2f %11.4f %+9.3f %% +- %5.3f %10.2e %10.2e %6.2f %%\n", type->name,
                     kv_bits(t, i), kv_ppl(type), 100 * kv_loss(type), 100 * kv_loss_error(type), gap.mean, gap.p99,
                     100 * (double)type->n_same / (double)n_scored(t));
        result = text_append(&out, line, strlen(line));
    }
    write_advice(advice, sizeof advice, t);
    snprintf(line, sizeof line,
             "%zu windows of %zu tokens, %zu scored; +- is the standard error of the difference\n%s\n", t->n_done,
             t->n_ctx, n_scored(t), advice);
    if (result == APP_OK) result = text_append(&out, line, strlen(line));
    if (result == APP_OK) result = out_write(out.data, out.n);
    text_free(&out);
    return result;
}

static json_t *type_to_json(const kv_table *t, size_t i) {
    const kv_type *type = &t->type[i];
    summary gap = series_summarize(&type->gap);
    return json_pack("{s:s, s:s, s:s, s:f, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:b}", "name", type->name, "k",
                     type->k, "v", type->v, "bits", kv_bits(t, i), "position_bytes", (json_int_t)type->position_bytes,
                     "ppl", json_finite(kv_ppl(type)), "loss", json_finite(kv_loss(type)), "loss_stderr",
                     json_finite(kv_loss_error(type)), "kl_mean", json_finite(gap.mean), "kl_median",
                     json_finite(gap.p50), "kl_p99", json_finite(gap.p99), "kl_max", json_finite(gap.max), "top1",
                     (double)type->n_same / (double)n_scored(t), "safe", (int)(i == 0 || kv_is_safe(type)));
}

int kv_print_json(const kv_table *t) {
    json_t *types = json_array();
    for (size_t i = 0; i < t->n; i++) json_array_append_new(types, type_to_json(t, i));
    return json_print(json_pack("{s:o, s:I, s:I, s:I, s:f, s:s, s:o}", "model",
                                json_any_text(t->model_path, strlen(t->model_path)), "ctx", (json_int_t)t->n_ctx,
                                "windows", (json_int_t)t->n_done, "scored", (json_int_t)n_scored(t), "bound", KV_BOUND,
                                "recommended", t->type[kv_recommended(t)].name, "types", types));
}

static void add_table(page *p, const kv_table *t) {
    page_markup(p, "<section class=\"wide\"><h2>Types</h2><div "
                   "class=\"scroll\"><table><tr><th>type<th>bits<th>perplexity<th>above f16"
                   "<th>standard error<th>KL mean<th>KL p99<th>likeliest equal</tr>\n");
    for (size_t i = 0; i < t->n; i++) {
        const kv_type *type = &t->type[i];
        summary gap = series_summarize(&type->gap);
        page_markup(p, "<tr><td>%s<td>%.2f<td>%.4f<td>%+.3f %%<td>%.3f %%<td>%.2e<td>%.2e<td>%.2f %%</tr>\n",
                    type->name, kv_bits(t, i), kv_ppl(type), 100 * kv_loss(type), 100 * kv_loss_error(type), gap.mean,
                    gap.p99, 100 * (double)type->n_same / (double)n_scored(t));
    }
    page_markup(p, "</table></div></section>\n");
}

int kv_write_page(const kv_table *t, const char *path) {
    page p = {0};
    char advice[200], number[32];
    const kv_type *best = &t->type[kv_recommended(t)];
    write_advice(advice, sizeof advice, t);
    page_begin(&p, t->session.model_info.name, t->model_path, "sluice eval kv");
    page_markup(&p, "<p class=\"soft\">%s</p>\n<div class=\"tiles\">\n", advice);
    page_tile(&p, best->name, "", "recommended");
    page_tile(&p, number_show(kv_bits(t, kv_recommended(t))).text, "bits", "of a value");
    snprintf(number, sizeof number, "%+.2f", 100 * kv_loss(best));
    page_tile(&p, number, "%", "perplexity above f16");
    page_markup(&p, "</div>\n<div class=\"cards\"><section class=\"wide\"><h2>Cost by bits</h2>\n");
    chart_kv(&p, t);
    page_markup(&p, "<p class=\"soft note\">Bars are twice the standard error. ");
    page_text(&p, t->text_path);
    page_markup(&p, ": %zu windows of %zu tokens, %zu scored.</p></section>\n", t->n_done, t->n_ctx, n_scored(t));
    add_table(&p, t);
    page_markup(&p, "</div>\n");
    return page_end(&p, path);
}
