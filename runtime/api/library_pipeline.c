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

    return end(p, cox__filter_separable(shape, &p->storage, &p->spec), out);
}

cox_status cox_filter_convolution(const struct cox_filter_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__filter_convolution(shape, &p->storage, &p->spec), out);
}

cox_status cox_filter_gaussian(const struct cox_filter_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__filter_gaussian(shape, &p->storage, &p->spec), out);
}

cox_status cox_filter_guided(const struct cox_filter_shape *shape, cox_pipeline **out)
{
    cox_pipeline *p = begin(out);
    if (!p)
        return no_pipeline(out);

    return end(p, cox__filter_guided(shape, &p->storage, &p->spec), out);
}
