// SPDX-License-Identifier: MIT
//
// Copies of block weights in the order in which matrix products read them, on huge pages. A product walks 16 rows at
// once, 256 columns at a time; in a file these are 16 streams, 4 KB pages apart, which neither the prefetcher nor the
// TLB likes, and each word of them has to find its lane. In panel order
//   for each panel of SL_CPU_PANEL_ROWS rows: for each block of a row: for each word of it: that word of each row
// they are one stream of vectors. A word is four bytes; what a block's length has beyond words (q8_0: 34 bytes) is one
// unit more, of one or two bytes: the first of a plain block, the last of a super-block. So the bytes at `off` of all
// blocks of a panel begin at 16 * off, a copy is as large as its matrix, and the bits of a product are the same in
// either order. Rows that a last panel lacks are zero.
#ifndef SL_BACKEND_CPU_REPACK_H
#define SL_BACKEND_CPU_REPACK_H

#include "backend/backend.h"
#include "backend/cpu/pool.h"

typedef struct sl_repack sl_repack;

// Bytes of the copy of a matrix; 0 for float types, whose products read row by row.
uint64_t sl_repack_bytes(const sl_plan_weight *weight);

// Copies every weight of the plan that has copy_bytes, with all threads of the pool; locks the copies if `wire`.
sl_status sl_repack_create(sl_repack **out, const sl_plan *plan, const sl_program_memory *memory, sl_pool *pool,
                           bool wire);
void sl_repack_destroy(sl_repack *repack); // NULL is fine

uint64_t sl_repack_wired_bytes(const sl_repack *repack); // locked; repack may be NULL

// The copy of the matrix that lies at `weight` in the file, or NULL. repack may be NULL.
const uint8_t *sl_repack_find(const sl_repack *repack, const void *weight);

#endif
