// SPDX-License-Identifier: MIT
//
// A conversation as the JSON that chat templates take, and the token ids of its prompt.
#ifndef SLUICE_CONVERSATION_H
#define SLUICE_CONVERSATION_H

#include <jansson.h>

#include "files.h"
#include "session.h"

typedef struct conversation {
    json_t *root;     // {"messages": [...], "add_generation_prompt": true, "tools": ...}; owned
    json_t *messages; // borrowed from root
    bool plain;       // no template: the prompt is what was said, one after the other
} conversation;

int conversation_init(conversation *c, bool plain,
                      const char *tools_path); // tools_path: a JSON file, or NULL
void conversation_deinit(conversation *c);

int conversation_add(conversation *c, const char *role, const char *content, size_t n_bytes);
int conversation_set_system(conversation *c, const char *content);
size_t conversation_length(const conversation *c);
const char *conversation_last_role(const conversation *c); // "" if there is none
void conversation_drop_last(conversation *c);
char *conversation_to_json(const conversation *c); // the caller's to free(); NULL: no memory
// Takes the messages of what conversation_to_json gave in place of its own; false if it is no such thing.
bool conversation_take_json(conversation *c, const char *bytes, size_t n);
void conversation_clear(conversation *c); // all but the system message

// The ids of the prompt that asks for the next answer. *ids is the caller's to free().
int conversation_encode(const conversation *c, const session *s, int32_t **ids, size_t *n);

// The ids of a prompt that is written out: control tokens in it count, and it begins with one BOS
// if the model wants that.
int prompt_encode(const session *s, const char *prompt, size_t n_bytes, int32_t **ids, size_t *n);

json_t *json_any_text(const char *bytes,
                      size_t n); // a JSON string; what is not UTF-8 becomes U+FFFD. NULL: no memory

#endif
