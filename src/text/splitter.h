// SPDX-License-Identifier: MIT
//
// Cuts text into words by a sequence of patterns. Each step cuts every piece of the step before: at its matches, which
// become pieces, and so do the gaps between them; a piece is matched as if it stood alone (Hugging Face's "Split,
// isolated"). No step may be quadratic in the text; the patterns in pretokenizer.c say how they keep to that.
#ifndef SL_TEXT_SPLITTER_H
#define SL_TEXT_SPLITTER_H

#include "base/span.h"
#include "base/status.h"

enum { SL_SPLIT_MAX_STEPS = 6 };

typedef enum sl_split_kind {
    SL_SPLIT_END = 0, // ends the list of steps
    SL_SPLIT_MATCHES, // each match is a piece
    SL_SPLIT_THREES,  // each match is cut into pieces of three characters, counted from its end
} sl_split_kind;

typedef struct sl_split_step {
    sl_split_kind kind;
    const char *pattern; // PCRE2, UTF mode; never matches the empty text
} sl_split_step;

typedef struct sl_splitter sl_splitter; // immutable after create

// `step` ends with SL_SPLIT_END or after SL_SPLIT_MAX_STEPS.
sl_status sl_splitter_create(sl_splitter **out, const sl_split_step *step);
void sl_splitter_destroy(sl_splitter *splitter); // NULL is fine

// What one run needs besides; one per thread.
typedef struct sl_split_run sl_split_run;
sl_status sl_split_run_create(sl_split_run **out, const sl_splitter *splitter);
void sl_split_run_destroy(sl_split_run *run); // NULL is fine

// Calls emit(user, word) for each word of `text` (valid UTF-8), in order; together they are the text.
typedef sl_status sl_split_emit(void *user, sl_span word);
sl_status sl_splitter_split(const sl_splitter *splitter, sl_split_run *run, sl_span text, sl_split_emit *emit,
                            void *user);

#endif
