// SPDX-License-Identifier: MIT
//
// Quantising: names to types, and on.
#include "api/api_part.h"
#include "convert/quantize.h"
#include "os/os.h"

enum { MAX_THREADS = 1024 };

sluice_quantize_options sluice_quantize_options_default(void) {
    return (sluice_quantize_options){.size = sizeof(sluice_quantize_options), .mix = "Q4_K_M"};
}

const char *sluice_mix_name(size_t i, const char **about) {
    const sl_mix *mix = sl_mix_at(i);
    if (about) *about = mix ? mix->about : NULL;
    return mix ? mix->name : NULL;
}

static sl_status parse_type(sl_type *out, bool *is_set, const char *name) {
    *is_set = name != NULL;
    if (!name || (sl_type_parse(out, name) && sl_type_find(*out)->computable)) return SL_OK;
    return SL_FAIL(SL_BAD_ARG, "there is no type '%s' that a tensor could become", name);
}

static sl_status read_options(sl_quantize_options *out, const sluice_quantize_options *given) {
    sluice_quantize_options o = sluice_quantize_options_default();
    SL_TRY(sl_api_options(&o, given, sizeof o, "quantize"));
    if (o.n_thread < 0 || o.n_thread > MAX_THREADS)
        return SL_FAIL(SL_BAD_ARG, "n_thread is %d; 0 .. %d are possible", o.n_thread, MAX_THREADS);
    *out = (sl_quantize_options){.imatrix_path = o.imatrix_path,
                                 .n_thread = o.n_thread ? o.n_thread : sl_cpu_count(),
                                 .dry_run = o.dry_run,
                                 .progress = o.progress,
                                 .user = o.user};
    sl_mix_request *r = &out->request;
    r->mix = sl_mix_find(o.mix ? o.mix : "Q4_K_M");
    if (!r->mix)
        return SL_FAIL(SL_BAD_ARG, "there is no mix '%s'; there are Q4_K_M, Q5_K_M, Q6_K, Q8_0 and others", o.mix);
    r->pure = o.pure, r->keep_output = o.keep_output;
    SL_TRY(parse_type(&r->output, &r->set_output, o.output_type));
    return parse_type(&r->embedding, &r->set_embedding, o.embedding_type);
}

sluice_status sluice_quantize(const char *path, const char *out_path, const sluice_quantize_options *options, bool json,
                              char **text) {
    if (text) *text = NULL;
    API_NEED(path);
    sl_quantize_options o;
    sl_quantize_report report = {0};
    sl_gguf *gguf = NULL;
    sl_buf out = {0};
    sl_status status;
    SL_TRY_OUT(read_options(&o, options));
    if (!o.dry_run) API_NEED(out_path);
    SL_TRY_OUT(sl_gguf_open(&gguf, path, &(sl_gguf_options){.allow_no_data = o.dry_run}));
    SL_TRY_OUT(sl_quantize(&report, gguf, out_path, &o));
    if (!text) goto out;
    if (json) sl_quantize_report_json(&report, gguf, &out);
    else sl_quantize_report_text(&report, gguf, o.dry_run, &out);
    status = sl_buf_take(&out, text, NULL);
out:
    sl_quantize_report_deinit(&report);
    sl_buf_deinit(&out);
    sl_gguf_close(gguf);
    return api_fail(status);
}
