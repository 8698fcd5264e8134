// SPDX-License-Identifier: MIT
//
// The bar.
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

#include "interrupt.h"

enum { WIDTH = 30, PATIENCE_MS = 300, REDRAW_MS = 50 };

void progress_start(progress *p, const char *what) {
    *p = (progress){.what = what, .start_ms = app_now_ms(), .terminal = isatty(STDERR_FILENO) == 1};
}

int progress_update(void *user, uint64_t n, uint64_t total) {
    progress *p = user;
    double now = app_now_ms();
    if (p->terminal && total && now - p->start_ms > PATIENCE_MS && now - p->drawn_ms > REDRAW_MS) {
        static const char full[WIDTH + 1] = "##############################";
        static const char rest[WIDTH + 1] = "..............................";
        double share = n < total ? (double)n / (double)total : 1.0;
        int filled = (int)(share * WIDTH);
        fprintf(stderr, "\r%s [%.*s%.*s] %3.0f %% ", p->what, filled, full, WIDTH - filled, rest, share * 100);
        p->visible = true, p->drawn_ms = now;
    }
    return interrupt_seen();
}

void progress_end(progress *p) {
    if (p->visible) fputs("\r\033[K", stderr); // back to the line's start, and clear it
    p->visible = false;
}
