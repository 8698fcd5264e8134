// SPDX-License-Identifier: MIT
//
// The bytes of a session file: what a sequence holds, so that it can go on in another process. Pure: bytes in, a view
// out; knows nothing of engines. Little-endian; one section behind the other, in this order:
//
//   head, one sum for each section       XXH64 of both is in the head
//   layers    (n_layer) sl_session_layer
//   ids       (n_pos, less those of n_gone blocks) int32
//   app       bytes of the program that saved it
//   K of layer 0, V of layer 0, K of layer 1 ...   whole blocks, in the order of bytes that the backend has them in; if
//             the last is not full and the layer has open blocks (plan/ir.h), that one behind them
//
// The sum of a section is its XXH64; of keys and values, block by block, each with the sum so far as its seed.
#ifndef SL_ENGINE_SESSION_FILE_H
#define SL_ENGINE_SESSION_FILE_H

#include "base/span.h"
#include "base/status.h"

enum { SL_SESSION_VERSION = 2, SL_SESSION_MAX_LAYERS = 4096 };

typedef struct sl_session_head {
    char magic[8];
    uint32_t version, n_layer;
    uint64_t file_bytes, head_hash; // of the head, with 0 here, and the sums
    uint64_t model_hash;
    char backend[16]; // whose order of bytes the blocks have
    uint32_t layout;  // which of its orders
    uint32_t blk_len, n_vocab;
    uint32_t n_pos;
    uint32_t window_first; // the first block that layers of class 1 have, of those that are not gone
    uint32_t first;        // and those of class 0: 0, but for parts of prefixes (engine_store.c)
    // Of a sequence that went on in a full context (kv/kv_move.c), else 0: positions that a row sees, blocks after the
    // first that were let go, and the hash of their tokens.
    uint32_t n_ctx, n_gone;
    uint64_t gone_hash;
    uint64_t app_bytes;
} sl_session_head;

typedef struct sl_session_layer {
    uint32_t n_head_kv, head_dim, v_dim, window;
    uint8_t type_k, type_v, rot_v, zero; // sl_type; the binary logarithm of the order of V's rotation, 0: none
    uint32_t cls;                        // 0: has the blocks from head.first on; 1: from window_first on
    uint64_t k_blk_bytes, v_blk_bytes;
    uint64_t k_open_bytes, v_open_bytes; // of an open block; 0: there is none
} sl_session_layer;

_Static_assert(sizeof(sl_session_head) == 104 && sizeof(sl_session_layer) == 56, "as in the file");

typedef struct sl_session_view { // borrows the bytes
    const sl_session_head *head;
    const sl_session_layer *layer; // (n_layer)
    const int32_t *ids;            // (n_id) each in 0 .. n_vocab-1
    uint32_t n_id;
    sl_span app;
    const uint8_t *kv; // K of layer 0, and what follows
} sl_session_view;

// Sections: layers, ids, app, then K and V of each layer.
static inline uint32_t sl_session_n_section(uint32_t n_layer) { return 3 + 2 * n_layer; }

// Ids that the file has.
uint32_t sl_session_n_id(const sl_session_head *head);
// Blocks that the file has of a layer of this class.
uint32_t sl_session_n_blk(const sl_session_head *head, uint32_t cls);
// Bytes of a layer's K, or V.
SL_MUST_CHECK bool sl_session_kv_bytes(const sl_session_head *head, const sl_session_layer *layer, bool is_v,
                                       uint64_t *out);
// Size of the whole file; false if it is 2^64 bytes or more.
SL_MUST_CHECK bool sl_session_file_bytes(const sl_session_head *head, const sl_session_layer *layer, uint64_t *out);
uint64_t sl_session_hash_head(const sl_session_head *head, const uint64_t *sums);
void sl_session_set_magic(sl_session_head *head);

// Everything that can be checked without an engine, all sums included. `data` is 8-byte aligned. SL_BAD_FILE or
// SL_UNSUPPORTED in one sentence that begins with a verb, for after the file's name.
sl_status sl_session_parse(sl_session_view *out, const uint8_t *data, size_t n_bytes);

#endif
