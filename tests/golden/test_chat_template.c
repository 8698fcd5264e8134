// SPDX-License-Identifier: MIT
// sl_test: MODULES text base
//
// The peer's 70 templates with our 26 conversations against jinja2, as
// tools/make_template_goldens.py recorded it: same bytes where it renders, a failure where it
// fails. The templates come from the cache, not from the repository.
#include "harness.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "text/chat_template.h"

static char *read_file(const char *path, size_t *n) { // owned; NULL if it isn't there
    sl_buf buf = {0};
    char block[65536], *text;
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    for (size_t got; (got = fread(block, 1, sizeof block, f)) > 0;) sl_buf_append(&buf, block, got);
    fclose(f);
    REQUIRE_OK(sl_buf_take(&buf, &text, n), sl_error_text());
    return text;
}

static const char *cache_dir(void) {
    static char path[2048];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache) snprintf(path, sizeof path, "%s/sluice/peer/models/templates", cache);
    else snprintf(path, sizeof path, "%s/.cache/sluice/peer/models/templates", home ? home : "");
    return path;
}

static char *source; // of the template at hand
static size_t n_source;
static char template_path[4096];

static void show_difference(const char *conversation_path, const char *got, size_t n) {
    char command[8192], want[1 << 16];
    snprintf(command, sizeof command, "python3 '%s' --show '%s' '%s' 2>/dev/null",
             test_source_path("tools/make_template_goldens.py"), template_path, conversation_path);
    FILE *f = popen(command, "r"); // only works where jinja2 is at hand; the failure stands without it
    size_t n_want = f ? fread(want, 1, sizeof want, f) : 0, at = 0;
    if (f) pclose(f);
    while (at < n && at < n_want && got[at] == want[at]) at++;
    size_t from = at < 40 ? 0 : at - 40;
    if (n_want)
        printf("      at byte %zu: got  ...%.*s\n                  want ...%.*s\n", at, (int)SL_MIN(n - from, 120u),
               got + from, (int)SL_MIN(n_want - from, 120u), want + from);
}

static void check_pair(const char *conversation_path, sl_span conversation, const char *expected) {
    static const sl_chat_options noon = {.now_unix = 1796040000}; // render.py's clock
    sl_chat_template *tmpl;
    char *text = NULL, got[64] = "error";
    size_t n = 0;
    if (sl_chat_template_create(&tmpl, sl_span_make(source, n_source)) == SL_OK) {
        if (sl_chat_template_render(tmpl, &text, &n, conversation, &noon) == SL_OK)
            snprintf(got, sizeof got, "%zu %016llx", n, (unsigned long long)sl_span_hash(sl_span_make(text, n)));
        sl_chat_template_destroy(tmpl);
    }
    bool same = strcmp(got, expected) == 0;
    if (!same) {
        test_failed(__FILE__, __LINE__, "%s with %s: %s, not %s (%s)", strrchr(template_path, '/') + 1,
                    strrchr(conversation_path, '/') + 1, got, expected, text ? "" : sl_error_text());
        if (text) show_difference(conversation_path, text, n);
    }
    sl_free(text);
}

static void load_template(const char *name) {
    snprintf(template_path, sizeof template_path, "%s/%s.jinja", cache_dir(), name);
    sl_free(source);
    source = read_file(template_path, &n_source);
    if (!source) test_skip("%s is not there; tools/fetch_models.py fetches it", template_path);
}

static void check_line(const char *name, const char *expected) {
    char path[4096], relative[512];
    size_t n;
    snprintf(relative, sizeof relative, "tests/golden/templates/conversations/%s.json", name);
    snprintf(path, sizeof path, "%s", test_source_path(relative));
    char *conversation = read_file(path, &n);
    REQUIRE(conversation != NULL && source != NULL);
    check_pair(path, sl_span_make(conversation, n), expected);
    sl_free(conversation);
}

TEST(peer_templates_render_as_jinja2_does) {
    char *table = read_file(test_source_path("tests/golden/templates/expected.txt"), NULL), *rest = table, *line;
    size_t n_pairs = 0, n_templates = 0;
    REQUIRE(table != NULL);
    while ((line = strsep(&rest, "\n")) != NULL && *line) {
        char name[256], expected[256];
        REQUIRE(sscanf(line, "%255s %255[^\n]", name, expected) == 2);
        bool is_template = strcmp(name, "template") == 0;
        if (is_template) load_template(expected);
        else check_line(name, expected);
        n_templates += is_template;
        n_pairs += !is_template;
    }
    CHECK_INT(n_templates, 70);
    CHECK(n_pairs >= 70 * 12);
    sl_free(source), sl_free(table);
}
