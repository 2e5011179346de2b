/* How a film is mapped: which frames, with which look, through which callbacks. source.c chooses
 * the shape and the look, video_job.c the rest; film.c reads it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_FILM_PLAN_H
#define TONEMAP_FILM_PLAN_H

#include "media/video.h"

#include <coxswain/coxswain.h>

struct scenes;

/* How the curve follows the film; all zeros = it does not. */
struct film_steering {
    bool on;
    bool lookahead;        /* each frame's own histogram steers it */
    float known_peak_nits; /* the input's metadata; 0 = none */
    bool trusts;           /* no light is brighter than known_peak_nits */
};

/* What the options have chosen. The rest of the colours follows the frames. */
struct film_chosen {
    bool transfer, primaries, range, gamut;
};

/* Whether frames of both shapes have the same colours: where they differ, the curve starts again. */
static inline bool film_same_colours(const struct cox_video_shape *a,
                                     const struct cox_video_shape *b)
{
    return a->transfer == b->transfer && a->primaries == b->primaries && a->matrix == b->matrix &&
           a->gamut == b->gamut && a->in.range == b->in.range &&
           a->in.chroma_location == b->in.chroma_location;
}

struct film_plan {
    cox_runtime *runtime;
    struct video_input *input;
    uint64_t start, frames;       /* skip `start`, then take `frames`; 0 = all */
    const uint64_t *only;         /* these `frames` frames, rising; NULL = all in between */
    struct cox_video_shape shape; /* without pitches; its colours are the next frame's */
    struct film_chosen chosen;
    uint32_t out_width, out_height;     /* pixels of an output frame */
    struct cox_video_settings settings; /* with steering its gain is applied on top */
    struct film_steering steering;
    uint32_t lut_points; /* a look-up table in the place of the look; 0 = none */
    cox_buffer *lut_table;
    const struct scenes *scenes; /* peak and gain of each frame; NULL = `steering` decides */

    /* Policy, frames in flight, warmup, report; film.c sets the rest. */
    struct cox_session_params session;
    bool keep_scenes; /* one for each frame, for statistics */
    bool discard;     /* the frames are not written */

    /* Before the first frame goes to the devices, on the caller's thread. False ends the film. */
    bool (*begin)(void *user);

    /* Make the plan's shape and known peak fit a frame's colours. Called for the first frame, and
     * when the colours change; `frame` is its number in the input. On the caller's thread. False,
     * and `error` names the frame and says why, ends the film before it. */
    bool (*recolour)(void *user, struct film_plan *plan, uint64_t frame,
                     const struct video_colours *colours, struct error *error);

    /* A frame is mapped; on the writer's thread. The memory is valid during the call. `time` is the
     * input's, see struct video_frame. */
    bool (*take)(void *user, const void *const planes[], const size_t pitch_bytes[], int64_t time,
                 struct error *error);

    /* Called often, on the caller's thread, with the number of mapped frames. */
    void (*show)(void *user, uint64_t mapped);

    /* Whether to end before the last frame. Called often, on the caller's thread. */
    bool (*enough)(void *user);
    void *user;
};

#endif
