// SPDX-License-Identifier: MIT
#include "sample/rank.h"

#include <math.h>
#include <stdbool.h>

#include "base/compiler.h"

SL_INLINE float number(float x) { return x == x ? x : -INFINITY; }

SL_INLINE bool better(const float *score, int32_t a, int32_t b) {
    float x = number(score[a]), y = number(score[b]);
    return x > y || (x == y && a < b);
}

// Restores the heap below `at`. best_up says which end of the order is at the root.
SL_INLINE void sift(int32_t *ids, const float *score, size_t n, size_t at, bool best_up) {
    int32_t id = ids[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && better(score, ids[child + 1], ids[child]) == best_up) child++;
        if (better(score, ids[child], id) != best_up) break;
        ids[at] = ids[child];
    }
    ids[at] = id;
}

SL_INLINE void pop(int32_t *ids, const float *score, size_t n, bool best_up) {
    int32_t root = ids[0];
    ids[0] = ids[n - 1];
    sift(ids, score, n - 1, 0, best_up);
    ids[n - 1] = root;
}

size_t sl_rank_top(int32_t *ids, const float *score, size_t n, size_t k) {
    k = SL_MIN(n, k);
    if (k == 0) return 0;
    for (size_t i = 0; i < k; i++) ids[i] = (int32_t)i;
    for (size_t i = k / 2; i-- > 0;) sift(ids, score, k, i, false);
    float worst = number(score[ids[0]]);
    for (size_t i = k; i < n; i++) {
        if (!(score[i] > worst)) continue; // an equal one has the higher id
        ids[0] = (int32_t)i;
        sift(ids, score, k, 0, false);
        worst = number(score[ids[0]]);
    }
    for (size_t m = k; m > 1; m--) pop(ids, score, m, false); // the worst go to the back
    return k;
}

void sl_rank_heap(int32_t *ids, const float *score, size_t n) {
    for (size_t i = n / 2; i-- > 0;) sift(ids, score, n, i, true);
}

int32_t sl_rank_pop(int32_t *ids, const float *score, size_t n) {
    pop(ids, score, n, true);
    return ids[n - 1];
}
