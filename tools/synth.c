// SPDX-License-Identifier: MIT
//
// sluice-synth: the command line, and the filling of a file. See synth.h.
#include "synth.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <unistd.h>

#include "base/alloc.h"

static const char usage[] = "usage: sluice-synth --shape NAME --type TYPE -o FILE [options]\n\n"
                            "Writes a GGUF file with random weights of standard deviation 1/sqrt(inputs).\n\n"
                            "  --shape NAME       %s\n"
                            "  --type TYPE        %s\n"
                            "  --arch NAME        %s (llama)\n"
                            "  --vocab-from FILE  copy the vocabulary of a GGUF file, padded with unused tokens\n"
                            "  --seed N           (1)\n"
                            "  -o FILE            where to write\n"
                            "  --embd --layers --heads --heads-kv --head-dim --ff --vocab --ctx N, --tied 0|1,\n"
                            "                     --rope-base N: change the shape\n";

// A group of blocks is made at a time, each from its own seed, so that any part of a tensor can be
// asked for.
enum { GROUP_BYTES = 1 << 16 };

typedef struct filler {
    const synth_model *model;
    uint64_t seed, n_done;
    uint64_t *group; // (GROUP_BYTES) owned; whole words, for blocks of every alignment
    size_t tensor;   // that `group` is of
    uint64_t number; // of the group in the tensor
    bool terminal;
} filler;

static void show_progress(filler *f, size_t n_bytes) {
    uint64_t before = f->n_done >> 26;
    f->n_done += n_bytes;
    if (f->terminal && (f->n_done >> 26 != before || f->n_done == f->model->n_bytes))
        fprintf(stderr, "\r%.2f of %.2f GB ", (double)f->n_done * 1e-9, (double)f->model->n_bytes * 1e-9);
}

static sl_status fill(void *user, size_t i, uint64_t off, void *out, size_t n_bytes) {
    filler *f = user;
    const synth_tensor *t = &f->model->tensor[i];
    size_t n_blk = GROUP_BYTES / sl_type_find(t->type)->blk_bytes;
    size_t group_bytes = n_blk * sl_type_find(t->type)->blk_bytes;
    show_progress(f, n_bytes);
    while (n_bytes > 0) {
        uint64_t number = off / group_bytes;
        size_t at = (size_t)(off % group_bytes), n = SL_MIN(group_bytes - at, n_bytes);
        if (f->tensor != i || f->number != number) {
            synth_random random = synth_random_seed(f->seed, (uint64_t)i << 40 ^ number);
            synth_blocks(f->group, t->type, n_blk, t->scale, &random);
            f->tensor = i, f->number = number;
        }
        memcpy(out, (const char *)f->group + at, n);
        out = (char *)out + n, off += n, n_bytes -= n;
    }
    return SL_OK;
}

static sl_status make(synth_request *request) {
    sl_gguf_writer *writer;
    synth_model model = {0};
    filler f = {.model = &model, .seed = request->seed, .tensor = SIZE_MAX};
    f.terminal = isatty(STDERR_FILENO) == 1;
    SL_TRY(sl_gguf_writer_create(&writer));
    sl_status status;
    SL_TRY_OUT(sl_alloc(&f.group, GROUP_BYTES, 1, "blocks"));
    SL_TRY_OUT(synth_model_build(&model, writer, request));
    SL_TRY_OUT(sl_gguf_writer_write(writer, request->path, fill, &f));
    if (f.terminal) fputs("\r\033[K", stderr);
    printf("%s: %zu tensors, %.3f GB\n", request->path, model.n_tensor, (double)model.n_bytes * 1e-9);
out:
    sl_free(f.group);
    synth_model_deinit(&model);
    sl_gguf_writer_destroy(writer);
    return status;
}

// ---- command line -------------------------------------------------------------------------------

enum { SHAPE = 1, TYPE, ARCH, VOCAB_FROM, SEED, HELP, NUMBER };

typedef struct number_option {
    const char *name;
    size_t at; // of a uint32_t in synth_shape
    unsigned long max;
} number_option;

#define AT(field) offsetof(synth_shape, field)
static const number_option numbers[] = {
    {"embd", AT(n_embd), 1 << 20},           {"layers", AT(n_layer), 1024},    {"heads", AT(n_head), 1 << 14},
    {"heads-kv", AT(n_head_kv), 1 << 14},    {"head-dim", AT(head_dim), 1024}, {"ff", AT(n_ff), 1 << 22},
    {"vocab", AT(n_vocab), SYNTH_MAX_VOCAB}, {"ctx", AT(n_ctx), INT32_MAX},
};
enum { TIED = NUMBER + SL_COUNT(numbers), ROPE_BASE, N_OPTION };

static bool parse_number(unsigned long *out, const char *text, unsigned long min, unsigned long max) {
    char *end;
    errno = 0;
    *out = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno && *out >= min && *out <= max;
}

static bool set_option(synth_request *r, int option, const char *value) {
    unsigned long number;
    switch (option) {
    case SHAPE: {
        const synth_shape *shape = synth_shape_find(value);
        if (shape) r->shape = *shape;
        return shape != NULL;
    }
    case TYPE: r->type = value; return true;
    case ARCH: r->arch = value; return true;
    case VOCAB_FROM: r->vocab_path = value; return true;
    case 'o': r->path = value; return true;
    case SEED: return parse_number(&number, value, 0, ULONG_MAX) && (r->seed = number, true);
    case TIED: return parse_number(&number, value, 0, 1) && (r->shape.tied = number, true);
    case ROPE_BASE:
        if (!parse_number(&number, value, 2, 1000000000)) return false;
        return r->shape.rope_base = (float)number, true;
    default: break;
    }
    const number_option *n = &numbers[option - NUMBER];
    if (!parse_number(&number, value, 1, n->max)) return false;
    return *(uint32_t *)((char *)&r->shape + n->at) = (uint32_t)number, true;
}

static int fail(const char *reason) {
    fprintf(stderr, "sluice-synth: %s\n", reason);
    return 1;
}

// -1: go on; else the exit status. The shape goes first, wherever it stands: the rest changes it.
static int parse(synth_request *r, int argc, char **argv) {
    struct option table[N_OPTION + 2] = {
        {"shape", required_argument, NULL, SHAPE}, {"type", required_argument, NULL, TYPE},
        {"arch", required_argument, NULL, ARCH},   {"vocab-from", required_argument, NULL, VOCAB_FROM},
        {"seed", required_argument, NULL, SEED},   {"help", no_argument, NULL, HELP},
        {"tied", required_argument, NULL, TIED},   {"rope-base", required_argument, NULL, ROPE_BASE},
    };
    for (size_t i = 0; i < SL_COUNT(numbers); i++)
        table[8 + i] = (struct option){numbers[i].name, required_argument, NULL, NUMBER + (int)i};
    for (int pass = 0; pass < 2; pass++) {
        int option;
        optind = 1;
        while ((option = getopt_long(argc, argv, "o:", table, NULL)) != -1) {
            if (option == HELP) return printf(usage, synth_shape_names, synth_type_names, synth_arch_names), 0;
            if (option == '?') return 1;
            if ((option == SHAPE) == (pass == 0) && !set_option(r, option, optarg)) {
                fprintf(stderr, "sluice-synth: \"%s\" cannot be used; --help says what can\n", optarg);
                return 1;
            }
        }
        if (optind < argc) return fail("an argument is too many; --help says what there is");
    }
    if (!r->shape.name || !r->type || !r->path) return fail("--shape, --type and -o are needed");
    if (r->shape.n_head % r->shape.n_head_kv != 0 || r->shape.head_dim % 2 != 0)
        return fail("--heads must be a multiple of --heads-kv, and --head-dim even");
    return -1;
}

int main(int argc, char **argv) {
    synth_request request = {.arch = "llama", .seed = 1};
    int result = parse(&request, argc, argv);
    if (result >= 0) return result;
    return make(&request) == SL_OK ? 0 : fail(sl_error_text());
}
