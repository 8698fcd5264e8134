// SPDX-License-Identifier: MIT
//
// The four charts: TTFT by prompt length, decode by depth beside its limit, the times between
// tokens, and the roofline.
#include <math.h>
#include <stdio.h>

#include "bench_chart.h"

enum { WIDTH = 560, HEIGHT = 300, LEFT = 56, RIGHT = 544, TOP = 30, BOTTOM = 252 };

void chart_ttft(page *p, const bench *b) {
    double most = 0;
    for (size_t i = 0; i < b->n_prefill; i++) most = fmax(most, series_summarize(&b->prefill[i].ttft).max);
    frame f = {WIDTH, HEIGHT, axis_from_zero(b->prefill[b->n_prefill - 1].n, LEFT, RIGHT),
               axis_from_zero(most, BOTTOM, TOP)};
    frame_begin(p, &f, "Time to first token by prompt length", "prompt, tokens", "time to first token, ms");
    page_markup(p, "<path class=\"line one\" d=\"");
    for (size_t i = 0; i < b->n_prefill; i++)
        frame_line_to(p, i, axis_place(&f.x, b->prefill[i].n),
                      axis_place(&f.y, series_summarize(&b->prefill[i].ttft).p50));
    page_markup(p, "\"/>\n");
    for (size_t i = 0; i < b->n_prefill; i++) {
        const bench_prefill *q = &b->prefill[i];
        summary s = series_summarize(&q->ttft);
        double x = axis_place(&f.x, q->n), y = axis_place(&f.y, s.p50);
        char tip[128];
        page_markup(p, "<path class=\"range one\" d=\"M%.1f %.1fV%.1f\"/>", x, axis_place(&f.y, s.min),
                    axis_place(&f.y, s.max));
        snprintf(tip, sizeof tip, "%d tokens: %.1f ms, %.1f tok/s", (int)q->n, s.p50, series_summarize(&q->tok_s).p50);
        frame_dot(p, "one", x, y, tip);
        bool last = i + 1 == b->n_prefill;
        frame_label(p, last ? x - 9 : x + 9, last ? y - 6 : y + 14, last ? "end" : "start", number_show(s.p50).text);
    }
    frame_end(p);
}

static double limit_tok_s(const bench *b, const bench_decode *d) { return bench_read_gb_s(b) * 1e9 / d->bytes; }

void chart_depth(page *p, const bench *b) {
    double most = 0;
    for (size_t i = 0; i < b->n_decode; i++) {
        double run = series_summarize(&b->decode[i].tok_s).max, limit = limit_tok_s(b, &b->decode[i]);
        most = fmax(most, fmax(run, limit));
    }
    frame f = {WIDTH, HEIGHT, axis_from_zero(b->decode[b->n_decode - 1].depth, LEFT, RIGHT),
               axis_from_zero(most * 1.1, BOTTOM, TOP)};
    frame_begin(p, &f, "Decode speed by depth of the context", "depth, tokens", "decode, tok/s");
    for (int limit = 1; limit >= 0; limit--) {
        page_markup(p, "<path class=\"line %s\" d=\"", limit ? "roof" : "one");
        for (size_t i = 0; i < b->n_decode; i++) {
            const bench_decode *d = &b->decode[i];
            double value = limit ? limit_tok_s(b, d) : series_summarize(&d->tok_s).p50;
            frame_line_to(p, i, axis_place(&f.x, d->depth), axis_place(&f.y, value));
        }
        page_markup(p, "\"/>\n");
    }
    // Deeper is slower, so the line falls away from a label at its beginning.
    double y_limit = axis_place(&f.y, limit_tok_s(b, &b->decode[0]));
    frame_label(p, axis_place(&f.x, b->decode[0].depth) + 4, y_limit - 8, "start", "what the memory allows");
    for (size_t i = 0; i < b->n_decode; i++) {
        const bench_decode *d = &b->decode[i];
        summary s = series_summarize(&d->tok_s);
        double x = axis_place(&f.x, d->depth), y = axis_place(&f.y, s.p50);
        char tip[128];
        page_markup(p, "<path class=\"range one\" d=\"M%.1f %.1fV%.1f\"/>", x, axis_place(&f.y, s.min),
                    axis_place(&f.y, s.max));
        snprintf(tip, sizeof tip, "depth %d: %.1f tok/s, %.0f %% of the limit", (int)d->depth, s.p50,
                 100 * bench_share(b, bench_decode_gb_s(d)));
        frame_dot(p, "one", x, y, tip);
        bool end = x > RIGHT - 60;
        frame_label(p, end ? x : x + 9, y + 18, end ? "end" : "start", number_show(s.p50).text);
    }
    frame_end(p);
}

// ---- times between tokens -----------------------------------------------------------------------

enum { BINS = 48, LOW_HEIGHT = 180, LOW_BOTTOM = 132 };

// What is past `to` counts in the last bin.
static size_t count_bins(size_t bin[BINS], const series *itl, double from, double to) {
    size_t most = 0;
    for (size_t i = 0; i < BINS; i++) bin[i] = 0;
    for (size_t i = 0; i < itl->n; i++) {
        double at = (itl->value[i] - from) / (to - from) * BINS;
        size_t k = at >= BINS ? BINS - 1 : at > 0 ? (size_t)at : 0;
        if (++bin[k] > most) most = bin[k];
    }
    return most;
}

static void add_mark(page *p, const frame *f, double value, const char *name, double y) {
    double x = axis_place(&f->x, value);
    bool end = x > RIGHT - 90;
    char words[64];
    snprintf(words, sizeof words, "%s %s", name, number_show(value).text);
    page_markup(p, "<path class=\"mark\" d=\"M%.1f %.1fV%d\"/>", x, y - 9, LOW_BOTTOM);
    frame_label(p, end ? x - 4 : x + 4, y, end ? "end" : "start", words);
}

void chart_itl(page *p, const bench *b, const bench_decode *d, double from, double to) {
    (void)b;
    size_t bin[BINS], most = count_bins(bin, &d->itl, from, to);
    summary s = series_summarize(&d->itl);
    frame f = {WIDTH, LOW_HEIGHT, {from, to, LEFT, RIGHT, false}, axis_from_zero((double)most, LOW_BOTTOM, TOP)};
    char title[96];
    snprintf(title, sizeof title, "tokens, at depth %d", (int)d->depth);
    frame_begin(p, &f, "Times between tokens", "time between tokens, ms", title);
    double width = (double)(RIGHT - LEFT) / BINS;
    for (size_t i = 0; i < BINS; i++) {
        double y = axis_place(&f.y, (double)bin[i]), left = from + (to - from) * (double)i / BINS;
        if (!bin[i]) continue;
        page_markup(p,
                    "<rect class=\"one\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
                    "<title>%zu from %.3g ms%s</title></rect>\n",
                    LEFT + width * (double)i + 0.5, y, width - 1, LOW_BOTTOM - y, bin[i], left,
                    i + 1 == BINS ? " on" : "");
    }
    add_mark(p, &f, s.p50, "p50", 26);
    add_mark(p, &f, s.p99, "p99", 40);
    char words[48];
    snprintf(words, sizeof words, "max %s%s", number_show(s.max).text, s.max > to ? " \xe2\x86\x92" : "");
    frame_label(p, RIGHT, 12, "end", words);
    frame_end(p);
}

// ---- roofline -----------------------------------------------------------------------------------

typedef struct point {
    double intensity, gop_s; // operations a byte; 10^9 operations a second
} point;

static point decode_point(const bench_decode *d) {
    double tok_s = series_summarize(&d->tok_s).p50;
    return (point){d->n_op / d->bytes, d->n_op * tok_s * 1e-9};
}

static point prefill_point(const bench_prefill *q) {
    double tok_s = series_summarize(&q->tok_s).p50;
    return (point){q->n_op / q->bytes, q->n_op / q->n * tok_s * 1e-9};
}

static void stretch(frame *f, point at) {
    f->x.from = fmin(f->x.from, at.intensity / 2), f->x.to = fmax(f->x.to, at.intensity * 2);
    f->y.from = fmin(f->y.from, at.gop_s / 3), f->y.to = fmax(f->y.to, at.gop_s * 3);
}

static frame roofline_frame(const bench *b, double *best) {
    frame f = {WIDTH, HEIGHT, {INFINITY, 0, LEFT, RIGHT, true}, {INFINITY, 0, BOTTOM, TOP, true}};
    *best = 0;
    for (size_t i = 0; i < b->n_decode; i++) stretch(&f, decode_point(&b->decode[i]));
    for (size_t i = 0; i < b->n_prefill; i++) {
        point at = prefill_point(&b->prefill[i]);
        stretch(&f, at);
        *best = fmax(*best, at.gop_s);
    }
    return f;
}

static void add_roof(page *p, const frame *f, double gb_s, double best) {
    double from = f->x.from, to = f->x.to; // where the slope y = gb_s * x is inside the box
    if (from * gb_s < f->y.from) from = f->y.from / gb_s;
    if (to * gb_s > f->y.to) to = f->y.to / gb_s;
    if (from >= to) return;
    char words[64];
    page_markup(p, "<path class=\"line roof\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", axis_place(&f->x, from),
                axis_place(&f->y, from * gb_s), axis_place(&f->x, to), axis_place(&f->y, to * gb_s));
    snprintf(words, sizeof words, "memory, %.1f GB/s", gb_s);
    frame_label(p, axis_place(&f->x, to) + 6, axis_place(&f->y, to * gb_s) + 10, "start", words);
    if (best <= 0) return;
    double y = axis_place(&f->y, best);
    page_markup(p, "<path class=\"best\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, RIGHT);
    snprintf(words, sizeof words, "best prefill, %s Gop/s", number_show(best).text);
    frame_label(p, RIGHT, y - 7, "end", words);
}

void chart_roofline(page *p, const bench *b) {
    double best;
    frame f = roofline_frame(b, &best);
    char tip[128], words[64];
    frame_begin(p, &f, "Roofline", "operations for each byte read from memory", "10\xe2\x81\xb9 operations a second");
    add_roof(p, &f, bench_read_gb_s(b), best);
    for (size_t i = 0; i < b->n_prefill; i++) {
        point at = prefill_point(&b->prefill[i]);
        double x = axis_place(&f.x, at.intensity), y = axis_place(&f.y, at.gop_s);
        snprintf(tip, sizeof tip, "prefill of %d: %.1f Gop/s", (int)b->prefill[i].n, at.gop_s);
        frame_dot(p, "two", x, y, tip);
        snprintf(words, sizeof words, "%s%d", i ? "" : "prefill ", (int)b->prefill[i].n);
        frame_label(p, x, y + 18, "middle", words);
    }
    for (size_t i = 0; i < b->n_decode; i++) {
        const bench_decode *d = &b->decode[i];
        point at = decode_point(d);
        double x = axis_place(&f.x, at.intensity), y = axis_place(&f.y, at.gop_s);
        double share = 100 * bench_share(b, bench_decode_gb_s(d));
        snprintf(tip, sizeof tip, "decode at depth %d: %.1f Gop/s, %.0f %% of the memory's limit", (int)d->depth,
                 at.gop_s, share);
        frame_dot(p, "one", x, y, tip);
        snprintf(words, sizeof words, "decode, %.0f %%", share);
        if (i == 0) frame_label(p, x + 10, y + 6, "start", words);
    }
    frame_end(p);
}
