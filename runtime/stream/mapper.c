/* SPDX-License-Identifier: Apache-2.0 */
#include "mapper.h"
#include "api/resolve.h"
#include "engine/engine.h"
#include "options.h"
#include "specs.h"

#include <stdlib.h>
#include <string.h>

/* Mappers that stay: a stream that alternates between three shapes makes no new session. */
enum { KEPT = 3 };

cox_status cox__mappers_init(struct cox__mappers *mappers, cox_runtime *runtime,
                             const struct cox_session_params *params)
{
    static const struct cox_session_params defaults = {0};
    if (!params)
        params = &defaults;

    memset(mappers, 0, sizeof *mappers);
    mappers->runtime = runtime;
    pthread_mutex_init(&mappers->lock, NULL);
    pthread_cond_init(&mappers->started, NULL);
    atomic_init(&mappers->made, 0);

    const cox_status status = cox__resolve_common(runtime, params, &mappers->params,
                                                  mappers->devices);
    if (!mappers->params.in_flight)
        mappers->params.in_flight = 2;
    mappers->background = mappers->params.ready != NULL;
    mappers->params.warm_start = NULL;
    mappers->params.ready = NULL;
    return status;
}

static void destroy(struct cox__mapper *mapper)
{
    cox_session_destroy(&mapper->mapping);
    pthread_mutex_destroy(&mapper->lock);
    free(mapper);
}

void cox__mappers_clear(struct cox__mappers *mappers)
{
    while (mappers->newest) {
        struct cox__mapper *mapper = mappers->newest;
        mappers->newest = mapper->next;
        destroy(mapper);
    }

    pthread_cond_destroy(&mappers->started);
    pthread_mutex_destroy(&mappers->lock);
}

struct cox__mapper *cox__mappers_find(const struct cox__mappers *mappers,
                                      const struct cox_video_shape *shape,
                                      enum cox__counting counting)
{
    for (struct cox__mapper *mapper = mappers->newest; mapper; mapper = mapper->next)
        if (mapper->counting == counting && cox__options_shapes_alike(&mapper->shape, shape) &&
            cox__options_pitches_alike(&mapper->shape, shape))
            return mapper;

    return NULL;
}

/* A cox_report_fn: replaces the session's frame number by the stream's. */
static void report(void *user, const struct cox_frame_report *about)
{
    struct cox__mapper *mapper = user;
    const struct cox__session_spec *params = &mapper->all->params;
    struct cox_frame_report renumbered = *about;

    pthread_mutex_lock(&mapper->lock);
    const struct cox__number number = mapper->numbers[about->index % COX__NUMBERS];
    pthread_mutex_unlock(&mapper->lock);

    renumbered.index = number.frame;
    if (!number.rehearsal || about->warmup)
        params->report(params->report_user, &renumbered);
}

cox_status cox__mapper_prepare(struct cox__mapper *mapper,
                               const struct cox_video_settings *settings,
                               const struct cox_constants **params)
{
    *params = &mapper->params;
    if (mapper->is_prepared && cox__options_alike(&mapper->settings, settings))
        return COX_OK;

    const cox_status status = cox_video_prepare(&mapper->shape, settings, &mapper->params);
    mapper->settings = *settings;
    mapper->is_prepared = status == COX_OK;
    return status;
}

void cox__mapper_number(struct cox__mapper *mapper, uint64_t frame, bool rehearsal)
{
    pthread_mutex_lock(&mapper->lock);
    mapper->numbers[mapper->submitted++ % COX__NUMBERS] = (struct cox__number){frame, rehearsal};
    pthread_mutex_unlock(&mapper->lock);
}

void cox__mapper_take_back(struct cox__mapper *mapper)
{
    pthread_mutex_lock(&mapper->lock);
    mapper->submitted--;
    pthread_mutex_unlock(&mapper->lock);
}

/* The application's parameters; the caller adds a pipeline to them. */
static struct cox__session_spec params_of(struct cox__mapper *mapper)
{
    const struct cox__mappers *all = mapper->all;
    struct cox__session_spec params = all->params;

    params.warm_start = NULL;
    if (all->newest)
        params.warm_start = all->newest->mapping;
    if (params.report) {
        params.report = report;
        params.report_user = mapper;
    }
    return params;
}

/* A session in the background whose first device is awaited. */
struct start {
    struct cox__mappers *mappers;
    bool over; /* under the mappers' lock, as `status` */
    cox_status status;
};

/* A cox__ready_fn. */
static void has_started(void *user, cox_status status)
{
    struct start *start = user;
    struct cox__mappers *mappers = start->mappers;

    pthread_mutex_lock(&mappers->lock);
    start->status = status;
    start->over = true; /* `start` may be gone after the lock */
    pthread_cond_broadcast(&mappers->started);
    pthread_mutex_unlock(&mappers->lock);
}

/* Create a session. In the background this waits for its first device only. */
static cox_status create_session(struct cox__mappers *mappers, struct cox__session_spec *params,
                                 cox_session **out)
{
    struct start start = {.mappers = mappers};
    if (mappers->background) {
        params->ready = has_started;
        params->ready_user = &start;
    }

    const cox_status status = cox__session_create(mappers->runtime, params, out);
    if (status != COX_OK || !mappers->background)
        return status;

    pthread_mutex_lock(&mappers->lock);
    while (!start.over)
        pthread_cond_wait(&mappers->started, &mappers->lock);
    pthread_mutex_unlock(&mappers->lock);

    if (start.status != COX_OK)
        cox_session_destroy(out);
    return start.status;
}

static cox_status make(struct cox__mappers *mappers, const struct cox_video_shape *shape,
                       enum cox__counting counting, struct cox__mapper **out)
{
    struct cox__mapper *mapper = calloc(1, sizeof *mapper);
    if (!mapper)
        return COX_E_NOMEM;

    mapper->all = mappers;
    mapper->shape = *shape;
    mapper->counting = counting;
    pthread_mutex_init(&mapper->lock, NULL);

    struct cox__pipeline_storage storage;
    struct cox__session_spec params = params_of(mapper);
    cox_status status;
    if (counting == COX__COUNTING_FIRST)
        status = cox__video_counted_mapping(shape, mappers->counted, mappers->counted_user,
                                            &storage, &params);
    else
        status = cox__video_mapping(shape, counting == COX__COUNTING_TOO, &storage, &params);
    if (status == COX_E_INVALID)
        cox__log(
            &mappers->runtime->log, COX_LOG_ERROR,
            "a stream cannot map this frame: unsupported formats, sizes, transfer or look (see "
            "cox_video_mapping)");

    mapper->binding_count = params.binding_count;
    mapper->params_bytes = params.params_bytes;
    if (status == COX_OK)
        status = create_session(mappers, &params, &mapper->mapping);
    if (status != COX_OK) {
        destroy(mapper);
        return status;
    }

    atomic_fetch_add(&mappers->made, 1);
    *out = mapper;
    return COX_OK;
}

/* Make the mapper the newest of the list. */
static void put_first(struct cox__mappers *mappers, struct cox__mapper *mapper)
{
    struct cox__mapper **link = &mappers->newest;

    pthread_mutex_lock(&mappers->lock);
    while (*link && *link != mapper)
        link = &(*link)->next;
    if (*link)
        *link = mapper->next;

    mapper->next = mappers->newest;
    mappers->newest = mapper;
    pthread_mutex_unlock(&mappers->lock);
}

/* Destroy all but the newest few, unless they have frames. */
static void drop_old(struct cox__mappers *mappers)
{
    struct cox__mapper **link = &mappers->newest, *old = NULL;

    pthread_mutex_lock(&mappers->lock);
    for (int place = 0; *link; place++) {
        struct cox__mapper *mapper = *link;
        if (place < KEPT || mapper->frames) {
            link = &mapper->next;
            continue;
        }

        *link = mapper->next;
        mapper->next = old;
        old = mapper;
    }
    pthread_mutex_unlock(&mappers->lock);

    while (old) {
        struct cox__mapper *next = old->next;
        destroy(old);
        old = next;
    }
}

cox_status cox__mappers_use(struct cox__mappers *mappers, const struct cox_video_shape *shape,
                            enum cox__counting counting, struct cox__mapper **out)
{
    struct cox__mapper *mapper = cox__mappers_find(mappers, shape, counting);
    cox_status status = COX_OK;
    if (!mapper)
        status = make(mappers, shape, counting, &mapper);
    if (status != COX_OK)
        return status;

    if (mapper != mappers->newest)
        put_first(mappers, mapper);
    drop_old(mappers);

    *out = mapper;
    return COX_OK;
}

void cox__mappers_cancel(struct cox__mappers *mappers)
{
    pthread_mutex_lock(&mappers->lock);
    for (struct cox__mapper *mapper = mappers->newest; mapper; mapper = mapper->next)
        (void)cox_session_cancel(mapper->mapping);
    pthread_mutex_unlock(&mappers->lock);
}

void cox__mappers_session_info(struct cox__mappers *mappers, struct cox_session_info *info)
{
    memset(info, 0, sizeof *info);

    pthread_mutex_lock(&mappers->lock);
    const struct cox__mapper *newest = mappers->newest;
    if (newest)
        cox_session_info(newest->mapping, info);
    pthread_mutex_unlock(&mappers->lock);
}
