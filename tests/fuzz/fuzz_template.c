// SPDX-License-Identifier: MIT
// sl_test: MODULES text base
//
// Chat templates: the first line of the input says which side it is. "c" and a newline: the rest is
// a conversation for a fixed template that walks through everything in it; otherwise all of it is a
// template for a fixed conversation.
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "text/chat_template.h"

static const char walker[] =
    "{%- macro show(x) -%}"
    "{%- if x is mapping -%}{% for k, v in x|dictsort %}{{ k }}:{{ show(v) }};{% endfor %}"
    "{%- elif x is string -%}{{ x|trim|upper }}{{ x[::-1] }}{{ x.split() }}{{ x.title() }}"
    "{%- elif x is iterable -%}{% for v in x %}{{ show(v) }}{{ loop.last }}{% endfor %}"
    "{%- else -%}{{ x|string }}{{ x is number and x * 2 }}{%- endif -%}"
    "{%- endmacro -%}"
    "{% for m in messages %}{{ show(m) }}{{ m|tojson(indent=2) }}{{ m }}{% endfor %}{{ show(tools) "
    "}}{{ tools|tojson }}";

static const char conversation[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be \\u00fcber brief.\"}, {\"role\": "
    "\"user\", \"content\": [{\"type\": "
    "\"text\", \"text\": \"Hi <b>\"}]}, {\"role\": \"assistant\", \"content\": \"\", \"thinking\": "
    "\"hm\", \"tool_calls\": [{\"id\": "
    "\"c1\", \"function\": {\"name\": \"f\", \"arguments\": {\"x\": 1.5, \"y\": [true, "
    "null]}}}]}], \"tools\": [{\"type\": "
    "\"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"x\": "
    "{\"type\": \"number\"}}}}}], "
    "\"add_generation_prompt\": true, \"s\": \"a b,c\", \"n\": 7, \"l\": [3, 1, 2]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    sl_span input = sl_span_make((const char *)data, n_bytes), source = input, talk = sl_span_of(conversation);
    if (n_bytes >= 2 && data[0] == 'c' && data[1] == '\n') {
        source = sl_span_of(walker);
        talk = sl_span_make(input.data + 2, n_bytes - 2);
    }
    sl_chat_template *tmpl;
    if (sl_chat_template_create(&tmpl, source) != SL_OK) return 0;
    char *text;
    size_t n;
    sl_chat_options options = {
        .bos = sl_span_of("<s>"), .now_unix = 1796040000, .max_steps = 200000, .max_bytes = 1 << 20};
    if (sl_chat_template_render(tmpl, &text, &n, talk, &options) == SL_OK) sl_free(text);
    sl_chat_template_destroy(tmpl);
    return 0;
}
