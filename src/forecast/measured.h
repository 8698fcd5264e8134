// SPDX-License-Identifier: MIT
//
// Figures measured on this machine in a small JSON file, {"WHAT": number}, so that they need not be measured each time.
// A missing, broken or unwritable file costs a measurement and nothing else.
#ifndef SL_FORECAST_MEASURED_H
#define SL_FORECAST_MEASURED_H

// 0 if it is not known. path may be NULL.
double sl_measured_find(const char *path, const char *what);
void sl_measured_keep(const char *path, const char *what, double value);

#endif
