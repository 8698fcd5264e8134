// SPDX-License-Identifier: MIT
#include "backend/cpu/repack.h"

#include <string.h>

#include "backend/cpu/kernels/kernels.h"
#include "base/alloc.h"
#include "base/size.h"
#include "os/os.h"

typedef struct entry {
    const uint8_t *from; // borrowed: in the file
    uint8_t *to;         // in the pages
    uint32_t n_row, n_col;
    sl_type type;
} entry;

struct sl_repack {
    uint8_t *pages; // owned
    size_t n_bytes, wired_bytes;
    entry *entry; // (n_entry) owned
    uint32_t n_entry;
};

uint64_t sl_repack_bytes(const sl_plan_weight *weight) {
    const sl_type_info *info = sl_type_find(weight->type);
    if (!info || info->blk_len == 1) return 0;
    return sl_round_up(weight->n_row, SL_CPU_PANEL_ROWS) * sl_type_row_bytes(info, weight->n_col);
}

// A block of each of a panel's rows. A block is words, but for what its length has beyond them: that is at its end in
// super-blocks and at its beginning in plain ones.
static void copy_blocks(uint8_t *to, const uint8_t *from, uint64_t row_bytes, uint32_t n_row,
                        const sl_type_info *info) {
    uint32_t odd = info->blk_bytes % 4, odd_at = info->blk_len == SL_ACT_BLK_LEN ? info->blk_bytes - odd : 0;
    if (n_row < SL_CPU_PANEL_ROWS) memset(to, 0, SL_CPU_PANEL_ROWS * info->blk_bytes);
    for (uint32_t row = 0; row < n_row; row++)
        memcpy(to + SL_CPU_PANEL_ROWS * odd_at + row * odd, from + row * row_bytes + odd_at, odd);
    for (uint32_t off = odd_at == 0 ? odd : 0; off + 4 <= info->blk_bytes; off += 4)
        for (uint32_t row = 0; row < n_row; row++)
            memcpy(to + SL_CPU_PANEL_ROWS * off + 4 * row, from + row * row_bytes + off, 4);
}

// Panels [begin, end) of a matrix. Writes every byte, so that no page is left for the first step to touch.
static void copy_panels(const entry *e, uint32_t begin, uint32_t end) {
    const sl_type_info *info = sl_type_find(e->type);
    uint64_t row_bytes = sl_type_row_bytes(info, e->n_col);
    for (uint32_t panel = begin; panel < end; panel++) {
        uint32_t row = panel * SL_CPU_PANEL_ROWS;
        uint32_t n_row = SL_MIN(e->n_row - row, (uint32_t)SL_CPU_PANEL_ROWS);
        const uint8_t *from = e->from + row * row_bytes;
        uint8_t *to = e->to + row * row_bytes;
        for (uint64_t at = 0; at < row_bytes; at += info->blk_bytes)
            copy_blocks(to + SL_CPU_PANEL_ROWS * at, from + at, row_bytes, n_row, info);
    }
}

static void copy_share(void *arg, int i_thread, int n_thread) {
    const entry *e = arg;
    int64_t begin, end;
    sl_pool_share(&begin, &end, (e->n_row + SL_CPU_PANEL_ROWS - 1) / SL_CPU_PANEL_ROWS, i_thread, n_thread);
    copy_panels(e, (uint32_t)begin, (uint32_t)end);
}

static sl_status copy_all(sl_repack *r, const sl_plan *plan, const sl_program_memory *memory, sl_pool *pool) {
    SL_TRY(sl_alloc(&r->entry, plan->n_weight, sizeof *r->entry, "the list of repacked weights"));
    SL_TRY(sl_pages_map(&r->pages, plan->copy_bytes, true, "the repacked weights"));
    r->n_bytes = plan->copy_bytes;
    uint64_t done = 0;
    for (uint32_t i = 0; i < plan->n_weight; i++) {
        const sl_plan_weight *w = &plan->weight[i];
        if (w->copy_bytes == 0) continue;
        entry *e = &r->entry[r->n_entry++];
        *e = (entry){memory->weight[i], r->pages + done, w->n_row, w->n_col, (sl_type)w->type};
        sl_pool_run(pool, sl_pool_size(pool), copy_share, e);
        done += w->copy_bytes;
        if (memory->progress && memory->progress(memory->user, done, plan->copy_bytes))
            return SL_FAIL(SL_CANCELLED, "loading was stopped");
    }
    return SL_OK;
}

sl_status sl_repack_create(sl_repack **out, const sl_plan *plan, const sl_program_memory *memory, sl_pool *pool,
                           bool wire) {
    SL_TRY(sl_alloc(out, 1, sizeof **out, "the repacked weights"));
    sl_status status = copy_all(*out, plan, memory, pool);
    if (status == SL_OK && wire) (*out)->wired_bytes = sl_pages_lock((*out)->pages, (*out)->n_bytes);
    if (status == SL_OK) return SL_OK;
    sl_repack_destroy(*out);
    *out = NULL;
    return status;
}

void sl_repack_destroy(sl_repack *repack) {
    if (!repack) return;
    sl_pages_free(repack->pages, repack->n_bytes);
    sl_free(repack->entry);
    sl_free(repack);
}

const uint8_t *sl_repack_find(const sl_repack *repack, const void *weight) {
    for (uint32_t i = 0; repack && i < repack->n_entry; i++)
        if (repack->entry[i].from == weight) return repack->entry[i].to;
    return NULL;
}

uint64_t sl_repack_wired_bytes(const sl_repack *repack) { return repack ? repack->wired_bytes : 0; }
