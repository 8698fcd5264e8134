// SPDX-License-Identifier: MIT
//
// The sums. Each constant says where it is from; docs/plan.md has them in one place.
#include "forecast/predict.h"

#include "base/compiler.h"
#include "os/os.h"

// Decoding against a read-only sweep of the same threads: what the engine aims at on its list of
// models.
#define SHARE_MEASURED  0.90
// Decoding against the published figure of a bus, which a pure read does not reach either: the best
// engines reach 0.74 to 0.92 (calm on an RTX 4090, a megakernel on an H100; facts-anchors section
// 4).
#define SHARE_PUBLISHED 0.80
// Prefill against a dense 16-bit peak: 0.3 to 0.6 is usual for products of this size.
#define SHARE_TFLOPS    0.45
// Threads that spin at a barrier meet within about this.
#define BARRIER_US      1.0
// A kernel of a recorded graph costs a GPU about this beside its bytes (facts-anchors section 4).
#define KERNEL_US       1.3

enum { CHUNK = 512 }; // rows of a prefill step; weights are read once for each

// 10^9 multiply-accumulates a second of a thread. Activations are 16 bit, so a product costs two of the 8-bit
// instruction. AVX-512 (82 to 95 on files of Q4_K, Q6_K, Q8_0), AVX2 (27) and AMX (1.3 times AVX-512, on another host)
// were measured: docs/performance.md. The rest is reckoned: 16 lanes of NEON at 3 GHz, of which two thirds remain.
static double gmac_of(uint32_t features) {
    if (features & SL_CPU_AMX_INT8) return 115;
    if (features & SL_CPU_AVX512_VNNI) return 88;
    if (features & SL_CPU_AVX2) return 27;
    if (features & SL_CPU_I8MM) return 48;
    if (features & SL_CPU_DOTPROD) return 32;
    return 1.5;
}

sl_rate sl_rate_host(double measured_gb_s, int n_thread, uint32_t cpu_features) {
    return (sl_rate){measured_gb_s, SHARE_MEASURED, gmac_of(cpu_features) * n_thread, n_thread > 1 ? BARRIER_US : 0};
}

sl_rate sl_rate_machine(const sl_machine *m) {
    double wait_us = m->kind == SL_MACHINE_HOST ? BARRIER_US : KERNEL_US;
    return (sl_rate){m->gb_s, SHARE_PUBLISHED, m->tflops / 2 * 1000 * SHARE_TFLOPS, wait_us};
}

static double ms_of(double n_bytes, const sl_rate *r) { return n_bytes / (r->gb_s * r->share * 1e9) * 1e3; }

static void finish(sl_prediction *p, const sl_rate *rate, double n_mac, double n_tok) {
    double memory_ms = p->weight_ms + p->kv_ms + p->state_ms;
    p->compute_ms = rate->gmac_s > 0 ? n_mac / (rate->gmac_s * 1e6) : 0;
    p->limit = p->compute_ms > memory_ms ? "arithmetic" : "memory bandwidth";
    p->total_ms = SL_MAX(memory_ms, p->compute_ms) + p->wait_ms;
    p->tok_s = p->total_ms > 0 ? n_tok * 1e3 / p->total_ms : 0;
    p->is_floor = rate->gmac_s <= 0;
}

sl_status sl_predict_token_bytes(double *out, const sl_load *load, uint32_t n_past) {
    sl_kv_sizes kv;
    *out = 0;
    SL_TRY(sl_geometry_kv(&kv, load->geometry, load->type_kv, n_past < UINT32_MAX ? n_past + 1 : n_past));
    *out = (double)load->traffic->token_bytes + (double)kv.read_bytes + 2 * (double)kv.state_bytes;
    return SL_OK;
}

sl_status sl_predict_decode(sl_prediction *out, const sl_load *load, const sl_rate *rate, uint32_t n_past) {
    const sl_traffic *t = load->traffic;
    uint32_t n_pos = n_past < UINT32_MAX ? n_past + 1 : n_past;
    sl_kv_sizes kv;
    *out = (sl_prediction){0};
    SL_TRY(sl_geometry_kv(&kv, load->geometry, load->type_kv, n_pos));
    out->weight_ms = ms_of((double)t->token_bytes, rate);
    out->kv_ms = ms_of((double)kv.read_bytes, rate);
    out->state_ms = ms_of(2 * (double)kv.state_bytes, rate);
    out->wait_ms = load->n_barrier * rate->barrier_us * 1e-3;
    double n_mac = (double)t->row_mac + (double)t->output_mac + sl_geometry_attention_macs(load->geometry, n_pos);
    finish(out, rate, n_mac, 1);
    if (rate->gmac_s <= 0) out->is_floor = false; // one row never keeps such a processor busy
    return SL_OK;
}

sl_status sl_predict_prefill(sl_prediction *out, const sl_load *load, const sl_rate *rate, uint32_t n) {
    const sl_traffic *t = load->traffic;
    uint32_t n_chunk = (n - 1) / CHUNK + 1, rows = SL_MIN(n, (uint32_t)CHUNK);
    sl_kv_sizes kv;
    *out = (sl_prediction){0};
    SL_TRY(sl_geometry_kv(&kv, load->geometry, load->type_kv, n));
    // Rows of a chunk choose different experts; together they read at most all of them.
    double experts = SL_MIN((double)t->expert_bytes, (double)t->token_expert_bytes * rows);
    double chunk_bytes = (double)t->token_bytes - (double)t->token_expert_bytes + experts;
    out->weight_ms = ms_of(chunk_bytes * n_chunk, rate);
    out->kv_ms = ms_of((double)kv.read_bytes * (n_chunk + 1) / 2,
                       rate); // each chunk reads what is there by then
    out->state_ms = ms_of(2 * (double)kv.state_bytes * n_chunk, rate);
    out->wait_ms = (double)load->n_barrier * n_chunk * rate->barrier_us * 1e-3;
    // A row sees half of the prompt on average; windows make it less, so this is a little more than
    // there is.
    double n_mac =
        ((double)t->row_mac + sl_geometry_attention_macs(load->geometry, n / 2 + 1)) * n + (double)t->output_mac;
    finish(out, rate, n_mac, n);
    return SL_OK;
}
