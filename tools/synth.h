// SPDX-License-Identifier: MIT
//
// Makes GGUF files with random but well-scaled weights: any shape, family and type, so that speed
// can be measured on sizes that nobody has to download, and peers can load the same file.
#ifndef SLUICE_SYNTH_H
#define SLUICE_SYNTH_H

#include "gguf/gguf.h"

typedef struct synth_shape {
    const char *name;
    uint32_t n_embd, n_layer, n_head, n_head_kv, head_dim, n_ff, n_vocab, n_ctx;
    bool tied; // no output.weight: token_embd.weight serves
    float rope_base;
} synth_shape;

typedef struct synth_request {
    synth_shape shape;
    const char *arch, *type;
    const char *vocab_path; // GGUF to copy the vocabulary of; NULL: the file has none
    const char *path;
    uint64_t seed;
} synth_request;

typedef struct synth_tensor {
    sl_type type;
    float scale; // standard deviation of the values; 0: all are 1
} synth_tensor;

typedef struct synth_model { // what there is to fill, in the writer's order
    synth_tensor *tensor;    // owned
    size_t n_tensor, cap_tensor;
    uint64_t n_bytes;
} synth_model;

enum { SYNTH_MAX_VOCAB = 1 << 22 };

const synth_shape *synth_shape_find(const char *name); // NULL: there is no such shape
// The names that there are, with blanks between.
extern const char synth_shape_names[], synth_arch_names[], synth_type_names[];

// Adds metadata, vocabulary and tensors. The request's n_vocab is raised to that of vocab_path.
sl_status synth_model_build(synth_model *model, sl_gguf_writer *writer, synth_request *request);
void synth_model_deinit(synth_model *model);

// Blocks of random bits of which only the scale fields are chosen.
typedef struct synth_random {
    uint64_t state;
} synth_random;
synth_random synth_random_seed(uint64_t seed, uint64_t stream);
// n_blk blocks of which the decoded values have this standard deviation and, nearly, mean 0.
void synth_blocks(void *out, sl_type type, size_t n_blk, float scale, synth_random *random);

#endif
