// SPDX-License-Identifier: MIT
//
// A folder of prefixes with a budget of bytes, which a full disk lowers. A file is named by what it is for:
// FORM-CHAIN.kv, two hashes in hex; what it holds is checked by who reads it. When the budget is reached, the files
// that were used longest ago go. Several processes may use a folder at once: each file appears whole, and one that is
// gone is a prefix that is not known. Files of other names are not counted and never touched. Knows nothing of engines
// and of what is in the files.
#ifndef SL_ENGINE_PREFIX_FOLDER_H
#define SL_ENGINE_PREFIX_FOLDER_H

#include "os/os.h"

typedef struct sl_prefix_folder {
    char path[3072];
    uint64_t budget_bytes;
    uint64_t limit_bytes; // the budget, or what the disk has room for
    uint64_t n_bytes;     // in it, when it was last looked through and by what was written since
} sl_prefix_folder;

typedef struct sl_prefix_key {
    uint64_t form, chain;
} sl_prefix_key;

enum { SL_PREFIX_PATH_BYTES = 4096 };

// Makes the folder if need be.
sl_status sl_prefix_folder_open(sl_prefix_folder *out, const char *path, uint64_t budget_bytes);
void sl_prefix_folder_path(char out[SL_PREFIX_PATH_BYTES], const sl_prefix_folder *folder, sl_prefix_key key);
// Looks through it; removes what is over the limit, and parts of files that were never finished.
sl_status sl_prefix_folder_look(sl_prefix_folder *folder);
// Room for a file of n_bytes, for which those go that were not used since `since_ns`; SL_FULL if that is not enough.
sl_status sl_prefix_folder_make_room(sl_prefix_folder *folder, uint64_t n_bytes, int64_t since_ns);

#endif
