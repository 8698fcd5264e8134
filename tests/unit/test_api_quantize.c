// SPDX-License-Identifier: MIT
// sl_test: MODULES sluice
//
// Quantising and importance matrices against careless callers.
#include "harness.h"

#include "sluice.h"

#define LLAMA SL_SOURCE_DIR "/tests/golden/tiny/llama-biases.gguf"

static const char *in_scratch(const char *name) {
    static char path[4][512];
    static unsigned next;
    snprintf(path[next % 4], sizeof path[0], "%s/%s", test_scratch_dir(), name);
    return path[next++ % 4];
}

static void check_refused(sluice_status got, sluice_status want, const char *reason) {
    if (got != want || !strstr(sluice_last_error(), reason))
        test_failed(__FILE__, __LINE__, "status %d, \"%s\"; wanted %d, \"%s\"", got, sluice_last_error(), want, reason);
}

TEST(mixes_have_names) {
    size_t n = 0;
    const char *about;
    for (; sluice_mix_name(n, &about); n++) CHECK(about);
    CHECK(n >= 20);
    CHECK(about == NULL);
    CHECK(sluice_mix_name(0, NULL));
}

TEST(quantize_refuses_careless_callers) {
    sluice_quantize_options o = sluice_quantize_options_default();
    char *text = (char *)&o;
    check_refused(sluice_quantize(NULL, "x", &o, false, &text), SLUICE_BAD_ARG, "path is NULL");
    CHECK(text == NULL);
    check_refused(sluice_quantize(LLAMA, NULL, &o, false, &text), SLUICE_BAD_ARG, "out_path is NULL");
    o.mix = "Q1";
    check_refused(sluice_quantize(LLAMA, in_scratch("x"), &o, false, NULL), SLUICE_BAD_ARG, "no mix 'Q1'");
    o = sluice_quantize_options_default(), o.n_thread = -1;
    check_refused(sluice_quantize(LLAMA, in_scratch("x"), &o, false, NULL), SLUICE_BAD_ARG, "n_thread is -1");
    o = sluice_quantize_options_default(), o.size = 0;
    CHECK_INT(sluice_quantize(LLAMA, in_scratch("x"), &o, false, NULL), SLUICE_BAD_ARG);
    o = sluice_quantize_options_default(), o.embedding_type = "I32";
    check_refused(sluice_quantize(LLAMA, in_scratch("x"), &o, false, NULL), SLUICE_BAD_ARG, "no type 'I32'");
    CHECK_INT(sluice_quantize(LLAMA, in_scratch("x"), NULL, false, NULL), SLUICE_OK); // all defaults
    o = sluice_quantize_options_default(), o.dry_run = true;
    CHECK_INT(sluice_quantize(LLAMA, NULL, &o, true, &text), SLUICE_OK);
    CHECK(text && text[0] == '{');
    sluice_free(text);
}

TEST(imatrix_takes_windows) {
    sluice_model *model;
    sluice_imatrix *im = (sluice_imatrix *)&model;
    sluice_engine_options o = sluice_engine_options_default();
    int32_t ids[16];
    for (int i = 0; i < 16; i++) ids[i] = 3 + i;
    check_refused(sluice_imatrix_create(&im, NULL, NULL), SLUICE_BAD_ARG, "model is NULL");
    CHECK(im == NULL);
    REQUIRE_OK(sluice_model_open(&model, LLAMA, NULL), sluice_last_error());
    o.n_ctx = 16, o.n_row_max = 5;
    REQUIRE_OK(sluice_imatrix_create(&im, model, &o), sluice_last_error());
    check_refused(sluice_imatrix_write(im, in_scratch("im"), "t"), SLUICE_BAD_ARG, "nothing was collected");
    check_refused(sluice_imatrix_add(im, ids, 0), SLUICE_BAD_ARG, "1 .. 16 ids");
    check_refused(sluice_imatrix_add(im, ids, 17), SLUICE_BAD_ARG, "1 .. 16 ids");
    REQUIRE_OK(sluice_imatrix_add(im, ids, 16), sluice_last_error());
    REQUIRE_OK(sluice_imatrix_add(im, ids, 7), sluice_last_error());
    ids[3] = -1;
    CHECK_INT(sluice_imatrix_add(im, ids, 16), SLUICE_BAD_ARG);
    REQUIRE_OK(sluice_imatrix_write(im, in_scratch("im"), NULL), sluice_last_error());
    sluice_imatrix_destroy(&im);
    sluice_imatrix_destroy(&im);
    CHECK(im == NULL);
    sluice_quantize_options q = sluice_quantize_options_default();
    q.imatrix_path = in_scratch("im");
    REQUIRE_OK(sluice_quantize(LLAMA, in_scratch("q"), &q, false, NULL), sluice_last_error());
    sluice_model_close(&model);
}
