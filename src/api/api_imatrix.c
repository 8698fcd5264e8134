// SPDX-License-Identifier: MIT
//
// Importance matrices: arguments are checked and forwarded.
#include "api/api_part.h"
#include "convert/collect.h"

enum { WINDOW = 512 };

struct sluice_imatrix {
    sl_collector *collector; // owned
    int32_t n_vocab;
};

sluice_status sluice_imatrix_create(sluice_imatrix **out, const sluice_model *model,
                                    const sluice_engine_options *options) {
    API_NEED(out);
    *out = NULL;
    API_NEED(model);
    sl_engine_options o;
    sluice_imatrix *im = NULL;
    sl_status status;
    SL_TRY_OUT(sl_api_engine_options(&o, model, options));
    if (!options || options->n_ctx == 0) o.n_ctx = WINDOW;
    SL_TRY_OUT(sl_alloc(&im, 1, sizeof *im, "importance matrix"));
    im->n_vocab = (int32_t)model->model->config.n_vocab;
    status = sl_collector_create(&im->collector, model->model, &o);
out:
    if (status != SL_OK) sluice_imatrix_destroy(&im);
    *out = im;
    return api_fail(status);
}

void sluice_imatrix_destroy(sluice_imatrix **imatrix) {
    if (!imatrix || !*imatrix) return;
    sl_collector_destroy((*imatrix)->collector);
    sl_free(*imatrix);
    *imatrix = NULL;
}

sluice_status sluice_imatrix_add(sluice_imatrix *imatrix, const int32_t *ids, size_t n) {
    API_NEED(imatrix);
    API_NEED(ids);
    return api_fail(sl_collector_add(imatrix->collector, ids, n));
}

sluice_status sluice_imatrix_write(const sluice_imatrix *imatrix, const char *path, const char *source) {
    API_NEED(imatrix);
    API_NEED(path);
    return api_fail(sl_collector_write(imatrix->collector, path, source ? source : ""));
}
