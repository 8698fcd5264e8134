// SPDX-License-Identifier: MIT
//
// A bar on stderr for work that takes a while. Shown only on a terminal and only once the work has
// gone on for a moment; gone without a trace when it ends. Also where long work learns of Ctrl-C.
#ifndef SLUICE_PROGRESS_H
#define SLUICE_PROGRESS_H

#include "app.h"

typedef struct progress {
    const char *what;
    double start_ms, drawn_ms;
    bool terminal, visible;
} progress;

void progress_start(progress *p, const char *what);
int progress_update(void *p, uint64_t n, uint64_t total); // a sluice_progress; not 0 after Ctrl-C
void progress_end(progress *p);

#endif
