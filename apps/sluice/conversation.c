// SPDX-License-Identifier: MIT
//
// Conversations in JSON.
#include "conversation.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

// The length of the UTF-8 character at p (of n bytes), or 0 if there is none (Unicode 15, table
// 3-7).
static size_t utf8_length(const unsigned char *p, size_t n) {
    if (p[0] < 0x80) return 1;
    size_t length = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;
    if (length == 0 || length > n) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
    }
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool outside = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return overlong || outside ? 0 : length;
}

json_t *json_any_text(const char *bytes, size_t n) {
    text clean = {0};
    int status = text_append(&clean, "", 0);
    for (size_t i = 0, length; i < n && status == APP_OK; i += length ? length : 1) {
        length = utf8_length((const unsigned char *)bytes + i, n - i);
        status = length ? text_append(&clean, bytes + i, length) : text_append(&clean, "\xef\xbf\xbd", 3);
    }
    json_t *string = status == APP_OK ? json_stringn(clean.data, clean.n) : NULL;
    text_free(&clean);
    return string;
}

static int load_tools(conversation *c, const char *path) {
    text source;
    if (file_read(&source, path) != APP_OK) return APP_FAILED;
    json_error_t error;
    json_t *tools = json_loadb(source.data, source.n, JSON_REJECT_DUPLICATES, &error);
    text_free(&source);
    if (!tools) return app_fail("%s: line %d: %s", path, error.line, error.text);
    if (json_is_array(tools))
        return json_object_set_new(c->root, "tools", tools) == 0 ? APP_OK : app_fail("out of memory");
    json_decref(tools);
    return app_fail("%s: must be a JSON array of tools", path);
}

int conversation_init(conversation *c, bool plain, const char *tools_path) {
    *c = (conversation){.plain = plain, .root = json_pack("{s:[], s:b}", "messages", "add_generation_prompt", 1)};
    if (!c->root) return app_fail("out of memory");
    c->messages = json_object_get(c->root, "messages");
    return tools_path ? load_tools(c, tools_path) : APP_OK;
}

void conversation_deinit(conversation *c) {
    json_decref(c->root);
    *c = (conversation){0};
}

static json_t *make_message(const char *role, const char *content, size_t n_bytes) {
    json_t *string = json_any_text(content, n_bytes);
    return string ? json_pack("{s:s, s:o}", "role", role, "content", string) : NULL;
}

int conversation_add(conversation *c, const char *role, const char *content, size_t n_bytes) {
    json_t *message = make_message(role, content, n_bytes);
    if (!message || json_array_append_new(c->messages, message) != 0) return app_fail("out of memory");
    return APP_OK;
}

static const char *role_at(const conversation *c, size_t i) {
    const char *role = json_string_value(json_object_get(json_array_get(c->messages, i), "role"));
    return role ? role : "";
}

int conversation_set_system(conversation *c, const char *content) {
    if (strcmp(role_at(c, 0), "system") == 0) json_array_remove(c->messages, 0);
    if (!*content) return APP_OK;
    json_t *message = make_message("system", content, strlen(content));
    if (!message || json_array_insert_new(c->messages, 0, message) != 0) return app_fail("out of memory");
    return APP_OK;
}

size_t conversation_length(const conversation *c) { return json_array_size(c->messages); }

const char *conversation_last_role(const conversation *c) {
    size_t n = conversation_length(c);
    return n ? role_at(c, n - 1) : "";
}

void conversation_drop_last(conversation *c) {
    size_t n = conversation_length(c);
    if (n) json_array_remove(c->messages, n - 1);
}

char *conversation_to_json(const conversation *c) { return json_dumps(c->root, JSON_COMPACT); }

static bool is_message(const json_t *message) {
    return json_is_string(json_object_get(message, "role")) && json_is_string(json_object_get(message, "content"));
}

bool conversation_take_json(conversation *c, const char *bytes, size_t n) {
    json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL), *messages = json_object_get(root, "messages");
    bool good = json_is_array(messages);
    for (size_t i = 0; i < json_array_size(messages); i++) good = good && is_message(json_array_get(messages, i));
    if (good) good = json_array_clear(c->messages) == 0 && json_array_extend(c->messages, messages) == 0;
    json_decref(root);
    return good;
}

void conversation_clear(conversation *c) {
    while (conversation_length(c) > 1) conversation_drop_last(c);
    if (strcmp(role_at(c, 0), "system") != 0) conversation_drop_last(c);
}

static int64_t local_time_now(void) {
    time_t now = time(NULL);
    struct tm local;
    if (!localtime_r(&now, &local)) return (int64_t)now;
    return (int64_t)now + local.tm_gmtoff;
}

int prompt_encode(const session *s, const char *prompt, size_t n_bytes, int32_t **ids, size_t *n) {
    unsigned flags = SLUICE_PARSE_SPECIAL | SLUICE_ADD_BOS;
    int32_t bos = s->model_info.bos;
    char bos_text[64];
    size_t n_bos = 0;
    if (bos >= 0 &&
        sluice_decode(s->model, bos_text, sizeof bos_text, &n_bos, &bos, 1, SLUICE_SHOW_SPECIAL) != SLUICE_OK)
        n_bos = 0;
    // Many templates write the BOS themselves.
    if (n_bos && n_bytes >= n_bos && memcmp(prompt, bos_text, n_bos) == 0) flags = SLUICE_PARSE_SPECIAL;
    return session_encode(s, ids, n, prompt, n_bytes, flags);
}

static int join_plain(const conversation *c, text *out) {
    int status = text_append(out, "", 0);
    for (size_t i = 0; i < conversation_length(c) && status == APP_OK; i++) {
        json_t *content = json_object_get(json_array_get(c->messages, i), "content");
        status = text_append(out, json_string_value(content), json_string_length(content));
    }
    return status;
}

int conversation_encode(const conversation *c, const session *s, int32_t **ids, size_t *n) {
    *ids = NULL, *n = 0;
    if (c->plain) {
        text prompt = {0};
        int status = join_plain(c, &prompt);
        if (status == APP_OK) status = prompt_encode(s, prompt.data, prompt.n, ids, n);
        text_free(&prompt);
        return status;
    }
    char *source = conversation_to_json(c), *prompt = NULL;
    if (!source) return app_fail("out of memory");
    sluice_status rendered = sluice_render(s->model, NULL, source, local_time_now(), &prompt);
    free(source);
    if (rendered != SLUICE_OK) return app_fail_library(rendered);
    int status = prompt_encode(s, prompt, strlen(prompt), ids, n);
    sluice_free(prompt);
    return status;
}
