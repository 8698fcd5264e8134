// SPDX-License-Identifier: MIT
// sl_test: MODULES kv
//
// The block pool against a simple model: each sequence is an array of distinct values, one for each
// position; the pool's blocks are arrays of memory that the test writes and copies as an engine
// would. What a sequence reads must be what it wrote, whatever was forked, truncated and taken
// back.
#include "harness.h"

#include "kv/kv.h"

enum { BLK_LEN = 4, N_SEQ = 5, N_CTX = 30, N_BLK_SEQ = 8, N_BLK = N_SEQ * N_BLK_SEQ, N_OP = 10000 };

static sl_kv kv;
static int32_t store[N_BLK][BLK_LEN]; // the pool's memory
static int32_t want[N_SEQ][N_CTX], want_n[N_SEQ], next_value = 1;

static void check_invariants(void) {
    uint32_t n_ref[N_BLK] = {0};
    for (int s = 0; s < N_SEQ; s++) {
        CHECK_INT(kv.length[s], want_n[s]);
        int n_blk = (want_n[s] + BLK_LEN - 1) / BLK_LEN;
        for (int i = 0; i < n_blk; i++) n_ref[kv.table[s * kv.n_blk_seq + i]]++;
        for (int i = n_blk; i < kv.n_blk_seq; i++) CHECK_INT(kv.table[s * kv.n_blk_seq + i], 0);
        for (int i = 0; i < want_n[s]; i++)
            CHECK_INT(store[kv.table[s * kv.n_blk_seq + i / BLK_LEN]][i % BLK_LEN], want[s][i]);
    }
    int n_free = 0;
    for (int b = 0; b < N_BLK; b++) {
        CHECK_INT(kv.n_ref[b], n_ref[b]);
        n_free += n_ref[b] == 0;
    }
    CHECK_INT(kv.n_free, n_free);
    bool seen[N_BLK] = {0};
    for (int i = 0; i < kv.n_free; i++) {
        int b = kv.free_stack[i];
        CHECK(!seen[b] && n_ref[b] == 0);
        seen[b] = true;
    }
}

// A step: several sequences at once, as the engine does it; a third of them fail and are taken
// back.
static void step(void) {
    int32_t n_more[N_SEQ], old[N_SEQ];
    sl_kv_copy copy[N_SEQ];
    bool fits = true;
    for (int s = 0; s < N_SEQ; s++) {
        n_more[s] = test_below(2) ? (int32_t)test_below(7) : 0;
        fits = fits && want_n[s] + n_more[s] <= N_CTX;
    }
    sl_status status = sl_kv_can_extend(&kv, n_more);
    // the pool is as large as all contexts together, so that only the context can be full
    CHECK_INT(status, fits ? SL_OK : SL_FULL);
    if (status != SL_OK) return;
    for (int s = 0; s < N_SEQ; s++) {
        old[s] = want_n[s];
        REQUIRE_OK(sl_kv_extend(&kv, s, n_more[s], &copy[s]), sl_error_text());
        if (copy[s].dst >= 0) memcpy(store[copy[s].dst], store[copy[s].src], sizeof *store);
    }
    for (int s = 0; s < N_SEQ; s++)
        for (int i = old[s]; i < old[s] + n_more[s]; i++) {
            int32_t blk = kv.table[s * kv.n_blk_seq + i / BLK_LEN];
            CHECK_INT(kv.n_ref[blk], 1); // invariant 3
            want[s][i] = store[blk][i % BLK_LEN] = next_value++;
        }
    bool fails = test_below(3) == 0;
    for (int s = N_SEQ; s-- > 0;) {
        if (fails) sl_kv_retract(&kv, s, old[s], copy[s]);
        else want_n[s] += n_more[s];
    }
}

TEST(a_random_life_keeps_the_invariants) {
    REQUIRE_OK(sl_kv_init(&kv, BLK_LEN, N_BLK, N_SEQ, N_CTX), sl_error_text());
    CHECK_INT(kv.n_blk_seq, N_BLK_SEQ);
    for (int op = 0; op < N_OP; op++) {
        int a = (int)test_below(N_SEQ), b = (int)test_below(N_SEQ);
        switch (test_below(4)) {
        case 0:
        case 1: step(); break;
        case 2:
            want_n[a] = (int32_t)test_below((uint32_t)want_n[a] + 1);
            sl_kv_truncate(&kv, a, want_n[a]);
            break;
        default: {
            int32_t n = (int32_t)test_below((uint32_t)want_n[a] + 2);
            bool legal = a != b && want_n[b] == 0 && n <= want_n[a];
            CHECK_INT(sl_kv_fork(&kv, b, a, n), legal ? SL_OK : SL_BAD_ARG);
            if (!legal) break;
            memcpy(want[b], want[a], sizeof *want);
            want_n[b] = n;
        }
        }
        check_invariants();
    }
    for (int s = 0; s < N_SEQ; s++) sl_kv_truncate(&kv, s, 0);
    CHECK_INT(kv.n_free, N_BLK);
    sl_kv_deinit(&kv);
}

TEST(sharers_that_extend_together_need_one_copy_less_than_they_are) {
    REQUIRE_OK(sl_kv_init(&kv, BLK_LEN, 3, 3, BLK_LEN), sl_error_text());
    sl_kv_copy copy;
    REQUIRE_OK(sl_kv_extend(&kv, 0, 1, &copy), sl_error_text());
    CHECK_INT(copy.dst, -1);
    REQUIRE_OK(sl_kv_fork(&kv, 1, 0, 1), sl_error_text());
    REQUIRE_OK(sl_kv_fork(&kv, 2, 0, 1), sl_error_text());
    CHECK_INT(kv.n_free, 2);
    REQUIRE_OK(sl_kv_can_extend(&kv, (int32_t[]){1, 1, 1}), sl_error_text());
    for (int s = 0; s < 3; s++) {
        REQUIRE_OK(sl_kv_extend(&kv, s, 1, &copy), sl_error_text());
        CHECK_INT(copy.dst >= 0, s < 2);
    }
    CHECK_INT(kv.n_free, 0);
    sl_kv_deinit(&kv);
}

TEST(a_small_pool_says_that_it_is_full) {
    REQUIRE_OK(sl_kv_init(&kv, BLK_LEN, 2, 2, 3 * BLK_LEN), sl_error_text());
    sl_kv_copy copy;
    REQUIRE_OK(sl_kv_extend(&kv, 0, 2 * BLK_LEN, &copy), sl_error_text());
    CHECK_INT(sl_kv_can_extend(&kv, (int32_t[]){0, 1}), SL_FULL);
    CHECK(strstr(sl_error_text(), "pool"));
    CHECK_INT(sl_kv_extend(&kv, 1, 1, &copy), SL_FULL);
    CHECK_INT(sl_kv_can_extend(&kv, (int32_t[]){0, INT32_MAX}), SL_FULL);
    CHECK(strstr(sl_error_text(), "context"));
    CHECK_INT(kv.length[1], 0);
    sl_kv_deinit(&kv);
}

TEST(wrong_arguments_and_failed_allocations_leave_nothing) {
    CHECK_INT(sl_kv_init(&kv, 0, 1, 1, 1), SL_BAD_ARG);
    CHECK_INT(sl_kv_init(&kv, 1, 1, 1, 0), SL_BAD_ARG);
    for (uint64_t n = 1; n <= 4; n++) {
        sl_alloc_fail_at(n);
        CHECK_INT(sl_kv_init(&kv, BLK_LEN, N_BLK, N_SEQ, N_CTX), SL_NO_MEMORY);
        CHECK(!kv.table && !kv.length && !kv.n_ref && !kv.free_stack);
    }
    sl_alloc_fail_at(0);
    REQUIRE_OK(sl_kv_init(&kv, BLK_LEN, N_BLK, N_SEQ, N_CTX), sl_error_text());
    sl_kv_copy copy;
    CHECK_INT(sl_kv_extend(&kv, -1, 1, &copy), SL_BAD_ARG);
    CHECK_INT(sl_kv_extend(&kv, N_SEQ, 1, &copy), SL_BAD_ARG);
    CHECK_INT(sl_kv_extend(&kv, 0, -1, &copy), SL_FULL);
    CHECK_INT(sl_kv_fork(&kv, 0, N_SEQ, 0), SL_BAD_ARG);
    sl_kv_deinit(&kv);
}
