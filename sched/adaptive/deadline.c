/* What `adaptive` does if frames have a deadline: it leaves out helpers where one device is enough,
 * and else hands out a part of the rows on demand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"
#include "split/clip.h"
#include "split/layout.h"
#include "split/strict_fp.h"

/* One device is enough if it takes at most this part of the time until the deadline. */
static const double ENOUGH = 0.75;
static const double SAFE = 4; /* standard deviations of its time that must fit in */
/* Only longer frames have rows on demand. A request costs 115 us on two busy cores. */
static const double LONG_NS = 1e7;
/* The part of a frame that is handed out on demand. With 0.3, 1.1 % of the frames of `film-2` are
 * late, with 0.4 1.0 %, with 0.5 0.9 %. */
static const double ON_DEMAND = 0.4;
static const double CHUNK_NS = 1e6; /* least time of a chunk */

enum {
    AGREED = 8,   /* frames in which the same device must be enough before it works alone */
    HELPED = 256, /* frames with helpers after the device alone has missed a deadline */
};

/* The device that is enough alone, as a bit; 0 = none. */
static uint32_t enough(const struct cox__adaptive *state, const struct cox_sched_view *view)
{
    /* With frames in flight the latency is several frame times. */
    const double most_ns = (double)view->deadline_ns * state->usual_ns / state->latency_ns;
    uint32_t best = 0;
    double best_ns = ENOUGH * most_ns;

    for (uint32_t d = 0; d < state->device_count; d++) {
        const double noise = cox__speed_noise(&state->devices[d].speed);
        const double ns = (1 + SAFE * noise) * cox__costs_least_ns(state, view, UINT32_C(1) << d);
        if (state->devices[d].usable && state->devices[d].measured && ns > 0 && ns < best_ns) {
            best = UINT32_C(1) << d;
            best_ns = ns;
        }
    }

    return best;
}

uint32_t cox__deadline_device(struct cox__adaptive *state, const struct cox_sched_view *view)
{
    uint32_t device = 0;

    if (view->deadline_ns > 0 && !state->energy && !state->latency && state->latency_ns > 0 &&
        view->frame >= state->helped_until)
        device = enough(state, view);

    if (device && device != state->enough_alone && ++state->agreed < AGREED)
        return 0;
    state->agreed = 0;
    return device;
}

void cox__deadline_learn(struct cox__adaptive *state, const struct cox_frame_measurement *frame,
                         double gain)
{
    const double latency_ns = (double)frame->latency_ns;

    if (state->latency_ns > 0)
        state->latency_ns += gain *
                             (cox__min(latency_ns, 3 * state->latency_ns) - state->latency_ns);
    else
        state->latency_ns = latency_ns;

    if (state->enough_alone && frame->deadline_ns > 0 && frame->latency_ns > frame->deadline_ns)
        state->helped_until = frame->frame + HELPED;
}

bool cox__deadline_on_demand(const struct cox__adaptive *state, const struct cox_sched_view *view,
                             double frame_ns, const uint32_t *rows, struct cox_split *out)
{
    uint32_t cut[COX_DEVICES_MAX], sharing = 0;
    struct cox_sched_view first = *view;

    first.rows = 0;
    for (uint32_t d = 0; d < view->device_count; d++) {
        cut[d] = (uint32_t)((1 - ON_DEMAND) * rows[d]) / view->row_alignment * view->row_alignment;
        if (cut[d] < cox__layout_least_band(view))
            cut[d] = 0;
        first.rows += cut[d];
        sharing += rows[d] > 0;
    }

    if (!view->pool || view->deadline_ns == 0 || state->energy || state->rows_stay || sharing < 2 ||
        frame_ns < LONG_NS || first.rows == 0)
        return false;

    cox__layout_bands(&first, cut, out);
    out->pool_first_row = first.rows;
    out->pool_rows = view->rows - first.rows;
    return true;
}

/* Rows per nanosecond. */
static double rate_of(const struct cox__speed *speed)
{
    return 1 / cox__layout_sane(cox__speed_level(speed));
}

void cox__deadline_assign(void *memory, const struct cox_sched_view *view,
                          const struct cox_chunk_request *request, struct cox_chunk *out)
{
    struct cox__adaptive *state = memory;
    const struct cox__adaptive_slot *slot = cox__adaptive_frame_slot(state, view->frame);
    const bool trial = slot && slot->trial;
    const struct cox__speed *speed = cox__adaptive_speed(&state->devices[request->device], trial);
    const double own = rate_of(speed);
    double others = 0;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (d != request->device && view->devices[d].usable &&
            (!slot || slot->plan.devices >> d & 1))
            others += rate_of(cox__adaptive_speed(&state->devices[d], trial));
    }

    /* Half of the device's share of what is left. */
    const double rows = cox__max(request->rows * own / (own + others) / 2, CHUNK_NS * own);
    out->rows = cox__layout_chunk(view, request, (uint32_t)cox__min(rows, request->rows));

    /* The others may finish all that is left before this device finishes a chunk. */
    const double ns = cox__speed_ns(speed, 1, out->rows);
    if (!request->last && ns * others > request->rows)
        out->rows = 0;
    else
        out->predicted_ns = cox__layout_ns(ns);
}
