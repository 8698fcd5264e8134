// SPDX-License-Identifier: MIT
//
// Parts of the HTML report: text with markup kept apart, and the axes of a chart. A failure is
// remembered, so that a page is written through and asked about once.
#ifndef SLUICE_BENCH_PAGE_H
#define SLUICE_BENCH_PAGE_H

#include "bench.h"
#include "files.h"

typedef struct page {
    text out; // owned
    int status;
} page; // zero-initialised is empty

void page_markup(page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void page_text(page *p, const char *bytes); // any bytes, shown as they are

// Linear, or logarithmic from a positive number. Pixels in the chart's own units.
typedef struct axis {
    double from, to; // values at the ends
    double at, end;  // pixels there
    bool log;
} axis;

axis axis_from_zero(double most, double at, double end); // to a round number past `most`
double axis_place(const axis *a, double value);

enum { AXIS_TICKS = 16 };
size_t axis_ticks(const axis *a, double tick[AXIS_TICKS]);
// "1,234" is never written: 4 significant digits at most, with k, M, G where that is shorter.
typedef struct number_text {
    char text[24];
} number_text;
number_text number_show(double value);

typedef struct frame { // the plot's box inside a drawing of `width` by `height`
    double width, height;
    axis x, y;
} frame;

// Begins the drawing: grid, ticks and titles. `label` is what a screen reader says.
void frame_begin(page *p, const frame *f, const char *label, const char *x_title, const char *y_title);
void frame_end(page *p);

// The charts of the report.
void chart_ttft(page *p, const bench *b);
void chart_depth(page *p, const bench *b);
void chart_itl(page *p, const bench *b, const bench_decode *d, double from, double to);
void chart_roofline(page *p, const bench *b);

#endif
