// SPDX-License-Identifier: MIT
//
// libedit, and the history file in the user's state folder. A history that cannot be read or
// written is no failure.
#include "line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HISTORY_LINES = 1000 };

struct line_editor {
    EditLine *edit;
    History *history;
    char history_path[1024]; // "": none
    bool more;               // the next line continues a message
    bool discarded;          // Ctrl-C
};

static char *prompt(EditLine *edit) {
    line_editor *e;
    static char first[] = "> ", next[] = ". ";
    el_get(edit, EL_CLIENTDATA, &e);
    return e->more ? next : first;
}

static unsigned char discard_line(EditLine *edit, int key) {
    (void)key;
    line_editor *e;
    FILE *echo;
    el_get(edit, EL_CLIENTDATA, &e);
    if (el_get(edit, EL_GETFP, 1, &echo) == 0) fputs("^C\n", echo);
    e->discarded = true;
    return CC_NEWLINE;
}

// $XDG_STATE_HOME/sluice/history, or ~/.local/state/sluice/history; makes the folders.
static void find_history(line_editor *e) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    size_t n = sizeof e->history_path;
    int length = -1;
    if (state && *state == '/') length = snprintf(e->history_path, n, "%s/sluice/history", state);
    else if (home && *home) length = snprintf(e->history_path, n, "%s/.local/state/sluice/history", home);
    if (length < 0 || (size_t)length >= n) {
        e->history_path[0] = '\0';
        return;
    }
    for (char *slash = strchr(e->history_path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(e->history_path, 0700);
        *slash = '/';
    }
}

int line_editor_open(line_editor **out) {
    line_editor *e = *out = calloc(1, sizeof *e);
    if (!e) return app_fail("out of memory");
    HistEvent event;
    FILE *echo = isatty(STDOUT_FILENO) == 1 ? stdout : stderr;
    e->edit = el_init("sluice", stdin, echo, stderr);
    e->history = history_init();
    if (!e->edit || !e->history)
        return line_editor_close(e), *out = NULL, app_fail("the terminal cannot be used for a chat");
    find_history(e);
    history(e->history, &event, H_SETSIZE, HISTORY_LINES);
    history(e->history, &event, H_SETUNIQUE, 1);
    if (e->history_path[0]) history(e->history, &event, H_LOAD, e->history_path);
    el_set(e->edit, EL_CLIENTDATA, e);
    el_set(e->edit, EL_PROMPT, prompt);
    el_set(e->edit, EL_HIST, history, e->history);
    el_set(e->edit, EL_EDITOR, "emacs");
    // At the prompt Ctrl-C is a key that discards the line; while an answer is made it is the
    // signal.
    el_set(e->edit, EL_ADDFN, "sluice-discard", "discards the line", discard_line);
    el_set(e->edit, EL_SETTY, "-d", "-isig", NULL);
    el_source(e->edit, NULL);
    el_set(e->edit, EL_BIND, "^C", "sluice-discard", NULL);
    return APP_OK;
}

void line_editor_close(line_editor *e) {
    if (!e) return;
    if (e->edit) el_end(e->edit);
    if (e->history) history_end(e->history);
    free(e);
}

static void remember(line_editor *e, const char *line) {
    HistEvent event;
    if (line[strspn(line, " \t\r\n")] == '\0') return;
    history(e->history, &event, H_ENTER, line);
    if (e->history_path[0]) {
        mode_t mask = umask(077); // what was said is nobody else's
        history(e->history, &event, H_SAVE, e->history_path);
        umask(mask);
    }
}

line_result line_editor_read(line_editor *e, text *message) {
    text_free(message);
    if (text_append(message, "", 0) != APP_OK) return LINE_FAILED;
    bool quoted = false;
    e->more = e->discarded = false;
    for (;;) {
        int n = 0;
        // Before the prompt, not after it as el_gets would: a Ctrl-D between the two is turned into a zero byte by the
        // change of mode.
        el_set(e->edit, EL_PREP_TERM, 1);
        const char *line = el_gets(e->edit, &n);
        if (e->discarded) return LINE_DISCARDED;
        if (!line || n <= 0) return LINE_END;
        remember(e, line);
        size_t length = strcspn(line, "\n");
        bool fence = length == 3 && memcmp(line, "\"\"\"", 3) == 0;
        bool goes_on = !quoted && !fence && length && line[length - 1] == '\\';
        if (fence && quoted) return LINE_GIVEN;
        if (fence && !e->more) {
            quoted = e->more = true;
            continue;
        }
        if (message->n && text_append(message, "\n", 1) != APP_OK) return LINE_FAILED;
        if (text_append(message, line, goes_on ? length - 1 : length) != APP_OK) return LINE_FAILED;
        if (!goes_on && !quoted) return LINE_GIVEN;
        e->more = true;
    }
}
