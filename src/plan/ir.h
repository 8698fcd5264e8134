// SPDX-License-Identifier: MIT
//
// The plan: a model as a straight program of fixed-size ops over one workspace. This header is the whole contract
// between the builders, the passes (rewrite, layout, verify, explain, cost) and the backends.
//
// Invariants, checked by verify.c each time a plan is made:
//  1. An op holds no pointer: value ids, weight ids and small attributes only. A plan can be printed and compared.
//  2. A value is written by exactly one op, before any op reads it; it lives in the workspace at
//     [off, off + n_row_max * row_bytes), 64-byte aligned, and no other value that is live at the same time overlaps
//     it, except that an op's output may take the place of one of its inputs that dies there where sl_op_may_alias
//     says so.
//  3. op.barrier is set on the first op that depends on (or would disturb) what another worker has written (read) since
//     the last one. A worker does its share of the ops between two barriers in their order; workers run as they like.
//  4. Nothing depends on the number of rows: rows, positions, slots, block tables come in sl_step at run time.
#ifndef SL_PLAN_IR_H
#define SL_PLAN_IR_H

#include <stddef.h>
#include <stdint.h>

#include "base/type.h"

#define SL_NO_VALUE  ((uint16_t)0xffff)
#define SL_NO_WEIGHT ((uint16_t)0xffff)

enum {
    SL_KV_BLK_LEN = 32,   // positions of a KV block
    SL_KV_OPEN_SLOTS = 2, // open blocks of a sequence
    SL_ACT_BLK_LEN = 256, // columns that share a scale in ACT16
    SL_ACT_SUM_LEN = 16,  // columns that share a sum in ACT16
    SL_ACT_BASE = 256,    // a 16-bit activation is SL_ACT_BASE * hi + lo
    SL_WORKSPACE_ALIGN = 64,
};

// Rewrites that a backend may ask for.
enum {
    SL_FUSE_ACT16 = 1 << 0,      // quantised matrices read ACT16; each source is quantised once
    SL_FUSE_MATMUL_ADD = 1 << 1, // the residual is added by the matrix product
    SL_FUSE_WORKERS = 1 << 2,    // narrow steps wait less: SL_WHO_EACH and SL_WHO_OWN
    SL_FUSE_BEST = 1 << 4,       // the best token of each row of logits is found, as the last op
    SL_WINDOW_TABLES = 1 << 3,   // no rewrite: attention looks into the block table of its layer's class
    SL_MOVING_ROWS = 1 << 5,     // no rewrite: it knows sl_step.cell and skip
};

typedef enum sl_opcode {
#define SL_OP(code, name, n_in, n_weight, attrs, fused) SL_OP_##code,
#include "plan/ops.def"
#undef SL_OP
    SL_OP_COUNT
} sl_opcode;

// Which of a backend's workers (threads) does an op.
typedef enum sl_who {
    SL_WHO_ALL,  // shared out over all
    SL_WHO_EACH, // each does the whole of it, for itself: out is `each`, and readers need not wait
    SL_WHO_OWN,  // each goes on with the units that it has made itself of the product at the chain's head
} sl_who;

typedef enum sl_act { SL_ACT_SILU, SL_ACT_GELU_TANH } sl_act;

typedef struct sl_attr_embed {
    float scale;
} sl_attr_embed;
typedef struct sl_attr_rope_table {
    uint16_t rope; // index into sl_plan.rope
    uint8_t cells; // of the rows' cells in place of their positions
} sl_attr_rope_table;
// `group` divides the columns: n_embd for a whole row, head_dim for a norm of each head; the weight has `group`
// elements.
typedef struct sl_attr_norm {
    float eps;
    uint32_t group;
} sl_attr_norm;
// interleaved: pairs (2i, 2i+1); else (i, i + n_rot/2). Columns past n_rot of a head are copied. in[0] = x, in[1] =
// table.
typedef struct sl_attr_rope {
    uint32_t n_head, head_dim, n_rot;
    uint8_t interleaved;
} sl_attr_rope;
typedef struct sl_attr_kv {
    uint16_t kv_layer;
} sl_attr_kv; // in[0] = k (R, n_head_kv*head_dim), in[1] = v (R, n_head_kv*v_dim)
// A row sees cells: its positions, as sl_step has them. In a sequence that moves, cells after the first block stand for
// positions that come later and later. Keys keep the rotation of their positions. For the newest ones the distance to q
// is that of the positions; the first block would seem ever further away, further than any model was trained for, so
// ATTEND_SINKS scores it with a q that is rotated by the row's cell.
// Of a cache of codes a row sees its own block (c / SL_KV_BLK_LEN) as the open block has it, and those before as codes.
// Row at cell c sees cells max(0, c + 1 - window) .. c of its own sequence (window 0: all). Query head h uses
// KV head h / (n_head / n_head_kv). scores = q.k * scale, then softcap * tanh(scores / softcap) if softcap > 0.
typedef struct sl_attr_attend {
    uint16_t kv_layer;
    uint32_t n_head, window;
    float scale, softcap;
} sl_attr_attend;
typedef struct sl_attr_glu {
    uint8_t act;
} sl_attr_glu; // in[0] = gate, in[1] = up
typedef struct sl_attr_softcap {
    float cap;
} sl_attr_softcap;

typedef struct sl_op {
    uint8_t code;    // sl_opcode
    uint8_t barrier; // all earlier ops must be complete before this one starts
    uint8_t who;     // sl_who
    int16_t layer;   // for prints; -1 outside the layers
    uint16_t in[2];  // value ids or SL_NO_VALUE
    uint16_t out;
    uint16_t weight[2];
    union {
        sl_attr_embed embed;
        sl_attr_rope_table rope_table;
        sl_attr_norm norm;
        sl_attr_rope rope;
        sl_attr_kv kv;
        sl_attr_attend attend;
        sl_attr_glu glu;
        sl_attr_softcap softcap;
    } attr;
} sl_op;

// F32: row-major floats, row_bytes = n_col * 4 rounded up to SL_WORKSPACE_ALIGN.
// ACT16: activations for integer matrix products. In a row, for n_pad = n_col rounded up to SL_ACT_BLK_LEN:
//   int8 hi[n_pad], int8 lo[n_pad], float d[n_pad/256], int32 sum[n_pad/16]
// value ~ d[i/256] * (SL_ACT_BASE * hi[i] + lo[i]); hi in -127..127; columns past n_col are 0;
// sum[j] = sum over its 16 columns of (SL_ACT_BASE * hi + lo), exact. Non-finite input: d is NaN, hi and lo are 0.
typedef enum sl_value_kind { SL_VALUE_F32, SL_VALUE_ACT16 } sl_value_kind;

typedef struct sl_value {
    uint8_t kind;       // sl_value_kind
    uint8_t logit_rows; // 1: one row for each row that wants logits; 0: one for each row of the step
    uint8_t each;       // every worker has its own, n_worker one behind the other
    uint32_t n_col;
    uint32_t unit;      // columns that one worker makes and goes on with (SL_WHO_OWN); 0: cut as you like
    uint64_t row_bytes; // set by layout
    uint64_t off;       // into the workspace; set by layout
} sl_value;

typedef struct sl_plan_weight {
    char name[64];   // as in the file, NUL-terminated
    uint8_t type;    // sl_type
    uint32_t n_row;  // outputs; 1 for vectors
    uint32_t n_col;  // inputs (row length, contiguous)
    uint32_t source; // index into the model's tensors
    uint64_t n_bytes;
    uint64_t copy_bytes; // of the backend's own copy; 0 = none. Set by layout, as is in_place
    uint8_t in_place;    // some op reads the file's bytes
} sl_plan_weight;

// What an op takes beyond its values.
typedef struct sl_op_need {
    uint64_t scratch_bytes; // while it runs
    uint64_t copy_bytes[2]; // for good: the backend's own copies of the weights; 0 = read in place
} sl_op_need;

// One rotary embedding: angle = pos * inv_freq[i] (in double), cos and sin times mscale.
typedef struct sl_plan_rope {
    uint32_t n_rot;
    uint32_t inv_freq_at; // first of n_rot/2 entries in sl_plan.inv_freq
    float mscale;
} sl_plan_rope;

// Where a layer keeps the K or V of blocks that are not yet full, if its type has codes: as F16, V rotated. Open block
// i < n_own is the layer's own and stays (sequence s has SL_KV_OPEN_SLOTS from SL_KV_OPEN_SLOTS * s on); the others are
// for blocks that begin and end within a step, and all layers share them. blk_bytes 0: there are none.
typedef struct sl_plan_open {
    uint64_t blk_bytes, off, step_off;
    uint32_t n_own;
} sl_plan_open;

static inline uint64_t sl_plan_open_off(const sl_plan_open *o, int32_t i) {
    uint64_t k = (uint64_t)i;
    return k < o->n_own ? o->off + k * o->blk_bytes : o->step_off + (k - o->n_own) * o->blk_bytes;
}

// KV storage of one attention layer. A pool block holds SL_KV_BLK_LEN positions of all KV heads; the order of the
// bytes in a block is the backend's own. Block b of K is at k_off + b * k_blk_bytes of the KV buffer, likewise V.
typedef struct sl_plan_kv {
    uint32_t n_head_kv, head_dim, v_dim, window;
    uint32_t v_rot;         // order of the rotation (quant/kv_codec.h) of V as it is stored; 0: none
    uint8_t type_k, type_v; // sl_type: F32, F16, BF16, Q8_0, Q5_0, Q4_0
    uint8_t cls; // 0: keeps all positions; 1: those of the windows (kv/kv.h), in blocks of a pool of their own
    uint64_t k_blk_bytes, v_blk_bytes;
    uint64_t k_off, v_off;
    sl_plan_open k_open, v_open;
} sl_plan_kv;

// What a plan is made for. One plan for each width class; they share workspace, KV pool and weights.
typedef struct sl_plan_shape {
    uint32_t n_row_max;    // rows of a step
    uint32_t n_logit_max;  // rows that may want logits
    uint32_t n_ctx;        // positions of a sequence
    uint32_t n_slot;       // sequences
    uint32_t n_kv_blk;     // blocks of the pool
    uint32_t n_window_blk; // those of class 1; 0: there is no such class, window layers keep all positions too
    uint8_t type_k, type_v;
    uint8_t kv_rotate;   // quantised V is rotated
    uint32_t n_worker;   // of the backend; 0 = 1
    uint8_t moves;       // sequences may go on when n_ctx is full, which is a multiple of SL_KV_BLK_LEN then
    uint8_t keep_inputs; // what matrix products read stays in the workspace to the step's end (importance matrices)
} sl_plan_shape;

typedef struct sl_plan {
    sl_plan_shape shape;
    uint32_t n_vocab;
    sl_op *op;              // (n_op)          all owned by the plan
    sl_value *value;        // (n_value)
    sl_plan_weight *weight; // (n_weight)
    sl_plan_rope *rope;     // (n_rope)
    double *inv_freq;       // (n_inv_freq)
    sl_plan_kv *kv;         // (n_kv), by kv_layer
    uint32_t n_op, n_value, n_weight, n_rope, n_inv_freq, n_kv;
    uint16_t logits;                     // the value with the result, F32 (n_logit, n_vocab)
    uint16_t best;                       // that of BEST, or SL_NO_VALUE
    uint64_t value_bytes;                // workspace for the values; set by layout
    uint64_t scratch_off, scratch_bytes; // for the backend's own use inside an op; set by layout
    uint64_t workspace_bytes;            // value_bytes + scratch_bytes, aligned
    uint64_t kv_bytes;                   // of the whole pool
    uint64_t copy_bytes;                 // of all the backend's copies of weights; set by layout
} sl_plan;

// Step arguments: all that varies. Arrays are borrowed for the duration of the step.
typedef struct sl_step {
    int32_t n_row;            // 1 .. n_row_max
    int32_t n_logit;          // 0 .. n_logit_max
    const int32_t *token;     // (n_row) in 0 .. n_vocab-1
    const int32_t *pos;       // (n_row)
    const int32_t *slot;      // (n_row) row of blk_table
    const int32_t *logit_row; // (n_logit) rising row indices
    const int32_t *blk_table; // (n_slot, blk_stride) pool blocks; of a row's cells by sl_step_entry
    int32_t blk_stride;
    const int32_t *window_table; // the same for class 1; only blocks that a row sees through its window count
    const int32_t *open;         // (n_row) open block of the row's own block; read only where a layer has some
    // Of rows whose sequences have moved; NULL: there are none, cells are positions.
    const int32_t *cell; // (n_row) pos less a multiple of SL_KV_BLK_LEN: what is after the first block and is not seen
    const int32_t *skip; // (n_row) table entries after the first that are not seen
} sl_step;

static inline int32_t sl_step_cell(const sl_step *step, int32_t row) {
    return step->cell ? step->cell[row] : step->pos[row];
}

// The table entry of block blk of a row's cells.
static inline int32_t sl_step_entry(const sl_step *step, int32_t row, int32_t blk) {
    return blk && step->skip ? blk + step->skip[row] : blk;
}

// The block table of a layer's class, for one slot.
static inline const int32_t *sl_step_table(const sl_step *step, const sl_plan_kv *kv, int32_t slot) {
    return (kv->cls ? step->window_table : step->blk_table) + (int64_t)slot * step->blk_stride;
}

static inline int sl_op_is_attend(const sl_op *op) {
    return op->code == SL_OP_ATTEND || op->code == SL_OP_ATTEND_SINKS;
}

static inline uint32_t sl_plan_n_blk(const sl_plan *plan, const sl_plan_kv *kv) {
    return kv->cls ? plan->shape.n_window_blk : plan->shape.n_kv_blk;
}

static inline uint32_t sl_plan_n_step_open(const sl_plan *plan) { return plan->shape.n_row_max / SL_KV_BLK_LEN; }

typedef struct sl_op_info {
    const char *name;
    uint8_t n_in, n_weight, fused;
} sl_op_info;
extern const sl_op_info sl_op_infos[SL_OP_COUNT];

static inline uint64_t sl_act16_row_bytes(uint32_t n_col) {
    uint64_t n_pad = ((uint64_t)n_col + SL_ACT_BLK_LEN - 1) / SL_ACT_BLK_LEN * SL_ACT_BLK_LEN;
    uint64_t n_bytes = 2 * n_pad + n_pad / SL_ACT_BLK_LEN * 4 + n_pad / SL_ACT_SUM_LEN * 4;
    return (n_bytes + SL_WORKSPACE_ALIGN - 1) / SL_WORKSPACE_ALIGN * SL_WORKSPACE_ALIGN;
}

#endif
