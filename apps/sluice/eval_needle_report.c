// SPDX-License-Identifier: MIT
//
// What sluice eval needle prints: a table, an object, a page.
#include <stdio.h>
#include <string.h>

#include "conversation.h"
#include "eval_chart.h"
#include "eval_needle.h"
#include "json_out.h"

static void count(const needle_table *t, size_t *n_found, size_t *n_tried) {
    *n_found = *n_tried = 0;
    for (size_t c = 0; c < t->lengths.n; c++)
        for (size_t r = 0; r < t->depths.n; r++) {
            const needle_cell *cell = needle_cell_at(t, c, r);
            *n_found += cell->n_found, *n_tried += cell->n_tried;
        }
}

int needle_print_table(const needle_table *t) {
    text out = {0};
    char word[128];
    size_t n_found, n_tried;
    count(t, &n_found, &n_tried);
    int result = text_append(&out, "depth ", 6);
    for (size_t c = 0; c < t->lengths.n && result == APP_OK; c++) {
        snprintf(word, sizeof word, " %9d", (int)t->lengths.value[c]);
        result = text_append(&out, word, strlen(word));
    }
    for (size_t r = 0; r < t->depths.n && result == APP_OK; r++) {
        snprintf(word, sizeof word, "\n%4d %%", (int)t->depths.value[r]);
        result = text_append(&out, word, strlen(word));
        for (size_t c = 0; c < t->lengths.n && result == APP_OK; c++) {
            const needle_cell *cell = needle_cell_at(t, c, r);
            snprintf(word, sizeof word, " %4zu/%-4zu", cell->n_found, cell->n_tried);
            result = text_append(&out, word, strlen(word));
        }
    }
    snprintf(word, sizeof word, "\nfound %zu of %zu (%.1f %%), by depth and tokens of the prompt\n", n_found, n_tried,
             100 * (double)n_found / (double)n_tried);
    if (result == APP_OK) result = text_append(&out, word, strlen(word));
    if (result == APP_OK) result = out_write(out.data, out.n);
    text_free(&out);
    return result;
}

int needle_print_json(const needle_table *t) {
    size_t n_found, n_tried;
    count(t, &n_found, &n_tried);
    json_t *cells = json_array();
    for (size_t c = 0; c < t->lengths.n; c++)
        for (size_t r = 0; r < t->depths.n; r++) {
            const needle_cell *cell = needle_cell_at(t, c, r);
            json_array_append_new(cells,
                                  json_pack("{s:i, s:i, s:I, s:I, s:I, s:o}", "length", (int)t->lengths.value[c],
                                            "depth", (int)t->depths.value[r], "tokens", (json_int_t)cell->n_tok,
                                            "found", (json_int_t)cell->n_found, "tried", (json_int_t)cell->n_tried,
                                            "said", json_any_text(cell->said, strlen(cell->said))));
        }
    return json_print(json_pack("{s:o, s:I, s:I, s:I, s:f, s:o}", "model",
                                json_any_text(t->model_path, strlen(t->model_path)), "seed", (json_int_t)t->seed,
                                "found", (json_int_t)n_found, "tried", (json_int_t)n_tried, "recall",
                                (double)n_found / (double)n_tried, "cells", cells));
}

int needle_write_page(const needle_table *t, const char *path) {
    page p = {0};
    size_t n_found, n_tried;
    char share[32];
    count(t, &n_found, &n_tried);
    snprintf(share, sizeof share, "%.1f", 100 * (double)n_found / (double)n_tried);
    page_begin(&p, t->session.model_info.name, t->model_path, "sluice eval needle");
    page_markup(&p, "<p class=\"soft\">A sentence with a number is hidden in a text, and the model is asked for the "
                    "number.</p>\n<div class=\"tiles\">\n");
    page_tile(&p, share, "%", "found");
    page_markup(&p, "</div>\n<section><h2>Recall by length and depth</h2>\n");
    chart_needle(&p, t);
    page_markup(&p, "</section>\n");
    return page_end(&p, path);
}
