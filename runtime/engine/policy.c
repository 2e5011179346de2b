/* The engine's side of the policy: asks for splits and grants, and reports measurements. Every
 * answer of a policy is checked before it is used.
 *
 * Owns struct cox__sharing, struct cox__energy and struct cox__frame_pool.
 * SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"
#include "binding.h"
#include "device.h"
#include "engine.h"
#include "frame.h"
#include "base/bounds.h"
#include "engine/failure/residency.h"
#include "split/layout.h"
#include "split/together.h"

#include <stdio.h>
#include <string.h>

/* How long the device alone needs for the whole frame, over all passes that share the split.
 * 0 = one of them was not measured. */
static uint64_t single_device_ns(const struct cox__device *device, uint32_t lead, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t p = lead; p < lead + count; p++) {
        if (!device->passes[p].single_device_ns)
            return 0;
        sum += device->passes[p].single_device_ns;
    }

    return sum;
}

/* A first guess at a device's speed, before anything was measured. */
static double speed_hint(const struct cox__device *device)
{
    const double per_unit = device->info.type == COX_DEVICE_CPU ? 1 : 4;
    return (double)device->info.compute_units * per_unit;
}

/* Time to bring one row of the buffers that stay from one device to another. */
static double move_ns(const struct cox_session *session, const struct cox__pass *pass)
{
    const uint32_t stays = session->pipeline.stays;
    double bytes = 0;

    for (uint32_t i = 0; i < pass->binding_count; i++)
        if (stays >> i & 1 && cox__by_rows(&pass->bindings[i]))
            bytes += (double)pass->bindings[i].pitch_bytes / pass->bindings[i].row_divisor;

    return bytes * cox__residency_byte_ns(&session->residency);
}

void cox__policy_view(const struct cox_session *session, uint32_t number, uint64_t frame,
                      struct cox_sched_device *devices, struct cox_sched_view *view)
{
    const struct cox__pass *pass = &session->pipeline.passes[number];
    const struct cox__sharing *sharing = &session->sharing[number];
    const uint32_t doing = cox__device_doing(session, number);

    for (uint32_t d = 0; d < session->devices.count; d++) {
        const struct cox__device *device = &session->devices.list[d];

        devices[d].usable = (doing >> d & 1) != 0;
        devices[d].hint = speed_hint(device);
        devices[d].single_device_ns = single_device_ns(device, number, sharing->count);
    }

    *view = (struct cox_sched_view){.frame = frame,
                                    .rows = pass->rows,
                                    .row_alignment = pass->row_alignment,
                                    .min_band_rows = session->settings.min_band_rows,
                                    .device_count = session->devices.count,
                                    .devices = devices,
                                    .in_flight = session->settings.in_flight,
                                    .move_ns = move_ns(session, pass),
                                    .pool = sharing->policy.assign && sharing->count == 1,
                                    .shadow = sharing->count == 1 && !pass->in_place &&
                                              atomic_load(&session->spare.state) !=
                                                  COX__SPARE_UNAVAILABLE};
}

static void view_of_frame(const struct cox_session *session, const struct cox__frame *frame,
                          uint64_t now_ns, struct cox_sched_device *devices,
                          struct cox_sched_view *view)
{
    cox__policy_view(session, frame->pass, frame->index, devices, view);
    view->deadline_ns = frame->deadline_ns;
    view->waited_ns = cox__elapsed_ns(frame->submit_ns, now_ns);
}

/* Log the first occurrence, then the 2nd, 4th, 8th and so on. An error in every frame must not fill
 * the disk. */
static bool worth_a_line(uint64_t *count)
{
    uint64_t n = ++*count;
    return (n & (n - 1)) == 0;
}

/* ---- splits ---- */

/* The split if the policy's answer is refused: all devices count as equally fast. */
static void split_evenly(const struct cox_sched_view *view, struct cox_split *split)
{
    double equal[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX];

    for (uint32_t d = 0; d < view->device_count; d++)
        equal[d] = 1;

    memset(split, 0, sizeof *split);
    cox__layout_balance(view, equal, rows);
    cox__layout_bands(view, rows, split);
}

/* Print the bands as far as there is room, each as "first row+rows on device". The split was
 * refused, so any of its values may be wrong. */
static void print_bands(const struct cox_split *split, char *text, size_t bytes)
{
    size_t length = 0;

    text[0] = '\0';

    for (uint32_t b = 0; b < split->band_count && b < COX_BANDS_MAX && length < bytes; b++)
        length += (size_t)snprintf(text + length, bytes - length, "%s%u+%u on %u", b ? ", " : "",
                                   split->bands[b].first_row, split->bands[b].rows,
                                   split->bands[b].device);

    if (split->pool_rows && length < bytes)
        length += (size_t)snprintf(text + length, bytes - length, "%spool %u+%u",
                                   length ? ", " : "", split->pool_first_row, split->pool_rows);
    if (split->shadow.rows && length < bytes)
        length += (size_t)snprintf(text + length, bytes - length, ", shadow %u+%u on %u",
                                   split->shadow.first_row, split->shadow.rows,
                                   split->shadow.device);

    if (length >= bytes)
        memcpy(text + bytes - 4, "...", 4);
}

static void log_refusal(const struct cox__log *log, struct cox__sharing *sharing, uint64_t frame,
                        const struct cox_split *split, const char *why)
{
    char bands[640];
    if (!worth_a_line(&sharing->refused_splits))
        return;

    print_bands(split, bands, sizeof bands);
    cox__log(log, COX_LOG_WARN,
             "policy %s, frame %llu: split refused (%llu so far): %s; the split: %s",
             sharing->policy.name, (unsigned long long)frame,
             (unsigned long long)sharing->refused_splits, why, bands);
}

/* If a device's share is one band, the policy's prediction for the device is the band's. */
static void note_predictions(struct cox__frame *frame, const struct cox_split *split)
{
    for (uint32_t b = frame->first_band; b < frame->band_count; b++) {
        uint32_t device = frame->reports[b].device;
        if (frame->at_work[device] == 1)
            frame->reports[b].predicted_ns = split->device_ns[device];
    }
}

/* The band of the pass before that begins at `first_row`. */
static const struct cox_band_report *band_before(const struct cox__frame *frame, uint32_t first_row)
{
    return &frame->reports[cox__frame_band_from(frame, frame->pass - 1, first_row)];
}

/* Give each device the rows that it had in the pass before. The best device takes over the rows of
 * a device that is gone. */
static void split_as_before(struct cox_session *session, struct cox__frame *frame)
{
    const uint32_t rows = cox__frame_pass(frame)->rows;
    const uint32_t doing = cox__device_doing(session, frame->pass);
    const uint32_t best = cox__device_best(session, frame->pass, 0);

    frame->passes[frame->pass].reason = COX_REASON_SHARED;

    for (uint32_t first = 0, end = 0; first < rows; first = end) {
        const uint32_t had = band_before(frame, first)->device;
        const uint32_t device = doing >> had & 1 ? had : best;
        do
            end += band_before(frame, end)->rows;

        while (end < rows && band_before(frame, end)->device == had);
        if (!cox__frame_add(&session->devices, frame, device, first, end - first, frame->attempt))
            frame->status = COX_E_DEVICE_MEMORY;
    }
}

/* Ask the policy for a split. If its answer is refused, use its last good split if that still fits,
 * or split evenly. */
static void ask_for_split(const struct cox__log *log, struct cox__sharing *sharing,
                          const struct cox_sched_view *view, struct cox_split *split)
{
    char why[160] = "the policy returned an error";

    memset(split, 0, sizeof *split);
    if (sharing->together)
        cox__together_begin(sharing->together, view->frame);

    if (sharing->policy.split(sharing->state, view, split) == COX_OK &&
        cox_split_check(split, view, why, sizeof why) == COX_OK) {
        sharing->last_split = *split;
        sharing->has_last_split = true;
        return;
    }

    log_refusal(log, sharing, view->frame, split, why);
    if (sharing->has_last_split && cox_split_check(&sharing->last_split, view, NULL, 0) == COX_OK)
        *split = sharing->last_split;
    else
        split_evenly(view, split);

    split->shadow.rows = 0;
}

void cox__policy_split(struct cox_session *session, struct cox__frame *frame)
{
    struct cox__sharing *sharing = &session->sharing[frame->pass];

    if (sharing->lead != frame->pass) {
        split_as_before(session, frame);
        return;
    }

    struct cox_pass_report *report = &frame->passes[frame->pass];
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    struct cox_split split;

    view_of_frame(session, frame, report->start_ns, devices, &view);
    ask_for_split(&session->runtime->log, sharing, &view, &split);
    report->reason = split.reason;
    report->predicted_ns = split.predicted_ns;
    report->rejected_ns = split.rejected_ns;

    for (uint32_t b = 0; b < split.band_count; b++)
        if (!cox__frame_add(&session->devices, frame, split.bands[b].device,
                            split.bands[b].first_row, split.bands[b].rows, frame->attempt))
            frame->status = COX_E_DEVICE_MEMORY;

    if (sharing->count == 1)
        note_predictions(frame, &split);

    frame->pool.first_row = split.pool_first_row;
    report->pool_rows = frame->pool.left = split.pool_rows;
    frame->shadow = split.shadow;
}

/* ---- the pool ---- */

static bool runs_shadow(const struct cox__shadow *shadow, uint32_t device)
{
    return shadow->busy && shadow->device == device;
}

/* A device that does a shadow run is left out: it would begin the frame's rows only afterwards. */
uint32_t cox__policy_reserves(const struct cox_session *session, const struct cox__frame *frame)
{
    const uint32_t doing = cox__device_doing(session, frame->pass);
    uint32_t devices = 0;

    for (uint32_t d = 0; d < session->devices.count; d++)
        if (doing >> d & 1 && !(frame->pool.declined >> d & 1) && !runs_shadow(&session->shadow, d))
            devices |= UINT32_C(1) << d;

    return devices;
}

/* How long a device has worked on the frame's bands, the oldest of which was submitted at
 * `submit_ns`. Time that it spent on bands of earlier frames does not count. */
static uint64_t at_work_ns(const struct cox__frame *frame, const struct cox__device *device,
                           uint64_t submit_ns, uint64_t now)
{
    for (uint32_t i = 0; device->queue && i < device->queue->slot_count; i++) {
        const struct cox__queue_slot *slot = &device->queue->slots[i];
        if (slot->state != COX__SLOT_FREE && slot->job.frame != frame &&
            slot->submit_ns <= submit_ns)
            return 0;
    }

    return cox__elapsed_ns(cox__max_u64(submit_ns, device->last_end_ns), now);
}

static void fill_progress(const struct cox__devices *devices, const struct cox__frame *frame,
                          uint64_t now, struct cox_progress *progress)
{
    uint64_t submit_ns[COX_DEVICES_MAX];

    memset(progress, 0, devices->count * sizeof *progress);
    memset(submit_ns, 0xff, sizeof submit_ns);

    for (uint32_t b = frame->first_band; b < frame->band_count; b++) {
        const struct cox_band_report *report = &frame->reports[b];
        struct cox_progress *of = &progress[report->device];
        const enum cox__band_state state = frame->bands[b].state;
        bool running = state == COX__BAND_QUEUED || state == COX__BAND_RUNNING;

        if ((!running && state != COX__BAND_PLANNED) || cox__band_is_transfer(&frame->bands[b]))
            continue;

        if (of->rows == 0 || (running && report->submit_ns < submit_ns[report->device]))
            of->first_row = report->first_row;
        if (running && report->submit_ns < submit_ns[report->device])
            submit_ns[report->device] = report->submit_ns;
        of->rows += report->rows;
    }

    for (uint32_t d = 0; d < devices->count; d++)
        if (submit_ns[d] != UINT64_MAX)
            progress[d].since_ns = at_work_ns(frame, &devices->list[d], submit_ns[d], now);
}

/* The fewest rows of a chunk. Smaller chunks could fill the frame's table of bands. */
static uint32_t least_grant(const struct cox__frame *frame)
{
    const uint32_t row_alignment = cox__frame_pass(frame)->row_alignment;
    uint32_t count = 0;

    for (uint32_t b = frame->first_band; b < frame->band_count; b++)
        count += !cox__band_is_transfer(&frame->bands[b]);

    const uint32_t room = count < COX_BANDS_MAX ? COX_BANDS_MAX - count : 1;
    uint64_t least = ((uint64_t)frame->pool.left + room - 1) / room;
    least = (least + row_alignment - 1) / row_alignment * row_alignment;

    return (uint32_t)cox__min_u64(least, frame->pool.left);
}

/* Ask the policy how many rows of the pool the device gets. A wrong answer becomes "all of them";
 * a grant that is too small is raised to the least one. */
static struct cox_chunk ask_for_grant(struct cox_session *session, const struct cox__frame *frame,
                                      uint32_t device, bool last)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_progress progress[COX_DEVICES_MAX];
    struct cox_sched_view view;
    struct cox_chunk grant = {0};
    struct cox__sharing *sharing = &session->sharing[frame->pass];
    const uint64_t now = cox__engine_now(session->runtime);
    const uint64_t start_ns = frame->passes[frame->pass].start_ns;

    fill_progress(&session->devices, frame, now, progress);

    const struct cox_chunk_request offer = {.device = device,
                                            .first_row = frame->pool.first_row,
                                            .rows = frame->pool.left,
                                            .elapsed_ns = cox__elapsed_ns(start_ns, now),
                                            .last = last,
                                            .progress = progress};
    view_of_frame(session, frame, now, devices, &view);
    sharing->policy.assign(sharing->state, &view, &offer, &grant);

    const bool whole = grant.rows == frame->pool.left || grant.rows % view.row_alignment == 0;
    if (grant.rows > frame->pool.left || !whole || (grant.rows == 0 && last)) {
        if (worth_a_line(&sharing->refused_grants))
            cox__log(
                &session->runtime->log, COX_LOG_WARN,
                "policy %s, frame %llu: of the rows %u+%u offered to device %u it grants %u, which "
                "is invalid (%llu so far); the device gets all of them",
                sharing->policy.name, (unsigned long long)frame->index, frame->pool.first_row,
                frame->pool.left, device, grant.rows, (unsigned long long)sharing->refused_grants);

        return (struct cox_chunk){.rows = frame->pool.left};
    }

    if (grant.rows && grant.rows < least_grant(frame))
        return (struct cox_chunk){.rows = least_grant(frame)};

    return grant;
}

static void offer_pool(struct cox_session *session, struct cox__frame *frame, uint32_t device,
                       bool last)
{
    const struct cox_chunk grant = ask_for_grant(session, frame, device, last);

    if (!grant.rows) {
        frame->pool.declined |= UINT32_C(1) << device;
        return;
    }

    const bool first = !(frame->pool.served >> device & 1);
    const uint32_t before = frame->band_count;
    if (!cox__frame_add(&session->devices, frame, device, frame->pool.first_row, grant.rows,
                        frame->attempt))
        frame->status = COX_E_DEVICE_MEMORY;

    for (uint32_t b = before; b < frame->band_count; b++) {
        frame->bands[b].kind = COX__BAND_CHUNK;
        frame->reports[b].on_demand = true;
        frame->reports[b].predicted_ns = 0;
    }

    if (first && frame->band_count > before)
        frame->bands[before].kind = COX__BAND_ROWS;
    if (frame->band_count - before == 1) /* the prediction is for the whole grant */
        frame->reports[before].predicted_ns = grant.predicted_ns;

    frame->pool.first_row += grant.rows;
    frame->pool.left -= grant.rows;
}

bool cox__policy_offer(struct cox_session *session, struct cox__frame *frame, uint32_t reserved,
                       bool blocking)
{
    bool progress = false;

    if (frame->status) /* the frame has failed: start none of its remaining rows */
        frame->pool.left = 0;

    for (uint32_t d = 0; d < session->devices.count && frame->pool.left; d++) {
        const uint32_t bit = UINT32_C(1) << d;
        const uint32_t willing = cox__policy_reserves(session, frame);

        if (!(willing & bit) || frame->at_work[d] || reserved & bit ||
            session->devices.list[d].blocks_in_submit != blocking ||
            (frame->shadow.rows && frame->shadow.device == d)) /* the shadow run comes first */
            continue;

        offer_pool(session, frame, d, !frame->unfinished && willing == bit);
        progress = true;
    }

    if (frame->pool.left && !frame->unfinished && !cox__policy_reserves(session, frame)) {
        /* The device that was at work when the others declined is lost. */
        uint32_t best = cox__device_best(session, frame->pass, 0);
        if (best == session->devices.count && !session->no_device)
            return progress; /* a device may come back */

        if (best == session->devices.count)
            frame->status = COX_E_DEVICE_LOST;
        else
            offer_pool(session, frame, best, true);

        return true;
    }

    return progress;
}

/* ---- measurements ---- */

static uint32_t measured_flags(const struct cox__frame *frame, uint32_t band)
{
    uint32_t flags = 0;

    if (frame->bands[band].kind != COX__BAND_ROWS)
        flags |= COX_MEASURED_CHUNK;
    if (frame->kind == COX__FRAME_SHADOW)
        flags |= COX_MEASURED_SHADOW;
    if (frame->bands[band].state != COX__BAND_DONE)
        flags |= COX_MEASURED_UNFINISHED;

    return flags;
}

/* About how long it takes to move the rows of a band between its device and those on which the
 * frame's buffers lie. */
static uint64_t moved_ns(const struct cox_session *session, const struct cox__frame *frame,
                         uint32_t band)
{
    const struct cox_band_report *report = &frame->reports[band];
    const struct cox__pass *pass = &session->pipeline.passes[frame->bands[band].pass];
    double bytes = 0;

    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *of = &pass->bindings[i];
        if (!(frame->held.homed >> i & 1) || frame->held.home[i] == report->device ||
            !cox__is_shared(of) || !cox__by_rows(of))
            continue;

        const int times = (of->access != COX__WRITE) + (of->access != COX__READ);
        bytes += times * (double)report->rows / of->row_divisor * (double)of->pitch_bytes;
    }

    /* A byte that comes home goes over one link, not over two. */
    return (uint64_t)(bytes * cox__residency_byte_ns(&session->residency) / 2);
}

void cox__policy_observe(const struct cox_session *session, const struct cox__frame *frame,
                         uint32_t band)
{
    const struct cox__sharing *of_passes = session->sharing;
    const struct cox_band_report *report = &frame->reports[band];
    const uint32_t pass = frame->bands[band].pass;
    const uint32_t lead = of_passes[pass].lead;
    const struct cox__sharing *sharing = &of_passes[lead];

    if (frame->kind == COX__FRAME_WARMUP || !sharing->policy.observe)
        return;

    const uint64_t start_ns = frame->passes[pass].start_ns;
    /* A band of the split has waited since the pass began, also while its device had no free
     * slot. */
    const uint64_t begin_ns = report->end_ns - report->wall_ns;
    const bool of_split = frame->bands[band].kind == COX__BAND_ROWS && begin_ns > start_ns;
    const struct cox_measurement measurement = {
        .frame = frame->index,
        .device = report->device,
        .first_row = report->first_row,
        .rows = report->rows,
        .wall_ns = report->wall_ns + moved_ns(session, frame, band),
        .queue_ns = of_split ? begin_ns - start_ns : report->queue_ns,
        .kernel_ns = report->kernel_ns,
        .late_ns = report->noticed_ns - report->end_ns,
        .flags = measured_flags(frame, band)};
    if (sharing->together)
        cox__together_add(sharing->together, pass - lead, &measurement);
    if (!sharing->together || measurement.flags & COX_MEASURED_UNFINISHED)
        sharing->policy.observe(sharing->state, &measurement);
}

/* The last pass that shares the split is over. */
static void observe_together(const struct cox__frame *frame, uint32_t device_count,
                             const struct cox__sharing *sharing)
{
    struct cox_measurement measurement;
    for (uint32_t d = 0; d < device_count && sharing->policy.observe; d++)
        if (cox__together_sum(sharing->together, sharing->count, frame->index, d, &measurement))
            sharing->policy.observe(sharing->state, &measurement);
}

static double read_meter(const struct cox__energy *energy)
{
    return energy->meter ? energy->meter(energy->user) : -1;
}

void cox__policy_begin_period(struct cox__energy *energy)
{
    energy->joules = read_meter(energy);
}

/* Energy since the last reading of the meter; negative = unknown. */
static double used_joules(struct cox__energy *energy)
{
    const double before = energy->joules;
    const double joules = read_meter(energy);

    energy->joules = joules;
    if (before >= 0 && joules >= before)
        return joules - before;

    return -1;
}

void cox__policy_observe_pass(struct cox_session *session, struct cox__frame *frame)
{
    const uint32_t lead = session->sharing[frame->pass].lead;
    struct cox__sharing *sharing = &session->sharing[lead];
    struct cox_pass_report *report = &frame->passes[frame->pass];
    const uint64_t start_ns = frame->passes[lead].start_ns;
    const uint64_t before = sharing->last_end_ns;
    const uint64_t begin = cox__max_u64(start_ns, before);
    const bool last = cox__frame_is_complete(frame);

    report->end_ns = cox__max_u64(frame->end_ns, report->start_ns);
    if (last)
        frame->joules = used_joules(&session->energy);
    if (frame->pass + 1 < lead + sharing->count && !last) /* the policy sees one pass */
        return;

    if (report->end_ns > before)
        sharing->last_end_ns = report->end_ns;
    if (frame->status)
        return;

    if (sharing->together)
        observe_together(frame, session->devices.count, sharing);
    if (!sharing->policy.observe_frame)
        return;

    const bool one_share = session->pipeline.pass_count == sharing->count;
    const uint64_t known_ns = last ? frame->delivered_ns : report->end_ns;
    const struct cox_frame_measurement measurement = {
        .frame = frame->index,
        .wall_ns = report->end_ns - start_ns,
        .period_ns = cox__elapsed_ns(begin, report->end_ns),
        .joules = one_share ? frame->joules : -1, /* energy is measured per frame, not per pass */
        .latency_ns = cox__elapsed_ns(frame->submit_ns, known_ns),
        .deadline_ns = frame->deadline_ns};
    sharing->policy.observe_frame(sharing->state, &measurement);
}

/* ---- device profiles ---- */

bool cox__policy_load_profile(struct cox_session *session, uint32_t pass,
                              const struct cox_device_profile *profiles)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    const struct cox__sharing *sharing = &session->sharing[pass];

    if (!sharing->policy.load_profile)
        return false;

    cox__policy_view(session, pass, 0, devices, &view);
    sharing->policy.load_profile(sharing->state, &view, profiles);

    return true;
}

bool cox__policy_save_profile(struct cox_session *session, uint32_t pass,
                              struct cox_device_profile *profiles)
{
    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    const struct cox__sharing *sharing = &session->sharing[pass];

    if (!sharing->policy.save_profile)
        return false;

    /* Other threads may submit frames meanwhile. */
    pthread_mutex_lock(&session->lock);
    const uint64_t next_index = session->counts.next_index;
    pthread_mutex_unlock(&session->lock);

    memset(profiles, 0, session->devices.count * sizeof *profiles);
    cox__watchdog_lock(session->runtime->watchdog); /* a probation may still end */
    cox__policy_view(session, pass, next_index, devices, &view);
    sharing->policy.save_profile(sharing->state, &view, profiles);
    cox__watchdog_unlock(session->runtime->watchdog);

    return true;
}
