/* The tape in the database: calls of a policy and its answers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint32_t devices_of(const struct cox_sched_view *view)
{
    if (!view)
        return 0;
    if (view->device_count > COX_DEVICES_MAX)
        return COX_DEVICES_MAX;

    return view->device_count;
}

static size_t split_bytes(const struct cox_split *split)
{
    uint32_t bands = split->band_count;

    if (bands > COX_BANDS_MAX)
        bands = COX_BANDS_MAX;

    return offsetof(struct cox_split, bands) + bands * sizeof split->bands[0];
}

size_t lab__queued_call_bytes(const struct lab_call *call)
{
    const struct lab_queued_call *none = NULL;
    size_t used = 0;

    switch (call->kind) {
    case LAB_CALL_INIT:
        used = sizeof none->options;
        break;
    case LAB_CALL_LOAD_PROFILE:
        used = devices_of(call->view) * sizeof *none->profiles;
        break;
    case LAB_CALL_SPLIT:
        used = split_bytes(call->split);
        break;
    case LAB_CALL_NEXT:
        used = sizeof none->next;
        break;
    case LAB_CALL_OBSERVE:
        used = sizeof none->measurement;
        break;
    case LAB_CALL_FRAME:
        used = sizeof none->whole;
        break;
    }

    return offsetof(struct lab_queued_call, options) + used;
}

static void fill_options(struct lab_queued_call *queued, const struct cox_policy_options *options)
{
    struct cox_policy_options *values = &queued->options.values;

    *values = (struct cox_policy_options){0};
    if (!options)
        return;

    *values = *options;
    values->ratios = NULL;
    if (values->ratio_count > COX_DEVICES_MAX || !options->ratios)
        values->ratio_count = 0;
    for (uint32_t r = 0; r < values->ratio_count; r++)
        queued->options.ratios[r] = options->ratios[r];
}

static void fill_next(struct lab_queued_call *queued, const struct cox_chunk_request *offer,
                      const struct cox_chunk *grant, uint32_t devices)
{
    struct cox_progress *progress = queued->next.progress;

    queued->next.values = *offer;
    queued->next.values.progress = NULL;
    queued->next.grant = *grant;
    memset(progress, 0, sizeof queued->next.progress);
    if (offer->progress)
        memcpy(progress, offer->progress, devices * sizeof *progress);
}

void lab__queued_call_fill(struct lab_queued_call *queued, const struct lab_call *call)
{
    uint32_t devices = devices_of(call->view);

    queued->kind = call->kind;
    queued->status = call->status;
    if (call->view) {
        queued->view = *call->view;
        queued->view.device_count = devices;
        queued->view.devices = NULL;
        memcpy(queued->devices, call->view->devices, devices * sizeof *queued->devices);
    }

    switch (call->kind) {
    case LAB_CALL_INIT:
        fill_options(queued, call->options);
        break;
    case LAB_CALL_LOAD_PROFILE:
        memcpy(queued->profiles, call->profiles, devices * sizeof *queued->profiles);
        break;
    case LAB_CALL_SPLIT:
        memcpy(&queued->split, call->split, split_bytes(call->split));
        break;
    case LAB_CALL_NEXT:
        fill_next(queued, call->offer, call->grant, devices);
        break;
    case LAB_CALL_OBSERVE:
        queued->measurement = *call->measurement;
        break;
    case LAB_CALL_FRAME:
        queued->whole = *call->whole;
        break;
    }
}

static bool same_view(const struct cox_sched_view *a, const struct cox_sched_view *b)
{
    return a->rows == b->rows && a->row_alignment == b->row_alignment &&
           a->min_band_rows == b->min_band_rows && a->device_count == b->device_count &&
           a->in_flight == b->in_flight && a->pool == b->pool && a->shadow == b->shadow;
}

/* The view and the devices, if they have changed since the call before. */
static void write_view(struct lab_store *store, struct lab_session *session,
                       const struct lab_queued_call *call)
{
    struct lab_tape_last *last = &session->last[call->pass];
    const struct cox_sched_view *now = &call->view, *then = &last->view;
    const int64_t number = (int64_t)call->number;

    if (!last->known || !same_view(now, then))
        lab__store_put(store, LAB_SQL_VIEW, "iiiiiiiii", session->number, number,
                       (int64_t)now->rows, (int64_t)now->row_alignment, (int64_t)now->min_band_rows,
                       (int64_t)now->device_count, (int64_t)now->in_flight, (int64_t)now->pool,
                       (int64_t)now->shadow);

    for (uint32_t d = 0; d < now->device_count; d++) {
        const struct cox_sched_device *device = &call->devices[d];
        struct cox_sched_device *known = &last->devices[d];

        if (!last->known || d >= then->device_count || device->usable != known->usable ||
            device->hint != known->hint || device->single_device_ns != known->single_device_ns)
            lab__store_put(store, LAB_SQL_VIEW_DEVICE, "iiiiri", session->number, number,
                           (int64_t)d, (int64_t)device->usable, device->hint,
                           (int64_t)device->single_device_ns);
        *known = *device;
    }

    last->view = *now;
    last->known = true;
}

static void write_options(struct lab_store *store, const struct lab_session *session,
                          const struct lab_queued_call *call)
{
    const struct cox_policy_options *options = &call->options.values;
    const char *shares = NULL;
    char ratios[LAB_RATIOS_BYTES];

    if (options->ratio_count > 0) {
        lab__store_ratios_text(call->options.ratios, options->ratio_count, ratios, sizeof ratios);
        shares = ratios;
    }

    lab__store_put(store, LAB_SQL_OPTIONS, "itiiii", session->number, shares,
                   (int64_t)options->device, (int64_t)options->objective,
                   (int64_t)options->deadline_ns, (int64_t)options->chunk_rows);
}

static void write_profiles(struct lab_store *store, const struct lab_session *session,
                           const struct lab_queued_call *call)
{
    for (uint32_t d = 0; d < call->view.device_count; d++) {
        const struct cox_device_profile *profile = &call->profiles[d];

        lab__store_put(store, LAB_SQL_PROFILE, "iiirrrrrr", session->number, (int64_t)call->pass,
                       (int64_t)d, profile->frames, profile->fixed_ns, profile->launch_ns,
                       profile->ns_per_row, profile->single_device_ns, profile->share);
    }
}

/* "rows:first:since" of each device. */
static void progress_text(const struct lab_queued_call *call, char *text, size_t bytes)
{
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t d = 0; d < call->view.device_count && at < bytes; d++) {
        const struct cox_progress *progress = &call->next.progress[d];

        at += (size_t)snprintf(text + at, bytes - at, "%s%" PRIu32 ":%" PRIu32 ":%" PRIu64,
                               d ? " " : "", progress->rows, progress->first_row,
                               progress->since_ns);
    }
}

static void write_split(struct lab_store *store, const struct lab_session *session,
                        const struct lab_queued_call *call)
{
    char answer[LAB_ANSWER_BYTES];

    lab_tape_split_text(&call->split, call->status, call->view.device_count, answer, sizeof answer);
    lab__store_put(store, LAB_SQL_CALL_SPLIT, "iiiitii", session->number, (int64_t)call->number,
                   (int64_t)call->pass, (int64_t)call->view.frame, answer,
                   (int64_t)call->view.waited_ns, (int64_t)call->view.deadline_ns);
}

static void write_next(struct lab_store *store, const struct lab_session *session,
                       const struct lab_queued_call *call)
{
    const struct cox_chunk_request *offer = &call->next.values;
    char progress[COX_DEVICES_MAX * 48], answer[128];

    progress_text(call, progress, sizeof progress);
    lab_tape_grant_text(&call->next.grant, answer, sizeof answer);
    lab__store_put(store, LAB_SQL_CALL_NEXT, "iiiiiiiiittii", session->number,
                   (int64_t)call->number, (int64_t)call->pass, (int64_t)call->view.frame,
                   (int64_t)offer->device, (int64_t)offer->first_row, (int64_t)offer->rows,
                   (int64_t)offer->elapsed_ns, (int64_t)offer->last, progress, answer,
                   (int64_t)call->view.waited_ns, (int64_t)call->view.deadline_ns);
}

void lab__tape_write(struct lab_store *store, struct lab_session *session,
                     const struct lab_queued_call *call)
{
    const int64_t number = (int64_t)call->number, pass = (int64_t)call->pass;
    const struct cox_measurement *band = &call->measurement;
    const struct cox_frame_measurement *whole = &call->whole;
    char answer[32];

    if (call->kind != LAB_CALL_OBSERVE && call->kind != LAB_CALL_FRAME)
        write_view(store, session, call);

    switch (call->kind) {
    case LAB_CALL_INIT:
        if (call->pass == 0) /* the same for all passes */
            write_options(store, session, call);
        snprintf(answer, sizeof answer, "status=%d", (int)call->status);
        lab__store_put(store, LAB_SQL_CALL_INIT, "iiit", session->number, number, pass, answer);
        break;
    case LAB_CALL_LOAD_PROFILE:
        write_profiles(store, session, call);
        lab__store_put(store, LAB_SQL_CALL_LOAD_PROFILE, "iii", session->number, number, pass);
        break;
    case LAB_CALL_SPLIT:
        write_split(store, session, call);
        break;
    case LAB_CALL_NEXT:
        write_next(store, session, call);
        break;
    case LAB_CALL_OBSERVE:
        lab__store_put(store, LAB_SQL_CALL_OBSERVE, "iiiiiiiiiiii", session->number, number, pass,
                       (int64_t)band->frame, (int64_t)band->device, (int64_t)band->first_row,
                       (int64_t)band->rows, (int64_t)band->wall_ns, (int64_t)band->queue_ns,
                       (int64_t)band->kernel_ns, (int64_t)band->late_ns, (int64_t)band->flags);
        break;
    case LAB_CALL_FRAME:
        lab__store_put(store, LAB_SQL_CALL_FRAME, "iiiiiirii", session->number, number, pass,
                       (int64_t)whole->frame, (int64_t)whole->wall_ns, (int64_t)whole->period_ns,
                       whole->joules, (int64_t)whole->latency_ns, (int64_t)whole->deadline_ns);
        break;
    }
}
