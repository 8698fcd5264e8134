// SPDX-License-Identifier: MIT
//
// sluice tokenize: bytes to token ids, and back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "session.h"
#include "token_ids.h"

typedef struct tokenize_options {
    bool special, bos, decode;
} tokenize_options;

#define AT(field) offsetof(tokenize_options, field)

static const option tokenize_table[] = {
    {0, "special", OPTION_FLAG, AT(special), NULL, 0, 0,
     "control tokens in the text become their ids; with --decode: are printed"},
    {0, "bos", OPTION_FLAG, AT(bos), NULL, 0, 0, "begin and end as the model wants it"},
    {0, "decode", OPTION_FLAG, AT(decode), NULL, 0, 0, "a JSON array of ids in, bytes out"},
};

static int encode_input(const session *s, const tokenize_options *options, const text *input) {
    int32_t *ids;
    size_t n;
    unsigned flags = (options->special ? SLUICE_PARSE_SPECIAL : 0) | (options->bos ? SLUICE_ADD_BOS : 0);
    int result = session_encode(s, &ids, &n, input->data, input->n, flags);
    text array = {0};
    if (result == APP_OK) result = text_append(&array, "[", 1);
    for (size_t i = 0; i < n && result == APP_OK; i++) {
        char id[16];
        snprintf(id, sizeof id, "%s%d", i ? ", " : "", (int)ids[i]);
        result = text_append(&array, id, strlen(id));
    }
    if (result == APP_OK) result = text_append(&array, "]\n", 2);
    if (result == APP_OK) result = out_write(array.data, array.n);
    text_free(&array);
    free(ids);
    return result;
}

static int decode_input(const session *s, const tokenize_options *options, const text *input) {
    int32_t *ids;
    size_t n, n_bytes = 0;
    unsigned flags = options->special ? SLUICE_SHOW_SPECIAL : 0;
    int result = token_ids_parse(&ids, &n, input, "standard input", s->model_info.n_vocab);
    if (result != APP_OK) return result;
    sluice_status status = sluice_decode(s->model, NULL, 0, &n_bytes, ids, n, flags);
    char *bytes = status == SLUICE_OK ? malloc(n_bytes + 1) : NULL;
    if (status == SLUICE_OK && !bytes) result = app_fail("out of memory");
    if (bytes) status = sluice_decode(s->model, bytes, n_bytes, &n_bytes, ids, n, flags);
    if (status != SLUICE_OK) result = app_fail_library(status);
    if (result == APP_OK) result = out_write(bytes, n_bytes);
    free(bytes);
    free(ids);
    return result;
}

int cmd_tokenize(int argc, char **argv) {
    tokenize_options options = {0};
    session_options model = {0};
    const option_group groups[] = {
        {"options", tokenize_table, sizeof tokenize_table / sizeof *tokenize_table, &options},
        {"model", session_model_options, 1, &model}, // weights are not read, so there are none to check
    };
    const command_line line = {
        "sluice tokenize MODEL [--special] [--bos] < TEXT  |  sluice tokenize MODEL --decode < IDS",
        "Reads bytes from standard input and prints the model's token ids as a JSON array, or the "
        "reverse.\n",
        groups,
        2,
        1,
        1};
    const char *path;
    int result = options_parse(&line, argc, argv, &path);
    if (result != OPTIONS_GO_ON) return result;
    session s;
    text input = {0};
    result = session_open_model(&s, path, &model, SESSION_VOCAB);
    if (result == APP_OK && !s.model_info.has_tokenizer) result = app_fail("%s: has no tokenizer", path);
    if (result == APP_OK) result = file_read(&input, NULL);
    if (result == APP_OK)
        result = options.decode ? decode_input(&s, &options, &input) : encode_input(&s, &options, &input);
    text_free(&input);
    session_close(&s);
    return result;
}
