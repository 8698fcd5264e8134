// SPDX-License-Identifier: MIT
//
// Ctrl-C as a flag.
#include "interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t count;

static void on_interrupt(int signal_number) {
    (void)signal_number;
    if (++count > 1) _exit(130); // the work between two questions takes too long for this user
}

void interrupt_catch(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt; // without SA_RESTART: a read that waits for input ends
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void interrupt_clear(void) { count = 0; }

bool interrupt_seen(void) { return count > 0; }
