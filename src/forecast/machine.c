// SPDX-License-Identifier: MIT
//
// Finding a machine by a name as people write it.
#include "forecast/machine.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define SL_MACHINE(name, kind, memory, pins, gbit, gb_s, mem_gb, link, tflops, source) \
    {name, SL_MACHINE_##kind, memory, pins, gbit, gb_s, (mem_gb)*1e9, link, tflops, source, ""},
static const sl_machine rows[] = {
#include "forecast/machines.def"
};
#undef SL_MACHINE

enum { MAX_NAME = 64, N_NEAREST = 5 };

// Letters and digits only, in lower case.
static void fold(char out[MAX_NAME], const char *text, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n && k + 1 < MAX_NAME; i++)
        if (isalnum((unsigned char)text[i])) out[k++] = (char)tolower((unsigned char)text[i]);
    out[k] = 0;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

// The row that is meant: by the whole name, else the only one that ends so, else the only one that
// holds it. -1: none.
static int find_row(const char *word) {
    int found = -1;
    if (!*word) return -1;
    for (int how = 0; how < 3; how++) {
        int n = 0;
        for (size_t i = 0; i < SL_COUNT(rows); i++) {
            char name[MAX_NAME];
            fold(name, rows[i].name, strlen(rows[i].name));
            bool hit = how == 0   ? strcmp(name, word) == 0
                       : how == 1 ? ends_with(name, word)
                                  : strstr(name, word) != NULL;
            if (hit) found = (int)i, n++;
        }
        if (n == 1) return found;
    }
    return -1;
}

bool sl_machine_at(sl_machine *out, size_t i) {
    *out = (sl_machine){0};
    if (i >= SL_COUNT(rows)) return false;
    *out = rows[i];
    sl_memory_describe(out);
    return true;
}

sl_machine sl_machine_row(const char *exact) {
    sl_machine m = {0};
    for (size_t i = 0; i < SL_COUNT(rows); i++)
        if (strcmp(rows[i].name, exact) == 0) sl_machine_at(&m, i);
    return m;
}

// Length of the longest run of characters that both have.
static size_t likeness(const char *a, const char *b) {
    size_t best = 0;
    for (size_t i = 0; a[i]; i++)
        for (size_t j = 0; b[j]; j++) {
            size_t n = 0;
            while (a[i + n] && a[i + n] == b[j + n]) n++;
            best = SL_MAX(best, n);
        }
    return best;
}

static sl_status fail_unknown(sl_span name, const char *word) {
    char list[N_NEAREST * MAX_NAME] = "";
    bool taken[SL_COUNT(rows)] = {0};
    size_t n = 0;
    for (int k = 0; k < N_NEAREST; k++) {
        size_t best = 2, at = SL_COUNT(rows); // one common letter says nothing
        for (size_t i = 0; i < SL_COUNT(rows); i++) {
            char folded[MAX_NAME];
            fold(folded, rows[i].name, strlen(rows[i].name));
            size_t like = taken[i] ? 0 : likeness(folded, word);
            if (like >= best) best = like, at = i; // of equals the later, newer row
        }
        if (at == SL_COUNT(rows)) break;
        taken[at] = true;
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", k ? ", " : "", rows[at].name);
    }
    return SL_FAIL(SL_BAD_ARG,
                   "no machine is called '%.*s', or several are%s%s; a memory may also be "
                   "described, as in \"ddr5-5600x2\" or "
                   "\"gddr7 32gbps x256\"",
                   (int)SL_MIN(name.n_bytes, 64), name.data, n ? "; near it are " : "", list);
}

// Takes a last word such as "64gb" off the name and gives its number; 0 if the last word is none.
static double take_size(sl_span *name) {
    size_t i = name->n_bytes, end;
    char word[MAX_NAME], *rest;
    while (i > 0 && name->data[i - 1] != ' ') i--;
    fold(word, name->data + i, name->n_bytes - i);
    double gb = isdigit((unsigned char)word[0]) ? strtod(word, &rest) : 0;
    if (!(gb > 0 && gb < 1e6) || strcmp(rest, "gb") != 0) return 0;
    for (end = i; end > 0 && name->data[end - 1] == ' ';) end--;
    name->n_bytes = end;
    return gb;
}

sl_status sl_machine_find(sl_machine *out, sl_span name) {
    char word[MAX_NAME];
    *out = (sl_machine){0};
    while (name.n_bytes && name.data[0] == ' ') name.data++, name.n_bytes--;
    while (name.n_bytes && name.data[name.n_bytes - 1] == ' ') name.n_bytes--;
    fold(word, name.data, name.n_bytes);
    int row = find_row(word);
    double gb = 0;
    if (row < 0) {
        if (sl_memory_parse(out, name)) return SL_OK;
        sl_span shorter = name;
        gb = take_size(&shorter);
        if (gb > 0) fold(word, shorter.data, shorter.n_bytes), row = find_row(word);
    }
    if (row < 0) return fail_unknown(name, word);
    sl_machine_at(out, (size_t)row);
    if (out->mem_bytes == 0) return SL_FAIL(SL_BAD_ARG, "'%s' is a link or a disk; a model runs on none", out->name);
    if (gb > 0) {
        out->mem_bytes = gb * 1e9;
        size_t n = strlen(out->name);
        snprintf(out->name + n, sizeof out->name - n, ", %g GB", gb);
    }
    return SL_OK;
}
