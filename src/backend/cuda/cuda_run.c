// SPDX-License-Identifier: MIT
//
// A step: its arguments into pinned memory, and one launch of the graph. Of the block table only what has changed since
// the program's last step is marked for the device to fetch: the pinned table is what the device has.
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/host.h"

// Brings the pinned table's entries of a row up to date; a slot's rows share one range.
static void note_blocks(sl_program *p, const sl_step *step, int32_t row) {
    int32_t slot = step->slot[row], n = step->pos[row] / SL_KV_BLK_LEN + 1;
    const int32_t *from = step->blk_table + (int64_t)slot * step->blk_stride;
    int32_t *table = p->host_step + sl_cuda_step_table(p->shape) + (uint64_t)slot * p->shape.blk_stride;
    int32_t first = 0, end = n;
    while (first < end && table[first] == from[first]) first++;
    if (first == end) return;
    memcpy(table + first, from + first, (size_t)(end - first) * sizeof *table);
    int32_t *ranges = p->host_step + sl_cuda_step_rows(p->shape);
    if (!p->range_of[slot]) {
        p->range_of[slot] = ++p->host_step[2];
        memcpy(ranges + 3 * (p->range_of[slot] - 1), (int32_t[3]){slot, first, end}, 3 * sizeof *ranges);
    }
    int32_t *range = ranges + 3 * (p->range_of[slot] - 1);
    range[1] = SL_MIN(range[1], first), range[2] = SL_MAX(range[2], end);
}

static void write_step(sl_program *p, const sl_step *step) {
    int32_t *head = p->host_step, *token = head + 4, *pos = token + p->shape.n_row_max;
    int32_t *slot = pos + p->shape.n_row_max, *logit_row = slot + p->shape.n_row_max;
    size_t n_bytes = (size_t)step->n_row * sizeof *token;
    head[0] = step->n_row, head[1] = step->n_logit, head[2] = 0;
    memcpy(token, step->token, n_bytes);
    memcpy(pos, step->pos, n_bytes);
    memcpy(slot, step->slot, n_bytes);
    memcpy(logit_row, step->logit_row, (size_t)step->n_logit * sizeof *logit_row);
    for (int32_t i = 0; i < step->n_row; i++) {
        bool last = i + 1 == step->n_row || step->slot[i + 1] != step->slot[i];
        if (last) note_blocks(p, step, i); // the rows before it see no more
    }
    for (int32_t i = 0; i < step->n_row; i++) p->range_of[step->slot[i]] = 0;
}

sl_status sl_cuda_run(sl_program *p, const sl_step *step) {
    SL_TRY(sl_host_check_step(p->plan, step));
    SL_CUDA_TRY(cudaStreamSynchronize(p->device->stream), "the step before"); // it may still read the pinned block
    write_step(p, step);
    SL_CUDA_TRY(cudaGraphLaunch(p->graph, p->device->stream), "launching a step");
    return SL_OK;
}
