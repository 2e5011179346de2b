/* How `adaptive` hands out the rows that were kept back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive.h"
#include "layout.h"
#include "clip.h"
#include "strict_fp.h"

#include <math.h>

static const double LATE = 1.25;       /* times its prediction: something has happened to that band */
enum { GRID = 32 };                    /* parts of the frame at which larger chunks end */
static const double HANDOUT_NS = 20e3; /* from a launch's end to the next one's start: in no measurement */
static const double CLEARED = 1.5; /* a device under suspicion that is back within so many times its time is not slow */
static const double LAG = 0.5;     /* of the mean that its launches are late by, is allowed for */
static const double SOON = 0.015;  /* of its time, is left of a launch that should be done by now */
static const double BACKUP = 3.0;  /* a copy may take so many times what the late band has taken */

uint32_t cox__adaptive_least(const struct cox_sched_view *view)
{
    uint64_t least = view->min_band_rows > view->granule ? view->min_band_rows : view->granule;
    least = (least + view->granule - 1) / view->granule * view->granule;
    return least > view->rows ? view->rows : (uint32_t)least;
}

/* How long a device will be at what it has. */
static double rest_ns(const struct cox__adaptive *state, const struct cox__slot *slot, uint32_t d,
                      const struct cox_progress *progress)
{
    const struct cox__estimate *estimate = &state->devices[d].estimate;
    double ns = slot->expected_ns[d];
    if (!(ns > 0)) /* somebody else's rows, given to it by the runtime */
        ns = cox__estimate_ns(estimate, true, progress->rows);
    if (!(slot->cleared >> d & 1))
        ns *= cox__most(1, estimate->suspect);
    double since = (double)progress->since_ns;
    if (since > LATE * ns)
        return since;
    return cox__most(ns - since, SOON * ns);
}

void cox__adaptive_next(void *memory, const struct cox_sched_view *view, const struct cox_offer *offer,
                        struct cox_grant *out)
{
    struct cox__adaptive *state = memory;
    *out = (struct cox_grant){0};
    struct cox__slot *slot = cox__adaptive_slot(state, view->frame);
    if (!slot || offer->device >= view->device_count) {
        out->rows = offer->rows;
        return;
    }
    uint32_t self = offer->device;
    uint32_t bit = 1u << self;
    if ((double)offer->elapsed_ns < CLEARED * slot->expected_ns[self])
        slot->cleared |= bit;
    uint32_t may = offer->backup ? UINT32_MAX : slot->devices;
    uint32_t others = may & ~slot->declined & ~(offer->backup ? 1u << offer->late : 0);
    struct cox__runner runners[COX_DEVICES_MAX];
    double speed = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const struct cox_progress *progress = &offer->progress[d];
        const struct cox__adaptive_device *device = &state->devices[d];
        runners[d].in = d == self || (view->devices[d].usable && (others >> d & 1));
        if (!runners[d].in)
            continue;
        double start = device->estimate.x[slot->launched >> d & 1 ? COX__LAUNCH : COX__FIRST] + HANDOUT_NS +
                       LAG * device->lag_ns;
        if (d != self && progress->rows > 0)
            start += rest_ns(state, slot, d, progress);
        runners[d].start_ns = start;
        runners[d].speed = 1 / device->estimate.x[COX__PER_ROW];
        speed += runners[d].speed;
    }
    double work = cox__profile_work(&state->profile, view->rows, offer->first_row, offer->rows);
    double level = cox__tail_level(runners, view->device_count, work);
    const struct cox__runner *own = &runners[self];
    double share_ns = level - own->start_ns;
    double unit = work / offer->rows * view->granule / own->speed; /* of one granule, about */
    bool takes = (may & bit) != 0 && share_ns > 0.5 * unit;
    if (takes && offer->backup && own->start_ns + share_ns > BACKUP * (double)offer->progress[offer->late].since_ns)
        takes = false;
    if (!takes && !offer->last) {
        slot->declined |= bit;
        return;
    }

    const struct cox__adaptive_device *device = &state->devices[self];
    double part = offer->backup ? 1 : cox__tail_part(share_ns, own->start_ns, slot->early, own->speed / speed);
    double wanted = part * cox__most(share_ns, unit) * own->speed;
    uint64_t end = view->rows;
    if (wanted < work) {
        double before = cox__profile_work(&state->profile, view->rows, 0, offer->first_row);
        end = cox__profile_row(&state->profile, view->rows, before + wanted);
    }
    uint64_t grid = view->granule;
    uint64_t coarse = view->rows / GRID / grid * grid; /* boundaries that recur find their band objects made */
    if (coarse > grid && end >= offer->first_row + 2 * coarse)
        grid = coarse;
    end = (end + grid / 2) / grid * grid;
    uint32_t least = cox__adaptive_least(view);
    if (end < (uint64_t)offer->first_row + least)
        end = (uint64_t)offer->first_row + least;
    uint64_t limit = (uint64_t)offer->first_row + offer->rows;
    if (end + least > limit)
        end = limit;
    out->rows = (uint32_t)(end - offer->first_row);
    double given = cox__profile_work(&state->profile, view->rows, offer->first_row, out->rows);
    bool timed = device->timed;
    slot->expected_ns[self] = own->start_ns - HANDOUT_NS - LAG * device->lag_ns + given / own->speed;
    out->predicted_ns = timed ? cox__layout_ns(slot->expected_ns[self]) : 0;
    slot->launched |= bit;
}
