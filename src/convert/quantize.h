// SPDX-License-Identifier: MIT
//
// One GGUF file to another with other types of weights. Rows are decoded, checked and fitted by threads; a row's result
// depends on the row alone, so the file is the same whatever their number. The file appears whole or not at all.
#ifndef SL_CONVERT_QUANTIZE_H
#define SL_CONVERT_QUANTIZE_H

#include "convert/mix.h"

typedef struct sl_quantize_options {
    sl_mix_request request;   // has_imatrix is set here
    const char *imatrix_path; // or NULL
    int n_thread;
    bool dry_run;                                            // chooses and reports, writes nothing
    int (*progress)(void *user, uint64_t n, uint64_t total); // bytes read; may be NULL; non-zero stops
    void *user;
} sl_quantize_options;

typedef struct sl_quantize_report {
    const char *mix;
    sl_mix_choice *choice;                      // (n_tensors) owned
    uint64_t *out_bytes;                        // (n_tensors) owned
    uint64_t n_params, n_in_bytes, n_out_bytes; // of tensors
    size_t n_requantised;                       // were quantised already: their errors add up
    size_t n_without_importance;                // matrices that the importance file lacks; 0 without one
    int n_thread;
    double seconds;
} sl_quantize_report;

sl_status sl_quantize(sl_quantize_report *out, const sl_gguf *gguf, const char *out_path,
                      const sl_quantize_options *options);
void sl_quantize_report_deinit(sl_quantize_report *report);

// quantize_report.c. For people: what became of the types, and what to know; each tensor too if `each`. Or as JSON.
void sl_quantize_report_text(const sl_quantize_report *report, const sl_gguf *gguf, bool each, sl_buf *out);
void sl_quantize_report_json(const sl_quantize_report *report, const sl_gguf *gguf, sl_buf *out);

#endif
