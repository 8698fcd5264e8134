// SPDX-License-Identifier: MIT
//
// The public face of chat templates: parses once, renders many times (also at the same time on
// several threads), and prepares the conversation as transformers does before its templates see it.
#include "text/chat_template.h"

#include "base/utf8.h"
#include "text/jinja_callable.h"

enum {
    MAX_TEMPLATE_BYTES = 256 << 20, // of the parsed form
    MAX_VALUE_BYTES = 256 << 20,    // of a rendering's values
    DEFAULT_MAX_STEPS = 40000000,
    DEFAULT_MAX_BYTES = 64 << 20,
};

struct sl_chat_template {
    sl_jinja_run memory; // owns what the tree points to
    sl_jinja_ast ast;
};

sl_status sl_chat_template_create(sl_chat_template **out, sl_span source) {
    sl_chat_template *tmpl;
    *out = NULL;
    SL_TRY(sl_alloc(&tmpl, 1, sizeof *tmpl, "chat template"));
    tmpl->memory.max_steps = UINT64_MAX; // the source's length bounds the work
    tmpl->memory.max_arena_bytes = MAX_TEMPLATE_BYTES;
    tmpl->ast.memory = &tmpl->memory;
    sl_status status = sl_jinja_parse(&tmpl->ast, source);
    if (status == SL_OK) status = sl_jinja_resolve(&tmpl->ast);
    if (status == SL_OK) *out = tmpl;
    else sl_chat_template_destroy(tmpl);
    return status;
}

void sl_chat_template_destroy(sl_chat_template *tmpl) {
    if (!tmpl) return;
    sl_arena_deinit(&tmpl->memory.arena);
    sl_free(tmpl);
}

// ---- the conversation ----

static sl_status set_text(sl_jinja_run *run, sl_jinja_dict *dict, const char *name, sl_jinja_value v) {
    sl_jinja_value key;
    SL_TRY(sl_jinja_text_share(run, &key, name, strlen(name)));
    return sl_jinja_dict_set(run, dict, key, v);
}

static sl_status set_default(sl_jinja_run *run, sl_jinja_dict *dict, const char *name, sl_jinja_value v) {
    return sl_jinja_dict_text(dict, sl_span_of(name)) ? SL_OK : set_text(run, dict, name, v);
}

// Drops keys whose value is null; what a model thought goes by all its usual names.
static sl_status prepare_message(sl_jinja_run *run, sl_jinja_value *out, const sl_jinja_dict *from) {
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    const sl_jinja_value *thought = NULL;
    for (size_t i = 0; i < SL_COUNT(names) && !thought; i++) {
        thought = sl_jinja_dict_text(from, sl_span_of(names[i]));
        if (thought && thought->type == SL_JINJA_NONE) thought = NULL;
    }
    SL_TRY(sl_jinja_dict_make(run, out));
    if (thought) SL_TRY(set_text(run, out->as.dict, "thinking", *thought));
    for (size_t i = 0; i < from->n; i++)
        if (from->entries[i].value.type != SL_JINJA_NONE)
            SL_TRY(sl_jinja_dict_set(run, out->as.dict, from->entries[i].key, from->entries[i].value));
    return thought ? set_text(run, out->as.dict, "reasoning_content", *thought) : SL_OK;
}

static sl_status prepare_messages(sl_jinja_run *run, sl_jinja_value *out, sl_jinja_value given) {
    sl_jinja_value *items = NULL;
    if (given.type != SL_JINJA_LIST) return SL_FAIL(SL_BAD_INPUT, "the conversation's \"messages\" are no list");
    SL_TRY(sl_jinja_list_make(run, out, SL_JINJA_LIST, &items, given.as.list->n));
    for (size_t i = 0; i < given.as.list->n; i++) {
        if (given.as.list->items[i].type != SL_JINJA_DICT)
            return SL_FAIL(SL_BAD_INPUT, "message %zu of the conversation is no object", i);
        SL_TRY(prepare_message(run, &items[i], given.as.list->items[i].as.dict));
    }
    return SL_OK;
}

static sl_status set_token(sl_jinja_run *run, const char *name, sl_span text) {
    sl_jinja_value v;
    if (!text.data) return SL_OK; // undefined, as for a tokenizer without it
    for (size_t i = 0; i < text.n_bytes;) {
        uint32_t cp;
        size_t n = sl_utf8_decode(&cp, text.data + i, text.n_bytes - i);
        if (n == 0) return SL_FAIL(SL_BAD_INPUT, "%s is not UTF-8", name);
        i += n;
    }
    SL_TRY(sl_jinja_text_copy(run, &v, text.data, text.n_bytes));
    return set_default(run, &run->context, name, v);
}

static sl_status prepare(sl_jinja_run *run, sl_span conversation, const sl_chat_options *options) {
    sl_jinja_value all, messages;
    SL_TRY(sl_jinja_json_parse(run, &all, conversation));
    if (all.type != SL_JINJA_DICT) return SL_FAIL(SL_BAD_INPUT, "the conversation is no object");
    const sl_jinja_value *given = sl_jinja_dict_text(all.as.dict, sl_span_of("messages"));
    if (!given) return SL_FAIL(SL_BAD_INPUT, "the conversation has no \"messages\"");
    SL_TRY(prepare_messages(run, &messages, *given));
    SL_TRY(set_text(run, all.as.dict, "messages", messages));
    run->context = *all.as.dict;
    SL_TRY(set_default(run, &run->context, "tools", sl_jinja_none()));
    SL_TRY(set_default(run, &run->context, "documents", sl_jinja_none()));
    SL_TRY(set_default(run, &run->context, "add_generation_prompt", sl_jinja_bool(false)));
    SL_TRY(set_token(run, "bos_token", options->bos));
    return set_token(run, "eos_token", options->eos);
}

// ---- rendering ----

sl_status sl_chat_template_render(const sl_chat_template *tmpl, char **text, size_t *n_bytes, sl_span conversation,
                                  const sl_chat_options *options) {
    static const sl_chat_options no_options;
    *text = NULL;
    *n_bytes = 0;
    if (!tmpl) return SL_FAIL(SL_BAD_ARG, "there is no chat template");
    if (!options) options = &no_options;
    sl_jinja_run run = {
        .max_steps = options->max_steps ? options->max_steps : DEFAULT_MAX_STEPS,
        .max_arena_bytes = MAX_VALUE_BYTES,
        .out.max_bytes = options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES,
    };
    if (__builtin_add_overflow(options->now_unix, options->utc_offset_s, &run.now_s)) run.now_s = 0;
    sl_status status = prepare(&run, conversation, options);
    if (status == SL_OK) {
        status = sl_jinja_render(&run, &tmpl->ast);
        if (status != SL_OK && !run.raised) sl_fail_prefix(status, "line %u of the chat template", run.line);
    }
    if (status == SL_OK) status = sl_buf_take(&run.out, text, n_bytes);
    sl_buf_deinit(&run.out);
    sl_arena_deinit(&run.arena);
    return status;
}
