/* How `adaptive` hands out the rows of the pool while the frame runs.
 *
 * In the fluid model the device that asks is free now, and every other one when its launch under way should be done;
 * all of them share the rows that are left. The device that asks gets a part of its share, so that the rest can be
 * balanced later. It declines if the others would be done before it could begin.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "split/clip.h"
#include "split/layout.h"
#include "split/strict_fp.h"

static const double LATE = 1.25;       /* predictions after which a band under way counts as late */
static const double HANDOUT_NS = 20e3; /* between a launch's end and the next one's start; no measurement contains it */
static const double CLEARED = 1.5; /* predictions of its band: a suspected device that is back by then is not slow */
static const double LAG = 0.5;     /* part of a device's mean lag that is allowed for */
static const double SOON = 0.015;  /* of its prediction: least time that a launch under way is taken to need still */
enum { GRID = 32 };                /* parts of the frame at which larger chunks end */

/* How much longer a device will need for its launch under way. A late launch is expected to take as long again. */
static double rest_ns(const struct cox__adaptive *state, const struct cox__frame_slot *slot, uint32_t d,
                      const struct cox_progress *progress)
{
    const struct cox__estimate *estimate = &state->devices[d].estimate;
    double ns = slot->expected_ns[d];
    if (!(ns > 0)) /* rows of a lost device, given to this one by the runtime */
        ns = cox__estimate_ns(estimate, true, progress->rows);
    if (!(slot->cleared >> d & 1))
        ns *= cox__max(1, estimate->suspected_change);
    double since = (double)progress->since_ns;
    if (since > LATE * ns)
        return since;
    return cox__max(ns - since, SOON * ns);
}

/* The devices as they are now; returns the sum of their speeds. */
static double fill_fluid(const struct cox__adaptive *state, const struct cox_sched_view *view,
                         const struct cox_offer *offer, const struct cox__frame_slot *slot,
                         struct cox__fluid_device *fluid)
{
    uint32_t others = slot->devices & ~slot->declined;
    double speed = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox_progress *progress = &offer->progress[d];
        const struct cox__adaptive_device *device = &state->devices[d];
        fluid[d].in = d == offer->device || (view->devices[d].usable && (others >> d & 1));
        if (!fluid[d].in)
            continue;
        double start = device->estimate.x[slot->launched >> d & 1 ? COX__LAUNCH : COX__FIRST] + HANDOUT_NS +
                       LAG * device->lag_ns;
        if (d != offer->device && progress->rows > 0)
            start += rest_ns(state, slot, d, progress);
        fluid[d].start_ns = start;
        fluid[d].speed = 1 / device->estimate.x[COX__PER_ROW];
        speed += fluid[d].speed;
    }
    return speed;
}

/* The rows from the front of the offer that hold about `wanted` of its `work`. Large chunks end on a grid of GRID parts
 * of the frame: boundaries that recur find their band objects made. */
static uint32_t rows_of_work(const struct cox__adaptive *state, const struct cox_sched_view *view,
                             const struct cox_offer *offer, double work, double wanted)
{
    uint64_t end = view->rows;
    if (wanted < work) {
        double before = cox__row_profile_work(&state->row_profile, view->rows, 0, offer->first_row);
        end = cox__row_profile_row(&state->row_profile, view->rows, before + wanted);
    }
    uint64_t grid = view->granule;
    uint64_t coarse = view->rows / GRID / grid * grid;
    if (coarse > grid && end >= offer->first_row + 2 * coarse)
        grid = coarse;
    end = (end + grid / 2) / grid * grid;
    uint32_t least = cox__layout_least_band(view);
    if (end < (uint64_t)offer->first_row + least)
        end = (uint64_t)offer->first_row + least;
    uint64_t limit = (uint64_t)offer->first_row + offer->rows;
    if (end + least > limit)
        end = limit;
    return (uint32_t)(end - offer->first_row);
}

void cox__adaptive_next(void *memory, const struct cox_sched_view *view, const struct cox_offer *offer,
                        struct cox_grant *out)
{
    struct cox__adaptive *state = memory;
    *out = (struct cox_grant){0};
    struct cox__frame_slot *slot = cox__adaptive_frame_slot(state, view->frame);
    if (!slot || offer->device >= view->device_count) {
        out->rows = offer->rows;
        return;
    }
    uint32_t self = offer->device;
    uint32_t bit = 1u << self;
    if ((double)offer->elapsed_ns < CLEARED * slot->expected_ns[self])
        slot->cleared |= bit;
    struct cox__fluid_device fluid[COX_DEVICES_MAX];
    double speed = fill_fluid(state, view, offer, slot, fluid);
    double work = cox__row_profile_work(&state->row_profile, view->rows, offer->first_row, offer->rows);
    const struct cox__fluid_device *own = &fluid[self];
    double share_ns = cox__fluid_level(fluid, view->device_count, work) - own->start_ns;
    double granule_ns = work / offer->rows * view->granule / own->speed; /* of a mean granule of the offer */
    bool takes = (slot->devices & bit) != 0 && share_ns > 0.5 * granule_ns;
    if (!takes && !offer->last) {
        slot->declined |= bit;
        return;
    }

    const struct cox__adaptive_device *device = &state->devices[self];
    double part = cox__fluid_part(share_ns, own->start_ns, slot->tail_reserve, own->speed / speed);
    double wanted = part * cox__max(share_ns, granule_ns) * own->speed;
    out->rows = rows_of_work(state, view, offer, work, wanted);
    double given = cox__row_profile_work(&state->row_profile, view->rows, offer->first_row, out->rows);
    slot->expected_ns[self] = own->start_ns - HANDOUT_NS - LAG * device->lag_ns + given / own->speed;
    out->predicted_ns = device->timed ? cox__layout_ns(slot->expected_ns[self]) : 0;
    slot->launched |= bit;
}
