// SPDX-License-Identifier: MIT
// sl_test: MODULES kv
//
// The pools against a simple model: what is "computed" at a position is a hash of all tokens up to it, as it would be
// with real keys and values; the test writes and copies it as an engine would. Whatever was forked, truncated, taken
// back, reused, restored and given up: what a sequence and what a node of the tree holds must be the hash of its own
// tokens. Tokens are few, so that prefixes coincide all the time. Where sequences move, a row that does not see all
// before it computes something else.
#include "harness.h"

#include "kv/kv.h"

enum { BLK_LEN = 4, N_SEQ = 5, N_CTX = 200, MAX_BLK = 300, MAX_BLK_SEQ = N_CTX / BLK_LEN, N_ROW_MAX = 9, N_OP = 10000 };
enum { N_TEXT = 400, N_CTX_MOVING = 40 };

static sl_kv kv;
static uint64_t open_store[N_SEQ][2][BLK_LEN];          // what the open blocks hold
static int first_open[N_SEQ];                           // of the step
static uint64_t store[SL_KV_N_CLASS][MAX_BLK][BLK_LEN]; // the pools' memory
static int32_t want[N_SEQ][N_TEXT], want_n[N_SEQ];
static uint64_t n_found;                      // by reuse
static int32_t deepest[N_SEQ], lowest[N_SEQ]; // how far a sequence was extended; where it was begun from cached blocks

static uint64_t mix(uint64_t state, int32_t token) { return (state ^ (uint64_t)(token + 1)) * 0x9e3779b97f4a7c15u; }

// What is computed at a position: hash: of the tokens up to it.
static uint64_t computed(uint64_t hash, int32_t pos) { return sl_kv_hidden(&kv, pos) ? ~hash : hash; }

static int entry_of(int s, int i) { return i ? i - kv.n_gone[s] : 0; }

// Block i of a sequence.
static int32_t table_at(int c, int s, int i) { return kv.cls[c].table[s * kv.n_blk_seq + entry_of(s, i)]; }

static int32_t blocks(int32_t n) { return (n + BLK_LEN - 1) / BLK_LEN; }

// ---- invariants -----------------------------------------------------------------------------------------------------

static int32_t fill[MAX_BLK]; // positions of held blocks of class 0

static void check_sequence(int s, uint32_t n_ref[SL_KV_N_CLASS][MAX_BLK]) {
    CHECK_INT(kv.length[s], want_n[s]);
    for (int c = 0; c < SL_KV_N_CLASS && kv.cls[c].n_blk; c++) {
        int gone = kv.n_gone[s], first = kv.cls[c].first[s], end = entry_of(s, blocks(want_n[s]) - 1) + 1;
        if (want_n[s] == 0) end = 0;
        CHECK(first >= 0 && end - first <= kv.cls[c].n_blk_seq && end <= kv.n_blk_seq);
        int32_t least = SL_MAX(0, want_n[s] + 1 - kv.shape.window) / BLK_LEN - gone;
        if (want_n[s]) CHECK(c ? first <= least : first == 0);
        CHECK(gone == 0 || (want_n[s] > BLK_LEN && gone * BLK_LEN <= sl_kv_hidden(&kv, want_n[s])));
        uint64_t hash = 0;
        for (int i = 0; i < want_n[s]; i++) {
            hash = mix(hash, want[s][i]);
            if (i >= BLK_LEN && i < BLK_LEN * (gone + 1)) continue;
            if (c == 0) CHECK_INT(sl_kv_tokens(&kv, s)[entry_of(s, i / BLK_LEN) * BLK_LEN + i % BLK_LEN], want[s][i]);
            if (entry_of(s, i / BLK_LEN) < first) continue;
            if (store[c][table_at(c, s, i / BLK_LEN)][i % BLK_LEN] != computed(hash, i))
                test_failed(__FILE__, __LINE__, "sequence %d class %d position %d", s, c, i);
        }
        for (int i = 0; i < kv.n_blk_seq; i++)
            if (i >= first && i < end) n_ref[c][kv.cls[c].table[s * kv.n_blk_seq + i]]++;
            else CHECK_INT(kv.cls[c].table[s * kv.n_blk_seq + i], 0);
    }
    for (int i = 0; i < blocks(want_n[s]); i++) {
        if (i > 0 && i <= kv.n_gone[s]) continue;
        int32_t *f = &fill[table_at(0, s, i)];
        *f = SL_MAX(*f, SL_MIN(BLK_LEN, want_n[s] - i * BLK_LEN));
    }
    for (int i = 0; i < kv.n_shared[s]; i++)
        CHECK(kv.cls[0].node[table_at(0, s, i)] >= 0 &&
              kv.tree[table_at(0, s, i)].parent == (i ? table_at(0, s, i - 1) : -1));
}

// A node's blocks hold what its path of tokens gives.
static int check_nodes(int32_t node, int32_t parent, uint64_t state) {
    int n = 0, prev = -1;
    for (; node >= 0; prev = node, node = kv.tree[node].next, n++) {
        const sl_kv_node *t = &kv.tree[node];
        CHECK(kv.cls[0].node[node] == node && t->parent == parent && t->prev == prev);
        CHECK(t->n_tok >= 1 && (t->n_tok == BLK_LEN || (t->n_tok < BLK_LEN && t->child < 0)));
        if (t->window_blk >= 0) CHECK_INT(kv.cls[1].node[t->window_blk], node);
        uint64_t hash = state;
        for (int i = 0; i < t->n_tok; i++) {
            hash = mix(hash, kv.tree_token[node * BLK_LEN + i]);
            CHECK(store[0][node][i] == hash);
            if (t->window_blk >= 0) CHECK(store[1][t->window_blk][i] == hash);
        }
        n += check_nodes(t->child, node, hash);
    }
    return n;
}

static void check_class(int c, const uint32_t *n_ref) {
    const sl_kv_class *k = &kv.cls[c];
    int n_free = 0, n_idle = 0, n_listed = 0, n = 0;
    bool seen[MAX_BLK] = {0};
    for (int b = 0; b < k->n_blk; b++) {
        CHECK_INT(k->n_ref[b], n_ref[b]);
        bool idle = n_ref[b] == 0 && k->node[b] >= 0;
        n_idle += idle;
        n_free += n_ref[b] == 0 && !idle;
        n_listed += idle && (c == 1 || kv.tree[b].child < 0);
        if (k->node[b] >= 0) CHECK_INT(c ? kv.tree[k->node[b]].window_blk : k->node[b], b);
    }
    CHECK_INT(k->n_free, n_free);
    CHECK_INT(k->n_idle, n_idle);
    for (int i = 0; i < k->n_free; i++) {
        int b = k->free_stack[i];
        CHECK(!seen[b] && n_ref[b] == 0 && k->node[b] < 0); // one owner
        seen[b] = true;
    }
    for (int b = k->oldest; b >= 0 && n <= k->n_blk; b = k->newer[b], n++) {
        CHECK(n_ref[b] == 0 && k->node[b] >= 0);
        CHECK_INT(k->newer[b] < 0 ? k->newest : k->older[k->newer[b]], b);
    }
    CHECK_INT(n, n_listed);
}

static void check_invariants(void) {
    static uint32_t n_ref[SL_KV_N_CLASS][MAX_BLK];
    memset(n_ref, 0, sizeof n_ref);
    memset(fill, 0, sizeof fill);
    for (int s = 0; s < N_SEQ; s++) check_sequence(s, n_ref);
    int32_t n_unused = 0;
    for (int b = 0; b < kv.cls[0].n_blk; b++) n_unused += n_ref[0][b] ? BLK_LEN - fill[b] : 0;
    CHECK_INT(sl_kv_count_unused(&kv), n_unused);
    for (int c = 0; c < SL_KV_N_CLASS; c++) check_class(c, n_ref[c]);
    int n_node = 0;
    for (int b = 0; b < kv.cls[0].n_blk; b++) n_node += kv.cls[0].node[b] >= 0;
    CHECK_INT(check_nodes(kv.root, -1, 0), n_node);
}

// What the next row of a sequence finds in its open block.
static void check_open(int s) {
    int32_t n = want_n[s];
    if (!kv.shape.opens || n % BLK_LEN == 0) return;
    int i = sl_kv_open_at(&kv, s, n / BLK_LEN);
    REQUIRE(i >= 0);
    uint64_t hash = 0;
    for (int pos = 0; pos < n; pos++) {
        hash = mix(hash, want[s][pos]);
        if (pos / BLK_LEN == n / BLK_LEN) CHECK(open_store[s][i][pos % BLK_LEN] == computed(hash, pos));
    }
}

// ---- operations -----------------------------------------------------------------------------------------------------

static void write_rows(int s, int32_t from, int32_t n) {
    int32_t *ids = sl_kv_tokens(&kv, s);
    uint64_t hash = 0;
    for (int i = 0; i < from; i++) hash = mix(hash, want[s][i]);
    for (int i = from; i < from + n; i++) {
        want[s][i] = (int32_t)test_below(2);
        ids[entry_of(s, i / BLK_LEN) * BLK_LEN + i % BLK_LEN] = want[s][i];
        hash = mix(hash, want[s][i]);
        int32_t other = i / BLK_LEN > from / BLK_LEN, is_last = i / BLK_LEN == (from + n - 1) / BLK_LEN;
        if (kv.shape.opens && (!other || is_last))
            open_store[s][first_open[s] ^ other][i % BLK_LEN] = computed(hash, i);
        for (int c = 0; c < SL_KV_N_CLASS && kv.cls[c].n_blk; c++) {
            int32_t blk = table_at(c, s, i / BLK_LEN);
            CHECK(kv.cls[c].n_ref[blk] == 1 && kv.cls[c].node[blk] < 0); // invariant 3
            store[c][blk][i % BLK_LEN] = computed(hash, i);
        }
    }
}

// Fails on purpose now and then, as a device may; false: nothing has changed.
static bool extend(int s, int32_t n_more) {
    sl_kv_copies copies;
    REQUIRE_OK(sl_kv_open(&kv, s, &copies), sl_error_text());
    bool fails = test_below(20) == 0;
    for (int c = 0; c < SL_KV_N_CLASS; c++)
        if (copies.cls[c].dst >= 0 && !fails)
            memcpy(store[c][copies.cls[c].dst], store[c][copies.cls[c].src], sizeof **store);
    sl_kv_opened(&kv, s, copies, !fails);
    if (!fails && kv.shape.opens) first_open[s] = sl_kv_begin_open(&kv, s, n_more);
    if (!fails) REQUIRE_OK(sl_kv_extend(&kv, s, n_more), sl_error_text());
    return !fails;
}

// A step of several sequences at once, as the engine does it.
static void step(void) {
    int32_t n_more[N_SEQ];
    int n_done = 0;
    bool fits = true;
    for (int s = 0; s < N_SEQ; s++) {
        n_more[s] = test_below(2) ? (int32_t)test_below(N_ROW_MAX + 1) : 0;
        if (kv.shape.moves && want_n[s] + n_more[s] > N_TEXT) n_more[s] = 0;
        fits = fits && (kv.shape.moves || want_n[s] + n_more[s] <= N_CTX);
    }
    sl_status status = sl_kv_can_extend(&kv, n_more);
    if (!fits || strstr(sl_error_text(), "context")) CHECK_INT(status == SL_FULL, !fits);
    sl_error_clear();
    if (status != SL_OK) return;
    for (; n_done < N_SEQ; n_done++)
        if (n_more[n_done] && !extend(n_done, n_more[n_done])) break;
    bool fails = n_done < N_SEQ || test_below(4) == 0;
    for (int s = 0; s < n_done; s++)
        if (n_more[s]) write_rows(s, want_n[s], n_more[s]);
    for (int s = n_done; s-- > 0;) {
        deepest[s] = SL_MAX(deepest[s], want_n[s] + n_more[s]);
        if (!n_more[s]) continue;
        if (fails) sl_kv_retract(&kv, s, want_n[s]);
        else want_n[s] += n_more[s], sl_kv_commit(&kv, s);
    }
}

static void truncate_to(int s, int32_t n) {
    sl_status status = sl_kv_truncate(&kv, s, n);
    bool near_open = !kv.shape.opens || n % BLK_LEN == 0 || n / BLK_LEN == want_n[s] / BLK_LEN;
    bool near = n == 0 || (n >= deepest[s] - N_ROW_MAX - SL_KV_SLACK && n >= lowest[s]);
    if (near_open && ((kv.shape.window == 0 && !kv.shape.moves) || near)) CHECK_INT(status, SL_OK);
    else if (status != SL_OK) CHECK_INT(status, SL_UNSUPPORTED);
    if (status != SL_OK) return;
    want_n[s] = n;
    if (n == 0) deepest[s] = lowest[s] = 0;
}

static void fork_at(int dst, int src, int32_t n) {
    bool legal = dst != src && want_n[dst] == 0 && n <= want_n[src];
    sl_status status = sl_kv_fork(&kv, dst, src, n);
    if (!legal) CHECK_INT(status, SL_BAD_ARG);
    else if (kv.shape.window == 0 && !kv.shape.opens && !kv.shape.moves) CHECK_INT(status, SL_OK);
    if (status != SL_OK) return;
    int from = kv.shape.opens && n % BLK_LEN ? sl_kv_open_at(&kv, src, n / BLK_LEN) : 0;
    memcpy(open_store[dst][0], open_store[src][from], sizeof open_store[dst][0]);
    memcpy(want[dst], want[src], sizeof *want);
    want_n[dst] = n, deepest[dst] = n ? deepest[src] : 0, lowest[dst] = n ? lowest[src] : 0;
}

static int32_t common(const int32_t *a, const int32_t *b, int32_t n) {
    int32_t i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i;
}

static int n_moved_reuse; // sequences that went on with a conversation whose middle they had let go

static void reuse(int s) {
    int32_t ids[N_TEXT], n_max = kv.shape.moves ? N_TEXT : N_CTX, n = (int32_t)test_below((uint32_t)n_max + 1),
                         least = 0;
    int like = (int)test_below(N_SEQ);
    memcpy(ids, want[like], sizeof ids); // also of what was there before a truncation
    if (test_below(2)) n = SL_MIN(n_max, want_n[s] + (int32_t)test_below(3)), memcpy(ids, want[s], sizeof ids);
    for (int k = (int)test_below(3); k > 0; k--) ids[test_below(N_TEXT)] ^= 1;
    for (int i = 0; i < N_SEQ; i++) least = SL_MAX(least, common(want[i], ids, SL_MIN(n, kv.n_shared[i] * BLK_LEN)));
    int32_t own = common(want[s], ids, SL_MIN(n, want_n[s]));
    int32_t got = sl_kv_reuse(&kv, s, ids, n);
    CHECK(got >= 0 && got <= n);
    n_found += (uint64_t)got;
    if (kv.shape.window == 0 && !kv.shape.opens && !kv.shape.moves) CHECK(got >= SL_MAX(own, least));
    if (kv.shape.window == 0 && !kv.shape.moves) CHECK(got / BLK_LEN >= SL_MAX(own, least) / BLK_LEN);
    if (kv.shape.moves && own == want_n[s]) CHECK(got >= own);
    n_moved_reuse += kv.n_gone[s] > 0;
    if (got != own) lowest[s] = deepest[s] = got;
    memcpy(want[s], ids, sizeof ids);
    want_n[s] = got;
    if (got == 0) deepest[s] = lowest[s] = 0;
}

// As if the sequence had been saved and came back into another one.
static void restore(int dst, int src) {
    static uint64_t saved[SL_KV_N_CLASS][MAX_BLK_SEQ][BLK_LEN];
    sl_kv_extent extent = sl_kv_extent_of(&kv, src);
    int32_t n = want_n[src], n_entry = n ? entry_of(src, blocks(n) - 1) + 1 : 0;
    if (dst == src || want_n[dst]) return;
    for (int c = 0; c < SL_KV_N_CLASS && kv.cls[c].n_blk; c++)
        for (int i = c ? extent.first : 0; i < n_entry; i++)
            memcpy(saved[c][i], store[c][kv.cls[c].table[src * kv.n_blk_seq + i]], sizeof **store);
    sl_status status = sl_kv_fill(&kv, dst, &extent);
    if (status != SL_OK) {
        CHECK_INT(status, SL_FULL);
        return;
    }
    for (int c = 0; c < SL_KV_N_CLASS && kv.cls[c].n_blk; c++)
        for (int i = c ? extent.first : 0; i < n_entry; i++)
            memcpy(store[c][kv.cls[c].table[dst * kv.n_blk_seq + i]], saved[c][i], sizeof **store);
    memcpy(want[dst], want[src], sizeof *want);
    memcpy(sl_kv_tokens(&kv, dst), sl_kv_tokens(&kv, src), (size_t)n_entry * BLK_LEN * 4);
    want_n[dst] = n, deepest[dst] = n ? deepest[src] : 0, lowest[dst] = n ? lowest[src] : 0;
    if (kv.shape.opens && n % BLK_LEN) {
        int from = sl_kv_open_at(&kv, src, n / BLK_LEN);
        memcpy(open_store[dst][1], open_store[src][from], sizeof open_store[dst][1]);
        sl_kv_set_open(&kv, dst, 1, n / BLK_LEN);
    }
    sl_kv_commit(&kv, dst);
}

// Block i of a sequence, as if it had been read from a file. Fails on purpose now and then.
static bool append(int s, const int32_t *ids, int i, bool has_window) {
    uint64_t hash = 0;
    REQUIRE_OK(sl_kv_append(&kv, s, has_window), sl_error_text());
    if (test_below(10) == 0) return sl_kv_retract(&kv, s, i * BLK_LEN), false;
    for (int pos = 0; pos < i * BLK_LEN; pos++) hash = mix(hash, ids[pos]);
    for (int k = 0; k < BLK_LEN; k++) {
        sl_kv_tokens(&kv, s)[i * BLK_LEN + k] = ids[i * BLK_LEN + k];
        hash = mix(hash, ids[i * BLK_LEN + k]);
        for (int c = 0; c < SL_KV_N_CLASS && kv.cls[c].n_blk; c++) {
            if (c && !has_window) continue;
            int32_t blk = table_at(c, s, i);
            CHECK(kv.cls[c].n_ref[blk] == 1 && kv.cls[c].node[blk] < 0);
            store[c][blk][k] = hash;
        }
    }
    sl_kv_commit(&kv, s);
    return true;
}

// A folder knows whole blocks of ids, with their windows or not; what there is is taken, as engine_store.c does it.
static void reuse_from_disk(int s) {
    int32_t ids[N_TEXT], n = (int32_t)test_below((uint32_t)kv.shape.n_ctx + 1);
    int32_t n_disk = (int32_t)test_below((uint32_t)n / BLK_LEN + 1);
    bool has_window = test_below(3) > 0;
    if (!kv.shape.caches) return;
    memcpy(ids, want[test_below(N_SEQ)], sizeof ids);
    ids[test_below(N_CTX)] ^= 1;
    int32_t got = sl_kv_reuse(&kv, s, ids, n), i;
    while (got / BLK_LEN < n_disk && got % BLK_LEN) got = sl_kv_reuse(&kv, s, ids, got - got % BLK_LEN);
    for (i = got / BLK_LEN; i < n_disk; i++)
        if (!append(s, ids, i, has_window && test_below(20))) break;
    got = sl_kv_reuse(&kv, s, ids, n);
    CHECK(got >= 0 && got <= n);
    if (kv.shape.window == 0) CHECK(got >= i * BLK_LEN);
    memcpy(want[s], ids, sizeof ids);
    want_n[s] = lowest[s] = deepest[s] = got;
}

static sl_kv_shape shape_of(int32_t n_blk, int32_t window, bool caches) {
    sl_kv_shape s = {.blk_len = BLK_LEN, .n_seq = N_SEQ, .n_ctx = N_CTX, .n_blk = n_blk, .n_row_max = N_ROW_MAX};
    s.window = window, s.caches = caches;
    if (window) s.n_window_blk = N_SEQ * (int32_t)sl_kv_window_blocks(BLK_LEN, window, N_ROW_MAX);
    return s;
}

// A shape whose sequences move.
static sl_kv_shape moving(sl_kv_shape s) {
    s.moves = true, s.n_ctx = N_CTX_MOVING;
    s.n_blk = N_SEQ * (int32_t)sl_kv_table_blocks(BLK_LEN, N_CTX_MOVING, N_ROW_MAX, true);
    return s;
}

static void live(sl_kv_shape shape, bool opens) {
    const bool caches = shape.caches;
    shape.opens = opens;
    REQUIRE_OK(sl_kv_init(&kv, &shape), sl_error_text());
    memset(want_n, 0, sizeof want_n);
    memset(deepest, 0, sizeof deepest);
    memset(lowest, 0, sizeof lowest);
    n_found = 0;
    for (int op = 0; op < N_OP; op++) {
        int a = (int)test_below(N_SEQ), b = (int)test_below(N_SEQ);
        switch (test_below(shape.moves ? 40 : 9)) { // those that move must get far
        case 0:
        case 1:
        case 2:
        default: step(); break;
        case 3: truncate_to(a, (int32_t)test_below((uint32_t)want_n[a] + 1)); break;
        case 4: { // a little, or all
            int32_t back = test_below(3) ? (int32_t)test_below(20) : N_CTX;
            truncate_to(a, SL_MAX(0, want_n[a] - back));
            break;
        }
        case 5: fork_at(b, a, (int32_t)test_below((uint32_t)want_n[a] + 2)); break;
        case 6: reuse(a); break;
        case 7: reuse_from_disk(a); break;
        case 8: restore(b, a); break;
        }
        check_invariants();
        for (int s = 0; s < N_SEQ; s++) check_open(s);
    }
    for (int s = 0; s < N_SEQ; s++) truncate_to(s, 0);
    check_invariants();
    for (int c = 0; c < SL_KV_N_CLASS; c++) CHECK_INT(kv.cls[c].n_free + kv.cls[c].n_idle, kv.cls[c].n_blk); // no leak
    if (!caches) CHECK_INT(kv.cls[0].n_idle, 0);
    else CHECK(n_found > 0 && kv.n_evicted > 0 && kv.cls[0].n_idle > 0);
    sl_kv_deinit(&kv);
}

TEST(a_random_life) { live(shape_of(120, 0, false), false); }
TEST(a_random_life_with_cached_prefixes) { live(shape_of(120, 0, true), false); }
TEST(a_random_life_with_windows) { live(shape_of(N_SEQ * MAX_BLK_SEQ, 11, false), false); }
TEST(a_random_life_with_windows_and_cached_prefixes) { live(shape_of(150, 11, true), false); }
TEST(a_random_life_with_windows_of_one_position) { live(shape_of(150, 1, true), false); }
TEST(a_random_life_with_open_blocks) {
    live(shape_of(120, 0, false), true);
    live(shape_of(150, 11, true), true);
}
TEST(a_random_life_of_sequences_that_move) {
    n_moved_reuse = 0;
    live(moving(shape_of(0, 0, false)), false);
    live(moving(shape_of(0, 0, true)), false);
    live(moving(shape_of(0, 11, true)), false);
    live(moving(shape_of(0, 11, true)), true);
    CHECK(n_moved_reuse > 100);
}

// ---- single cases ---------------------------------------------------------------------------------------------------

static void extend_by(int s, const int32_t *ids, int32_t n) {
    sl_kv_copies copies;
    REQUIRE_OK(sl_kv_open(&kv, s, &copies), sl_error_text());
    sl_kv_opened(&kv, s, copies, true);
    memcpy(sl_kv_tokens(&kv, s) + kv.length[s], ids, (size_t)n * 4);
    REQUIRE_OK(sl_kv_extend(&kv, s, n), sl_error_text());
    sl_kv_commit(&kv, s);
}

TEST(full_sequences_fit_beside_whatever_is_cached) {
    // No sequence can starve another: each fills its context, again and again, from the middle of blocks too.
    sl_kv_shape shape = shape_of(N_SEQ * MAX_BLK_SEQ, 0, true);
    REQUIRE_OK(sl_kv_init(&kv, &shape), sl_error_text());
    int32_t ids[N_CTX];
    for (int round = 0; round < 50; round++) {
        int s = round % N_SEQ;
        REQUIRE_OK(sl_kv_truncate(&kv, s, (int32_t)test_below((uint32_t)kv.length[s] + 1)), sl_error_text());
        for (int i = 0; i < N_CTX; i++) ids[i] = (int32_t)test_below(3);
        extend_by(s, ids, N_CTX - kv.length[s]);
    }
    sl_kv_deinit(&kv);
}

TEST(moving_sequences_do_not_starve_each_other_when_all_are_full) {
    // The first blocks of all are nodes; when they are let go, they stand above others that are still held.
    sl_kv_shape shape = moving(shape_of(0, 0, true));
    REQUIRE_OK(sl_kv_init(&kv, &shape), sl_error_text());
    memset(want_n, 0, sizeof want_n);
    for (int round = 0; round < N_TEXT; round++) {
        int s = round % N_SEQ;
        if (want_n[s] + N_ROW_MAX > N_TEXT || !extend(s, N_ROW_MAX)) continue;
        write_rows(s, want_n[s], N_ROW_MAX);
        want_n[s] += N_ROW_MAX;
        sl_kv_commit(&kv, s);
        check_invariants();
    }
    CHECK_INT(kv.cls[0].n_idle, 0); // all that was cached is given up
    CHECK(kv.n_evicted > N_SEQ);
    sl_kv_deinit(&kv);
}

TEST(the_leaf_that_was_used_longest_ago_goes_first) {
    sl_kv_shape shape = {.blk_len = BLK_LEN, .n_seq = 1, .n_ctx = 12, .n_blk = 4, .caches = true};
    REQUIRE_OK(sl_kv_init(&kv, &shape), sl_error_text());
    const int32_t a[8] = {1, 1, 1, 1, 2, 2, 2, 2}, b[8] = {1, 1, 1, 1, 3, 3, 3, 3}, c[4] = {9, 9, 9, 9};
    extend_by(0, a, 8);
    CHECK_INT(sl_kv_reuse(&kv, 0, b, 8), 4);
    extend_by(0, b + 4, 4); // a's second block is the oldest leaf
    CHECK_INT(sl_kv_reuse(&kv, 0, c, 4), 0);
    extend_by(0, c, 4);
    CHECK_INT(kv.n_evicted, 0);
    extend_by(0, c, 4); // the fifth block of a pool of four
    CHECK_INT(kv.n_evicted, 1);
    CHECK_INT(sl_kv_reuse(&kv, 0, a, 8), 4);
    CHECK_INT(sl_kv_reuse(&kv, 0, b, 8), 8);
    CHECK_INT(sl_kv_reuse(&kv, 0, b, 6), 6); // inside a block
    sl_kv_deinit(&kv);
}

TEST(parts_of_blocks_are_cached_until_more_of_them_is) {
    sl_kv_shape shape = {.blk_len = BLK_LEN, .n_seq = 2, .n_ctx = 12, .n_blk = 6, .caches = true};
    REQUIRE_OK(sl_kv_init(&kv, &shape), sl_error_text());
    const int32_t a[7] = {1, 2, 3, 4, 5, 6, 7};
    extend_by(0, a, 6);
    REQUIRE_OK(sl_kv_truncate(&kv, 0, 0), sl_error_text());
    CHECK_INT(kv.cls[0].n_idle, 2);
    CHECK_INT(sl_kv_reuse(&kv, 1, a, 7), 6);
    extend_by(1, a + 6, 1); // takes the leaf over
    CHECK_INT(kv.cls[0].n_free, 4);
    extend_by(0, a, 6); // the first block is there already
    CHECK_INT(kv.cls[0].n_free, 3);
    REQUIRE_OK(sl_kv_truncate(&kv, 0, 0), sl_error_text());
    REQUIRE_OK(sl_kv_truncate(&kv, 1, 0), sl_error_text());
    CHECK_INT(kv.cls[0].n_idle, 2); // six positions are the beginning of seven
    sl_kv_deinit(&kv);
}

TEST(sharers_that_extend_together_need_one_copy_less_than_they_are) {
    sl_kv_shape shape = {.blk_len = BLK_LEN, .n_seq = 3, .n_ctx = BLK_LEN, .n_blk = 3};
    REQUIRE_OK(sl_kv_init(&kv, &shape), sl_error_text());
    extend_by(0, (int32_t[]){1}, 1);
    REQUIRE_OK(sl_kv_fork(&kv, 1, 0, 1), sl_error_text());
    REQUIRE_OK(sl_kv_fork(&kv, 2, 0, 1), sl_error_text());
    CHECK_INT(kv.cls[0].n_free, 2);
    REQUIRE_OK(sl_kv_can_extend(&kv, (int32_t[]){1, 1, 1}), sl_error_text());
    for (int s = 0; s < 3; s++) {
        sl_kv_copies copies;
        REQUIRE_OK(sl_kv_open(&kv, s, &copies), sl_error_text());
        CHECK_INT(copies.cls[0].dst >= 0, s < 2);
        sl_kv_opened(&kv, s, copies, true);
    }
    CHECK_INT(kv.cls[0].n_free, 0);
    sl_kv_deinit(&kv);
}

TEST(a_small_pool_says_that_it_is_full) {
    sl_kv_shape shape = {.blk_len = BLK_LEN, .n_seq = 2, .n_ctx = 3 * BLK_LEN, .n_blk = 2};
    REQUIRE_OK(sl_kv_init(&kv, &shape), sl_error_text());
    REQUIRE_OK(sl_kv_extend(&kv, 0, 2 * BLK_LEN), sl_error_text());
    CHECK_INT(sl_kv_can_extend(&kv, (int32_t[]){0, 1}), SL_FULL);
    CHECK(strstr(sl_error_text(), "pool"));
    CHECK_INT(sl_kv_extend(&kv, 1, 1), SL_FULL);
    CHECK_INT(sl_kv_fill(&kv, 1, &(sl_kv_extent){.n = 1}), SL_FULL);
    CHECK_INT(sl_kv_can_extend(&kv, (int32_t[]){0, INT32_MAX}), SL_FULL);
    CHECK(strstr(sl_error_text(), "context"));
    CHECK_INT(kv.length[1], 0);
    sl_kv_deinit(&kv);
}

TEST(wrong_arguments_and_failed_allocations_leave_nothing) {
    sl_kv_shape good = shape_of(120, 11, true), bad = good;
    bad.blk_len = 0;
    CHECK_INT(sl_kv_init(&kv, &bad), SL_BAD_ARG);
    bad = good, bad.n_ctx = 0;
    CHECK_INT(sl_kv_init(&kv, &bad), SL_BAD_ARG);
    bad = moving(good), bad.n_ctx--;
    CHECK_INT(sl_kv_init(&kv, &bad), SL_BAD_ARG);
    bad = moving(good), bad.n_blk--;
    CHECK_INT(sl_kv_init(&kv, &bad), SL_BAD_ARG);
    bad = moving(good), bad.n_ctx = 16; // the window would reach into the first block
    CHECK_INT(sl_kv_init(&kv, &bad), SL_BAD_ARG);
    bad = good, bad.n_window_blk--;
    CHECK_INT(sl_kv_init(&kv, &bad), SL_BAD_ARG);
    uint64_t n_alloc = sl_alloc_count();
    REQUIRE_OK(sl_kv_init(&kv, &good), sl_error_text());
    n_alloc = sl_alloc_count() - n_alloc;
    sl_kv_deinit(&kv);
    for (uint64_t n = 1; n <= n_alloc; n++) {
        sl_alloc_fail_at(n);
        CHECK_INT(sl_kv_init(&kv, &good), SL_NO_MEMORY);
        CHECK(!kv.cls[0].table && !kv.length && !kv.tree);
    }
    sl_alloc_fail_at(0);
    REQUIRE_OK(sl_kv_init(&kv, &good), sl_error_text());
    CHECK_INT(sl_kv_extend(&kv, -1, 1), SL_BAD_ARG);
    CHECK_INT(sl_kv_extend(&kv, N_SEQ, 1), SL_BAD_ARG);
    CHECK_INT(sl_kv_extend(&kv, 0, -1), SL_FULL);
    CHECK_INT(sl_kv_extend(&kv, 0, N_ROW_MAX + 1), SL_BAD_ARG);
    CHECK_INT(sl_kv_append(&kv, N_SEQ, true), SL_BAD_ARG);
    REQUIRE_OK(sl_kv_extend(&kv, 0, 1), sl_error_text());
    CHECK_INT(sl_kv_append(&kv, 0, true), SL_BAD_ARG); // not at the end of a block
    sl_kv_retract(&kv, 0, 0);
    CHECK_INT(sl_kv_fork(&kv, 0, N_SEQ, 0), SL_BAD_ARG);
    CHECK_INT(sl_kv_truncate(&kv, 0, 1), SL_BAD_ARG);
    CHECK_INT(sl_kv_fill(&kv, 0, &(sl_kv_extent){.n = 100}), SL_BAD_ARG); // not a window
    sl_kv_deinit(&kv);
}
