// SPDX-License-Identifier: MIT
//
// The charts: divergence by position, what KV types cost by their bits, recall by length and depth.
#include "eval_chart.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 760, HEIGHT = 320, LEFT = 60, RIGHT = 744, TOP = 30, BOTTOM = 272 };

// ---- divergence -----------------------------------------------------------------------------------------------------

enum { BINS = 228 }; // of positions, 3 units wide

typedef struct span {
    double min, max, mean;
} span;

static span bin_span(const series *gap, size_t from, size_t to) {
    span s = {INFINITY, 0, 0};
    for (size_t i = from; i < to; i++) {
        s.min = fmin(s.min, gap->value[i]), s.max = fmax(s.max, gap->value[i]);
        s.mean += gap->value[i] / (double)(to - from);
    }
    return s;
}

void chart_divergence(page *p, const series *gap) {
    summary all = series_summarize(gap);
    if (gap->n == 0) return;
    double most = fmax(all.max, 1e-9) * 2, least = fmax(fmin(all.p50 / 100, most / 100), 1e-12);
    frame f = {WIDTH, HEIGHT, axis_from_zero((double)gap->n, LEFT, RIGHT), {least, most, BOTTOM, TOP, true}};
    size_t n_bin = gap->n < BINS ? gap->n : BINS;
    frame_begin(p, &f, "KL divergence by position", "position", "KL divergence, nats");
    for (int line = 0; line < 2; line++) { // spans, then the means over them
        page_markup(p, "<path class=\"%s\" d=\"", line ? "line one" : "axis");
        for (size_t b = 0; b < n_bin; b++) {
            size_t from = b * gap->n / n_bin, to = (b + 1) * gap->n / n_bin;
            span s = bin_span(gap, from, to);
            double x = axis_place(&f.x, (double)(from + to) / 2 + 1);
            if (line) frame_line_to(p, b, x, axis_place(&f.y, fmax(s.mean, least)));
            else
                page_markup(p, "M%.1f %.1fV%.1f", x, axis_place(&f.y, fmax(s.min, least)),
                            axis_place(&f.y, fmax(s.max, least)));
        }
        page_markup(p, "\"/>\n");
    }
    double y = axis_place(&f.y, fmax(all.p99, least));
    page_markup(p, "<path class=\"best\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, RIGHT);
    frame_label(p, RIGHT, y - 7, "end", "p99");
    frame_end(p);
}

// ---- KV types -------------------------------------------------------------------------------------------------------

enum { COST_MAX = 10 }; // per cent; what costs more is drawn at the upper edge

void chart_kv(page *p, const kv_table *t) {
    double most = 2, least = -0.5;
    for (size_t i = 0; i < t->n; i++) {
        double loss = 100 * kv_loss(&t->type[i]), error = 200 * kv_loss_error(&t->type[i]);
        if (isfinite(loss)) most = fmax(most, loss + error), least = fmin(least, loss - error);
    }
    frame f = {WIDTH,
               HEIGHT,
               {0, 18, LEFT, RIGHT, false},
               {floor(fmax(least, -COST_MAX)), ceil(fmin(most, COST_MAX)), BOTTOM, TOP, false}};
    frame_begin(p, &f, "Cost of KV types by their bits", "bits of a value", "perplexity above f16, %");
    double y_bound = axis_place(&f.y, 100 * KV_BOUND);
    page_markup(p, "<path class=\"best\" d=\"M%d %.1fH%d\"/>\n", LEFT, y_bound, RIGHT);
    frame_label(p, RIGHT, y_bound - 7, "end", "above this nothing is recommended");
    for (size_t i = 0; i < t->n; i++) {
        const kv_type *type = &t->type[i];
        double loss = 100 * kv_loss(type), error = 200 * kv_loss_error(type), x = axis_place(&f.x, kv_bits(t, i));
        double y = axis_place(&f.y, isfinite(loss) ? loss : f.y.to);
        char tip[160];
        snprintf(tip, sizeof tip, "%s: %.2f bits, %+.2f %% +- %.2f", type->name, kv_bits(t, i), loss, error / 2);
        if (isfinite(loss))
            page_markup(p, "<path class=\"range one\" d=\"M%.1f %.1fV%.1f\"/>", x, axis_place(&f.y, loss - error),
                        axis_place(&f.y, loss + error));
        frame_dot(p, kv_is_safe(type) || i == 0 ? "one" : "two", x, y, tip);
        frame_label(p, x + 9, y - 7, x > RIGHT - 80 ? "end" : "start", type->name);
    }
    frame_end(p);
}

// ---- recall ---------------------------------------------------------------------------------------------------------

enum { CELL = 46, SIDE = 64, HEAD = 34 };

void chart_needle(page *p, const needle_table *t) {
    double width = (WIDTH - SIDE) / fmax((double)t->lengths.n, 4);
    page_markup(p, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Recall by length and depth\">\n", WIDTH,
                HEAD + CELL * (int)t->depths.n + 22);
    page_markup(p,
                "<text class=\"title\" x=\"4\" y=\"12\">depth, %%</text><text class=\"title\" x=\"%d\" y=\"%d\" "
                "text-anchor=\"end\">length of the prompt, tokens</text>\n",
                WIDTH, HEAD + CELL * (int)t->depths.n + 18);
    for (size_t c = 0; c < t->lengths.n; c++)
        page_markup(p, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", SIDE + width * ((double)c + 0.5),
                    HEAD - 10, (int)t->lengths.value[c]);
    for (size_t r = 0; r < t->depths.n; r++) {
        double y = HEAD + CELL * (double)r;
        page_markup(p, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", SIDE - 12, y + CELL / 2.0 + 4,
                    (int)t->depths.value[r]);
        for (size_t c = 0; c < t->lengths.n; c++) {
            const needle_cell *cell = needle_cell_at(t, c, r);
            double recall = (double)cell->n_found / (double)cell->n_tried;
            page_markup(p,
                        "<rect class=\"one\" fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                        "height=\"%d\" rx=\"5\"><title>",
                        0.08 + 0.72 * recall, SIDE + width * (double)c, y, width - 4, CELL - 4);
            page_text(p, cell->said);
            page_markup(p,
                        "</title></rect><text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%zu / %zu"
                        "</text>\n",
                        SIDE + width * ((double)c + 0.5) - 2, y + CELL / 2.0 + 2, cell->n_found, cell->n_tried);
        }
    }
    frame_end(p);
}
