// SPDX-License-Identifier: MIT
// sl_test: MODULES sluice LIBS jansson
//
// sluice_plan and sluice_measure_bandwidth against careless callers, and allocations that fail.
#include <jansson.h>

#include "base/alloc.h"
#include "harness.h"
#include "sluice.h"

#define TINY test_source_path("tests/golden/tiny/llama-linear-spm.gguf")

static sluice_plan_options on(const char *device) {
    sluice_plan_options o = sluice_plan_options_default();
    o.device = device;
    return o;
}

static void refused(sluice_status want, const sluice_plan_options *o, const char *word) {
    char *text = (char *)"set";
    CHECK_INT(sluice_plan(TINY, o, false, &text), want);
    CHECK(text == NULL);
    if (!strstr(sluice_last_error(), word))
        test_failed(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", sluice_last_error(), word);
}

TEST(careless_callers) {
    char *text = (char *)"set";
    double gb_s = 1;
    sluice_plan_options o = on("h200");
    CHECK_INT(sluice_plan(NULL, &o, false, &text), SLUICE_BAD_ARG);
    CHECK(text == NULL);
    CHECK_INT(sluice_plan(TINY, &o, false, NULL), SLUICE_BAD_ARG);
    CHECK_INT(sluice_measure_bandwidth(1, NULL), SLUICE_BAD_ARG);
    CHECK_INT(sluice_measure_bandwidth(-1, &gb_s), SLUICE_BAD_ARG);
    CHECK(gb_s == 0);
    CHECK_INT(sluice_plan("/nowhere.gguf", &o, false, &text), SLUICE_IO);
    o.n_ctx = -1, refused(SLUICE_BAD_ARG, &o, "n_ctx");
    o = on("h200"), o.n_thread = 5000, refused(SLUICE_BAD_ARG, &o, "n_thread");
    o = on("h200"), o.kv = "q6_k", refused(SLUICE_BAD_ARG, &o, "q6_k");
    o = on("a machine that is not"), refused(SLUICE_BAD_ARG, &o, "no machine");
    o = on(""), refused(SLUICE_BAD_ARG, &o, "no machine");
    o = on("h200"), o.size = 0, refused(SLUICE_BAD_ARG, &o, "size");
    o = on("h200"), o.size = 4096, refused(SLUICE_BAD_ARG, &o, "newer");
}

TEST(shorter_options_of_an_older_caller_are_taken) {
    sluice_plan_options o = on("h200");
    char *text;
    o.size = offsetof(sluice_plan_options, cache_path);
    REQUIRE_OK(sluice_plan(TINY, &o, true, &text), sluice_last_error());
    json_t *all = json_loads(text, 0, NULL);
    CHECK_TEXT(json_string_value(json_object_get(json_object_get(all, "device"), "name")), "H200");
    json_decref(all);
    sluice_free(text);
}

TEST(each_allocation_may_fail) {
    sluice_plan_options o = on("rtx 5090");
    bool done = false;
    uint64_t n = 1;
    for (; !done && n < 10000; n++) {
        char *text;
        sl_alloc_fail_at(n);
        sluice_status status = sluice_plan(TINY, &o, n % 2, &text);
        sl_alloc_fail_at(0);
        done = status == SLUICE_OK;
        CHECK(done || (status == SLUICE_NO_MEMORY && !text));
        sluice_free(text);
    }
    CHECK(done && n > 20);
}

TEST(bandwidth_of_this_machine) {
    double gb_s;
    REQUIRE_OK(sluice_measure_bandwidth(1, &gb_s), sluice_last_error());
    CHECK(gb_s > 0.05 && gb_s < 5000);
}
