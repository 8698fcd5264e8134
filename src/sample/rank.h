// SPDX-License-Identifier: MIT
//
// Ids ordered by a score, best first, without sorting more than is asked for. The order is total: a
// higher score is better, among equals the lower id; a NaN counts as -inf. Binary heaps of ids, in
// place; nothing is allocated.
#ifndef SL_SAMPLE_RANK_H
#define SL_SAMPLE_RANK_H

#include <stddef.h>
#include <stdint.h>

// The min(n, k) best of ids 0 .. n-1, best first. score (n). One pass, O(n log k) at worst and O(n)
// in practice.
size_t sl_rank_top(int32_t *ids, const float *score, size_t n, size_t k);

// Orders `ids` (n) as a heap with the best at ids[0]. O(n).
void sl_rank_heap(int32_t *ids, const float *score, size_t n);
// Moves the best of a heap of n to ids[n-1] and returns it; the n-1 before it are a heap again.
int32_t sl_rank_pop(int32_t *ids, const float *score, size_t n);

#endif
