// SPDX-License-Identifier: MIT
//
// sluice eval needle: what it asks and what it finds, between the parts that write the text, run and print.
#ifndef SLUICE_EVAL_NEEDLE_H
#define SLUICE_EVAL_NEEDLE_H

#include "files.h"
#include "number_list.h"
#include "session.h"

// ---- the text -------------------------------------------------------------------------------------------------------

// A fact in a filler text, and the question for it. The filler depends on the seed alone, so prompts of one seed begin
// alike as far as the needle.
typedef struct needle {
    uint64_t seed;
    int32_t number;    // of five digits
    size_t place;      // whose number it is
    double depth;      // where it stands: 0 before the filler, 1 after it
    size_t n_sentence; // of the filler
} needle;

needle needle_make(uint64_t seed, uint64_t which, double depth); // without its filler
// The text with the question, or, if the model is no chat model, with the beginning of the answer.
int needle_write(text *out, const needle *n, bool chat);
bool needle_is_found(const needle *n, const char *answer);

// ---- the table ------------------------------------------------------------------------------------------------------

enum { NEEDLE_ANSWER = 24, NEEDLE_SAID = 80 }; // tokens of an answer; bytes of it that are kept

typedef struct needle_cell {
    size_t n_tok, n_found, n_tried;
    char said[NEEDLE_SAID]; // the last answer
} needle_cell;

typedef struct needle_table {
    const char *model_path;
    session session;
    number_list lengths, depths; // tokens of the prompt; per cent
    int32_t n_trial;
    int64_t seed;
    needle_cell cell[NUMBER_LIST_MAX * NUMBER_LIST_MAX];
} needle_table; // zero-initialised is empty

static inline const needle_cell *needle_cell_at(const needle_table *t, size_t length, size_t depth) {
    return &t->cell[length * NUMBER_LIST_MAX + depth];
}

int needle_print_table(const needle_table *t);
int needle_print_json(const needle_table *t);
int needle_write_page(const needle_table *t, const char *path);

#endif
