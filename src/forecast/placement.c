// SPDX-License-Identifier: MIT
//
// Arithmetic of placements. Parts that work one after the other add their times; parts that work at
// once cost the longer one. Weights never travel in the good ones: activations are thousands of
// times smaller.
#include "forecast/placement.h"

#define LINK_SHARE       0.80  // of a link's figure that large transfers reach
#define HOP_US           10.0  // one crossing of PCIe with its hand-over
#define RDMA_US          50.0  // of a message between two machines over Thunderbolt 5, RDMA (facts-anchors section 7)
#define TCP_US           300.0 // the same over TCP
#define THUNDERBOLT_GB_S 7.1   // an all-reduce of 1 MiB over Thunderbolt 5, measured (facts-anchors section 7)
#define HOP_BYTES(g)     ((double)(g)->n_embd * 4)

typedef struct work {
    const sl_placement_ask *ask;
    const sl_geometry *g;
    double token_bytes;
    double on_device; // part of the model that fits, 0..1
    sl_placement *out;
    size_t n;
} work;

static double ms_at(double n_bytes, const sl_rate *r) { return n_bytes / (r->gb_s * r->share * 1e9) * 1e3; }
static double link_gb_s(const char *name) { return sl_machine_row(name).gb_s * LINK_SHARE; }
static double hop_ms(const work *w, double gb_s, double us) { return HOP_BYTES(w->g) / (gb_s * 1e6) + us * 1e-3; }

static sl_placement *add(work *w, const char *what, double ms, const char *limit) {
    sl_placement *p = &w->out[w->n++];
    *p = (sl_placement){.fits = true, .ms = ms, .tok_s = ms > 0 ? 1e3 / ms : 0};
    snprintf(p->what, sizeof p->what, "%s", what);
    snprintf(p->limit, sizeof p->limit, "%s", limit);
    return p;
}

static void all_on_device(work *w) {
    const sl_placement_ask *a = w->ask;
    sl_placement *p = add(w, a->host ? "all on the device" : "all in memory", ms_at(w->token_bytes, a->device_rate),
                          "its memory bandwidth");
    p->device_bytes = a->need_bytes;
    p->fits = a->usable_bytes <= 0 || a->need_bytes <= a->usable_bytes;
    if (a->usable_bytes <= 0) snprintf(p->note, sizeof p->note, "the size of this memory is not known");
    else if (!p->fits) snprintf(p->note, sizeof p->note, "%.2f GB too large", (a->need_bytes - a->usable_bytes) / 1e9);
}

static void layers_split(work *w) {
    const sl_placement_ask *a = w->ask;
    double device_ms = ms_at(w->token_bytes * w->on_device, a->device_rate),
           host_ms = ms_at(w->token_bytes * (1 - w->on_device), a->host_rate), link = link_gb_s(a->device->link);
    sl_placement *p = add(w, "layers split, the rest on the host", device_ms + host_ms + 2 * hop_ms(w, link, HOP_US),
                          host_ms > device_ms ? "the host's memory bandwidth" : "the device's memory bandwidth");
    p->device_bytes = a->need_bytes * w->on_device;
    p->host_bytes = a->need_bytes - p->device_bytes;
    p->link_bytes = 2 * HOP_BYTES(w->g);
    p->fits = a->host_bytes <= 0 || p->host_bytes <= a->host_bytes;
    snprintf(p->note, sizeof p->note, "%.0f of %u layers on the device; activations travel, %.1f KB a token",
             (double)(uint32_t)(w->on_device * w->g->n_layer), w->g->n_layer, p->link_bytes / 1e3);
}

static void experts_on_host(work *w) {
    const sl_placement_ask *a = w->ask;
    const sl_traffic *t = a->load->traffic;
    double experts = (double)t->token_expert_bytes, link = link_gb_s(a->device->link);
    double host_ms = ms_at(experts, a->host_rate), device_ms = ms_at(w->token_bytes - experts, a->device_rate);
    double hops_ms = 2.0 * w->g->n_layer * hop_ms(w, link, HOP_US);
    sl_placement *p =
        add(w, "experts on the host", host_ms + device_ms + hops_ms,
            host_ms > device_ms + hops_ms ? "the host's memory bandwidth" : "the device and the hops to it");
    p->host_bytes = (double)t->expert_bytes;
    p->device_bytes = a->need_bytes - p->host_bytes;
    p->link_bytes = 2.0 * w->g->n_layer * HOP_BYTES(w->g);
    p->fits = (a->usable_bytes <= 0 || p->device_bytes <= a->usable_bytes) &&
              (a->host_bytes <= 0 || p->host_bytes <= a->host_bytes);
    snprintf(p->note, sizeof p->note, "%u of %u experts: %.2f GB of the host's memory a token", w->g->n_expert_used,
             w->g->n_expert, experts / 1e9);
}

// What does not fit crosses a link for every token, at best while the device works on what it has.
static void streamed(work *w, const char *link_name) {
    const sl_placement_ask *a = w->ask;
    double link = link_gb_s(link_name), bytes = w->token_bytes * (1 - w->on_device);
    double link_ms = bytes / (link * 1e6), device_ms = ms_at(w->token_bytes, a->device_rate);
    char what[64];
    snprintf(what, sizeof what, "weights streamed over %s", link_name);
    sl_placement *p = add(w, what, link_ms > device_ms ? link_ms : device_ms,
                          link_ms > device_ms ? link_name : "its memory bandwidth");
    p->device_bytes = a->need_bytes * w->on_device;
    p->host_bytes = a->need_bytes - p->device_bytes;
    p->link_bytes = bytes;
    if (bytes <= 0) snprintf(p->note, sizeof p->note, "nothing to stream: it fits");
    else
        snprintf(p->note, sizeof p->note,
                 "%.2f GB each token at %.1f GB/s (80 %% of the link) = %.2f s%s; above %.1f GB it "
                 "is under 1 token/s",
                 bytes / 1e9, link, link_ms / 1e3, link_ms > 1000 ? ": under 1 token/s" : "", link);
}

static void two_machines(work *w) {
    const sl_placement_ask *a = w->ask;
    double whole_ms = ms_at(w->token_bytes, a->device_rate), half = a->need_bytes / 2;
    bool fits = a->usable_bytes <= 0 || half <= a->usable_bytes;
    sl_placement *p = add(w, "two machines, half of the layers each",
                          whole_ms + 2 * hop_ms(w, THUNDERBOLT_GB_S, RDMA_US), "memory bandwidth");
    p->link_bytes = 2 * HOP_BYTES(w->g), p->device_bytes = half, p->host_bytes = half, p->fits = fits;
    snprintf(p->note, sizeof p->note,
             "Thunderbolt 5, RDMA: room for twice the model; one user is no faster, the halves "
             "take turns");
    static const struct {
        const char *how;
        double us;
    } ways[] = {{"RDMA", RDMA_US}, {"TCP", TCP_US}};
    for (int i = 0; i < 2; i++) {
        double n_sum = 2.0 * w->g->n_layer, sums_ms = n_sum * hop_ms(w, THUNDERBOLT_GB_S, ways[i].us);
        p = add(w, i == 0 ? "two machines, half of each matrix, RDMA" : "two machines, half of each matrix, TCP",
                whole_ms / 2 + sums_ms, sums_ms > whole_ms / 2 ? "latency of the link" : "memory bandwidth");
        p->link_bytes = n_sum * HOP_BYTES(w->g), p->device_bytes = half, p->host_bytes = half, p->fits = fits;
        snprintf(p->note, sizeof p->note, "Thunderbolt 5: %.0f sums a token x %.0f us (%s) = %.1f ms of waiting", n_sum,
                 ways[i].us, ways[i].how, sums_ms);
    }
}

sl_status sl_placements(sl_placement out[SL_MAX_PLACEMENTS], size_t *n, const sl_placement_ask *ask) {
    work w = {.ask = ask, .g = ask->load->geometry, .out = out, .on_device = 1};
    *n = 0;
    SL_TRY(sl_predict_token_bytes(&w.token_bytes, ask->load, ask->n_past));
    if (ask->usable_bytes > 0 && ask->need_bytes > ask->usable_bytes) w.on_device = ask->usable_bytes / ask->need_bytes;
    all_on_device(&w);
    if (ask->host) {
        layers_split(&w);
        if (w.g->n_expert > 1) experts_on_host(&w);
        streamed(&w, ask->device->link);
        streamed(&w, "Thunderbolt 5");
    } else {
        streamed(&w, "NVMe 4.0");
    }
    two_machines(&w);
    *n = w.n;
    return SL_OK;
}
