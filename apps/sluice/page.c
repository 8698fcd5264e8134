// SPDX-License-Identifier: MIT
//
// Markup, escaping, axes and their ticks.
#include "bench_page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void page_markup(page *p, const char *fmt, ...) {
    char line[4096];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (p->status != APP_OK) return;
    if (n < 0 || n >= (int)sizeof line) p->status = app_fail("a line of the report is too long");
    else p->status = text_append(&p->out, line, (size_t)n);
}

// Control characters and bytes past ASCII that are no UTF-8 would spoil the file: a browser shows a
// replacement for the latter, the former become '?'.
void page_text(page *p, const char *bytes) {
    for (const char *c = bytes; *c && p->status == APP_OK; c++) {
        const char *as = *c == '&' ? "&amp;" : *c == '<' ? "&lt;" : *c == '>' ? "&gt;" : *c == '"' ? "&quot;" : NULL;
        char plain[2] = {(unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c, '\0'};
        if (!as) as = plain;
        p->status = text_append(&p->out, as, strlen(as));
    }
}

// ---- axes ---------------------------------------------------------------------------------------

// 1, 2 or 5 times a power of ten, so that about `n` of them make `length`.
static double round_step(double length, int n) {
    double raw = length / n, power = pow(10, floor(log10(raw))), lead = raw / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

axis axis_from_zero(double most, double at, double end) {
    if (!(most > 0) || !isfinite(most)) most = 1;
    double step = round_step(most, 5);
    return (axis){0, ceil(most * 1.02 / step) * step, at, end, false};
}

double axis_place(const axis *a, double value) {
    double share = a->log ? log(value / a->from) / log(a->to / a->from) : (value - a->from) / (a->to - a->from);
    return a->at + (a->end - a->at) * fmin(fmax(share, 0), 1);
}

size_t axis_ticks(const axis *a, double tick[AXIS_TICKS]) {
    size_t n = 0;
    if (!a->log) {
        double step = round_step(a->to - a->from, 5);
        for (double v = ceil(a->from / step) * step; v <= a->to + step * 1e-6 && n < AXIS_TICKS; v += step)
            tick[n++] = v;
        return n;
    }
    double every = log10(a->to / a->from) > 2.5 ? 10 : 2; // few decades: also between them
    double v = pow(every, ceil(log(a->from) / log(every) - 1e-9));
    for (; v <= a->to * (1 + 1e-9) && n < AXIS_TICKS; v *= every) tick[n++] = v;
    return n;
}

number_text number_show(double value) {
    number_text out;
    static const char unit[] = {'\0', 'k', 'M', 'G', 'T'};
    size_t i = 0;
    while (fabs(value) >= 10000 && i + 1 < sizeof unit) value /= 1000, i++;
    int digits = fabs(value) >= 100 ? 0 : fabs(value) >= 10 ? 1 : fabs(value) >= 1 ? 2 : 3;
    int n = snprintf(out.text, sizeof out.text, "%.*f", digits, value);
    if (strchr(out.text, '.')) { // no trailing zeros
        while (out.text[n - 1] == '0') out.text[--n] = '\0';
        if (out.text[n - 1] == '.') out.text[--n] = '\0';
    }
    snprintf(out.text + n, sizeof out.text - (size_t)n, "%.1s", &unit[i]);
    return out;
}

void frame_begin(page *p, const frame *f, const char *label, const char *x_title, const char *y_title) {
    double tick[AXIS_TICKS];
    page_markup(p, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n", f->width, f->height, label);
    size_t n = axis_ticks(&f->y, tick);
    for (size_t i = 0; i < n; i++) {
        double y = axis_place(&f->y, tick[i]);
        page_markup(p, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", f->x.at, y, f->x.end);
        page_markup(p, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", f->x.at - 8, y + 4,
                    number_show(tick[i]).text);
    }
    n = axis_ticks(&f->x, tick);
    for (size_t i = 0; i < n; i++) {
        double x = axis_place(&f->x, tick[i]);
        page_markup(p, "<path class=\"axis\" d=\"M%.1f %.1fv5\"/>", x, f->y.at);
        page_markup(p,
                    "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s"
                    "</text>\n",
                    x, f->y.at + 19, number_show(tick[i]).text);
    }
    page_markup(p, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", f->x.at, f->y.at, f->x.end);
    page_markup(p, "<text class=\"title\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", f->x.end,
                f->height - 4, x_title);
    page_markup(p, "<text class=\"title\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", 4.0, 12.0, y_title);
}

void frame_end(page *p) { page_markup(p, "</svg>\n"); }
