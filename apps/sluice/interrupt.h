// SPDX-License-Identifier: MIT
//
// Ctrl-C as a question that long work asks from time to time.
#ifndef SLUICE_INTERRUPT_H
#define SLUICE_INTERRUPT_H

#include <stdbool.h>

void interrupt_catch(void); // from now on the first Ctrl-C is only noted; the second ends the process
void interrupt_clear(void);
bool interrupt_seen(void);

#endif
