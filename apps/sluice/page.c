// SPDX-License-Identifier: MIT
//
// Markup, escaping, axes and their ticks; the style of all reports.
#include "page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--ground:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#667085;"
    "--rule:#e4e7ec;--one:#2563eb;--two:#d9730d;--roof:#98a2b3;--warn:#fff4e5;--warn-ink:#93500a}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#0f1319;--card:#171d26;--ink:#e6eaf0;"
    "--soft:#98a2b3;--rule:#2a3240;--one:#6ea8fe;--two:#f5a45d;--roof:#667085;--warn:#33260f;"
    "--warn-ink:#f7c77e}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}\n"
    "main{max-width:1180px;margin:0 auto;padding:32px 20px 48px}"
    "h1{font-size:26px;line-height:1.2;margin:0 0 4px}h2{font-size:16px;margin:0 0 12px}"
    "p{margin:0}.soft{color:var(--soft)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:14px;"
    "margin:24px 0 14px}.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,"
    "100%),1fr));gap:14px}\n"
    "section,.tile,.warn{background:var(--card);border:1px solid var(--rule);border-radius:12px;"
    "padding:18px 20px;min-width:0}.wide{grid-column:1/-1}"
    ".tile b{display:block;font-size:28px;line-height:1.25;font-weight:650;"
    "font-variant-numeric:tabular-nums}.tile b small{font-size:15px;font-weight:500;"
    "color:var(--soft)}\n"
    ".warn{background:var(--warn);color:var(--warn-ink);border-color:transparent;margin:14px 0}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;"
    "font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "th,td{text-align:right;padding:6px 10px;border-bottom:1px solid var(--rule)}"
    "th{color:var(--soft);font-weight:500}tr:last-child td{border-bottom:0}"
    "th:first-child,td:first-child{padding-left:0}th:last-child,td:last-child{padding-right:0}"
    ".small{width:auto}.cols{display:flex;flex-wrap:wrap;gap:22px "
    "64px;margin-top:22px}svg+svg{margin-top:16px}.note{margin-top:10px;"
    "font-size:13px}h2+.scroll{margin-top:-6px}\n"
    "svg{display:block;width:100%;height:auto;overflow:visible}svg text{font-size:12.5px;"
    "fill:var(--soft)}svg .label{fill:var(--ink)}svg .title{font-size:12.5px}\n"
    ".grid{stroke:var(--rule)}.axis{stroke:var(--soft);stroke-opacity:.6}.line{fill:none;"
    "stroke-width:2.25;stroke-linejoin:round}.line.one,.range.one{stroke:var(--one)}"
    ".range{stroke-width:1.5}.line.roof{stroke:var(--roof)}\n"
    "circle{stroke:var(--card);stroke-width:1.5}circle.one,rect.one{fill:var(--one)}"
    "circle.two{fill:var(--two)}.mark{stroke:var(--two);stroke-width:1.5;stroke-dasharray:4 3}"
    ".best{stroke:var(--two);stroke-opacity:.8;stroke-dasharray:5 4;fill:none}\n";

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

void page_begin(page *p, const char *name, const char *path, const char *command) {
    const char *slash = strrchr(path, '/');
    if (!*name) name = slash ? slash + 1 : path;
    page_markup(p, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                   "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>");
    page_text(p, name);
    page_markup(p, " \xc2\xb7 %s</title>\n<style>\n", command);
    if (p->status == APP_OK) p->status = text_append(&p->out, style, sizeof style - 1);
    page_markup(p, "</style></head>\n<body><main>\n<h1>");
    page_text(p, name);
    page_markup(p, "</h1>\n");
}

int page_end(page *p, const char *path) {
    page_markup(p, "</main></body></html>\n");
    new_file f = {0};
    int result = p->status == APP_OK ? new_file_open(&f, path) : p->status;
    if (result == APP_OK) result = new_file_write(&f, p->out.data, p->out.n);
    if (result == APP_OK) result = new_file_commit(&f);
    new_file_abandon(&f);
    text_free(&p->out);
    return result;
}

void page_tile(page *p, const char *value, const char *unit, const char *what) {
    page_markup(p,
                "<div class=\"tile\"><b>%s <small>%s</small></b><span class=\"soft\">%s</span>"
                "</div>\n",
                value, unit, what);
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
    if (fabs(value) < 1e-14) value = 0; // what adding up steps leaves; also -0
    while (fabs(value) >= 10000 && i + 1 < sizeof unit) value /= 1000, i++;
    int digits = fabs(value) >= 100 ? 0 : fabs(value) >= 10 ? 1 : fabs(value) >= 1 ? 2 : 3;
    bool tiny = value != 0 && fabs(value) < 0.001; // 0.0001, 1e-05
    int n = tiny ? snprintf(out.text, sizeof out.text, "%.3g", value)
                 : snprintf(out.text, sizeof out.text, "%.*f", digits, value);
    if (!tiny && strchr(out.text, '.')) { // no trailing zeros
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

void frame_dot(page *p, const char *class, double x, double y, const char *tip) {
    page_markup(p,
                "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"><title>%s</title>"
                "</circle>\n",
                class, x, y, tip);
}

void frame_label(page *p, double x, double y, const char *anchor, const char *words) {
    page_markup(p, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, words);
}

void frame_line_to(page *p, size_t i, double x, double y) { page_markup(p, "%c%.1f %.1f", i ? 'L' : 'M', x, y); }
