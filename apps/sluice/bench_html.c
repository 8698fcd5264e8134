// SPDX-License-Identifier: MIT
//
// The report.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_chart.h"

static void add_tiles(page *p, const bench *b) {
    page_markup(p, "<div class=\"tiles\">\n");
    if (b->n_decode) {
        const bench_decode *d = &b->decode[0];
        summary t = series_summarize(&d->itl);
        char share[32], jitter[32];
        snprintf(share, sizeof share, "%.0f", 100 * bench_share(b, bench_decode_gb_s(d)));
        snprintf(jitter, sizeof jitter, "%.3f", t.p50 > 0 ? t.p99 / t.p50 : 0);
        page_tile(p, number_show(series_summarize(&d->tok_s).p50).text, "tok/s", "decode");
        page_tile(p, share, "%", "of the memory's read bandwidth");
        page_tile(p, jitter, "", "p99 / p50 between tokens");
    }
    if (b->n_prefill) {
        const bench_prefill *q = &b->prefill[b->n_prefill - 1];
        char what[64];
        snprintf(what, sizeof what, "to the first token of %d", (int)q->n);
        page_tile(p, number_show(series_summarize(&q->tok_s).p50).text, "tok/s", "prefill");
        page_tile(p, number_show(series_summarize(&q->ttft).p50).text, "ms", what);
    }
    page_tile(p, number_show(bench_read_gb_s(b)).text, "GB/s", "read bandwidth measured");
    page_markup(p, "</div>\n");
}

// All histograms share one scale, so that they compare; far stragglers do not squeeze it.
static void add_histograms(page *p, const bench *b) {
    double from = INFINITY, to = 0, most = 0;
    for (size_t i = 0; i < b->n_decode; i++) {
        summary t = series_summarize(&b->decode[i].itl);
        from = fmin(from, t.min), to = fmax(to, t.p99 * 1.1), most = fmax(most, t.max);
    }
    double pad = fmax((to - from) * 0.04, to * 0.005);
    from = fmax(from - pad, 0), to = fmin(to, most) + pad;
    page_markup(p, "<section><h2>Times between tokens</h2>\n");
    for (size_t i = 0; i < b->n_decode; i++) chart_itl(p, b, &b->decode[i], from, to);
    page_markup(p, "</section>\n");
}

static void add_charts(page *p, const bench *b) {
    page_markup(p, "<div class=\"cards\">\n");
    if (b->n_prefill) {
        page_markup(p, "<section><h2>Time to first token</h2>\n");
        chart_ttft(p, b);
        page_markup(p, "</section>\n");
    }
    if (b->n_decode > 1) {
        page_markup(p, "<section><h2>Decode by depth</h2>\n");
        chart_depth(p, b);
        page_markup(p, "</section>\n");
    }
    if (b->n_decode) add_histograms(p, b);
    if (b->n_decode || b->n_prefill) {
        page_markup(p, "<section><h2>Roofline</h2>\n");
        chart_roofline(p, b);
        page_markup(p, "<p class=\"soft note\">On the grey line a step takes as long as reading what "
                       "it needs from memory. Above it, that was still in the processor's caches. "
                       "The dashed line is the best of this run, not what the processor can "
                       "do.</p>\n");
        page_markup(p, "</section>\n");
    }
}

// ---- tables -------------------------------------------------------------------------------------

static void add_prefill_table(page *p, const bench *b) {
    if (!b->n_prefill) return;
    page_markup(p, "<div><h2>Prefill</h2><div class=\"scroll\"><table "
                   "class=\"small\"><tr><th>tokens<th>tok/s<th>spread"
                   "<th>TTFT ms</tr>\n");
    for (size_t i = 0; i < b->n_prefill; i++) {
        const bench_prefill *q = &b->prefill[i];
        summary s = series_summarize(&q->tok_s);
        page_markup(p, "<tr><td>%d<td>%.1f<td>%.0f %%<td>%.1f</tr>\n", (int)q->n, s.p50, s.spread * 100,
                    series_summarize(&q->ttft).p50);
    }
    page_markup(p, "</table></div></div>\n");
}

static void add_decode_table(page *p, const bench *b) {
    if (!b->n_decode) return;
    page_markup(p,
                "<h2>Decode</h2><div class=\"scroll\"><table><tr><th>depth<th>tok/s<th>spread"
                "<th>p50 ms<th>p90<th>p99<th>max<th>p99/p50<th>MB a token<th>GB/s<th>of limit"
                "<th>allocs<th>faults%s</tr>\n",
                b->meter.n ? "<th>J a token" : "");
    for (size_t i = 0; i < b->n_decode; i++) {
        const bench_decode *d = &b->decode[i];
        summary s = series_summarize(&d->tok_s), t = series_summarize(&d->itl);
        double gb_s = bench_decode_gb_s(d);
        page_markup(p,
                    "<tr><td>%d<td>%.1f<td>%.0f %%<td>%.2f<td>%.2f<td>%.2f<td>%.2f<td>%.3f"
                    "<td>%.1f<td>%.1f<td>%.0f %%<td>%.3g<td>%.3g",
                    (int)d->depth, s.p50, s.spread * 100, t.p50, t.p90, t.p99, t.max, t.p50 > 0 ? t.p99 / t.p50 : 0,
                    d->bytes * 1e-6, gb_s, 100 * bench_share(b, gb_s), series_summarize(&d->n_alloc).max,
                    series_summarize(&d->n_fault).max);
        if (d->joules.n) page_markup(p, "<td>%.3f", series_summarize(&d->joules).p50);
        page_markup(p, "</tr>\n");
    }
    page_markup(p, "</table></div>\n");
}

static void add_rows_table(page *p, const bench *b) {
    if (!b->n_rows) return;
    page_markup(p, "<div><h2>Several rows a step</h2><div class=\"scroll\"><table "
                   "class=\"small\"><tr><th>rows<th>ms a "
                   "step<th>spread<th>ratio<th>tok/s</tr>\n");
    for (size_t i = 0; i < b->n_rows; i++) {
        const bench_rows *r = &b->rows[i];
        summary s = series_summarize(&r->step);
        page_markup(p, "<tr><td>%d<td>%.2f<td>%.0f %%<td>%.2f<td>%.1f</tr>\n", (int)r->n, s.p50, s.spread * 100,
                    s.p50 / series_summarize(&b->rows[0].step).p50, r->n * 1e3 / s.p50);
    }
    page_markup(p, "</table></div></div>\n");
}

static void add_read_table(page *p, const bench *b) {
    page_markup(p, "<div><h2>Memory, read only</h2><div class=\"scroll\"><table "
                   "class=\"small\"><tr><th>threads<th>GB/s"
                   "<th>spread<th>readings</tr>\n");
    for (size_t i = 0; i < b->n_read; i++) {
        summary s = series_summarize(&b->read[i].gb_s);
        page_markup(p, "<tr><td>%d<td>%.1f<td>%.0f %%<td>%zu</tr>\n", (int)b->read[i].n_thread, s.p50, s.spread * 100,
                    s.n);
    }
    page_markup(p, "</table></div></div>\n");
}

static void add_tables(page *p, const bench *b) {
    page_markup(p, "<section class=\"wide\">\n");
    add_decode_table(p, b);
    page_markup(p, "<div class=\"cols\">\n");
    add_prefill_table(p, b);
    add_rows_table(p, b);
    add_read_table(p, b);
    page_markup(p, "</div></section></div>\n");
}

// ---- the whole ----------------------------------------------------------------------------------

static void add_head(page *p, const bench *b) {
    const sluice_model_info *m = &b->session.model_info;
    const sluice_engine_info *e = &b->session.engine_info;
    page_begin(p, m->name, b->path, "sluice bench");
    page_markup(p, "<p class=\"soft\">");
    page_text(p, m->arch);
    page_markup(p, ", ");
    page_text(p, m->type);
    page_markup(p, ", %.1f M parameters, %.1f MiB \xc2\xb7 ", (double)m->n_params * 1e-6,
                (double)m->weight_bytes / 0x1p20);
    page_text(p, e->device);
    page_markup(p, ", %d processors \xc2\xb7 threads %d, prefill %d \xc2\xb7 KV %s</p>\n", (int)b->machine.n_cpu,
                (int)e->n_thread, (int)e->n_thread_prefill, b->kv);
}

static void add_noise(page *p, const bench *b) {
    bench_noise noise = bench_get_noise(b);
    if (!noise.n_why) return;
    page_markup(p, "<p class=\"warn\">The machine was noisy: ");
    for (size_t i = 0; i < noise.n_why; i++) page_markup(p, "%s%s", i ? "; " : "", noise.why[i]);
    page_markup(p, ".</p>\n");
}

int bench_write_html(const bench *b, const char *path) {
    page p = {0};
    add_head(&p, b);
    add_tiles(&p, b);
    add_noise(&p, b);
    add_charts(&p, b);
    add_tables(&p, b);
    page_markup(&p,
                "<p class=\"soft\" style=\"margin-top:18px\">sluice %s, medians of %d runs; "
                "bars span all runs. Bytes and operations are the plan's. TTFT: prefill and one "
                "sample. Time between tokens: one step and one sample.</p>\n",
                SLUICE_VERSION, (int)b->request.n_rep);
    return page_end(&p, path);
}
