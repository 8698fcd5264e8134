// SPDX-License-Identifier: MIT
// sl_test: MODULES text base
//
// Small templates with jinja2's own results (jinja_cases_tab.h, made by tools/make_jinja_cases.py),
// and the bounds: no template of any shape may overflow a stack, run for long or take much memory.
#include "harness.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "jinja_cases_tab.h"
#include "text/chat_template.h"

// NULL if it fails.
static char *render(const char *source, size_t n, const char *conversation, const sl_chat_options *options) {
    sl_chat_template *tmpl;
    char *text = NULL;
    size_t n_bytes;
    sl_error_clear();
    if (sl_chat_template_create(&tmpl, sl_span_make(source, n)) != SL_OK) return NULL;
    sl_status status = sl_chat_template_render(tmpl, &text, &n_bytes, sl_span_of(conversation), options);
    CHECK((status == SL_OK) == (text != NULL));
    if (text) CHECK_INT(text[n_bytes], 0);
    sl_chat_template_destroy(tmpl);
    return text;
}

// 2026-11-30 12:00:00, the clock of render.py, as 13:00 one hour east
static const sl_chat_options noon = {.now_unix = 1796036400, .utc_offset_s = 3600};

TEST(small_templates_render_as_jinja2_does) {
    for (size_t i = 0; i < SL_COUNT(cases); i++) {
        char *text = render(cases[i].source, strlen(cases[i].source), context, &noon);
        bool same = text && cases[i].expected ? strcmp(text, cases[i].expected) == 0 : !text && !cases[i].expected;
        if (!same)
            test_failed(__FILE__, __LINE__, "%s gives \"%s\", not \"%s\" (%s)", cases[i].source,
                        text ? text : "a failure", cases[i].expected ? cases[i].expected : "a failure",
                        text ? "" : sl_error_text());
        if (!text) CHECK(sl_error_text()[0] != 0);
        sl_free(text);
    }
}

static void must_render(const char *source, const char *conversation, const char *expected) {
    char *text = render(source, strlen(source), conversation, NULL);
    if (!text) test_failed(__FILE__, __LINE__, "%s: %s", source, sl_error_text());
    else CHECK_TEXT(text, expected);
    sl_free(text);
}

static void must_fail(const char *source, const char *conversation, const char *word) {
    static const sl_chat_options few_steps = {.max_steps = 1000000}; // so that slow builds are quick, too
    char *text = render(source, strlen(source), conversation, &few_steps);
    if (text) test_failed(__FILE__, __LINE__, "%.80s gives \"%.80s\"", source, text);
    else if (!strstr(sl_error_text(), word))
        test_failed(__FILE__, __LINE__, "%.80s: the reason \"%s\" lacks \"%s\"", source, sl_error_text(), word);
    sl_free(text);
}

static const char plain[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}";

// prefix, then `unit` n times, then `middle`, then `close` n times
static char *nest(const char *prefix, const char *unit, const char *middle, const char *close, size_t n,
                  const char *suffix) {
    sl_buf buf = {0};
    char *text;
    sl_buf_text(&buf, prefix);
    for (size_t i = 0; i < n; i++) sl_buf_text(&buf, unit);
    sl_buf_text(&buf, middle);
    for (size_t i = 0; i < n; i++) sl_buf_text(&buf, close);
    sl_buf_text(&buf, suffix);
    REQUIRE_OK(sl_buf_take(&buf, &text, NULL), sl_error_text());
    return text;
}

TEST(deep_nesting_is_refused) {
    static const char *const shapes[][5] = {
        {"{{ ", "(", "1", ")", " }}"},
        {"{{ ", "[", "", "]", " }}"},
        {"{{ ", "{1:", "1", "}", " }}"},
        {"{{ ", "not ", "1", "", " }}"},
        {"{{ ", "- ", "1", "", " }}"},
        {"{{ 1", " + 1", "", "", " }}"},
        {"{{ x", ".y", "", "", " }}"},
        {"{{ x", "[0]", "", "", " }}"},
        {"{{ x", "|list", "", "", " }}"},
        {"{{ x", "()", "", "", " }}"},
        {"{{ 1", " if 1 else 1", "", "", " }}"},
        {"{{ x[", "x[", "1", "]", "] }}"},
        {"{{ 1", " and 1", "", "", " }}"},
        {"{{ f(", "f(", "", ")", ") }}"},
        {"", "{% if 1 %}", "x", "{% endif %}", ""},
        {"", "{% for a in [1] %}", "x", "{% endfor %}", ""},
        {"", "{% macro m() %}", "x", "{% endmacro %}", ""},
        {"{% set ", "(", "a", ",)", " = 1 %}"},
        {"{{ 1 is in ", "[", "1", "]", " }}"},
        {"{{ 1", " ** 1", "", "", " }}"},
        {"{% for ", "(", "a", ",)", " in x %}{% endfor %}"},
        {"{{ x is x is", " not x is", "", "", " }}"},
        {"", "{% filter upper %}", "x", "{% endfilter %}", ""},
        {"", "{% set x %}", "x", "{% endset %}", ""},
    };
    for (size_t i = 0; i < SL_COUNT(shapes); i++) {
        char *text = nest(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], 60000, shapes[i][4]);
        must_fail(text, plain, "");
        sl_free(text);
    }
    char *json = nest("{\"messages\": [], \"x\": ", "[", "", "]", 60000, "}");
    must_fail("{{ x }}", json, "");
    sl_free(json);
    json = nest("{\"messages\": [], \"x\": ", "{\"a\":", "1", "}", 1000, "}");
    must_fail("{{ x }}", json, "deep");
    sl_free(json);
}

TEST(long_but_flat_templates_are_fine) {
    char *text = nest("", "{{ 1 }}", "", "", 20000, "");
    char *out = render(text, strlen(text), plain, NULL);
    REQUIRE(out != NULL);
    CHECK_INT(strlen(out), 20000);
    sl_free(out), sl_free(text);
    text = nest("{% if 0 %}", "{% elif 0 %}", "{% else %}x{% endif %}", "", 20000, "");
    must_render(text, plain, "x");
    sl_free(text);
    text = nest("{{ (1", " ~ 1", ")|length }}", "", 5000, "");
    must_render(text, plain, "5001");
    sl_free(text);
    text = nest("{{ [1", ", 1", "]|length }}", "", 20000, "");
    must_render(text, plain, "20001");
    sl_free(text);
}

TEST(runaways_are_stopped) {
    static const char *const sources[] = {
        "{{ 'a' * 1000000000 }}",
        "{{ 'a' * 1000000000000000000 * 100 }}",
        "{{ [1] * 1000000000 }}",
        "{{ range(1000000000) }}",
        "{% for i in range(1000000000) %}{% endfor %}",
        "{{ 'x'.center(1000000000) }}",
        "{{ 'x'.zfill(9000000000000000000) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (1000000000, 1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:.1000000000f}'.format(1.0) }}",
        "{{ 'a\nb'|indent(1000000000) }}",
        "{{ [1]|tojson(indent=1000000000) }}",
        "{{ [1]|batch(1000000000, 1)|list }}",
        "{{ [1]|slice(1000000000)|list }}",
        "{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = ns.x * 2 %}{% "
        "endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(100) %}{% set ns.x = ns.x|replace('a', "
        "ns.x) %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% "
        "endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% "
        "endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% "
        "endfor %}{{ ns.x == ns.x }}{{ ns.x|tojson }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor "
        "%}{{ ns.x }}",
        "{% set ns = namespace(x=[], y=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% "
        "set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
        "{% set ns = namespace(x=()) %}{% for i in range(5000) %}{% set ns.x = (ns.x,) %}{% endfor "
        "%}{{ {ns.x: 1} }}",
        "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% macro m(x=m()) %}{% endmacro %}{{ m() }}",
        "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{{ 2 ** 100 }}",
        "{{ 9223372036854775807 + 1 }}",
        "{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% "
        "endfor %}{% endfor %}{% endfor %}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{{ "
        "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}{% endfor %}",
        "{% set s = 'ab' * 1000000 %}{% for a in range(100000) %}{{ 'b' * 1000 in s }}{% endfor %}",
        "{% set s = 'a' * 1000000 %}{% for a in range(100000) %}{% set x = s|upper %}{% endfor %}",
        "{% set s = 'a' * 1000000 %}{% for a in range(100000) %}{% set x = s == s ~ '' %}{% endfor "
        "%}",
        "{% set s = 'é' * 1000000 %}{% for a in range(100000) %}{% set x = s[500000] %}{% endfor "
        "%}",
        "{{ ('a' * 1000000).rfind('a' * 250000 ~ 'b' ~ 'a' * 250000) }}",
        "{{ ('a' * 1000000).rsplit('a' * 250000 ~ 'b' ~ 'a' * 250000) }}",
        "{{ ('a' * 1000000).rpartition('a' * 250000 ~ 'b' ~ 'a' * 250000) }}",
        "{{ ('a' * 500000)|trim('b' * 500000) }}",
    };
    for (size_t i = 0; i < SL_COUNT(sources); i++) must_fail(sources[i], plain, "");
}

TEST(the_callers_bounds_hold) {
    sl_chat_options options = {.max_steps = 100};
    CHECK(render("{% for i in range(200) %}{% endfor %}", 37, plain, &options) == NULL);
    CHECK(strstr(sl_error_text(), "steps") != NULL);
    options = (sl_chat_options){.max_bytes = 10};
    CHECK(render("{{ 'x' * 11 }}", 14, plain, &options) == NULL);
    char *text = render("{{ 'x' * 10 }}", 14, plain, &options);
    CHECK_TEXT(text, "xxxxxxxxxx");
    sl_free(text);
}

TEST(building_a_text_piece_by_piece_is_cheap) {
    must_render("{% set ns = namespace(x='') %}{% for i in range(50000) %}{% set ns.x = ns.x ~ "
                "'twenty bytes of text' %}"
                "{% endfor %}{{ ns.x|length }}",
                plain, "1000000");
    must_render("{% set ns = namespace(x='') %}{% for i in range(50000) %}{% set ns.x = ns.x + "
                "'twenty bytes of text' %}"
                "{% endfor %}{{ ns.x|length }}",
                plain, "1000000");
    // two texts grown from the same beginning do not disturb each other
    must_render("{% set a = 'x' ~ 'y' %}{% set b = a ~ '1' %}{% set c = a ~ '2' %}{{ a }}{{ b }}{{ c }}", plain,
                "xyxy1xy2");
}

TEST(searching_long_texts_is_cheap) {
    must_render("{% set s = 'ab ' * 300000 %}{{ s.rfind('b') }} {{ s.find('c') }} {{ s.count('ab') }} "
                "{{ s.split(' ', 5)|length }} {{ s.rsplit('b', 2)|length }} {{ s.rstrip()|length }} "
                "{{ 'c' in s }}",
                plain, "899998 -1 300000 6 3 899999 False");
    must_render("{{ ('a' * 300000).find('a' * 150000 ~ 'b') }}", plain, "-1");
}

TEST(bad_conversations_are_refused) {
    must_fail("x", "", "JSON");
    must_fail("x", "[]", "object");
    must_fail("x", "{}", "messages");
    must_fail("x", "{\"messages\": 1}", "messages");
    must_fail("x", "{\"messages\": [1]}", "message 0");
    must_fail("x", "{\"messages\": []", "JSON");
    must_fail("x", "{\"messages\": [], \"x\": \"\\ud800\"}", "JSON");
    must_fail("x", "{\"messages\": [], \"x\": \"\xff\"}", "JSON");
    must_fail("x", "{\"messages\": [], \"x\": 123456789012345678901234567890}", "JSON");
    must_render("{{ x|length }}", "{\"messages\": [], \"x\": \"a\\u0000b\"}", "3");
    must_render("{{ x }}", "{\"messages\": [], \"x\": {\"b\": 1, \"a\": 2, \"b\": 3}}", "{'b': 3, 'a': 2}");
    must_render("{{ x }}", "{\"messages\": [], \"x\": [1, 1.0, -0.0, 9223372036854775807]}",
                "[1, 1.0, -0.0, 9223372036854775807]");
}

TEST(messages_are_prepared_as_transformers_does) {
    must_render("{{ messages }}", "{\"messages\": [{\"role\": \"a\", \"content\": null, \"reasoning\": \"r\"}]}",
                "[{'thinking': 'r', 'role': 'a', 'reasoning': 'r', 'reasoning_content': 'r'}]");
    must_render("{{ tools }}{{ documents }}{{ add_generation_prompt }}{{ bos_token is defined }}", plain,
                "NoneNoneFalseFalse");
    sl_chat_options options = {.bos = sl_span_of("<s>"), .eos = sl_span_of("")};
    char *text = render("[{{ bos_token }}|{{ eos_token }}]", 33, plain, &options);
    CHECK_TEXT(text, "[<s>|]");
    sl_free(text);
    text = render("{{ bos_token }}", 15, "{\"messages\": [], \"bos_token\": \"own\"}", &options);
    CHECK_TEXT(text, "own");
    sl_free(text);
}

TEST(failures_say_where_and_what) {
    must_fail("a\nb\n{{ 1 + 'x' }}", plain, "line 3");
    must_fail("a\n{% if %}", plain, "line 2");
    must_fail("{{ raise_exception('Only user, please.') }}", plain, "Only user, please.");
    must_fail("{{ a.b }}", plain, "'a' is undefined");
    must_fail("{{ 'x'|urlize }}", plain, "urlize");
    char *text = render("{{ '\xff' }}", 10, plain, NULL);
    CHECK(!text && strstr(sl_error_text(), "UTF-8"));
}

TEST(a_failed_allocation_is_a_failure) {
    static const char source[] = "{% macro m(a) %}{{ a|upper }}{% endmacro %}{% for x in messages "
                                 "%}{{ m(x.role) ~ x|tojson }}{% endfor %}";
    char *text = NULL;
    for (uint64_t n = 1; !text && n < 1000; n++) {
        sl_alloc_fail_at(n);
        text = render(source, sizeof source - 1, plain, NULL);
        sl_alloc_fail_at(0);
    }
    CHECK_TEXT(text, "USER{\"role\": \"user\", \"content\": \"hi\"}");
    sl_free(text);
}
