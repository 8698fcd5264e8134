/* SPDX-License-Identifier: MIT
 *
 * The public header on its own: compiled as C99 and as C++, never linked. */
#include "sluice.h"

int header_alone(void);

int header_alone(void) {
    sluice_engine_options options = sluice_engine_options_default();
    return options.n_ctx;
}
