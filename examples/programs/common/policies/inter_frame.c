/* `inter-frame`: whole frames to the devices in turn. Each frame goes to the device that should
 * finish it first, given its queue. The policy needs several frames in flight; with one, the
 * fastest device gets nearly all frames. A device without frames gets one after PROBE_FRAMES, to be
 * measured again. A frame costs one launch and takes as long as on one device; a stream of frames
 * is as fast as all devices together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/registry.h"
#include "common/policies/layout.h"
#include "common/strict_fp.h"

enum {
    IN_FLIGHT = 16,
    PROBE_FRAMES = 256, /* frames until a device that gets none is measured again */
};

static const double GAIN = 0.3; /* of a measurement in a device's time */

struct state {
    uint32_t device_count;
    uint32_t rows;                    /* of the last frame */
    uint64_t over;                    /* frames before this one have been observed */
    uint32_t device_of[IN_FLIGHT];    /* the device of a frame in flight */
    uint32_t idle[COX_DEVICES_MAX];   /* frames since the device had one */
    double frame_ns[COX_DEVICES_MAX]; /* 0 = never measured */
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct state);
}

static cox_status init(void *memory, const struct cox_sched_view *view,
                       const struct cox_policy_options *options)
{
    (void)options;
    ((struct state *)memory)->device_count = view->device_count;
    return COX_OK;
}

static void observe(void *memory, const struct cox_measurement *measurement)
{
    struct state *state = memory;
    if (measurement->device >= state->device_count || measurement->wall_ns == 0 ||
        measurement->rows == 0 ||
        measurement->flags & (COX_MEASURED_SHADOW | COX_MEASURED_UNFINISHED))
        return;

    /* A band may have been cut, so scale its time to the frame. */
    const double frame_ns = (double)measurement->wall_ns / measurement->rows * state->rows;
    double *ns = &state->frame_ns[measurement->device];
    const double gain = *ns > 0 ? GAIN : 1;
    *ns += gain * (frame_ns - *ns);
}

static void observe_frame(void *memory, const struct cox_frame_measurement *measurement)
{
    ((struct state *)memory)->over = measurement->frame + 1;
}

/* The oldest frame that may still be queued; earlier ones were never observed. */
static uint64_t oldest_queued(const struct state *state, const struct cox_sched_view *view)
{
    uint64_t first = state->over;

    if (view->frame >= IN_FLIGHT && first < view->frame - IN_FLIGHT + 1)
        first = view->frame - IN_FLIGHT + 1;
    return first;
}

/* What one unit of guessed time is worth in measured time. */
static double scale_of_guesses(const struct state *state, const struct cox_sched_view *view,
                               const double *guess)
{
    double measured_ns = 0, guessed = 0;

    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable && state->frame_ns[d] > 0) {
            measured_ns += state->frame_ns[d];
            guessed += guess[d];
        }

    if (guessed > 0)
        return measured_ns / guessed;
    return view->rows;
}

static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    double guess[COX_DEVICES_MAX] = {0}, best_ns = 0;
    const bool timed = layout_guess(view, guess);
    const uint64_t first = oldest_queued(state, view);
    const double scale = scale_of_guesses(state, view, guess);
    uint32_t best = view->device_count;

    state->rows = view->rows;
    for (uint32_t d = 0; d < view->device_count; d++) {
        const bool due = ++state->idle[d] > PROBE_FRAMES;
        double frame_ns = state->frame_ns[d];
        if (!(frame_ns > 0))
            frame_ns = guess[d] * scale;

        double ns = frame_ns;
        for (uint64_t f = first; f < view->frame; f++)
            if (state->device_of[f % IN_FLIGHT] == d)
                ns += frame_ns;
        if (due)
            ns = 0;

        if (view->devices[d].usable && (best == view->device_count || ns < best_ns)) {
            best = d;
            best_ns = ns;
        }
    }
    if (best == view->device_count)
        return COX_E_NO_DEVICE;

    state->idle[best] = 0;
    state->device_of[view->frame % IN_FLIGHT] = best;
    out->bands[out->band_count++] = (struct cox_band){.device = best, .rows = view->rows};

    out->reason = COX_REASON_FIRST;
    if (state->frame_ns[best] > 0)
        out->reason = COX_REASON_BALANCED;
    if (timed || state->frame_ns[best] > 0)
        out->predicted_ns = layout_ns(best_ns);

    return COX_OK;
}

const struct cox_policy policy_inter_frame = {.name = "inter-frame",
                                              .state_bytes = state_bytes,
                                              .init = init,
                                              .split = split,
                                              .observe = observe,
                                              .observe_frame = observe_frame};
