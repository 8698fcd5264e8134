// SPDX-License-Identifier: MIT
//
// What the backends that compute in host memory (ref, cpu) share: buffers, the check of a step's
// arguments, and small questions about a plan. Knows nothing of threads or kernels.
#ifndef SL_BACKEND_HOST_H
#define SL_BACKEND_HOST_H

#include "backend/backend.h"

// The buffer entries of sl_backend; the device is not looked at.
sl_status sl_host_buf_create(sl_device *device, sl_device_buf *out, void *host, size_t n_bytes, const char *what);
void sl_host_buf_destroy(sl_device *device, sl_device_buf *buf);
sl_status sl_host_buf_copy(sl_device *device, sl_device_buf *dst, size_t dst_off, const sl_device_buf *src,
                           size_t src_off, size_t n_bytes);
sl_status sl_host_buf_read(sl_device *device, void *out, const sl_device_buf *src, size_t src_off, size_t n_bytes);

// Does the memory hold the plan? SL_BAD_ARG if not: a bug of the caller's that would write where it
// must not.
sl_status sl_host_check_memory(const sl_plan *plan, const sl_program_memory *memory);

// Everything in a step that becomes an address: rows, tokens, positions, slots and the blocks that
// are read. SL_BAD_ARG names the row. Linear in the rows and in the blocks that they see.
sl_status sl_host_check_step(const sl_plan *plan, const sl_step *step);

// The first cell that a row at `cell` sees through a window (0 = all).
static inline int32_t sl_host_first_seen(int32_t cell, uint32_t window) {
    return window == 0 || (int64_t)cell + 1 <= (int64_t)window ? 0 : (int32_t)((int64_t)cell + 1 - window);
}

// Rows that an op computes in this step.
static inline int32_t sl_host_n_row(const sl_plan *plan, const sl_op *op, const sl_step *step) {
    return op->out != SL_NO_VALUE && plan->value[op->out].logit_rows ? step->n_logit : step->n_row;
}

// A vector that an op reads beside its matrix (norm weight, bias) has to be F32. SL_UNSUPPORTED
// names it.
sl_status sl_host_check_vector(const sl_plan *plan, const sl_op *op, int i);

// "op norm of layer 3", for messages; static per thread.
const char *sl_host_op_text(const sl_op *op);

#endif
