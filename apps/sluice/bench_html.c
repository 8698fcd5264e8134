// SPDX-License-Identifier: MIT
//
// The report: one file that needs no other, light or dark as its reader's screen is.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_page.h"

static const char style[] =
    ":root{color-scheme:light dark;--ground:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#667085;"
    "--rule:#e4e7ec;--one:#2563eb;--two:#d9730d;--roof:#98a2b3;--warn:#fff4e5;--warn-ink:#93500a}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#0f1319;--card:#171d26;--ink:#e6eaf0;"
    "--soft:#98a2b3;--rule:#2a3240;--one:#6ea8fe;--two:#f5a45d;--roof:#667085;--warn:#33260f;"
    "--warn-ink:#f7c77e}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}\n"
    "main{max-width:1180px;margin:0 auto;padding:32px 20px 48px}"
    "h1{font-size:26px;line-height:1.2;margin:0 0 4px}h2{font-size:16px;margin:0 0 12px}"
    "p{margin:0}.soft{color:var(--soft)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:14px;"
    "margin:24px 0 14px}.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,"
    "100%),1fr));gap:14px}\n"
    "section,.tile,.warn{background:var(--card);border:1px solid var(--rule);border-radius:12px;"
    "padding:18px 20px;min-width:0}.wide{grid-column:1/-1}"
    ".tile b{display:block;font-size:28px;line-height:1.25;font-weight:650;"
    "font-variant-numeric:tabular-nums}.tile b small{font-size:15px;font-weight:500;"
    "color:var(--soft)}\n"
    ".warn{background:var(--warn);color:var(--warn-ink);border-color:transparent;margin:14px 0}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;"
    "font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    "th,td{text-align:right;padding:6px 10px;border-bottom:1px solid var(--rule)}"
    "th{color:var(--soft);font-weight:500}tr:last-child td{border-bottom:0}"
    "th:first-child,td:first-child{padding-left:0}th:last-child,td:last-child{padding-right:0}"
    ".small{width:auto}.cols{display:flex;flex-wrap:wrap;gap:22px "
    "64px;margin-top:22px}svg+svg{margin-top:16px}.note{margin-top:10px;"
    "font-size:13px}h2+.scroll{margin-top:-6px}\n"
    "svg{display:block;width:100%;height:auto;overflow:visible}svg text{font-size:12.5px;"
    "fill:var(--soft)}svg .label{fill:var(--ink)}svg .title{font-size:12.5px}\n"
    ".grid{stroke:var(--rule)}.axis{stroke:var(--soft);stroke-opacity:.6}.line{fill:none;"
    "stroke-width:2.25;stroke-linejoin:round}.line.one,.range.one{stroke:var(--one)}"
    ".range{stroke-width:1.5}.line.roof{stroke:var(--roof)}\n"
    "circle{stroke:var(--card);stroke-width:1.5}circle.one,rect.one{fill:var(--one)}"
    "circle.two{fill:var(--two)}.mark{stroke:var(--two);stroke-width:1.5;stroke-dasharray:4 3}"
    ".best{stroke:var(--two);stroke-opacity:.8;stroke-dasharray:5 4;fill:none}\n";

static void add_tile(page *p, const char *value, const char *unit, const char *what) {
    page_markup(p,
                "<div class=\"tile\"><b>%s <small>%s</small></b><span class=\"soft\">%s</span>"
                "</div>\n",
                value, unit, what);
}

static void add_tiles(page *p, const bench *b) {
    page_markup(p, "<div class=\"tiles\">\n");
    if (b->n_decode) {
        const bench_decode *d = &b->decode[0];
        summary t = series_summarize(&d->itl);
        char share[32], jitter[32];
        snprintf(share, sizeof share, "%.0f", 100 * bench_share(b, bench_decode_gb_s(d)));
        snprintf(jitter, sizeof jitter, "%.3f", t.p50 > 0 ? t.p99 / t.p50 : 0);
        add_tile(p, number_show(series_summarize(&d->tok_s).p50).text, "tok/s", "decode");
        add_tile(p, share, "%", "of the memory's read bandwidth");
        add_tile(p, jitter, "", "p99 / p50 between tokens");
    }
    if (b->n_prefill) {
        const bench_prefill *q = &b->prefill[b->n_prefill - 1];
        char what[64];
        snprintf(what, sizeof what, "to the first token of %d", (int)q->n);
        add_tile(p, number_show(series_summarize(&q->tok_s).p50).text, "tok/s", "prefill");
        add_tile(p, number_show(series_summarize(&q->ttft).p50).text, "ms", what);
    }
    add_tile(p, number_show(bench_read_gb_s(b)).text, "GB/s", "read bandwidth measured");
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
    const char *slash = strrchr(b->path, '/'), *name = m->name[0] ? m->name : slash ? slash + 1 : b->path;
    page_markup(p, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                   "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>");
    page_text(p, name);
    page_markup(p, " \xc2\xb7 sluice bench</title>\n<style>\n");
    if (p->status == APP_OK) p->status = text_append(&p->out, style, sizeof style - 1);
    page_markup(p, "</style></head>\n<body><main>\n<h1>");
    page_text(p, name);
    page_markup(p, "</h1>\n<p class=\"soft\">");
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
                "sample. Time between tokens: one step and one sample.</p>\n"
                "</main></body></html>\n",
                SLUICE_VERSION, (int)b->request.n_rep);
    new_file f = {0};
    int result = p.status == APP_OK ? new_file_open(&f, path) : p.status;
    if (result == APP_OK) result = new_file_write(&f, p.out.data, p.out.n);
    if (result == APP_OK) result = new_file_commit(&f);
    new_file_abandon(&f);
    text_free(&p.out);
    return result;
}
