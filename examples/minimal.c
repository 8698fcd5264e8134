/* SPDX-License-Identifier: MIT
 *
 * The smallest whole program: open a model, read a prompt, choose the best token again and again,
 * print it as it comes. cc -std=c99 minimal.c $(pkg-config --cflags --libs --static sluice) -o
 * minimal
 *   ./minimal MODEL.gguf "The capital of France is"
 */
#include <stdio.h>
#include <string.h>

#include <sluice.h>

enum { MAX_PROMPT = 1024, MAX_NEW = 64 };

static int generate(sluice_engine *engine, const sluice_model *model, sluice_sampler *sampler, sluice_stream *stream) {
    sluice_row row = {0, 0, sluice_seq_length(engine, 0), true};
    for (int i = 0; i < MAX_NEW; i++, row.pos++) {
        const char *text;
        size_t n;
        if (sluice_sample(sampler, sluice_logits(engine, 0), &row.token)) return 1;
        if (sluice_model_is_stop(model, row.token)) break;
        if (sluice_stream_push(stream, row.token, &text, &n)) return 1;
        fwrite(text, 1, n, stdout);
        fflush(stdout);
        if (sluice_step(engine, &row, 1)) return 1;
    }
    return putchar('\n') == EOF;
}

int main(int argc, char **argv) {
    sluice_model *model = NULL;
    sluice_engine *engine = NULL;
    sluice_sampler *sampler = NULL;
    sluice_stream *stream = NULL;
    sluice_model_info info;
    int32_t ids[MAX_PROMPT];
    size_t n;
    if (argc != 3) return fprintf(stderr, "usage: %s MODEL.gguf PROMPT\n", argv[0]), 2;

    sluice_sampler_options greedy = sluice_sampler_options_default();
    greedy.temp = 0;
    int failed = sluice_model_open(&model, argv[1], NULL) || sluice_model_get_info(model, &info) ||
                 sluice_engine_create(&engine, model, NULL) ||
                 sluice_sampler_create(&sampler, info.n_vocab, 0, &greedy) || sluice_stream_create(&stream, model, 0) ||
                 sluice_encode(model, ids, MAX_PROMPT, &n, argv[2], strlen(argv[2]), SLUICE_ADD_BOS) ||
                 sluice_prefill(engine, 0, ids, n, NULL, NULL) || generate(engine, model, sampler, stream);
    if (failed) fprintf(stderr, "%s\n", sluice_last_error());

    sluice_stream_destroy(&stream);
    sluice_sampler_destroy(&sampler);
    sluice_engine_destroy(&engine);
    sluice_model_close(&model);
    return failed;
}
