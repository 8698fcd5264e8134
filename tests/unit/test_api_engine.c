// SPDX-License-Identifier: MIT
// sl_test: MODULES sluice
//
// What an engine says of itself: numbers of threads, which may come from a file that is stale or torn; the cost of
// a step, which has to be what its plan adds up to; and what it has of prompts from a folder.
#include "harness.h"

#include <stdio.h>
#include <string.h>

#include "os/os.h"
#include "plan/plan.h"
#include "sluice.h"

static sluice_model *open_model(const char *name) {
    char path[128];
    sluice_model *model;
    snprintf(path, sizeof path, "tests/golden/tiny/%s.gguf", name);
    REQUIRE_OK(sluice_model_open(&model, test_source_path(path), NULL), sluice_last_error());
    return model;
}

// ---- threads ------------------------------------------------------------------------------------

static const char *cache_file(const char *content) {
    static char path[512];
    snprintf(path, sizeof path, "%s/measured.json", test_scratch_dir());
    FILE *file = fopen(path, "w");
    REQUIRE(file && fputs(content, file) >= 0);
    fclose(file);
    return path;
}

static sluice_engine_info info_of(const sluice_model *model, const char *cache_path, int32_t n_thread) {
    sluice_engine *engine;
    sluice_engine_info info;
    sluice_engine_options o = sluice_engine_options_default();
    o.n_ctx = 64, o.n_row_max = 32, o.cache_path = cache_path, o.n_thread = n_thread;
    REQUIRE_OK(sluice_engine_create(&engine, model, &o), sluice_last_error());
    REQUIRE_OK(sluice_engine_get_info(engine, &info), sluice_last_error());
    sluice_engine_destroy(&engine);
    return info;
}

TEST(threads_come_from_the_file_unless_given) {
    sluice_model *model = open_model("qwen3");
    char text[1024];
    int n_cpu = sl_cpu_count();
    const char *level = getenv("SLUICE_CPU");
    snprintf(text, sizeof text,
             "{\"%s, %d processors, %s, threads of decode\": 1.0, \"%s, %d processors, %s, threads of prefill\": 1}",
             sl_cpu_name(), n_cpu, level ? level : "best level", sl_cpu_name(), n_cpu, level ? level : "best level");
    sluice_engine_info all = info_of(model, NULL, 0), known = info_of(model, cache_file(text), 0);
    CHECK_INT(all.n_thread, n_cpu); // a model too small to tell
    CHECK_INT(known.n_thread, 1);
    CHECK_INT(known.n_thread_prefill, 1);
    CHECK_INT(known.workspace_bytes, all.workspace_bytes); // what `plan` says holds for either
    sluice_engine_info given = info_of(model, cache_file(text), 3);
    CHECK_INT(given.n_thread, 3);
    CHECK_INT(given.n_thread_prefill, 3);
    sluice_model_close(&model);
}

TEST(a_stale_or_torn_file_does_no_harm) {
    static const char *const rests[] = {"", "\": 0}", "\": -3}", "\": 1e300}", "\": \"two\"}", "\": 100000}", "\": 2"};
    sluice_model *model = open_model("qwen3");
    for (size_t i = 0; i < SL_COUNT(rests); i++) {
        char text[512];
        snprintf(text, sizeof text, "{\"%s, %d processors, best level, threads of decode%s", sl_cpu_name(),
                 sl_cpu_count(), rests[i]);
        CHECK_INT(info_of(model, cache_file(text), 0).n_thread, sl_cpu_count());
    }
    CHECK_INT(info_of(model, "/nowhere/at/all.json", 0).n_thread, sl_cpu_count());
    CHECK_INT(
        info_of(model, cache_file("{\"another machine, 2 processors, best level, threads of decode\": 1}"), 0).n_thread,
        sl_cpu_count());
    sluice_model_close(&model);
}

// ---- the cost of a step -------------------------------------------------------------------------

// Each matrix and vector once, of the embedding table also a row for each token; K and V of all positions seen.
TEST(a_step_costs_what_it_must_read) {
    sluice_model *model = open_model("qwen3");
    sluice_engine *engine;
    sluice_engine_options o = sluice_engine_options_default();
    sluice_engine_info info;
    o.n_ctx = 64, o.n_row_max = 32, o.n_thread = 2;
    REQUIRE_OK(sluice_engine_create(&engine, model, &o), sluice_last_error());
    REQUIRE_OK(sluice_engine_get_info(engine, &info), sluice_last_error());
    sluice_step_cost one, far, rows;
    REQUIRE_OK(sluice_engine_get_cost(engine, 1, 0, &one), sluice_last_error());
    REQUIRE_OK(sluice_engine_get_cost(engine, 1, 63, &far), sluice_last_error());
    REQUIRE_OK(sluice_engine_get_cost(engine, 9, 20, &rows), sluice_last_error());
    CHECK_INT(one.weight_bytes, info.token_bytes);
    CHECK_INT(one.kv_bytes, info.kv_position_bytes);
    CHECK_INT(far.weight_bytes, one.weight_bytes);
    CHECK_INT(far.kv_bytes, 64 * info.kv_position_bytes);
    CHECK_INT(rows.kv_bytes, 29 * info.kv_position_bytes); // positions are read once for all rows
    CHECK(rows.weight_bytes > one.weight_bytes && rows.weight_bytes < 2 * one.weight_bytes); // rows of the table
    CHECK(far.n_mac > one.n_mac && rows.n_mac > 5 * one.n_mac && rows.n_mac < 10 * far.n_mac);
    sluice_engine_destroy(&engine);
    sluice_model_close(&model);
}

TEST(costs_of_impossible_steps_are_refused) {
    sluice_model *model = open_model("qwen3");
    sluice_engine *engine;
    sluice_engine_options o = sluice_engine_options_default();
    o.n_ctx = 64, o.n_row_max = 32, o.n_thread = 1;
    REQUIRE_OK(sluice_engine_create(&engine, model, &o), sluice_last_error());
    static const int32_t bad[][2] = {{0, 0}, {-1, 0}, {INT32_MIN, 0}, {1, -1}, {1, INT32_MIN}};
    for (size_t i = 0; i < SL_COUNT(bad); i++) {
        sluice_step_cost cost = {1, 1, 1};
        CHECK_INT(sluice_engine_get_cost(engine, bad[i][0], bad[i][1], &cost), SLUICE_BAD_ARG);
        CHECK(cost.weight_bytes == 0 && cost.kv_bytes == 0 && cost.n_mac == 0 && sluice_last_error()[0]);
    }
    sluice_step_cost cost;
    CHECK_INT(sluice_engine_get_cost(NULL, 1, 0, &cost), SLUICE_BAD_ARG);
    CHECK_INT(sluice_engine_get_cost(engine, 1, 0, NULL), SLUICE_BAD_ARG);
    sluice_engine_destroy(&engine);
    sluice_model_close(&model);
}

// ---- prefixes -----------------------------------------------------------------------------------

static sluice_engine_stats stats_after(const sluice_model *model, const char *folder, const int32_t *ids, size_t n) {
    sluice_engine *engine;
    sluice_engine_stats stats;
    sluice_engine_options o = sluice_engine_options_default();
    o.n_ctx = 256, o.n_row_max = 32, o.n_thread = 1, o.prefix_path = folder;
    REQUIRE_OK(sluice_engine_create(&engine, model, &o), sluice_last_error());
    REQUIRE_OK(sluice_prefill(engine, 0, ids, n, NULL, NULL), sluice_last_error());
    REQUIRE_OK(sluice_prefix_save(engine), sluice_last_error()); // does nothing without a folder
    REQUIRE_OK(sluice_engine_get_stats(engine, &stats), sluice_last_error());
    CHECK_INT(stats.n_prompt, n);
    CHECK_INT(stats.n_blk, 8);
    CHECK_INT(stats.n_blk_held, (n + 31) / 32);
    CHECK_INT(stats.n_pos_held, n);
    sluice_engine_destroy(&engine);
    return stats;
}

TEST(a_folder_of_prefixes_outlives_its_engine) {
    sluice_model *model = open_model("qwen3");
    char folder[512];
    int32_t ids[100];
    for (int i = 0; i < 100; i++) ids[i] = i;
    snprintf(folder, sizeof folder, "%s/prefixes", test_scratch_dir());
    CHECK_INT(stats_after(model, NULL, ids, 100).disk_bytes, 0);
    sluice_engine_stats first = stats_after(model, folder, ids, 100), again = stats_after(model, folder, ids, 97);
    CHECK(first.n_disk == 0 && first.disk_bytes > 0);
    CHECK(again.n_disk == 96 && again.n_reused == 0 && again.n_row == 1);
    CHECK_INT(sluice_prefix_save(NULL), SLUICE_BAD_ARG);
    sluice_model_close(&model);
}
