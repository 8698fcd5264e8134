// SPDX-License-Identifier: MIT
//
// How attention is shared out. Wide steps have tiles enough: they are dealt out in turn, so that the later rows of a
// prompt, which see more, come to all threads alike. In narrow ones the chunks of all tiles are laid end to end and cut
// into as many equal pieces as there are threads; a tile that is cut is merged by whoever does its last piece. So the
// cache is read once, evenly, however few KV heads there are, and bits do not depend on the cuts.
#include "backend/cpu/cpu.h"

// The end of the tile that begins at `row`: consecutive positions and cells of one slot, at most n_max rows.
static int32_t tile_end(const sl_step *step, int32_t row, int32_t n_max) {
    int32_t end = row + 1;
    while (end < step->n_row && end - row < n_max && step->slot[end] == step->slot[row] &&
           step->pos[end] == step->pos[end - 1] + 1 && sl_step_cell(step, end) == sl_step_cell(step, end - 1) + 1)
        end++;
    return end;
}

// The tiles of a step, one after another.
typedef struct walk {
    const sl_cpu_attend *a;
    const sl_step *step;
    int32_t n_max;            // rows of a tile
    uint32_t n_group, n_part; // query heads of a KV head, and in how many parts they are taken
    int32_t row, end;         // of the tile
    uint32_t i;               // of n_head_kv * n_part
} walk;

static walk begin_walk(const sl_cpu_attend *a, const sl_step *step) {
    uint32_t n_group = a->n_head / a->n_head_kv;
    walk w = {.a = a, .step = step, .n_group = n_group};
    w.n_max = (int32_t)SL_MAX(SL_CPU_TILE_QUERIES / n_group, 1u);
    w.n_part = (n_group + SL_CPU_TILE_QUERIES - 1) / SL_CPU_TILE_QUERIES;
    w.end = tile_end(step, 0, w.n_max);
    return w;
}

static bool next_tile(walk *w, sl_cpu_tile *tile) {
    if (w->i == w->a->n_head_kv * w->n_part) {
        w->i = 0, w->row = w->end;
        if (w->row < w->step->n_row) w->end = tile_end(w->step, w->row, w->n_max);
    }
    if (w->row >= w->step->n_row) return false;
    uint32_t head = w->i / w->n_part * w->n_group, part = w->i % w->n_part;
    *tile = (sl_cpu_tile){(uint32_t)w->row, (uint32_t)w->end, head + w->n_group * part / w->n_part,
                          head + w->n_group * (part + 1) / w->n_part};
    w->i++;
    return true;
}

// Chunks that a tile sees.
static int32_t count_chunks(const walk *w, const sl_cpu_tile *tile) {
    int64_t first = w->a->cell[tile->row_begin], last = w->a->cell[tile->row_end - 1], window = w->a->window;
    first = window == 0 || first + 1 <= window ? 0 : first + 1 - window;
    return (int32_t)(last / SL_CPU_ATTEND_CHUNK - first / SL_CPU_ATTEND_CHUNK) + 1;
}

static void deal(const sl_task *t, walk w, const sl_share *s) {
    sl_cpu_tile tile;
    for (int turn = 0; next_tile(&w, &tile); turn = turn + 1 < s->n_thread ? turn + 1 : 0)
        if (turn == s->i_thread) t->attend_fn(w.a, &tile, s->scratch);
}

// The thread in whose piece chunk `at` of n lies. It lends its scratch to a tile that begins there and is cut, which is
// the last of its piece, so there is only one.
static int find_owner(int64_t at, int64_t n, int n_thread) {
    int64_t begin, end = 0;
    int i = -1;
    while (end <= at) sl_pool_share(&begin, &end, n, ++i, n_thread);
    return i;
}

static void do_piece(const sl_program *p, const sl_task *t, const walk *w, const sl_cpu_tile *tile, int32_t begin_k,
                     int32_t end_k, int owner, void *scratch) {
    float *parts = (float *)(void *)(p->scratch + (uint64_t)owner * p->scratch_bytes + t->parts_off);
    uint32_t n_done = (uint32_t)(end_k - begin_k), n = (uint32_t)count_chunks(w, tile);
    p->kernels.attend_span(w->a, tile, begin_k, end_k, parts, scratch);
    if (atomic_fetch_add_explicit(&p->n_chunk_done[owner], n_done, memory_order_acq_rel) + n_done < n) return;
    atomic_store_explicit(&p->n_chunk_done[owner], 0, memory_order_relaxed); // for the next layer, a barrier away
    p->kernels.attend_merge(w->a, tile, parts, scratch);
}

static void do_pieces(const sl_program *p, const sl_task *t, const walk *start, const sl_share *s) {
    sl_cpu_tile tile;
    walk w = *start;
    int64_t n = 0, at = 0, begin, end;
    while (next_tile(&w, &tile)) n += count_chunks(&w, &tile);
    sl_pool_share(&begin, &end, n, s->i_thread, s->n_thread);
    for (w = *start; next_tile(&w, &tile);) {
        int32_t n_chunk = count_chunks(&w, &tile);
        int64_t from = SL_MAX(begin, at), to = SL_MIN(end, at + n_chunk);
        if (to - from == n_chunk) t->attend_fn(w.a, &tile, s->scratch);
        else if (from < to)
            do_piece(p, t, &w, &tile, (int32_t)(from - at), (int32_t)(to - at), find_owner(at, n, s->n_thread),
                     s->scratch);
        at += n_chunk;
    }
}

void sl_task_attend(const sl_program *p, const sl_task *t, const sl_share *s) {
    const sl_step *step = p->step;
    sl_cpu_attend a = t->attend;
    a.q = (const float *)(const void *)(t->in[0] + (uint64_t)s->i_thread * t->in_copy[0]);
    if (a.q_first) a.q_first = (const float *)(const void *)(t->in[1] + (uint64_t)s->i_thread * t->in_copy[1]);
    a.cell = step->cell ? step->cell : step->pos, a.skip = step->skip;
    a.slot = step->slot, a.open = step->open, a.blk_stride = step->blk_stride;
    a.blk_table = sl_step_table(step, t->kv, 0);
    walk w = begin_walk(&a, step);
    if (t->parts_off) do_pieces(p, t, &w, s);
    else deal(t, w, s);
}
