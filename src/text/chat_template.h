// SPDX-License-Identifier: MIT
//
// Chat templates: a bounded interpreter of the part of Jinja2 that real templates use, with the results of jinja2 3.1
// as transformers runs it (trim_blocks, lstrip_blocks, loop controls, `generation` blocks, tojson, strftime_now,
// raise_exception). Bounded in steps, depth and output; no I/O; never recursion without a depth count.
#ifndef SL_TEXT_CHAT_TEMPLATE_H
#define SL_TEXT_CHAT_TEMPLATE_H

#include <stdint.h>

#include "base/span.h"
#include "base/status.h"

typedef struct sl_chat_template sl_chat_template; // a parsed template; immutable

// Parses. SL_BAD_INPUT with line number if it is no valid template, SL_UNSUPPORTED if it uses what we do not have.
sl_status sl_chat_template_create(sl_chat_template **out, sl_span source);
void sl_chat_template_destroy(sl_chat_template *tmpl); // NULL is fine

typedef struct sl_chat_options {
    sl_span bos, eos;     // texts of the tokens, passed as bos_token and eos_token unless the conversation has its own
    int64_t now_unix;     // what strftime_now shows, seconds since the epoch
    int32_t utc_offset_s; // added to it
    uint64_t max_steps;   // 0 = default
    size_t max_bytes;     // of output; 0 = default
} sl_chat_options;

// `conversation` is JSON: {"messages": [...], "tools": [...] or null, "add_generation_prompt": true, ...}; other keys
// are passed to the template as they are. As transformers does: message keys whose value is null are dropped, and the
// reasoning keys (reasoning_content, thinking, reasoning) are copied to one another. *text is owned (sl_free) and
// NUL-terminated. raise_exception(m) fails with SL_BAD_INPUT and m.
sl_status sl_chat_template_render(const sl_chat_template *tmpl, char **text, size_t *n_bytes, sl_span conversation,
                                  const sl_chat_options *options);

#endif
