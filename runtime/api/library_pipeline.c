/* The public functions that make pipelines of the library's kernels. The kernels allocate nothing;
 * the memory comes from here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "resolve.h"
#include "specs.h"

#include <coxswain/filter.h>
#include <coxswain/video.h>
#include <stdlib.h>

/* A pipeline for the spec's function to fill in. */
static cox_pipeline *begin(cox_pipeline **out)
{
    if (!out)
        return NULL;

    *out = NULL;
    return calloc(1, sizeof(cox_pipeline));
}

/* Give out the pipeline, or free it if the spec is wrong. */
static cox_status end(cox_pipeline *pipeline, cox_status status, cox_pipeline **out)
{
    if (status)
        free(pipeline);
    else
        *out = pipeline;

    return status;
}

/* Why there is no pipeline to fill in. */
static cox_status no_pipeline(cox_pipeline *const *out)
{
    return out ? COX_E_NOMEM : COX_E_INVALID;
}

/* The stage keeps one variant, for any device. It lies in the pipeline's storage. */
static void keep_variant(struct cox__stage *stage, enum cox_device_type type)
{
    const struct cox__variant *kept = NULL;
    for (uint32_t v = 0; v < stage->variant_count; v++) {
        const struct cox__variant *variant = &stage->variants[v];
        if (variant->type == type || (!variant->type && !kept))
            kept = variant;
    }
    if (!kept)
        return;

    ((struct cox__variant *)kept)->type = 0;
    stage->variants = kept;
    stage->variant_count = 1;
}

cox_status cox_pipeline_use_variant(cox_pipeline *pipeline, enum cox_device_type type)
{
    if (!pipeline)
        return COX_E_INVALID;

    const struct cox__session_spec *spec = &pipeline->spec;
    for (uint32_t s = 0; s < spec->stage_count; s++)
        keep_variant((struct cox__stage *)&spec->stages[s], type);
    for (uint32_t p = 0; p < spec->pass_count; p++)
        for (uint32_t s = 0; s < spec->passes[p].stage_count; s++)
            keep_variant((struct cox__stage *)&spec->passes[p].stages[s], type);
    return COX_OK;
}

void cox_pipeline_destroy(cox_pipeline **pipeline)
{
    if (!pipeline)
        return;

    free(*pipeline);
    *pipeline = NULL;
}

cox_status cox_video_mapping(const struct cox_video_shape *shape, bool analyse, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__video_mapping(shape, analyse, &p->storage, &p->spec), out);
}

cox_status cox_video_analysis(const struct cox_video_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__video_analysis(shape, &p->storage, &p->spec), out);
}

cox_status cox_tonemap_mapping(const struct cox_tonemap_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__tonemap_mapping(shape, &p->storage, &p->spec), out);
}

cox_status cox_tonemap_analysis(const struct cox_tonemap_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__tonemap_analysis_spec(shape, &p->storage, &p->spec), out);
}

cox_status cox_filter_separable(const struct cox_filter_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__convolution_separable(shape, &p->storage, &p->spec), out);
}

cox_status cox_filter_convolution(const struct cox_filter_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__convolution_full(shape, &p->storage, &p->spec), out);
}

cox_status cox_filter_gaussian(const struct cox_filter_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__gauss_filter(shape, &p->storage, &p->spec), out);
}

cox_status cox_filter_guided(const struct cox_filter_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__window_guided(shape, &p->storage, &p->spec), out);
}
