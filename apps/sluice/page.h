// SPDX-License-Identifier: MIT
//
// A report as one HTML file that needs no other, light or dark as its reader's screen is: text with markup kept apart,
// and the axes and marks of charts. A failure is remembered, so that a page is written through and asked about once. It
// must not know what is reported.
#ifndef SLUICE_PAGE_H
#define SLUICE_PAGE_H

#include "files.h"

typedef struct page {
    text out; // owned
    int status;
} page; // zero-initialised is empty

void page_markup(page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void page_text(page *p, const char *bytes); // any bytes, shown as they are

// From the first byte to <main> and the heading, which is `name`, or what `path` is called if that is empty.
void page_begin(page *p, const char *name, const char *path, const char *command);
void page_tile(page *p, const char *value, const char *unit, const char *what); // a figure writ large
int page_end(page *p, const char *path); // writes the file and frees the page; APP_OK, or has printed why not

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
void frame_dot(page *p, const char *class, double x, double y, const char *tip);
void frame_label(page *p, double x, double y, const char *anchor, const char *words);
// One point of a path after another, in the text of its "d".
void frame_line_to(page *p, size_t i, double x, double y);

#endif
