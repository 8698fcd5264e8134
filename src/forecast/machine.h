// SPDX-License-Identifier: MIT
//
// Machines by name: rows of machines.def, or a memory described by its kind, rate and width
// ("gddr7 32gbps x256", "ddr5-5600x2"), worked out from pins. Knows nothing of models.
#ifndef SL_FORECAST_MACHINE_H
#define SL_FORECAST_MACHINE_H

#include <stdint.h>

#include "base/span.h"
#include "base/status.h"

typedef enum sl_machine_kind {
    SL_MACHINE_HOST,
    SL_MACHINE_GPU,
    SL_MACHINE_UNIFIED,
    SL_MACHINE_LINK,
    SL_MACHINE_DISK
} sl_machine_kind;

typedef struct sl_machine {
    char name[96];
    sl_machine_kind kind;
    const char *memory; // kind of memory, "" if that means nothing
    uint32_t pins;      // 0: not known
    double gbit;        // of a pin
    double gb_s;        // 10^9 bytes a second
    double mem_bytes;   // 0: not known
    const char *link;   // row of the table that leads to the host, "" if none
    double tflops;      // 0: not known
    const char *source;
    char how[160]; // the bandwidth as a sum, in words
} sl_machine;

// By a name that may be shortened ("5090", "m4 max", "h100") and may end in a memory size ("m4 max
// 64gb"). SL_BAD_ARG lists the nearest names.
sl_status sl_machine_find(sl_machine *out, sl_span name);
bool sl_machine_at(sl_machine *out, size_t i); // false past the end
sl_machine sl_machine_row(const char *exact);  // a row that is known to be there

// ---- kinds of memory
// ---------------------------------------------------------------------------------------------

typedef struct sl_memory_kind {
    const char *name;
    sl_machine_kind of;
    uint32_t channel_pins;  // of DDR: a "x2" counts channels of so many; 0: it counts pins
    double bits_per_symbol; // on one pin
    const char *signal;     // "PAM3: 3 bits in 2 symbols"
} sl_memory_kind;
const sl_memory_kind *sl_memory_kind_find(const char *name); // NULL if there is none
// True if the text describes a memory; the machine then has no link but what its kind has.
bool sl_memory_parse(sl_machine *out, sl_span text);
// Fills `how` from pins, rate and the kind's signal.
void sl_memory_describe(sl_machine *machine);

#endif
