// SPDX-License-Identifier: MIT
//
// Bandwidth from first principles: pins x Gbit/s of a pin / 8. The rate of a pin is symbols a
// second times bits of a symbol, which differ by kind: GDDR7 (JESD239) sends 3 bits in 2
// three-level symbols, GDDR6X 2 bits in one of four levels, the others 1 bit.
#include "forecast/machine.h"

#include <ctype.h>
#include <string.h>

static const sl_memory_kind kinds[] = {
    {"GDDR7", SL_MACHINE_GPU, 0, 1.5, "PAM3: 3 bits in 2 symbols"},
    {"GDDR6X", SL_MACHINE_GPU, 0, 2, "PAM4: 2 bits in a symbol"},
    {"GDDR6", SL_MACHINE_GPU, 0, 1, "1 bit in a symbol"},
    {"HBM3e", SL_MACHINE_GPU, 0, 1, "1 bit in a symbol"},
    {"HBM3", SL_MACHINE_GPU, 0, 1, "1 bit in a symbol"},
    {"HBM2e", SL_MACHINE_GPU, 0, 1, "1 bit in a symbol"},
    {"HBM2", SL_MACHINE_GPU, 0, 1, "1 bit in a symbol"},
    {"LPDDR5X", SL_MACHINE_HOST, 0, 1, "1 bit in a symbol"},
    {"LPDDR5", SL_MACHINE_HOST, 0, 1, "1 bit in a symbol"},
    {"LPDDR4X", SL_MACHINE_HOST, 0, 1, "1 bit in a symbol"},
    {"MRDIMM", SL_MACHINE_HOST, 64, 1, "1 bit in a symbol"},
    {"DDR5", SL_MACHINE_HOST, 64, 1, "1 bit in a symbol"},
    {"DDR4", SL_MACHINE_HOST, 64, 1, "1 bit in a symbol"},
};

const sl_memory_kind *sl_memory_kind_find(const char *name) {
    for (size_t i = 0; i < SL_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

void sl_memory_describe(sl_machine *m) {
    const sl_memory_kind *kind = sl_memory_kind_find(m->memory);
    if (!kind || m->pins == 0) {
        if (m->pins)
            snprintf(m->how, sizeof m->how, "%u lanes x %g Gbit/s / 8 = %.4g GB/s", m->pins, m->gbit,
                     m->pins * m->gbit / 8);
        else snprintf(m->how, sizeof m->how, "as published");
        return;
    }
    snprintf(m->how, sizeof m->how, "%u pins x %.4g Gsymbol/s x %.4g bit (%s) = %u x %.4g Gbit/s / 8 = %.5g GB/s",
             m->pins, m->gbit / kind->bits_per_symbol, kind->bits_per_symbol, kind->signal, m->pins, m->gbit,
             m->pins * m->gbit / 8);
}

static bool starts(const char *text, const char *word) {
    for (; *word; text++, word++)
        if (tolower((unsigned char)*text) != tolower((unsigned char)*word)) return false;
    return true;
}

static const char *skip(const char *p, const char *any) { return p + strspn(p, any); }

// A number of up to 9 digits with a fraction; 0 if there is none.
static double number(const char **p) {
    double x = 0, unit = 1;
    int n = 0;
    for (; isdigit((unsigned char)**p) && n < 9; ++*p, n++) x = x * 10 + (**p - '0');
    if (n > 0 && **p == '.')
        for (++*p; isdigit((unsigned char)**p) && n < 9; ++*p, n++) x += (**p - '0') * (unit /= 10);
    return x;
}

bool sl_memory_parse(sl_machine *out, sl_span text) {
    char buffer[64];
    *out = (sl_machine){0};
    if (text.n_bytes >= sizeof buffer) return false;
    memcpy(buffer, text.data, text.n_bytes);
    buffer[text.n_bytes] = 0;
    const sl_memory_kind *kind = NULL;
    const char *p = skip(buffer, " ");
    for (size_t i = 0; i < SL_COUNT(kinds) && !kind; i++)
        if (starts(p, kinds[i].name)) kind = &kinds[i];
    if (!kind) return false;
    p = skip(p + strlen(kind->name), " -_");
    double rate = number(&p), count = 1, gb = 0;
    p = skip(p, " gGbBpPsSmMtT/");
    if (*p == 'x' || *p == 'X') p = skip(p + 1, " "), count = number(&p);
    else if (kind->channel_pins == 0) return false;
    p = skip(p, " -bitchanels,");
    if (isdigit((unsigned char)*p)) gb = number(&p), p = skip(p, " gGbB");
    double pins = kind->channel_pins ? count * kind->channel_pins : count, gbit = rate > 200 ? rate / 1000 : rate;
    if (*p || gbit <= 0 || pins < 1 || pins > 1e5 || pins != (uint32_t)pins) return false;
    out->kind = kind->of;
    out->memory = kind->name;
    out->pins = (uint32_t)pins;
    out->gbit = gbit;
    out->gb_s = pins * gbit / 8;
    out->mem_bytes = gb * 1e9;
    out->link = kind->of == SL_MACHINE_GPU ? "PCIe 5.0 x16" : "NVMe 4.0";
    out->source = "worked out here";
    snprintf(out->name, sizeof out->name, "%s %g %s x %u bit", kind->name, rate, rate > 200 ? "MT/s" : "Gbit/s",
             out->pins);
    sl_memory_describe(out);
    return true;
}
