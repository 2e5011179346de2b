/* A session's memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "recall.h"
#include "models.h"
#include "sha256.h"

#include <stdio.h>
#include <string.h>

enum {
    FRAMES_LEAST = 8, /* a session of fewer says little */
    KERNELS_BYTES = 256,
};

/* Counted up when what is measured means something else than before. */
static const uint32_t key_version = 1;

/* Each piece goes in with its length before it, so that ("ab","c") and ("a","bc") differ. */
static void feed(struct cox__sha256 *sha, const void *data, size_t bytes)
{
    const uint64_t length = bytes;
    cox__sha256_feed(sha, &length, sizeof length);
    cox__sha256_feed(sha, data, bytes);
}

static void feed_text(struct cox__sha256 *sha, const char *text)
{
    feed(sha, text ? text : "", text ? strlen(text) : 0);
}

static void feed_numbers(struct cox__sha256 *sha, const uint64_t *numbers, size_t count)
{
    feed(sha, numbers, count * sizeof *numbers);
}
#define FEED_NUMBERS(sha, ...) \
    feed_numbers((sha), (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void feed_device(struct cox__sha256 *sha, const struct cox__pipeline *pipeline,
                        const struct cox__session_unit *unit)
{
    const struct cox_device_info *info = &unit->info;
    feed_text(sha, info->id);
    feed_text(sha, info->driver);
    FEED_NUMBERS(sha, info->type, info->mode, info->compute_units, info->subdevice);
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        const struct cox_variant *variant = cox__stage_variant(&pipeline->stages[s], unit->device, info->type);
        if (!variant)
            continue;
        feed_text(sha, variant->source);
        feed_text(sha, variant->options);
        FEED_NUMBERS(sha, s, variant->local_columns, variant->local_rows, variant->item_columns, variant->item_rows);
    }
}

static void feed_pipeline(struct cox__sha256 *sha, const struct cox__pipeline *pipeline)
{
    FEED_NUMBERS(sha, pipeline->rows, pipeline->granule, pipeline->binding_count, pipeline->stage_count,
                 pipeline->params_bytes);
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        FEED_NUMBERS(sha, binding->contract, binding->access, binding->pitch_bytes, binding->row_divisor,
                     binding->halo_rows, binding->bytes);
    }
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        const struct cox_stage *stage = &pipeline->stages[s];
        feed_text(sha, stage->kernel);
        FEED_NUMBERS(sha, stage->columns, stage->arg_count);
        for (uint32_t a = 0; a < stage->arg_count; a++)
            FEED_NUMBERS(sha, stage->args[a].kind, stage->args[a].index, stage->args[a].offset, stage->args[a].bytes);
    }
}

static bool before(const struct cox_device_info *a, const struct cox_device_info *b)
{
    int order = strcmp(a->id, b->id);
    return order ? order < 0 : a->subdevice < b->subdevice;
}

/* The order in which devices stand in an entry, whatever order the session lists them in. */
static void sort_units(cox_session *session)
{
    uint32_t *order = session->recall.order;
    for (uint32_t u = 0; u < session->unit_count; u++) {
        uint32_t at = u;
        for (; at > 0 && before(&session->units[u].info, &session->units[order[at - 1]].info); at--)
            order[at] = order[at - 1];
        order[at] = u;
    }
}

static void make_key(cox_session *session, const struct cox_session_params *params)
{
    struct cox__sha256 sha;
    cox__sha256_begin(&sha);
    FEED_NUMBERS(&sha, key_version, session->unit_count, session->min_band_rows, params->policy_options.objective,
                 params->policy_options.deadline_ns);
    feed_text(&sha, session->policy.name);
    feed_pipeline(&sha, &session->pipeline);
    for (uint32_t i = 0; i < session->unit_count; i++)
        feed_device(&sha, &session->pipeline, &session->units[session->recall.order[i]]);
    cox__sha256_end(&sha, session->recall.key);
}

/* What the entry says to a reader of the file; it points into `kernels`. */
static void describe(const cox_session *session, struct cox__models_entry *entry, char *kernels, size_t bytes)
{
    *entry = (struct cox__models_entry){.policy = session->policy.name,
                                        .kernels = kernels,
                                        .rows = session->pipeline.rows,
                                        .device_count = session->unit_count};
    memcpy(entry->key, session->recall.key, sizeof entry->key);
    size_t used = 0;
    kernels[0] = 0;
    for (uint32_t s = 0; s < session->pipeline.stage_count && used < bytes; s++) {
        const struct cox_stage *stage = &session->pipeline.stages[s];
        if (stage->columns > entry->columns)
            entry->columns = stage->columns;
        used += (size_t)snprintf(kernels + used, bytes - used, "%s%s", s ? " " : "", stage->kernel);
    }
    for (uint32_t i = 0; i < session->unit_count; i++) {
        const struct cox_device_info *info = &session->units[session->recall.order[i]].info;
        entry->devices[i] = (struct cox__models_device){info->id, info->driver, info->compute_units};
    }
}

void cox__recall_begin(cox_session *session, const struct cox_session_params *params)
{
    const char *dir = session->runtime->cache_dir;
    if (!dir || params->no_memory || !session->policy.recall || !session->policy.models)
        return;
    sort_units(session);
    make_key(session, params);
    session->recall.on = true;

    struct cox__models_entry entry;
    char kernels[KERNELS_BYTES];
    struct cox_device_model sorted[COX_DEVICES_MAX], models[COX_DEVICES_MAX];
    describe(session, &entry, kernels, sizeof kernels);
    enum cox__models_found found = cox__models_load(dir, &entry, sorted, &session->runtime->log);
    session->recall.on = found != COX__MODELS_UNUSABLE;
    if (found != COX__MODELS_FOUND)
        return;
    for (uint32_t i = 0; i < session->unit_count; i++)
        models[session->recall.order[i]] = sorted[i];
    if (!cox__engine_recall(session, models))
        return;
    for (uint32_t u = 0; u < session->unit_count; u++)
        session->units[u].solo_ns = (uint64_t)models[u].solo_ns;
    session->recall.recalled = true;
    cox__log(&session->runtime->log, COX_LOG_INFO, "the session begins with what an earlier one measured");
}

void cox__recall_end(cox_session *session)
{
    struct cox_device_model models[COX_DEVICES_MAX], sorted[COX_DEVICES_MAX];
    if (!session->recall.on || session->dead || session->frames_done < FRAMES_LEAST)
        return;
    /* The others have learnt to do without a device that left. */
    for (uint32_t u = 0; u < session->unit_count; u++)
        if (!session->units[u].usable)
            return;
    if (!cox__engine_models(session, models))
        return;
    for (uint32_t i = 0; i < session->unit_count; i++) {
        uint32_t u = session->recall.order[i];
        sorted[i] = models[u];
        if (sorted[i].solo_ns == 0)
            sorted[i].solo_ns = (double)session->units[u].solo_ns;
    }
    struct cox__models_entry entry;
    char kernels[KERNELS_BYTES];
    describe(session, &entry, kernels, sizeof kernels);
    cox__models_store(session->runtime->cache_dir, &entry, session->frames_done, sorted, &session->runtime->log);
}
